"""The user's program with the roundings of parts that a schedule computes before and keeps in a narrower type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce

from ..ir.dtype import DType
from ..ir.expr import Expr, var
from ..ir.program import Access, Program, Statement
from ..ir.scalar import Call, Cast, Read, Scalar, type_of, walk
from ._value_parts import ORIGIN, Told, factors_of, in_slots, renumbered, without_part

FIRST = 1 << 20
"""Slots from here on are those of a part, until it is put into a statement."""


def stored_narrower(source: Statement, now: Statement, program: Program, copied: Mapping[str, str]) -> Statement:
    """A statement of the source that rounds where the one that a schedule has made of it reads a narrower temporary.

    Parameters
    ----------
    source, now : Statement
    program : Program
        Of the schedule.
    copied : mapping of str to str
        Of arrays that are copies, what they are copies of.

    Notes
    -----
    The part is looked for as it is spelled.  Where other moves have changed it, too, it is the factors that the ones left in the
    schedule's statement do not stand for.
    """
    writers = {s.target.array: s for s in program.statements if s.origin == ORIGIN}
    made, rest = source, list[Access]()
    for read in now.reads:
        own, kind = writers.get(read.array), program.array_of[read.array].dtype
        if own is None or type_of(own.value, [program.array_of[r.array].dtype for r in own.reads]) == kind:
            continue
        changed = _as_spelled(made, own, read, kind)
        rest += [read] if changed is made else []
        made = changed
    return _by_factors(made, now, rest, writers, program, copied) if rest else made


def _as_spelled(s: Statement, own: Statement, read: Access, kind: DType) -> Statement:
    """The statement with a part, which another one computes, in a type: multiplied first and rounded."""
    at = {d: e for d, e in zip(own.dims, read.index, strict=True) if isinstance(e, Expr)}
    told = Told(own, tuple(map(var, own.dims)), own.dims)
    part = [told.spelled(f) for f in factors_of(own.value)]
    whole = Cast(kind, renumbered(own.value, {n: FIRST + n for n in range(len(own.reads))}, at))
    value = without_part(s.value, Told(s, read.index, own.dims), part, whole)
    if value == s.value:
        return s
    slots = {n: n for n in range(len(s.reads))} | {FIRST + n: len(s.reads) + n for n in range(len(own.reads))}
    return replace(s, value=renumbered(value, slots, {}), reads=(*s.reads, *(in_slots(r, {}, at) for r in own.reads)))


def _by_factors(s: Statement, now: Statement, narrow: list[Access], writers: Mapping[str, Statement], program: Program,
                copied: Mapping[str, str]) -> Statement:
    """The statement with the factors rounded that stand for some reads, by the arrays that they are made of."""
    factors, left = factors_of(s.value), list[Scalar]()
    kept = [_arrays(f, now, copied) for f in factors_of(now.value)
            if not any(isinstance(n, Read) and now.reads[n.slot] in narrow for n in walk(f))]
    for f in factors:
        mine = _arrays(f, s, {})
        if mine in kept:
            kept.remove(mine)
        else:
            left.append(f)
    made_of = {r.array: _made_of(r.array, writers) for r in narrow}
    groups: dict[str, list[Scalar]] = {}
    for f in left:
        best = max(made_of, key=lambda name, f=f: len(made_of[name] & _arrays(f, s, {})))
        groups.setdefault(best, []).append(f)
    for name, group in groups.items():
        whole = Cast(program.array_of[name].dtype, reduce(lambda a, b: Call("mul", (a, b)), group))
        factors = [whole if f is group[0] else f for f in factors if f is group[0] or all(f is not g for g in group)]
    return replace(s, value=reduce(lambda a, b: Call("mul", (a, b)), factors))


def _arrays(node: Scalar, s: Statement, copied: Mapping[str, str]) -> frozenset[str]:
    names = (s.reads[n.slot].array for n in walk(node) if isinstance(n, Read))
    return frozenset(copied.get(name, name) for name in names)


def _made_of(name: str, writers: Mapping[str, Statement]) -> frozenset[str]:
    """The arrays that a part is computed from, itself or by other parts."""
    reads = frozenset(r.array for r in writers[name].reads)
    return reads.union(*(_made_of(r, writers) for r in reads if r in writers and r != name))
