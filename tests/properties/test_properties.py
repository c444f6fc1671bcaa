"""A slice of the property run, and what makes it believable: it can fail, and its oracles do not take anybody's word.

``python benchmarks/properties.py --pairs 5000`` runs the whole.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace

import numpy as np
import pytest

from explorer.errors import IllegalSchedule
from explorer.ir.finding import Finding, Instance
from explorer.ir.plan import Plan
from explorer.poly.judge import judge
from explorer.run.inputs.arguments import seeded_arrays
from explorer.transforms.base import catalogue
from tests.mutants.mutants import NO_FLOW, NO_ORDER
from tests.mutants.patches import Patch, patched

from .equal import difference, expected
from .hostile import HOSTILE, renamed
from .programs import define, random_text
from .tally import ACCEPTED, QUESTIONS
from .trial import Trial
from .witness import doubt
from .writer import SIZES

SEED = 2029
CHAINS = 160
"""Chains of each half: a minute or two of one core."""
SCAN = """@ex.program
def f(x: ex.f32[M, N], y: ex.f32[M, N]):
    for i in range(M):
        y[i, 0] = x[i, 0]
        for j in range(1, N):
            y[i, j] = y[i, j - 1] + x[i, j]
"""


RARE = {"running", "shuffle", "commute", "take_turns"}
"""Moves that want a chain of others before them, which random ones seldom make in such a slice; they have tests of their own."""


@pytest.mark.parametrize("half", [0, 1])
def test_no_pair_is_judged_wrongly(half: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Two halves, so that two workers share them; each has long chains, pairs of every kind, and every transformation."""
    tally = Trial().run(SEED, range(half * CHAINS, (half + 1) * CHAINS))
    with capsys.disabled():
        print(f"\n{tally.table()}\nseed {SEED}, chains {half * CHAINS} to {(half + 1) * CHAINS}")
    assert not tally.found, "\n".join(map(str, tally.found))
    assert tally.average >= 10
    assert len(tally.pairs) >= 400
    assert tally.of(ACCEPTED) >= 200
    assert all(tally.of(question) for question in ("order", "obligation", "flow"))
    assert set(tally.pairs.values()) <= {ACCEPTED, *QUESTIONS}
    assert {*tally.never_made} <= RARE


def test_a_chain_is_the_same_again() -> None:
    first, second = Trial().run(SEED, range(4)), Trial().run(SEED, range(4))
    assert first.pairs == second.pairs
    assert first.pairs


def test_programs_are_rich() -> None:
    """What a few hundred texts hold: conditions, shaped and strided ranges, temporaries, reductions, types."""
    texts = [random_text(random.Random(n)) for n in range(400)]
    for word in ("if ", ", 2):", ", 3):", ", -1):", "range(i, ", "min(i + 1", "// 2", "% 2", "ex.local(", "+=", "*=", "= max(",
                 "= min(",                 " and ", " or ", "ex.i8", "ex.f64", "ex.bf16", "range(3)", "[n", "% 3 == 1", "% 4 ==",
                 "!= ", "not ", "else:", "range(i % 3", "ex.local(ex.f16", "ex.local(ex.bf16", "= 0.1"):
        assert sum(word in text for text in texts) > 2, word


def test_names_are_hostile() -> None:
    """Half of the programs call sizes, loops and arrays what C, CUDA and the schedule call other things."""
    seen: set[str] = set()
    for number in range(200):
        pick = random.Random(number)
        text, sizes = renamed(random_text(pick), SIZES, pick)
        compile(text, "hostile", "exec")
        seen |= set(re.findall(r"\w+", text)) & set(HOSTILE)
        assert len({*sizes}) == len(SIZES)
    assert seen >= {"EOF", "INT_MAX", "M_PI", "_Complex", "SIMT_CHECKED", "__CUDA_ARCH__", "cudaError_t", "x_s", "S0", "y1"}


# -- it can fail -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("defect", [NO_ORDER, NO_FLOW], ids=["order", "flow"])
def test_a_question_that_is_not_asked_shows(defect: Patch) -> None:
    """With a defect in the product the same run finds counterexamples, and says how to make them."""
    with patched(defect):
        found = Trial(shrinks=2).run(SEED, range(40)).found
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
