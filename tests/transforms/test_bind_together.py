"""Several loops bound in one step: legal together where neither is alone."""

from __future__ import annotations

import pytest

from explorer.errors import IllegalSchedule, TransformError
from tests.properties.programs import define
from tests.properties.trial import Trial

TWO = """@ex.program
def f(x: ex.f32[M, N], y: ex.f32[M, N]):
    t = ex.local(ex.f32, M)
    for i in range(M):
        t[i] = 0.0
        for k in range(N):
            t[i] += x[i, k]
    for j in range(M):
        for l in range(N):
            y[j, l] = x[j, l] - t[j]
"""


def test_neither_loop_alone_and_both_together() -> None:
    s = define(TWO, "two.py").schedule(M=5, N=4)
    for name, other in (("i", "j"), ("j", "i")):
        with pytest.raises(IllegalSchedule) as refused:
            s.bind(name, "block.x")
        assert f"bind('{name}', 'block.x', also=('{other}',)) instead" in list(refused.value.finding.hints)
    both = s.bind(("i", "j"), "block.x")
    assert both == s.bind("i", "block.x", also=("j",)) == s.bind("i", "block.x", also="j")
    assert str(both.steps[0]) == "bind('i', 'block.x', also=('j',))"
    assert both.replay(both.steps).plan == both.plan
    trial = Trial(shrinks=0)
    trial.conclude("both", both)
    trial.conclude("strided", s.bind(("i", "j"), "block.x", count=2))
    trial.flush()
    assert len(trial.tally.pairs) == 2
    assert not trial.tally.found


def test_values_of_another_block_are_still_refused() -> None:
    s = define(TWO, "two.py").schedule(M=5, N=4).reverse("j")
    with pytest.raises(IllegalSchedule):
        s.bind(("i", "j"), "block.x")


def test_each_loop_has_to_fit() -> None:
    s = define(TWO, "two.py").schedule(M=5, N=4)
    for loops, words in ((("i", "i"), "named twice"), (("i", "k"), "already block.x"), (("i", "q"), "there is no loop 'q'")):
        with pytest.raises(TransformError, match=words):
            s.bind(loops, "block.x")
