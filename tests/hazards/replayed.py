"""What is said of each bug: the refusal of the move or of the edited IR, the CPU device, and the schedule that is mended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from explorer.ir.finding import Act, Finding, Instance
from explorer.kernel.launches import plan_ir
from tests.mutants.printed import Subject

from .bugs import Bug


@dataclass(frozen=True)
class Replay:
    """A bug, what it is refused with, and what the CPU device says of its kernel and of the mended one (nothing: it is right)."""

    bug: Bug
    refusal: Finding
    device: str
    mended: str


def replay(bug: Bug) -> Replay:
    """Ask the judges and the device."""
    mended = bug.mend()
    assert mended.judgement.emittable, bug.name
    before = bug.before() if bug.before else mended
    (device,) = Subject.of(before).verdicts([bug.wrong()])
    (right,) = Subject.of(mended).verdicts([plan_ir(mended.plan)])
    return Replay(bug, bug.refusal(), device, right)


def page(found: Sequence[Replay]) -> str:
    """The page of the documentation."""
    rows = [f"| [{r.bug.name}]({r.bug.link}) | {r.bug.mechanism} | {_how(r)} {r.refusal.what} | {_when(r)} | {_least(r)} | "
            f"{r.device} | {r.bug.mended} |" for r in found]
    return "\n".join([
        "# Bugs in pipelines", "",
        "Users of other compilers have reported these bugs: pipelines that compute something else, race, or wait for "
        "ever.  Each is a [schedule here](../tests/hazards/bugs.py).  "
        "Where one of the moves would make it, the move is refused with the smallest "
        "pair of instances.  Where no move makes it, the kernel IR of a correct schedule is edited into what the other "
        "compiler produced; the judge of the IR refuses it.", "",
        "A refusal holds for every trip count K and, where slots are reused, for every S, R and F; all other sizes are "
        "those of the schedule.  Each refusal gives the condition under which the step would be legal (K is the trip count, "
        "S the slots, R the release distance, F what is in flight: "
        "[pipelines for all sizes](concepts.md#pipelines-for-all-sizes); \"never\" is for every K).  It is computed when it is "
        "read: isl projects the judge's relations onto K.  Numbers of groups are written as quotient and remainder by S.  For "
        "edited kernels, it assumes that the passes make the same IR for other trip counts.  It has the least instance: the "
        "sizes, the iteration, and the two that do not fit, with who does what.  The tests make the same schedule with other "
        "trip counts and stages, and compare.", "",
        "The CPU device does not use the judge.  It runs the kernel with the bug, copies and products completing as early"
        " or as late as the rules allow; its column has the fault that it reports: a wrong result; a race; "
        "`async-pending` or `bulk-pending`, a read of what a copy may still bring or a write of what it still reads; "
        "`mbarrier`, a wait that does not end or a count that does not fit; `mbarrier-again`, an arrival for a phase that"
        " is complete; `proxy-unfenced`, a write without a fence that an asynchronous read needs.  The mended schedule is"
        " accepted, and right in the same orders.", "",
        f"{len(found)} bugs, {sum(bool(r.device) and not r.mended for r in found)} of them refused, shown and mended.", "",
        "| bug | mechanism | refused | legal | least instance | the CPU device says | mended by |",
        "|---|---|---|---|---|---|---|", *rows, "",
        "How many errors of each kind are noticed in many pipelines: "
        "[benchmarks/results/pipeline_mutants.md](../benchmarks/results/pipeline_mutants.md).", "",
        "Made by `python -m benchmarks.properties --bugs --write`; the bugs are in `tests/hazards/bugs.py`.", ""])


def _how(r: Replay) -> str:
    return f"`{r.bug.step}`:" if r.bug.step is not None else "the edited kernel:"


def _when(r: Replay) -> str:
    proof = r.refusal.proof
    if proof is None:
        return ""
    return f"{proof.condition}{f'; with these sizes: {proof.here}' if proof.here else ''}"


def _least(r: Replay) -> str:
    proof = r.refusal.proof
    if proof is None:
        return ""
    sizes = ", ".join(f"{name} = {value}" for name, value in proof.least)
    return f"{sizes}: {_end(proof.source)}; {_end(proof.sink)}{f': {proof.says}' if proof.says else ''}"


def _end(one: Instance) -> str:
    place = ", ".join(f"{role} = {value}" for role, value in one.place)
    return str(one) if isinstance(one, Act) or not place else f"{one} ({place})"
