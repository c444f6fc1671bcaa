"""What a check answers: a verdict, and for a refusal a finding with the smallest pair of instances that shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Instance:
    """One execution of a statement, e.g. ``S1[3, 448]``.

    Attributes
    ----------
    statement : str
    point : tuple of int
        Values of the statement's dimensions.
    place : tuple of (str, int)
        Where it runs (``("block.x", 3)``), as far as it matters.
    time : tuple of int
        Sequential position within the kernel.
    """

    statement: str
    point: tuple[int, ...]
    place: tuple[tuple[str, int], ...] = ()
    time: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.statement}[{', '.join(map(str, self.point))}]"


@dataclass(frozen=True)
class Finding:
    """Why a schedule is not legal.

    Attributes
    ----------
    question : str
        ``"cover"``, ``"order"``, ``"obligation"``, ``"flow"`` or ``"race"``.
    what : str
        One sentence.
    why : str
        The instances, and both orders, in words.
    array : str
    element : tuple of int
        The element both instances touch (empty for a scalar or when not applicable).
    kind : str
        ``"flow"``, ``"anti"``, ``"output"``, ``"reduction"`` or ``""``.
    source, sink : Instance or None
        The lexicographically smallest offending pair; in the program `source` runs first.
    nodes : tuple of str
        Ids of the nodes involved (leaves, loops).
    lines : tuple of int
        The user's source lines.
    hints : tuple of str
        What to try, as Python calls on the schedule (``skew('j', by='i', factor=1)``) or sentences.
    """

    question: str
    what: str
    why: str = ""
    array: str = ""
    element: tuple[int, ...] = ()
    kind: str = ""
    source: Instance | None = None
    sink: Instance | None = None
    nodes: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()
    hints: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """The user's lines in words: ``source lines 22 and 24``; empty where none is known."""
        return f"source line{'s' * (len(self.lines) > 1)} {' and '.join(map(str, self.lines))}" if self.lines else ""

    def __str__(self) -> str:
        lines = [self.what] + ([self.why] if self.why else [])
        lines += [self.where] if self.lines else []
        lines += [f"try: {'; or '.join(self.hints)}"] if self.hints else []
        return "\n  ".join(lines)


@dataclass(frozen=True)
class Verdict:
    """The answer of a check; true when nothing speaks against it."""

    what: str = ""
    why: str = ""
    hint: str = ""
    finding: Finding | None = None

    def __bool__(self) -> bool:
        return not self.what

    def __str__(self) -> str:
        if self:
            return "applies"
        return str(self.finding) if self.finding else "\n  ".join(
            [self.what] + ([self.why] if self.why else []) + ([f"try: {self.hint}"] if self.hint else [])
        )


YES = Verdict()


def no(what: str, why: str = "", hint: str = "") -> Verdict:
    """A refusal in words."""
    return Verdict(what, why, hint)
