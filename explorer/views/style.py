"""One small stylesheet for every static picture; colours come from the host (JupyterLab, VS Code), light or dark."""

from __future__ import annotations

from html import escape

ROLE_GLYPHS: dict[str, tuple[str, str]] = {
    "seq": ("↻", "time"), "unroll": ("≡", "time"), "vector": ("⇉", "vector"), "launch": ("⏵", "launch"),
    "block.x": ("▦", "block"), "block.y": ("▦", "block"), "block.z": ("▦", "block"),
    "thread.x": ("∥", "thread"), "thread.y": ("∥", "thread"), "thread.z": ("∥", "thread"),
    "warp": ("≋", "thread"), "lane": ("∥", "thread"),
}
"""Role to (glyph, colour class): colour is never the only signal."""

CSS = """
.ex{--fg:var(--jp-content-font-color1,var(--vscode-editor-foreground,CanvasText));
--soft:var(--jp-content-font-color2,var(--vscode-descriptionForeground,color-mix(in srgb,CanvasText 62%,Canvas)));
--bg:var(--jp-layout-color0,var(--vscode-editor-background,Canvas));
--line:var(--jp-border-color2,var(--vscode-panel-border,color-mix(in srgb,CanvasText 22%,Canvas)));
--code:var(--jp-code-font-family,var(--vscode-editor-font-family,ui-monospace,SFMono-Regular,Menlo,monospace));
color:var(--fg);background:var(--bg);font:13px/1.5 var(--jp-ui-font-family,system-ui,sans-serif);color-scheme:light dark;
border:1px solid var(--line);border-radius:8px;padding:10px 14px;max-width:1100px;overflow-x:auto}
.ex h4{margin:0 0 6px;font-size:14px;font-weight:600}.ex h4 small{color:var(--soft);font-weight:400;margin-left:.6em}
.ex code,.ex pre{font:12.5px/1.5 var(--code);background:none;color:inherit;margin:0;padding:0;white-space:pre}
.ex .row{white-space:pre;padding-left:calc(var(--d)*18px)}.ex .var{font-weight:600}.ex .soft{color:var(--soft)}
.ex .chip{border:1px solid currentColor;border-radius:9px;padding:0 7px;font-size:11px;margin-left:8px}
.ex .block{color:color-mix(in srgb,#0072b2 72%,var(--fg))}.ex .thread{color:color-mix(in srgb,#c46100 72%,var(--fg))}
.ex .vector{color:color-mix(in srgb,#00856a 76%,var(--fg))}.ex .launch{color:color-mix(in srgb,#8d4e93 78%,var(--fg))}
.ex .time{color:var(--soft)}.ex .bad{color:color-mix(in srgb,#c22222 76%,var(--fg))}.ex .good{color:color-mix(in srgb,#1a7f37 78%,var(--fg))}
.ex table{border-collapse:collapse;font-size:12.5px;background:none}.ex td,.ex th{border:0;border-bottom:1px solid var(--line);padding:2px 12px 2px 0;text-align:left;background:none;color:inherit}
.ex td.n{text-align:right;font-variant-numeric:tabular-nums}.ex .note{border-left:3px solid currentColor;padding-left:9px;margin:6px 0}
.ex .kw{color:color-mix(in srgb,#0550ae 72%,var(--fg))}.ex .cm{color:var(--soft)}.ex .no{color:var(--soft);user-select:none}
"""


def page(title: str, small: str, body: str) -> str:
    """A self-contained picture: stylesheet, heading, body (already escaped)."""
    return f'<style>{CSS}</style><div class="ex"><h4>{escape(title)}<small>{escape(small)}</small></h4>{body}</div>'
