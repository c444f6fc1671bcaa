"""The program as written, as plain C in float64: what every run is compared with.  Knows nothing of schedules.

The text compiles as C99 and as C++17.  Floats are ``double``, integers ``long long``, bools ``unsigned char``; index
arithmetic is in ``long long``; integers wrap where the program stores them.  Affine indices are known to be inside
(the front end proves it), data-dependent ones are checked: ``reference_faults`` counts those that were not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isinf, isnan

from ...ir.coding import coded
from ...ir.dtype import DTYPES, DType
from ...ir.expr import Expr, Ranges
from ...ir.operations import OPERATIONS
from ...ir.program import Access, Array, Constraint, Program, Statement
from ...ir.scalar import REDUCTIONS, Call, Cast, IndexValue, Literal, Read, Scalar, operand_type, type_of
from ...ir.tree import Leaf, Loop, Node, ranges
from .c_text import (
    c_name,
    c_type,
    cast,
    conjunction,
    enclosed,
    exact,
    holds,
    index_text,
    literal,
    stored,
    wrapped,
)
from .error_bound import (
    HELPERS,
    SAFETY,
    correct_rounding,
    digits_of,
    gamma,
    largest,
    rounding_error,
    smallest,
    unit,
    updates_per_cell,
    walk,
)
from .helpers import FAULTS, INDEXING
from .slices import Slice

_NAME = re.compile(r"reference_[a-z]+\(")


def reference_text(program: Program, slices: Sequence[Slice] = (), *, bounds: bool = False, random: bool = False) -> str:
    """The C text of ``static void reference(...)``.

    Parameters
    ----------
    program : Program
        The user's program (not a plan's).
    slices : sequence of Slice
        Loops that run only chosen values: each group adds the parameters ``const long long* pick_n, long long count_n``.
    bounds : bool
        Also compute, for every output, a bound of the rounding error that a device may make (a parameter ``NAME_bound``
        after each output; see :mod:`.error_bound`).
    random : bool
        The bounds may take the inputs for random numbers in random order.

    Returns
    -------
    str
        Helpers (all names start with ``reference``) and the function, without includes: it needs ``<math.h>`` and ``<stdlib.h>``.
        Parameters are those of the program in order, inputs ``const``.
    """
    function = _Writer(program, tuple(slices), bounds, random).function()
    text = function
    for helper in reversed((INDEXING + "\n" + HELPERS).split("\n\n")):  # each calls only those above it
        found = _NAME.search(helper)
        if found and found[0] in text:
            text = helper.strip("\n") + "\n\n" + text
    return f"{FAULTS}\n{text}"


def parameters(program: Program, slices: Sequence[Slice] = (), bounds: bool = False) -> list[tuple[str, str]]:
    """Type and name of each parameter of the function, in order."""
    out: list[tuple[str, str]] = []
    for array in program.parameters:
        out.append((f"{'const ' if array.role == 'in' else ''}{c_type(array.dtype)}*", c_name(array.name)))
        if bounds and array.role != "in":
            out.append(("double*", f"{c_name(array.name)}_bound"))
    for n in range(len(slices)):
        out += [("const long long*", f"pick_{n}"), ("long long", f"count_{n}")]
    return out


@dataclass(frozen=True)
class _Writer:
    """Writes the function of one program."""

    program: Program
    slices: tuple[Slice, ...]
    bounds: bool
    random: bool

    @property
    def summed(self) -> list[Array]:
        """Arrays with sums, which need more beside each cell than its bound."""
        names = {s.target.array for s in self.program.statements if s.update == "sum" and self.bounds}
        return [a for a in self.program.arrays if a.name in names and a.dtype.kind == "float"]

    @property
    def beside(self) -> tuple[str, ...]:
        """What that is: of random terms the sum of squares, of others the sum of magnitudes and their fineness; and how much of
        the bound is the rounding of the sum.
        """
        return ("squares", "rounded") if self.random else ("size", "fineness", "rounded")

    def function(self) -> str:
        arguments = ", ".join(f"{kind} {name}" for kind, name in parameters(self.program, self.slices, self.bounds))
        lines = [f"static void reference({arguments or 'void'}) {{"]
        held: list[str] = []
        for array in self.program.temporaries:
            held.append(c_name(array.name))
            lines.append(f"    {self.allocation(array, c_type(array.dtype), held[-1])}")
            if self.bounds:
                held.append(f"{c_name(array.name)}_bound")
                lines.append(f"    {self.allocation(array, 'double', held[-1])}")
        for array in self.summed:
            for beside in self.beside:
                held.append(f"{c_name(array.name)}_{beside}")
                lines.append(f"    double* {held[-1]} = (double*)calloc({max(array.size, 1)}ULL, sizeof(double));")
        release = " ".join(f"free({name});" for name in held)
        if held:
            lines += [f"    if ({' || '.join(f'!{name}' for name in held)}) {{", "        reference_faults = -1;",
                      f"        {release}", "        return;", "    }"]
        lines += self.nodes(self.program.body, (), 1)
        lines += [f"    {release}"] if held else []
        return "\n".join([*lines, "}", ""])

    @staticmethod
    def allocation(array: Array, kind: str, name: str) -> str:
        return f"{kind}* {name} = ({kind}*)malloc(sizeof({kind}) * {max(array.size, 1)}ULL);"

    def nodes(self, nodes: tuple[Node, ...], above: tuple[Loop, ...], depth: int) -> list[str]:
        lines: list[str] = []
        for node in nodes:
            if isinstance(node, Loop):
                lines += self.loop(node, above, depth)
            elif isinstance(node, Leaf):
                lines += self.leaf(node, above, depth)
        return lines

    def loop(self, loop: Loop, above: tuple[Loop, ...], depth: int) -> list[str]:
        pad, name, stop = "    " * depth, c_name(loop.id), loop.start + loop.extent
        group = next((n for n, s in enumerate(self.slices) if loop.id in s.loops), None)
        body = self.nodes(loop.body, (*above, loop), depth + 1)
        if group is None:
            return [f"{pad}for (long long {name} = {loop.start}; {name} < {stop}; ++{name}) {{", *body, f"{pad}}}"]
        hull = self.slices[group]
        head = [f"{pad}for (long long at_{name} = 0; at_{name} < count_{group}; ++at_{name}) {{",
                f"{pad}    const long long {name} = pick_{group}[at_{name}];"]
        if (loop.start, loop.extent) != (hull.start, hull.extent):
            head.append(f"{pad}    if ({name} < {loop.start} || {name} >= {stop}) continue;")
        return [*head, *body, f"{pad}}}"]

    def leaf(self, leaf: Leaf, above: tuple[Loop, ...], depth: int) -> list[str]:
        statement = self.program.statement_of[leaf.statement]
        scope = ranges(above)
        at = dict(leaf.at)
        domain = [Constraint(c.expr.substitute(at, scope), c.equality) for c in statement.domain]
        guards = [c for c in domain if not holds(c, scope)]
        pad = "    " * depth
        comment = f"{pad}/* {statement.name}{f', line {statement.line}' if statement.line else ''} */"
        body = _Leaf(self, statement, at, scope)
        inner = "    " * (depth + bool(guards))
        lines = [f"{inner}{line}" for line in (body.bounded() if self.bounds else body.plain())]
        if not guards:
            return [comment, *lines]
        return [comment, f"{pad}if ({conjunction(guards, scope)}) {{", *lines, f"{pad}}}"]


@dataclass(frozen=True)
class _Leaf:
    """Writes one statement under its loops."""

    writer: _Writer
    statement: Statement
    at: Mapping[str, Expr]
    scope: Ranges

    @property
    def types(self) -> list[DType]:
        return [self.writer.program.array_of[a.array].dtype for a in self.statement.reads]

    @property
    def target(self) -> Array:
        return self.writer.program.array_of[self.statement.target.array]

    def plain(self) -> list[str]:
        value = self.text(self.statement.value)
        cell = f"{c_name(self.target.name)}[{self.offset(self.statement.target)}]"
        if self.statement.update in ("sum", "prod") and self.target.dtype.kind == "float":
            return [f"{cell} {'+' if self.statement.update == 'sum' else '*'}= {value[0]};"]
        text = self.combined(cell, f"({value[0]})") if self.statement.update else value[0]
        return [f"{cell} = {self.stored(text)};"]

    def stored(self, value: str) -> str:
        """The value as the target holds it; from an element of the same type it is moved as it is."""
        read, dtype = self.statement.value, self.target.dtype
        return value if isinstance(read, Read) and self.types[read.slot] == dtype and coded(dtype) else stored(value, dtype)

    def combined(self, cell: str, value: str) -> str:
        spelling, _ = OPERATIONS[REDUCTIONS[self.statement.update or ""].operation].in_c(self.target.dtype.wide)
        return spelling.format(cell, value)

    def offset(self, access: Access) -> str:
        """Row-major offset of an access, data-dependent indices checked."""
        text = ""
        for index, extent in zip(access.index, self.writer.program.array_of[access.array].shape, strict=True):
            if isinstance(index, Expr):
                part = index_text(index.substitute(self.at, self.scope), self.scope)
            else:
                part = f"reference_index((long long)({self.text(index.value)[0]}), {extent})"
            outer = text if text.isidentifier() else f"({text})"
            text = f"{outer} * {extent} + {part}" if text else part
        return text or "0"

    def text(self, value: Scalar) -> tuple[str, int]:
        """C text and precedence of a scalar expression."""
        if isinstance(value, Literal):
            return literal(value.value, value.dtype), 100
        if isinstance(value, IndexValue):
            return f"({index_text(value.expr.substitute(self.at, self.scope), self.scope)})", 100
        if isinstance(value, Read):
            access = self.statement.reads[value.slot]
            return f"{c_name(access.array)}[{self.offset(access)}]", 100
        if isinstance(value, Cast):
            return cast(self.text(value.arg), value.dtype, type_of(value.arg, self.types))
        spelling, precedence = OPERATIONS[value.op].in_c(operand_type(value, self.types))
        arguments = [self.text(a) for a in value.args]
        if OPERATIONS[value.op].result == "float":
            arguments = [cast(t, DTYPES["f64"], type_of(a, self.types)) for t, a in zip(arguments, value.args, strict=True)]
        text = spelling.format(*(enclosed(t, precedence, first=n == 0) for n, t in enumerate(arguments)))
        return wrapped((text, precedence), value.op, type_of(value, self.types))

    def bounded(self) -> list[str]:
        """The statement in small steps ``v0, v1, …``, each with its bound ``e0, e1, …``."""
        lines = ["{"]
        steps = _Steps(self, lines)
        value, error = steps.add(self.statement.value)
        offset = self.offset(self.statement.target)
        target, dtype = c_name(self.target.name), self.target.dtype
        lines += [f"    const long long at = {offset};", f"    double bound = {error};"]
        cell, bound = f"{target}[at]", f"{target}_bound[at]"
        u = max(unit(dtype), unit(dtype.wide), self.statement.rounding) if dtype.kind == "float" else 0.0
        update = self.statement.update
        summed = self.target in self.writer.summed
        if update == "sum" and summed:
            lines += self.summed(value, error, cell, bound, u)
        elif update == "prod":
            lines += [f"    bound = reference_product((double){cell}, {bound}, (double){value}, bound);",
                      f"    {cell} = {stored(f'{cell} * {value}', dtype)};"]
            lines += [f"    bound += {correct_rounding(cell, 'bound', dtype, u)};"] if u else []
        elif update and getattr(self.statement.value, "op", "") in ("argmax_key", "argmin_key"):
            unclear = f"bound + {bound} > 0.0 && fabs((double){cell} - (double){value}) <= bound + {bound}"
            lines += [f"    if ({unclear}) bound = {bound} = INFINITY;",
                      f"    bound = {self.combined(cell, value)} == {value} ? bound : {bound};",
                      f"    {cell} = {stored(self.combined(cell, value), dtype)};"]
        elif update:
            rule = OPERATIONS[REDUCTIONS[update].operation].bound.format(e0="bound", e1=bound)
            lines += [f"    {cell} = {stored(self.combined(cell, value), dtype)};",
                      f"    bound = {rule};", *self.narrowed(cell)]
        else:
            lines += [f"    {cell} = {self.stored(value)};"]
            if summed and self.writer.random:
                lines += [f"    {target}_squares[at] = 0.0;"]
            elif summed:
                lines += [f"    {target}_size[at] = fabs({cell});",
                          f"    {target}_fineness[at] = reference_fineness({cell}, bound);"]
            lines += self.narrowed(cell)
        if summed and update != "sum":
            lines += [f"    {target}_rounded[at] = 0.0;"]
        return [*lines, f"    {bound} = bound;", "}"]

    def summed(self, value: str, error: str, cell: str, bound: str, u: float) -> list[str]:
        """One more term of a sum, and the rounding error of the sum so far for the one before (see `beside`).

        What a cell held before the first term may have been rounded when it was stored; it is a term like the others.
        """
        target, dtype, top = c_name(self.target.name), self.target.dtype, repr(largest(self.target.dtype))
        terms = updates_per_cell(self.statement, self.writer.program) + 1
        add = f"    {cell} = {stored(f'{cell} + {value}', dtype)};"
        rounded = f"{target}_rounded[at]"
        before = f"    bound += {rounded} == INFINITY ? INFINITY : {bound} - {rounded};"
        if self.writer.random:
            squares, w = f"{target}_squares[at]", repr(walk(terms, u))
            return [before, add, f"    {squares} += (double){value} * (double){value};",
                    f"    {rounded} = reference_walk((double){cell}, {squares}, {w}, {top});", f"    bound += {rounded};"]
        size, fineness = f"{target}_size[at]", f"{target}_fineness[at]"
        most = min(digits_of(max(dtype, dtype.wide, key=unit)), 1.0 / (self.statement.rounding or u))
        return [before, f"    {fineness} = fmax({fineness}, fmax(reference_fineness({cell}, {bound}), "
                f"reference_fineness((double){value}, {error})));",
                f"    {size} = fmax({size}, fabs({cell})) + fabs((double){value});", add,
                f"    {rounded} = reference_summed({cell}, {size}, {fineness}, {gamma(terms, u)!r}, {most!r}, {top});",
                f"    bound += {rounded};"]

    def narrowed(self, cell: str) -> list[str]:
        """The rounding of a temporary of a narrower type; that of a parameter is seen to where it is read and compared."""
        dtype, own = self.target.dtype, type_of(self.statement.value, self.types)
        if dtype.kind != "float" or own.kind != "float" or dtype.digits <= own.digits:
            return []
        through = DTYPES["f32"]  # devices round f64 to f32 first
        kinds = [through] if own.name == "f64" and dtype.bytes < through.bytes else []
        kinds += [dtype] if self.target.role == "temporary" else []
        return [f"    bound += {correct_rounding(cell, 'bound', kind, unit(kind))};" for kind in kinds]


@dataclass(frozen=True)
class _Steps:
    """Three-address form of an expression, one line for each value and one for its bound."""

    leaf: _Leaf
    lines: list[str]

    def add(self, value: Scalar, *, chosen: bool = True) -> tuple[str, str]:
        """Append the steps of `value`; returns the names of its value and its bound."""
        types = self.leaf.types
        own = type_of(value, types)
        if isinstance(value, Read):
            text, bound = self.leaf.text(value)[0], self.read_bound(value)
            if not chosen:
                text, bound = (t.replace("reference_index(", "reference_clamped(") for t in (text, bound))
            return self.named(text, own, bound)
        if isinstance(value, Literal):
            rounded = own.kind == "float" and not isinf(value.value) and not isnan(value.value)
            error = abs(float(value.value)) * unit(own.wide) if rounded and not exact(value.value, own.wide) else 0.0
            return self.name(value, own, repr(error))
        if isinstance(value, IndexValue):
            return self.name(value, own, "0.0")
        operands = value.args if isinstance(value, Call) else (value.arg,)
        where = isinstance(value, Call) and value.op == "where"
        done = [self.add(a, chosen=chosen and not (where and n)) for n, a in enumerate(operands)]
        if isinstance(value, Cast):
            text, _ = cast((done[0][0], 100), own, type_of(value.arg, types))
            return self.named(text, own, self.cast_bound(done[0], own, type_of(value.arg, types)))
        row, kind = OPERATIONS[value.op], operand_type(value, types)
        spelling, _ = row.in_c(kind)
        texts = [v if row.result != "float" else f"(double){v}" for v, _ in done]
        result, bound = self.named(wrapped((spelling.format(*texts), 0), value.op, own)[0], own, "0.0")
        fields = {f"v{n}": v for n, (v, _) in enumerate(done)} | {f"e{n}": e for n, (_, e) in enumerate(done)}
        rule = row.bound.format(t=result, tiny=repr(smallest(kind)), **fields)
        units = row.roundings * unit(kind) if own.kind == "float" else 0.0
        self.lines[-1] = f"    const double {bound} = {rule};"
        if not units:
            return result, bound
        if row.correctly_rounded:
            rounding = correct_rounding(result, bound, kind, units)
        else:
            rounding = rounding_error(result, kind, units)
            if row.exact_at:
                rounding = f"({bound} == 0.0 && {row.exact_at.format(**fields)} ? 0.0 : {rounding})"
        return self.named_again(result, f"{bound} + {rounding}")

    def read_bound(self, value: Read) -> str:
        access = self.leaf.statement.reads[value.slot]
        array = self.leaf.writer.program.array_of[access.array]
        if array.role == "in":
            return "0.0"
        offset = self.leaf.offset(access)
        bound = f"{c_name(access.array)}_bound[{offset}]"
        if array.role == "temporary" or array.dtype.kind != "float" or array.dtype == array.dtype.wide:
            return bound
        return f"{bound} + {correct_rounding(f'{c_name(access.array)}[{offset}]', bound, array.dtype, unit(array.dtype))}"

    @staticmethod
    def cast_bound(done: tuple[str, str], to: DType, source: DType) -> str:
        """A cast rounds floats; a cast to an integer may come out on either side of one."""
        value, bound = done
        if to.kind == "float":
            rounds = to.digits > source.digits or source.kind == "int"
            return f"{bound} + {correct_rounding(value, bound, to, unit(to))}" if rounds else bound
        if source.kind != "float":
            return bound
        ends = f"trunc({value} - {SAFETY} * {bound}) == trunc({value} + {SAFETY} * {bound})"
        return f"({bound} == 0.0 || {ends} ? 0.0 : {bound} + 1.0)"

    def name(self, value: Scalar, own: DType, bound: str) -> tuple[str, str]:
        return self.named(self.leaf.text(value)[0], own, bound)

    def named_again(self, value: str, bound: str) -> tuple[str, str]:
        """A second bound for a value, made of its first."""
        return self.named(value, DTYPES["f64"], bound)

    def named(self, text: str, own: DType, bound: str) -> tuple[str, str]:
        n = len(self.lines) // 2
        self.lines.append(f"    const {c_type(own.wide)} v{n} = {text};")
        self.lines.append(f"    const double e{n} = {bound};")
        return f"v{n}", f"e{n}"
