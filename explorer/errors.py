"""The exception tree: every failure a user can cause, each with its place, its reason and a next step.

    ExplorerError
      ProgramError            the Python loop nest is outside what is accepted (has a line and a caret)
      ScheduleError
        TransformError        a transformation's own precondition fails
        IllegalSchedule       a question of legality is answered "no" (has a Finding)
        ReplayError           a saved schedule cannot be read or replayed
        Undecided             an exact question takes longer than its budget
      ResourceError           the kernel does not fit the target GPU
      DeviceError
        CompilerMissing       no C++ compiler, no NVRTC, no CuPy
        CompileError          the emitted text was refused by a compiler (has lines and node ids)
        KernelTimeout         the kernel ran past its time limit
        KernelFault           illegal address, trap, or a bounds, race or uninitialised-read check that fired
        OutOfMemory           the arrays do not fit the device
      ExportError             the file cannot be written as asked
      FigureError             a picture cannot be drawn as asked, or Plotly is missing

Each says what is wrong, where, why, and what to try.  What is accepted but most likely not meant is a ProgramWarning.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)


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
    hint : str or sequence of str, optional
        What to try next; a sequence whose `str` finds it out later (:class:`explorer.ir.finding.Advice`).
    **details
        Any further facts, kept as attributes.
    """

    def __init__(self, what: str, *, where: str = "", why: str = "", hint: str | Sequence[str] = "", **details: Any) -> None:
        self.what, self.where, self.why, self._hint = _sentence(what), where, why, hint
        self.details = details
        super().__init__(self.what)

    def __getattr__(self, name: str) -> Any:
        details = self.__dict__.get("details", {})
        if name in details:
            return details[name]
        raise AttributeError(name)

    @property
    def hint(self) -> str:
        """What to try next; where it has to be found out, that is done when it is read."""
        return str(self._hint)

    def __str__(self) -> str:
        return self.message()

    def message(self) -> str:
        """The whole text: what, then the place, the reason and the next step, a line each.  Put together when it is read:
        what to try may have to be found out first.
        """
        lines = [self.what]
        lines += [self.where] if self.where else []
        lines += self.reasons()
        lines += [f"try: {self.hint}"] if self.hint else []
        return "\n  ".join(lines)

    def reasons(self) -> list[str]:
        """The reason, a line each."""
        return [self.why] if self.why else []

    def _render_traceback_(self) -> list[str]:
        """IPython shows this instead of a traceback: the user's mistake is not in our stack."""
        return [f"{type(self).__name__}: {self.message()}"]


def _sentence(text: str, most: int = 500) -> str:
    """A text without its middle where a name that was passed makes it too long to read."""
    return text if len(text) <= most else f"{text[: most * 3 // 4]} … {text[-most // 5 :]}"


def shown(value: object, most: int = 80) -> str:
    """A value as an error names it: its text, or its size where that is long; never fails, whatever was passed."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 60:
        sign = "a negative" if value < 0 else "an"
        return f"{value:.3g}" if value.bit_length() < 1000 else f"{sign} integer of {value.bit_length()} bits"
    try:
        text = repr(value)
    except Exception:  # a number of thousands of digits in a list, a cycle, an object that cannot say what it is
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= most else text[: most - 1] + "…"


def noun(value: object) -> str:
    """What a value is, in the user's words: what the decorator makes is a program."""
    name = type(value).__name__
    return "program" if name == "Definition" else name


def spoken(error: type[ExplorerError] | None = None, hint: str = "", name: str = "") -> Callable[[F], F]:
    """A decorator: arguments that a function does not take, or lacks, are an `error` with a `hint`, not Python's TypeError.

    Where no hint is given it is how the function is called; `name` is what users call it, if that is not its own name.
    """

    def decorate(function: F) -> F:
        taken = inspect.signature(function)
        called = name or function.__name__

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except TypeError:
                try:
                    taken.bind(*args, **kwargs)
                except TypeError as wrong:
                    problem = str(wrong)
                else:
                    raise  # it took them, and failed inside
            unknown = [name for name in kwargs if name not in taken.parameters]
            near = [close for name in unknown for close in difflib.get_close_matches(name, taken.parameters, 1)]
            instead = f"{', '.join(near)}=…" if near else hint or usage(called, taken)
            raise (error or ExplorerError)(f"{called}: {problem}", hint=instead)

        return cast(F, call)

    return decorate


def usage(name: str, taken: inspect.Signature) -> str:
    """How a function is called: ``split(loop, factor, inner=…)``."""
    marks = {inspect.Parameter.VAR_POSITIONAL: "*{0}", inspect.Parameter.VAR_KEYWORD: "**{0}"}
    words = [marks.get(p.kind, "{0}" if p.default is p.empty else "{0}=…").format(p.name)
             for p in taken.parameters.values() if p.name not in ("self", "cls")]
    return f"{name}({', '.join(words)})"


def outspoken(error: type[ExplorerError], made: str = "") -> Callable[[C], C]:
    """A class decorator: all public methods, and the class itself, are :func:`spoken`; `made` says how users get a value."""

    def decorate(owner: C) -> C:
        for name, value in list(vars(owner).items()):
            title = owner.__name__ if name == "__init__" else name
            if name.startswith("_") and name != "__init__":
                continue
            if isinstance(value, (classmethod, staticmethod)):
                setattr(owner, name, type(value)(spoken(error, name=title)(value.__func__)))
            elif inspect.isfunction(value) and not hasattr(value, "__wrapped__"):
                setattr(owner, name, spoken(error, made if name == "__init__" else "", title)(value))
        return owner

    return decorate


class ProgramError(ExplorerError):
    """The decorated function is not an affine loop nest as accepted."""


class ProgramWarning(UserWarning):
    """Something in the decorated function is most likely not meant, but the program is accepted."""


class ScheduleError(ExplorerError):
    """A schedule cannot be made, changed or read."""


class TransformError(ScheduleError):
    """A transformation's own precondition does not hold."""


class IllegalSchedule(ScheduleError):
    """A transformation would change what the program computes; `finding` says how."""

    def reasons(self) -> list[str]:
        """The reason, and for which sizes it holds, where that is known and not said yet."""
        proof = getattr(self.details.get("finding"), "proof", None)
        return [*super().reasons(), *([proof.when] if proof is not None and proof.condition not in self.why else [])]


class ReplayError(ScheduleError):
    """A saved schedule is damaged, of another version, or does not fit the program."""


class Undecided(ScheduleError):
    """An exact question about a program or a schedule takes longer than its budget; nothing is assumed instead."""


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
