"""Every error in waits for products is noticed by the judge of the IR, and by running it in some order."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from benchmarks.product_programs import product_nn
from explorer.kernel.interpreter import execute
from explorer.kernel.launches import PlanIR, plan_ir
from explorer.run.inputs.arguments import seeded_arrays
from explorer.strategies.contraction.form import product_form
from explorer.strategies.contraction.moves import build
from explorer.strategies.contraction.shapes import Tiling
from tests.transforms.test_overlap import tiled

from .ir import ir_mutants
from .ir_products import PRODUCTS
from .test_ir_judged import faults
from .test_ir_mutants import ORDERS


@pytest.mark.parametrize(("stages", "rows"), [(2, 64), (3, 128)])
def test_the_judge_notices_them(stages: int, rows: int) -> None:
    ir = plan_ir(tiled(stages, rows).overlap("k").plan)
    assert faults(ir) == []
    made = Counter[str]()
    for mutant in ir_mutants(ir, PRODUCTS):
        made[mutant.kind] += 1
        assert faults(mutant.ir), (mutant.kind, mutant.at)
    assert made.keys() == PRODUCTS.keys()


def test_blocks_that_a_joined_grid_has_too_many_skip_every_product() -> None:
    """64 blocks add up what 4 multiply: the others neither multiply nor have anything to wait for."""
    written = product_nn.schedule(M=64, N=128, K=512)
    form = product_form(written, written.plan.kernels[0].id)
    assert form is not None
    made = build(written, form, Tiling("warpgroup", 64, 64, 64, 1, 1, 2, slices=2))
    joined = made.join(made.plan.kernels[1].id, "grid")
    assert re.search(r"if \(i < 1\)\s+wgmma_m64n64", joined.cuda)
    assert joined.run(device="cpu")
    ir = plan_ir(joined.plan)
    assert faults(ir) == []
    for mutant in ir_mutants(ir, {kind: rule for kind, rule in PRODUCTS.items() if kind != "a product is skipped"}):
        assert faults(mutant.ir), (mutant.kind, mutant.at)


def test_running_notices_them() -> None:
    s = tiled(2, M=64, N=64, K=192).overlap("k")
    arrays = seeded_arrays(s.source, 1)
    wanted = np.asarray(arrays["x"], float) @ np.asarray(arrays["y"], float)

    def noticed(ir: PlanIR) -> bool:
        runs = (execute(ir, arrays, order) for order in ORDERS)
        return any(run.hazards or not np.allclose(np.asarray(run.outputs["z"], float), wanted, 4e-3, 0.05) for run in runs)

    assert not noticed(plan_ir(s.plan))
    for mutant in ir_mutants(plan_ir(s.plan), PRODUCTS):
        assert noticed(mutant.ir), (mutant.kind, mutant.at)
