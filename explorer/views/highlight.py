"""Code in colours: Pygments cuts it, a few classes of the theme colour it; text stays text, and no span crosses a line."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from html import escape

from pygments.lexers.c_like import CudaLexer
from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Name, Operator, String, Token, _TokenType

_LEXERS = {False: CudaLexer(), True: PythonLexer()}
_KINDS: dict[_TokenType, str] = {
    Comment: "com", Comment.Preproc: "kw", Comment.PreprocFile: "str", Keyword: "kw", Keyword.Type: "type", Operator.Word: "kw",
    String: "str", String.Affix: "str", Name.Function: "", Token: "",
}
"""Token to colour class; one that is not here has that of the token around it."""
_WORDS = {
    **dict.fromkeys(("half", "half2", "__half", "__half2", "__nv_bfloat16", "__nv_bfloat162", "f16", "bf16", "f32", "f64", "i8",
                     "f8e4m3", "f8e5m2", "__nv_fp8_e4m3", "__nv_fp8_e5m2",
                     "i32", "i64", "bool"), "type"),
    **dict.fromkeys(("__global__", "__device__", "__shared__", "__restrict__", "__forceinline__", "__launch_bounds__",
                     "__align__", "__syncthreads", "__syncwarp", "inf", "where"), "kw"),
}  # fmt: skip
"""Names that Pygments does not know, or knows as something else."""
KEPT = 20_000
"""Lines whose colours are kept: most lines of a text are those of the text before."""


def highlight(text: str, python: bool = False) -> str:
    """Escaped HTML with a span for each coloured piece.  In Python (and in the text of schedules) ``//`` divides."""
    if python or "/*" in text:
        return _spans(_pieces(text, python))
    return "\n".join(highlight_line(line) for line in text.split("\n"))


@lru_cache(maxsize=KEPT)
def highlight_line(line: str, python: bool = False) -> str:
    """As :func:`highlight`, of one line."""
    return _spans(_pieces(line, python))


def _pieces(text: str, python: bool) -> Iterator[tuple[str, str]]:
    """(class, text), joined they are the text; the newline behind it is what a comment ends with."""
    left = len(text)
    for _, token, piece in _LEXERS[python].get_tokens_unprocessed(text + "\n"):
        yield _kind(token, piece), piece[:left]
        left -= len(piece)
        if left <= 0:
            return


@lru_cache(maxsize=KEPT)
def _kind(token: _TokenType, piece: str) -> str:
    if piece in _WORDS and (token in Name or token in Keyword):
        return _WORDS[piece]
    while token not in _KINDS:
        token = token.parent  # type: ignore[assignment]
    return _KINDS[token]


def _spans(pieces: Iterator[tuple[str, str]]) -> str:
    out: list[str] = []
    open_kind = ""
    for kind, piece in pieces:
        for number, part in enumerate(piece.split("\n")):
            if number or (part and kind != open_kind):
                out.append("</span>" if open_kind else "")
                open_kind = ""
            if number:
                out.append("\n")
            if part:
                if kind != open_kind:
                    out.append(f'<span class="t-{kind}">')
                    open_kind = kind
                out.append(escape(part, quote=False))
    return "".join(out) + ("</span>" if open_kind else "")
