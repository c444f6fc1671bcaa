"""What a property run has seen: every pair with what became of it, how often each move was made, what went wrong."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from explorer.transforms.base import catalogue

ACCEPTED = "accepted"
QUESTIONS = ("cover", "order", "obligation", "flow", "race")


@dataclass(frozen=True)
class Counterexample:
    """Something that should not happen, with the script that makes it."""

    seed: str
    kind: str
    what: str
    script: str

    def __str__(self) -> str:
        bar = "-" * 100
        return f"{bar}\n{self.kind} (chain {self.seed})\n{self.what}\n\n{self.script}"


@dataclass
class Tally:
    """What a run has seen.

    Attributes
    ----------
    pairs : dict
        Digest of each (program, schedule) that was put to the test, to "accepted" or the question that refused it.
    made, refused : Counter
        Moves that were made, and moves that a question refused, by transformation.
    ran : Counter
        Moves in the schedules that were run.
    counts : Counter
        What else happened.
    chains, steps : int
        Chains of moves, and the moves that were made in all of them together (repairs of obligations not counted).
    seconds : dict
        Where the time went.
    found : list of Counterexample
    """

    pairs: dict[bytes, str] = field(default_factory=dict)
    made: Counter = field(default_factory=Counter)
    refused: Counter = field(default_factory=Counter)
    ran: Counter = field(default_factory=Counter)
    counts: Counter = field(default_factory=Counter)
    chains: int = 0
    steps: int = 0
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    found: list[Counterexample] = field(default_factory=list)

    def merge(self, other: Tally) -> None:
        """Add another run."""
        self.pairs |= other.pairs
        for name in ("made", "refused", "ran", "counts"):
            getattr(self, name).update(getattr(other, name))
        for name, seconds in other.seconds.items():
            self.seconds[name] += seconds
        self.found += other.found
        self.chains += other.chains
        self.steps += other.steps

    def of(self, outcome: str) -> int:
        """Pairs with this outcome."""
        return sum(v == outcome for v in self.pairs.values())

    @property
    def never_made(self) -> list[str]:
        """Transformations that stand in no schedule that was run."""
        return [name for name in catalogue() if not self.ran[name]]

    @property
    def average(self) -> float:
        """Moves that were made, for each chain."""
        return self.steps / max(self.chains, 1)

    def table(self) -> str:
        """Pairs by outcome, moves by transformation, and the rest, as text."""
        rows = [f"{'pairs':<42}{len(self.pairs):>8,}", f"{'  accepted, run, equal to the reference':<42}{self.of(ACCEPTED):>8,}"]
        rows += [f"{f'  refused by {q}, witness confirmed':<42}{self.of(q):>8,}" for q in QUESTIONS]
        rows += [f"{k:<42}{n:>8,}" for k, n in sorted(self.counts.items())]
        rows += [f"{'chains':<42}{self.chains:>8,}", f"{'moves made':<42}{self.steps:>8,}",
                 f"{'moves made in a chain, on average':<42}{self.average:>8.1f}"]
        rows += ["", f"{'move':<14}{'made':>8}{'refused':>9}{'in runs':>9}"]
        rows += [f"{name:<14}{self.made[name]:>8,}{self.refused[name]:>9,}{self.ran[name]:>9,}" for name in catalogue()]
        rows += ["", "seconds: " + ", ".join(f"{k} {n:.1f}" for k, n in sorted(self.seconds.items(), key=lambda item: -item[1]))]
        return "\n".join(rows)
