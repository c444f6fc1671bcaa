"""The exception tree: every failure a user can cause, each with its place, its reason and a next step.

    ExplorerError
      ProgramError            the Python loop nest is outside what is accepted (has a line and a caret)
      ScheduleError
        TransformError        a transformation's own precondition fails
        IllegalSchedule       a question of legality is answered "no" (has a Finding)
        ReplayError           a saved schedule cannot be read or replayed
      ResourceError           the kernel does not fit the target GPU
      DeviceError
        CompilerMissing       no C++ compiler, no NVRTC, no CuPy
        CompileError          the emitted text was refused by a compiler (has lines and node ids)
        KernelTimeout         the kernel ran past its time limit
        KernelFault           illegal address, trap, or a bounds, race or uninitialised-read check that fired
        OutOfMemory           the arrays do not fit the device
      ExportError             the file cannot be written as asked
      FigureError             a picture cannot be drawn as asked, or Plotly is missing

Each says what is wrong, where, why, and what to try.
"""

from __future__ import annotations

from typing import Any


class ExplorerError(Exception):
    """Base of everything this package raises on purpose.

    Parameters
    ----------
    what : str
        One sentence: what is wrong.
    where : str, optional
        The place: a source line, a loop, a statement, a file.
    why : str, optional
        The reason, with the instances or numbers that show it.
    hint : str, optional
        What to try next.
    **details
        Any further facts, kept as attributes.
    """

    def __init__(self, what: str, *, where: str = "", why: str = "", hint: str = "", **details: Any) -> None:
        self.what, self.where, self.why, self.hint = what, where, why, hint
        self.details = details
        super().__init__(self.message())

    def __getattr__(self, name: str) -> Any:
        details = self.__dict__.get("details", {})
        if name in details:
            return details[name]
        raise AttributeError(name)

    def message(self) -> str:
        """The whole text: what, then the place, the reason and the next step, a line each."""
        lines = [self.what]
        lines += [self.where] if self.where else []
        lines += [self.why] if self.why else []
        lines += [f"try: {self.hint}"] if self.hint else []
        return "\n  ".join(lines)

    def _render_traceback_(self) -> list[str]:
        """IPython shows this instead of a traceback: the user's mistake is not in our stack."""
        return [f"{type(self).__name__}: {self.message()}"]


class ProgramError(ExplorerError):
    """The decorated function is not an affine loop nest as accepted."""


class ScheduleError(ExplorerError):
    """A schedule cannot be made, changed or read."""


class TransformError(ScheduleError):
    """A transformation's own precondition does not hold."""


class IllegalSchedule(ScheduleError):
    """A transformation would change what the program computes; `finding` says how."""


class ReplayError(ScheduleError):
    """A saved schedule is damaged, of another version, or does not fit the program."""


class ResourceError(ExplorerError):
    """The kernel needs more of something than the target GPU has."""


class DeviceError(ExplorerError):
    """Building or running on a device failed."""


class CompilerMissing(DeviceError):
    """A tool that the device needs is not on this machine."""


class CompileError(DeviceError):
    """A compiler refused the emitted text."""


class KernelTimeout(DeviceError):
    """The kernel ran past its time limit and was stopped."""


class KernelFault(DeviceError):
    """The kernel faulted or a check on the CPU device fired."""


class OutOfMemory(DeviceError):
    """The device cannot hold the arrays."""


class ExportError(ExplorerError):
    """The export cannot be written as asked."""


class FigureError(ExplorerError):
    """A picture cannot be drawn as asked: an unknown name or option, or Plotly is not installed."""
