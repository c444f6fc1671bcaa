"""One measure for every library in the process: device time as CUPTI sees it, cold and clean L2, initialisation counted.

A time is the median over repeats of the summed durations of all kernels and memory operations that one call issues.  Host
launch cost and gaps are left out, so a library that needs several kernels is favoured, never harmed.  Before each repeat
256 MiB are written and another 256 MiB read: a cache full of dirty lines would charge the next kernel for their write-back.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch

from explorer.kernel.module import CudaModule
from explorer.run.cuda.cupy_engine import CupyEngine
from explorer.run.kernel import Kernel
from explorer.run.nvrtc.compiler import compile_module
from explorer.schedule import Schedule

TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64, "i8": torch.int8,
         "i32": torch.int32, "i64": torch.int64, "bool": torch.bool}


MARK = "bench_mark"
"""Name of the kernel that stands before and behind what is timed."""
SHORT_US, MORE = 20.0, 3
"""Calls of fewer microseconds than this get so many times the turns: theirs differ by a tenth from one to the next."""


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

    def sampled(self, calls: Sequence[Callable[[], Any]]) -> list[float]:
        """A cold sample of each call in microseconds, one after the other, all in one profile.

        A kernel of no work stands before and behind each call, so that what the call issues can be told from the rest.
        """
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            for call in calls:
                self.flush()
                self._mark()
                call()
                self._mark()
        found: list[float] = []
        inside = False
        on_device = [e for e in profile.events() if e.device_type != torch.autograd.DeviceType.CPU]
        for event in sorted(on_device, key=lambda e: e.time_range.start):
            if event.name == MARK:
                inside = not inside
                found += [0.0] * inside
            elif inside:
                found[-1] += event.time_range.elapsed_us()
        if len(found) == len(calls) and not inside:
            return found
        if len(calls) == 1:
            raise RuntimeError(f"{len(found)} of 1 call profiled")
        return [sample for call in calls for sample in self.sampled([call])]

    def _mark(self) -> None:
        """Launch a kernel of no work, and wait."""
        torch.cuda.synchronize()
        self._marker((1,), (1,), ())
        torch.cuda.synchronize()

    @cached_property
    def _marker(self) -> Any:
        import cupy

        return cupy.RawKernel(f'extern "C" __global__ void {MARK}() {{}}', MARK)

    def time_us(self, fn: Callable[[], Any]) -> float:
        """Median of cold samples, after a warm-up."""
        return self.times_us({"it": fn})["it"]

    def times_us(self, fns: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
        """Medians of several calls, their samples taken in turn, so that a drifting clock hits all alike."""
        return {name: statistics.median(taken) for name, taken in self.samples_us(fns).items()}

    def samples_us(self, fns: Mapping[str, Callable[[], Any]]) -> dict[str, list[float]]:
        """Cold samples of several calls, turn by turn, each turn in another order; more turns where a call takes a moment."""
        for fn in fns.values():
            for _ in range(2):
                fn()
        torch.cuda.synchronize()
        samples: dict[str, list[float]] = {name: [] for name in fns}
        names, turn = list(fns), 0
        while turn < self.repeats or (turn < self.repeats * MORE and min(map(min, samples.values())) < SHORT_US):
            order = names[turn % len(names):] + names[:turn % len(names)]
            order = order if turn // len(names) % 2 == 0 else order[::-1]
            for name, us in zip(order, self.sampled([fns[name] for name in order]), strict=True):
                samples[name].append(us)
            turn += 1
        return samples

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
    maps: dict[str, Any] = field(default_factory=dict)

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
            self.engine.launch(self.program, launch, [self._argument(name) for name in launch.arguments])

    def _argument(self, name: str) -> Any:
        """A tensor, or the tensor map of one, which is made once."""
        maps = {m.name: m for m in self.module.tensor_maps}
        if name not in maps:
            return _Pointer(self.tensors[name]), 0
        if name not in self.maps:
            array = maps[name].buffer
            self.maps[name] = self.engine.encode(maps[name], self.module.buffer(array), _Pointer(self.tensors[array]), 0)
        return self.maps[name]

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
