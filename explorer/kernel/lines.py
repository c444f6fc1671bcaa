"""Lines of text with the node each line came from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Lines:
    """Statements and declarations, one line each, not yet indented.

    Attributes
    ----------
    lines : tuple of str
    ids : tuple of str
        Ids of the nodes that the lines belong to.
    declares : bool
        Whether they declare a name: under an ``if`` it needs braces, which say where the name ends.
    """

    lines: tuple[str, ...]
    ids: tuple[str, ...] = ()
    declares: bool = False


@dataclass(frozen=True)
class Block:
    """``header { body }``; braces are left out around a single line under an ``if``.

    Attributes
    ----------
    header : str
        ``if (…)`` or ``for (…)``; empty for a scope.
    body : tuple
    ids : tuple of str
    before : tuple of str
        Lines directly above (``#pragma unroll``).
    comment : str
        Behind the opening brace.
    otherwise : tuple
        What an ``else`` holds.
    """

    header: str
    body: tuple[Lines | Block, ...]
    ids: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    comment: str = ""
    otherwise: tuple[Lines | Block, ...] = ()


Out = Lines | Block


def tagged(out: Out, node_id: str) -> Out:
    """The same text, belonging to one more node."""
    return replace(out, ids=(*out.ids, node_id))


@dataclass
class Printer:
    """Collects lines and, for each node, the ranges of lines that it became."""

    lines: list[str] = field(default_factory=list[str])
    spans: dict[str, list[tuple[int, int]]] = field(default_factory=dict[str, list[tuple[int, int]]])

    def line(self, text: str = "", depth: int = 0) -> None:
        """Append one line."""
        self.lines.append(("  " * depth + text).rstrip())

    def mark(self, ids: Iterable[str], first: int) -> None:
        """Record that the lines from `first` (1-based) to the last one belong to the nodes `ids`."""
        last = len(self.lines)
        if last < first:
            return
        for node_id in ids:
            spans = self.spans.setdefault(node_id, [])
            if spans and spans[-1][1] + 1 >= first:
                spans[-1] = (min(spans[-1][0], first), last)
            else:
                spans.append((first, last))

    def print(self, out: Out, depth: int = 0) -> None:
        """Append the text of `out`."""
        first = len(self.lines) + 1
        if isinstance(out, Lines):
            for text in out.lines:
                self.line(text, depth)
        else:
            for text in out.before:
                self.line(text, depth)
            bare = _is_single(out)
            comment = f"  // {out.comment}" if out.comment else ""
            self.line(f"{out.header}{'' if bare else ' {'}{comment}".lstrip(), depth)
            for child in out.body:
                self.print(child, depth + 1)
            if out.otherwise:
                self.line("} else {", depth)
                for child in out.otherwise:
                    self.print(child, depth + 1)
            if not bare:
                self.line("}", depth)
        self.mark(out.ids, first)

    def source_map(self) -> dict[str, tuple[tuple[int, int], ...]]:
        """Node id to its ranges of lines, 1-based and inclusive."""
        return {node: tuple(spans) for node, spans in self.spans.items()}

    def text(self) -> str:
        """Everything printed so far."""
        return "\n".join(self.lines) + "\n"


def _is_single(block: Block) -> bool:
    """Whether the block is an ``if`` over one plain statement, which needs no braces."""
    if not block.header.startswith("if") or block.otherwise or len(block.body) != 1 or not isinstance(block.body[0], Lines):
        return False
    lines = block.body[0].lines
    if block.body[0].declares:
        return False
    return len(lines) == 1 and lines[0].split("//")[0].rstrip().endswith(";") and lines[0].count(";") == 1


def code(outs: Iterable[Out]) -> list[str]:
    """The lines of code, without comments."""
    lines: list[str] = []
    for out in outs:
        if isinstance(out, Lines):
            lines += [line.split("//")[0] for line in out.lines]
        else:
            lines += [out.header, *code(out.body), *code(out.otherwise)]
    return lines
