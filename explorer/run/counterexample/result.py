"""What an illegal order computes: the wrong cell, where it ran, on which inputs, and who showed it."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from ...errors import DeviceError, outspoken
from ...ir.finding import Finding

ON_DEVICE = "the emitted text on the CPU device"
INTERPRETED = "the interpreter of the kernel"
WIDTH = 100
"""Characters of a line of text."""


@outspoken(DeviceError)
@dataclass(frozen=True)
class Counterexample:
    """What an illegal order computes.

    Attributes
    ----------
    step : str
    caught : bool
        Whether an output cell is wrong.
    verdict : str
        In words; also why there was nothing to run, or nothing to see.
    sizes : tuple of (str, int)
        The sizes it was run at (the last ones tried, where nothing was caught).
    array : str
    element : tuple of int
        The first wrong cell; `got` and `expected` are its values in words.
    cells : tuple of (str, str, str, str)
        Cells around it: name, got, expected, ``"wrong"`` or ``"right"``.
    finding : Finding or None
        The pair of instances at these sizes.
    shown_by : str
        :data:`ON_DEVICE` or :data:`INTERPRETED`; empty where nothing was caught.
    order : str
        The order that showed it.
    device : str
        What the CPU device says besides: why it does not show the fault, or what its checks find in the text.
    text : str
        The CUDA text that was run; empty where it cannot be written.
    inputs : tuple of (str, str)
        Each input array's elements and their values, some of them where there are many.
    trace : tuple of (str, str)
        Instances that write the wrong cell in the program's order, each with the value that it leaves there.
    above : int
        Lines of `text` above its first kernel.
    """

    step: str
    caught: bool
    verdict: str
    sizes: tuple[tuple[str, int], ...] = ()
    array: str = ""
    element: tuple[int, ...] = ()
    got: str = ""
    expected: str = ""
    cells: tuple[tuple[str, str, str, str], ...] = ()
    finding: Finding | None = None
    shown_by: str = ""
    order: str = ""
    device: str = ""
    text: str = ""
    inputs: tuple[tuple[str, str], ...] = ()
    trace: tuple[tuple[str, str], ...] = ()
    above: int = 0

    def __str__(self) -> str:
        wrong = [f"  {cell}: {got}, should be {expected}" for cell, got, expected, mark in self.cells if mark == "wrong"]
        said = [f"shown by {self.shown_by}: {self.order}"] if self.shown_by else []
        more = [f"  because {self.finding.what}"] if self.finding else []
        return "\n".join([*_wrapped(self.verdict, ""), *wrong, *more,
                          *(line for part in (*said, self.device) if part for line in _wrapped(part, "  "))])

    def __repr__(self) -> str:
        return str(self)


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ")
