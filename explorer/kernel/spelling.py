"""How the nodes' values are spelled in CUDA C++: elements, loads, statements, conditions.

A :class:`Speller` remembers what its text uses: variables, parts of the device library, arrays that are accessed in vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.dtype import DTYPES, DType
from ..ir.expr import Expr, Ranges, const
from ..ir.plan import Buffer
from ..ir.program import Indirect
from ..ir.scalar import REDUCTIONS, Read, Scalar
from ..ir.swizzle import UNIT, apart, by_patterns, cells, offset
from ..poly.shared_tile import SharedTile
from .bounds import bounds, extreme_text
from .conditions import NEVER, Condition, condition_text, without_implied
from .index import INT_MAX, horner, is_wide, linear, subscripts, to_c
from .nodes import AnyOf, Apply, Collect, Do, For, Get, Local, Number, Operand, Ref
from .scalar import CONDITIONAL, PRIMARY, Text, cast, enclose, literal, narrow, update_text, value_text, widen
from .scalar import type_of as scalar_type
from .sites import Lowered, Site, Store

ATOMIC = {"sum": "add", "prod": "mul"}
"""What the device library calls an atomic update where that is not the reduction's name."""


class Speller:
    """Spells the values of one kernel.

    Parameters
    ----------
    low : Lowered

    Attributes
    ----------
    used : set of str
        Variables and arrays in the text so far.
    library : set of str
        Parts of the device library.
    aligned : dict of str to int
        Shared arrays that begin at multiples of so many bytes.
    unrolled : set of str
        Variables of unrolled loops around what is written.
    """

    def __init__(self, low: Lowered) -> None:
        self.low = low
        self.used: set[str] = set()
        self.library: set[str] = set()
        self.aligned: dict[str, int] = {}
        self.unrolled: set[str] = set()

    # -- indices and conditions ---------------------------------------------------------------------------------

    def expr(self, e: Expr, ranges: Ranges) -> Text:
        """An integer expression."""
        self.used |= e.variables()
        return to_c(e, ranges)

    def conditions(self, conditions: Sequence[Condition], ranges: Ranges, enclosed: bool = False) -> str:
        """All conditions, joined by ``&&``; in parentheses if `enclosed` and there are several."""
        kept = without_implied(conditions, ranges)
        for c in kept:
            self.used |= c.variables()
        texts = [condition_text(c, ranges) for c in kept]
        return f"({' && '.join(texts)})" if enclosed and len(texts) > 1 else " && ".join(texts)

    def any_of(self, edge: AnyOf, ranges: Ranges) -> str:
        """One of several conjunctions."""
        texts: list[str] = []
        for conjunction in edge:
            for c in conjunction:
                self.used |= c.variables()
            texts.append(" && ".join(condition_text(c, ranges) for c in conjunction))
        return " || ".join(f"({t})" if "&&" in t and len(texts) > 1 else t for t in texts)

    def header(self, loop: For, ranges: Ranges) -> str:
        """``for (int k = 0; k < min(4, 7 - j); ++k)``."""
        lowers, uppers = bounds(loop.limits, loop.var)
        stop = loop.start + loop.extent
        wide = stop > INT_MAX
        mixed = wide or any(is_wide(e, ranges) for e in (*lowers, *uppers))
        for e in (*lowers, *uppers):
            self.used |= e.variables()
        first = extreme_text("max", loop.start, lowers, ranges, mixed)
        end = extreme_text("min", stop, uppers, ranges, mixed)
        test = f"{loop.var} < {end}"
        last = next((to_c(e - 1, ranges)[0] for e in uppers if e.const == 1 and end == to_c(e, ranges)[0]), "")
        if last:
            test = f"{loop.var} <= {last}"
        return f"for ({'long long' if wide else 'int'} {loop.var} = {first}; {test}; ++{loop.var})"

    # -- elements -----------------------------------------------------------------------------------------------

    def operand(self, o: Operand, site: Site, reads: Sequence[Operand] = ()) -> str:
        """The lvalue of an element."""
        if isinstance(o, Ref):
            return self.element(o, site, reads)
        text = o.local.name + "".join(f"[{self.expr(e, site.ranges)[0]}]" for e in o.index)
        return f"{text}.at[{self.expr(o.lane, site.ranges)[0]}]" if o.lane is not None else text

    def element(self, ref: Ref, site: Site, reads: Sequence[Operand] = ()) -> str:
        """``As[i][k]``, ``A[i * 1000 + k]``, ``total``; the first one of several lanes."""
        store, ranges = ref.store, site.ranges
        self.used.add(store.name)
        affine = [e for e in ref.index if isinstance(e, Expr)]
        for e in affine:
            self.used |= e.variables()
        if ref.lanes > 1 and store.space == "shared":
            self.aligned.setdefault(store.name, UNIT)
        if len(affine) < len(ref.index):
            parts = [to_c(e, ranges) if isinstance(e, Expr) else self._indirect(e, site, reads) for e in ref.index]
            return f"{store.name}[{horner(parts, store.shape, store.array is not None and store.array.size > INT_MAX)}]"
        if store.placed:
            return f"{store.name}[{self._place(store.placed, affine, ranges)}]"
        if store.slots or store.space != "global":
            text = store.name + subscripts(affine, ranges)
            return text if ref.of_lane is None else f"__shfl_sync(0xffffffffu, {text}, {self.expr(ref.of_lane, ranges)[0]})"
        if ref.flat:
            return f"{store.name}[{to_c(affine[0], ranges)[0]}]"
        wide = is_wide(linear(affine, store.shape), ranges)
        return f"{store.name}[{horner([to_c(e, ranges) for e in affine], store.shape, wide)}]"

    def _place(self, buffer: Buffer, index: Sequence[Expr], ranges: Ranges) -> str:
        """Where an element of a shared array in panels or swizzled lies: ``swizzled<128, __half>(i * 64 + 8 * t) + 512 * s + v``.

        What stands behind the call is not swizzled: other patterns, whose elements lie as those of the first one, and neighbours,
        which the compiler may load at once.
        """
        if not buffer.swizzle:
            return self._in_panels(buffer, index, ranges)
        self.library.add("swizzle")
        first, rest = apart(buffer, index, ranges, self.unrolled)
        inside, extents, beyond = by_patterns(buffer, first, ranges)
        wide = is_wide(offset(buffer, index, ranges), ranges)
        place = horner([to_c(e, ranges) for e in inside], extents, wide)
        behind = "".join(f" + {to_c(e, ranges)[0]}" for e in (beyond, rest) if e != const(0))
        return f"swizzled<{buffer.swizzle}, {buffer.dtype.cuda}>({place}){behind}"

    def _in_panels(self, buffer: Buffer, index: Sequence[Expr], ranges: Ranges) -> str:
        """The same before the swizzle."""
        found, extents = cells(buffer, index, ranges)
        wide = is_wide(offset(buffer, index, ranges), ranges)
        return horner([to_c(e, ranges) for e in found], extents, wide)

    def tile(self, ref: Ref, tile: SharedTile, site: Site, first: Mapping[str, Expr]) -> str:
        """A factor of a warpgroup's instruction: how it lies in shared memory, and its first element, at these loop values."""
        store, index = ref.store, [e.substitute(first, site.ranges) for e in ref.index if isinstance(e, Expr)]
        assert store.buffer is not None, "operands in shared memory are buffers of the plan"
        self.used |= {store.name, *(name for e in index for name in e.variables())}
        kind = f"{tile.swizzle}, {'true' if tile.transposed else 'false'}, {tile.panel_bytes}, {tile.step_bytes}"
        return f"shared_tile<{kind}>(&{store.name}[{self._in_panels(store.buffer, index, site.ranges)}])"

    def _indirect(self, index: Indirect, site: Site, reads: Sequence[Operand]) -> Text:
        """A data-dependent index as an integer."""
        kind = scalar_type(index.value, self.low.dtypes(site))
        text = self.value(site, reads, index.value)
        return text if kind.kind == "int" else cast(text, DTYPES["i32"], kind)

    def read(self, o: Operand, site: Site, reads: Sequence[Operand]) -> str:
        """What one operand gives: the element, the value of a sum that keeps more than that, or what another block hands over."""
        text = self.operand(o, site, reads)
        if not isinstance(o, Ref):
            return text
        return text + (".value()" if o.store.method else ".take()" if o.store.handed else "")

    def value(self, site: Site, reads: Sequence[Operand], value: Scalar | None = None) -> Text:
        """A scalar expression over the operands, by default the statement's value."""
        types, value = self.low.dtypes(site), site.statement.value if value is None else value

        def index(e: Expr) -> Text:
            return self.expr(e.substitute(site.at, site.ranges), site.ranges)

        return value_text(value, types, lambda slot: widen((self.read(reads[slot], site, reads), PRIMARY), types[slot]), index)

    # -- loads --------------------------------------------------------------------------------------------------

    def declare(self, what: Store | Local) -> str:
        """The type of an element, or of all lanes of it."""
        if isinstance(what, Store):
            self.library |= {"sums"} if what.method else set()
            return what.cuda
        if what.lanes > 1:
            return self.vector(what.dtype.cuda, what.lanes, what.packed)
        return what.dtype.cuda

    def vector(self, cuda: str, lanes: int, packed: bool = False) -> str:
        """The type of several neighbours."""
        self.library.add("vector")
        return f"{'packed' if packed else 'vec'}<{cuda}, {lanes}>"

    def shape(self, what: Store | Local) -> str:
        """Extents behind the name of what is declared."""
        return "".join(f"[{n}]" for n in what.shape)

    def number(self, value: Number, store: Store, lanes: int = 1, packed: bool = False) -> str:
        """A constant as it is stored, in all lanes."""
        plain = narrow(literal(value, store.dtype), store.dtype)[0]
        if lanes == 1:
            return plain
        kind = self.vector(store.dtype.cuda, lanes)
        text = f"{kind}{{}}" if value == 0 else f"all_lanes<{store.dtype.cuda}, {lanes}>({plain})"
        if not packed:
            return text
        kind = self.vector(store.dtype.cuda, lanes, True)
        return f"{kind}{{}}" if value == 0 else f"{kind}::of({text})"

    def get(self, got: Get, site: Site) -> str:
        """What a load gives."""
        ref = got.ref
        first = self.element(ref, site)
        text = self._wide(got, first, site) if ref.lanes > 1 else first
        otherwise = self.number(got.otherwise, ref.store, ref.lanes, got.packed) if got.when else ""
        for conditions in reversed(got.when):
            text = f"{self.conditions(conditions, site.around, enclosed=True)} ? {text} : {otherwise}"
        return text

    def _wide(self, got: Get, first: str, site: Site) -> str:
        store, lanes = got.ref.store, got.ref.lanes
        kind = self.vector(store.dtype.cuda, lanes, got.packed)
        whole = f"*(const {kind}*)&{first}"
        outside = narrow(literal(got.outside, store.dtype), store.dtype)[0]
        if got.count is not None:
            self.library.add("vector_within")
            return f"load_first<{kind}, {lanes}>(&{first}, {self.expr(got.count, site.ranges)[0]}, {outside})"
        if not got.within:
            return whole
        assert store.array is not None
        self.library.add("vector_within")
        part = f"load_within<{kind}, {lanes}>(&{first}, {store.name} + {store.array.size}, {outside})"
        return f"({self.any_of(got.edge, site.ranges)} ? {part} : {whole})" if got.edge else part

    # -- statements ---------------------------------------------------------------------------------------------

    def do(self, node: Do) -> str:
        """``target = value;`` or ``target (op)= value;``."""
        site, statement = node.site, node.site.statement
        target = self.operand(node.target, site, node.operands)
        dtype = self.low.store(site.leaf, len(statement.reads)).dtype
        kind = scalar_type(statement.value, self.low.dtypes(site))
        if node.atomic:
            wide = dtype.wide
            return self.update(node, target, self.value_as(site, node.operands, wide), True)
        if statement.update:
            return update_text(statement.update, target, self.value(site, node.operands), dtype, kind)
        text = f"{target} = {self.stored(node)[0]};"
        return f"{self.declare(node.target.store)} {text}" if node.declares and isinstance(node.target, Ref) else text

    def stored(self, node: Do) -> Text:
        """The right-hand side of a plain write, rounded to the target's type, with the fill where `inside` fails."""
        site, statement = node.site, node.site.statement
        dtype = self.low.store(site.leaf, len(statement.reads)).dtype
        fill = narrow(literal(statement.fill, dtype), dtype)
        if node.inside == (NEVER,):
            return fill
        if isinstance(statement.value, Read) and self.low.dtypes(site)[statement.value.slot].name == dtype.name:
            text: Text = self.read(node.operands[statement.value.slot], site, node.operands), PRIMARY
        else:
            text = narrow(self.value(site, node.operands), dtype)
        if not node.inside:
            return text
        guard = self.conditions(node.inside, site.around, enclosed=True)
        return f"{guard} ? {enclose(text, CONDITIONAL + 1)} : {enclose(fill, CONDITIONAL)}", CONDITIONAL

    # -- collectives --------------------------------------------------------------------------------------------

    def value_as(self, site: Site, reads: Sequence[Operand], wide: DType | None = None) -> Text:
        """The statement's value in the target's compute type, or in `wide`."""
        wide = wide or self.low.store(site.leaf, len(site.statement.reads)).dtype.wide
        types = self.low.dtypes(site)
        kind = scalar_type(site.statement.value, types).wide
        if isinstance(read := site.statement.value, Read) and types[read.slot].kind == "int":
            kind = types[read.slot]  # only floats are widened where they are read
        value = self.value(site, reads)
        return value if kind.name == wide.name else cast(value, wide, kind)

    def contribution(self, site: Site, reads: Sequence[Operand], guards: Sequence[Condition]) -> Text:
        """A thread's own value, or the identity where the conditions do not hold."""
        value = self.value_as(site, reads)
        if not guards:
            return value
        dtype = self.low.store(site.leaf, len(site.statement.reads)).dtype
        identity = literal(REDUCTIONS[site.statement.update or "sum"].identity(dtype), dtype.wide)
        test = self.conditions(guards, site.around, enclosed=True)
        return f"{test} ? {enclose(value, CONDITIONAL + 1)} : {enclose(identity, CONDITIONAL)}", CONDITIONAL

    def update(self, node: Do | Collect | Apply, target: str, value: Text, atomic: bool) -> str:
        """The update of a target by a value in its compute type."""
        site = node.site
        dtype, update = self.low.store(site.leaf, len(site.statement.reads)).dtype, site.statement.update or "sum"
        if not atomic:
            return update_text(update, target, value, dtype, dtype.wide)
        self.library.add("atomic")
        stored = narrow(value, dtype) if dtype.kind == "float" else cast(value, dtype, dtype.wide)
        return f"atomic_{ATOMIC.get(update, update)}(&{target}, {stored[0]});"
