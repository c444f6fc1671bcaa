"""Names, literals, indices and conversions as the float64 reference spells them in C."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from math import isinf, isnan

import numpy as np

from ...ir.coding import SMALL
from ...ir.dtype import DType
from ...ir.expr import Atom, Expr, Quotient, Ranges
from ...ir.inequality import cases
from ...ir.operations import OPERATIONS
from ...ir.program import Constraint
from ..names import identifier, is_free

_TAKEN = re.compile("malloc|calloc|free|printf|value|bound|at|reference"
                    r"|[ve]\d+|(?:pick|count|at|reference)_.*|.*_(?:bound|squares|size|fineness|rounded)")
"""Names that the text itself uses where a name of the program could hide it."""


def c_name(name: str) -> str:
    """A C identifier for a name of the program, for each its own: the name itself, unless it may mean something else in C.

    Examples
    --------
    >>> c_name("x_s"), c_name("EOF"), c_name("EOF_")
    ('x_s', 'EOF_', 'EOF_5b2f5c_')
    """
    plain = identifier(name)
    if plain == name and _is_own(plain) and (plain[-1] != "_" or _is_own(plain[:-1])):
        return plain
    base = re.sub("_+", "_", plain.strip("_"))
    return f"{base}_" if base == name else f"{identifier(base)}_{hashlib.sha256(name.encode()).hexdigest()[:6]}_"


def _is_own(name: str) -> bool:
    return is_free(name) and not _TAKEN.fullmatch(name)


def c_type(dtype: DType) -> str:
    """The C type that holds an element in the reference."""
    if dtype.name == "u64":
        return dtype.cuda
    return {"float": "double", "int": "long long", "bool": "unsigned char"}[dtype.kind]


def exact(number: float | int | bool, dtype: DType) -> bool:
    """Whether a literal is a number of the type it is computed in."""
    if dtype.name != "f32":  # of f64 it is the number itself
        return True
    return abs(number) < 2.0**127 and float(np.float32(number)) == float(number)


def enclosed(text: tuple[str, int], outer: int, *, first: bool) -> str:
    """An operand in parentheses where an operator of precedence `outer` needs them (100: a call's argument)."""
    if outer == 100:
        return text[0]
    return text[0] if text[1] > outer or (first and text[1] == outer and outer in (12, 13)) else f"({text[0]})"


def cast(text: tuple[str, int], to: DType, source: DType) -> tuple[str, int]:
    """Conversion in float64: only the kind changes, except that integers wrap as the narrow type does."""
    if to.kind == "float":
        text = text if source.kind == "float" else (f"(double){enclosed(text, 14, first=False)}", 14)
        return (saturated(text[0], to), 100) if to.name in SMALL else text
    if to.kind == "bool":
        return text if source.kind == "bool" else (f"{enclosed(text, 9, first=False)} != 0", 9)
    return f"({c_type(to)})({to.cuda})({text[0]})" if c_type(to) != to.cuda else f"({to.cuda})({text[0]})", 14


def stored(text: str, dtype: DType) -> str:
    """A value as a cell of `dtype` holds it: integers wrap, bools are 0 or 1."""
    if dtype.kind == "int":
        return f"({dtype.cuda})({text})"
    if dtype.name in SMALL:
        return saturated(text, dtype)
    return f"({text}) != 0" if dtype.kind == "bool" else text


def saturated(text: str, dtype: DType) -> str:
    """A value as a type without room for it keeps it."""
    return f"reference_saturated({text}, {SMALL[dtype.name].largest!r})"


def wrapped(text: tuple[str, int], op: str, dtype: DType) -> tuple[str, int]:
    """An operation's value, which in 32 bits wraps before anything is compared with it, as it does in NumPy and on a device."""
    wraps = dtype.kind == "int" and dtype.name != "i64" and OPERATIONS[op].leaves_i32
    return (f"({dtype.cuda})({text[0]})", 14) if wraps else text


def literal(value: float | int | bool, dtype: DType) -> str:
    """A constant in C."""
    if dtype.kind == "bool":
        return "1" if value else "0"
    if dtype.kind == "int":
        if dtype.name == "u64":
            return f"{int(value)}ULL"
        return f"{int(value)}LL" if value > -(2**63) else "(-9223372036854775807LL - 1)"
    number = float(value)
    if isnan(number):
        return "NAN"
    return ("INFINITY" if number > 0 else "(-INFINITY)") if isinf(number) else (repr(number) if number >= 0 else f"({number!r})")


def index_text(expr: Expr, scope: Ranges) -> str:
    """An index expression in long long arithmetic."""
    if expr.is_constant:
        return f"{expr.const}LL" if abs(expr.const) > 2**31 - 1 else str(expr.const)
    parts: list[str] = []
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
    return " && ".join(_condition(c, scope) for c in constraints) or "1"


def _condition(constraint: Constraint, scope: Ranges) -> str:
    if not constraint.equality and (either := cases(constraint.expr, scope)):
        return f"({' || '.join(f'{index_text(e, scope)} >= 0' for e in either)})"
    return f"{index_text(constraint.expr, scope)} {'==' if constraint.equality else '>='} 0"
