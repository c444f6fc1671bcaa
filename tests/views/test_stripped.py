"""What is left of a saved notebook where a viewer strips styles, classes, scripts and SVG (GitHub does): it must read well.

The front end itself is one module without imports and without addresses, so that it also runs where nothing can be fetched.
"""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser

import pytest

import explorer as ex
from explorer.app.assets import css, esm
from explorer.app.picture import caption, static_html, static_text
from explorer.app.session import Session
from explorer.views.findings import error_html
from tests.app.front import schedule
from tests.views.figures.support import matmul
from tests.views.figures.test_timeline import tensor

DROPPED = frozenset({"style", "script", "svg", "iframe", "object", "form", "input"})
KEPT = frozenset({"href", "title", "alt", "colspan", "rowspan", "open"})
BLOCKS = frozenset({"div", "p", "pre", "tr", "li", "details", "summary", "dt", "dd", "table", "br", "h3"})


class Strict(HTMLParser):
    """A sanitiser's work: the tags that stay with the attributes that stay, and the text as a reader gets it in lines."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.inside, self.html, self.text = 0, "", ""
        self.feed(html)
        self.lines = [line for line in self.text.splitlines() if line.strip()]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in DROPPED:
            self.inside += 1
        elif not self.inside:
            kept = "".join(f' {k}="{escape(v or "")}"' for k, v in attrs if k in KEPT)
            self.html += f"<{tag}{kept}>"
            self.text += "\n" if tag in BLOCKS else " | " if tag in ("td", "th") else ""

    def handle_endtag(self, tag: str) -> None:
        if tag in DROPPED:
            self.inside -= 1
        elif not self.inside:
            self.html += f"</{tag}>"
            self.text += "\n" if tag in BLOCKS else ""

    def handle_data(self, data: str) -> None:
        if not self.inside:
            self.html += escape(data)
            self.text += data


def test_the_explorers_picture_keeps_loops_script_and_the_way_back() -> None:
    s = matmul(stages=2)
    left = Strict(static_html(Session(s)))
    indents = {line.strip().split(" 0 …")[0][2:]: len(line) - len(line.lstrip()) for line in left.lines if " for " in line}
    assert indents["for i in"] < indents["for i.i in"] < indents["for k in"], "the nesting is told by blanks, not by styles"
    assert any("block.y" in line for line in left.lines), "a role is a word"
    assert any("✓ proved" in line for line in left.lines)
    assert any(line.strip().startswith('ex.explore(matmul, "ex1:') for line in left.lines)
    assert any(line.startswith("s = s.stage('a', 'k')") for line in left.lines)


@pytest.mark.parametrize("figure", ["domain", "memory", "fragments", "pipeline", "timeline", "roles", "ablation", "legality",
                                    "roofline", "price", "occupancy", "partials", "dependences"])  # fmt: skip
def test_a_figure_keeps_its_words_and_its_table(figure: str) -> None:
    shown = getattr((tensor(2) if figure == "fragments" else matmul(stages=2)).plot, figure)()
    left = Strict(shown._repr_html_())
    assert shown.title in map(str.strip, left.lines)
    assert re.sub(r"\s+", " ", shown.note) in re.sub(r"\s+", " ", left.text)
    rows = [[cell.strip() for cell in f"{line} ".split("| ")[1:]] for line in left.lines if " | " in line]
    assert rows[0] == list(shown.header)
    assert rows[1] == [re.sub(r"\s+", " ", str(cell)) for cell in shown.table[0][1:]]
    assert len(rows) == 1 + min(len(shown.table), 40)


def test_a_refusal_and_a_run_are_read_without_styles() -> None:
    with pytest.raises(ex.IllegalSchedule) as refused:
        schedule("softmax").fuse("k_2", "k_3")
    assert "S3[0, 1] writes total[0]" in Strict(error_html(refused.value)).text
    run = schedule("sum_rows").run(device="cpu", time=False)
    left = Strict(run._repr_html_())  # type: ignore[attr-defined]
    assert any("right" in line for line in left.lines)
    assert any(line.strip().startswith("| ✓ y") for line in left.lines)


def test_nothing_is_fetched_and_nothing_is_imported() -> None:
    text = re.sub(r"/\*\*.*?\*/", "", esm(), flags=re.S)
    assert not re.search(r"^\s*import\b(?!\()", text, re.M), "one module"
    assert not re.search(r"\brequire\(|importScripts", text)
    assert re.findall(r"import\((.*?)\)", text) == ["/* webpackIgnore: true */ url"], "plotly.js, from a Blob"
    assert text.rstrip().endswith("export default from_widget.main;")
    addresses = {a for a in re.findall(r"https?://[^\s\"'`)]+", text + css()) if "www.w3.org" not in a}
    assert not addresses
    assert not re.search(r"@import|url\((?!['\"]?data:)", css())
    html = static_html(Session(matmul(stages=2))) + matmul().plot.domain()._repr_html_()
    assert not re.search(r"<(script|link|img|iframe)|\son\w+=|src=|url\(", html)
    assert not {a for a in re.findall(r"https?://[^\s\"'<]+", html) if "www.w3.org" not in a}


def test_the_text_form_has_loops_script_and_the_way_back() -> None:
    session = Session(matmul(stages=2))
    text = static_text(session)
    assert "for k in" in text
    assert "s = s.pipeline('k', 2)" in text
    assert "# ex.explore(matmul, " in text
    assert "matmul" in caption(session)
