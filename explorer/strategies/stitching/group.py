"""The figures of a group of values that one kernel makes: what it moves, keeps, computes and exchanges."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from math import gcd, prod

from ...gpu.occupancy import Occupancy, occupancy
from ...gpu.spec import Gpu
from ...ir.expr import Expr
from ...ir.program import Access, Statement
from ...ir.scalar import flops
from ...ir.tree import Leaf, Loop
from ..counts import additions
from ..elementwise import THREADS as ELEMENTS
from ..rows import RESERVED, kept_words, spread_of
from ..rows.form import WIDE
from ..rows.model import EACH as WRITTEN_OUT
from ..rows.model import H200 as ROWS
from ..rows.model import RowWork, operations_of, row_us, shared_us
from ..split_rows import online, parts_of
from .cost import TERMS, KernelCost
from .graph import APART, Graph, name_of
from .rates import (
    AGAIN,
    BARRIER_US,
    LATENCY_US,
    LAUNCH_US,
    ROW_US,
    STEP_US,
    WAVE_US,
    Spread,
    bandwidth_of,
    best_parts,
    stored_us,
)

BASE_REGISTERS = 32
"""Registers of a thread for addresses and intermediate results, beside what it keeps of a row (an estimate)."""
EACH = 4
"""Accesses of a thread in an elementwise kernel."""
CACHE_SHARE = 0.5
"""Share of the second-level cache that still holds what a kernel read last when the next begins there (an estimate)."""
SECTOR = 32
"""Bytes that the memory moves at least (CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory")."""


@dataclass(frozen=True)
class Block:
    """A block of a launch of several phases: its threads, and how many a multiprocessor holds."""

    threads: int
    filled: Occupancy


def statements_of(graph: Graph, group: tuple[str, ...]) -> list[tuple[Leaf, Statement, tuple[Loop, ...]]]:
    """The statements that make a group's values, each with its leaf and the loops around it."""
    return [(leaf, s, above) for leaf, s, above in graph.leaves if s.target.array in group]


class Group:
    """The figures of one group."""

    def __init__(self, graph: Graph, group: tuple[str, ...], schemes: Mapping[str, str], gpu: Gpu,
                 parts: bool | None) -> None:
        self.graph, self.group, self.schemes, self.gpu, self.parts = graph, group, schemes, gpu, parts
        self.all = statements_of(graph, group)
        self.bandwidth = bandwidth_of(gpu)
        self.updates = [e for e in self.all if e[1].update]
        self.space = max(prod(x.extent for x in above) for _, _, above in self.all)
        self.results = min(self._results(*e) for e in self.all)
        self.flat = self.results == self.space
        self.length = max(1, self.space // max(1, self.results))
        self.inside = [e for e in graph.edges if e.array in group and e.into in group]
        self.stage = self._stages()

    def _results(self, leaf: Leaf, s: Statement, above: tuple[Loop, ...]) -> int:
        used = _variables(leaf, s.target)
        return prod(x.extent for x in above if x.id in used)

    def _stages(self) -> dict[str, int]:
        """How many reductions of the group have to be over before a value can be made."""
        stage, together = dict.fromkeys(self.group, 0), self._one_pass()
        self.split = self.split if together else 0
        for _ in self.group:
            for e in self.inside:
                stage[e.into] = max(stage[e.into], stage[e.array] + (e.array in self.graph.reductions
                                                                             and (e.array, e.into) not in together))
        return stage

    def distinct(self, leaf: Leaf, access: Access, above: tuple[Loop, ...]) -> int:
        """Elements that an access touches in all, at most."""
        used = {x.id for x in above} if not access.affine else _variables(leaf, access)
        return min(prod(x.extent for x in above if x.id in used), self.graph.plan.array_of[access.array].size)

    def _one_pass(self) -> set[tuple[str, str]]:
        """The maximum and the sum of exponentials that one pass makes (:mod:`~explorer.strategies.split_rows`)."""
        made = {s.target.array: s for _, s, _ in self.updates}
        fits = self.parts is not False and len(made) == 2 and min(len(above) for _, _, above in self.updates) > 1
        item = min((self.graph.plan.array_of[r.array].dtype.bytes for s in made.values() for r in s.reads if r.index), default=4)
        self.split = parts_of(self.results, self.length, item, self.gpu) if fits else 1
        return {(a, b) for a in made for b in made if self.split > 1 and a != b and online(made[a], made[b])}

    def cost(self, earlier: Set[str], block: Block | None = None) -> KernelCost:
        """The kernel's cost; as a phase, with the blocks of its launch, which walk over what does not fit at once."""
        arrays = self.graph.plan.array_of
        passes: dict[str, set[int]] = {}
        elements: dict[str, int] = {}
        for leaf, s, above in self.all:
            for r in s.reads:
                if r.array not in self.group or r.array == s.target.array:
                    n = self.distinct(leaf, r, above)
                    elements[r.array] = max(elements.get(r.array, 0), n)
                    passes.setdefault(r.array, set()).add(self.stage[s.target.array] if n > self.results else 0)
        item = min((arrays[a].dtype.bytes for a in elements if elements[a] * 2 > self.space), default=4)
        again = {a for a, found in passes.items() if len(found) > 1}
        own = self._own_rows()
        work = self._work(item, elements, again, own)
        threads, vector, rows = self._threads(item, work)
        threads = block.threads if block and self.flat else threads
        words, most = self._words(again | own, threads), kept_words(threads * rows, work.streams, self.gpu)
        registers = BASE_REGISTERS + words
        shared = self._shared(threads, rows)
        held = words <= most
        if not held:
            registers, lying = BASE_REGISTERS, self.length * sum(arrays[a].dtype.bytes for a in again)
            held = rows == 1 and shared + lying + RESERVED <= self.gpu.shared_bytes_per_block_optin
            shared += lying if held else 0
        moved = sum(n * arrays[a].dtype.bytes * (1 if held or a not in again else len(passes[a])) for a, n in elements.items())
        moved += sum(arrays[v].nbytes for v in self.group if self._leaves(v))
        if self._words(own, threads) > most:  # the compiler puts them into local memory
            moved += sum(arrays[a].nbytes * (1 + len({self.stage[e.into] for e in self.inside if e.array == a})) for a in own)
        filled = block.filled if block else occupancy(self.gpu, threads * rows, registers, shared)
        terms = dict.fromkeys(TERMS, 0.0)
        terms["memory"] = moved / self.bandwidth
        once = held and block is None and self._in_rows()
        join = self._spread(terms, item, threads, rows, vector, filled.blocks_per_sm, block is not None, once)
        terms["launch"] += LAUNCH_US
        terms["latency"] += LATENCY_US * (1 + max(self.stage.values(), default=0) * (not held))
        if self.flat:
            found = max((min(arrays[a].nbytes, CACHE_SHARE * (self.gpu.l2_bytes or 0)) for a in elements
                         if a in earlier and elements[a] * 2 > self.space), default=0)
            terms["cache"] = -found / self.bandwidth
        reads = 1 if held else max(map(len, passes.values()), default=1)
        return KernelCost(self.group, moved, threads * rows, registers, shared, filled.fraction, 1 + join, self.flat,
                          join, reads, terms)

    def _spread(self, terms: dict[str, float], item: int, threads: int, rows: int, vector: int, most: int, phase: bool,
                once: bool) -> bool:
        """What the shape of the work loses against the bandwidth; whether parts are joined by a kernel of their own."""
        if self.flat:
            piece = threads * vector * EACH
            found = Spread(-(-self.space // piece), piece, threads, 1, vector, item, EACH)
            terms["spread"] += (found.loss(self.gpu, max(1, most) if phase else 32) - 1) * terms["memory"]
            return False
        contiguous = self._contiguous()
        reduced = [v for v in self.group if v in self.graph.reductions]
        one_pass = bool(reduced) and not any(self.stage[v] for v in reduced) and all(map(self._scalar_or_update, self.group))
        if one_pass and (self.parts is not False or self._shuffled(reduced)):
            wide = gcd(self.length if contiguous else self.results, WIDE // item)
            number = 1 if self.parts is False else self.split
            lost, join, number = best_parts(self.results, self.length, wide, item, self.gpu, bool(self.parts), number,
                                            max(1, most) if phase else 32)
            terms["spread"] += lost
            terms["exchange"] += ROW_US + BARRIER_US
            terms["launch"] += join
            return number > 1
        if once:
            terms["spread"] += max(0.0, self.row_us - terms["memory"])
            trees = sum(self.schemes[name_of(e)] == "shared" and e.array in self.graph.reductions for e in self.inside)
            lying = BARRIER_US * len(self._lying()) + shared_us(self._through_shared(), self.gpu)
            terms["exchange"] += STEP_US * threads.bit_length() * trees + lying
            return False
        accesses = -(-self.length // (threads * vector))
        found = Spread(self.results, self.length, threads, rows, vector, item, accesses if accesses <= WRITTEN_OUT else EACH)
        loss, waves = found.loss(self.gpu, max(1, most)), found.waves(self.gpu, max(1, most))
        if not contiguous or (threads == 1 and self.length > vector):
            loss *= max(1.0, SECTOR / (item if not contiguous else vector * item))
        written = sum(self.graph.plan.array_of[v].nbytes for v in self.group if self._leaves(v))
        few = max(0.0, stored_us(written, found.blocks(), self.gpu) - loss * written / self.bandwidth)
        terms["spread"] += (loss - 1) * terms["memory"] + few + WAVE_US * (waves - 1)
        terms["arithmetic"] += max(0.0, self._arithmetic_us(found.blocks()) - terms["memory"] - terms["spread"])
        terms["exchange"] += shared_us(self._through_shared(), self.gpu)
        steps = {"shuffle": ROW_US + BARRIER_US * (threads > self.gpu.warp_size),
                 "shared": ROW_US + STEP_US * threads.bit_length(), "register": 0.0}
        for _, s, _ in self.updates:
            how = next((self.schemes[name_of(e)] for e in self.graph.edges if e.array == s.target.array), "shuffle")
            terms["exchange"] += steps.get(how, steps["shuffle"]) * (1 + AGAIN * (waves - 1))
        return False

    def _arithmetic_us(self, blocks: int) -> float:
        """What the group's operations take on the multiprocessors that have a block, at half the peak: that counts a
        multiplication and an addition at once.
        """
        work = sum(prod(x.extent for x in above) * (additions(s.value) + bool(s.update)) for _, s, above in self.all)
        return 2 * work / (self.gpu.f32_flops_per_s / 1e6) * self.gpu.multiprocessors / min(blocks, self.gpu.multiprocessors)

    def _threads(self, item: int, work: RowWork) -> tuple[int, int, int]:
        """Threads for one row, elements of one access, rows of a block."""
        if self.flat:
            return ELEMENTS, gcd(self._row_extent(), WIDE // item), 1
        alone = any(self.schemes[name_of(e)] == "register" and e.array in self.graph.reductions for e in self.inside)
        spread = spread_of(work, gcd(self.length, WIDE // item), self.gpu, 1 if alone else None)
        self.row_us = row_us(work, spread, self.gpu) - ROWS.launch
        return spread.threads, spread.vector, spread.side(work, self.gpu.warp_size)

    def _work(self, item: int, elements: Mapping[str, int], again: Set[str], own: Set[str]) -> RowWork:
        """What the group does with its rows."""
        arrays = self.graph.plan.array_of
        moved = {**elements, **{v: arrays[v].size for v in self.group if self._leaves(v)}}
        long = [s for _, s, above in self.all if prod(x.extent for x in above) > self.results]
        nbytes = sum(n * arrays[a].dtype.bytes for a, n in moved.items())
        read, made = (sum(arrays[a].dtype.bytes for a in kept if arrays[a].size > self.results) for kept in (again, own))
        streams, operations = sum(n > self.results for n in moved.values()), sum(operations_of(self.graph.plan, s) for s in long)
        return RowWork(self.results, self.length, nbytes, read + made, read, item, streams, len(self.updates), operations)

    def _in_rows(self) -> bool:
        """Whether the model of rows was fitted to such a kernel: contiguous rows, enough of them, in registers, by shuffles.

        Results of whole rows may lie in shared memory besides, which costs something more.
        """
        arrays = self.graph.plan.array_of
        schemes = {(self.schemes[name_of(e)], e.array in self.graph.reductions) for e in self.inside
                   if self.schemes[name_of(e)] != "shared" or arrays[e.array].size > self.results}
        enough = 2 * self.results >= self.gpu.multiprocessors
        return bool(self.updates) and enough and self._contiguous() and schemes <= {("shuffle", True), ("register", False)}

    def _row_extent(self) -> int:
        """Iterations of the innermost loop."""
        return max((above[-1].extent for _, _, above in self.all if above), default=1)

    def _own_rows(self) -> set[str]:
        """Rows that the kernel makes and keeps in registers."""
        arrays = self.graph.plan.array_of
        return {e.array for e in self.inside if not self.flat and arrays[e.array].size > self.results
                and self.schemes[name_of(e)] == "register"}

    def _words(self, kept: set[str], threads: int) -> int:
        """Words of some rows that fall to one thread."""
        arrays, pieces = self.graph.plan.array_of, -(-self.length // threads)
        return sum(-(-pieces * arrays[a].dtype.bytes // 4) for a in kept if arrays[a].size > self.results)

    def _shared(self, threads: int, rows: int) -> int:
        """Bytes of a block: rows that lie there, and a word of each warp where warps meet."""
        arrays = self.graph.plan.array_of
        kept = sum((self.length if arrays[a].size > self.results else 1) * rows * arrays[a].dtype.bytes for a in self._lying())
        return kept + (4 * (threads // self.gpu.warp_size) if self.updates and threads > self.gpu.warp_size else 0)

    def _lying(self) -> set[str]:
        """Rows that lie in shared memory because an edge says so."""
        return {e.array for e in self.inside if self.schemes[name_of(e)] == "shared" and e.array not in self.graph.reductions}

    def _through_shared(self) -> int:
        """Bytes of such rows, written once and read by each of their uses."""
        arrays = self.graph.plan.array_of
        return sum(arrays[a].nbytes * (1 + sum(e.array == a for e in self.inside)) for a in self._lying())

    def _shuffled(self, reduced: list[str]) -> bool:
        """Whether results are combined by shuffles, as far as they stay in the kernel."""
        return all(self.schemes[name_of(e)] == "shuffle" for e in self.inside if e.array in reduced)

    def _leaves(self, value: str) -> bool:
        """Whether a value goes to global memory."""
        used = [e for e in self.graph.edges if e.array == value]
        return value in self.graph.kept or any(e.into not in self.group or self.schemes[name_of(e)] in APART for e in used)

    def _scalar_or_update(self, value: str) -> bool:
        return value in self.graph.reductions or self.graph.plan.array_of[value].size <= self.results

    def _contiguous(self) -> bool:
        """Whether the last axis of the largest array that is reduced is one of those that are summed over."""
        leaf, s, _ = (self.updates or self.all)[0]
        reads = [r for r in s.reads if r.index and isinstance(r.index[-1], Expr)]
        if not reads:
            return True
        last = max(reads, key=lambda r: self.graph.plan.array_of[r.array].size).index[-1]
        moving = last.substitute(dict(leaf.at)).variables() if isinstance(last, Expr) else frozenset()
        return not moving & _variables(leaf, s.target)


def _variables(leaf: Leaf, access: Access) -> set[str]:
    at = dict(leaf.at)
    return {v for e in access.index if isinstance(e, Expr) for v in e.substitute(at).variables()}


def arithmetic(graph: Graph) -> int:
    """Arithmetic operations of all statements, each by its loops' extents."""
    return sum(prod(x.extent for x in above) * (flops(s.value) + bool(s.update))
               for _, s, above in graph.leaves)
