"""Colours and plot layout for light and dark hosts.

Fills are from the Okabe-Ito palette and lighter shades of it (https://jfly.uni-koeln.de/color/), which people with any
form of colour blindness can tell apart; amounts use cividis (Nuñez, Anderton, Renslow, PLOS ONE 13(7), 2018).  No
figure says anything by colour alone: points carry numbers, bars words, lines dashes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

CYCLE = ("#0072B2", "#E69F00", "#F0C96B", "#56B4E9", "#E3B5D0", "#009E73", "#8FCB9B", "#CC79A7")
"""Fills of neighbouring threads or blocks; each differs in lightness from the next one and from the third after it."""
CIVIDIS = ("#00224E", "#123570", "#3B496C", "#575D6D", "#707173", "#8A8678", "#A59C74", "#C3B369", "#E1CC55", "#FEE838")
"""Small to large amounts."""
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"


@dataclass(frozen=True)
class Theme:
    """Colours of one theme.

    Attributes
    ----------
    name : str
    ink, soft, grid : str
        Text, secondary text, grid lines.
    paper : str
        What lies behind the figure (the figure itself is transparent): for text halos and buttons.
    block, thread, vector, copy, bad : str
        Roles, as in the loops: legible as lines and as text.
    plain : str
        Fill of what is not in focus.
    """

    name: str
    ink: str
    soft: str
    grid: str
    paper: str
    block: str
    thread: str
    vector: str
    copy: str
    bad: str
    plain: str


LIGHT = Theme(
    "light", "#1d2430", "#5b6474", "#e2e5ea", "#ffffff", "#0072B2", "#b45f06", "#007a5a", "#8a4f9e", "#b3261e", "#c9d0da"
)
DARK = Theme("dark", "#e6e9ee", "#a3acba", "#2f3742", "#171b21", "#6cb6ee", "#f0a958", "#5fd0a8", "#cf9be0", "#f28b82", "#48525f")
STATIC = Theme(
    "static",
    "currentColor",
    "currentColor",
    "currentColor",
    "none",
    "#2f86bd",
    "#c07622",
    "#2a9072",
    "#a06bb3",
    "#cf4b43",
    "#8d97a5",
)
"""For pictures without JavaScript: text takes the host's colour, hues are of middle lightness and serve both themes."""
THEMES = {theme.name: theme for theme in (LIGHT, DARK, STATIC)}


def contrast(a: str, b: str) -> float:
    """Contrast ratio of two colours, 1 to 21 (WCAG 2.2, "contrast ratio")."""
    high, low = sorted((_luminance(a), _luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def on(fill: str) -> str:
    """Black or white: the one that is read better on a fill."""
    return max(("#111111", "#ffffff"), key=lambda text: contrast(text, fill))


def amount(share: float) -> str:
    """The colour of an amount between 0 and 1, of cividis."""
    place = min(max(share, 0.0), 1.0) * (len(CIVIDIS) - 1)
    low = min(int(place), len(CIVIDIS) - 2)
    pairs = zip(_channels(CIVIDIS[low]), _channels(CIVIDIS[low + 1]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * (place - low)):02x}" for a, b in pairs)


def scale() -> list[list[Any]]:
    """Cividis as a Plotly colour scale."""
    return [[round(i / (len(CIVIDIS) - 1), 4), colour] for i, colour in enumerate(CIVIDIS)]


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _luminance(colour: str) -> float:
    def linear(channel: int) -> float:
        c = channel / 255
        return c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4

    r, g, b = map(linear, _channels(colour))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
