"""Accumulate an output in a temporary, and write it out once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..ir.expr import Expr, var
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.program import Constraint, Statement
from ..ir.rounding import METHODS
from ..ir.tree import Leaf
from ..poly.relations import same_elements, starts_all
from ._domain import dim_ranges, project, renamed
from ._reduction import Updates, element_dims, side, updates
from ._uses import array_verdict, uses
from .base import Transform
from .contract import Contract
from .rfactor import Factored, factor_verdict, factored


@dataclass(frozen=True)
class Accumulate(Transform):
    """Let a reduction into an output array run in a temporary of the same shape (a write cache).

    The updates, and the statement that starts the elements if it stands in the same loops, use the temporary; a last
    statement writes it out, right outside of the loops that carry the reduction (or in the body of `at`).  Where
    nothing starts the elements there, the temporary starts as the operation's identity and the last statement
    updates the output with it.  A narrow output is accumulated in the type that expressions widen to.  The temporary
    then takes any storage: ``contract('C_acc')``.

    With `method` ``"kahan"`` or ``"pairwise"`` the terms of a floating-point sum are added with their rounding errors beside
    or in pairs of pairs, in registers: the error no longer grows with the number of terms, or as its logarithm
    (the page on reductions has the bounds).  A sum that is in registers already is only added in another way.

    Before::

        for i in 0…M
            for j in 0…N
                C[i, j] = 0
                for k in 0…K
                    C[i, j] += A[i, k] * B[k, j]

    After ``accumulate('C')``::

        for i in 0…M
            for j in 0…N
                C_acc[i, j] = 0
                for k in 0…K
                    C_acc[i, j] += A[i, k] * B[k, j]
                C[i, j] = C_acc[i, j]
    """

    name = "accumulate"
    group = "Reductions"
    aliases = ("cache_write", "stage_writes", "write_cache", "accumulator")

    array: str = field(metadata={"kind": "array", "help": "the output that is accumulated"})
    at: str = field(default="", metadata={"kind": "loop",
                                          "help": "loop in whose body it is written out (default: the innermost possible)"})

    method: str = field(default="plain", metadata={"kind": "choice", "choices": METHODS,
                                                   "help": "how a sum's terms are added: in order, in pairs, compensated"})

    def check(self, plan: Plan) -> Verdict:
        if self.method not in METHODS:
            return no(f"there is no way {self.method!r} to add", hint=f"one of {', '.join(METHODS)}")
        if self.method != "plain" and not (verdict := self._summable(plan)):
            return verdict
        if self.method != "plain" and (own := self._in_registers(plan)) is not None:
            return no(f"{own.id} already adds with method={self.method!r}") if own.mechanism == self.method else YES
        u = self._updates(plan)
        if isinstance(u, Verdict):
            return u
        verdict = factor_verdict(u)
        if not verdict or self.method == "plain":
            return verdict
        made = self._made(u)
        return Contract(made.array, "register").check(made.plan)

    def rewrite(self, plan: Plan) -> Plan:
        own = self._in_registers(plan) if self.method != "plain" else None
        if own is not None:
            return self._added(plan, own.id)
        u = self._updates(plan)
        assert isinstance(u, Updates)
        made = self._made(u)
        if self.method == "plain":
            return made.plan
        return self._added(Contract(made.array, "register").rewrite(made.plan), u.leaf.id)

    def _made(self, u: Updates) -> Factored:
        """The temporary; one for registers starts in the launch of its updates."""
        mine, elements = (found, ()) if (found := starts(u)) else started(u)
        here = u.plan.kernel_of(u.leaf.id)
        near = all(k is here for leaf, _, k in u.plan.leaves if leaf.statement in mine)
        if not near and self.method != "plain":
            mine, elements = (), ()
        return factored(u, array=f"{self.array}_acc", starts=mine, elements=elements)

    def _added(self, plan: Plan, leaf: str) -> Plan:
        return plan.map_leaves(lambda n: replace(n, mechanism=self.method) if n.id == leaf else n)

    def _summable(self, plan: Plan) -> Verdict:
        """Whether the updates are additions of floating-point numbers."""
        for leaf, _, _ in plan.leaves:
            s = plan.statement_of[leaf.statement]
            whole = plan.array_of[s.target.array].dtype.kind != "float"
            if s.target.array == self.array and s.update and (s.update != "sum" or whole):
                return no(f"{self.method} is a way to add floating-point numbers",
                          f"{leaf.id} is no such sum: nothing is rounded there, or not by additions", "leave method out")
        return YES

    def _in_registers(self, plan: Plan) -> Leaf | None:
        """The leaf that adds up the array in a register, if it has one."""
        for leaf, _, _ in plan.leaves:
            s = plan.statement_of[leaf.statement]
            view = leaf.view(len(s.reads))
            if s.target.array == self.array and s.update and view and plan.buffer_of[view.buffer].space == "register":
                return leaf
        return None

    def _updates(self, plan: Plan) -> Updates | Verdict:
        if (refusal := array_verdict(plan, self.array)) is not None:
            return refusal
        if any(x.view for x in uses(plan, self.array)):
            return no(f"{self.array} already has storage of its own", hint=f"contract('{self.array}', 'global') first")
        found = [x for x in uses(plan, self.array) if x.writes and x.statement.update]
        if not found:
            updated = dict.fromkeys(s.target.array for s in plan.program.statements if s.update)
            return no(f"no reduction updates {self.array}", hint=f"one of {', '.join(updated)}" if updated else "")
        names = list(dict.fromkeys(x.statement.name for x in found))
        if len(names) > 1:
            return no(f"several statements update {self.array}: {', '.join(names)}",
                      "each would need the others' partial results")
        u = updates(plan, found[0].leaf, found[0].above)
        if not u.carrying:
            return no(f"each element of {self.array} is updated once", "there is nothing to accumulate")
        if not self.at:
            return u
        depth = next((n for n, x in enumerate(u.above) if x.id == self.at), None)
        if depth is None or depth >= u.outside():
            listed = ", ".join(x.id for x in u.above[: u.outside()])
            return no(f"{self.array} cannot be written out in {self.at}",
                      f"{self.at} carries the reduction, or lies inside of a loop that does"
                      if depth is not None else f"it is not a loop around {u.leaf.id}",
                      f"one of {listed}" if listed else "leave `at` out")
        return replace(u, within=depth + 1)

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Accumulate]:
        for name in _updated_at(plan, node_id):
            if cls(name).check(plan):
                yield cls(name)

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        if _updated_at(plan, node_id):
            return YES
        outputs = [leaf.id for leaf, _, _ in plan.leaves if _updated_at(plan, leaf.id)]
        sums = [u.target.array for leaf, _, _ in plan.leaves if (u := plan.statement_of[leaf.statement]).update]
        hint = f"select {' or '.join(outputs)}" if outputs else f"contract('{sums[0]}', 'register')" if sums else ""
        return no(f"{node_id} updates no output", "accumulate takes y += … into an array that the program gives back"
                  + ("" if outputs or not sums else f"; {sums[0]} is a temporary already"), hint)


def starts(u: Updates) -> tuple[str, ...]:
    """The statement that starts exactly the updated elements in the loops around the accumulation, if there is one."""
    s, init = u.statement, _start(u)
    if init is None:
        return ()
    mine = init.origin == "init"  # rfactor made it, for all parts of these elements
    if not (mine or _image(s) is None or _image(init) == _image(s)):
        return ()
    return (init.name,) if same_elements(init, _updated(s), u.plan.array_of[s.target.array]) else ()


def started(u: Updates) -> tuple[tuple[str, ...], tuple[Constraint, ...]]:
    """The statement that starts the partial results of an earlier rfactor, those without updates, too; and which there are.

    Slices of a convolution's depth have none where the filter lies beyond the image.  What started them is written out again.
    """
    s, init, finish = u.statement, _start(u), side(u, "c")
    if init is None or init.origin != "init" or isinstance(finish, Verdict):
        return (), ()
    names: dict[str, Expr] = {}
    for mine, new in zip(init.target.index, finish.index, strict=True):
        if not (isinstance(mine, Expr) and [c for _, c in mine.terms] == [1] and isinstance(mine.terms[0][0], str)):
            return (), ()
        names[mine.terms[0][0]] = new - mine.const
    elements = renamed(init.domain, names)
    whole = replace(init, dims=finish.dims, domain=elements)
    known = dim_ranges(whole)
    if set(names) != set(init.dims) or known != dim_ranges(replace(whole, domain=finish.domain)):
        return (), ()
    loops = {x.id: x.range for x in (*u.above, *finish.loops)}  # they may be those of the updates, and no more
    for loop, e in finish.when:
        (low, high), (first, last) = e.interval(known), loops[loop]
        if low < first or high > last:
            return (), ()
    return ((init.name,), elements) if starts_all(init, _updated(s), u.plan.array_of[s.target.array]) else ((), ())


def _start(u: Updates) -> Statement | None:
    """The last statement before the updates that uses their array, if it starts elements in the loops around."""
    plan, s = u.plan, u.statement
    stay = [x.id for x in u.above[: u.outside()]]
    order = [x.name for x in plan.program.statements]
    users = [x for x in plan.program.statements if x.name != s.name and any(a.array == s.target.array for a in x.accesses)]
    before = [x for x in users if order.index(x.name) < order.index(s.name)]
    if not before:
        return None
    init = before[-1]
    inside = [above for leaf, above, _ in plan.leaves if leaf.statement == init.name]
    near = len(inside) == 1 and [x.id for x in inside[0][: len(stay)]] == stay
    return init if near and init.update is None and all(a.array != s.target.array for a in init.reads) else None


def _updated(s: Statement) -> Statement:
    """A statement with only the dimensions that the element determines, where these are all that name it."""
    free, named = element_dims(s), {d for e in s.target.index if isinstance(e, Expr) for d in e.variables()}
    return replace(s, domain=project(s.domain, [d for d in s.dims if d not in free])) if named <= set(free) else s


def _image(s: Statement) -> frozenset[Expr] | None:
    """The elements that a statement writes, as constraints on the array's axes; None where they are not a projection."""
    names: dict[str, Expr] = {}
    fixed: list[Expr] = []
    for axis, e in enumerate(s.target.index):
        assert isinstance(e, Expr)
        if e.is_constant:
            fixed.append(var(f"axis {axis}") - e)
        elif len(e.terms) == 1 and isinstance(e.terms[0][0], str) and e.terms[0][1] == 1 and e.terms[0][0] not in names:
            names[e.terms[0][0]] = var(f"axis {axis}") - e.const
        else:
            return None
    seen = renamed(project(s.domain, [d for d in s.dims if d not in element_dims(s)]), names)
    return frozenset([*(c.expr for c in seen), *fixed])


def _updated_at(plan: Plan, node_id: str) -> list[str]:
    """Outputs that the leaf at a node updates (or the output of that name)."""
    updated = {plan.statement_of[leaf.statement].target.array: leaf.id for leaf, _, _ in plan.leaves
               if plan.statement_of[leaf.statement].update}
    return [a.name for a in plan.program.parameters if a.name in updated and node_id in (a.name, updated[a.name])]
