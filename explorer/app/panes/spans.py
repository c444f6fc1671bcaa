"""Text cut into styled pieces: Python and CUDA lines for panes that colour them."""

from __future__ import annotations

import re

from ..protocol import Span

_TYPES = (
    "void|float|double|int|long|unsigned|char|bool|half|half2|__half|__nv_bfloat16|float2|float4|uint2|uint4|"
    "f16|bf16|f32|f64|i8|i32|i64"
)
_WORDS = (
    "__global__|__device__|__forceinline__|__shared__|__restrict__|__launch_bounds__|__syncthreads|__syncwarp|__align__|"
    "extern|const|constexpr|static|for|if|else|while|return|struct|template|typename|using|inline|asm|volatile|in|and|or|not|where|inf"
)
_REST = (
    rf"(?P<str>\"(?:[^\"\\]|\\.)*\")|(?P<pre>^\s*#\s*\w+)|(?P<type>\b(?:{_TYPES})\b)|"
    rf"(?P<kw>\b(?:{_WORDS})\b)|"
    r"(?P<num>(?<![\w.])(?:0x[0-9a-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?)[fuUlL]*)|(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)|"
    r"(?P<op>[-+*/%=<>!&|^~?…]+)"
)
_CUDA, _PYTHON = re.compile(rf"(?P<com>//.*|/\*.*?\*/)|{_REST}"), re.compile(rf"(?P<com>#.*)|{_REST}")


def span(text: str, kind: str = "") -> Span:
    """One piece with its class."""
    return {"text": text, "class": kind}


def code_spans(line: str, python: bool = False) -> list[Span]:
    """A line of CUDA, or of Python and schedules (where ``//`` divides), as pieces; joined they are the line."""
    out: list[Span] = []
    last = 0
    for match in (_PYTHON if python else _CUDA).finditer(line):
        if match.start() > last:
            _put(out, line[last : match.start()], "")
        kind = match.lastgroup or ""
        _put(out, match.group(), "kw" if kind == "pre" else kind)
        last = match.end()
    if last < len(line):
        _put(out, line[last:], "")
    return out


def _put(out: list[Span], text: str, kind: str) -> None:
    """Append a piece, joined with the one before where both are plain."""
    if out and out[-1]["class"] == kind == "":
        out[-1] = span(out[-1]["text"] + text)
    else:
        out.append(span(text, kind))
