"""Plans and statements as text: operators, guards, storage and what a schedule states itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from explorer.ir.dtype import DTYPES
from explorer.ir.expr import const, var
from explorer.ir.plan import Buffer, initial
from explorer.ir.program import Access, Constraint, Indirect
from explorer.ir.scalar import Call, Cast, IndexValue, Literal, Read, Scalar
from explorer.ir.text import condition_text, index_text, loops_text, statement_text, written_text
from explorer.ir.tree import Sync, View
from explorer.transforms.bind import Bind
from explorer.transforms.split import Split
from tests.transforms.nests import copy, matmul, plan, siblings
from tests.transforms.programs import array, call, leaf, lit, loops, program, read, statement

X, Y, Z = Read(0), Read(1), Read(2)


@pytest.mark.parametrize(("value", "text"), [
    (call("add", call("mul", X, Y), Z), "a * b + c"),
    (call("mul", call("add", X, Y), Z), "(a + b) * c"),
    (call("sub", X, call("sub", Y, Z)), "a - (b - c)"),
    (call("sub", call("sub", X, Y), Z), "a - b - c"),
    (call("add", X, call("add", Y, Z)), "a + (b + c)"),
    (call("div", X, call("mul", Y, Z)), "a / (b * c)"),
    (call("neg", call("add", X, Y)), "-(a + b)"),
    (call("mul", call("neg", X), lit(-2.0)), "-a * -2.0"),
    (call("max", X, call("exp", call("sub", Y, Z))), "max(a, exp(b - c))"),
    (call("where", call("and", call("lt", X, Y), call("not", call("le", Y, Z))), X, lit(-np.inf)),
     "where(a < b and not b <= c, a, -inf)"),
    (call("eq", call("lt", X, Y), call("lt", Y, Z)), "(a < b) == (b < c)"),
    (call("and", X, call("or", Y, Z)), "a and (b or c)"),
    (Cast(DTYPES["f16"], call("add", X, Y)), "f16(a + b)"),
    (call("mul", IndexValue(var("i") + 1), X), "(i + 1) * a"),
    (call("mul", IndexValue(var("i")), Literal(3, DTYPES["i32"])), "i * 3"),
])
def test_scalars(value: Scalar, text: str) -> None:
    reads = tuple(Access(name, ()) for name in "abc")
    assert written_text(statement("S0", {"i": 3}, read("y", var("i")), value, reads), {}) == f"y[i] = {text}"


def test_the_text_of_operators_is_python_with_their_meaning() -> None:
    """What is written evaluates to what the call tree says."""
    a, b, c = 5.0, 3.0, 2.0
    tree = call("sub", call("mul", call("add", X, Y), call("sub", Y, call("neg", Z))), call("div", X, call("div", Y, Z)))
    text = written_text(statement("S0", {}, Access("y", ()), tree, tuple(Access(n, ()) for n in "abc")), {})
    assert eval(text.removeprefix("y = "), {"a": a, "b": b, "c": c}) == (a + b) * (b - -c) - a / (b / c)


@pytest.mark.parametrize(("update", "symbol"), [("sum", "+="), ("max", "max="), (None, "=")])
def test_updates(update: str | None, symbol: str) -> None:
    s = statement("S0", {"i": 3, "k": 4}, read("y", var("i")), X, (read("x", var("i"), var("k")),), update)
    assert written_text(s, {}) == f"y[i] {symbol} x[i, k]"


def test_temporaries_as_the_user_wrote_them() -> None:
    p = matmul()
    implied = {**p.array_of, "acc": replace(p.array_of["acc"], given=0)}
    assert written_text(p.statement_of["S1"], implied) == "acc[i, j] += A[i, k] * B[k, j]"
    assert written_text(p.statement_of["S1"], implied, own=True) == "acc += A[i, k] * B[k, j]"
    assert written_text(p.statement_of["S1"], p.array_of, own=True) == "acc[i, j] += A[i, k] * B[k, j]"


def test_data_dependent_indices() -> None:
    s = statement("S0", {"i": 3}, read("y", var("i")), X, (Access("x", (var("i"), Indirect(Y))), read("t", var("i"))))
    assert written_text(s, {}) == "y[i] = x[i, t[i]]"


@pytest.mark.parametrize(("expr", "text"), [
    (const(12) - var("i") * 4 - var("j"), "4*i + j < 13"),
    (var("i") - 1, "i >= 1"),
    (var("i") - var("j"), "j <= i"),
    (var("i") - var("j") - 1, "j < i"),
    (var("i") - var("j") - 3, "i >= j + 3"),
    (var("i") - var("j") + 2, "j <= i + 2"),
    (const(-1), "0 >= 1"),
])
def test_conditions(expr, text: str) -> None:
    assert condition_text(Constraint(expr), {}, {}) == text
    left, right = text.replace(">=", "|>=|").replace("<=", "|<=|").replace(" < ", "|<|").split("|")[::2]
    for i in range(-6, 7):
        for j in range(-6, 7):
            assert eval(text, {"i": i, "j": j}) == (expr.evaluate({"i": i, "j": j}) >= 0), (left, right)


@pytest.mark.parametrize("expr", [
    var("i") - 3, const(3) - var("i"), var("i") - var("j"), var("i") - var("j") + 2, var("i") * 2 - var("j") - 4, -var("i") - 2])
def test_equalities(expr) -> None:
    text = condition_text(Constraint(expr, equality=True), {}, {})
    for i in range(-6, 7):
        for j in range(-6, 7):
            assert eval(text, {"i": i, "j": j}) == (expr.evaluate({"i": i, "j": j}) == 0), text


def test_indices_do_not_begin_with_a_minus_sign() -> None:
    assert index_text(const(63) - var("i")) == "63 - i"
    assert index_text(const(63) - var("i") - var("j") * 2) in ("63 - 2*j - i", "63 - i - 2*j")
    assert index_text(-var("i")) == "-i"


def test_guards_stand_only_where_the_loops_do_not_imply_them() -> None:
    assert "where" not in loops_text(plan(copy(12), Split("i", 4)))
    assert "# where 4*i + i.i < 13" in loops_text(plan(copy(13), Split("i", 4)))


def test_everything_a_schedule_can_hold(golden) -> None:
    """Views, buffers at every place, combinations, asynchronous copies, waits, zero-fill, two kernels."""
    p = plan(matmul(), Split("k", 4), Bind("k.i", "thread.x"), Bind("i", "block.x"))
    leaf_of = {node.id: node for node, _, _ in p.leaves}
    s1 = leaf_of["S1"]
    views = ((0, View("As", (var("k.i"),))), (2, View("acc_r", ())))
    p = p.replace_node("S1", replace(s1, views=views, collect=(("k.i", "shuffle"),)))
    for name, slot in (("S0", 0), ("S2", 0)):
        p = p.replace_node(name, replace(leaf_of[name], views=((slot, View("acc_r", ())),)))
    f32 = DTYPES["f32"]
    p = replace(p, buffers=(
        Buffer("acc_r", f32, (), "register", scope="j"), Buffer("As", f32, (2, 4), "shared", pad=1, scope="k"),
        Buffer("work", f32, (4,), "global")))
    fill = statement("S3", {"c": 6}, read("z", var("c")), X, (read("x", var("c")),))
    fill = replace(fill, inside=(Constraint(var("c") - 1), Constraint(const(4) - var("c"))), fill=0.0, origin="copy")
    p = replace(p, copies=(fill,), copied=(array("z", 6),))
    node = replace(leaf(fill), mechanism="async", views=((1, View("work", (var("c"),))),))
    p = replace(p, kernels=(*p.kernels, replace(p.kernels[0], id="second", body=(
        loops({"c": 6}, node), Sync("s1", "commit"), Sync("s2", "wait", 1)))))
    golden(loops_text(p))


def test_a_leaf_alone() -> None:
    p = initial(siblings())
    assert [statement_text(p, node) for node, _, _ in p.leaves] == ["t[i] = x[i]", "y[j] = t[j]"]
    s0 = statement("S0", {}, Access("y", ()), Call("abs", (X,)), (Access("x", ()),))
    assert loops_text(initial(program("p", (), (s0,), leaf(s0)))) == "kernel p\n    S0: y = abs(x)"
