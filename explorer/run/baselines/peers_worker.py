"""The process in which array libraries are timed on the GPU: a library's faults and memory are not the notebook's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from importlib import import_module
from typing import Any

import numpy as np

FLUSH_BYTES = 256 << 20
"""Written and then read before each repeat, which leaves a cache of clean foreign lines."""
WARMUP = 3


class Backend:
    """The worker's methods; each returns microseconds between CUDA events around calls, their launches included.

    Parameters of each are ``function``, ``"module:name"``, called as ``function(arrays, sizes)``; `arrays`, copied to the GPU
    before the clock starts; `sizes`; and `repeats`.
    """

    def __init__(self, note: Callable[[str], None]) -> None:
        self.note = note

    def time_cupy(self, function: str, arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int], repeats: int) -> list[float]:
        """A NumPy function on CuPy arrays."""
        import cupy

        call = _function(function)
        held = {key: cupy.asarray(value) for key, value in arrays.items()}
        return self._timed(lambda: call(dict(held), dict(sizes)), repeats)

    def time_torch(self, function: str, arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int], repeats: int) -> list[float]:
        """A NumPy function that ``torch.compile`` has translated for the GPU."""
        import torch

        call, names = _function(function), tuple(arrays)

        def plain(*values: Any) -> tuple[Any, ...]:
            return tuple(call(dict(zip(names, values, strict=True)), dict(sizes)).values())

        compiled = torch.compile(torch.compiler.wrap_numpy(plain), dynamic=False)
        held = [torch.from_numpy(np.asarray(value, order="C")).cuda() for value in arrays.values()]
        stream = torch.cuda.current_stream()
        return self._timed(lambda: compiled(*held), repeats, stream.cuda_stream)

    def _timed(self, work: Callable[[], object], repeats: int, stream: int = 0) -> list[float]:
        import cupy

        dirty, clean = cupy.empty(FLUSH_BYTES // 4, cupy.float32), cupy.zeros(FLUSH_BYTES // 4, cupy.float32)
        samples = []
        for turn in range(-WARMUP, repeats):
            self.note(f"repeat {turn + 1} of {repeats}")
            dirty.fill(0)
            clean.sum()
            cupy.cuda.runtime.deviceSynchronize()
            start, stop = cupy.cuda.Event(), cupy.cuda.Event()
            with cupy.cuda.ExternalStream(stream) if stream else nullcontext():
                start.record()
                work()
                stop.record()
            stop.synchronize()
            if turn >= 0:
                samples.append(cupy.cuda.get_elapsed_time(start, stop) * 1e3)
        return samples


def _function(name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)
