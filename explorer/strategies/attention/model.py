"""The time of an attention's tiling on warpgroups, before there is a plan.

A step is one tile of keys: a warpgroup multiplies twice, and takes the maximum and the exponentials of its scores between.  One
does neither while it does the other, so that a step takes the sum of both, or, where several warpgroups share a multiprocessor,
the longer one of all of theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ...gpu.spec import Gpu
from ...ir.dtype import DTYPES
from ...ir.instructions import wgmma
from ...ir.layout import GROUP
from ...poly.roles import UNIT, shares
from ..contraction.shapes import GIVEN, GROUP_ROWS
from ..pipelines.rates import RATES
from ..price import clock_of
from ..tensor_rates import tensor_flops_per_s
from .form import AttentionForm
from .group import depth_of
from .moves import Tiling

GROUPS, KEYS = (2, 1, 3), (192, 144, 128, 96, 64, 48, 32, 16)
OTHER, MASKED = 40, 1.21
"""Registers of a thread beside sums, scores and weights; and so many times as many of these where each score is asked whether it
is a row's (no spills, by ``ptxas`` for sm_90a, for 64 and 128 columns)."""
EXPONENTIALS, LANES = 16, 128
"""Results of the special-function units, and f32 operations, of a multiprocessor in a cycle (CUDA C++ Programming Guide,
"Throughput of Native Arithmetic Instructions", compute capability 9.0)."""
OF_SCORE, ASKED, SHARED = 6.5, 1.35, 3.0
"""Instructions of a score (scale, maximum, difference, sum, conversion); so many times as many where it is asked for, and where
parts of rows go through shared memory."""
WAIT, EXCHANGE = 60, 250
"""Cycles from a product's last instruction to its results, and of a row's parts through its lanes and the scales behind."""


def held(form: AttentionForm, keys: int) -> int:
    """Registers of a thread for sums, scores and weights, and what else it uses."""
    words = form.extents[3] / 2 + keys / 2 + keys / 4
    return int(words * (MASKED if form.triangular or form.extents[1] % keys else 1)) + OTHER


def group_tilings(form: AttentionForm, gpu: Gpu) -> Iterator[Tiling]:
    """Tilings of warpgroups that fit into registers and shared memory, the shortest time first."""
    rows, every, depth, columns = form.extents
    if gpu.compute_capability[0] != 9 or depth % 16 or columns % 16 or max(depth, columns) > 256:
        return
    found = list[tuple[float, Tiling]]()
    for groups, keys in product(GROUPS, KEYS):
        stages = 2 if every > keys else 1
        share = shares(groups, 0)[0]
        taken = held(form, keys) > share and stages > 1
        most = (share * (groups + 1) - GIVEN) // groups // UNIT * UNIT if taken else share
        t = Tiling(groups * GROUP_ROWS, 4 * groups, keys, stages, groups, most if taken else 0)
        wide = t.rows >= rows + GROUP_ROWS or keys >= every + 16
        fits = shared_bytes(form, t) <= gpu.shared_bytes_per_block_optin and held(form, keys) <= min(most, 240)
        if fits and not wide and (groups > 1 or not taken):
            found.append((tiling_us(form, t, gpu), t))
    yield from (t for _, t in sorted(found, key=lambda x: (x[0], str(x[1]))))


def shared_bytes(form: AttentionForm, t: Tiling) -> int:
    """Of a block: queries, and the stages of keys and values."""
    _, _, depth, columns = form.extents
    return 2 * (t.rows * depth + t.stages * t.keys * (depth + columns)) + 1024


def tiling_us(form: AttentionForm, t: Tiling, gpu: Gpu) -> float:
    """Microseconds of all blocks."""
    rows, every, depth, columns = form.extents
    f16, f32 = DTYPES[form.dtype], DTYPES["f32"]
    row = wgmma(GROUP_ROWS, columns, 16, f16, f16, f32)
    assert row is not None
    per_cycle = tensor_flops_per_s(row, gpu) / gpu.multiprocessors / (clock_of(gpu) * 1e6) / 2
    waits = WAIT * (depth // depth_of(depth) + t.keys // depth_of(t.keys))
    tensor, scores = GROUP_ROWS * t.keys * (depth + columns) / per_cycle, GROUP_ROWS * t.keys
    asked = ASKED if form.triangular or every % t.keys else 1.0
    issued = (scores * OF_SCORE * asked * (SHARED if rows % t.rows else 1.0) + GROUP_ROWS * columns) / LANES
    softmax = max(issued, scores / EXPONENTIALS)
    threads = GROUP * (t.groups + (t.stages > 1))
    registers = 1 if t.registers else gpu.registers_per_sm // (threads * min(held(form, t.keys), 255))
    blocks = form.batch * -(-rows // t.rows)
    resident = max(1, min(registers, gpu.shared_bytes_per_sm // shared_bytes(form, t), -(-blocks // gpu.multiprocessors)))
    several = resident * t.groups
    copied = resident * 2 * t.keys * (depth + columns) / RATES["warpgroup"].load
    step = max(several * tensor, several * softmax, tensor + waits + softmax + EXCHANGE, copied)
    return -(-blocks // (gpu.multiprocessors * resident)) * -(-every // t.keys) * step / clock_of(gpu)
