"""The user's program with the roundings of parts that a schedule computes before and keeps in a narrower type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce

from ..ir.dtype import DType
from ..ir.program import Access, Program, Statement
from ..ir.scalar import Call, Cast, Read, Scalar, children, type_of, walk
from ._value_parts import ORIGIN, factors_of, holds, spelled
from .inline import substituted


def stored_narrower(made: Statement, now: Statement, source: Program, program: Program, copied: Mapping[str, str]) -> Statement:
    """A statement of the source that rounds where the one that a schedule has made of it does, by a part that is or was narrower.

    Parameters
    ----------
    made, now : Statement
        Of the source, and of the schedule.
    source, program : Program
        The user's, and the schedule's.
    copied : mapping of str to str
        Of arrays that are copies, what they are copies of.

    Notes
    -----
    With its parts written out again, the schedule's statement is that of the source, in which the temporaries are inlined that
    the schedule has inlined, but for the order of factors and for the roundings: it is taken then.  Where other moves have
    changed it, too, its value is followed beside that of the source: a product's factors by the arrays that they are made of.
    """
    writers = {s.target.array: s for s in program.statements if s.origin == ORIGIN}
    narrow = {r: kind for r in now.reads if r.array in writers and (kind := _narrowest(r.array, writers, program))}
    own, full = _inlined(made, source, program), written_out(now, program)
    if not narrow and _casts(full, program) == _casts(own, source):
        return made
    if spelled(full.value, full.reads) == spelled(own.value, own.reads):
        return replace(made, value=full.value, reads=full.reads)
    return replace(own, value=_Rounding(own, now, narrow, writers, copied, program).of(own.value, now.value))


def is_rounded(statement: Statement, program: Program) -> bool:
    """Whether a statement converts to a type that does not hold what is converted."""
    return bool(_casts(statement, program))


def _casts(s: Statement, program: Program) -> list[str]:
    """The types that do not hold what is converted to them."""
    types = [program.array_of[r.array].dtype for r in s.reads]
    return sorted(n.dtype.name for n in walk(s.value) if isinstance(n, Cast) and not holds(n.dtype, type_of(n.arg, types)))


def _inlined(s: Statement, source: Program, program: Program) -> Statement:
    """A statement of the source with the temporaries in their places that a schedule computes nowhere."""
    kept, names = {x.target.array for x in program.statements}, {a.name for a in source.temporaries}
    writers: dict[str, list[Statement]] = {}
    for x in source.statements:
        writers.setdefault(x.target.array, []).append(x)
    gone = {name for name in names - kept if len(writers.get(name, ())) == 1}
    while part := next((r.array for r in s.reads if r.array in gone), ""):
        s = substituted(s, writers[part][0], part, source).statement
    return s


def written_out(statement: Statement, program: Program) -> Statement:
    """A statement with the parts that others compute for it in their places."""
    writers = {s.target.array: s for s in program.statements if s.origin == ORIGIN}
    while part := next((r.array for r in statement.reads if r.array in writers), ""):
        statement = substituted(statement, writers[part], part, program).statement
    return statement


def _narrowest(array: str, writers: Mapping[str, Statement], program: Program) -> DType | None:
    """The type to which a part is rounded, or one that it is made of; None where none is."""
    own, kind = writers[array], program.array_of[array].dtype
    if not holds(kind, _content(array, writers, program)):
        return kind
    return next((found for r in own.reads if r.array in writers and (found := _narrowest(r.array, writers, program))), None)


def _content(array: str, writers: Mapping[str, Statement], program: Program) -> DType:
    """The type of the values that a part is given; of a part that is a copy of one, of the values that it has."""
    own = writers[array]
    types = [program.array_of[r.array].dtype for r in own.reads]
    if own.value != Read(0):
        return type_of(own.value, types)
    source = own.reads[0].array
    if source not in writers:
        return types[0]
    content = _content(source, writers, program)
    return content if holds(types[0], content) else types[0]


@dataclass(frozen=True)
class _Rounding:
    """How a statement of the source is rounded as the schedule's statement, whose reads of narrower parts are `narrow`."""

    source: Statement
    now: Statement
    narrow: Mapping[Access, DType]
    writers: Mapping[str, Statement]
    copied: Mapping[str, str]
    program: Program

    def of(self, node: Scalar, now: Scalar) -> Scalar:
        """A value of the source, where the schedule has another one: rounded where that is."""
        kinds = list(self._kinds(now))
        if not kinds:
            return node
        kind = self._kind(now)
        if isinstance(now, Cast) and kind and _arrays(node, self.source, {}) == self._made_of(now):
            if isinstance(node, Cast) and node.dtype == kind:
                return replace(node, arg=self.of(node.arg, now.arg))
            return Cast(kind, self.of(node, now.arg))
        if isinstance(node, Call) and node.op == "mul":
            return self._of_factors(factors_of(node), factors_of(now))
        if kind:
            return Cast(kind, node)
        own, other = children(node), children(now)
        if type(node) is not type(now) or getattr(node, "op", "") != getattr(now, "op", "") or len(own) != len(other):
            return node
        made = tuple(map(self.of, own, other))
        if isinstance(node, Cast):
            return replace(node, arg=made[0])
        return replace(node, args=made) if isinstance(node, Call) else node

    def _kind(self, node: Scalar) -> DType | None:
        """The type to which a value is rounded, as a part or by a conversion."""
        if isinstance(node, Read):
            return self.narrow.get(self.now.reads[node.slot])
        types = [self.program.array_of[r.array].dtype for r in self.now.reads]
        return node.dtype if isinstance(node, Cast) and not holds(node.dtype, type_of(node.arg, types)) else None

    def _kinds(self, node: Scalar) -> Iterator[DType]:
        """All types to which a value is rounded, and what it is computed from."""
        return (kind for n in walk(node) if (kind := self._kind(n)))

    def _of_factors(self, factors: list[Scalar], now: list[Scalar]) -> Scalar:
        """A product with the factors rounded that stand for some of the schedule's, by the arrays that they are made of."""
        s, left = self.source, list[Scalar]()
        parts = [f for f in now if any(self._kinds(f))]
        kept = [_arrays(f, self.now, self.copied) for f in now if f not in parts]
        for f in factors:
            mine = _arrays(f, s, {})
            if mine in kept:
                kept.remove(mine)
            else:
                left.append(f)
        made_of, groups = [self._made_of(f) for f in parts], [list[Scalar]() for _ in parts]
        for f in left:
            best = max(range(len(parts)), key=lambda n, f=f: (len(made_of[n] & _arrays(f, s, {})), -len(groups[n])))
            groups[best].append(f)
        for part, group in zip(parts, groups, strict=True):
            if group:
                whole = reduce(lambda a, b: Call("mul", (a, b)), group)
                rounded = self.of(whole, part) if len(group) == 1 else Cast(next(self._kinds(part)), whole)
                factors = [rounded if f is group[0] else f for f in factors if f is group[0] or all(f is not g for g in group)]
        return reduce(lambda a, b: Call("mul", (a, b)), factors)

    def _made_of(self, node: Scalar) -> frozenset[str]:
        """The arrays of the source that a value is computed from."""
        names = {self.now.reads[n.slot].array for n in walk(node) if isinstance(n, Read)}
        return frozenset[str]().union(*(
            _made_of(name, self.writers) if name in self.writers else {self.copied.get(name, name)} for name in names))


def _arrays(node: Scalar, s: Statement, copied: Mapping[str, str]) -> frozenset[str]:
    names = (s.reads[n.slot].array for n in walk(node) if isinstance(n, Read))
    return frozenset(copied.get(name, name) for name in names)


def _made_of(name: str, writers: Mapping[str, Statement]) -> frozenset[str]:
    """The arrays that a part is computed from, itself or by other parts."""
    reads = frozenset(r.array for r in writers[name].reads)
    return reads.union(*(_made_of(r, writers) for r in reads if r in writers and r != name))
