"""`auto` of products, convolutions and attention where a size is 0: nothing to tile, and still right."""

from __future__ import annotations

import numpy as np
import pytest

import explorer as ex
from benchmarks import product_programs
from explorer.strategies import auto
from explorer.strategies.contraction import contraction
from explorer.strategies.contraction.shapes import Tiling

SMALL = {"M": 8, "N": 16, "K": 16, "B": 1, "H": 2, "L": 16, "D": 16}
CONV = {"B": 2, "C": 4, "H": 6, "W": 6, "E": 4, "D": 4, "R": 3, "S": 3, "P": 6, "Q": 6, "T": 1, "A": 1}
SIZES = {"product_nn": "MNK", "product_tt": "MNK", "bias_gelu": "MNK", "attention": "BHLD", "causal_attention": "BHLD",
         "conv": "BHWD"}
CASES = [(name, zero) for name, sizes in SIZES.items() for zero in sizes]


def written(name: str, zero: str) -> ex.Schedule:
    """A program of small sizes, one of them 0."""
    program = getattr(product_programs, name)
    sizes = {str(s): (CONV if name == "conv" else SMALL).get(str(s), 16) for s in program.sizes}
    return program.schedule(**sizes | {zero: 0})


@pytest.mark.parametrize(("name", "zero"), [c for c in CASES if c[1] in {str(s) for s in getattr(product_programs, c[0]).sizes}])
def test_auto_of_an_empty_size(name: str, zero: str) -> None:
    for gpu in ("H200", "A100"):
        made = auto(written(name, zero), gpu=gpu)
        assert made.judgement.legal
        run = made.run(device="cpu", time=False, ragged=False)
        assert run.correct
    if name.startswith("product") and zero == "K":
        assert not np.any(run.outputs["c"])


def test_an_empty_product_is_left_alone() -> None:
    empty = written("product_nn", "K")
    assert contraction(empty) is empty
    assert contraction(empty, tiling=Tiling("warp", 16, 16, 16, 1, 1, 2)) is empty
