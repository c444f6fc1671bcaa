"""An illegal order, executed, for its picture and for the panes: the wrong cell among its neighbours, both orders, the inputs."""

from __future__ import annotations

from html import escape

from ..run.counterexample.result import Counterexample
from .code import cuda_sections
from .findings import instance_html, order_text, pair_html
from .reprs import picture_of
from .style import definitions, page


@picture_of("run.counterexample.result.Counterexample")
def counterexample_html(found: Counterexample) -> str:
    """What a refused step would compute."""
    return page(found.verdict, found.step, *_parts(found), bar="bad" if found.caught else "")


def counter_box(found: Counterexample) -> str:
    """The same as a pane shows it."""
    sign, colour = ("✗", "bad") if found.caught else ("·", "soft")
    return ('<div class="counterbox" role="group" aria-label="the counterexample, executed"><p class="what">'
            f'<span class="{colour}" aria-hidden="true">{sign} </span>{escape(found.verdict)}</p>{"".join(_parts(found))}</div>')


def _parts(found: Counterexample) -> tuple[str, str]:
    """The facts, and the CUDA text folded away."""
    finding = found.finding
    inputs = "".join(f"<div><code>{escape(values)}</code></div>" for _, values in found.inputs)
    sizes = ", ".join(f"{name} = {value}" for name, value in found.sizes)
    shown = f"{found.shown_by}: {found.order}" if found.shown_by else ""
    pair = pair_html(finding) if finding and finding.source and finding.sink else ""
    facts = definitions(("inputs", inputs), ("run at", escape(sizes)), ("shown by", escape(shown)),
                        ("CPU device", escape(found.device)), ("pair", pair))
    return _cells(found) + _orders(found) + (facts if "<dt>" in facts else ""), _cuda(found.text, found.above)


def _cells(found: Counterexample) -> str:
    """Cells of the output around the first wrong one, as they stand in memory: what came out above what must."""
    if not found.cells:
        return ""
    cells = "".join(_cell(name, got, expected, mark == "wrong") for name, got, expected, mark in found.cells)
    return f'<div class="ostrip" role="group" aria-label="cells around the first wrong one" tabindex="0">{cells}</div>'


def _cell(name: str, got: str, expected: str, wrong: bool) -> str:
    title, value = escape(f"{name} is {got}, must be {expected}"), escape(got)
    what = (f'<b class="bad">✗ {value}</b> <span class="good">must be {escape(expected)}</span>' if wrong
            else f'<span>{value}</span> <span class="soft">✓ right</span>')
    return f'<div class="ocell{" wrong" if wrong else ""}" title="{title}"><span class="soft">{escape(name)}</span> {what}</div>'


def _orders(found: Counterexample) -> str:
    """Both orders side by side: the writes of the wrong cell with their values, and the pair that changes places."""
    if not found.array or not found.got:
        return ""
    element = f"[{', '.join(map(str, found.element))}]" if found.element else ""
    cell, finding = escape(found.array + element), found.finding
    writes = [f"<code>{escape(who)}</code> leaves {cell} = <b>{escape(value)}</b>" if value else escape(who)
              for who, value in found.trace]  # fmt: skip
    pair = (finding.sink, finding.source) if finding and finding.source and finding.sink else ()
    times = [(instance_html(one), escape(order_text(one))) for one in pair]
    refused = [f'{one}<span class="soft"> at {when}</span>' if when else one for one, when in times]
    refused.append(f'in the end <code>{cell}</code> is <b class="bad">{escape(found.got)}</b>')
    return (f'<div class="orders">{_order(f"in the program: {found.expected}", writes or [f"<code>{cell}</code>"])}'
            f'{_order(f"in the refused order: {found.got}", refused)}</div>')


def _order(name: str, items: list[str]) -> str:
    return (f'<div class="oorder"><div class="oname">{escape(name)}</div>'
            f'<ol>{"".join(f"<li>{item}</li>" for item in items)}</ol></div>')


def _cuda(text: str, above: int) -> str:
    if not text:
        return ""
    what = "the illegal order as CUDA"
    return (f'<details><summary>{what}</summary><div class="body cudatext" role="region" tabindex="0" aria-label="{what}">'
            f'{"".join(cuda_sections(text, above))}</div></details>')
