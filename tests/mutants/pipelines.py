"""Which errors in pipelines the judge of the IR and the CPU device notice, each by itself, and the table of them.

An error that makes another right kernel is none: a wait less where another one is for the same groups is a legal schedule too,
and a fence or a barrier that nobody needs may go.  Such a mutant is set apart where the device says nothing and it is proved to
be what another legal plan says, or where neither the judge nor the device says anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from explorer.errors import ExplorerError
from explorer.ir.plan import Plan
from explorer.ir.tree import Sync, walk
from explorer.kernel.launches import PlanIR, plan_ir
from explorer.kernel.validate import judged
from explorer.poly.judge import judge

from .ir import IRMutant
from .ir_pipelines import KINDS, Pipelined, mutants
from .printed import Subject


@dataclass(frozen=True)
class Answer:
    """A mutant, what the judge says of it, what the CPU device says, and whether it is a right kernel."""

    pipeline: Pipelined
    mutant: IRMutant
    judge: str
    device: str
    right: bool

    @property
    def survived(self) -> bool:
        """Whether a wrong kernel went unnoticed by one of the two."""
        return not self.right and not (self.judge and self.device)


def answers(pipeline: Pipelined, most: int) -> list[Answer]:
    """The first `most` mutants of each kind."""
    schedule = pipeline.make()
    ir, subject, taken = plan_ir(schedule.plan), Subject.of(schedule), Counter[str]()
    assert not _first_fault(ir), pipeline.name
    chosen: list[IRMutant] = []
    for mutant in mutants(ir):
        taken[mutant.kind] += 1
        if taken[mutant.kind] <= most:
            chosen.append(mutant)
    control, *said = subject.verdicts([ir, *(m.ir for m in chosen)])
    assert not control, (pipeline.name, control)
    legal = list(_legal(schedule.plan))
    out: list[Answer] = []
    for mutant, device in zip(chosen, said, strict=True):
        found = _first_fault(mutant.ir)
        right = not device and (not found or any(_is(mutant.ir, other) for other in legal))
        out.append(Answer(pipeline, mutant, found, device, right))
    return out


def _first_fault(ir: PlanIR) -> str:
    return next((found.what for launch in ir.launches for found in judged(launch)), "")


def _is(ir: PlanIR, other: PlanIR) -> bool:
    """Whether the bodies of an IR are proved to be what another plan says."""
    pairs = zip(ir.launches, other.launches, strict=True)
    return not _first_fault(replace(other, launches=tuple(replace(o, bodies=m.bodies) for m, o in pairs)))


def _legal(plan: Plan) -> Iterator[PlanIR]:
    """What the plan is with one of its commits or waits less, or a weaker wait, where that is judged legal."""
    syncs = [n for k in plan.kernels for n in walk(k.body) if isinstance(n, Sync)]
    for node in syncs:
        weaker = [] if node.kind == "commit" else [(replace(node, pending=node.pending + 1),)]
        for nodes in ((), *weaker):
            try:
                edited = plan.replace_node(node.id, *nodes)
                if judge(edited).emittable:
                    yield plan_ir(edited)
            except ExplorerError:
                continue


def page(found: Sequence[Answer]) -> str:
    """The table as Markdown."""
    engines = list(dict.fromkeys(a.pipeline.engine for a in found))
    schedules = {engine: len({a.pipeline.name for a in found if a.pipeline.engine == engine}) for engine in engines}
    head = "| error | engine | mutants | right kernels | the judge notices | the CPU device notices | as |"
    lines = ["# Errors in pipelines, the judge of the IR, and the CPU device", "",
             f"{sum(schedules.values())} pipelines ({', '.join(f'{n} of {engine}' for engine, n in schedules.items())}), one "
             "error at a time in their last IR.  The judge (`explorer.kernel.validate`) reads the IR; the CPU device runs its "
             "text in five orders and knows nothing of the judge.  An error that makes another right kernel is set apart: the "
             "device says nothing, and either it is proved to be the kernel of another legal plan (one wait or commit less, "
             "where another wait is for the same groups), or the judge says nothing either (a fence or a barrier where none is "
             "needed).  Made by `python benchmarks/ir_mutants.py --pipelines --write`.", "",
             head, "|---|---|---:|---:|---:|---:|---|"]
    total = Counter[str]()
    for kind in KINDS:
        for engine in engines:
            rows = [a for a in found if (a.mutant.kind, a.pipeline.engine) == (kind, engine)]
            if rows:
                wrong = [a for a in rows if not a.right]
                counts = {"mutants": len(rows), "right": len(rows) - len(wrong), "judge": sum(bool(a.judge) for a in wrong),
                          "device": sum(bool(a.device) for a in wrong)}
                total.update(counts)
                how = ", ".join(f"{name} {n}" for name, n in Counter(a.device for a in wrong if a.device).most_common())
                lines.append(f"| {kind} | {engine} | {counts['mutants']} | {counts['right']} | {counts['judge']} | "
                             f"{counts['device']} | {how} |")
    lines += [f"| all | | {total['mutants']} | {total['right']} | {total['judge']} | {total['device']} | |", ""]
    left = [a for a in found if a.survived]
    lines += [f"- unnoticed: {a.pipeline.engine}, {a.pipeline.name}, {a.mutant.kind} at {', '.join(a.mutant.at[:2])}: "
              f"judge {a.judge or 'nothing'}, device {a.device or 'nothing'}" for a in left]
    return "\n".join(lines).rstrip("\n") + "\n"
