"""The ablation of a pipeline: the price of the plan with each number of stages, with and without its second level.

The second level of a warp's products loads fragments ahead; that of a warpgroup's leaves products in flight.  Every cell is a
plan of its own, made by the moves that a user would take, judged and priced like any other: ALCOP's figure (Huang et al., MLSys
2023), filled by the model at once, and by times as far as these very schedules have been measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...gpu.spec import Gpu
from ...ir.memo import per_program
from ...ir.plan import Plan
from ...ir.tree import Loop, walk
from ...run.search.result import Trial
from ...schedule import Schedule
from ...strategies.pipelines.facts import Stepping, steppings
from ...strategies.pipelines.family import key, template, without
from ...strategies.price import price
from ...transforms.base import Transform
from ...transforms.overlap import Overlap
from ...transforms.pipeline import Pipeline, copy_nests
from ...transforms.specialise import Specialise
from .asked import Asked, Look

USUAL, MOST = 5, 8
"""Stages that are looked at, and at most."""
LEVELS = {"warp": ("fragments in turn", "fragments ahead"), "warpgroup": ("products waited for", "products in flight"),
          "plain": ("arithmetic",)}
"""The rows, by who computes."""


@dataclass(frozen=True)
class Cell:
    """One plan of an ablation.

    Attributes
    ----------
    stages : int
    level : int
        1 with the second level.
    predicted_us : float or None
        The price of the plan; None where it cannot be made.
    bound : str
        The longest term of the price.
    measured_us : float or None
        Its time, where it has been measured on this GPU.
    here : bool
        Whether the schedule that is shown is this one.
    why_not : str
    """

    stages: int
    level: int
    predicted_us: float | None
    bound: str = ""
    measured_us: float | None = None
    here: bool = False
    why_not: str = ""


@dataclass(frozen=True)
class Ablation:
    """The plans of a pipelined loop with other stages.

    Attributes
    ----------
    gpu, loop : str
    levels : tuple of str
        Names of the rows.
    cells : tuple of Cell
    """

    gpu: str
    loop: str
    levels: tuple[str, ...]
    cells: tuple[Cell, ...]


def ablation(schedule: Schedule, asked: Asked, look: Look) -> Ablation | str:
    """The cells of one loop, or a sentence where nothing could be pipelined."""
    plan, gpu = schedule.plan, asked.gpu(look)
    found = {s.loop: s for kernel in plan.kernels for s in steppings(plan, kernel)}
    if not found:
        return ("No loop computes in steps, so there is no pipeline to vary: none has copies that bring another tile to shared "
                "memory in each of its iterations. stage('…', 'k') an array that a loop reads.")
    words = {name: f"{name} ({', '.join(dict.fromkeys(u.leaf.statement for u in s.copies))})" for name, s in found.items()}
    hit = plan.find(look.node) if look.node else None
    around = {look.node, *(x.id for x in hit[1])} if hit else {look.node}
    focus = next((n for n in found if n in around), max(found, key=lambda n: found[n].most))
    loop = asked.one_of("loop", "loop", words, focus)
    s = found[loop]
    high = min(MOST, max(s.most, s.stages))  # its own may be one more than its iterations
    most = asked.number("stages", "stages", min(2, s.most), high, max(min(USUAL, s.most), min(MOST, s.stages)))
    bare, way = without(schedule, loop), template(schedule.steps, loop)
    base = bare.plan if bare else None
    if base is None or loop not in base.loops:
        return f"The steps of this schedule cannot be taken without the pipeline of {loop}: there is nothing to compare it with."
    cells = made(base, way, s.engine, most, gpu)
    own, times = (s.stages, level_of(s)), _times(schedule, loop, look)
    shown = tuple(replace(c, measured_us=times.get((c.stages, c.level)), here=(c.stages, c.level) == own) for c in cells)
    return Ablation(gpu.name, loop, LEVELS[s.engine], shown)


def level_of(s: Stepping) -> int:
    """Whether a loop's pipeline has its second level."""
    return int(s.in_flight if s.engine == "warpgroup" else s.ahead)


@per_program(32)
def made(base: Plan, way: Pipeline | Specialise, engine: str, most: int, gpu: Gpu) -> tuple[Cell, ...]:
    """Every cell, priced: by level, then by stages, which such a step gives."""
    out = list[Cell]()
    plans = {stages: with_stages(base, way, stages) for stages in range(1, most + 1)}
    for level in range(len(LEVELS[engine])):
        for stages, plan in plans.items():
            whole = plan if isinstance(plan, str) or not level else with_second(plan, way.loop, engine)
            out.append(Cell(stages, level, None, why_not=whole) if isinstance(whole, str) else _priced(whole, stages, level, gpu))
    return tuple(out)


def with_stages(base: Plan, way: Pipeline | Specialise, stages: int) -> Plan | str:
    """The plan with so many stages, or why there is none; one stage is no pipeline."""
    if stages == 1:
        return base
    return _after(base, replace(way, stages=stages, buffers=0) if isinstance(way, Pipeline) else replace(way, stages=stages))


def _priced(plan: Plan, stages: int, level: int, gpu: Gpu) -> Cell:
    whole = price(plan, gpu)
    return Cell(stages, level, whole.total_us, max(whole.kernels, key=lambda k: k.total_us).bound)


def with_second(plan: Plan, loop: str, engine: str) -> Plan | str:
    """The plan with the second level, or why there is none."""
    if engine == "warpgroup":
        return _after(plan, Overlap(loop))
    inner = next((x for x in walk(plan.loops[loop].body) if isinstance(x, Loop) and _fills_registers(plan, x)), None)
    if inner is None:
        return "no loop of a step copies fragments into registers"
    if inner.extent < 2:  # nothing to be ahead of
        return f"{inner.id} runs once in a step"
    return _after(plan, Pipeline(inner.id, 2, asynchronous=False))


def _fills_registers(plan: Plan, loop: Loop) -> bool:
    """Whether a loop has copies into registers, made for its iterations."""
    return loop.role in ("seq", "unroll") and bool(copy_nests(plan, loop))


def _after(plan: Plan, step: Transform) -> Plan | str:
    """The plan after a step, or why it is refused."""
    verdict, after = Schedule(plan.program, plan).try_step(step)
    if verdict and after is not None:
        return after
    return verdict.what if verdict.what.startswith(str(step)) else f"{step}: {verdict.what}"


def _times(schedule: Schedule, loop: str, look: Look) -> dict[tuple[int, int], float]:
    """Times of this ablation's schedules among those measured."""
    rest, found = key(schedule.steps, loop)[0], dict[tuple[int, int], float]()
    for steps, us in look.measured:
        others, stages, level = key(steps, loop)
        if others == rest:
            found[stages, level] = min(us, found.get((stages, level), us))
    return found


def timed(trials: Sequence[Trial]) -> tuple[tuple[tuple[Any, ...], float], ...]:
    """The steps and times of a search's variants, of those that count."""
    return tuple((t.steps, t.timing.net_us) for t in trials if t.timing is not None and not t.problem)
