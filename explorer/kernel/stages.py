"""What each pass makes of a kernel: the text after it, beside the text before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from importlib import import_module

from ..errors import ScheduleError
from ..ir.memo import per_program
from ..ir.plan import Plan

KEPT = 32
"""Texts that are kept: each is the text after one pass, and the text before the next."""

SourceMap = Mapping[str, tuple[tuple[int, int], ...]]
"""Node id to 1-based, inclusive ranges of lines."""


@dataclass(frozen=True)
class Stage:
    """The kernels after one pass.

    Attributes
    ----------
    name : str
        The pass.
    what : str
        What it does, in a sentence.
    text : str
        The kernels, as CUDA C++ without the device library.
    changed : tuple of int
        Lines of `text`, counted from 1, that the pass before did not have so.
    removed : int
        Lines that the pass before had, and for which no other stands here.
    source_map : mapping of str to tuple of (int, int)
        Node id to the 1-based, inclusive line ranges of `text` that it became.
    """

    name: str
    what: str
    text: str
    changed: tuple[int, ...] = ()
    removed: int = 0
    source_map: SourceMap = field(default_factory=dict[str, tuple[tuple[int, int], ...]], hash=False)

    @property
    def change(self) -> str:
        """What changed, in words."""
        from .passes import names  # here and below: `import explorer` needs this class, and no pass, for its picture

        if self.name == names()[0]:
            return "the first pass"
        lines = f"{len(self.changed)} line{'s' * (len(self.changed) != 1)} changed" if self.changed else ""
        removed = f"{self.removed} removed" if self.changed else f"{self.removed} line{'s' * (self.removed != 1)} removed"
        return ", ".join(words for words in (lines, removed if self.removed else "") if words) or "no line changed"

    def __str__(self) -> str:
        marked = (f"{'>' if number in self.changed else ' '} {line}" for number, line in enumerate(self.text.split("\n"), 1))
        return f"after {self.name}: {self.what}\n" + "\n".join(marked)

    __repr__ = __str__


def sentences() -> dict[str, str]:
    """Each pass, in order, with the first sentence of its page."""
    from .passes import PASSES

    return {change.__name__: _sentence(change.__module__) for change in PASSES}


def stages(plan: Plan, arch: str = "sm_90") -> tuple[Stage, ...]:
    """The kernels of a legal plan after each pass, in order.

    Raises
    ------
    IllegalSchedule, ScheduleError
        As for :func:`~explorer.kernel.emit.emit`.
    """
    from .passes import names

    return tuple(stage(plan, name, arch) for name in names())


def stage(plan: Plan, after: str = "", arch: str = "sm_90") -> Stage:
    """The kernels after one pass, by default the last one.

    Raises
    ------
    ScheduleError
        There is no such pass.
    """
    from .passes import names

    order = names()
    after = after or order[-1]
    if after not in order:
        raise ScheduleError(f"there is no pass {after!r}", hint=f"the passes are {', '.join(order)}")
    text, source_map = _kernels(plan, arch, after)
    at = order.index(after)
    changed, removed = _changed(_kernels(plan, arch, order[at - 1])[0], text) if at else ((), 0)
    return Stage(after, sentences()[after], text, changed, removed, source_map)


@per_program(KEPT)
def _kernels(plan: Plan, arch: str, after: str) -> tuple[str, SourceMap]:
    """The text from the first kernel on, and its source map."""
    from .emit import emit

    module = emit(plan, arch=arch, after=after)
    above = module.above
    spans = {node: tuple((max(first - above, 1), last - above) for first, last in ranges if last > above)
             for node, ranges in module.source_map.items()}
    return module.kernels_text.rstrip("\n"), {node: ranges for node, ranges in spans.items() if ranges}


def _changed(before: str, after: str) -> tuple[tuple[int, ...], int]:
    """Lines of `after` that are new or other than in `before`, and how many of `before` are gone."""
    matcher = SequenceMatcher(None, before.split("\n"), after.split("\n"), autojunk=False)
    edits = [edit for edit in matcher.get_opcodes() if edit[0] != "equal"]
    changed = tuple(n + 1 for _, _, _, first, last in edits for n in range(first, last))
    return changed, sum(max((end - start) - (last - first), 0) for _, start, end, first, last in edits)


def _sentence(module: str) -> str:
    """The first sentence of a pass's page."""
    return (import_module(module).__doc__ or "").split("\n\n")[0].replace("\n", " ").strip()
