"""Small inline SVG: how much of the floor a time reaches, and where a median lies in its interval."""

from __future__ import annotations

from html import escape

WIDTH, HEIGHT = 220, 10


def share_bar(share: float, label: str) -> str:
    """A bar filled to `share` (1 is the limit); beyond the limit it is full."""
    filled = WIDTH * min(max(share, 0.0), 1.0)
    return (f'<svg width="{WIDTH + 2}" height="{HEIGHT}" role="img" aria-label="{escape(label)}">'
            f'<rect x="1" y="1" width="{WIDTH}" height="{HEIGHT - 2}" rx="3" fill="none" stroke="var(--soft)"/>'
            f'<rect class="block" x="1" y="1" width="{filled:.1f}" height="{HEIGHT - 2}" rx="3" fill="currentColor"/></svg>')


def interval_bar(low: float, middle: float, high: float, samples: tuple[float, ...], label: str,
                 scale: tuple[float, float] | None = None) -> str:
    """Samples as ticks, the interval as a band, the median as a line; `scale` is by default the samples' own range."""
    first, last = scale or (min(*samples, low), max(*samples, high))
    span = (last - first) or 1.0

    def x(value: float) -> float:
        return 1 + WIDTH * (value - first) / span

    ticks = "".join(f"M{x(v):.1f} 3v6" for v in samples[:400])
    wide = max(x(high) - x(low), 1)
    return (f'<svg width="{WIDTH + 2}" height="12" role="img" aria-label="{escape(label)}">'
            f'<rect class="block" x="{x(low):.1f}" y="1" width="{wide:.1f}" height="10" fill="currentColor" fill-opacity=".25"/>'
            f'<path d="{ticks}" stroke="var(--soft)" fill="none"/>'
            f'<path class="block" d="M{x(middle):.1f} 0v12" stroke="currentColor" stroke-width="2"/></svg>')
