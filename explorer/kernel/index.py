"""Index expressions as C text.

C divides towards zero and our expressions towards minus infinity; where an operand may be negative the text adds a
multiple of the divisor first (``(i + 5) / 8 - 1``), which is exact and needs no helper function.  Arithmetic is
32-bit, except where an interval says that a value may not fit: then coefficients become ``LL`` literals.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from ..ir.expr import Atom, Expr, Ranges, Remainder, const, rejoin
from ..ir.regroup import one_division

INT_MAX = 2**31 - 1
SUM, PRODUCT, PRIMARY = 12, 13, 100
"""Precedence of the text, in C's order (as :class:`explorer.ir.scalar.Operation` counts)."""


@lru_cache(maxsize=65536)
def _renamed(expr: Expr, names: tuple[tuple[str, str], ...]) -> Expr:
    table = dict(names)
    total = const(expr.const)
    for atom, c in expr.terms:
        total = total + Expr(((_rename_atom(atom, table, names), c),))
    return total


def _rename_atom(atom: Atom, table: Mapping[str, str], names: tuple[tuple[str, str], ...]) -> Atom:
    if isinstance(atom, str):
        return table.get(atom, atom)
    return type(atom)(_renamed(atom.expr, names), atom.by)


def rename(expr: Expr, names: Mapping[str, str]) -> Expr:
    """The same expression in other variable names (loops bound to one role share a name)."""
    used = expr.variables()
    changed = tuple(sorted((a, b) for a, b in names.items() if a in used and a != b))
    return _renamed(expr, changed) if changed else expr


def is_wide(expr: Expr, ranges: Ranges) -> bool:
    """Whether the value, or the sum of its terms on the way, may exceed a 32-bit int."""
    reach = abs(expr.const)
    for atom, c in expr.terms:
        low, high = Expr(((atom, 1),)).interval(ranges)
        reach += abs(c) * max(abs(low), abs(high))
    return reach > INT_MAX


def _nonnegative(expr: Expr, by: int, ranges: Ranges) -> tuple[Expr, int]:
    """`expr` plus the multiple of `by` that makes it non-negative, and that multiple over `by`."""
    low, _ = expr.interval(ranges)
    assert low > -(2**63), f"{expr} has a variable without bounds"
    lift = -(low // by) if low < 0 else 0
    return Expr(expr.terms, expr.const + lift * by), lift


def atom_text(atom: Atom, ranges: Ranges) -> tuple[str, int, int]:
    """Text, precedence, and a constant to add to the text's value."""
    if isinstance(atom, str):
        return atom, PRIMARY, 0
    inside, lift = _nonnegative(atom.expr, atom.by, ranges)
    text, level = to_c(inside, ranges)
    text = text if level >= PRODUCT and "%" not in text and "/" not in text and "*" not in text else f"({text})"
    if isinstance(atom, Remainder):
        return f"{text} % {atom.by}", PRODUCT, 0
    return f"{text} / {atom.by}", PRODUCT, -lift


def to_c(expr: Expr, ranges: Ranges) -> tuple[str, int]:
    """The text of `expr` and its precedence.

    Parameters
    ----------
    expr : Expr
        Over C variables.
    ranges : Ranges
        Their inclusive intervals.

    Returns
    -------
    (str, int)
    """
    terms = sorted(expr.terms, key=lambda t: (t[1] < 0, -abs(t[1])))
    wide = is_wide(expr, ranges)
    constant = expr.const
    parts: list[tuple[int, str, int]] = []
    for atom, c in terms:
        text, level, shift = atom_text(atom, ranges)
        constant += c * shift
        if abs(c) != 1:
            text, level = f"{abs(c)}{'LL' if wide else ''} * {text if level > PRODUCT else f'({text})'}", PRODUCT
        elif wide and not parts:
            text, level = f"(long long){text if level > PRODUCT else f'({text})'}", 14
        parts.append((c, text, level))
    if not parts:
        return (str(constant), PRIMARY) if abs(constant) <= INT_MAX else (f"{constant}LL", PRIMARY)
    if parts[0][0] < 0 and constant > 0:
        text = f"{constant}LL" if wide else str(constant)
        constant = 0
        parts.insert(0, (1, text, PRIMARY))
    first_sign, text, level = parts[0]
    text = f"-{text}" if first_sign < 0 else text
    level = SUM if first_sign < 0 else level
    for c, part, _ in parts[1:]:
        text, level = f"{text} {'-' if c < 0 else '+'} {part}", SUM
    if constant:
        text, level = f"{text} {'-' if constant < 0 else '+'} {abs(constant)}{'LL' if abs(constant) > INT_MAX else ''}", SUM
    return text, level


def divisions(exprs: Sequence[Expr]) -> int:
    """How many quotients and remainders the expressions hold."""
    count = 0
    for expr in exprs:
        for atom, _ in expr.terms:
            if not isinstance(atom, str):
                count += 1 + divisions((atom.expr,))
    return count


def linear(index: Sequence[Expr], shape: Sequence[int]) -> Expr:
    """The row-major offset of an element as one expression."""
    offset, stride = const(0), 1
    for e, extent in zip(reversed(index), reversed(shape), strict=True):
        offset, stride = offset + e * stride, stride * extent
    return rejoin(offset)


def offset_text(index: Sequence[Expr], shape: Sequence[int], ranges: Ranges, flat: Expr | None = None,
                used: Collection[Atom] = ()) -> str:
    """Row-major offset of ``array[index]`` as C text; `flat` is the offset, where it is known apart.

    Row and column stay apart as a person would write them (``(32 * io + ii) * 1000 + k``), unless the sum has fewer
    divisions: a coalesced loop over a whole array is one flat index.
    """
    flat = one_division(linear(index, shape) if flat is None else flat, ranges, used)
    if len(index) < 2 or divisions((flat,)) < divisions(index):
        return to_c(flat, ranges)[0]
    wide = is_wide(flat, ranges)
    return horner([to_c(e, ranges) for e in index], shape, wide)


def horner(parts: Sequence[tuple[str, int]], shape: Sequence[int], wide: bool) -> str:
    """``(a * n + b) * m + c`` of the texts of an index, with zero parts left out."""
    text, level, factor = "", PRIMARY, 1
    for (part, part_level), extent in zip(parts, shape, strict=True):
        factor *= extent
        if part == "0":
            continue
        if text:
            text, level = _plus(_times(text, level, factor, wide), part), SUM
        else:
            text, level = part, part_level
        factor = 1
    return _times(text, level, factor, wide) if text else "0"


def _times(text: str, level: int, factor: int, wide: bool) -> str:
    if factor == 1:
        return text
    bare = level >= PRODUCT and "/" not in text and "%" not in text
    return f"{text if bare else f'({text})'} * {factor}{'LL' if wide else ''}"


def _plus(text: str, part: str) -> str:
    return f"{text} - {part[1:]}" if part.startswith("-") else f"{text} + {part}"


def subscripts(index: Sequence[Expr], ranges: Ranges) -> str:
    """``[i][k]`` for an array declared with its dimensions."""
    return "".join(f"[{to_c(e, ranges)[0]}]" for e in index)

