"""Colours: every text is legible on the host's light and dark background, and no sheet leaks out of its picture."""

from __future__ import annotations

import re

import pytest

from explorer.views.style import CSS, FALLBACKS, HUES, SOFT, cards, definitions, mark, page, table

from .pages import Page

HOSTS = {**FALLBACKS, "lab light": ("#ffffff", "#000000"), "lab dark": ("#111111", "#ffffff"),
         "code light": ("#ffffff", "#3b3b3b"), "code dark": ("#1f1f1f", "#cccccc")}  # fmt: skip
"""(background, text) of the fallbacks, of JupyterLab's and of VS Code's default themes."""


def rgb(colour: str) -> tuple[float, ...]:
    return tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))


def mix(first: tuple[float, ...], percent: float, second: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(percent / 100 * a + (1 - percent / 100) * b for a, b in zip(first, second))


def contrast(first: tuple[float, ...], second: tuple[float, ...]) -> float:
    """Contrast ratio of WCAG 2.1."""

    def luminance(colour: tuple[float, ...]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_of_known_pairs() -> None:
    assert contrast(rgb("#000000"), rgb("#ffffff")) == pytest.approx(21)
    assert contrast(rgb("#777777"), rgb("#ffffff")) == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("host", HOSTS)
def test_every_text_colour_is_legible(host: str) -> None:
    background, text = map(rgb, HOSTS[host])
    for name, (hue, percent) in HUES.items():
        assert contrast(mix(rgb(hue), percent, text), background) >= 4.5, name
    assert contrast(mix(text, SOFT, background), background) >= 4.5


def test_every_rule_is_confined_to_pictures() -> None:
    for selectors in re.findall(r"([^{}]+)\{", CSS):
        for selector in selectors.split(","):
            assert selector.strip().startswith(".ex"), selector


def test_colours_come_from_the_host() -> None:
    assert "--jp-content-font-color0" in CSS
    assert "--vscode-editor-foreground" in CSS
    assert "light-dark(" in CSS


def test_parts_escape_and_leave_out_what_is_empty() -> None:
    assert Page(page("<i>", "a & b", "", "body")).text == "<i> a & bbody"
    assert "head" not in page("", "", "body").partition("</style>")[2]
    assert Page(cards(("<l>", "<v>", "<r>"))).text == "<l> <v> <r>"
    assert Page(definitions(("a", "x"), ("b", ""))).text == "ax"
    assert Page(table(("<c>", "n"), [("x", "1")], frozenset({"n"}))).tables == [[["<c>", "n"], ["x", "1"]]]
    assert [Page(mark(good, "<w>")).text for good in (True, False, None)] == ["✓ <w>", "✗ <w>", "· <w>"]
