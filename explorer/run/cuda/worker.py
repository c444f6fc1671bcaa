"""What the CUDA worker process does with a request: allocate, fill, launch, check, copy back, time.

Everything here is written against the small set of operations of an *engine* (`explorer.run.cuda.cupy_engine` has the one for
CuPy), so the rules that make a result trustworthy stand in one place, apart from the library that carries them out:
outputs and workspaces start as 0xFF bytes, every buffer lies between two guard bands that are looked at after each launch,
and each launch is waited for, so that a fault or a hang has a name.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import DeviceError, ExplorerError, KernelFault
from ...kernel.module import Buffer, Launch, TensorMap
from ...system.sharing import attach
from ..inputs.seeded import Seeded
from .engine import Engine

POISON = 0xFF
GUARD, GUARD_BYTES = 0xA5, 4096
EMPTY_SAMPLES = 15

Source = str | Seeded
"""A shared block's path, or how to make the values."""


@dataclass(frozen=True)
class Job:
    """One module with its arrays, as the parent sends it.

    Attributes
    ----------
    key : str
        Names the loaded program.
    buffers, launches, tensor_maps : tuple
        Of the module.
    sources : mapping of str to Source
        For each ``in`` and ``inout`` buffer.
    """

    key: str
    buffers: tuple[Buffer, ...]
    launches: tuple[Launch, ...]
    sources: Mapping[str, Source]
    tensor_maps: tuple[TensorMap, ...] = ()

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels, each once, in the order of their first launch."""
        return tuple(dict.fromkeys(launch.kernel for launch in self.launches))


class Backend:
    """The worker's methods.  A subclass names another engine."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self.note = note
        self.engine: Engine = self.make_engine()
        self.programs: dict[str, Any] = {}

    def make_engine(self) -> Engine:
        """The CuPy engine; imported here, so that only the worker needs CuPy and a GPU."""
        from .cupy_engine import CupyEngine

        return CupyEngine()

    def describe(self) -> dict[str, Any]:
        """Facts about the GPU and the driver."""
        return self.engine.describe()

    def load(self, key: str, cubin: bytes, launches: tuple[Launch, ...]) -> None:
        """Load machine code and keep it under a key."""
        with self._explained():
            self.programs[key] = self.engine.load(cubin, launches)

    def run(self, job: Job, sinks: Mapping[str, str]) -> None:
        """Run each launch once and write the arrays in `sinks` (name to block path)."""
        with self._explained():
            self._run(job, sinks)

    def _run(self, job: Job, sinks: Mapping[str, str]) -> None:
        arena = self._arena(job)
        for position, launch in enumerate(job.launches, 1):
            self._launch_once(arena, launch, f"launch {position} of {len(job.launches)}")
        self.note("copying the results")
        for name, path in sinks.items():
            self.engine.read(arena.handles[name], GUARD_BYTES, attach(path, arena.buffer(name).nbytes))

    def time(self, jobs: Sequence[Job], repeats: int, warmup: int, l2: str, seed: int) -> tuple[list[list[float]], float, str]:
        """Samples in microseconds for each job, the empty kernel's time, and how they were taken.

        Rounds go over all jobs in an order shuffled anew each time, so that a drifting clock hits all alike.
        """
        with self._explained():
            return self._time(jobs, repeats, warmup, l2, seed)

    def _time(self, jobs: Sequence[Job], repeats: int, warmup: int, l2: str, seed: int) -> tuple[list[list[float]], float, str]:
        arenas = [self._arena(job) for job in jobs]
        for arena in arenas:  # once with a wait after each launch: a fault or a hang shows here, with its launch
            for position, launch in enumerate(arena.job.launches, 1):
                self._launch_once(arena, launch, f"launch {position} of {len(arena.job.launches)}")
        recorded = [self.engine.record(lambda arena=arena: self._launch_all(arena)) for arena in arenas]
        samples: list[list[float]] = [[] for _ in jobs]
        shuffler = random.Random(seed)
        for turn in range(-warmup, repeats):
            for index in shuffler.sample(range(len(jobs)), len(jobs)):
                self.note(f"repeat {turn + 1} of {repeats}: {', '.join(jobs[index].kernels)}")
                taken = self._sample(arenas[index], recorded[index], l2)
                if turn >= 0:
                    samples[index].append(taken)
        self.note("timing an empty kernel")
        return samples, self._empty(l2), self.engine.method

    def _sample(self, arena: Arena, recorded: Any, l2: str) -> float:
        """One timed replay, inputs restored and the cache prepared outside of the clock."""
        if l2 == "warm":
            self.engine.replay(recorded)
        arena.restore()
        if l2 == "cold":
            self.engine.flush()
        return self.engine.time(recorded)

    def _empty(self, l2: str) -> float:
        """What a kernel that does nothing reads."""
        recorded = self.engine.record(None)
        taken = []
        for _ in range(EMPTY_SAMPLES):
            if l2 == "cold":
                self.engine.flush()
            taken.append(self.engine.time(recorded))
        return statistics.median(taken)

    def _arena(self, job: Job) -> Arena:
        """Allocated, guarded, filled buffers."""
        if job.key not in self.programs:
            raise DeviceError("The worker does not hold this program.", hint="build it again")
        self.note("allocating and filling the arrays")
        return Arena(self.engine, job)

    def _launch_once(self, arena: Arena, launch: Launch, where: str) -> None:
        """Launch, wait, and look at the guards."""
        scalars = f"({', '.join(map(str, launch.scalars))})" if launch.scalars else ""
        at = f"{where}: {launch.kernel}<<<{launch.grid}, {launch.block}>>>{scalars}"
        self.note(at)
        try:
            self._launch(arena, launch)
            self.engine.synchronize()
        except Exception as error:
            known = self.engine.explain(error)
            if known is None:
                raise
            raise type(known)(known.what, where=at, why=known.why, hint=known.hint, **known.details) from error
        arena.check_guards(at)

    def _launch_all(self, arena: Arena) -> None:
        for launch in arena.job.launches:
            self._launch(arena, launch)

    def _launch(self, arena: Arena, launch: Launch) -> None:
        arguments = [arena.arguments[name] for name in launch.arguments]
        self.engine.launch(self.programs[arena.job.key], launch, arguments)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """The library's errors as ours, and the memory given back after a success (after a failure the process goes)."""
        try:
            yield
            self.engine.release()
        except ExplorerError:
            raise
        except Exception as error:
            known = self.engine.explain(error)
            if known is None:
                raise
            raise known from error


class Arena:
    """The buffers of one job on the device, each between two guard bands."""

    def __init__(self, engine: Engine, job: Job) -> None:
        self.engine, self.job = engine, job
        self.handles: dict[str, Any] = {b.name: engine.allocate(b.nbytes + 2 * GUARD_BYTES) for b in job.buffers}
        self.pristine: dict[str, Any] = {b.name: engine.allocate(b.nbytes) for b in job.buffers if b.kind == "inout"}
        for buffer in job.buffers:
            handle = self.handles[buffer.name]
            engine.fill(handle, 0, GUARD_BYTES, GUARD)
            engine.fill(handle, GUARD_BYTES + buffer.nbytes, GUARD_BYTES, GUARD)
            self._fill(buffer, handle)
            if buffer.kind == "inout":
                engine.copy(self.pristine[buffer.name], 0, handle, GUARD_BYTES, buffer.nbytes)
        self.arguments: dict[str, Any] = {name: (handle, GUARD_BYTES) for name, handle in self.handles.items()}
        for m in job.tensor_maps:
            self.arguments[m.name] = engine.encode(m, self.buffer(m.buffer), self.handles[m.buffer], GUARD_BYTES)
        engine.synchronize()

    def buffer(self, name: str) -> Buffer:
        """A buffer by name."""
        return next(b for b in self.job.buffers if b.name == name)

    def restore(self) -> None:
        """Give every inout array its first values again."""
        for name, kept in self.pristine.items():
            self.engine.copy(self.handles[name], GUARD_BYTES, kept, 0, self.buffer(name).nbytes)

    def check_guards(self, where: str) -> None:
        """Refuse a launch that wrote beside an array.

        Raises
        ------
        KernelFault
            Naming the array, the side and the bytes.
        """
        for buffer in self.job.buffers:
            for side, offset in (("before its start", 0), ("after its end", GUARD_BYTES + buffer.nbytes)):
                band = np.empty(GUARD_BYTES, dtype=np.uint8)
                self.engine.read(self.handles[buffer.name], offset, band)
                hit = np.flatnonzero(band != GUARD)
                if hit.size:
                    near = GUARD_BYTES - int(hit[-1]) if offset == 0 else int(hit[0])
                    raise KernelFault(
                        f"The kernel wrote outside of {buffer.name}.", where=where,
                        why=f"{hit.size} bytes {side} changed, the nearest {near} bytes away; "
                            f"{buffer.name} is {buffer.dtype}{list(buffer.shape)}, {buffer.nbytes} bytes",
                        hint="run it on the CPU device: its bounds check names the statement", array=buffer.name)

    def _fill(self, buffer: Buffer, handle: Any) -> None:
        """The first contents: the caller's values, or poison."""
        source = self.job.sources.get(buffer.name)
        if isinstance(source, Seeded):
            self.engine.generate(handle, GUARD_BYTES, buffer, source)
        elif source is not None:
            self.engine.write(handle, GUARD_BYTES, attach(source, buffer.nbytes))
        else:
            self.engine.fill(handle, GUARD_BYTES, buffer.nbytes, POISON)
