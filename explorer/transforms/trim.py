"""End a loop, in each block, with the last iteration that does anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..ir.expr import Expr, var
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.program import Constraint, Statement
from ..ir.tree import Leaf, Loop, leaves
from ..poly.early_end import end_of
from ..poly.ends import bounds_below, last_iteration, still_read
from ._domain import dim_ranges, plain
from .base import Transform, get_loop


@dataclass(frozen=True)
class Trim(Transform):
    """End a sequential loop, in each block, with the last iteration in which a statement below it does anything.

    The end is the largest value of the loop that the statements' domains allow, as an expression of the loops around it that all
    threads of a block share: barriers and waits below it stay uniform.  All instances still run;
    copies and partial results that only the iterations left out would use are not made.  Only last iterations are left
    out, so a pipeline's slots, groups and phases stay those of the iterations that run: `trim` before `pipeline` or `specialise`,
    or after them.  `stage` makes copies that end with the loop; where another move adds what runs in all iterations, all of them
    run, until the loop is trimmed again.

    Before::

        for i in 0…16  block.x
            for j in 0…16
                k_s[…] = k[32*j + …]
                for …
                    S(32*i + …, 32*j + …)    # where 32*j + … <= 32*i + …

    After ``trim('j')``::

        for i in 0…16  block.x
            for j in 0…16  trimmed           # emitted as j = 0 … min(16, i + 1)
                k_s[…] = k[32*j + …]         # where j <= i
                for …
                    S(32*i + …, 32*j + …)    # where 32*j + … <= 32*i + …
    """

    name = "trim"
    group = "Loops"
    aliases = ("truncate", "skip_empty_tiles", "causal_skip", "block_sparse")
    elsewhere = {"Halide": "specialize, bound", "TVM": "loop_partition", "isl": "ast_build with exact bounds"}

    loop: str = field(metadata={"kind": "loop", "help": "the loop to end early"})

    def check(self, plan: Plan) -> Verdict:
        loop = get_loop(plan, self.loop)
        if isinstance(loop, Verdict):
            return loop
        if loop.role != "seq":
            return no(f"{loop.id} is {loop.role}", "the iterations of a sequential loop can end early",
                      "a loop in time around it, if it has one")
        kernel = plan.kernel_of(loop.id)
        if loop.trimmed and kernel is not None and isinstance(end_of(plan, kernel, loop), Expr):
            return no(f"{loop.id} is trimmed already")
        made = self._made(plan, loop)
        if isinstance(made, Verdict):
            return made
        kernel = made.kernel_of(loop.id)
        assert kernel is not None
        end = end_of(made, kernel, made.loops[loop.id])
        return YES if isinstance(end, Expr) else no(f"{loop.id} cannot end earlier in some blocks", end, _hint(end))

    def rewrite(self, plan: Plan) -> Plan:
        loop = get_loop(plan, self.loop)
        assert isinstance(loop, Loop)
        made = self._made(plan, loop)
        assert not isinstance(made, Verdict)
        return made

    def _made(self, plan: Plan, loop: Loop) -> Plan | Verdict:
        """The plan with the loop trimmed, and nothing made behind its end that is only read there."""
        copies = {c.name for c in plan.copies}
        below = {leaf.id: leaf for leaf, _ in leaves((loop,))}
        whole = {below[name].statement for name, bounds in bounds_below(plan, loop.id, copies).items() if not bounds}
        last = last_iteration(plan, loop.id, copies | whole)
        if isinstance(last, str):
            why = last_iteration(plan, loop.id, copies)
            return no(f"{loop.id} cannot end earlier in some blocks", why if isinstance(why, str) else last)
        changed = dict[str, Statement]()
        for leaf in below.values():
            s = plan.statement_of[leaf.statement]
            if s.name not in copies | whole:
                continue
            here = _own(leaf, loop) if s.name in copies else dict(leaf.when)[loop.id]
            if here is None:
                return no(f"{leaf.id} is made in other iterations of {loop.id} than it is for",
                          f"it is for {', '.join(f'{d} = {e}' for d, e in leaf.at)}", "trim before the copy is moved")
            until = Constraint((last.substitute(dict(leaf.when)) - here).simplify(dim_ranges(s)))
            made = replace(s, domain=tuple(dict.fromkeys((*s.domain, until))))
            if changed.setdefault(s.name, made) != made:
                return no(f"{s.name} runs at several places of {loop.id}", hint="trim before cut")
        program = replace(plan.program, statements=tuple(changed.get(s.name, s) for s in plan.program.statements))
        if whole and (read := still_read(plan.program, program)):
            return no(f"{loop.id} cannot end earlier in some blocks", f"behind the last iteration, {last}, {read}")
        new = replace(plan, program=program, copies=tuple(changed.get(c.name, c) for c in plan.copies))
        return new.replace_node(loop.id, replace(loop, trimmed=True))

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        loop = get_loop(plan, node_id)
        return loop if isinstance(loop, Verdict) else cls(loop.id).check(plan)

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Trim]:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Loop) and cls(loop.id).check(plan):
            yield cls(loop.id)


def ended(before: Plan, after: Plan) -> Plan:
    """A plan to which copies were added, with the loops trimmed again that another plan ends early."""
    for loop in [x for x in before.loops.values() if x.trimmed]:
        kernel = before.kernel_of(loop.id)
        if kernel is not None and isinstance(end_of(before, kernel, loop), Expr) and Trim(loop.id).check(after):
            after = Trim(loop.id).rewrite(after)
    return after


def _own(leaf: Leaf, loop: Loop) -> Expr | None:
    """The dimension of a copy that is the loop it was made for, maybe some iterations ahead."""
    when = plain(dict(leaf.when)[loop.id])
    return var(when[0]) if when and dict(leaf.at)[when[0]] == var(loop.id) - when[1] else None


def _hint(why: str) -> str:
    return "trim before pipeline" if "in flight" in why else ""
