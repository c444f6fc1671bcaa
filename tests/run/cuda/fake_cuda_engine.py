"""An engine on NumPy: the device's rules run as they are, with memory, launches and faults played by Python.

A "cubin" here is Python text that defines one function per kernel; it gets each argument as the bytes from the array's
start to the end of its allocation, guard band included, so that it can do everything wrong that a kernel can.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from explorer.errors import ExplorerError, KernelFault, OutOfMemory
from explorer.kernel.module import Buffer, Launch, TensorMap
from explorer.run.cuda.worker import Backend
from explorer.run.inputs.seeded import Seeded

MEMORY_BYTES = 1 << 24


class GpuFault(Exception):
    pass


class NumpyEngine:
    method = "a counter"

    def __init__(self) -> None:
        self.used = 0
        self.clock = 0.0
        self.events: list[str] = []

    def describe(self) -> dict[str, Any]:
        return {"name": os.environ.get("FAKE_GPU", "NVIDIA H200"), "compute_capability": (9, 0), "multiprocessors": 99,
                "memory_bytes": MEMORY_BYTES, "l2_bytes": 1 << 20, "driver": 13000, "cupy": "none"}

    def allocate(self, nbytes: int) -> np.ndarray:
        self.used += nbytes
        if self.used > MEMORY_BYTES:
            raise OutOfMemory("The GPU's memory does not hold the arrays.", why=f"{self.used} bytes")
        return np.zeros(nbytes, dtype=np.uint8)

    def fill(self, handle: np.ndarray, offset: int, nbytes: int, byte: int) -> None:
        handle[offset: offset + nbytes] = byte

    def write(self, handle: np.ndarray, offset: int, host: np.ndarray) -> None:
        handle[offset: offset + host.nbytes] = host

    def read(self, handle: np.ndarray, offset: int, host: np.ndarray) -> None:
        host[:] = handle[offset: offset + host.nbytes]

    def copy(self, target: np.ndarray, target_offset: int, source: np.ndarray, source_offset: int, nbytes: int) -> None:
        self.events.append("restore")
        target[target_offset: target_offset + nbytes] = source[source_offset: source_offset + nbytes]

    def generate(self, handle: np.ndarray, offset: int, buffer: Buffer, seeded: Seeded) -> None:
        self.write(handle, offset, np.ascontiguousarray(seeded.host(buffer)).reshape(-1).view(np.uint8))

    def load(self, cubin: bytes, launches: Sequence[Launch]) -> dict[str, Any]:
        names: dict[str, Any] = {"np": np, "time": time, "os": os, "GpuFault": GpuFault, "engine": self}
        exec(cubin.decode(), names)
        return names

    def encode(self, tensor_map: TensorMap, buffer: Buffer, handle: np.ndarray, offset: int) -> tuple[np.ndarray, int]:
        self.events.append(f"encode {tensor_map.name} of {buffer.name}")
        return handle, offset

    def launch(self, program: dict[str, Any], launch: Launch, arguments: Sequence[tuple[np.ndarray, int]]) -> None:
        self.events.append(launch.kernel)
        program[launch.kernel](*(handle[offset:] for handle, offset in arguments), *launch.scalars)

    def synchronize(self) -> None:
        pass

    def record(self, work: Callable[[], None] | None) -> Callable[[], None]:
        return work or (lambda: None)

    def replay(self, recorded: Callable[[], None]) -> None:
        self.events.append("replay")
        recorded()

    def time(self, recorded: Callable[[], None]) -> float:
        self.events.append("start")
        recorded()
        self.events.append("stop")
        self.clock += 1.0
        return self.clock

    def flush(self) -> None:
        self.events.append("flush")

    def release(self) -> None:
        self.used = 0

    def explain(self, error: Exception) -> ExplorerError | None:
        return KernelFault("The kernel faulted.", why=str(error)) if isinstance(error, GpuFault) else None


class FakeBackend(Backend):
    def make_engine(self) -> NumpyEngine:
        return NumpyEngine()

    def events(self) -> list[str]:
        return self.engine.events  # type: ignore[attr-defined]
