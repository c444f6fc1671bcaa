"""The strategies pane: a strategy's steps with what each does and its estimate, and where the schedule stands among them."""

from __future__ import annotations

from ...strategies.price import RULE
from ...transforms.base import Transform
from ..protocol_plans import StrategyPane, StrategyStep
from ..recipes import KINDS, Recipe, Step
from ..session import Session
from ..tasks import Progress
from . import problems
from .moves import title


def strategy_pane(session: Session, name: str, progress: Progress) -> StrategyPane:
    """The pane for a strategy that is being made, or has been."""
    found: Recipe | None = progress.result
    return {
        "kinds": [{"name": n, "title": words, "help": help_} for n, (words, help_) in KINDS.items()],
        "status": progress.status, "doing": progress.doing, "fraction": progress.fraction, "name": name,  # type: ignore[typeddict-item]
        "gpu": (found.gpu if found else session.gpu).name,
        "at": place(session, found) if found else None, "summary": found.summary if found else "",
        "start_us": found.start_us if found else None, "total_us": found.total_us if found else None,
        "terms": [list(t) for t in found.terms if abs(t[1]) >= 0.005] if found else [],  # type: ignore[misc]
        "steps": [_step(s) for s in found.steps] if found else [], "rule": RULE,
        "problem": problems.of_error(progress.error) if progress.error is not None else None,
    }


def place(session: Session, recipe: Recipe) -> int | None:
    """How many steps of a recipe the schedule that is shown has; None where it has others."""
    now = session.schedule
    steps: tuple[Transform, ...] = tuple(s.step for s in recipe.steps)
    here = now.source == recipe.start.source and now.steps == steps[: len(now.steps)]
    return len(now.steps) if here else None


def _step(step: Step) -> StrategyStep:
    return {"call": str(step.step), "name": step.step.name, "words": title(type(step.step)), "effects": list(step.effects),
            "estimate_us": step.estimate_us, "open": len(step.schedule.obligations)}
