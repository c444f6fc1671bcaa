"""What `sass.py` measures, as values; two versions of it compared, as a table."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path

HEAD = """# Machine code before and after

Of every schedule of `sanitize.py`, and every workload's default and automatic schedule at its tiny and its typical sizes,
compiled for {arch} by NVRTC {nvrtc} and read by nvdisasm {nvdisasm}.  Before: {before}.  After: {after}.  Instructions are
those of all kernels of a case, without the `NOP`s that fill the end; registers and spilled bytes (stored and loaded) are per
thread, shared bytes per block.
"""


@dataclass(frozen=True)
class Counts:
    """One kernel, as nvdisasm and ptxas report it.

    Attributes
    ----------
    instructions : int
        Without `NOP`.
    registers, spilled : int
        Registers per thread; bytes of spill stores and loads per thread.
    static_shared, dynamic_shared : int
        Bytes per block.
    code : str
        Hash of the machine code.
    """

    instructions: int
    registers: int
    spilled: int
    static_shared: int
    dynamic_shared: int
    code: str


@dataclass(frozen=True)
class Case:
    """One schedule: the hash of its text, its kernels by name.  No kernels: its text is refused, or it has none."""

    text: str
    kernels: Mapping[str, Counts]

    @property
    def instructions(self) -> int:
        """Of all kernels."""
        return sum(k.instructions for k in self.kernels.values())


@dataclass(frozen=True)
class Measured:
    """One version of the generator: the tools that compiled its texts (`arch`, `nvrtc`, `nvdisasm`), its cases by name."""

    tools: Mapping[str, str]
    cases: Mapping[str, Case]

    def save(self, path: Path) -> None:
        """Write JSON, one case a line."""
        cases = [f"{json.dumps(name)}: {json.dumps([case.text, {k: astuple(v) for k, v in case.kernels.items()}])}"
                 for name, case in self.cases.items()]
        path.write_text(f'{{"tools": {json.dumps(self.tools)}, "cases": {{\n' + ",\n".join(cases) + "\n}}\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Measured:
        """Read what `save` wrote."""
        read = json.loads(path.read_text(encoding="utf-8"))
        return cls(read["tools"], {name: Case(text, {k: Counts(*v) for k, v in kernels.items()})
                                   for name, (text, kernels) in read["cases"].items()})


@dataclass(frozen=True)
class Pair:
    """One case in both versions."""

    name: str
    before: Case
    after: Case

    @property
    def differs(self) -> bool:
        """Whether a kernel's code or needs do; its name does not count."""
        return [*self.before.kernels.values()] != [*self.after.kernels.values()]

    @property
    def refused(self) -> bool:
        """Whether it compiled before, and does not now."""
        return bool(self.before.kernels) and not self.after.kernels

    @property
    def ratio(self) -> float:
        """Instructions after over before; 1 where either version has none."""
        was, now = self.before.instructions, self.after.instructions
        return now / was if was and now else 1.0

    @property
    def kernels(self) -> tuple[tuple[str, Counts | None, Counts | None], ...]:
        """Name, before and after of each kernel: matched by place where there are as many of them, else by name."""
        was, now = self.before.kernels, self.after.kernels
        if len(was) == len(now) and not was.keys() & now.keys():
            return tuple((name, was[old], now[name]) for old, name in zip(was, now, strict=True))
        return tuple((name, was.get(name), now.get(name)) for name in dict.fromkeys((*was, *now)))

    def more(self, what: str) -> bool:
        """Whether a kernel has more of something than before; of a kernel that was not there: than any had."""
        most = max((getattr(k, what) for k in self.before.kernels.values()), default=math.inf)
        return any(a is not None and getattr(a, what) > (getattr(b, what) if b else most) for _, b, a in self.kernels)

    def cell(self, what: str) -> str:
        """``"46 → 20"`` for each kernel where something changed, with its name if there are several."""
        both = ((name, *(str(getattr(k, what)) if k else "–" for k in (b, a))) for name, b, a in self.kernels)
        return "; ".join(f"{name + ' ' if len(self.kernels) > 1 else ''}{b} → {a}" for name, b, a in both if b != a)

    @property
    def row(self) -> str:
        """A line of the table."""
        needs = " | ".join(self.cell(what) for what in ("registers", "spilled", "static_shared", "dynamic_shared"))
        return f"| {self.name} | {self.before.instructions} → {self.after.instructions} | {self.ratio:.3f} | {needs} |"


@dataclass(frozen=True)
class Comparison:
    """Two versions of the generator over the cases that both have."""

    before: Measured
    after: Measured

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Cases of both."""
        was = self.before.cases
        return tuple(Pair(name, was[name], case) for name, case in self.after.cases.items() if name in was)

    @property
    def worse(self) -> dict[str, list[str]]:
        """Names of the cases that are worse, by what is."""
        return {"with more registers": [p.name for p in self.pairs if p.more("registers")],
                "with more spills": [p.name for p in self.pairs if p.more("spilled")],
                "refused, and not before": [p.name for p in self.pairs if p.refused],
                "no longer there": [name for name in self.before.cases if name not in self.after.cases]}

    def __bool__(self) -> bool:
        """Whether nothing is worse, instructions in their geometric mean."""
        return not any(self.worse.values()) and geometric_mean(p.ratio for p in self.pairs) <= 1.0

    def page(self, before: str, after: str) -> str:
        """Totals, and a line for each case whose machine code differs; `before` and `after` name the versions."""
        differing = [p for p in self.pairs if p.differs]
        rewritten = sum(p.before.text != p.after.text for p in self.pairs)
        kinds = {**self.worse, "with more instructions": [p.name for p in self.pairs if p.ratio > 1.0]}
        new = [name for name in self.after.cases if name not in self.before.cases]
        lines = [HEAD.format(before=before, after=after, **self.after.tools),
                 f"- {len(self.pairs)} cases: machine code identical in {len(self.pairs) - len(differing)} and different in "
                 f"{len(differing)}; the CUDA text different in {rewritten}.",
                 f"- Instructions, after over before, geometric mean: {geometric_mean(p.ratio for p in self.pairs):.4f}; of the "
                 f"different ones {geometric_mean(p.ratio for p in differing):.4f}.",
                 *(f"- Cases {kind}: {_listed(names)}." for kind, names in kinds.items()),
                 *([f"- New cases, not compared: {_listed(new)}."] if new else [])]
        if differing:
            lines += ["", "| case | instructions | ratio | registers | spilled bytes | static shared | dynamic shared |",
                      "|---|--:|--:|--:|--:|--:|--:|", *(p.row for p in differing)]
        return "\n".join([*lines, ""])


def geometric_mean(ratios: Iterable[float]) -> float:
    """Of positive numbers; 1 of none."""
    logs = [math.log(r) for r in ratios]
    return math.exp(math.fsum(logs) / len(logs)) if logs else 1.0


def _listed(names: list[str]) -> str:
    return f"{len(names)} ({'; '.join(names)})" if names else "none"
