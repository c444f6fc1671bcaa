"""How many neighbours a thread computes, how much of their window it holds at a time, and what that takes.

A thread issues the multiply-adds, and for each access of the window its address, its guards and conversions: the more neighbours,
the fewer accesses for each.  But fewer threads have fewer loads in flight, and registers are few.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from ...gpu.spec import Gpu
from ..price import clock_of
from ..stitching.rates import LATENCY_US, LAUNCH_US, bandwidth_of
from .form import WindowForm

MOST_TILE, THREADS = 8, 128
"""Neighbours of a thread along one loop at most, and threads of a block."""
MOST_REGISTERS, FIXED_REGISTERS = 168, 40
"""32-bit registers of a thread, and of these for addresses and guards."""
MOST_BESIDE = 4
"""Neighbours of a thread along the last loop, where their windows are no vectors."""
LOAD, STORE, START = 3, 3, 80
"""Instructions of a load with its address and guards, of a store, and of a thread beside (counted in the machine code)."""
ISSUED = 0.7
"""Share of the multiprocessor's issue slots that are used."""
PATH_CYCLES = 3.0
"""Of an instruction where few warps are resident."""
WAIT_US = 0.5
"""From a window's loads to its products, from the second-level cache."""
THROUGH = 2.0
"""Cycles of a multiprocessor's first-level cache for each 128 bytes that a warp's access spans."""
LANES, SCHEDULERS, WAVEFRONT = 32, 4, 128
"""Of a warp; of a multiprocessor; bytes of a warp's access that go through at once."""


@dataclass(frozen=True)
class Shape:
    """How a thread computes its results.

    Attributes
    ----------
    loop : str
        Along which its results are neighbours that share their windows.
    tile : int
        How many of them.
    vector : int
        Results beside each other, along the last loop, whose windows lie beside each other too.
    inside : tuple of str
        Loops over the sum that the registers hold at a time, outermost first; the others are around.
    last : bool
        Whether the weights are copied first, with the axis of the last results last.
    """

    loop: str
    tile: int
    vector: int
    inside: tuple[str, ...]
    last: bool = False

    def __str__(self) -> str:
        beside = f", {self.vector} beside each other" * (self.vector > 1)
        return (f"windows, {self.tile} results a thread along {self.loop}{beside}, {', '.join(self.inside)} in registers"
                + ", weights copied first" * self.last)


@lru_cache(maxsize=64)
def priced(form: WindowForm, gpu: Gpu) -> tuple[tuple[Shape, float], ...]:
    """The shapes and their microseconds, the cheapest first."""
    found = [(shape, us) for shape in _shapes(form) if (us := _us(form, shape, gpu)) is not None]
    return tuple(sorted(found, key=lambda f: f[1]))


def _shapes(form: WindowForm) -> Iterator[Shape]:
    """Every shape that is worth pricing."""
    last = form.around[-1]
    slid = any(a == last for a, *_ in form.slides)  # neighbours along it share their windows, too
    most = min(form.result_vector, MOST_BESIDE) if slid else form.vector
    vectors = [n for n in (8, 4, 2, 1) if n <= most and form.extent(last) % n == 0]
    for loop, window, *_ in form.slides:
        own = [x for x in (window, form.run) if x]
        others = [x for x in form.sums if x not in own]
        extent = form.extent(loop)
        tiles = {n for n in range(1, MOST_TILE + 1) if extent % n == 0} | {n for n in (2, 4, 8) if n < extent}
        for tile in sorted(tiles):
            for vector in vectors if loop != last else (1,):
                if tile * vector * prod(form.extent(x) for x in form.sharing) == 1:
                    continue
                for count in range(len(others) + 1):
                    inside = (*others[len(others) - count:], *own)
                    yield Shape(loop, tile, vector, inside)
                    if form.weights_last and form.weights_step > 1:
                        yield Shape(loop, tile, vector, inside, last=True)


def _us(form: WindowForm, s: Shape, gpu: Gpu) -> float | None:
    """The time of a shape; None where a thread has too few registers."""
    window, step, hole = next(slide[1:] for slide in form.slides if slide[0] == s.loop)
    extents = {x: form.extent(x) for x in s.inside}
    run = extents.get(form.run, 1)
    sharing = prod(form.extent(x) for x in form.sharing)
    beside, wide, other, pitch = s.vector, s.vector, "", 1
    for a, r, c, d in form.slides:
        if a == form.around[-1]:
            pitch = c * (s.tile if a == s.loop else s.vector)  # elements from one thread's window to the next one's
            if a != s.loop and s.vector > 1:  # neighbours along the last loop share their windows, too
                beside, wide, other = (s.vector - 1) * c + d * (extents.get(r, 1) - 1) + 1, 1, r
    others = prod(n for x, n in extents.items() if x not in (window, form.run, other))
    pixels = ((s.tile - 1) * step + hole * (extents[window] - 1) + 1) * others
    words = max(1, 4 // form.itemsize)
    held = pixels * run * beside
    weights = sharing * prod(extents.values()) * (1 if other else s.vector)
    taken = weights // extents[window]  # element by element of the window
    registers = FIXED_REGISTERS + s.tile * s.vector * sharing + (held + taken) // words
    if registers > MOST_REGISTERS:
        return None
    times = prod(form.extent(x) for x in form.sums if x not in s.inside)
    wide = wide if s.vector > 1 else min(run, form.run_vector)
    loads = held // wide
    wide_weights = wide if s.vector > 1 else sharing if s.last else min(run, form.run_vector)
    weight_loads = -(-weights // max(1, wide_weights))
    outputs = s.tile * s.vector * sharing
    fma = outputs * prod(extents.values())
    stores = outputs // max(1, min(form.result_vector, max(s.vector, sharing)))
    issued = START + times * (fma + LOAD * (loads + weight_loads) + held + weights) + STORE * stores + outputs
    extent = form.extent(s.loop)
    threads = form.results / extent * -(-extent // s.tile) / (s.vector * sharing)
    warps = -(-threads // LANES)
    apart = 1 if not form.weights_step else max(1, form.weights_step * form.itemsize * LANES // WAVEFRONT)
    through_once = max(1.0, max(wide, pitch) * form.itemsize * LANES / WAVEFRONT)
    weights_beside = max(1.0, wide_weights * form.itemsize * LANES / WAVEFRONT) if form.weights_step else 1.0
    through = times * (loads * through_once + weight_loads * (weights_beside if s.last or s.vector > 1 else min(LANES, apart)))
    through *= THROUGH
    cycles = clock_of(gpu) * gpu.multiprocessors
    resident = min(gpu.max_threads_per_sm, gpu.registers_per_sm // registers) // LANES
    waves = max(1.0, warps / gpu.multiprocessors / resident)
    busy = max(warps * issued / SCHEDULERS / ISSUED / cycles, warps * through / cycles, form.nbytes / bandwidth_of(gpu),
               waves * (times * WAIT_US + issued * PATH_CYCLES / clock_of(gpu)))
    return LAUNCH_US + LATENCY_US + busy + (LAUNCH_US + LATENCY_US if s.last else 0.0)
