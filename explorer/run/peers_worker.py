"""The process in which array libraries are timed on the GPU: a library's faults and memory are not the notebook's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

import numpy as np

FLUSH_BYTES = 256 << 20
"""Written and then read before each repeat, which leaves a cache of clean foreign lines."""


class Backend:
    """The worker's methods."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self.note = note

    def time_cupy(self, function: str, arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int], repeats: int) -> list[float]:
        """Microseconds between CUDA events around calls of a NumPy function on CuPy arrays, its launches included.

        Parameters
        ----------
        function : str
            ``"module:name"``; called as ``function(arrays, sizes)``.
        arrays : mapping of str to ndarray
            Copied to the GPU before the clock starts.
        sizes : mapping of str to int
        repeats : int
        """
        import cupy

        module, _, name = function.partition(":")
        call = getattr(import_module(module), name)
        held = {key: cupy.asarray(value) for key, value in arrays.items()}
        dirty, clean = cupy.empty(FLUSH_BYTES // 4, cupy.float32), cupy.zeros(FLUSH_BYTES // 4, cupy.float32)
        samples = []
        for turn in range(-3, repeats):
            self.note(f"repeat {turn + 1} of {repeats}")
            dirty.fill(0)
            clean.sum()
            cupy.cuda.runtime.deviceSynchronize()
            start, stop = cupy.cuda.Event(), cupy.cuda.Event()
            start.record()
            call(dict(held), dict(sizes))
            stop.record()
            stop.synchronize()
            if turn >= 0:
                samples.append(cupy.cuda.get_elapsed_time(start, stop) * 1e3)
        return samples
