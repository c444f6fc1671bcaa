"""The compiler's side of `explorer.run.nvrtc.compiler`: NVRTC through CuPy's binding, in a process of its own.  Needs no GPU."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from .library import binding

# With a driver, NVRTC keeps machine code by its PTX in the driver's cache, and then ptxas does not run again and says
# nothing of registers and spills: not even for a text never seen before, if its PTX is that of another (bool and i8 can be).
# The finished result has a cache of its own, `explorer.run.nvrtc.cubin_cache`, which keeps the log.
os.environ["CUDA_CACHE_DISABLE"] = "1"

nvrtc = binding()

Job = tuple[str, str, tuple[str, ...]]  # name, text, options
Outcome = tuple[bool, bytes, str, str]  # accepted, cubin, PTX, log


class Backend:
    """Compiles; NVRTC lets go of the interpreter lock, so several at once."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self.note = note
        self._warm = False

    def compile(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Compile each text.

        The first ever one is compiled alone: NVRTC's first calls from several threads at once can fail to find its builtins.
        """
        self.note(f"compiling {', '.join(dict.fromkeys(name for name, _, _ in jobs))}")
        head = [] if self._warm else [self._one(job) for job in jobs[:1]]
        self._warm = True
        rest = jobs[len(head):]
        with ThreadPoolExecutor(max(1, min(len(rest), os.cpu_count() or 1))) as pool:
            return head + list(pool.map(self._one, rest))

    def _one(self, job: Job) -> Outcome:
        name, text, options = job
        program = nvrtc.createProgram(text, name, (), ())
        try:
            try:
                nvrtc.compileProgram(program, options)
            except nvrtc.NVRTCError as error:
                return False, b"", _ptx(program), _log(program) or str(error)
            return True, nvrtc.getCUBIN(program), _ptx(program), _log(program)
        finally:
            nvrtc.destroyProgram(program)
            self.note(f"compiled {name}")


def _log(program: int) -> str:
    """What the compilers printed."""
    return nvrtc.getProgramLog(program).replace("\0", "").strip()


def _ptx(program: int) -> str:
    """The PTX; there even when only the assembler refused it, empty when the text was refused."""
    try:
        ptx = nvrtc.getPTX(program)
    except nvrtc.NVRTCError:
        return ""
    return (ptx.decode() if isinstance(ptx, bytes) else ptx).rstrip("\0")
