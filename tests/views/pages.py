"""Reading pictures as a browser and as a host without styles would."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"br", "rect", "path"}
"""Elements without an end tag; the SVG ones are closed in place."""


class Page(HTMLParser):
    """Checks that tags balance; collects what is shown, tables and attributes.

    Attributes
    ----------
    text : str
        What is left without tags and stylesheet.
    tables : list of list of list of str
        Rows of cells, header first.
    nodes : list of str
        The ids of the nodes that rows carry.
    tags : set of str
    """

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.text, self.tables, self.nodes, self.tags = "", [], [], set()
        self.feed(html)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.nodes += [v for k, v in attrs if k == "data-node" and v]
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        elif tag == "br":
            self.text += "\n"
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        self.text += data
        if {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data
