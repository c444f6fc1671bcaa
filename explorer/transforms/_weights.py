"""What is computed from a maximum: exponentials of differences to it, what is linear in these, and the sums of that.

If the maximum moves by ``δ``, every such value is multiplied by ``exp(-δ)``: the values are *weights* here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..ir.expr import Expr, var
from ..ir.finding import Verdict, no
from ..ir.operations import APPROXIMATE
from ..ir.plan import Plan
from ..ir.program import Access, Statement
from ..ir.scalar import Call, Cast, Literal, Read, Scalar, walk
from ..poly.dependence import analyse

EXPONENTIALS = ("exp", APPROXIMATE["exp"])

Where = dict[str, Expr]
"""The dimensions of the maximum's statement that tell the part, and its element, over another statement's dimensions."""


@dataclass(frozen=True)
class Base:
    """What takes the values of a maximum: its own update, or that of partial maxima that it joins.

    Attributes
    ----------
    statement : Statement
    at : Where
        The dimensions of the joining statement over this one's.
    """

    statement: Statement
    at: Where


@dataclass(frozen=True)
class Weights:
    """What hangs on a maximum.

    Attributes
    ----------
    maximum, start : Statement
        The update, and what starts it.
    base : Base
        The values that it is the maximum of.
    shifted : dict of str to int
        Statements whose value is ``exp(a - m)``, perhaps times others; the slot that reads ``m``.
    where : dict of str to Where
        For each statement that makes or sums weights: the maximum's dimensions over its own.
    sums : tuple of Statement
        The updates that sum weights.
    starts : dict of str to str
        The array of a sum, and the statement that starts it with zero.
    """

    maximum: Statement
    start: Statement
    base: Base
    shifted: dict[str, int]
    where: dict[str, Where]
    sums: tuple[Statement, ...]
    starts: dict[str, str]


def base_of(plan: Plan, maximum: Statement) -> Base:
    """The statement that takes the values of a maximum, behind partial maxima that `rfactor` made."""
    found = Base(maximum, {d: var(d) for d in maximum.dims})
    while (s := found.statement).origin == "combine" and s.value == Read(0) and s.reads[0].affine:
        makers = [x for x in plan.program.statements if x.target.array == s.reads[0].array and x.update == "max"]
        places = axes(s.reads[0])
        if len(makers) != 1 or set(places) != set(s.dims):
            break
        index = makers[0].target.index
        here = {d: e - offset for d, (axis, offset) in places.items() if isinstance(e := index[axis], Expr)}
        found = Base(makers[0], {d: e.substitute(here) for d, e in found.at.items()})
    return found


def weights_of(plan: Plan, maximum: Statement, base: Base, shift_of: Mapping[str, tuple[Scalar, int]]) -> Weights | Verdict:
    """Everything that hangs on a maximum, or why that is not only weights and their sums.

    Parameters
    ----------
    plan : Plan
    maximum : Statement
        The update that makes it.
    base : Base
        What takes its values.
    shift_of : mapping
        For each statement that reads it as ``exp(a - m)``: ``a``, and the slot.
    """
    program, peak = plan.program, maximum.target.array
    start = _started(plan, maximum)
    if isinstance(start, Verdict):
        return start
    where: dict[str, Where] = {}
    made: dict[str, Statement] = {}
    sums: list[Statement] = []
    for s in program.statements:
        if s in (maximum, start):
            continue
        read = [slot for slot, r in enumerate(s.reads) if r.array == peak]
        heavy = [slot for slot, r in enumerate(s.reads) if r.array in made]
        if not read and not heavy:
            continue
        if read:
            if s.name not in shift_of or heavy or len(read) > 1:
                return no(f"{s.name} uses {peak} otherwise than in exp(a - {peak})", f"{s.text or s.name}",
                          "what runs along is the difference to the maximum; the maximum itself is known at the end alone")
            names = {d: var(e) for d, e in zip(base.statement.dims, s.dims, strict=False)}
            where[s.name] = {d: e.substitute(names) for d, e in base.at.items()}
        else:
            found = _linear(s, heavy, made, where)
            if isinstance(found, Verdict):
                return found
            where[s.name] = found
        if s.update == "sum":
            sums.append(s)
        elif s.update or not _owns(plan, s):
            return no(f"{s.name} makes weights that are neither summed nor elements of a temporary of their own",
                      f"{s.text or s.name}: their scale is the one of the maximum so far",
                      f"a temporary in place of {s.target.array}, and the result from that")
        else:
            made[s.target.array] = s
    if not sums:
        return no(f"nothing is summed against {peak}", hint="rfactor for the maximum alone")
    starts: dict[str, str] = {}
    for s in sums:
        begun = _started(plan, s)
        if isinstance(begun, Verdict):
            return begun
        starts[s.target.array] = begun.name
    late = _read_early(plan, {peak, *made, *starts})
    return late if late is not None else Weights(maximum, start, base, {n: shift_of[n][1] for n in where if n in shift_of},
                                                 where, tuple(sums), starts)


def _started(plan: Plan, update: Statement) -> Statement | Verdict:
    """The statement that starts what an update goes on with, with its identity."""
    name = update.target.array
    others = [s for s in plan.program.statements if s.target.array == name and s != update]
    if plan.array_of[name].role != "temporary":
        return no(f"{name} is an array of the program's caller", hint=f"accumulate('{name}') first")
    if len(others) != 1 or others[0].update or not isinstance(value := others[0].value, Literal):
        return no(f"{name} is not started by one statement with a constant and updated by {update.name} alone")
    wanted = float("-inf") if update.update == "max" else 0
    if value.value != wanted:
        return no(f"{name} starts with {value.value}, not with {wanted}", f"it would be scaled with what {update.name} adds")
    return others[0]


def _owns(plan: Plan, s: Statement) -> bool:
    """Whether a statement alone writes a temporary, one element for each instance."""
    alone = all(x.target.array != s.target.array or x is s for x in plan.program.statements)
    return alone and plan.array_of[s.target.array].role == "temporary" and set(axes(s.target)) == set(s.dims)


def axes(access: Access) -> dict[str, tuple[int, int]]:
    """For each dimension that is an index by itself: the axis, and what is added to it."""
    out: dict[str, tuple[int, int]] = {}
    for axis, e in enumerate(access.index):
        if isinstance(e, Expr) and len(e.terms) == 1 and isinstance(name := e.terms[0][0], str) and e - e.const == var(name):
            out.setdefault(name, (axis, e.const))
    return out


def _linear(s: Statement, heavy: list[int], made: Mapping[str, Statement], where: Mapping[str, Where]) -> Where | Verdict:
    """Where a statement's weight comes from, if its value is linear in one."""
    refused = no(f"{s.name} is no multiple of {s.reads[heavy[0]].array}", f"{s.text or s.name}: it would not be scaled with it")
    node = s.value
    while not isinstance(node, Read):
        inside = [a for a in getattr(node, "args", ()) if any(isinstance(x, Read) and x.slot in heavy for x in walk(a))]
        if isinstance(node, Cast) and node.dtype.kind == "float":
            node = node.arg
        elif isinstance(node, Call) and len(inside) == 1 and (node.op in ("mul", "neg") or (
                node.op == "div" and node.args[0] is inside[0])):
            node = inside[0]
        else:
            return refused
    if len(heavy) > 1 or node.slot != heavy[0] or not s.reads[node.slot].affine:
        return refused
    read, writer = s.reads[node.slot], made[s.reads[node.slot].array]
    at: dict[str, Expr] = {}
    for d, (axis, offset) in axes(writer.target).items():
        e = read.index[axis]
        assert isinstance(e, Expr)
        at[d] = e - offset
    return {d: e.substitute(at) for d, e in where[writer.name].items()}


def _read_early(plan: Plan, arrays: set[str]) -> Verdict | None:
    """A refusal where something reads or starts an element between its updates."""
    apart = "split the two statements into loops of their own in the program"
    for dep in analyse(plan.program).ordered:
        if dep.array in arrays and dep.kind == "anti":
            return no(f"{dep.source} reads {dep.array} before {dep.sink} is through with it",
                      "its value there is a part of the result", apart)
        if dep.array in arrays and dep.kind == "output" and plan.statement_of[dep.source].update:
            return no(f"{dep.sink} starts {dep.array} anew behind {dep.source}", "each element is summed once", apart)
    return None
