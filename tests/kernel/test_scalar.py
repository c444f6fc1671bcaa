"""Scalar expressions as C text: parentheses, literals, conversions."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.ir.dtype import DTYPES
from explorer.ir.expr import var
from explorer.ir.scalar import Call, Cast, IndexValue, Literal, Read, Scalar
from explorer.kernel.scalar import PRIMARY, cast, literal, narrow, update_text, value_text, widen

F32, F64, F16, I32, I64, BOOL = (DTYPES[n] for n in ("f32", "f64", "f16", "i32", "i64", "bool"))
NAMES = "xyz"


def text(value: Scalar, *types: str) -> str:
    kinds = [DTYPES[t] for t in types] or [F32, F32, F32]
    return value_text(value, kinds, lambda slot: widen((NAMES[slot], PRIMARY), kinds[slot]), lambda e: (str(e), 12))[0]


def call(op: str, *args: Scalar) -> Call:
    return Call(op, args)


X, Y, Z = Read(0), Read(1), Read(2)


@pytest.mark.parametrize(("value", "wanted"), [
    (call("add", call("add", X, Y), Z), "x + y + z"),
    (call("add", X, call("add", Y, Z)), "x + (y + z)"),
    (call("mul", call("add", X, Y), Z), "(x + y) * z"),
    (call("add", call("mul", X, Y), Z), "x * y + z"),
    (call("sub", X, call("sub", Y, Z)), "x - (y - z)"),
    (call("div", X, call("mul", Y, Z)), "x / (y * z)"),
    (call("div", call("mul", X, Y), Z), "x * y / z"),
    (call("neg", call("neg", X)), "-(-x)"),
    (call("neg", call("add", X, Y)), "-(x + y)"),
    (call("mul", call("neg", X), Y), "-x * y"),
    (call("exp", call("sub", X, Y)), "expf(x - y)"),
    (call("max", X, call("where", call("lt", X, Y), Y, Z)), "max_nan(x, x < y ? y : z)"),
    (call("add", call("where", call("lt", X, Y), Y, Z), X), "(x < y ? y : z) + x"),
    (call("where", call("and", call("lt", X, Y), call("or", call("lt", Y, Z), call("eq", X, Z))), X, Y),
     "x < y && (y < z || x == z) ? x : y"),
    (call("not", call("lt", X, Y)), "!(x < y)"),
    (call("mul", Literal(2, I32), X), "2.0f * x"),
    (call("max", X, Literal(0, I32)), "max_nan(x, 0.0f)"),
])
def test_parentheses(value: Scalar, wanted: str) -> None:
    assert text(value) == wanted


def test_types() -> None:
    assert text(call("add", X, Y), "f16", "f32") == "__half2float(x) + y"
    assert text(call("exp", X), "f64") == "exp(x)"
    assert text(call("div", X, Y), "i32", "i32") == "(float)x / y"
    assert text(call("max", X, Y), "i32", "i64") == "max((long long)x, y)"
    assert text(call("pow", X, Y), "i32", "f32") == "powf((float)x, y)"
    assert text(Cast(I32, call("add", X, Y))) == "(int)(x + y)"
    assert text(Cast(F16, X)) == "__half2float(__float2half(x))"
    assert text(Cast(BOOL, X)) == "x != 0"
    assert text(call("mul", X, IndexValue(var("i") + 1))) == "x * (i + 1)"


def test_literals_round_trip() -> None:
    for value in (0.1, -2.5, 1e-30, 3.0, 16777217.0, 1 / 3, 6.02e23):
        out = literal(value, F32)[0]
        assert out.endswith("f")
        assert np.float32(out[:-1]) == np.float32(value)
        assert float(literal(value, F64)[0]) == value
    assert literal(3.0, F32)[0] == "3.0f"
    assert literal(-np.inf, F32)[0] == "-INFINITY"
    assert literal(1e39, F32)[0] == "INFINITY"
    assert literal(np.nan, F32)[0] == "NAN"
    assert literal(np.inf, F64)[0] == "(double)INFINITY"
    assert literal(-(2**31), I32)[0] == "(-2147483647 - 1)"
    assert literal(5, I64)[0] == "5LL"
    assert literal(True, BOOL)[0] == "true"
    assert literal(2.0, F16)[0] == "2.0f"


def test_updates() -> None:
    assert update_text("sum", "y", ("a * b", 13), F32, F32) == "y += a * b;"
    assert update_text("prod", "y", ("a + b", 12), F32, F32) == "y *= a + b;"
    assert update_text("max", "y", ("a", PRIMARY), F32, F32) == "y = max_nan(y, a);"
    assert update_text("sum", "y", ("a", PRIMARY), F16, F32) == "y = __float2half(__half2float(y) + a);"
    assert update_text("and", "y", ("a || b", 4), BOOL, BOOL) == "y = y && (a || b);"
    assert update_text("sum", "y", ("a ? b : c", 2), F16, F32) == "y = __float2half(__half2float(y) + (a ? b : c));"
    assert update_text("max", "y", ("a", PRIMARY), I64, I32) == "y = max(y, (long long)a);"


def test_conversions() -> None:
    assert narrow(("x", PRIMARY), F32) == ("x", PRIMARY)
    assert narrow(("x", PRIMARY), DTYPES["bf16"])[0] == "__float2bfloat16(x)"
    assert cast(("a + b", 12), F64, F32)[0] == "(double)(a + b)"
