"""The stitching pane: the edges between a program's values, each with the schemes it may have, and why others are not legal."""

from __future__ import annotations

from ...gpu.spec import Gpu
from ...run.facts import scaled
from ...schedule import Schedule
from ...strategies.price import price as price_of
from ...strategies.stitch import Edge, Option, Stitching
from ...strategies.stitching.graph import SCHEMES
from ..protocol_plans import EdgeData, OptionData, StitchPane, StitchPrice
from ..stitches import WORDS, Tried
from ..tasks import Progress
from . import problems


def stitching_pane(start: Schedule, gpu: Gpu, progress: Progress, shown: Schedule) -> StitchPane:
    """The pane of a program and a GPU, as far as it is known, beside the schedule that is shown."""
    found: Tried | None = progress.result
    model = found.model if found else None
    return {
        "program": start.source.name, "gpu": gpu.name, "status": progress.status,  # type: ignore[typeddict-item]
        "doing": progress.doing, "fraction": progress.fraction, "schemes": [(s, WORDS[s]) for s in SCHEMES],
        "edges": [_edge(e, found) for e in model.edges] if found and model else [],
        "model": price(model, len(model.schedule.steps)) if model else None,
        "shown_us": price_of(shown.plan, gpu).total_us if model and shown.steps else None,
        "problem": problems.of_error(progress.error) if progress.error is not None else None,
    }


def price(found: Stitching, steps: int) -> StitchPrice:
    """What a choice of schemes comes to."""
    launches = len(found.schedule.plan.launched)
    return {"chosen": dict(found.chosen), "groups": [list(g) for g in found.groups], "terms": terms(found.terms),
            "total_us": found.total_us, "launches": launches, "steps": steps}


def terms(given: tuple[tuple[str, float], ...]) -> list[tuple[str, float]]:
    """The terms that can be seen, rounded."""
    return [(name, float(f"{us:.3g}")) for name, us in given if abs(us) >= 0.005]


def _edge(edge: Edge, found: Tried) -> EdgeData:
    """One edge; without options while they are being tried."""
    known = next((e for e in found.edges if e.id == edge.id), None)
    array, _, into = edge.id.partition("->")
    return {"id": edge.id, "array": array, "into": into, "producer": edge.producer, "consumer": edge.consumer, "kind": edge.kind,
            "lines": list(edge.lines), "options": [_option(found.start, o) for o in known.options] if known else []}


def _option(start: Schedule, option: Option) -> OptionData:
    """One scheme on one edge, the other edges as is then best."""
    legal = bool(option.verdict)
    problem = None if legal else problems.of_verdict(option.verdict, start)
    return {"scheme": option.scheme, "applies": legal, "problem": problem, "total_us": option.total_us if legal else None,
            "saved_bytes": option.saved_bytes, "saved_launches": option.saved_launches, "registers": option.registers,
            "shared_bytes": option.shared_bytes, "occupancy": option.occupancy, "recomputed": option.recomputed_flops,
            "terms": terms(option.terms) if legal else [], "words": _words(option)}


def _words(option: Option) -> str:
    """What a scheme costs and saves, in words."""
    if not option.verdict:
        return option.verdict.what
    counts = abs(option.saved_launches)
    launches = f"{counts} launch{'es' * (counts != 1)}" + (" more" if option.saved_launches < 0 else "")
    moved = scaled(abs(option.saved_bytes), "B")
    memory = f"moves {moved} more" if option.saved_bytes < 0 else f"saves {moved}"
    parts = [f"{memory} and {'takes' if option.saved_launches < 0 else 'saves'} {launches}, against a cut here",
             f"{option.registers} registers a thread", f"{scaled(option.shared_bytes, 'B')} shared memory a block",
             f"occupancy {option.occupancy:.0%}"]
    if option.recomputed_flops:
        parts.append(f"{scaled(option.recomputed_flops)}operations again".replace("  ", " "))
    return "; ".join(parts)
