"""What a check answers: a verdict, and for a refusal a finding with the smallest pair of instances that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast, overload


class Advice(Sequence[str]):
    """What to try, found out when it is first read: trying a proposal costs more than refusing what was asked."""

    def __init__(self, ask: Callable[[], tuple[str, ...]]) -> None:
        self._ask = ask

    @cached_property
    def told(self) -> tuple[str, ...]:
        """The proposals."""
        return self._ask()

    def __len__(self) -> int:
        return len(self.told)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        return self.told[index]

    def __eq__(self, other: object) -> bool:
        return self.told == tuple(cast("Sequence[object]", other)) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.told)

    def __repr__(self) -> str:
        return repr(self.told)

    def __str__(self) -> str:
        return "; or ".join(self.told)

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self.told,)


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
class Act(Instance):
    """What an instance does in a kernel's text: `point` has the values of the loops around it.

    Attributes
    ----------
    does : str
        A verb with its object, as ``"reads a_s"`` or ``"waits for group 3"``.
    loops : tuple of str
        The loops around it, outermost first.
    threads : str
        Who does it, in words.
    """

    does: str = ""
    loops: tuple[str, ...] = ()
    threads: str = ""

    def __str__(self) -> str:
        at = ", ".join(f"{name} = {value}" for name, value in zip(self.loops, self.point, strict=True))
        return " ".join(filter(None, (self.statement, f"at {at}" if at else "", f"({self.threads})" if self.threads else "",
                                      self.does)))


@dataclass(frozen=True)
class Proof:
    """For which sizes a refusal holds, and the least instance of it.

    Attributes
    ----------
    condition : str
        When it would be legal: ``"legal iff K % 6 == 0"``, or ``"never legal: it fails for every K >= 1"``.
    least : tuple of (str, int)
        The least sizes that fail, and the iteration.
    source, sink : Instance
        The pair that shows it.
    says : str
        What goes wrong between the two.
    here : str
        For which trip counts it would be legal with the other sizes as they are, where the condition is on these, too.
    """

    condition: str
    least: tuple[tuple[str, int], ...]
    source: Instance
    sink: Instance
    says: str = ""
    here: str = ""

    @property
    def when(self) -> str:
        """The condition and the least sizes."""
        return f"{self.condition}; it fails first for {', '.join(f'{name} = {value}' for name, value in self.least)}"

    def __str__(self) -> str:
        return f"{self.when}: {self.source}; {self.sink}{f': {self.says}' if self.says else ''}"


class Proving:
    """A proof that is found when it is first read."""

    def __init__(self, ask: Callable[[], Proof | None]) -> None:
        self._ask = ask

    @cached_property
    def found(self) -> Proof | None:
        """The proof, or None where sizes cannot be left open."""
        return self._ask()

    def __reduce__(self) -> tuple[Any, ...]:
        return _proved, (self.found,)


def _proved(proof: Proof | None) -> Proving:
    return Proving(lambda: proof)


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
    hints : sequence of str
        What to try, as Python calls on the schedule (``skew('j', by='i', factor=1)``) or sentences.  The questions write
        proposals, with ``…`` for an argument that they do not know; in the refusal of a step only those that were tried and
        help are left (:mod:`explorer.steps.hints`).
    proving : Proving or None
        Finds out for which sizes it holds.
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
    hints: Sequence[str] = ()
    proving: Proving | None = field(default=None, compare=False, repr=False)

    @property
    def proof(self) -> Proof | None:
        """For which sizes it holds, with the least instance; None where the question has none, or cannot leave them open."""
        return self.proving.found if self.proving else None

    @property
    def where(self) -> str:
        """The user's lines in words: ``source lines 22 and 24``; empty where none is known."""
        return f"source line{'s' * (len(self.lines) > 1)} {' and '.join(map(str, self.lines))}" if self.lines else ""

    def __str__(self) -> str:
        lines = [self.what] + ([self.why] if self.why else [])
        lines += [self.where] if self.lines else []
        lines += [f"try: {'; or '.join(self.hints)}"] if self.hints else []
        return "\n  ".join(lines)


class Findings(Sequence[Finding]):
    """Several findings: the first one, and the others as they are found out when they are read."""

    def __init__(self, first: Finding, others: Sequence[Callable[[], Finding]]) -> None:
        self.first, self._others = first, others

    @cached_property
    def told(self) -> tuple[Finding, ...]:
        """All of them."""
        return (self.first, *(ask() for ask in self._others))

    def __len__(self) -> int:
        return 1 + len(self._others)

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Finding, ...]: ...
    def __getitem__(self, index: int | slice) -> Finding | tuple[Finding, ...]:
        return self.first if index == 0 else self.told[index]

    def __iter__(self) -> Iterator[Finding]:
        yield self.first
        yield from self.told[1:]

    def __eq__(self, other: object) -> bool:
        return self.told == tuple(cast("Sequence[object]", other)) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.told)

    def __repr__(self) -> str:
        return repr(self.told)

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self.told,)


@dataclass(frozen=True)
class Verdict:
    """The answer of a check; true when nothing speaks against it."""

    what: str = ""
    why: str = ""
    hint: str = ""
    finding: Finding | None = None

    def __getattribute__(self, name: str) -> Any:
        """The attribute; advice for a hint is found out now, and read as text."""
        value = object.__getattribute__(self, name)
        return str(value) if name == "hint" else value

    @property
    def advice(self) -> str | Advice:
        """The hint as it is, without finding it out."""
        return object.__getattribute__(self, "hint")

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
