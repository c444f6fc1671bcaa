"""Names, literals, indices and conversions as the float64 reference spells them in C."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isinf, isnan

from ..ir.dtype import DType
from ..ir.expr import Atom, Expr, Quotient, Ranges
from ..ir.program import Constraint
from ..ir.scalar import OPERATIONS

_TAKEN = re.compile(
    "abs|exp|log|sqrt|tanh|erf|fabs|fmin|fmax|pow|malloc|calloc|free|llabs|main|printf|y[01n]|j[01n]|NAN|INFINITY|value|bound|at"
    r"|[ve]\d+|(?:pick|count|at|reference)_.*|reference|.*_(?:bound|squares)")
"""Names that the C library or the text itself uses where a name of the program could hide it."""

_SPELLED_IN_C = {"rsqrt": ("1.0 / sqrt({0})", 13)}
_FLOAT_CALLS = {"min": "reference_lower({0}, {1})", "max": "reference_upper({0}, {1})",
                "argmax_key": "reference_key({0}, {1}, 1)", "argmin_key": "reference_key({0}, {1}, 0)"}
_INTEGER_CALLS = {"min": "reference_min({0}, {1})", "max": "reference_max({0}, {1})", "abs": "llabs({0})",
                  "argmax_key": "({0}) * 0x100000000LL + 0xffffffffLL - ({1})", "argmin_key": "({0}) * 0x100000000LL + ({1})"}


def c_name(name: str) -> str:
    """A C identifier for a name of the program."""
    plain = "".join(ch if ch.isascii() and (ch.isalnum() or ch == "_") else "_" for ch in name)
    return f"{plain}_" if _TAKEN.fullmatch(plain) else plain


def c_type(dtype: DType) -> str:
    """The C type that holds an element in the reference."""
    return {"float": "double", "int": "long long", "bool": "unsigned char"}[dtype.kind]


def exact(number: float | int | bool) -> bool:
    """Whether a literal is exact in every float type (a small multiple of 1/64)."""
    return abs(number) <= 4 and float(number) * 64 == int(float(number) * 64)


def spelling_of(op: str, kind: DType) -> tuple[str, int]:
    """Format and precedence of an operation: the table's float64 spelling, or C's where CUDA has a function that C has not."""
    calls = _FLOAT_CALLS if kind.kind == "float" else _INTEGER_CALLS
    if op in calls:
        return (calls[op], 100) if calls[op][0] != "(" else (f"({calls[op]})", 100)
    if op in _SPELLED_IN_C:
        return _SPELLED_IN_C[op]
    row = OPERATIONS[op]
    return row.cuda.get("f64") or row.cuda["*"], row.precedence


def enclosed(text: tuple[str, int], outer: int, *, first: bool) -> str:
    """An operand in parentheses where an operator of precedence `outer` needs them (100: a call's argument)."""
    if outer == 100:
        return text[0]
    return text[0] if text[1] > outer or (first and text[1] == outer and outer in (12, 13)) else f"({text[0]})"


def cast(text: tuple[str, int], to: DType, source: DType) -> tuple[str, int]:
    """Conversion in float64: only the kind changes, except that integers wrap as the narrow type does."""
    if to.kind == "float":
        return text if source.kind == "float" else (f"(double){enclosed(text, 14, first=False)}", 14)
    if to.kind == "bool":
        return text if source.kind == "bool" else (f"{enclosed(text, 9, first=False)} != 0", 9)
    return f"(long long)({to.cuda})({text[0]})", 14


def stored(text: str, dtype: DType) -> str:
    """A value as a cell of `dtype` holds it: integers wrap, bools are 0 or 1."""
    if dtype.kind == "int":
        return f"({dtype.cuda})({text})"
    return f"({text}) != 0" if dtype.kind == "bool" else text


def literal(value: float | int | bool, dtype: DType) -> str:
    """A constant in C."""
    if dtype.kind == "bool":
        return "1" if value else "0"
    if dtype.kind == "int":
        return f"{int(value)}LL" if value > -(2**63) else "(-9223372036854775807LL - 1)"
    number = float(value)
    if isnan(number):
        return "NAN"
    return ("INFINITY" if number > 0 else "(-INFINITY)") if isinf(number) else (repr(number) if number >= 0 else f"({number!r})")


def index_text(expr: Expr, scope: Ranges) -> str:
    """An index expression in long long arithmetic."""
    if expr.is_constant:
        return f"{expr.const}LL" if abs(expr.const) > 2**31 - 1 else str(expr.const)
    parts = []
    for atom, c in sorted(expr.terms, key=lambda t: t[1] < 0):
        text = _atom(atom, scope)
        sign = ("-" if c < 0 else "") if not parts else (" - " if c < 0 else " + ")
        parts.append(f"{sign}{text if abs(c) == 1 else f'{abs(c)} * {text}'}")
    constant = f" {'-' if expr.const < 0 else '+'} {abs(expr.const)}" if expr.const else ""
    return "".join(parts) + constant


def _atom(atom: Atom, scope: Ranges) -> str:
    if isinstance(atom, str):
        return c_name(atom)
    name = "reference_div" if isinstance(atom, Quotient) else "reference_mod"
    return f"{name}({index_text(atom.expr, scope)}, {atom.by})"


def holds(constraint: Constraint, scope: Ranges) -> bool:
    """Whether intervals alone prove the constraint."""
    low, high = constraint.expr.interval(scope)
    return low == high == 0 if constraint.equality else low >= 0


def conjunction(constraints: Sequence[Constraint], scope: Ranges) -> str:
    """All constraints as one C condition."""
    return " && ".join(f"{index_text(c.expr, scope)} {'==' if c.equality else '>='} 0" for c in constraints) or "1"
