"""Fragments loaded by ldmatrix: which copies are such loads, what is refused, and that a later step cannot break one."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.errors import TransformError
from explorer.poly.matrix_move import LOAD, MatrixMove, matrix_move
from explorer.strategies.contraction.form import product_form
from explorer.strategies.contraction.moves import build
from explorer.strategies.contraction.shapes import Tiling
from explorer.transforms.load_matrix import LoadMatrix
from tests.kernel.bulk_schedules import plane
from tests.strategies.products import product


def fragments(left: str = "n", right: str = "n") -> ex.Schedule:
    """A product on fragments that are loaded element by element."""
    written = product(ex.f16, ex.f32, left, right).schedule(M=32, N=32, K=32)
    form = product_form(written, written.plan.kernels[0].id)
    assert form is not None
    made = build(written, form, Tiling("warp", 32, 32, 32, 2, 2, 2))
    return written.replay([step for step in made.steps if step.name != "load_matrix"])


@pytest.mark.parametrize(("left", "right"), [(a, b) for a in "nt" for b in "nt"])
def test_rows_and_columns_of_every_order(left: str, right: str) -> None:
    """A row of 16 bytes lies along the fragment's rows, or across them: then it is transposed."""
    s = fragments(left, right)
    for name, transposed in (("x_r", left == "t"), ("y_r", right == "n")):
        leaf, above, _ = s.plan.resolve(name)  # type: ignore[misc]
        found = matrix_move(s.plan, leaf, above, LOAD)
        assert isinstance(found, MatrixMove)
        assert found.transposed is transposed
        s = s.load_matrix(name)
    assert s.run(device="cpu", time=False).correct


def test_a_fragment_with_zeros_beyond_the_copy_is_none() -> None:
    """A step of 32 of a product 16 deep: its copies end where the array does, and an instruction would read on."""
    written = product(ex.f16, ex.f32, "n", "n").schedule(M=32, N=32, K=16)
    form = product_form(written, written.plan.kernels[0].id)
    assert form is not None
    made = build(written, form, Tiling("warp", 32, 32, 64, 2, 2, 2, 16))
    assert "load_matrix" not in {step.name for step in made.steps}
    with pytest.raises(TransformError, match="x_r holds zeros beyond x_s"):
        made.load_matrix("x_r")
    assert made.run(device="cpu", time=False).correct


def test_what_is_no_such_load() -> None:
    s = fragments()
    with pytest.raises(TransformError, match="copies no fragment from shared memory"):
        s.load_matrix("x_s")
    with pytest.raises(TransformError, match="there is no statement"):
        s.load_matrix("nothing")
    with pytest.raises(TransformError, match="already"):
        s.load_matrix("x_r").load_matrix("x_r")


def test_a_later_step_cannot_take_it_apart() -> None:
    s = fragments().load_matrix("x_r")
    loop = s.plan.resolve("x_r")[1][-2].id  # type: ignore[index]
    with pytest.raises(TransformError, match="take the tile of x_r apart"):
        s.bind(loop, "seq")
    with pytest.raises(TransformError, match="take the tile of x_r apart"):
        s.stage("x_s", s.plan.resolve("x_r")[1][-1].id)  # type: ignore[index]


def test_fragments_loaded_ahead_stay_such_loads() -> None:
    s = fragments().load_matrix("x_r").load_matrix("y_r")
    loop = next(x.id for x in s.plan.resolve("x_r")[1][::-1] if x.role == "seq" and x.extent > 1)  # type: ignore[index]
    s = s.pipeline(loop, 2, copies=("x_r", "y_r"), asynchronous=False)
    assert s.cuda.count("load_matrix<") > 4
    assert s.run(device="cpu", time=False).correct


def test_a_part_of_a_fragment_is_none() -> None:
    s = fragments()
    s = s.cut(s.plan.resolve("x_r")[1][-2].id, 2)  # type: ignore[index]
    with pytest.raises(TransformError, match="registers and the lanes of a fragment"):
        s.load_matrix("x_r")


def test_a_register_of_its_own_is_no_fragment() -> None:
    """A lane copies one element of shared memory into a scalar."""
    s = plane.schedule(D=4, E=32).bind("e", "lane").stage("x", "d").stage("x_s", "e", space="register")
    assert not [step for leaf, _, _ in s.plan.leaves for step in LoadMatrix.candidates(s.plan, leaf.id)]
