"""Attention in one kernel: tiles of keys in one loop, scores and weights in the fragments of tensor instructions.

Flash attention (Dao et al., NeurIPS 2022) as a schedule.  Two products with a maximum and a sum of exponentials between them are
recognised from their accesses (:mod:`~explorer.strategies.attention.form`), and built by moves
(:mod:`~explorer.strategies.attention.moves`): `running` for the algebra, `replicate` and `shuffle` for what lanes share.  On
Hopper warpgroups multiply and a producer's warp copies (:mod:`~explorer.strategies.attention.group`), in tiles that a small model
chooses (:mod:`~explorer.strategies.attention.model`); elsewhere warps do.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ...errors import ScheduleError
from ...gpu.spec import Gpu, default_gpu
from ...schedule import Schedule
from .form import AttentionForm, ready_form
from .group import build_of_groups
from .model import group_tilings, tiling_us
from .moves import Tiling, build, step_of

ROWS_OF_WARP = (32, 16)
"""Two rows of instructions read a fragment of keys or values once: what shared memory gives is less than what they multiply."""
KEYS = (128, 64, 32, 16)
DEPTHS = (16, 8)
"""Of an instruction of a warp: sm_75 has the shorter one alone (PTX ISA, "mma.m16n8k8")."""
TRIED = 4
"""Tilings that are tried, of warpgroups and of warps, until one can be built."""
REGISTERS, OTHER, TRIANGLE = 200, 60, 1.35
"""Of a thread's 255 registers, so many are taken for fragments; beside them so many are used; and so many times as many where
each weight is asked whether it is behind the diagonal (of the tilings of these, for 64 and 128 columns, by NVRTC for sm_90)."""
FILE = 65536
"""Registers of a multiprocessor (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability")."""


def tilings(form: AttentionForm, gpu: Gpu) -> Iterator[Tiling]:
    """Tilings that fit into registers and shared memory: many rows to a warp first, two blocks at once, wide tiles."""
    rows, keys, depth, columns = form.extents
    arch = int("".join(filter(str.isdigit, gpu.arch)))
    deep = next((n for n in DEPTHS if (row := step_of(form, n)) and row.runs_on(arch)), 0)
    if not deep:
        return
    found = list[tuple[tuple[float, ...], Tiling]]()
    for own, warps, tile in product(ROWS_OF_WARP, (4, 8, 2, 1), KEYS):
        stages = 2 if keys > tile else 1
        shared = 2 * (own * warps * depth + stages * tile * (depth + columns))
        held = own // 16 * (columns // 2 + depth // 4 + tile // 2 + tile // 4) * (TRIANGLE if form.triangular else 1)
        wide = own * warps > max(rows, 16) + 15 or tile > max(keys, 16) + 15
        if shared > gpu.shared_bytes_per_block_optin or held > REGISTERS or wide:
            continue
        blocks = min(FILE // int(32 * warps * (held + OTHER)), gpu.shared_bytes_per_sm // shared)
        found.append(((-own, blocks < 2, 1 / (own * warps) + 4 / tile), Tiling(own * warps, warps, tile, stages, depth=deep)))
    yield from (t for _, t in sorted(found, key=lambda x: x[0]))


def attention(schedule: Schedule, kernel: str = "", gpu: Gpu | None = None, tiling: Tiling | None = None,
              approximate: bool = True) -> Schedule:
    """Give two products with a softmax between them one kernel on tensor cores.

    Parameters
    ----------
    schedule : Schedule
    kernel : str
        Which kernel (default: the first); nothing of it is spread.
    gpu : Gpu, optional
        By default the H200.
    tiling : Tiling, optional
        By default the first that can be built.
    approximate : bool
        Whether the exponentials may use the special-function unit.

    Returns
    -------
    Schedule
        Legal; the same schedule where the kernel is no attention, or the GPU has no instruction for its types.

    Raises
    ------
    ScheduleError
        If the tiling that is asked for cannot be built.
    """
    kernel, gpu = kernel or schedule.plan.kernels[0].id, gpu or default_gpu()
    ready = ready_form(schedule, kernel)
    if ready is None:
        return schedule
    if tiling is not None:
        return _made(*ready, tiling, approximate)
    return next((made for _, made in _built(*ready, gpu, approximate)), schedule)


def attention_tilings(schedule: Schedule, gpu: Gpu, approximate: bool = True
                      ) -> tuple[Schedule, list[tuple[Tiling, float | None]]]:
    """The schedule of :func:`attention`, and all tilings of the program's first kernel.

    Parameters
    ----------
    schedule : Schedule
    gpu : Gpu
    approximate : bool

    Returns
    -------
    Schedule
    list of (Tiling, float or None)
        That of the schedule first, the others by their time in microseconds, where the model knows it; those of warps only where
        none of warpgroups fits.  Nothing where the kernel is no attention.
    """
    ready = ready_form(schedule, schedule.plan.kernels[0].id)
    first = next(_built(*ready, gpu, approximate), None) if ready else None
    if ready is None or first is None:
        return schedule, []
    (own, made), form = first, ready[1]
    every = [(t, tiling_us(form, t, gpu)) for t in group_tilings(form, gpu)] or [(t, None) for t in tilings(form, gpu)]
    return made, sorted(every, key=lambda found: found[0] != own)


def _built(schedule: Schedule, form: AttentionForm, gpu: Gpu, approximate: bool) -> Iterator[tuple[Tiling, Schedule]]:
    """The tilings that can be built, and their schedules."""
    for t in (*list(group_tilings(form, gpu))[:TRIED], *list(tilings(form, gpu))[:TRIED]):
        try:
            made = _made(schedule, form, t, approximate)
        except ScheduleError:
            continue
        if made.judgement.legal:
            yield t, made


def _made(schedule: Schedule, form: AttentionForm, t: Tiling, approximate: bool) -> Schedule:
    """The schedule of a tiling, of warpgroups or of warps."""
    return (build_of_groups if t.groups else build)(schedule, form, t, approximate)
