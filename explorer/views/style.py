"""One small stylesheet for every static picture; colours come from the host (JupyterLab, VS Code), light or dark.

Every text colour is either one of the host's two text colours or a hue mixed with the host's main text colour, so that
one rule serves both themes: the mixture is darker than the hue on white and lighter than it on black.  `HUES` and
`FALLBACKS` are data so that a test can compute the contrast of each against each background.  Hues are from the Okabe-Ito
palette, which people with any form of colour blindness can tell apart (https://jfly.uni-koeln.de/color/); each comes
with a glyph or a word, never alone.
"""

from __future__ import annotations

import re
from html import escape

ROLE_GLYPHS: dict[str, tuple[str, str]] = {
    "seq": ("↻", "time"), "unroll": ("≡", "time"), "vector": ("⇉", "vector"), "tensor": ("⊗", "vector"),
    "launch": ("▸", "launch"),
    "block.x": ("▦", "block"), "block.y": ("▦", "block"), "block.z": ("▦", "block"),
    "thread.x": ("∥", "thread"), "thread.y": ("∥", "thread"), "thread.z": ("∥", "thread"),
    "warp": ("≋", "thread"), "lane": ("∥", "thread"),
}
"""Role to (glyph, colour class): colour is never the only signal."""

HUES: dict[str, tuple[str, int]] = {
    "block": ("#0072b2", 66), "thread": ("#c46100", 72), "vector": ("#00856a", 72), "launch": ("#8d4e93", 64),
    "new": ("#0b62d6", 52), "bad": ("#c22222", 55), "good": ("#1a7f37", 70), "kw": ("#0550ae", 52),
}
"""Colour class to (hue, percent of it in the mixture with the main text colour)."""

FALLBACKS: dict[str, tuple[str, str]] = {"light": ("#ffffff", "#1f2328"), "dark": ("#121417", "#e6edf3")}
"""(background, main text) where the host names none: by the reader's preference."""
LONG = 48
"""Characters beyond which a value is a sentence."""
SOFT = 72
"""Percent of the main text colour in secondary text."""


def _rules() -> str:
    spoken = {"kw": ",.ex .t-kw", "vector": ",.ex .t-type", "good": ",.ex .t-str", "thread": ",.ex .t-guard"}
    hues = "".join(f".ex .{name},.ex .c-{name}{spoken.get(name, '')}{{color:color-mix(in srgb,{hue} {share}%,var(--fg))}}"
                   for name, (hue, share) in HUES.items())
    background, text = (f"light-dark({a},{b})" for a, b in zip(FALLBACKS["light"], FALLBACKS["dark"], strict=True))
    return f"""
.ex{{--fg:var(--jp-content-font-color0,var(--vscode-editor-foreground,{text}));
--bg:var(--jp-layout-color0,var(--vscode-editor-background,{background}));
--soft:color-mix(in srgb,var(--fg) {SOFT}%,var(--bg));--line:color-mix(in srgb,var(--fg) 17%,var(--bg));
--mono:var(--jp-code-font-family,var(--vscode-editor-font-family,ui-monospace,SFMono-Regular,Menlo,monospace));
color-scheme:light dark;color:var(--fg);background:var(--bg);font:13px/1.55 var(--jp-ui-font-family,system-ui,sans-serif);
border:1px solid var(--line);border-radius:8px;max-width:1100px;margin:4px 0;overflow:hidden}}
.ex *{{box-sizing:border-box}}
.ex .head{{padding:7px 14px;border-bottom:1px solid var(--line);display:flex;flex-wrap:wrap;gap:2px 14px;align-items:baseline}}
.ex .head:last-child{{border-bottom:0}}
.ex .head b{{font-size:14px}}.ex .body{{padding:8px 14px;overflow-x:auto}}
.ex .body+.body,.ex details{{border-top:1px solid var(--line)}}.ex .head+details{{border-top:0}}
.ex code,.ex pre{{font:12.5px/1.5 var(--mono);background:none;color:inherit;margin:0;padding:0;white-space:pre;border:0;
word-break:normal;overflow-wrap:normal}}
.ex pre.tree{{font:inherit;white-space:normal}}.ex .in{{display:none}}
.ex .row{{display:block;padding-left:calc(var(--d)*18px + 36px);text-indent:-36px;line-height:1.65;
background:repeating-linear-gradient(90deg,transparent 0 6px,var(--line) 6px 7px,transparent 7px 18px)
0 0/calc(var(--d)*18px) 100% no-repeat}}
.ex .row *{{text-indent:0}}.ex .row .code{{font:12.5px/1.5 var(--mono);white-space:pre-wrap}}
.ex .row .glyph{{display:inline-block;width:14px}}
.ex .t-name,.ex b,.ex th{{font-weight:600}}
.ex .soft,.ex .c-soft,.ex .c-time,.ex .t-com,.ex .t-note,.ex .no{{color:var(--soft)}}
.ex .chip{{border:1px solid currentColor;border-radius:9px;padding:0 7px;font-size:11px;margin-left:4px;white-space:nowrap}}
.ex table{{border-collapse:collapse;font-size:12.5px;margin:0;border:0;table-layout:auto}}
.ex table tr,.ex table tr td,.ex table tr th{{background:none!important;color:inherit;border:0;text-align:left;
vertical-align:baseline;max-width:none}}
.ex table tr td,.ex table tr th{{border-bottom:1px solid var(--line);padding:3px 14px 3px 0;white-space:nowrap}}
.ex table tr:last-child td{{border-bottom:0}}
.ex table tr .n{{text-align:right;font-variant-numeric:tabular-nums}}.ex table tr .w{{white-space:normal;min-width:12em}}
.ex dl{{display:grid;grid-template-columns:max-content 1fr;gap:3px 14px;margin:0;padding:0}}
.ex dt{{color:var(--soft);font-weight:400;grid-column:1}}.ex dd{{margin:0;grid-column:2;min-width:0}}
.ex dd code,.ex .w code{{display:inline-block;max-width:100%;white-space:pre-wrap}}
.ex .bar{{border-left:4px solid currentColor}}.ex .bar>*{{color:var(--fg)}}
.ex dl.facts{{display:flex;flex-wrap:wrap;gap:8px 26px}}.ex .facts dt{{font-size:12px}}
.ex .facts dd{{font-size:15px;font-weight:600}}.ex .facts .soft,.ex .facts .long{{font-size:13px;font-weight:400}}
.ex details>summary{{padding:5px 14px;cursor:pointer;color:var(--soft)}}
.ex details[open]>summary{{border-bottom:1px solid var(--line)}}
.ex .no,.ex .new{{user-select:none}}.ex .new{{box-shadow:-6px 0 var(--bg),-9px 0 currentColor}}
.ex .ostrip{{display:flex;gap:5px;overflow-x:auto;padding:0 0 6px}}
.ex .ocell{{flex:none;display:grid;border:1px solid var(--line);border-radius:6px;padding:2px 8px;font:12px/1.45 var(--mono);
text-align:center}}
.ex .ocell.wrong{{outline:2px solid color-mix(in srgb,{HUES["bad"][0]} {HUES["bad"][1]}%,var(--fg));outline-offset:-2px}}
.ex .orders{{display:flex;flex-wrap:wrap;gap:2px 28px;padding-bottom:6px}}.ex .oorder{{flex:1 1 260px;min-width:0}}
.ex .found{{margin:0}}.ex .trials{{list-style:none;margin:0;padding:0;max-width:760px}}
.ex .trial{{display:grid;grid-template-columns:13px minmax(0,1fr) max-content;gap:0 6px;padding:2px 0;align-items:baseline}}
.ex .trial.done .tlabel{{color:var(--fg)}}.ex .tlabel{{color:var(--soft)}}.ex .sest,.ex .sdoes{{font-size:12px}}
.ex .sdoes{{grid-column:2/-1}}.ex .trial.done .tbar{{display:block;grid-column:2/-1;height:3px;border-radius:2px;
background:var(--line);margin:2px 0;overflow:hidden}}.ex .tbar{{display:none}}
.ex .tbar i{{display:block;height:100%;background:var(--soft)}}
.ex .oname{{font-weight:600}}.ex .oorder ol{{margin:0;padding:0 0 0 24px}}
.ex svg{{vertical-align:middle;overflow:visible}}
{hues}"""


CSS = re.sub(r"(^|[,}\n])\.ex ", r"\1.ex.ex.ex ", _rules()).replace("\n", "")
"""Tripled class: hosts style ``td`` and ``code`` inside outputs, with up to two classes in the selector."""


def _selectors(rule: str) -> tuple[frozenset[str], ...]:
    """The classes that each selector of a rule asks for, the picture's own apart."""
    parts = rule.partition("{")[0].split(",")
    return tuple(frozenset(re.findall(r"\.([a-z][a-z-]*)", part)) - {"ex"} for part in parts)


_EACH = tuple((_selectors(rule), rule) for rule in re.findall(r"[^{}]+\{[^{}]*\}", CSS))


def css_for(html: str) -> str:
    """The rules that a picture can use: every picture of a notebook brings its own."""
    present = {name for found in re.findall(r'class="?([^">]*)', html) for name in found.split()}
    return "".join(rule for asked, rule in _EACH if any(one <= present for one in asked))


def page(title: str, small: str, *bodies: str, bar: str = "") -> str:
    """A self-contained picture.

    Parameters
    ----------
    title, small : str
        Plain text of the heading: what it is, and facts beside it.
    *bodies : str
        HTML (already escaped), each a section; an empty one is left out.
    bar : {"", "good", "bad"}
        Colour of a bar at the left edge, for verdicts (which say in words what the colour says).
    """
    sections = "".join(b if b.startswith("<details") else f'<div class="body">{b}</div>' for b in bodies if b)
    head = f'<div class="head"><b>{escape(title)}</b> <span class="soft">{escape(small)}</span></div>' if title else ""
    inner = f'<div class="bar {bar}"><div>{head}{sections}</div></div>' if bar else head + sections
    whole = f'<div class="ex">{inner}</div>'
    return f"<style>{css_for(whole)}</style>{whole}"


def table(columns: tuple[str, ...], rows: list[tuple[str, ...]], numeric: frozenset[str] = frozenset(),
          wide: tuple[str, ...] = (), kind: str = "") -> str:
    """A table of already escaped cells; columns in `numeric` stand right, those in `wide` may break their lines; one of a kind
    (a class) has heads of rows.
    """
    cells = {c: ' class="n"' if c in numeric else ' class="w"' if c in wide else "" for c in columns}
    head = "".join(f'<th scope="col"{cells[c]}>{escape(c)}</th>' for c in columns)
    first = ("th scope=row", "th") if kind else ("td", "td")
    tags = [first, *[("td", "td")] * (len(columns) - 1)]
    body = "".join(f"<tr>{''.join(f'<{a}{cells[c]}>{v}</{b}>' for (a, b), c, v in zip(tags, columns, row, strict=True))}</tr>"
                   for row in rows)
    named = f' class="{kind}"' if kind else ""
    return f"<table{named}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def cards(*rows: tuple[str, str, str], kind: str = "") -> str:
    """Figures side by side: (label, value, remark), plain text; a long value is a sentence."""
    def shown(value: str, note: str) -> str:
        remark = f' <span class="soft">{escape(note)}</span>' if note else ""
        return f'<dd{" class=long" if len(value) > LONG else ""}>{escape(value)}{remark}</dd>'

    inner = "".join(f"<div><dt>{escape(label)} </dt>{shown(value, note)}</div>" for label, value, note in rows)
    return f'<dl class="{f"facts {kind}".strip()}">{inner}</dl>'


def definitions(*pairs: tuple[str, str]) -> str:
    """Term (plain text) and description (HTML) side by side; pairs without description are left out."""
    return "<dl>" + "".join(f"<dt>{escape(t)}</dt><dd>{d}</dd>" for t, d in pairs if d) + "</dl>"


def mark(good: bool | None, text: str) -> str:
    """A tick, a cross or a dot before a word, coloured to match."""
    glyph, colour = {True: ("✓", "good"), False: ("✗", "bad"), None: ("·", "soft")}[good]
    return f'<span class="{colour}">{glyph} {escape(text)}</span>'
