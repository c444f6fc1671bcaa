"""What each role of a kernel does when: an instrumented copy is run once, and its stamps are read.

The copy is :mod:`explorer.kernel.stamped`'s.  On a GPU a stamp is in cycles of a multiprocessor's clock, and a log's head says
what these are in nanoseconds; on the CPU device it counts the turns that the block's threads have had, so that the order of all
stamps of a block is known, and no more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import DeviceError
from ..gpu.occupancy import check_launch
from ..gpu.spec import target_gpu
from ..gpu.units import time_text
from ..kernel.emit import emit
from ..kernel.emittable import require_emittable
from ..kernel.module import CudaModule
from ..kernel.reference.slices import cost
from ..kernel.stamped import HEAD, MOST, Log, Logs, Mark, Stamped, stamped
from ..schedule import Schedule
from ..strategies.pipelines.acting import Piece
from ..strategies.price import clock_of
from ..transforms.approximate import as_computed
from .cpu.device import CpuDevice
from .cuda import device as cuda
from .execute import FAST_LIMIT
from .inputs.arguments import Inputs
from .options import check_device, check_flags, check_seed, require_memory
from .verify.expected import expected
from .verify.outputs import Check, check_outputs
from .verify.ragged import CHECKED_LIMIT, TIME_LIMIT_S
from .verify.reference import BUDGET

WORDS = {"acquire": "waits for a free slot", "issue": "issues copies", "wait": "waits for copies", "product": "product",
         "drain": "waits for products", "release": "releases the slot", "barrier": "barrier",
         "combine": "combines threads' values", "load": "loads registers", "compute": "computes",
         "through": "results to shared memory", "store": "stores results"}
"""Each kind of :class:`~explorer.kernel.passes.stamps.Mark`, in words."""


@dataclass(frozen=True)
class Kept:
    """One thread's log.

    Attributes
    ----------
    log : Log
        Whose it is.
    multiprocessor : int
        On which it ran.
    pieces : tuple of Piece
        In order of time; none where the thread never ran.
    lost : int
        Stamps for which there was no room.
    """

    log: Log
    multiprocessor: int
    pieces: tuple[Piece, ...]
    lost: int = 0

    @property
    def totals(self) -> dict[str, tuple[int, float]]:
        """For each kind, how often it came and how long it took in all."""
        found: dict[str, list[float]] = defaultdict(list)
        for p in self.pieces:
            found[p.kind].append(p.end - p.start)
        return {kind: (len(times), sum(times)) for kind, times in found.items()}


@dataclass(frozen=True)
class Stamps:
    """What an instrumented run found.

    Attributes
    ----------
    name : str
        The program.
    device : str
        ``"cpu"``, or the GPU's name.
    kept : tuple of Kept
        Logs, block after block.
    checks : tuple of Check
        Of the instrumented kernel's own results.
    plain_us, stamped_us : float or None
        Median times of the kernels without and with stamps, in one run on a GPU.
    module : CudaModule
        The instrumented text.
    """

    name: str
    device: str
    kept: tuple[Kept, ...]
    checks: tuple[Check, ...]
    module: CudaModule
    plain_us: float | None = None
    stamped_us: float | None = None

    @property
    def correct(self) -> bool:
        """Whether the results are right, with stamps."""
        return bool(self.checks) and all(self.checks)

    @property
    def measured(self) -> bool:
        """Whether times are a GPU's: the CPU device counts turns."""
        return self.device != "cpu"

    def block(self, number: int) -> tuple[Kept, ...]:
        """The logs of one block."""
        return tuple(k for k in self.kept if k.log.block == number)

    def time(self, value: float) -> str:
        """A time in words."""
        return time_text(value) if self.measured else f"{value:.0f} turns"

    def __str__(self) -> str:
        lines = [f"{self.name} on {self.device}, stamped: results {'right' if self.correct else 'WRONG'}"]
        if self.plain_us and self.stamped_us:
            lines[0] += (f"; {time_text(self.plain_us)} without stamps, {time_text(self.stamped_us)} with them "
                         f"({self.stamped_us / self.plain_us - 1:+.1%})")
        for k in self.kept:
            place = f"multiprocessor {k.multiprocessor}" if self.measured else f"thread {k.log.thread}"
            lost = f", {k.lost:,} stamps lost" if k.lost else ""
            lines.append(f"  {k.log.kernel}, block {k.log.block}, {k.log.name} ({place}{lost})")
            lines += [f"    {WORDS[kind]:26s} {count:6,} x {self.time(total / count):>10s}   {self.time(total):>10s} in all"
                      for kind, (count, total) in k.totals.items()]
        return "\n".join(lines)

    __repr__ = __str__


def stamps(schedule: Schedule, arrays: Mapping[str, Any] | None = None, *, device: str = "auto", blocks: Sequence[int] = (0,),
           most: int = MOST, seed: int = 0, time: bool = True) -> Stamps:
    """Run an instrumented copy of a schedule's kernels, in which threads note the time.

    Parameters
    ----------
    schedule : Schedule
    arrays : mapping of str to array, optional
        As for :func:`~explorer.run.execute.execute`.
    device : {"auto", "cpu", "cuda"}
        ``"auto"`` is the GPU if there is one.
    blocks : sequence of int
        Whose threads do, by their numbers in the grid; at most 8.
    most : int
        Stamps that a thread keeps at most.
    seed : int
        Of the inputs.
    time : bool
        Also time the kernels without and with stamps, on a GPU.

    Returns
    -------
    Stamps

    Raises
    ------
    IllegalSchedule
        While a question of legality is answered "no" or an obligation is open.
    DeviceError
        There is no GPU, where one was asked for; no launch has one of the blocks.
    CompilerMissing, CompileError, KernelFault, KernelTimeout, OutOfMemory, ResourceError
        From the device.
    """
    require_emittable(schedule)
    check_device(device)
    check_seed(seed)
    check_flags(time=time)
    where = stamped(blocks, most)
    missing = cuda.available() if device != "cpu" else "not asked for"
    if device == "cuda" and missing:
        raise DeviceError("There is no GPU to measure on.", why=missing,
                          hint='device="cpu" runs the same text on the processor, and says in which order things happen')
    program = as_computed(schedule.source, schedule.plan)
    require_memory(program)
    target = target_gpu(None) if missing else cuda.device().installed().gpu
    module = emit(schedule.plan, arch=target.arch, stamped=where)
    if not where.launches:
        raise DeviceError(f"No launch has a block {' or '.join(map(str, where.blocks))}.",
                          why=", ".join(f"{x.kernel} has {x.grid[0] * x.grid[1] * x.grid[2]:,}" for x in module.launches),
                          hint="blocks=(0,)")
    for launch in module.launches:
        check_launch(target, launch)
    held = Inputs(program, seed, arrays)
    plain_us = stamped_us = None
    if missing:
        outputs = _on_cpu(program.name, module, held, cost(program))
    else:
        outputs = _on_gpu(module, held)
        if time:
            plain_us, stamped_us = _timed(emit(schedule.plan, arch=target.arch), module, held)
    wanted, _ = expected(held, None, budget=BUDGET)
    checks = check_outputs(program, outputs, *wanted)
    cycles = 0.0 if missing else clock_of(target)
    kept = tuple(k for logs in where.launches for k in read(where, logs, outputs[logs.name], cycles))
    return Stamps(program.name, "cpu" if missing else target.name, kept, checks, module, plain_us, stamped_us)


def _on_cpu(name: str, module: CudaModule, held: Inputs, work: int) -> dict[str, np.ndarray]:
    """In the order of the threads, every access checked where the size allows."""
    if work > FAST_LIMIT:
        raise DeviceError(f"{name} takes {work:.2g} operations at these sizes, too many for the CPU.",
                          hint="smaller sizes: schedule.at(...), or a GPU")
    device = CpuDevice(checked=work <= CHECKED_LIMIT, seeds=(0,), time_limit_s=TIME_LIMIT_S)
    return device.run(device.build(module), held.arrays)


def _on_gpu(module: CudaModule, held: Inputs) -> dict[str, np.ndarray]:
    """Twice where that does the same: instructions and constants are then where they are in any but the first run."""
    device = cuda.device()
    built = device.build(module)
    if all(b.kind != "inout" for b in module.buffers):
        built = replace(built, module=replace(module, launches=module.launches * 2))
    return device.run(built, held.for_gpu)


def _timed(plain: CudaModule, module: CudaModule, held: Inputs) -> tuple[float, float]:
    """Median microseconds without and with stamps."""
    device = cuda.device()
    work = [(device.build(m), held.for_gpu) for m in (plain, module)]
    first, second = (float(np.median(s)) for s in device.time_interleaved(work, repeats=20))
    return first, second


def read(where: Stamped, logs: Logs, words: np.ndarray, cycles: float) -> tuple[Kept, ...]:
    """The logs in an array of stamps.

    Parameters
    ----------
    where : Stamped
    logs : Logs
    words : ndarray of uint64
        Of shape (logs, pairs, 2), as the kernel left it.
    cycles : float
        Of a microsecond, where a log's head does not say; 0 where stamps are no cycles.
    """
    out = list[Kept]()
    for block in dict.fromkeys(log.block for log in logs.logs):
        mine = [n for n, log in enumerate(logs.logs) if log.block == block]
        ran = [n for n in mine if words[n, 2, 1] != np.uint64(2**64 - 1)]
        first = min((int(words[n, 0, 1]) for n in ran), default=0)
        rate = _rate([words[n, :2] for n in ran], cycles)
        out += [_kept(where.marks, logs, n, words[n], first, rate) if n in ran else Kept(logs.logs[n], -1, ()) for n in mine]
    return tuple(out)


def _rate(heads: list[np.ndarray], cycles: float) -> float:
    """Ticks of a block's clock in a microsecond, by its longest log."""
    if not cycles:
        return 1.0
    took = max(((int(h[1, 0]) - int(h[0, 0]), int(h[1, 1]) - int(h[0, 1])) for h in heads), default=(0, 0))
    return took[1] / took[0] * 1e3 if took[0] >= 20_000 else cycles


def _kept(marks: Sequence[Mark], logs: Logs, number: int, words: np.ndarray, first: int, rate: float) -> Kept:
    count = int(words[2, 1])
    kept = min(count, logs.room)
    rows = [(int(clock), int(what)) for clock, what in words[HEAD : HEAD + kept]]
    pieces = list[Piece]()
    for (start, what), (end, _) in pairwise(rows):
        mark, at = marks[what >> 32], what & 0xFFFFFFFF
        begin, until = (start - first) / rate, (end - first) / rate
        pieces.append(Piece(what >> 32, mark.kind, mark.ids, mark.iteration(at), begin, until))
    return Kept(logs.logs[number], int(words[2, 0]), tuple(pieces), count - kept)
