"""The table of scalar operations: one row for each, and everything that is known about it in the row.

Largest errors (`ulp`) are those of the CUDA C++ Programming Guide, "Mathematical Functions", tables of the single and double
precision standard library functions with maximum ulp error: the larger of the two.  Addition, multiplication, division, roots
and fma are correctly rounded there (0.5 ulp; nvcc's default for quotients and roots).  Those of the approximate forms are from
"Intrinsic Functions" there.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from . import meaning
from .operation import COMPUTED, Interval, Operation, Size, rounded

_BOTH = "fmax({e0}, {e1})"
_EXACT_BITS = "({e0} + {e1} > 0.0 ? INFINITY : 0.0)"
"""Of an integer that is not certain, no bit is."""
_OF_ERF = "reference_bent(1.1283791670955126 * exp(-{v0} * {v0}), {e0}, 1.0, 2.0)"
_LESS, _MORE = "(({0}) < ({1}) ? ({0}) : ({1}))", "(({0}) > ({1}) ? ({0}) : ({1}))"


def _call(name: str) -> dict[str, str]:
    return {"f32": f"{name}f({{0}})", "f64": f"{name}({{0}})"}


def _whole_call(name: str) -> dict[str, str]:
    return {d.name: f"{name}<{d.cuda}>({{0}}, {{1}})" for d in COMPUTED if d.kind == "int"}


def _steps(function: str) -> str:
    """The bound of a rounding to an integer: it may come out on either side of one that is as near as the error."""
    return (f"({{e0}} == 0.0 || {function}({{v0}} - 2.0 * {{e0}}) == {function}({{v0}} + 2.0 * {{e0}}) ? 0.0 "
            ": {e0} + 1.0)")  # fmt: skip


# -- what an operator of Python does with numbers --


def _divided(a: Any, b: Any) -> Any:
    return a / b


def _floor_divided(a: Any, b: Any) -> Any:
    return a // b


def _raised(a: Any, b: Any) -> Any:
    return a**b


# -- which integers a result lies between --


def _ends(function: Callable[[int, int], int]) -> Callable[[Interval | None, Interval | None], Interval | None]:
    """Between the results on the ends of the arguments, in which the function is monotone one by one."""

    def interval(a: Interval | None, b: Interval | None) -> Interval | None:
        if a is None or b is None:
            return None
        ends = [function(x, y) for x in a for y in b]
        return min(ends), max(ends)

    return interval


def _quotient(a: Interval | None, b: Interval | None) -> Interval | None:
    return _ends(_floor_divided)(a, b) if b and b[0] > 0 else None


def _rest(_: Interval | None, by: Interval | None) -> Interval | None:
    """Between 0 and the divisor, whatever is divided."""
    return (min(by[0] + 1, 0), max(by[1] - 1, 0)) if by else None


def _either(_: Interval | None, a: Interval | None, b: Interval | None) -> Interval | None:
    return (min(a[0], b[0]), max(a[1], b[1])) if a and b else None


def _within(x: Interval | None, low: Interval | None, high: Interval | None) -> Interval | None:
    """Between the limits, where these are in order, whatever is clamped."""
    if low is None or high is None or low[1] > high[0]:
        return None
    first, last = x or (low[0], high[1])
    return min(max(first, low[0]), high[1]), max(min(last, high[1]), low[0])


def _masked(a: Interval | None, b: Interval | None) -> Interval | None:
    """Of ``a & b``: below what has no sign."""
    tops = [i[1] for i in (a, b) if i and i[0] >= 0]
    return (0, min(tops)) if tops else None


def _inverted(x: Interval | None) -> Interval | None:
    return (~x[1], ~x[0]) if x else None


# -- how large a result is --


def _sum(*parts: Size) -> Size:
    return sum(s for s, _ in parts), max(f for _, f in parts)


def _product(*parts: Size) -> Size:
    return math.prod(s for s, _ in parts), math.prod(f for _, f in parts)


def _largest(*parts: Size) -> Size:
    return max(s for s, _ in parts), max(f for _, f in parts)


def _of_first(a: Size, _: Size) -> Size:
    return a[0], 1.0


def _of_second(_: Size, b: Size) -> Size:
    return b[0], 1.0


def _product_and_sum(a: Size, b: Size, c: Size) -> Size:
    return _sum(_product(a, b), c)


def _wrapped(a: Size, b: Size) -> Size:
    return min(a[0], b[0]), max(a[1], b[1])


def _of_branches(_: Size, a: Size, b: Size) -> Size:
    return _largest(a, b)


def _one(*_: Size) -> Size:
    return 1.0, 1.0


def _up_to(size: float) -> Callable[..., Size]:
    def most(*_: Size) -> Size:
        return size, math.inf

    return most


def _no_larger(x: Size) -> Size:
    return x[0], math.inf


def _exponential(x: Size) -> Size:
    return math.exp(min(x[0], 700.0)), math.inf


def _fused(x: Size, scale: Size, m: Size) -> Size:
    return _exponential(_sum(_product(x, scale), m))


def _whole(x: Size) -> Size:
    return (x[0] if x[1] <= 1.0 else x[0] + 1.0), 1.0


def _index(*_: Size) -> Size:
    return 2.0**31, 1.0


def _arithmetic(name: str, symbol: str, precedence: int, numpy: Any, bound: str, size: Any, **more: Any) -> Operation:
    text = f"{{0}} {symbol} {{1}}"
    return Operation(name, "a b", numpy, {"*": text}, bound, precedence=precedence, python=text, size=size, keeps_finite=True,
                     leaves_i32=True, **more)


def _comparison(name: str, symbol: str, precedence: int, numpy: Any) -> Operation:
    """With bound 1 where the operands' errors can turn it, which `where` makes a bound of."""
    text = f"{{0}} {symbol} {{1}}"
    return Operation(name, "a b", numpy, {"*": text},
                     "({e0} + {e1} > 0 && fabs((double){v0} - (double){v1}) <= {e0} + {e1})",
                     result="bool", precedence=precedence, python=text, binds=7, size=_one)


def _bits(name: str, symbol: str, precedence: int, numpy: Any, binds: int, interval: Any = None) -> Operation:
    text = f"{{0}} {symbol} {{1}}"
    more = {"interval": interval} if interval else {}
    return Operation(name, "a b", numpy, {"int": text}, _EXACT_BITS, precedence=precedence, python=text, binds=binds, size=_index,
                     **more)


def _rounding(name: str, function: str, help: str, *same: Any) -> Operation:
    return Operation(name, "x", same[0], _call(function), _steps(function), ulp=0.0, keeps_finite=True, size=_whole,
                     same=same, help=help)


_ROWS = (
    _arithmetic("add", "+", 12, np.add, "{e0} + {e1}", _sum, linear=(0, 1), interval=_ends(operator.add), fold=operator.add),
    _arithmetic("sub", "-", 12, np.subtract, "{e0} + {e1}", _sum, linear=(0, 1), interval=_ends(operator.sub), fold=operator.sub),
    _arithmetic("mul", "*", 13, np.multiply, "reference_product({v0}, {e0}, {v1}, {e1})", _product,
                interval=_ends(operator.mul), fold=operator.mul),
    Operation("div", "a b", np.true_divide, {"*": "{0} / {1}"}, "reference_quotient({v0}, {e0}, {v1}, {e1})", special=True,
              fast="fast_div", result="float", precedence=13, python="{0} / {1}", fold=_divided, positive=(1,)),
    Operation("floordiv", "a b", meaning.quietly(np.floor_divide),
              _whole_call("floor_div"),
              "({e1} > 0.0 ? INFINITY : {e0} > 0.0 ? {e0} + 1.0 : 0.0)",
              {"u64": "(({1}) ? ({0}) / ({1}) : 0)", "int": "reference_ratio({0}, {1})"},
              python="{0} // {1}", binds=13, fold=_floor_divided, leaves_i32=True, interval=_quotient,
              size=_of_first),
    Operation("mod", "a b", meaning.quietly(np.remainder),
              _whole_call("floor_mod"),
              "({e1} > 0.0 ? INFINITY : {e0} > 0.0 ? fmax({e0}, fabs((double){v1})) : 0.0)",
              {"u64": "(({1}) ? ({0}) % ({1}) : 0)", "int": "reference_rest({0}, {1})"},
              python="{0} % {1}", binds=13, fold=operator.mod, interval=_rest, size=_of_second),
    Operation("neg", "x", np.negative, {"*": "-{0}"}, "{e0}", ulp=0.0, precedence=14, python="-{0}", fold=operator.neg,
              leaves_i32=True, keeps_finite=True, linear=(0,), size=_largest),
    Operation("abs", "x", np.abs, {**_call("fabs"), "i64": "llabs({0})", "i32": "abs({0})", "int": "({0})"}, "{e0}",
              {"u32": "({0})", "u64": "({0})", "int": "llabs({0})"}, ulp=0.0, leaves_i32=True, keeps_finite=True, signed=False,
              size=_largest,
              same=(builtins.abs, math.fabs, np.fabs, np.abs), help="Absolute value; Python's `abs` means the same."),
    Operation("min", "a b", np.minimum, {"float": "min_nan({0}, {1})", "*": "min({0}, {1})"}, _BOTH,
              {"float": "reference_lower({0}, {1})", "u64": _LESS.format("{0}", "{1}"), "*": "reference_min({0}, {1})"},
              ulp=0.0, keeps_bool=True, keeps_finite=True,
              linear=(0, 1), interval=_ends(min), size=_largest, many=True, same=(builtins.min, np.minimum),
              help="Smallest value, NaN if one is; Python's `min` means the same."),
    Operation("max", "a b", np.maximum, {"float": "max_nan({0}, {1})", "*": "max({0}, {1})"}, _BOTH,
              {"float": "reference_upper({0}, {1})", "u64": _MORE.format("{0}", "{1}"), "*": "reference_max({0}, {1})"},
              ulp=0.0, keeps_bool=True, keeps_finite=True,
              linear=(0, 1), interval=_ends(max), size=_largest, many=True, same=(builtins.max, np.maximum),
              help="Largest value, NaN if one is; Python's `max` means the same."),
    Operation("clamp", "x low high", meaning.clamp,
              {"float": "min_nan(max_nan({0}, {1}), {2})", "int": "min(max({0}, {1}), {2})"}, "fmax({e0}, fmax({e1}, {e2}))",
              {"float": "reference_lower(reference_upper({0}, {1}), {2})",
               "u64": _LESS.format(_MORE.format("{0}", "{1}"), "{2}"), "int": "reference_min(reference_max({0}, {1}), {2})"},
              ulp=0.0, flops=2, keeps_finite=True, interval=_within, size=_largest, same=(np.clip,),
              help="`x` between `low` and `high`, as NumPy's `clip`: `high` where `low` is above it, NaN where one of them is."),
    Operation("exp", "x", np.exp, _call("exp"), "reference_scaled({t}, expm1({e0}))", ulp=2.0, exact_at="{v0} == 0.0",
              special=True, fast="fast_exp", result="float", signed=False, size=_exponential, same=(math.exp, np.exp),
              help="E to the power `x`."),
    Operation("expm1", "x", np.expm1, _call("expm1"), "reference_scaled({t} + 1.0, expm1({e0}))", ulp=1.0, special=True,
              result="float", size=_exponential, same=(math.expm1, np.expm1),
              help="E to the power `x`, minus 1, exact for small `x` too."),
    Operation("log", "x", np.log, _call("log"), "reference_positive(1.0 / {v0}, {v0}, {e0})", ulp=1.0, special=True,
              fast="fast_log", result="float", positive=(0,), same=(math.log, np.log), help="Natural logarithm."),
    Operation("log1p", "x", np.log1p, _call("log1p"), "reference_positive(1.0 / (1.0 + {v0}), 1.0 + {v0}, {e0})", ulp=1.0,
              special=True, result="float", positive=(0,), same=(math.log1p, np.log1p),
              help="Natural logarithm of ``1 + x``, exact for small `x` too."),
    Operation("sqrt", "x", np.sqrt, _call("sqrt"),
              "({t} > 0 ? {e0} / (2.0 * {t}) : {v0} + {e0} < 0.0 ? 0.0 : {v0} < 0.0 ? INFINITY : sqrt({e0}))", special=True,
              result="float", positive=(0,), same=(math.sqrt, np.sqrt), help="Square root."),
    Operation("rsqrt", "x", meaning.rsqrt, _call("rsqrt"), "reference_positive(0.5 * {t} / {v0}, {v0}, {e0})",
              {"float": "(1.0 / sqrt({0}))"}, ulp=2.0, special=True, result="float", positive=(0,),
              help="One over the square root."),
    Operation("sin", "x", np.sin, _call("sin"), "reference_wave(cos({v0}), {e0})", ulp=2.0, special=True, result="float",
              size=_up_to(1.0), same=(math.sin, np.sin), help="Sine of `x` radians."),
    Operation("cos", "x", np.cos, _call("cos"), "reference_wave(sin({v0}), {e0})", ulp=2.0, exact_at="{v0} == 0.0", special=True,
              result="float", size=_up_to(1.0), same=(math.cos, np.cos), help="Cosine of `x` radians."),
    Operation("tanh", "x", np.tanh, _call("tanh"), "reference_bent(1.0 - {t} * {t}, {e0}, 0.8, 2.0)", ulp=2.0, special=True,
              fast="fast_tanh", result="float", size=_up_to(1.0), same=(math.tanh, np.tanh), help="Hyperbolic tangent."),
    Operation("sigmoid", "x", meaning.sigmoid, {"f32": "(1.0f / (1.0f + expf(-({0}))))", "f64": "(1.0 / (1.0 + exp(-({0}))))"},
              "reference_bent({t} * (1.0 - {t}), {e0}, 0.1, 1.0) + ({t} < {tiny} ? {tiny} : 0.0)", ulp=3.0,
              exact_at="{v0} == 0.0", flops=4, special=True, fast="fast_sigmoid", result="float", signed=False, size=_up_to(1.0),
              help="``1 / (1 + exp(-x))``."),
    Operation("erf", "x", meaning.erf, _call("erf"), _OF_ERF, ulp=2.0, special=True,
              fast="fast_erf", result="float", size=_up_to(1.0), same=(math.erf,), help="Error function."),
    Operation("erfc", "x", meaning.erfc, _call("erfc"), _OF_ERF, ulp=5.0,
              exact_at="{v0} == 0.0", special=True, result="float", size=_up_to(2.0), same=(math.erfc,),
              help="One minus the error function, exact where that is near 1 too."),
    Operation("pow", "base exponent", np.power, {"f32": "powf({0}, {1})", "f64": "pow({0}, {1})"},
              "reference_power({t}, {v0}, {e0}, {v1}, {e1})", ulp=8.0, special=True, result="float", fold=_raised,
              positive=(0,), same=(builtins.pow, math.pow, np.power),
              help="`base` to the power `exponent`; ``base ** exponent`` means the same."),
    Operation("fma", "a b c", meaning.fma, {"f32": "fmaf({0}, {1}, {2})", "f64": "fma({0}, {1}, {2})"},
              "reference_product({v0}, {e0}, {v1}, {e1}) + {e2}", flops=2, keeps_finite=True,
              size=_product_and_sum, help="``a * b + c``, rounded once."),
    Operation("fmod", "a b", np.fmod, {"f32": "fmodf({0}, {1})", "f64": "fmod({0}, {1})"},
              "reference_wrapped({v0}, {e0}, {v1}, {e1})", ulp=0.0, special=True, positive=(1,), same=(math.fmod, np.fmod),
              size=_wrapped,
              help="Remainder of a division rounded towards zero, with the sign of `a`, as C's and NumPy's `fmod`."),
    _rounding("floor", "floor", "The largest integer that is not above `x`, as a float.", np.floor, math.floor),
    _rounding("ceil", "ceil", "The smallest integer that is not below `x`, as a float.", np.ceil, math.ceil),
    _rounding("trunc", "trunc", "`x` without its fraction, as a float.", np.trunc, math.trunc, np.fix),
    _rounding("round", "rint", "The nearest integer, of two equally near ones the even one, as a float; NumPy's `rint`.",
              np.rint, np.round, builtins.round),
    Operation("tf32", "x", meaning.tf32, {"f32": "__uint_as_float(__float_as_uint({0}) & 0xffffe000u)"},
              "({e0} == 0.0 ? 0.0 : {e0} + 0.0009765625 * fabs((double){v0}))",  # 2^-10: what is cut off
              {"f32": "reference_shortened({0})"}, ulp=0.0, keeps_finite=True, linear=(0,), size=rounded,
              help="`x`, an f32, with the first 11 bits of its significand, cut off as tensor cores do (PTX ISA, \"Alternate "
                   "Floating-Point Data Formats\")."),
    Operation("isnan", "x", np.isnan, {"float": "isnan({0})"}, "({e0} == INFINITY ? 1.0 : 0.0)", {"float": "(isnan({0}) != 0)"},
              result="bool", size=_one, same=(math.isnan, np.isnan), help="Whether `x` is NaN."),
    Operation("fast_exp", "x", np.exp, {"f32": "__expf({0})", "f64": "exp({0})"},  # 2 + 1.173 |x| ulp; at 0: PTX ISA, "ex2"
              "reference_scaled({t}, expm1({e0}) + ({t} > 0.0 ? 1.4e-7 * fabs({v0}) : 0.0))", ulp=2.0, exact_at="{v0} == 0.0",
              result="float", signed=False, size=_exponential),
    Operation("fused_exp", "x scale m", meaning.fused_exp,
              {"f32": "fused_exp({0}, {1}, {2})", "f64": "exp(({0}) * ({1}) - ({2}))"},  # ex2: PTX ISA, 2^-22.5
              "reference_fused({t}, {v0}, {e0}, {v1}, {e1}, {v2}, {e2}, {tiny})", ulp=2.0, flops=2, result="float", signed=False,
              size=_fused),
    Operation("fast_erf", "x", meaning.erf, {"f32": "fast_erf({0})", "f64": "erf({0})"},  # ex2: 2^-22.5; the polynomial: 9e-8
              _OF_ERF + " + fmin(2.7e-7, 6e-6 * fabs({t}))", ulp=2.0,
              exact_at="{v0} == 0.0",
              result="float", size=_up_to(1.0)),
    Operation("fast_tanh", "x", np.tanh, {"f32": "fast_tanh({0})", "f64": "tanh({0})"},  # ex2: 2^-22.5, the quotient 2 ulp
              "reference_bent(1.0 - {t} * {t}, {e0}, 0.8, 2.0) + fmin(4.6e-7, 9e-6 * fabs({t}))", ulp=2.0, exact_at="{v0} == 0.0",
              result="float", size=_up_to(1.0)),
    Operation("fast_sigmoid", "x", meaning.sigmoid,
              {"f32": "fast_sigmoid({0})", "f64": "(1.0 / (1.0 + exp(-({0}))))"},
              # ex2: 2^-22.5, its argument 2^-23.5 of x; rcp: 1 ulp
              "reference_bent({t} * (1.0 - {t}), {e0}, 0.1, 1.0) + ({t} < 2.0 * {tiny} ? 2.0 * {tiny} : "
              "{t} * (1.0 - {t}) * (1.8e-7 + 8e-8 * fabs({v0})))", ulp=2.0, flops=4, result="float", signed=False,
              size=_up_to(1.0)),
    Operation("fast_gelu", "x", meaning.gelu,
              {"f32": "fast_gelu({0})", "f64": "(0.5 * ({0}) * (1.0 + erf(({0}) * 0.7071067811865476)))"},
              "reference_scaled(1.13, {e0}) + 1.9e-7 * fmin(fabs({v0}), 1e300)", ulp=2.0, exact_at="{v0} == 0.0", flops=3,
              result="float", size=_no_larger),
    Operation("fast_log", "x", np.log, {"f32": "__logf({0})", "f64": "log({0})"},  # 2^-21.41 near 1
              "reference_positive(1.0 / {v0}, {v0}, {e0}) + 3.6e-7", ulp=3.0, result="float", positive=(0,)),
    Operation("fast_div", "a b", np.true_divide, {"f32": "__fdividef({0}, {1})", "f64": "(({0}) / ({1}))"},
              # CUDA Programming Guide, "Intrinsic Functions": 2 ulp for divisors up to 2^126, 0 or NaN for those above
              "(fabs({v1}) * {tiny} > 1.0 ? INFINITY : reference_quotient({v0}, {e0}, {v1}, {e1}))", ulp=2.0,
              result="float", positive=(1,)),
    Operation("where", "condition value other", np.where, {"*": "{0} ? {1} : {2}"},
              "({e0} > 0 ? reference_apart({v1}, {v2}) + fmax({e1}, {e2}) : {v0} ? {e1} : {e2})", ulp=0.0, flops=0, precedence=2,
              takes=("bool", "", ""), keeps_bool=True, linear=(1, 2), interval=_either, size=_of_branches,
              same=(np.where,),
              help="`value` where `condition` holds, `other` elsewhere; the same as ``value if condition else other``."),
    _comparison("lt", "<", 10, np.less), _comparison("le", "<=", 10, np.less_equal), _comparison("gt", ">", 10, np.greater),
    _comparison("ge", ">=", 10, np.greater_equal), _comparison("eq", "==", 9, np.equal), _comparison("ne", "!=", 9, np.not_equal),
    Operation("and", "a b", np.logical_and, {"bool": "{0} && {1}"}, _BOTH, flops=0, result="bool", precedence=5,
              python="{0} and {1}", size=_one),
    Operation("or", "a b", np.logical_or, {"bool": "{0} || {1}"}, _BOTH, flops=0, result="bool", precedence=4,
              python="{0} or {1}", size=_one),
    Operation("xor", "a b", np.logical_xor, {"bool": "{0} != {1}"}, _BOTH, flops=0, result="bool", precedence=9,
              python="{0} ^ {1}", binds=9, size=_one),
    Operation("not", "a", np.logical_not, {"bool": "!{0}"}, "{e0}", flops=0, result="bool", precedence=14, python="not {0}",
              binds=6, signed=False, size=_one),
    _bits("bitand", "&", 8, np.bitwise_and, 10, _masked), _bits("bitxor", "^", 7, np.bitwise_xor, 9),
    _bits("bitor", "|", 6, np.bitwise_or, 8),
    Operation("invert", "x", np.invert, {"int": "~{0}"}, "{e0}", precedence=14, python="~{0}", leaves_i32=True, size=_index,
              interval=_inverted),
    Operation("lshift", "a n", np.left_shift, {"int": "shift_left({0}, {1})"}, _EXACT_BITS, {"int": "reference_left({0}, {1})"},
              python="{0} << {1}", binds=11, leaves_i32=True, size=_index),
    Operation("rshift", "a n", np.right_shift, {"int": "shift_right({0}, {1})"},
              "({e1} > 0.0 ? INFINITY : {e0} > 0.0 ? {e0} + 1.0 : 0.0)",
              {"u64": "reference_down({0}, {1})", "int": "reference_right({0}, {1})"},
              python="{0} >> {1}", binds=11, size=_largest),
    Operation("argmax_key", "value index", meaning.argmax_key, dict.fromkeys(("f32", "i32"), "argmax_key({0}, {1})"),
              "reference_keyed({v0}, {e0})",
              {"float": "reference_key({0}, {1}, 1)", "*": "(({0}) * 0x100000000LL + 0xffffffffLL - ({1}))"}, result="i64",
              takes=("", "i32"), size=_index,
              help="A 64-bit integer of which the largest is that of the first largest `value`: what :func:`argmax` is made of."
              "\n\n    ``key = max(key, ex.argmax_key(x[i, k], k))`` starts at ``-2**63``; ``ex.argmax_index(key)`` is the index."
              "\n    "),
    Operation("argmin_key", "value index", meaning.argmin_key, dict.fromkeys(("f32", "i32"), "argmin_key({0}, {1})"),
              "reference_keyed({v0}, {e0})",
              {"float": "reference_key({0}, {1}, 0)", "*": "(({0}) * 0x100000000LL + ({1}))"}, result="i64", takes=("", "i32"),
              size=_index,
              help="A 64-bit integer of which the smallest is that of the first smallest `value`; starts at ``2**63 - 1``."),
    Operation("argmax_index", "key", meaning.argmax_index, {"i64": "(int)~{0}"}, "({e0} == INFINITY ? {e0} : 0.0)", flops=0,
              result="i32", precedence=14, takes=("i64",), size=_index,
              help="The index in the largest :func:`argmax_key`; -1 if there was none."),
    Operation("argmin_index", "key", meaning.argmin_index, {"i64": "(int){0}"}, "({e0} == INFINITY ? {e0} : 0.0)", flops=0,
              result="i32", precedence=14, takes=("i64",), size=_index,
              help="The index in the smallest :func:`argmin_key`; -1 if there was none."),
)

OPERATIONS: dict[str, Operation] = {row.name: row for row in _ROWS}
"""By name.  ``max`` and ``min`` are NumPy's ``maximum`` and ``minimum``: NaN where an operand is NaN.  ``floordiv`` and ``mod``
are of integers, as NumPy has them: rounded down, a remainder with the divisor's sign, and 0 where the divisor is 0.

A shift by as many bits as the type has, or more, or by a negative number, is NumPy's too: 0, or of a negative number shifted
to the right -1.

``argmax_key(value, index)`` is a 64-bit integer whose order is the order in which `numpy.argmax` prefers elements: a NaN before
all, then larger values, then smaller indices; so that the largest key says which element is the first largest, whatever the order
in which keys are combined.  The high half is the value's bit pattern, with the lower 31 bits of a negative number complemented,
which orders IEEE 754 numbers as integers; the low half is the complemented index.  ``argmin_key`` orders for `numpy.argmin`: the
smallest is taken.  ``argmax_index`` and ``argmin_index`` give the index back, and -1 for the identities of max and min.  The
bound of a key is that of its value; where two keys may change places, the larger has an infinite bound, and so has its index."""

APPROXIMATE = {row.name: row.fast for row in _ROWS if row.fast}
"""Operations that the special-function units have in one or two instructions, with larger errors (`approximate`).  Users do not
write these names."""

FUSED = "fused_exp"
"""``exp(x * scale - m)``, in f32 by an fma and a power of two."""

GELU = "fast_gelu"
"""``0.5 * x * (1 + erf(x / sqrt 2))``, in f32 by one polynomial and a power of two."""

LESS_EXACT = frozenset((*APPROXIMATE.values(), FUSED, GELU))
"""What `approximate` makes of an operation."""

SPECIAL = frozenset(row.name for row in _ROWS if row.special)
"""Operations of the special-function units, which work beside the others."""
