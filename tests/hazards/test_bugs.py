"""Each reported bug is refused for its reason, shown by the CPU device, and mended."""

from __future__ import annotations

import pickle
import re
from contextlib import suppress
from pathlib import Path

import pytest

from explorer.errors import IllegalSchedule
from explorer.ir.finding import Act, Proof
from explorer.kernel.launches import plan_ir
from explorer.kernel.validate import NotProved, require_proved
from explorer.poly.ring_text import ALWAYS, NEVER
from tests.kernel.bulk_schedules import product, several_tiles
from tests.mutants.ir import ir_mutants
from tests.mutants.test_ir_judged import faults

from .bugs import BUGS, Bug, forgets_tiles, steps
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
    proof = seen.refusal.proof
    assert proof is not None, "for which sizes, and the least instance"
    assert re.fullmatch(bug.legal, proof.condition)
    assert (proof.condition.startswith("never legal") or " never legal" in proof.condition
            or re.search(r"\b(K|trip count|release distance)\b", proof.condition)), "the condition is in the symbols"
    assert tuple(dict(proof.least)[n] for n in bug.least) == tuple(bug.least.values())
    assert re.search(bug.pair[0], str(proof.source))
    assert re.search(bug.pair[1], str(proof.sink))
    for end in (proof.source, proof.sink):
        assert end.place or (isinstance(end, Act) and end.threads), "by which threads"
        assert not isinstance(end, Act) or re.match("reads|writes|waits|arrives|does not arrive|uses", end.does)
    assert seen.device in bug.faults
    assert not seen.mended


@pytest.mark.parametrize("bug", BUGS, ids=lambda b: b.name)
def test_who_is_refused_reads_the_condition_and_the_least_sizes(bug: Bug) -> None:
    proof = bug.refusal().proof
    assert proof is not None
    with pytest.raises((IllegalSchedule, NotProved)) as caught:
        refuse(bug)
    assert proof.condition in str(caught.value)
    assert f"K = {dict(proof.least)['K']}" in str(caught.value)
    assert pickle.loads(pickle.dumps(bug.refusal())).proof == proof


@pytest.mark.parametrize("bug", BUGS, ids=lambda b: b.name)
def test_the_condition_says_what_is_wrong_with_other_trip_counts(bug: Bug) -> None:
    """The same bug in a kernel that is made for other trip counts: it has a least instance there iff the condition says so."""
    proof = bug.refusal().proof
    assert proof is not None
    found = dict[int, bool]()
    for trips in (2, 3, 4, 7):
        with suppress(IndexError):  # the edit finds no place in so short a loop
            refused = bug.refused(trips)
            found[trips] = refused is None or refused.proof is None
    assert len(found) >= 2
    assert found == {trips: holds(proof, K=trips) for trips in found}


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("name", ["TileLang PR #2674", "TileLang #2927"])
def test_a_condition_on_stages_says_what_is_wrong_with_other_stages(name: str, stages: int) -> None:
    bug = next(b for b in BUGS if b.name == name)
    proof = bug.refusal().proof
    assert proof is not None
    make = several_tiles if name == "TileLang PR #2674" else steps
    said = {trips: holds(proof, K=trips, S=stages) for trips in range(stages, 3 * stages + 1)}
    assert set(said.values()) == ({True, False} if name == "TileLang PR #2674" else {False})
    assert bug.edit is not None
    for trips, right in said.items():
        ir = ir_mutants(plan_ir(make(stages, trips).plan), {"": bug.edit})[0].ir
        assert (not faults(ir)) == right, trips


def refuse(bug: Bug) -> None:
    """Take the move, or write the kernel with the bug."""
    if bug.step is not None and bug.before is not None:
        bug.before().apply(bug.step)
    else:
        for launch in bug.wrong().launches:
            require_proved(launch)


def holds(proof: Proof, **sizes: int) -> bool:
    """Whether a proof says that it is legal with these sizes, the others being those of its least instance."""
    if proof.here:
        return proof.here == ALWAYS or (proof.here != NEVER and eval(proof.here, dict(sizes)))
    told = proof.condition.split(", with ")[0]
    return not told.startswith("never") and eval(told.removeprefix("legal iff "), {**dict(proof.least), **sizes})


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
