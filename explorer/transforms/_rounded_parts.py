"""The user's program with the roundings of parts that a schedule computes before and keeps in a narrower type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

from ..ir.dtype import DType
from ..ir.program import Access, Program, Statement
from ..ir.scalar import Call, Cast, Read, Scalar, children, type_of, walk
from ._value_parts import ORIGIN, factors_of, holds, spelled
from .inline import substituted


def stored_narrower(source: Statement, now: Statement, program: Program, copied: Mapping[str, str]) -> Statement:
    """A statement of the source that rounds where the one that a schedule has made of it reads what was computed narrower.

    Parameters
    ----------
    source, now : Statement
    program : Program
        Of the schedule.
    copied : mapping of str to str
        Of arrays that are copies, what they are copies of.

    Notes
    -----
    With its parts written out again, the schedule's statement is that of the source, but for the order of factors and for the
    roundings: it is taken then.  Where other moves have changed it, too, what is rounded are the factors that the ones left in
    the schedule's statement do not stand for.
    """
    writers = {s.target.array: s for s in program.statements if s.origin == ORIGIN}
    narrow = {r: kind for r in now.reads if r.array in writers and (kind := _narrowest(r.array, writers, program))}
    if not narrow:
        return source
    full = written_out(now, program)
    if spelled(full.value, full.reads) == spelled(source.value, source.reads):
        return replace(source, value=full.value, reads=full.reads)
    return replace(source, value=_Rounding(source, now, narrow, writers, copied).of(source.value, now.value))


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

    def of(self, node: Scalar, now: Scalar) -> Scalar:
        """A value of the source, where the schedule has another one: rounded where that reads a part which was rounded."""
        if not self._is_narrow(now):
            return node
        if isinstance(node, Call) and node.op == "mul":
            return self._of_factors(factors_of(node), factors_of(now))
        if isinstance(now, Read):
            return Cast(self.narrow[self.now.reads[now.slot]], node)
        own, other = children(node), children(now)
        if type(node) is not type(now) or getattr(node, "op", "") != getattr(now, "op", "") or len(own) != len(other):
            return node
        made = tuple(map(self.of, own, other))
        if isinstance(node, Cast):
            return replace(node, arg=made[0])
        return replace(node, args=made) if isinstance(node, Call) else node

    def _is_narrow(self, node: Scalar) -> bool:
        return any(isinstance(n, Read) and self.now.reads[n.slot] in self.narrow for n in walk(node))

    def _of_factors(self, factors: list[Scalar], now: list[Scalar]) -> Scalar:
        """A product with the factors rounded that stand for some reads, by the arrays that they are made of."""
        s, left = self.source, list[Scalar]()
        kept = [_arrays(f, self.now, self.copied) for f in now if not self._is_narrow(f)]
        for f in factors:
            mine = _arrays(f, s, {})
            if mine in kept:
                kept.remove(mine)
            else:
                left.append(f)
        kinds = {r.array: kind for r, kind in self.narrow.items()}
        made_of = {name: _made_of(name, self.writers) for name in kinds}
        groups: dict[str, list[Scalar]] = {}
        for f in left:
            best = max(made_of, key=lambda name, f=f: len(made_of[name] & _arrays(f, s, {})))
            groups.setdefault(best, []).append(f)
        for name, group in groups.items():
            whole = Cast(kinds[name], reduce(lambda a, b: Call("mul", (a, b)), group))
            factors = [whole if f is group[0] else f for f in factors if f is group[0] or all(f is not g for g in group)]
        return reduce(lambda a, b: Call("mul", (a, b)), factors)


def _arrays(node: Scalar, s: Statement, copied: Mapping[str, str]) -> frozenset[str]:
    names = (s.reads[n.slot].array for n in walk(node) if isinstance(n, Read))
    return frozenset(copied.get(name, name) for name in names)


def _made_of(name: str, writers: Mapping[str, Statement]) -> frozenset[str]:
    """The arrays that a part is computed from, itself or by other parts."""
    reads = frozenset(r.array for r in writers[name].reads)
    return reads.union(*(_made_of(r, writers) for r in reads if r in writers and r != name))
