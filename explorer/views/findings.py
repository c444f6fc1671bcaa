"""Refusals as cards: what is wrong, the smallest pair of instances, both orders, the user's lines, what to try."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Refusal:
    """A refusal in words; `hints` are (text, the step in it that applies here, or None)."""

    what: str
    why: str = ""
    where: str = ""
    hints: tuple[tuple[str, str | None], ...] = ()
    finding: Finding | None = None


def refusal_of(finding: Finding, program: Program | None, title: str = "") -> Refusal:
    """A finding in words; with a title, the finding's own sentence goes before the reason."""
    why = ". ".join(filter(None, (finding.what if title else "", finding.why)))
    hints = tuple((hint, None) for hint in finding.hints)
    return Refusal(title or finding.what, why, source_lines(finding.lines, program), hints, finding)


def refusal_box(refusal: Refusal) -> str:
    """A refusal as a pane shows it: nodes that can be selected, steps that can be taken, and what can be shown of its pair."""
    facts = refusal_facts(refusal, live=True)
    return (f'<div class="problem" role="group" aria-label="refused: {escape(refusal.what)}"><p class="what">'
            f'<span class="bad" aria-hidden="true">✗ </span>{escape(refusal.what)}</p>{facts if "<dt>" in facts else ""}</div>')


def refusal_facts(refusal: Refusal, live: bool = False) -> str:
    """Why, where, the smallest pair of instances with both orders, and what to try; `live` with buttons."""
    finding, pair, order, more = refusal.finding, "", "", ""
    if finding and (finding.source or finding.sink):
        both = [one for one in (finding.source, finding.sink) if one]
        pair = pair_html(finding) + (_nodes(finding.nodes) if live else "")
        times = [(one, order_text(one)) for one in both]
        order = "<br>".join(f"{instance_html(one)} at <code>{escape(when)}</code>" for one, when in times if when)
    if finding and live:
        more = _button("drawpair", "draw the pair") if finding.source and finding.sink else ""
        more += _button("execute", "run the counterexample")
    hints = "".join(_hint(*hint) for hint in refusal.hints) if live else tries([text for text, _ in refusal.hints])
    why = refusal.why if refusal.why != refusal.what else ""
    sizes = finding.proof.when if finding and finding.proof and finding.proof.condition not in why else ""
    facts = ("why", _lines(why)), ("sizes", _lines(sizes)), ("where", _lines(refusal.where))
    return definitions(*facts, ("pair", pair), ("order", order), ("try", hints + more))


@picture_of("ir.finding.Finding")
def finding_html(finding: Finding, program: Program | None = None, title: str = "") -> str:
    """A finding; with the program, its source lines are quoted."""
    question = _QUESTIONS.get(finding.question, "")
    small = f"{finding.question}: {question}" if question else finding.question
    return _card(refusal_of(finding, program, title), small)


@picture_of("ir.finding.Verdict")
def verdict_html(verdict: Verdict) -> str:
    """A verdict: one line where it applies, a card where it does not."""
    if verdict:
        return page("applies", "", bar="good")
    if verdict.finding:
        return finding_html(verdict.finding, title=verdict.what)
    return _card(Refusal(verdict.what, verdict.why, hints=((verdict.hint, None),)), "")


@picture_of("errors.ExplorerError")
def error_html(error: ExplorerError) -> str:
    """Any error of this package: its sentence, its place, its reason, the next step."""
    details: dict[str, Any] = error.details
    finding = details.get("finding")
    name = type(error).__name__
    if isinstance(finding, Finding):
        step = details.get("step")
        return _card(refusal_of(finding, details.get("program"), f"{step} is not legal" if step is not None else ""), name)
    if found := details.get("diagnostics"):
        reasons = "<br>".join(_diagnostic(d) for d in found)
        body = definitions(("where", _lines(error.where)), ("why", reasons), ("try", tries((error.hint,))))
        return page(error.what, name, body, bar="bad")
    return _card(Refusal(error.what, error.why, error.where, ((error.hint, None),)), name)


def _card(refusal: Refusal, small: str) -> str:
    return page(refusal.what, small, refusal_facts(refusal), bar="bad")


def tries(hints: Sequence[str]) -> str:
    """What to try, each on its own line; calls in the code font."""
    return "<br>".join(f"<code>{escape(h)}</code>" if _is_call(h) else escape(h) for h in hints if h)


def source_lines(lines: Iterable[int], program: Program | None) -> str:
    """The user's lines, quoted where the program's text is known."""
    text = program.source.splitlines() if program else []
    first = program.first_line if program else 0
    out = []
    for line in dict.fromkeys(lines):
        quoted = text[line - first].strip() if 0 <= line - first < len(text) else ""
        out.append(f"line {line}: {quoted}" if quoted else f"line {line}")
    return "\n".join(out)


def pair_html(finding: Finding) -> str:
    """The instances of a finding, the one that runs first in the program first, and what they meet on."""
    return " → ".join(instance_html(one) for one in (finding.source, finding.sink) if one) + _cell(finding)


def order_text(instance: Instance | None) -> str:
    """Where and when an instance would run: ``block.x 3, time (0, 2)``."""
    if instance is None:
        return ""
    parts = [f"{role} {value}" for role, value in instance.place]
    if instance.time:
        parts.append(f"time ({', '.join(map(str, instance.time))})")
    return ", ".join(parts)


def _cell(finding: Finding) -> str:
    element = f"[{', '.join(map(str, finding.element))}]" if finding.element else ""
    kind = f" ({finding.kind} dependence)" if finding.kind in ("flow", "anti", "output") else ""
    return f'<span class="soft"> on {escape(finding.array + element + kind)}</span>' if finding.array else ""


def _nodes(nodes: tuple[str, ...]) -> str:
    links = (f'<button class="nodelink" type="button" data-node="{escape(n)}" title="select {escape(n)}">{escape(n)}</button>'
             for n in nodes)
    return f'<span class="nodes">{"".join(links)}</span>'


def _button(kind: str, words: str) -> str:
    return f'<button class="hint {kind}" type="button">{words}</button>'


def _hint(text: str, call: str | None) -> str:
    """Something to try, with the step in it as code, once."""
    if not call:
        return f'<span class="hintword">{escape(text)}</span>'
    before, found, after = text.partition(call)
    said = f"{escape(before if found else text + ' ')}<code>{escape(call)}</code>{escape(after)}"
    return (f'<button class="hint" type="button" data-call="{escape(call)}" title="apply {escape(call)}">{said}'
            '<span aria-hidden="true"> →</span></button>')


def _is_call(hint: str) -> bool:
    return "(" in hint and hint.endswith(")") and hint[0].islower()


def instance_html(instance: Instance) -> str:
    """``S0[0, 1]`` in the code font."""
    return f"<code>{escape(str(instance))}</code>"


def _lines(text: str) -> str:
    """Several lines keep their columns (a caret stands under its character)."""
    return f'<pre tabindex="0">{escape(text)}</pre>' if "\n" in text else escape(text)


def _diagnostic(found: Any) -> str:
    place = f"line {found.line}" if found.line else ""
    nodes = f" ({', '.join(found.nodes)})" if found.nodes else ""
    quoted = f"<br><code>{escape(found.text.strip())}</code>" if found.text else ""
    return f'<span class="soft">{escape(place + nodes)}</span> {escape(found.message)}{quoted}'
