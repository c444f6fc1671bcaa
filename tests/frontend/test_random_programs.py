"""Random programs: the interpreter's result is that of Python executing the same text."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frontend.support import agrees, body

EXTENT = 6
"""Arrays are EXTENT by EXTENT, and every index is reduced modulo EXTENT."""


@st.composite
def indices(draw, names):
    terms = [str(draw(st.integers(0, 7)))]
    for name in names:
        factor = draw(st.integers(-2, 3))
        terms += [f"{factor} * {name}"] if factor else []
    text = " + ".join(terms)
    form = draw(st.sampled_from(["({}) % 6", "({}) // 2 % 6", "({}) % 3 + ({}) % 4", "(({}) % 5 + 1) // 2"]))
    return form.replace("{}", text)


@st.composite
def bounds(draw, names):
    at = draw(st.sampled_from([*names, "1"]))
    return draw(
        st.sampled_from(
            [
                "range(N)",
                "range(K)",
                "range(1, N)",
                f"range({at}, N)",
                f"range({at} + 1)",
                f"range(0, N, {draw(st.integers(1, 3))})",
                f"range({at}, N, 2)",
                "range(N - 1, -1, -1)",
                f"range(N, {at}, -2)",
                f"range(max(0, {at} - 1), min(N, {at} + 2))",
                f"range({at} // 2, N - {at} % 2)",
                f"range(0, min(N, {at} + 3), K)",
            ]
        )
    )


@st.composite
def conditions(draw, names):
    a = draw(st.sampled_from([*names, "N"]))
    b = draw(st.sampled_from([*names, "2"]))
    return draw(
        st.sampled_from(
            [
                f"{a} < {b}",
                f"not {a} <= {b} + 1",
                f"0 < {a} + {b} <= 4",
                f"({a} + {b}) % 2 == 0",
                f"{a} >= {b} and {a} // 2 < 3",
                f"not ({a} < {b} or {b} > 3)",
                f"({a} + 2 * {b}) % 3 != 0",
                f"{a} == {b}",
            ]
        )
    )


@st.composite
def values(draw, names):
    read = [f"x[{draw(indices(names))}, {draw(indices(names))}]", f"y[{draw(indices(names))}, {draw(indices(names))}]"]
    atom = st.sampled_from([*read, *names, "0.5", "2", "N", "t"])
    a, b = draw(atom), draw(atom)
    return draw(
        st.sampled_from(
            [
                a,
                f"{a} + {b}",
                f"{a} - {b}",
                f"0.25 * {a} * {b}",
                f"max({a}, {b})",
                f"min({a}, {b}, 1)",
                f"-{a}",
                f"({a} if {a} > {b} else {b})",
                f"abs({a}) / (1 + abs({b}))",
                f"ex.tanh({a})",
            ]
        )
    )


@st.composite
def statements(draw, names):
    target = draw(st.sampled_from([f"y[{draw(indices(names))}, {draw(indices(names))}]", "t"]))
    value = draw(values(names))
    return draw(
        st.sampled_from(
            [
                f"{target} = {value}",
                f"{target} += {value}",
                f"{target} -= {value}",
                f"{target} = {target} + {value}",
                f"{target} = max({target}, {value})",
                f"{target} = {value} - {target}",
                f"{target} *= 0.5",
            ]
        )
    )


@st.composite
def blocks(draw, names, depth):
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 2))):
        kind = draw(st.sampled_from(["statement", "loop", "loop", "if"])) if depth else "statement"
        if kind == "statement":
            lines.append(draw(statements(names)))
            continue
        name = "abc"[len(names)]
        head = f"for {name} in {draw(bounds(names))}:" if kind == "loop" else f"if {draw(conditions(names))}:"
        inner = draw(blocks([*names, name] if kind == "loop" else names, depth - 1))
        lines += [head, *("    " + line for line in inner)]
    return lines


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_python_and_the_interpreter_agree(data):
    lines = data.draw(blocks([], 3))
    setup = ["y[0, 0] += x[0, 0] * N + K", "t = ex.local(ex.f64)", "t = 1.0"]
    text = "\n".join([*setup, *lines, "y[5, 5] = t"])
    definition = body(text, f"x: ex.f64[{EXTENT}, {EXTENT}], y: ex.f64[{EXTENT}, {EXTENT}]")
    for n, k in ((5, 2), (1, 1), (0, 3)):
        agrees(definition, {"N": n, "K": k})
