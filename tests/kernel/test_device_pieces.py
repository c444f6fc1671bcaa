"""The device library in pieces: what is left out is not needed, and nothing that is."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.kernel.device import defined_names, library_names, library_text
from explorer.kernel.device.pieces import needed, pieces
from explorer.kernel.emit import emit
from explorer.run.nvrtc.compiler import compile_module
from explorer.strategies.auto import auto
from tests.transforms.multiblock import spread

M, N = ex.sizes("M N")


@pytest.mark.parametrize("part", library_names())
def test_all_pieces_together_are_the_part(part: str) -> None:
    text = library_text([part])
    every = " ".join(name for p in pieces(text) for name in p.names)
    assert needed([text], every) == [text]
    assert needed([text], "nothing_of_it") == []


@pytest.mark.parametrize("part", library_names())
def test_each_piece_of_code_is_known_by_a_name_of_ours(part: str) -> None:
    for p in pieces(library_text([part])):
        if p.code.strip() and not p.code.lstrip().startswith("constexpr"):
            assert p.names
            assert not [n for n in p.names if n.startswith("__")]


@ex.program
def nothing_to_copy(x: ex.f64[M + 2, N + 2], y: ex.f64[M, N]):
    for i in range(M):
        for j in range(N):
            y[i, j] = x[i, j]


def test_a_described_array_that_nobody_copies() -> None:
    """The loop has no iterations: its copies are none, and the array's description is a parameter all the same."""
    s = nothing_to_copy.schedule(M=0, N=6).stage("x", "i", engine="bulk").shift("i", 2, of="S0").split("i", 4)
    assert s.run(device="cpu", time=False).correct
    module = emit(s.plan)
    assert module.tensor_maps
    assert "tensor_map x_map)" in module.text
    assert compile_module(module, "sm_90").kernels


def test_a_definition_brings_what_it_uses_and_its_comment() -> None:
    (text,) = needed([library_text(["reduce"]).split("// Reductions over", 1)[1].join(["// Reductions over", ""])], "warp_reduce")
    assert "T warp_reduce(T value" in text
    assert "// Over aligned groups of WIDTH lanes" in text
    assert "reduce_plan" not in text
    assert "block_reduce" not in text


def test_overloads_and_conditions_stay_together() -> None:
    (text,) = needed([library_text(["extreme"])], "max_nan")
    assert text.count("double max_nan(double a, double b)") == 1
    assert text.count("#if") == text.count("#endif") == 1


def test_a_text_defines_what_it_uses_and_compiles() -> None:
    module = emit(spread("peaks").collect("y", "handoff").plan)
    for name in ("struct reduce_max", "float max_nan(", "T block_reduce_first(", "bool handoff_joins("):
        assert name in module.text
    for name in ("struct reduce_min", "struct reduce_prod", "T block_reduce(", "T block_reduce_shared(", "T reduce_fold<"):
        assert name not in module.text
    assert compile_module(module, "sm_80").kernels


@ex.program
def shadowed(load_within: ex.f32[M, N], reduce_sum: ex.f32[M], block_reduce_first: ex.f32[M]):
    for i in range(M):
        reduce_sum[i] = 0.0
        for vec in range(N):
            reduce_sum[i] += load_within[i, vec]
        block_reduce_first[i] = reduce_sum[i]


def test_a_users_names_hide_nothing_of_the_library() -> None:
    made = auto(shadowed.schedule(M=33, N=4847))
    assert "block_reduce_first<" in made.cuda
    assert "float* __restrict__ block_reduce_first_," in made.cuda.replace(")", ",")
    compile_module(emit(made.plan), "sm_90")
    assert made.run(device="cpu").correct
    assert {"vec", "load_within", "block_reduce", "reduce_sum", "handoff_flag"} <= defined_names()
    assert not {"T", "Op", "if", "for"} & defined_names()
