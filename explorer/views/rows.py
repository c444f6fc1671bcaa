"""A line of a loop nest, or of a schedule tree, as HTML: glyph, code and chips, under its node's mark.

Static pictures and the explorer's panes show the same row.  In a picture it is an item of a list, with real spaces before it that
a host shows when it strips styles; in a pane it is an item of a tree, with what a screen reader says and what the mouse finds.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from .highlight import highlight_line


@dataclass(frozen=True)
class Chip:
    """A small label: a role, a place, a mechanism, a strategy; `title` says more, `still` stands where no title can be read."""

    text: str
    colour: str = "soft"
    title: str = ""
    still: str = ""


@dataclass(frozen=True)
class Row:
    """One line.

    Attributes
    ----------
    key : str
        What tells it from the others.
    node : str or None
        The id of its node.
    kind : str
        kernel, loop, statement, sync, buffer, mark, or (schedule tree) domain, sequence, filter, band.
    depth : int
    glyph, colour : str
        Its sign, and the colour class of that: colour is never alone.
    code : str
        HTML.
    chips : tuple of Chip
    label : str
        What a screen reader says.
    """

    key: str
    node: str | None
    kind: str
    depth: int
    glyph: str
    colour: str
    code: str
    label: str
    chips: tuple[Chip, ...] = ()

    def html(self, live: bool) -> str:
        """The row as an item of a tree (`live`) or of a list."""
        mark = f' data-node="{escape(self.node)}"' if self.node is not None else ""
        chips = "".join(_chip(chip, live) for chip in self.chips)
        inner = (f'<span class="glyph {_class(self.colour)}" aria-hidden="true">{escape(self.glyph)}</span> '
                 f'<span class="words"><span class="code">{self.code}</span>{chips}</span>\n')
        if not live:
            indent = f'<span class="in">{"    " * self.depth}</span>' if self.depth else ""
            return f'<span class="row" role="listitem"{mark} style="--d:{self.depth}">{indent}{inner}</span>'
        return (f'<span class="row k-{self.kind}" role="treeitem" aria-level="{self.depth + 1}" '
                f'aria-label="{escape(self.label)}"{mark} style="--d:{self.depth}"><span class="twist" aria-hidden="true"></span>'
                f'{inner}</span>')


def piece(text: str, kind: str) -> str:
    """Text as HTML in a colour: ``kw name num note guard type``."""
    return f'<span class="t-{kind}">{escape(text, quote=False)}</span>'


def code(text: str) -> str:
    """A statement, or the text of a tree's node, in colours."""
    return highlight_line(text, python=True)


def _chip(chip: Chip, live: bool) -> str:
    title = f' title="{escape(chip.title or chip.text)}"' if live else ""
    text = chip.text if live else chip.still or chip.text
    return f' <span class="chip {_class(chip.colour)}"{title}>{escape(text)}</span>'


def _class(colour: str) -> str:
    return f"c-{colour}" if colour else ""
