"""Positions in a kernel's text at which a barrier can stand, and the cheapest choice among them.

The kernel's nodes are numbered in textual order.  A position is a number between two nodes; "after the first access
and before the second" is then an interval of numbers, and a barrier deeper in a loop counts as well as one outside.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from ..ir.tree import WARP_SIZE, Kernel, Leaf, Loop, Node, Sync
from .sites import Site

_LAST_RESORT = 1 << 40
"""Added to the cost of a position inside a thread loop that is narrower than the launch."""


@dataclass(frozen=True)
class Slot:
    """A position: in the body of `parent` before the child `index`.

    Attributes
    ----------
    order : int
        Number in textual order.
    cost : int
        How often a barrier here runs.
    inside : tuple of str
        Loops around it, outermost first.
    given : bool
        A barrier that the kernel has anyway: inside a collective over the whole block (then `parent` is its leaf).
    always : bool
        False for a given barrier of a leaf that whole blocks may skip: it orders that leaf's own accesses only.
    """

    parent: str
    index: int
    order: int
    cost: int = 0
    inside: tuple[str, ...] = ()
    given: bool = False
    always: bool = True


@dataclass(frozen=True)
class TextOrder:
    """Textual numbers of the leaves and waits of a kernel, and all positions.

    Where one warpgroup has its turn and the others wait for theirs, no barrier can stand: `stuck` are collectives of whole blocks
    there.
    """

    kernel: Kernel
    leaf_number: dict[str, int]
    wait_number: dict[str, int]
    slots: tuple[Slot, ...]
    collectives: frozenset[str]
    stuck: tuple[str, ...] = ()
    _found: dict[tuple[str | int, ...], frozenset[Slot]] = field(default_factory=dict, init=False, compare=False, repr=False)

    def at(self, site: Site) -> int:
        """When the access happens within its leaf: a block collective reads, meets, then writes."""
        late = site.writes and site.leaf.id in self.collectives
        return self.leaf_number[site.leaf.id] + (2 if late else 0)

    def between(self, first: int, second: int) -> frozenset[Slot]:
        """Positions after one number and before another."""
        return self._those((first, second), lambda s: first < s.order < second)

    def inside(self, loop: str) -> frozenset[Slot]:
        """Positions anywhere in a loop."""
        return self._those((loop,), lambda s: loop in s.inside)

    def around(self, loop: str, first: int, second: int) -> frozenset[Slot]:
        """Positions on every way from `first` in one iteration of the loop to `second` in the next."""
        return self._those((loop, first, second), lambda s: loop in s.inside and (s.order > first or s.order < second))

    def can(self, first: int, second: int) -> bool:
        """Whether a barrier that is not there yet can stand after one number and before another."""
        at = bisect_right(self._free, first)
        return at < len(self._free) and self._free[at] < second

    def can_around(self, loop: str, first: int, second: int) -> bool:
        """The same, on every way from `first` in one iteration of the loop to `second` in the next."""
        inside = self._spans.get(loop)
        return inside is not None and (inside[1] > first or inside[0] < second)

    def can_inside(self, loop: str) -> bool:
        """Whether such a barrier can stand anywhere in a loop."""
        return loop in self._spans

    @cached_property
    def _free(self) -> list[int]:
        return sorted(s.order for s in self.slots if not s.given)

    @cached_property
    def _spans(self) -> dict[str, tuple[int, int]]:
        """The first and the last of such positions in each loop."""
        out: dict[str, tuple[int, int]] = {}
        for s in self.slots:
            for loop in s.inside if not s.given else ():
                low, high = out.get(loop, (s.order, s.order))
                out[loop] = min(low, s.order), max(high, s.order)
        return out

    def _those(self, asked: tuple[str | int, ...], wanted: Callable[[Slot], bool]) -> frozenset[Slot]:
        """The positions that are wanted; many pairs of accesses ask for the same."""
        if (found := self._found.get(asked)) is None:
            found = self._found[asked] = frozenset(filter(wanted, self.slots))
        return found

    def after_waits(self, sink: Site, kind: str) -> tuple[frozenset[Slot], ...]:
        """What must hold a barrier so that one stands between the last wait of a kind before `sink`, on any way, and `sink`.

        The walk goes outwards from the sink.  A wait earlier in the same body ends it; a wait later in a loop's body
        is the last one for every iteration but the first, so the walk goes on for the first.
        """
        found: list[frozenset[Slot]] = []
        here = self.at(sink)
        bodies: list[tuple[str, tuple[Node, ...]]] = [(self.kernel.id, self.kernel.body)]
        bodies += [(loop.id, _loop_in(self.kernel.body, loop.id).body) for loop in sink.above]
        for parent, body in reversed(bodies):
            numbers = list(self._waits(body, kind))
            if earlier := [n for n in numbers if n < here]:
                return (*found, self.between(max(earlier), here))
            is_time_loop = parent != self.kernel.id and not _loop_in(self.kernel.body, parent).is_place
            if numbers and is_time_loop:
                found.append(self.around(parent, max(numbers), here))
        return tuple(found)

    def _waits(self, nodes: Iterable[Node], kind: str) -> Iterator[int]:
        for node in nodes:
            if isinstance(node, Loop):
                yield from self._waits(node.body, kind) if node.extent > 0 else ()
            elif isinstance(node, Sync) and node.kind == kind:
                yield self.wait_number[node.id]


def _loop_in(nodes: Iterable[Node], name: str) -> Loop:
    for node in nodes:
        if isinstance(node, Loop):
            if node.id == name:
                return node
            try:
                return _loop_in(node.body, name)
            except KeyError:
                continue
    raise KeyError(name)


def text_order(kernel: Kernel, launch: tuple[int, ...], skipped: frozenset[str] = frozenset()) -> TextOrder:
    """Number the nodes and positions of a kernel.

    Parameters
    ----------
    kernel : Kernel
    launch : tuple of int
        Extents of the seven place coordinates (:data:`~explorer.poly.sites.AXES`).
    skipped : frozenset of str
        Leaves that whole blocks may skip in some iteration.
    """
    leaf_number: dict[str, int] = {}
    wait_number: dict[str, int] = {}
    slots: list[Slot] = []
    collectives: set[str] = set()
    stuck: list[str] = []
    counter, in_turn = 0, False

    def visit(parent: str, nodes: tuple[Node, ...], above: tuple[Loop, ...]) -> None:
        nonlocal counter, in_turn
        names = tuple(x.id for x in above)
        cost = prod(x.extent for x in above if not x.is_place)
        cost += _LAST_RESORT if any(_is_narrow(x, launch) for x in above) else 0
        runs = all(x.extent > 0 for x in above)
        allowed = runs and not any(x.role == "vector" for x in above)
        for index, node in enumerate(nodes):
            inside_launch = isinstance(node, Loop) and node.role == "launch"
            if allowed and not inside_launch and not in_turn:
                slots.append(Slot(parent, index, counter, cost, names))
            counter += 1
            if isinstance(node, Loop):
                visit(node.id, node.body, (*above, node))
            elif isinstance(node, Sync):
                wait_number[node.id] = counter
                counter += 1
                in_turn = node.kind == "turn" or (in_turn and node.kind != "pass")
            else:
                leaf_number[node.id] = counter
                if runs and meets_whole_block(node, above, launch):
                    collectives.add(node.id)
                    stuck.extend([node.id] if in_turn else [])
                    slots.append(Slot(node.id, 0, counter + 1, 0, names, True, node.id not in skipped))
                counter += 3

    visit(kernel.id, kernel.body, ())
    return TextOrder(kernel, leaf_number, wait_number, tuple(slots), frozenset(collectives), tuple(stuck))


def latest(positions: frozenset[Slot], before: int) -> frozenset[Slot]:
    """Of the cheapest positions the last one before a number: there least is waited for what goes on beside the threads."""
    cheap = [s for s in positions if s.cost == min(x.cost for x in positions)]
    last = max((s.order for s in cheap if s.order < before), default=None)
    return positions if last is None else frozenset(s for s in cheap if s.order == last)


def _is_narrow(loop: Loop, launch: tuple[int, ...]) -> bool:
    """Whether some threads of the block have no iteration of this thread loop."""
    if not loop.is_thread:
        return False
    high, low, y, z = launch[3:]
    extents = {"thread.x": high * low, "warp": high, "lane": low, "thread.y": y, "thread.z": z}
    return loop.start > 0 or loop.extent < extents[loop.role]


def meets_whole_block(leaf: Leaf, above: tuple[Loop, ...], launch: tuple[int, ...]) -> bool:
    """Whether the leaf's collective must make all threads of the block meet: its group is the whole block, over several warps."""
    collected = [x for x in above if x.is_thread and dict(leaf.collect).get(x.id) in ("shuffle", "shared")]
    threads = prod(launch[3:])
    return threads > WARP_SIZE and prod(x.extent for x in collected) == threads


def choose(needed: list[frozenset[Slot]]) -> tuple[Slot, ...]:
    """A cheapest set of positions that meets every requirement (exact: branch and bound over what each position meets).

    Among equally cheap sets the one with fewest barriers; among equal positions the outermost, then the first of a body.
    """
    minimal = [r for i, r in enumerate(needed) if not any(o < r or (o == r and j < i) for j, o in enumerate(needed))]
    met: dict[frozenset[int], Slot] = {}
    for slot in sorted({s for r in minimal for s in r}, key=lambda s: (s.cost, len(s.inside), s.index > 0, -s.order)):
        met.setdefault(frozenset(i for i, r in enumerate(minimal) if slot in r), slot)
    options = [(m, s) for m, s in met.items() if not any(m < o and t.cost <= s.cost for o, t in met.items())]
    best: tuple[tuple[int, int], tuple[Slot, ...]] | None = None

    def search(left: frozenset[int], taken: tuple[Slot, ...], cost: int) -> None:
        nonlocal best
        if best is not None and (cost, len(taken)) >= best[0]:
            return
        if not left:
            best = ((cost, len(taken)), taken)
            return
        tight = min(left, key=lambda i: (sum(i in m for m, _ in options), i))
        for m, slot in options:
            if tight in m:
                search(left - m, (*taken, slot), cost + slot.cost)

    search(frozenset(range(len(minimal))), (), 0)
    return best[1] if best else ()
