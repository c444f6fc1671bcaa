"""Schedules on tensor cores, step by step: how long each verdict takes, and which question the longest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from latency_clock import clock, forked, machine, quantile
from pipelined_schedules import PIPELINES

import explorer.poly.judge as judging
from explorer.poly import asynchronous, barriers, flow, products, roles
from explorer.schedule import Schedule
from explorer.transforms.pipeline import Pipeline
from explorer.transforms.specialise import Specialise


@dataclass(frozen=True)
class Verdict:
    """One timed step of a schedule on tensor cores, in milliseconds of CPU time.

    Attributes
    ----------
    schedule, step : str
    number : int
    cpu, emit : float
        Of the verdict; of the text, 0 where there is none.
    parts : dict of str to float
        Of the verdict: the step's own check, its rewriting, and each question.
    """

    schedule: str
    step: str
    number: int
    cpu: float
    emit: float
    parts: dict[str, float]

    @property
    def slowest(self) -> str:
        """The part that took longest."""
        return max(self.parts, key=lambda name: self.parts[name], default="")


QUESTIONS = {"cover": (judging, "check_cover"), "order": (judging, "check_order"), "flow": (flow, "check_flow"),
             "landed": (asynchronous, "check_async"), "products": (products, "check_products"), "roles": (roles, "check_roles"),
             "race": (barriers, "check_races"), "obligation": (judging, "check_obligations")}
"""Questions of the judge, by the functions that ask them."""


@contextmanager
def parts() -> Iterator[dict[str, float]]:
    """Milliseconds that each question takes within; what asks within another is counted there alone."""
    taken: dict[str, float] = {}
    inside: list[str] = []

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*args: Any, **kwargs: Any) -> Any:
            begin, _ = clock()
            inside.append(name)
            try:
                return function(*args, **kwargs)
            finally:
                inside.pop()
                if not inside:
                    taken[name] = taken.get(name, 0.0) + clock()[0] - begin
        return asked

    kept = {name: getattr(module, function) for name, (module, function) in QUESTIONS.items()}
    try:
        for name, (module, function) in QUESTIONS.items():
            setattr(module, function, timed(name, kept[name]))
        yield taken
    finally:
        for name, (module, function) in QUESTIONS.items():
            setattr(module, function, kept[name])


def verdicts(label: str, make: Callable[[], Schedule]) -> tuple[list[Verdict], dict[str, float]]:
    """Every step of a schedule on tensor cores, and the milliseconds of ``pipeline_conditions`` by loop.

    In a copy of this process, as a session that takes one step after the other.
    """
    source, steps = forked(lambda: (lambda s: (s.source, s.steps))(make()))

    def replayed() -> tuple[list[Verdict], dict[str, float]]:
        schedule, found = Schedule.of(source), list[Verdict]()
        for number, step in enumerate(steps):
            with parts() as taken:
                begin, _ = clock()
                schedule = schedule.apply(step)
                end, _ = clock()
            taken["the step's own"] = end - begin - sum(taken.values())
            if schedule.judgement.emittable:
                schedule.module()
            found.append(Verdict(label, str(step), number, end - begin, clock()[0] - end, taken))
        conditions = {}
        for loop in dict.fromkeys(step.loop for step in steps if isinstance(step, Pipeline | Specialise)):
            begin, _ = clock()
            str(schedule.pipeline_conditions(loop))
            conditions[f"{label}: pipeline_conditions({loop!r})"] = clock()[0] - begin
        return found, conditions

    return forked(replayed)


def tensor_summary(found: Sequence[Verdict], conditions: dict[str, float]) -> dict[str, Any]:
    """Percentiles of the verdicts of every schedule, which step and question is the slowest, texts and conditions."""
    def row(own: Sequence[Verdict]) -> dict[str, Any]:
        cpu, worst = [v.cpu for v in own], max(own, key=lambda v: v.cpu)
        return {"samples": len(own), "p50": round(quantile(cpu, 0.5), 1), "p95": round(quantile(cpu, 0.95), 1),
                "worst": round(worst.cpu, 1), "worst_step": f"{worst.schedule}, step {worst.number}: {worst.step}",
                "slowest_part": f"{worst.slowest}, {worst.parts[worst.slowest]:.1f}"}

    schedules = dict.fromkeys(v.schedule for v in found)
    texts = [v.emit for v in found if v.emit > 0.5]
    return {"all": row(found), "schedules": {name: row([v for v in found if v.schedule == name]) for name in schedules},
            "text": {"p50": round(quantile(texts, 0.5), 1), "p95": round(quantile(texts, 0.95), 1)}, "machine": machine(),
            "pipeline_conditions": {name: round(ms, 1) for name, ms in conditions.items()}}


def measured_tensor() -> dict[str, Any]:
    """All schedules on tensor cores."""
    found, conditions = list[Verdict](), dict[str, float]()
    for label, make in PIPELINES.items():
        own, asked = verdicts(label, make)
        found, conditions = found + own, conditions | asked
        row = tensor_summary(own, asked)["all"]
        print(f"{label:28s} p50 {row['p50']:6.1f}  p95 {row['p95']:6.1f}  worst {row['worst']:6.1f} ms  {row['worst_step']}",
              flush=True)
    return tensor_summary(found, conditions)


def tensor_page(tensor: dict[str, Any]) -> list[str]:
    """The part of the page about schedules on tensor cores."""
    head = ["| verdict on a step, tensor cores | samples | p50 | p95 | worst | the slowest | its slowest part |",
            "|---|--:|--:|--:|--:|---|---|"]
    rows = [f"| {name} | {r['samples']} | {r['p50']} | {r['p95']} | {r['worst']} | `{r['worst_step']}` | {r['slowest_part']} |"
            for name, r in {**tensor["schedules"], "all": tensor["all"]}.items()]
    text, load = tensor["text"], tensor["machine"]["load_average"][0]
    asked = ", ".join(f"{name} {ms}" for name, ms in tensor["pipeline_conditions"].items())
    return [*head, *rows, "", f"Load average {load}.  Their texts: p50 {text['p50']}, p95 {text['p95']}.", "",
            f"Conditions of pipelines, asked for the first time behind the last step: {asked}."]
