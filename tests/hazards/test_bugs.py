"""Each reported bug is refused for its reason, shown by the CPU device, and mended."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from explorer.kernel.launches import plan_ir
from tests.kernel.bulk_schedules import product
from tests.mutants.ir import ir_mutants
from tests.mutants.test_ir_judged import faults

from .bugs import BUGS, Bug, forgets_tiles
from .replayed import Replay, page, replay

PAGE = Path(__file__).resolve().parents[2] / "docs" / "hazards.md"


@pytest.fixture(scope="module")
def found() -> dict[str, Replay]:
    return {bug.name: replay(bug) for bug in BUGS}


@pytest.mark.parametrize("bug", BUGS, ids=lambda b: b.name)
def test_it_is_refused_shown_and_mended(bug: Bug, found: dict[str, Replay]) -> None:
    seen = found[bug.name]
    assert bug.says
    assert re.search(bug.says, seen.refusal.what)
    if bug.step is not None:
        assert seen.refusal.source is not None, "the smallest pair of instances"
        assert seen.refusal.sink is not None
    assert seen.device in bug.faults
    assert not seen.mended


@pytest.mark.parametrize("steps", [4, 6, 9, 12])
def test_a_tile_that_counts_from_zero_is_right_iff_the_steps_are_a_multiple_of_two_rings(steps: int) -> None:
    """TileLang's PR #2674: three mbarriers, so ``steps % 6 == 0``."""
    s = product.schedule(D=16, E=40, C=16 * steps).split("i", 8).split("j", 32).split("k", 16).reorder("i", "j", "i.i", "j.i")
    s = s.bind("i.i", "thread.y").contract("total", "register").bind("j.i", "thread.x")
    s = s.stage("x", "k", engine="bulk", swizzle=32).stage("y", "k", engine="bulk", swizzle=64).pipeline("k", 3)
    (mutant,) = ir_mutants(plan_ir(s.plan), {"forgets": forgets_tiles})
    assert (not faults(mutant.ir)) == (steps % 6 == 0)


def test_there_are_twelve_and_more() -> None:
    assert len({b.name for b in BUGS}) == len(BUGS) >= 12
    assert sum(b.step is not None for b in BUGS) >= 4


def test_the_page_is_up_to_date(found: dict[str, Replay]) -> None:
    assert PAGE.read_text(encoding="utf-8") == page(list(found.values())), "python -m benchmarks.properties --bugs --write"
