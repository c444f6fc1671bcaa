"""What tensor cores compute in a second, by the instruction that asks them."""

from __future__ import annotations

from ..gpu.spec import Gpu
from ..ir.instructions import Instruction, Mma

HOPPER_MMA = 0.63
"""Share of the peak that ``mma.sync`` reaches on Hopper, whose own instructions are those of a warpgroup (Luo et al.,
"Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via Microbenchmarking", IPDPS 2024)."""
DOUBLE_F64 = 2.0
"""Double-precision tensor cores compute twice what the other units do (A100 and H100 datasheets)."""


def tensor_flops_per_s(row: Instruction, gpu: Gpu) -> float:
    """Operations of a second, a product and its addition counted as two."""
    if row.a.name == "f64":
        return DOUBLE_F64 * gpu.f64_flops_per_s
    rate = gpu.f16_tensor_flops_per_s * 2 / row.a.bytes  # bytes halved, products doubled
    return rate * (HOPPER_MMA if isinstance(row, Mma) and gpu.compute_capability[0] == 9 else 1.0)
