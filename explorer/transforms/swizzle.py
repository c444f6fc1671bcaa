"""Exchange units of 16 bytes within the rows of a shared array, so that columns of them lie in different banks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod

from ..ir.expr import Expr
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Buffer, Plan
from ..ir.swizzle import MODES, ROWS
from ..ir.tree import Leaf, Loop, leaves, ranges
from ..poly.lanes import contiguous
from ..poly.traffic import bank_passes
from ._copies import copy_into
from ._nest import enclosing
from ._once import once
from ._room import no_room
from ._uses import put_buffer, with_view
from .base import Transform


@dataclass(frozen=True)
class Swizzle(Transform):
    """Lay a shared array out in one of the patterns that tensor maps and matrix descriptors know, against bank conflicts.

    A line of shared memory is 128 bytes, four from each of its 32 banks, so rows of 128 bytes have their columns in the same
    banks.  In the pattern of `mode` bytes, 32, 64 or 128, the unit of 16 bytes that row-major order puts at byte ``p`` lies at
    ``p xor 16 * (p // 128 % (mode // 16))``: a bijection within each `mode` bytes, which repeats after 8 rows.  Vectors of up
    to 16 bytes stay whole, and indices are those they were: only the address that is computed from them changes.  The source
    is the PTX ISA ("Swizzling Modes" of tensor maps, "Strides" and "Matrix Descriptor" of wgmma).

    Rows of the pattern have exactly `mode` bytes.  Where those of the array are longer, it is cut into panels of `panel`
    columns (by default `mode` bytes): a panel's rows follow each other, then comes the next panel.  The array begins at a
    multiple of 1024 bytes.  Without a `mode` the smallest one is taken that removes all bank conflicts of the array's accesses
    by count, else the one that leaves the fewest passes, and of equal ones the largest.  Of a temporary with several axes, as a
    tile of pixels, those before its columns are joined to one of rows, where the pattern would begin in the midst of the last.

    Before::

        shared x_s: f16[128, 64]
        for k in 0…8
            for x_s.t in 0…128                      # thread.x
                for x_s.v in 0…8  vector
                    x_s[x_s.t, 8*k + x_s.v] = …     # 8 threads, one column of 16 bytes: 8 passes over the banks

    After ``swizzle('x_s', 128)``::

        shared x_s: f16[128, 64]  swizzle 128
        for k in 0…8
            for x_s.t in 0…128                      # thread.x
                for x_s.v in 0…8  vector
                    x_s[x_s.t, 8*k + x_s.v] = …     # one pass
    """

    name = "swizzle"
    group = "Storage"
    aliases = ("swizzle_layout", "make_swizzled_layout", "permute_layout", "xor_layout")
    elsewhere = {"TVM": "transform_layout", "CUTLASS": "Swizzle"}

    buffer: str = field(metadata={"kind": "array", "help": "the shared array, by the name of its copy or temporary"})
    mode: int = field(default=0, metadata={"kind": "int", "min": 0, "max": 128,
                                           "help": "bytes of a row of the pattern: 32, 64 or 128 (0: chosen by bank conflicts)"})
    panel: int = field(default=0, metadata={"kind": "int", "min": 0, "help": "columns of a panel (0: as many as `mode` bytes)"})

    def check(self, plan: Plan) -> Verdict:
        made = self._made(plan)
        if isinstance(made, Verdict):
            return made
        full = no_room(plan, made, "smaller tiles, or fewer slots")
        return YES if full is None else full

    def rewrite(self, plan: Plan) -> Plan:
        made = self._made(plan)
        assert not isinstance(made, Verdict)
        return made

    @once
    def _made(self, plan: Plan) -> Plan | Verdict:
        """The plan with the buffer as it will lie."""
        plan = _rows_joined(plan, self.buffer)
        buffer = _shared(plan, self.buffer)
        if isinstance(buffer, Verdict):
            return buffer
        if self.mode not in (0, *MODES):
            return no(f"a row of a pattern has 32, 64 or 128 bytes, not {self.mode}", hint="mode=128")
        if buffer.pad:
            return no(f"{buffer.name} has {buffer.pad} unused elements after each row",
                      "padding moves rows apart, and the pattern counts them as whole lines", _unpadded(plan, buffer))
        rows = buffer.shape[-2] if len(buffer.shape) > 1 else 1
        if rows % ROWS:
            return no(f"{buffer.name} has {rows} row{'s' * (rows != 1)}, and the pattern repeats after {ROWS}",
                      "each slot and panel would begin in the midst of it", f"tiles with a multiple of {ROWS} rows")
        made = self._laid(plan, buffer, self.mode) if self.mode else self._chosen(plan, buffer)
        if isinstance(made, Verdict):
            return made
        return no(f"{buffer.name} already lies so") if made == buffer else put_buffer(plan, made)

    def _laid(self, plan: Plan, buffer: Buffer, mode: int) -> Buffer | Verdict:
        """The buffer in one pattern."""
        size, columns = buffer.dtype.bytes, buffer.shape[-1]
        panel = self.panel or mode // size
        if columns % panel or not columns:
            fitting = [m for m in MODES if columns * size % m == 0]
            return no(f"rows of {buffer.name} are {columns} {buffer.dtype}, {columns * size} bytes: no whole number of "
                      + (f"panels of {self.panel}" if self.panel else f"{mode} bytes"),
                      "every row of the pattern has exactly as many bytes as its mode says",
                      f"mode={fitting[-1]}" if fitting else f"tiles whose rows are a multiple of {MODES[0]} bytes")
        if panel * size != mode:
            return no(f"panels of {panel} {buffer.dtype} have rows of {panel * size} bytes, and the pattern has {mode}",
                      hint=f"panel={mode // size}")
        made = replace(buffer, panel=0 if panel == columns else panel, swizzle=mode)
        if broken := _broken(plan, put_buffer(plan, made), buffer.name):
            leaf, lanes = broken
            return no(f"{leaf.id} accesses {buffer.name} in vectors, which are not seen to be parts of one unit of 16 bytes each",
                      "units change places as a whole", f"bind('{lanes.id}', 'seq') first")
        return made

    def _chosen(self, plan: Plan, buffer: Buffer) -> Buffer | Verdict:
        """The buffer in the smallest pattern without conflicts, or that with the fewest."""
        found = [(mode, self._laid(plan, buffer, mode)) for mode in MODES]
        possible = [(mode, b) for mode, b in found if not isinstance(b, Verdict)]
        if not possible:
            return next(b for mode, b in found if isinstance(b, Verdict) and (
                not self.panel or mode == min(MODES, key=lambda m: abs(m - self.panel * buffer.dtype.bytes))))
        plain = put_buffer(plan, replace(buffer, panel=0, swizzle=0))
        (passes, fewest), all_the_same = bank_passes(plain, buffer.name), f"swizzle('{buffer.name}', {possible[-1][0]})"
        if passes <= fewest:
            return no(f"no access of {buffer.name} has bank conflicts", "each takes the fewest passes over the banks",
                      all_the_same)
        counted = [(bank_passes(put_buffer(plan, b), buffer.name)[0], b) for _, b in possible]
        least = min(n for n, _ in counted)
        if least >= passes:
            return no(f"no pattern lowers the {passes:,.0f} passes over the banks that accesses of {buffer.name} take",
                      f"{fewest:,.0f} would be the fewest; a pattern moves units of 16 bytes, not elements", all_the_same)
        best = [b for n, b in counted if n == least]
        return best[0] if least <= fewest else best[-1]

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        return YES if _near(plan, node_id) else no(f"{node_id} uses no shared memory", hint="stage('…', '…') first")

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Swizzle]:
        for name in _near(plan, node_id):
            yield from (step for mode in (0, *reversed(MODES)) if (step := cls(name, mode)).check(plan))


def _shared(plan: Plan, name: str) -> Buffer | Verdict:
    """The shared buffer of this name, or why there is none."""
    known = [b.name for b in plan.buffers if b.space == "shared"]
    hint = f"one of {', '.join(known)}" if known else "stage('…', '…') or contract('…', 'shared') first"
    buffer = plan.buffer_of.get(name)
    if buffer is None and name in plan.array_of:
        return no(f"{name} lies in global memory, which has no banks", hint=hint)
    if buffer is None:
        return no(f"there is no buffer {name!r}", "" if known else "nothing lies in shared memory", hint)
    if buffer.space != "shared":
        where = "registers" if buffer.space == "register" else "global memory"
        return no(f"{name} lies in {where}: only shared memory has banks", hint=hint)
    return buffer


def _rows_joined(plan: Plan, name: str) -> Plan:
    """The plan with all axes before a temporary's columns joined, where the pattern would begin in the midst of the last."""
    buffer = plan.buffer_of.get(name)
    if buffer is None or buffer.space != "shared" or len(buffer.shape) < 3 or copy_into(plan, name):
        return plan
    *outer, columns = buffer.shape
    if outer[-1] % ROWS == 0 or prod(outer) % ROWS:
        return plan
    strides = [prod(outer[n + 1:]) for n in range(len(outer))]

    def joined(leaf: Leaf) -> Leaf:
        scope = ranges(enclosing(plan, leaf.id))
        for slot, view in leaf.views:
            if view.buffer == name:
                row = sum((e * by for e, by in zip(view.index[:-1], strides, strict=True)), Expr()).simplify(scope)
                leaf = with_view(leaf, slot, replace(view, index=(row, view.index[-1])))
        return leaf

    return put_buffer(plan.map_leaves(joined), replace(buffer, shape=(prod(outer), columns)))


def _broken(plan: Plan, new: Plan, name: str) -> tuple[Leaf, Loop] | None:
    """A leaf and its vector loop that moves neighbours of the buffer at once as the plan is, and would not."""
    for leaf, above, _ in plan.leaves:
        lanes = next((x for x in above if x.role == "vector"), None)
        for slot, view in leaf.views if lanes else ():
            if lanes and view.buffer == name and contiguous(plan, leaf, slot, lanes, scope := ranges(above)) and (
                    not contiguous(new, leaf, slot, lanes, scope)):
                return leaf, lanes
    return None


def _near(plan: Plan, node_id: str) -> tuple[str, ...]:
    """Shared buffers that the leaves of a node use, in order."""
    hit, kernel = plan.find(node_id), next((k for k in plan.kernels if k.id == node_id), None)
    nodes = kernel.body if kernel else (hit[0],) if hit else ()
    used = {view.buffer for leaf, _ in leaves(nodes) for _, view in leaf.views}
    return tuple(b.name for b in plan.buffers if b.name in used and b.space == "shared")


def _unpadded(plan: Plan, buffer: Buffer) -> str:
    """How the buffer comes to have no padding."""
    if copy_into(plan, buffer.name):
        return "stage it with pad=0"
    array = next((plan.statement_of[leaf.statement].accesses[slot].array for leaf, _, _ in plan.leaves
                  for slot, v in leaf.views if v.buffer == buffer.name), buffer.name)
    return f"contract('{array}', 'shared') first"
