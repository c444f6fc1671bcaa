"""One measure for every library in the process: device time as CUPTI sees it, cold and clean L2, initialisation counted.

A time is the median over repeats of the summed durations of all kernels and memory operations that one call issues.  Host
launch cost and gaps are left out, so a library that needs several kernels is favoured, never harmed.  Before each repeat
256 MiB are written and another 256 MiB read: a cache full of dirty lines would charge the next kernel for their write-back.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch

from explorer.codegen.module import CudaModule
from explorer.run.cuda_engine import CupyEngine
from explorer.run.kernel import Kernel
from explorer.run.nvrtc import compile_module
from explorer.schedule import Schedule

TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64, "i8": torch.int8,
         "i32": torch.int32, "i64": torch.int64, "bool": torch.bool}


class Bench:
    """Clock and results of one process on one GPU."""

    def __init__(self, repeats: int = 9) -> None:
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        self.repeats = repeats
        self.dirty = torch.empty(64 << 20, dtype=torch.float32, device="cuda")
        self.clean = torch.zeros(64 << 20, dtype=torch.float32, device="cuda")
        self.rows: list[dict[str, Any]] = []
        import cupy

        self.versions = {"torch": torch.__version__, "cupy": cupy.__version__}

    @cached_property
    def gpu(self) -> str:
        """The device's name."""
        return torch.cuda.get_device_name(0)

    def flush(self) -> None:
        """Fill the L2 cache with clean lines of no interest."""
        self.dirty.zero_()
        self.clean.sum()
        torch.cuda.synchronize()

    def once(self, fn: Callable[[], Any]) -> float:
        """One cold sample in microseconds."""
        self.flush()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            fn()
            torch.cuda.synchronize()
        return sum(e.device_time_total for e in profile.key_averages())

    def time_us(self, fn: Callable[[], Any]) -> float:
        """Median of cold samples, after a warm-up."""
        return self.times_us({"it": fn})["it"]

    def times_us(self, fns: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
        """Medians of several calls, their samples taken in turn, so that a drifting clock hits all alike."""
        for fn in fns.values():
            for _ in range(2):
                fn()
        torch.cuda.synchronize()
        samples: dict[str, list[float]] = {name: [] for name in fns}
        for turn in range(self.repeats):
            names = list(fns)
            for name in names[turn % len(names):] + names[:turn % len(names)]:
                samples[name].append(self.once(fns[name]))
        return {name: statistics.median(taken) for name, taken in samples.items()}

    @cached_property
    def copy_bytes_per_us(self) -> float:
        """Bandwidth of a 4 GiB copy on the device, bytes read plus bytes written."""
        a = torch.empty(1 << 30, dtype=torch.float32, device="cuda")
        b = torch.empty_like(a)
        return 8 * (1 << 30) / self.time_us(lambda: b.copy_(a))

    def row(self, suite: str, name: str, **figures: Any) -> None:
        """Keep and print one row."""
        self.rows.append({"suite": suite, "name": name, **figures})
        cells = "  ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in figures.items())
        print(f"{suite:10s} {name:28s} {cells}", flush=True)

    def save(self, path: str | Path) -> None:
        """All rows as JSON, with the device named."""
        data = {"gpu": self.gpu, **self.versions, "copy_TBps": round(self.copy_bytes_per_us / 1e6, 3),
                "measure": " ".join((__doc__ or "").split("\n\n")[1].split()), "rows": self.rows}
        Path(path).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


class _Pointer:
    """What the engine needs of a tensor's memory."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor, self.ptr = tensor, tensor.data_ptr()


@dataclass
class Ours:
    """A schedule's kernels, bound to tensors: call it to launch them on torch's stream.

    Attributes
    ----------
    module : CudaModule
    tensors : dict of str to Tensor
        One for each buffer; outputs and workspaces are poisoned.
    """

    module: CudaModule
    tensors: dict[str, torch.Tensor]
    program: Any
    engine: CupyEngine

    @classmethod
    def of(cls, schedule: Schedule, given: Mapping[str, torch.Tensor], gpu: str = "H200") -> Ours:
        """Compile for the GPU and bind."""
        kernel = Kernel.of(schedule, gpu)
        engine = _engine()
        program = engine.load(compile_module(kernel.module, kernel.gpu.arch).cubin, kernel.launches)
        tensors = {}
        for b in kernel.module.buffers:
            fresh = torch.empty(b.shape, dtype=TYPES[b.dtype.name], device="cuda")
            fresh.view(torch.uint8).fill_(0xFF) if fresh.dim() else fresh.view(1).view(torch.uint8).fill_(0xFF)
            tensors[b.name] = given[b.name].contiguous() if b.name in given else fresh
        return cls(kernel.module, tensors, program, engine)

    def __call__(self) -> None:
        """Launch everything once."""
        for launch in self.module.launches:
            self.engine.launch(self.program, launch, [(_Pointer(self.tensors[name]), 0) for name in launch.arguments])

    def __getitem__(self, name: str) -> torch.Tensor:
        return self.tensors[name]


_ENGINES: list[CupyEngine] = []


def _engine() -> CupyEngine:
    """One engine, on the stream that torch uses too."""
    if not _ENGINES:
        import cupy

        engine = CupyEngine()
        engine.stream = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)
        _ENGINES.append(engine)
    return _ENGINES[0]
