"""Cells that a program writes nowhere, and arrays passed for outputs, are said."""

from __future__ import annotations

import numpy as np
import pytest

import explorer as ex

N = ex.sizes("N")
CPU = {"device": "cpu", "time": False, "ragged": False}


@ex.program
def stencil(u: ex.f32[N, N], v: ex.f32[N, N]):
    for i in range(1, N - 1):
        for j in range(1, N - 1):
            v[i, j] = 0.5 * u[i - 1, j] + 0.5 * u[i + 1, j]


@ex.program
def bordered(u: ex.f32[N, N], v: ex.inout[ex.f32[N, N]]):
    for i in range(1, N - 1):
        for j in range(1, N - 1):
            v[i, j] = u[i, j]


@ex.program
def added(x: ex.f32[N, N], y: ex.f32[N]):
    for i in range(N):
        for j in range(N):
            y[i] += x[i, j]


def test_cells_that_nothing_writes_are_not_called_right() -> None:
    run = stencil.schedule(N=20).run(**CPU)
    assert run.correct
    assert "v: 324 cells right" in str(run)
    note = "76 cells of v are written by nothing and hold no value; to keep the caller's there, declare v: ex.inout[ex.f32[N, N]]"
    assert run.notes == (note,)
    assert "324" in run._repr_html_()


def test_what_is_passed_for_an_output_is_said_to_be_unused() -> None:
    u = np.ones((20, 20), np.float32)
    assert "what was passed for v is not used: v is an output" in stencil.schedule(N=20).run({"u": u, "v": u}, **CPU).notes


def test_what_the_note_proposes_keeps_the_border() -> None:
    u = np.ones((20, 20), np.float32)
    run = bordered.schedule(N=20).run({"u": u, "v": 7 * u}, **CPU)
    assert "v: 400 cells right" in str(run)
    assert run.notes == ()
    assert run.outputs["v"][0, 0] == 7


def test_a_sum_without_a_start_says_why_it_wants_its_output() -> None:
    with pytest.raises(ex.DeviceError, match="y is read before the program writes all of it") as caught:
        added.schedule(N=4).run({"x": np.ones((4, 4))}, **CPU)
    assert "y[…] = 0.0 before the loop" in caught.value.hint
