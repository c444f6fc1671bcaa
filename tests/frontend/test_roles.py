"""Input, output or both: what an array is follows from the instances, or from a declaration."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.errors import ProgramError
from tests.frontend.support import body


def roles(lines: str, signature: str, **sizes: int) -> dict[str, str]:
    definition = body(lines, signature)
    return {a.name: a.role for a in definition.schedule(**sizes).source.parameters if a.role != "in"}


SIGNATURE = "x: ex.f32[N], y: ex.f32[N]"


def test_a_neighbour_that_nothing_has_written_makes_an_array_in_out():
    # the text writes y first; the instance i = 1 reads y[0], which nothing writes
    assert roles("for i in range(1, N):\n    y[i] = x[i]\n    y[i] += y[i - 1]", SIGNATURE, N=5) == {"y": "inout"}
    assert roles("y[0] = x[0]\nfor i in range(1, N):\n    y[i] = x[i]\n    y[i] += y[i - 1]", SIGNATURE, N=5) == {"y": "out"}


def test_a_read_that_comes_first_in_the_text_alone_does_not():
    text = "for i in range(N):\n    s = ex.local(ex.f32)\n    s = x[i]\n    for j in range(i):\n        s -= x[j] * y[j]\n"
    text += "    y[i] = s"
    assert roles(text, SIGNATURE, N=5) == {"y": "out"}


def test_what_is_read_first_and_not_wholly_written_stays_in_out():
    text = "for t in range(T):\n    for i in range(N):\n        y[i] = y[i] * x[i]"
    assert roles(text, SIGNATURE, N=5, T=0) == {"y": "inout"}
    text = "for i in range(N - 1):\n    if i > 0:\n        y[i] = y[i - 1] * x[i]\n    if i == 0:\n        y[i] = x[i]"
    assert roles(text, SIGNATURE, N=5) == {"y": "inout"}


def test_a_declared_array_keeps_what_the_caller_gave():
    definition = body("for i in range(1, N - 1):\n    y[i] = x[i]", "x: ex.f32[N], y: ex.inout[ex.f32[N]]")
    schedule = definition.schedule(N=6)
    assert schedule.source.array_of["y"].role == "inout"
    y = np.full(6, 7, np.float32)
    run = schedule.run({"x": np.arange(6, dtype=np.float32), "y": y}, device="cpu")
    assert run.outputs["y"].tolist() == [7, 1, 2, 3, 4, 7]
    assert run.correct
    assert "y: ex.inout[ex.f32[N]]" in schedule.script()


def test_a_declared_scalar():
    definition = body("for i in range(N):\n    y[i] = x[i] + s\n    s = x[i]", f"{SIGNATURE}, s: ex.inout[ex.f32]")
    assert definition.at(N=3).array_of["s"].role == "inout"


@pytest.mark.parametrize(("signature", "what", "hint"), [
    ("x: ex.inout[ex.f32[N]], y: ex.f32[N]", "x is declared in-out, and nothing writes it", "a statement that writes x"),
    ("x: ex.f32[N], y: ex.inout[float]", "ex.inout[float] is not an array type", "ex.f32[M, N]"),
    ("x: ex.f32[N], y: ex.inout", "ex.inout is not an array type", "ex.f32[M, N]"),
])
def test_refused(signature, what, hint):
    with pytest.raises(ProgramError) as caught:
        body("for i in range(N):\n    y[i] = x[i]", signature)
    assert what in caught.value.what
    assert hint in caught.value.hint


def test_a_temporary_that_an_earlier_iteration_writes():
    text = "last = ex.local(ex.f32)\nfor i in range(N):\n    if i > 0:\n        y[i] = last\n"
    text += "    if i == 0:\n        y[i] = 0.0\n    last = x[i]"
    assert roles(text, SIGNATURE, N=5) == {"y": "out"}
    text = "last = ex.local(ex.f32)\nfor i in range(N):\n    y[i] = last\n    last = x[i]"
    with pytest.raises(ProgramError, match="reads last before anything is written there"):
        roles(text, SIGNATURE, N=5)
