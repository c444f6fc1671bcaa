"""A slice of the property run, and what makes it believable: it can fail, and its oracles do not take anybody's word.

``python benchmarks/properties.py --pairs 5000`` runs the whole.
"""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from explorer.errors import IllegalSchedule
from explorer.ir.finding import Finding, Instance
from explorer.ir.plan import Plan
from explorer.poly.judge import judge
from explorer.run.inputs import seeded_arrays
from explorer.transforms.base import catalogue
from tests.mutants.mutants import NO_FLOW, NO_ORDER
from tests.mutants.patches import Patch, patched

from .equal import difference, expected
from .programs import define, random_text
from .tally import ACCEPTED, QUESTIONS, Tally
from .trial import Trial
from .witness import doubt

SEED = 2029
CHAINS = 168
SCAN = """@ex.program
def f(x: ex.f32[M, N], y: ex.f32[M, N]):
    for i in range(M):
        y[i, 0] = x[i, 0]
        for j in range(1, N):
            y[i, j] = y[i, j - 1] + x[i, j]
"""


@pytest.fixture(scope="module")
def tally() -> Tally:
    found = Trial().run(SEED, range(CHAINS))
    print(f"\n{found.table()}\nseed {SEED}, {CHAINS} chains")
    return found


def test_no_pair_is_judged_wrongly(tally: Tally) -> None:
    assert not tally.found, "\n".join(map(str, tally.found))


def test_there_are_many_pairs_of_every_kind(tally: Tally) -> None:
    assert len(tally.pairs) >= 200
    assert tally.of(ACCEPTED) >= 100
    assert all(tally.of(question) for question in ("order", "obligation", "flow"))
    assert set(tally.pairs.values()) <= {ACCEPTED, *QUESTIONS}


def test_every_transformation_is_exercised(tally: Tally) -> None:
    """Each one of the catalogue stands in a schedule that was run and compared."""
    assert tally.never_made == []


def test_a_chain_is_the_same_again() -> None:
    first, second = Trial().run(SEED, range(4)), Trial().run(SEED, range(4))
    assert first.pairs == second.pairs
    assert first.pairs


def test_programs_are_rich() -> None:
    """What a few hundred texts hold: conditions, shaped and strided ranges, temporaries, reductions, types."""
    texts = [random_text(random.Random(n)) for n in range(300)]
    for word in ("if ", ", 2):", ", 3):", ", -1):", "range(i, ", "min(i + 1", "// 2", "% 2", "ex.local(", "+=", "*=", "= max(",
                 "= min(",                 " and ", " or ", "ex.i8", "ex.f64", "ex.bf16", "range(3)", "[n"):
        assert sum(word in text for text in texts) > 2, word


# -- it can fail -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("defect", [NO_ORDER, NO_FLOW], ids=["order", "flow"])
def test_a_question_that_is_not_asked_shows(defect: Patch) -> None:
    """With a defect in the product the same run finds counterexamples, and says how to make them."""
    with patched(defect):
        found = Trial().run(SEED, range(96)).found
    assert any("wrong result" in c.kind or "fault" in c.kind for c in found)
    assert all("s = s." in c.script and ".schedule(" in c.script for c in found)


def test_a_script_is_made_shorter() -> None:
    with patched(NO_ORDER):
        trial = Trial()
        s = define(SCAN, "scan.py").schedule(M=3, N=5).reverse("i").reverse("j").unroll("i")
        trial.conclude("0:0", s)
        trial.flush()
    (found,) = trial.tally.found
    assert [line for line in found.script.splitlines() if line.startswith("s = s.")] == ["s = s.reverse('j')"]


# -- its oracles -------------------------------------------------------------------------------------------------


def refusal(move: str, *arguments: str) -> tuple[Plan, Plan, Finding]:
    """A legal plan, the plan that a refused step makes of it, and the finding."""
    s = define(SCAN, "scan.py").schedule(M=3, N=5)
    step = catalogue()[move](*arguments)
    with pytest.raises(IllegalSchedule):
        s.apply(step)
    plan = s.try_step(step)[1]
    assert plan is not None
    return s.plan, plan, judge(plan).refusals[0]


@pytest.mark.parametrize("call", [("reverse", "j"), ("bind", "j", "thread.x"), ("bind", "j", "block.x")])
def test_true_witnesses_are_confirmed(call: tuple[str, ...]) -> None:
    _, plan, finding = refusal(*call)
    assert doubt(plan, finding) == ""


def test_false_witnesses_are_doubted() -> None:
    """Of a legal plan; with other instances; with the two changed round."""
    legal, plan, finding = refusal("reverse", "j")
    assert finding.source is not None
    assert finding.sink is not None
    assert "still runs before" in doubt(legal, finding)
    elsewhere = replace(finding, source=replace(finding.source, point=(2, 1)))
    assert "do not touch one element" in doubt(plan, elsewhere)
    assert doubt(plan, replace(finding, source=finding.sink, sink=finding.source))
    assert "never runs" in doubt(plan, replace(finding, source=Instance("S1", (7, 7))))
    assert doubt(legal, Finding("cover", "made up", source=Instance("S0", (1,))))
    assert doubt(legal, Finding("flow", "made up", source=Instance("S0", (1,)), sink=Instance("S1", (1, 1)), nodes=("S1",)))
    assert doubt(legal, Finding("obligation", "made up", array="y", nodes=("S1", "j")))
    assert doubt(legal, Finding("race", "made up", source=Instance("S1", (1, 1)), sink=Instance("S1", (1, 2))))


def test_a_wrong_cell_is_a_difference() -> None:
    program = define(SCAN, "scan.py").schedule(M=3, N=5).source
    arrays = seeded_arrays(program, 1)
    right = expected(program, arrays).values["y"].astype(np.float32)
    assert difference(program, arrays, {"y": right}) == ""
    wrong = right.copy()
    wrong[2, 4] += np.float32(1e-3)
    assert "y[2, 4]" in difference(program, arrays, {"y": wrong})
