"""Names without a declaration: an index stays an index, anything else is a temporary of the type that it needs."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.errors import ProgramError
from explorer.ir.expr import var
from tests.frontend.refused import nest
from tests.frontend.support import agrees, body

SIZES = {"M": 5, "N": 7}

ACCEPTED = {
    "an index": nest("row = M - 1 - i\ny[row, j] = x[row, (j + 1) % N]"),
    "an index of an index": nest("a = 2 * i\nb = a + j\nif b % 3 == 0:\n    y[i, j] += x[i, b % N]"),
    "a bound": "for i in range(M):\n    last = i + 1\n    for j in range(last):\n        y[i, j] += x[i, j]",
    "a constant": nest("half = N // 2\ny[i, j] += x[i, j // 2 % half] + half"),
    "a value": nest("t = x[i, j] * 2\ny[i, j] += t * t"),
    "a sum": "for i in range(M):\n    s = 0.0\n    for j in range(N):\n        s += x[i, j]\n    y[i, 0] += s",
    "a sum from a whole number": "for i in range(M):\n    s = 0\n    for j in range(N):\n        s += x[i, j]\n    y[i, 0] += s",
    "a product and a largest": "for i in range(M):\n    p = 1\n    m = -ex.inf\n    for j in range(N):\n        p *= x[i, j]\n"
    "        m = max(m, x[i, j])\n    y[i, 0] += p + m",
    "a truth value": "for i in range(M):\n    seen = False\n    for j in range(N):\n        seen = seen or x[i, j] > 1.5\n"
    "    y[i, 0] = 1.0 if seen else y[i, 0]",
    "a counter": "for i in range(M):\n    n = 0\n    for j in range(N):\n        if x[i, j] > 0:\n            n += 1\n"
    "    y[i, 0] += n",
    "in both branches": nest("if x[i, j] > 0:\n    t = x[i, j]\nelse:\n    t = -1\ny[i, j] += t"),
    "in branches on indices": nest("if i < j:\n    t = x[i, j]\nelif i == j:\n    t = 0\nelse:\n    t = x[0, j]\ny[i, j] += t"),
    "with a type": nest("t: ex.f64 = 0.5\nt += x[i, j]\ny[i, j] += t"),
    "assigned again": nest("t = x[i, j]\nt = t * t\nt -= 1\ny[i, j] += t"),
    "carried": "prev = 0.0\nfor i in range(M):\n    y[i, 0] += x[i, 0] - prev\n    prev = x[i, 0]",
    "two loops, one name": "for i in range(M):\n    t = x[i, 0]\n    y[i, 0] += t\nfor i in range(N):\n    t = i + 1\n"
    "    y[0, i] += t",
    "swap": nest("t = x[i, j]\nx[i, j] = y[i, j]\ny[i, j] = t"),
    "argmax": "for i in range(M):\n    best = ex.argmax(x[i, k] for k in range(N))\n    y[i, 0] += x[i, best] + best",
}


@pytest.mark.parametrize("text", [pytest.param(t, id=k) for k, t in ACCEPTED.items()])
def test_a_name_means_what_python_means(text):
    agrees(body(text, "x: ex.f32[N + M, N + M], y: ex.f32[N + M, N + M]"), SIZES)


def types(text: str, signature: str = "x: ex.f32[N], p: ex.i64[N], d: ex.f64[N], h: ex.f16[N], y: ex.f32[N]") -> dict[str, str]:
    used = ", ".join(part for part in signature.split(", ") if f"{part[0]}[" in text)
    return {a.name: a.dtype.name for a in body(text, used).at(N=5).temporaries}


@pytest.mark.parametrize(("text", "dtype"), [
    ("t = 0\nfor i in range(N):\n    t += 1\ny[0] = t", "i32"),
    ("t = 0\nfor i in range(N):\n    t += p[i]\ny[0] = t", "i64"),
    ("t = 0\nfor i in range(N):\n    t += x[i]\ny[0] = t", "f32"),
    ("t = 0\nfor i in range(N):\n    t += h[i]\ny[0] = t", "f32"),
    ("t = 0.0\nfor i in range(N):\n    t += d[i]\ny[0] = ex.cast(t, ex.f32)", "f64"),
    ("t = x[0] > 0\ny[0] = 1.0 if t else 0.0", "bool"),
])
def test_a_name_has_the_type_that_holds_all_its_values(text, dtype):
    assert types(text) == {"t": dtype}


def test_an_index_leaves_no_temporary():
    program = body(nest("row = M - 1 - i\ny[row, j] = x[row, j]")).at(M=3, N=4)
    assert not program.temporaries
    assert program.statements[0].target.index[0] == 2 - var("i")


def test_an_index_from_data():
    definition = body("for i in range(N):\n    j = p[i]\n    k = p[j]\n    y[i] = x[j] + x[k]",
                      "x: ex.f32[N], p: ex.i32[N], y: ex.f32[N]")
    assert definition.schedule(N=40).run(device="cpu").correct


def test_a_value_that_no_iteration_gave_is_refused():
    text = "for i in range(N):\n    if i == 0:\n        t = 1.0\n    y[i] = t"
    with pytest.raises(ProgramError, match="before anything is written there"):
        body(text, "y: ex.f32[N]").schedule(N=4)


def test_a_sum_runs_as_a_schedule():
    s = body(ACCEPTED["a sum"], "x: ex.f32[N + M, N + M], y: ex.f32[N + M, N + M]").schedule(M=20, N=70)
    t = s.bind("i", "block.x").split("j", 32).bind("j.i", "thread.x").collect("s", "shuffle")
    run = t.run(device="cpu")
    assert run.correct
    assert np.isfinite(run.outputs["y"]).all()
