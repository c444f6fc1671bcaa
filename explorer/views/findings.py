"""Refusals as cards: what is wrong, the smallest pair of instances, both orders, the user's lines, what to try."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from ..errors import ExplorerError
from ..ir.finding import Finding, Instance, Verdict
from ..ir.program import Program
from .reprs import picture_of
from .style import definitions, page

_QUESTIONS = {"cover": "every instance runs exactly once", "order": "each dependence keeps its order",
              "obligation": "updates that may race are collected", "flow": "each read finds its value",
              "race": "no two threads meet at one cell"}


@picture_of("ir.finding.Finding")
def finding_html(finding: Finding, program: Program | None = None, title: str = "") -> str:
    """A finding; with the program, its source lines are quoted."""
    question = _QUESTIONS.get(finding.question, "")
    small = f"{finding.question}: {question}" if question else finding.question
    return page(title or finding.what, small, finding_body(finding, program, bool(title)), bar="bad")


def finding_body(finding: Finding, program: Program | None, say: bool) -> str:
    """The facts of a finding; with `say` its sentence too."""
    pair = ""
    if finding.source and finding.sink:
        pair = f"first <b>{_instance(finding.source)}</b>, then <b>{_instance(finding.sink)}</b>"
    elif finding.source:
        pair = f"<b>{_instance(finding.source)}</b>"
    element = f"{finding.array}[{', '.join(map(str, finding.element))}]" if finding.element else finding.array
    kind = f" ({finding.kind} dependence)" if finding.kind in ("flow", "anti", "output") else ""
    return definitions(
        ("what", escape(finding.what) if say else ""),
        ("program" if finding.sink else "instance", pair),
        ("through", f"<code>{escape(element)}</code>{escape(kind)}" if element else ""),
        ("order" if finding.question == "order" else "because", escape(finding.why)),
        ("source", source_lines(finding.lines, program)),
        ("try", tries(finding.hints)),
    )


@picture_of("ir.finding.Verdict")
def verdict_html(verdict: Verdict) -> str:
    """A verdict: one line where it applies, a card where it does not."""
    if verdict:
        return page("applies", "", bar="good")
    if verdict.finding:
        return finding_html(verdict.finding, title=verdict.what)
    return page(verdict.what, "", definitions(("why", escape(verdict.why)), ("try", tries((verdict.hint,)))), bar="bad")


@picture_of("errors.ExplorerError")
def error_html(error: ExplorerError) -> str:
    """Any error of this package: its sentence, its place, its reason, the next step."""
    details: dict[str, Any] = error.details
    finding = details.get("finding")
    name = type(error).__name__
    if isinstance(finding, Finding):
        step = details.get("step")
        title = f"{step} is not legal" if step is not None else finding.what
        return page(title, name, finding_body(finding, details.get("program"), step is not None), bar="bad")
    found = details.get("diagnostics") or ()
    reasons = "<br>".join(_diagnostic(d) for d in found) if found else _lines(error.why)
    body = definitions(("where", _lines(error.where)), ("why", reasons), ("try", tries((error.hint,))))
    return page(error.what, name, body, bar="bad")


def tries(hints: Sequence[str]) -> str:
    """What to try, each on its own line; calls in the code font."""
    return "<br>".join(f"<code>{escape(h)}</code>" if _is_call(h) else escape(h) for h in hints if h)


def source_lines(lines: tuple[int, ...], program: Program | None) -> str:
    """The user's lines, quoted where the program's text is known."""
    text = (program.source if program else "").splitlines()
    first = program.first_line if program else 0
    out = []
    for line in dict.fromkeys(lines):
        quoted = text[line - first].strip() if 0 <= line - first < len(text) else ""
        out.append(f'<span class="soft">line {line}</span>' + (f"&ensp;<code>{escape(quoted)}</code>" if quoted else ""))
    return "<br>".join(out)


def _is_call(hint: str) -> bool:
    return "(" in hint and hint.endswith(")") and hint[0].islower()


def _instance(instance: Instance) -> str:
    return f"<code>{escape(str(instance))}</code>"


def _lines(text: str) -> str:
    """Several lines keep their columns (a caret stands under its character)."""
    return f"<pre>{escape(text)}</pre>" if "\n" in text else escape(text)


def _diagnostic(found: Any) -> str:
    place = f"line {found.line}" if found.line else ""
    nodes = f" ({', '.join(found.nodes)})" if found.nodes else ""
    quoted = f"<br><code>{escape(found.text.strip())}</code>" if found.text else ""
    return f'<span class="soft">{escape(place + nodes)}</span> {escape(found.message)}{quoted}'
