"""The time of an attention's tiling on warpgroups, before there is a plan.

A step is one tile of keys: a warpgroup multiplies twice, and takes the maximum and the exponentials of its scores between.  Both
add up; where several warpgroups share a multiprocessor, so do theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from ...gpu.spec import Gpu
from ...ir.dtype import DTYPES
from ...ir.instructions import wgmma
from ...ir.layout import GROUP
from ...poly.roles import UNIT, shares
from ...transforms.specialise import LEAST
from ..contraction.shapes import GROUP_ROWS
from ..pipelines.rates import RATES
from ..price import clock_of
from ..tensor_rates import tensor_flops_per_s
from .form import AttentionForm
from .moves import Tiling

GROUPS, KEYS, BLOCKS = (2, 1, 3), (192, 144, 128, 112, 96, 80, 64, 48, 32, 16), (1, 2, 3)
OTHER, MASKED = 40, 1.21
"""Registers of a thread beside sums, scores and weights; and so many times as many of these where some are asked whether they are
a row's (by ``ptxas`` for sm_90a, for 64 and 128 columns: no spills but of four words where a tile has an edge)."""
EXPONENTIALS, LANES = 16, 128
"""Results of the special-function units, and f32 operations, of a multiprocessor in a cycle (CUDA C++ Programming Guide,
"Throughput of Native Arithmetic Instructions", compute capability 9.0)."""
OF_SCORE, OF_STEP, SHARED = 4.6, 130, 3.0
"""Instructions of a score (maximum, multiply-add, power of two, sum, half a conversion) and of a step beside scores and the
scaled output (machine code for sm_90a); so many times as many where parts of rows go through shared memory."""
ASKED, STALLS = 1.7, 1.1
"""Times of a tile whose scores are asked for, and of the scores' instructions, which wait for each other."""
EXPOSED = 500
"""Cycles of a step that one warpgroup alone waits for its products and exchanges; of several, most pass while others compute."""
TURNS = {True: 0.97, False: 1.01}
"""Times as long, with turns of two warpgroups, whether rows end with a diagonal and both products are 128 wide, or not: 0.95 to
0.99, and 0.99 to 1.4 (H200; in narrower products waits for each other take longer)."""
BEGUN = {False: 8500, True: 6500}
"""Cycles of a block before its first step and behind its last one, in which other blocks of the multiprocessor compute: queries,
the first keys, the results; less where these go through shared memory (µs on an H100, so and by pairs that lanes store): 512 keys
99 and 109 in heads of 64, 168 and 184 in heads of 128; 2,048 keys 313 and 322, 476 and 493; with diagonals 76.5 and 86, 129 and
146, 221 and 230, 331 and 341."""
IN_TURN, STEP_IN_TURN = 2000, 100
"""Cycles of each warpgroup of a multiprocessor for a tile that a block takes in turn, beside its steps; of several blocks, where
results have 128 columns, less for fewer (512 and 2,048 keys, H200: heads of 64 102 to 89 µs and 317 to 302 in two blocks of one
warpgroup, heads of 128 169 to 142 and 480 to 464 in one block of two); and of each step, where no other block computes while
descriptors of queries are made: 8,192 keys in heads of 128 take 1,769 in turn and 1,744 otherwise."""


def held(form: AttentionForm, keys: int) -> int:
    """Registers of a thread for sums, scores and weights, and what else it uses."""
    words = form.extents[3] / 2 + keys / 2 + keys / 4
    return int(words * (MASKED if form.triangular or form.extents[1] % keys else 1)) + OTHER


def group_tilings(form: AttentionForm, gpu: Gpu) -> Iterator[Tiling]:
    """Tilings of warpgroups that fit into registers and shared memory, the shortest time first.

    Results go through shared memory where there is room for them.
    """
    rows, every, depth, columns = form.extents
    if gpu.compute_capability[0] != 9 or depth % 16 or columns % 16 or max(depth, columns) > 256:
        return
    found = list[tuple[float, Tiling]]()
    for groups, keys, blocks in product(GROUPS, KEYS, BLOCKS):
        stages = 2 if every > keys else 1
        if blocks > 1 and (groups > 1 or stages == 1):
            continue
        share = shares(groups, 0, blocks)[0]
        taken = stages > 1 and (blocks > 1 or (groups > 1 and held(form, keys) > share))
        most = (share * (groups + 1) - LEAST) // groups // UNIT * UNIT if taken else share
        t = Tiling(groups * GROUP_ROWS, 4 * groups, keys, stages, groups, most if taken else 0, blocks if blocks > 1 else 0)
        wide = t.rows >= rows + GROUP_ROWS or keys >= every + 16
        room = gpu.shared_bytes_per_block_optin if blocks == 1 else gpu.shared_bytes_per_sm // blocks - RESERVED
        if shared_bytes(form, through := replace(t, through=True)) <= room:
            t = through
        if shared_bytes(form, t) <= room and held(form, keys) <= min(most, 240) and not wide:
            for u in (t, *_in_turn(form, t, gpu)):
                found.append((tiling_us(form, u, gpu), u))
            if stages > 1 and groups == 2:
                found.append((tiling_us(form, u := replace(t, turns=True), gpu), u))
    yield from (t for _, t in sorted(found, key=lambda x: (x[0], str(x[1]))))


def _in_turn(form: AttentionForm, t: Tiling, gpu: Gpu) -> Iterator[Tiling]:
    """The same tiling in blocks that take tiles in turn, whose producer asks for the next tile's queries and keys meanwhile.

    Not with a diagonal: loops over keys are not trimmed then.  Tiles that are cut took longer so (512 keys in tiles of 80: 280 µs
    instead of 192, 2,048 in tiles of 112: 593 instead of 569, heads of 128, H200).
    """
    rows, every, *_ = form.extents
    grid = gpu.multiprocessors * max(1, t.blocks)
    whole = not form.triangular and every % t.keys == 0 and rows % t.rows == 0 and every // t.keys >= t.stages
    tiles = form.batch * rows // t.rows
    if t.stages == 1 or not whole or tiles <= grid:
        return
    if not t.blocks:  # no more blocks than take equally long, and often nothing is guarded; of two on a multiprocessor some would
        grid = -(-tiles // -(-tiles // grid))  # be alone: 2,048 keys 324 µs in 256 blocks, 308 in 264 (heads of 64, H200)
    u = replace(t, persistent=grid)
    room = gpu.shared_bytes_per_block_optin if not t.blocks else gpu.shared_bytes_per_sm // t.blocks - RESERVED
    if shared_bytes(form, u) <= room:
        yield u


RESERVED = 1024
"""Bytes of shared memory that each block takes beside its own (CUDA C++ Programming Guide, "Shared Memory", 9.0)."""


def shared_bytes(form: AttentionForm, t: Tiling) -> int:
    """Of a block: queries, those of the next tile too, the stages of keys and values, and results on their way out."""
    _, _, depth, columns = form.extents
    queries = (1 + (t.persistent > 0)) * t.rows * depth
    return 2 * (queries + t.stages * t.keys * (depth + columns) + t.through * t.rows * columns) + 1024


def tiling_us(form: AttentionForm, t: Tiling, gpu: Gpu) -> float:
    """Microseconds of all blocks.

    Warpgroups that share a multiprocessor multiply at one time and take their exponentials at one time, so that a step takes the
    sum of both for each of them (measured on an H200, of 165 tilings).
    """
    rows, _, depth, columns = form.extents
    f16, f32 = DTYPES[form.dtype], DTYPES["f32"]
    row = wgmma(GROUP_ROWS, columns, 16, f16, f16, f32)
    assert row is not None
    per_cycle = tensor_flops_per_s(row, gpu) / gpu.multiprocessors / (clock_of(gpu) * 1e6) / 2
    tensor, scores = GROUP_ROWS * t.keys * (depth + columns) / per_cycle, GROUP_ROWS * t.keys
    apart = SHARED if rows % t.rows else 1.0
    issued = (scores * OF_SCORE * apart + GROUP_ROWS * columns) / LANES + OF_STEP
    softmax = max(issued, scores / EXPONENTIALS) * STALLS
    threads = GROUP * (t.groups + (t.stages > 1))
    registers = max(t.blocks, 1) if t.registers else gpu.registers_per_sm // (threads * min(held(form, t.keys), 255))
    blocks = form.batch * -(-rows // t.rows)
    resident = max(1, min(registers, gpu.shared_bytes_per_sm // shared_bytes(form, t), -(-blocks // gpu.multiprocessors)))
    several = resident * t.groups
    copied = resident * 2 * t.keys * (depth + columns) / RATES["warpgroup"].load
    step = max(several * (tensor + softmax) + EXPOSED / several**2, copied)
    steps, asked = steps_of(form, t)
    step += STEP_IN_TURN * (t.persistent > 0 and resident == 1)
    own = IN_TURN * several * (columns / GROUP if resident > 1 else 1) + BEGUN[t.through] - BEGUN[True]
    begun = own if t.persistent else BEGUN[t.through] * 2 / (resident + 1)
    cycles = steps * step + asked * (ASKED - 1) * several * softmax + begun
    rounds = blocks / (gpu.multiprocessors * resident)
    cycles *= TURNS[form.triangular and depth + columns >= 2 * GROUP] if t.turns else 1.0
    return (max(rounds, 1.0) if form.triangular else -(-rounds // 1)) * cycles / clock_of(gpu)


def steps_of(form: AttentionForm, t: Tiling) -> tuple[float, float]:
    """Steps of a block on average, and how many of them have an edge: a diagonal, or keys beyond the last one."""
    rows, every, *_ = form.extents
    whole = -(-every // t.keys)
    if not form.triangular:
        return whole, float(every % t.keys > 0)
    ends = [min(whole, -(-min((n + 1) * t.rows, every) // t.keys)) for n in range(-(-rows // t.rows))]
    return sum(ends) / len(ends), 1 + t.rows / t.keys / 2
