"""Inputs that are indices: a run makes valid ones by itself, wherever the index comes from."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.run.inputs.arguments import recipes, seeded_arrays
from tests.frontend.support import body

SIGNATURE = {"x": "x: ex.f32[M, N]", "v": "v: ex.f32[N]", "p": "p: ex.i32[M]", "q": "q: ex.i32[M]", "f": "f: ex.f32[M]",
             "z": "z: ex.i64[M]", "y": "y: ex.f32[M]", "at": "at: ex.i32[M]"}


def made(lines: str, **sizes: int) -> ex.Schedule:
    text = "for i in range(M):\n" + "".join(f"    {line}\n" for line in lines.splitlines())
    signature = ", ".join(s for name, s in SIGNATURE.items() if f"{name}[" in text)
    definition = body(text, signature)
    return definition.schedule(**{k: v for k, v in (sizes or {"M": 37, "N": 11}).items() if k in definition.sizes})


PROGRAMS = {
    "direct": ("y[i] = x[i, p[i]]", {"p": (0, 11)}),
    "through a temporary": ("j = ex.local(ex.i32)\nj = p[i]\ny[i] = v[j]", {"p": (0, 11)}),
    "through two": ("j = ex.local(ex.i32)\nk = ex.local(ex.i32)\nj = p[i] + 1\nk = j * 2\ny[i] = v[k]", {"p": (-1, 5)}),
    "the other way round": ("y[i] = v[10 - p[i]]", {"p": (0, 11)}),
    "of an index": ("y[i] = v[q[p[i]]]", {"p": (0, 37), "q": (0, 11)}),
    "with an offset of a loop": ("y[i] = 0.0\nfor k in range(3):\n    y[i] += v[p[i] + k]", {"p": (0, 9)}),
    "behind a loop variable": ("y[i] = 0.0\nfor k in range(4):\n    y[i] += v[k - p[i]]", {"p": (-7, 1)}),
    "the sum of two": ("y[i] = v[p[i] + q[i]]", {"p": (0, 6), "q": (0, 6)}),
    "clamped": ("y[i] = v[min(max(p[i], 0), N - 1)]", {"p": (-8, 9)}),
    "clamped below": ("y[i] = v[max(p[i], 0)]", {"p": (-8, 11)}),
    "chosen": ("y[i] = v[p[i] if f[i] > 0 else 3]", {"p": (0, 11)}),
    "64 bits": ("y[i] = v[z[i]]", {"z": (0, 11)}),
    "of a strided table": ("y[i] = v[3 * p[i] + 1]", {"p": (0, 4)}),
    "of the largest": ("j = ex.local(ex.i32)\nj = ex.argmax(x[i, k] for k in range(N))\ny[i] = v[j]", {}),
    "of the largest, stored": ("at[i] = ex.argmax(x[i, k] for k in range(2, N))\ny[i] = x[i, at[i]]", {}),
    "of a counter": ("c = ex.local(ex.i32)\nc = 0\nfor k in range(N - 1):\n    c += 1 if x[i, k] > 0 else 0\ny[i] = v[c]", {}),
    "of two readers": ("y[i] = v[p[i]] + f[p[i]]", {"p": (0, 11)}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_seeded_input_is_a_valid_index(name: str) -> None:
    lines, expected = PROGRAMS[name]
    schedule = made(lines)
    found = recipes(schedule.source)
    assert {n: (found[n].low, found[n].high) for n in expected} == expected
    for seed in range(2):
        for array, (low, high) in expected.items():
            values = seeded_arrays(schedule.source, seed)[array]
            assert low <= values.min() <= values.max() < high


@pytest.mark.parametrize("name", ["through two", "clamped", "chosen", "of the largest, stored", "of a counter"])
def test_it_runs_with_them(name: str) -> None:
    assert made(PROGRAMS[name][0]).run(device="cpu").correct


@pytest.mark.parametrize("lines", ["y[i] = v[ex.cast(f[i], ex.i32)]", "y[i] = v[p[i] * q[i]]"])
def test_what_is_not_plain_is_said(lines: str) -> None:
    with pytest.raises(ex.DeviceError, match="No seeded input for f: which values index v is not plain") as caught:
        made(lines).run(device="cpu")
    assert "source line" in caught.value.where
    assert caught.value.hint == "pass arrays of your own to run()"
