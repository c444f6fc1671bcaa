"""Code in pictures: the text stays the text, numbers count its lines, and what is left out is said."""

from __future__ import annotations

import pytest

from explorer.views.code import code_html, cuda_sections
from explorer.views.highlight import highlight, highlight_line

from .pages import Page
from .values import values


def test_highlighting_changes_no_character() -> None:
    text = values()["tuned"].cuda
    assert Page(highlight(text)).text == text


def test_comments_keywords_types_and_strings_get_spans() -> None:
    assert highlight("for (int i; i < 4;)  // a < b") == (
        '<span class="t-kw">for</span> (<span class="t-type">int</span> i; i &lt; 4;)  <span class="t-com">// a &lt; b</span>')
    assert highlight("format(x)") == "format(x)"
    assert highlight("/* a\nb */") == '<span class="t-com">/* a</span>\n<span class="t-com">b */</span>'
    assert highlight('asm volatile("a<b");').endswith('(<span class="t-str">"a&lt;b"</span>);')
    assert highlight("__shared__ __half2 s;") == '<span class="t-kw">__shared__</span> <span class="t-type">__half2</span> s;'
    assert highlight("#pragma unroll") == '<span class="t-kw">#pragma unroll</span>'


ODD = ("", "\n", "a\n\nb", "<b>&amp;</b>", '"open', "/* open", "\\", "é … ✓ \u2002", "#if 0\nx\n#endif", '""\"a\n', "x;" * 3)


@pytest.mark.parametrize("python", [False, True])
@pytest.mark.parametrize("text", ODD)
def test_any_text_stays_itself(text: str, python: bool) -> None:
    assert Page(highlight(text, python)).text == text
    assert Page(highlight_line(text, python)).text == text


def test_what_divides_is_no_comment_in_a_schedule() -> None:
    found = highlight_line("y[b // 32] += x[b % 32]  # a comment", python=True)
    assert found.count("t-com") == 1
    assert '<span class="t-com"># a comment</span>' in found


def test_lines_are_numbered_from_the_first() -> None:
    lines = Page(code_html("a\nb\nc\n", first=9)).text.splitlines()
    assert lines == [" 9  a", "10  b", "11  c"]
    assert Page(code_html("a\nb", numbers=False)).text == "a\nb"


def test_long_code_is_cut_and_says_so() -> None:
    text = Page(code_html("\n".join(f"line {n}" for n in range(1000)), budget=2000)).text
    shown, _, rest = text.rpartition("\n")
    assert rest == f"… {1000 - len(shown.splitlines())} more lines: print the text to see them"


def test_kernel_is_open_and_the_library_is_folded() -> None:
    module = values()["tuned"].module()
    text = module.text
    library, kernel = cuda_sections(text, module.above)
    assert library.startswith("<details>")
    assert "reduce_plan" in library
    first = Page(kernel).text.splitlines()[0]
    number, _, code = first.partition("  ")
    assert text.splitlines()[int(number) - 1] == code
    assert code.startswith('extern "C" __global__')


def test_text_without_library_is_one_section() -> None:
    (only,) = cuda_sections('extern "C" __global__ void f() {\n}\n', 0)
    assert Page(only).text.endswith("}")


def test_in_python_two_strokes_divide_and_a_hash_begins_a_comment() -> None:
    line = "def f(i):  # half\n    return i // 2"
    assert highlight(line, python=True) == (
        '<span class="t-kw">def</span> f(i):  <span class="t-com"># half</span>\n    <span class="t-kw">return</span> i // 2')
    assert highlight(line.replace("#", "//")).count('class="t-com"') == 2


def test_changed_lines_have_a_sign_and_the_others_none() -> None:
    lines = Page(code_html("a\nb\nc", changed={2})).text.splitlines()
    assert lines == ["  1  a", "› 2  b", "  3  c"]
    assert code_html("a\nb", changed={1}).count('aria-label="changed"') == 1
    assert Page(code_html("a\nb", changed=())).text.splitlines() == ["  1  a", "  2  b"]
    assert "›" not in code_html("a\nb")
