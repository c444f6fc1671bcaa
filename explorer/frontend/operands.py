"""Which operands an operation takes: kinds, counts of shifts, keys, and signed numbers beside unsigned ones."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from ..errors import shown
from ..ir.dtype import DTYPES, DType
from ..ir.expr import Ranges
from ..ir.operations import OPERATIONS
from ..ir.scalar import Call, Cast, IndexValue, Literal, Read, Scalar, common, operand_type, type_of
from .refuse import OPERATORS, instead
from .scope import Scope


def checked(node: ast.expr, call: Call, types: Sequence[DType], scope: Scope) -> Call:
    """The call with its numbers of the text in the type of its unsigned operands, if it has any.

    Parameters
    ----------
    node : ast.expr
        What the user wrote.
    call : Call
    types : sequence of DType
        Of the statement's reads.
    scope : Scope

    Raises
    ------
    ProgramError
        For operands of a kind that the operation does not take, and for what may be negative beside an unsigned operand.
    """
    row = OPERATIONS[call.op]
    call = _joined(node, call, types, scope)
    if row.result != "float" and not row.takes and not row.accepts(kind := _kind(call, types)):
        raise _refused_kind(node, call, kind, types, scope)
    if call.op in ("lshift", "rshift") and isinstance(count := call.args[1], Literal):
        kind = operand_type(call, types)
        width = 8 * kind.bytes
        if not 0 <= count.value < width:
            raise scope.refuse(node, f"a shift by {shown(count.value)} bits is not accepted", why=f"{kind} has {width}",
                               hint=f"0 to {width - 1}" + ", or ex.cast(…, ex.i64) first" * (width < 64))
    return call


def _kind(call: Call, types: Sequence[DType]) -> DType:
    """The type it is evaluated in; of bits and quotients, that of an operand that has no bits."""
    odd = [k for a in call.args if (k := type_of(a, types)).kind != "int"]
    return odd[0] if odd and not OPERATIONS[call.op].accepts(DTYPES["f32"]) else operand_type(call, types)


def _refused_kind(node: ast.expr, call: Call, kind: DType, types: Sequence[DType], scope: Scope) -> Exception:
    row = OPERATIONS[call.op]
    if isinstance(node, ast.BinOp):
        symbol, hint = OPERATORS[type(node.op)]
        why = "it rounds down to a whole number" if call.op in ("floordiv", "mod") else "other types have no bits"
        return scope.refuse(node, f"`{symbol}` takes integers, not {kind}", why=why, hint=instead(node) or hint)
    if isinstance(node, ast.UnaryOp):
        return scope.refuse(node, f"`~` takes integers, not {kind}", why="it turns every bit",
                            hint="not" if kind.kind == "bool" else "ex.cast(…, ex.i32)")
    taken = " and ".join(f"{k}s" for k in ("float", "int") if any(row.accepts(d) for d in DTYPES.values() if d.kind == k))
    first = ast.unparse(node.args[0]) if isinstance(node, ast.Call) and node.args else "…"
    return scope.refuse(node, f"{call.op} takes {taken}, not {kind}", why="it has no meaning for other types",
                        hint=f"ex.cast({first}, ex.{'f32' if 'float' in taken else 'i32'})")


def _joined(node: ast.expr, call: Call, types: Sequence[DType], scope: Scope) -> Call:
    """Numbers beside unsigned operands are unsigned; nothing there may be negative, since it would count as a large number."""
    own = [type_of(a, types) for a in call.args]
    data = [t for a, t in zip(call.args, own, strict=True) if not isinstance(a, Literal)]
    if OPERATIONS[call.op].takes or not any(t.kind == "int" for t in data) or any(t.kind == "float" for t in own):
        return call
    target = common(data)
    if not target.unsigned:
        large = (a.value for a in call.args if isinstance(a, Literal) and not -(2**63) <= a.value < 2**63)
        if (number := next(large, None)) is not None:
            raise scope.refuse(node, f"{shown(number)} does not fit i64", why=f"it stands beside a {target}",
                               hint="a smaller number, or ex.cast(…, ex.u64) of the other value")
        return call
    args = list(call.args)
    for n, (arg, kind) in enumerate(zip(call.args, own, strict=True)):
        shift = n == 1 and call.op in ("lshift", "rshift")
        if kind.kind == "bool" or shift:
            continue
        if not not_negative(arg, types, scope.ranges):
            raise scope.refuse(node, f"a value that may be negative stands beside a {target}",
                               why=f"in {target} it would count as a large number",
                               hint=f"ex.cast(…, ex.{target}), or both as ex.i64")
        if isinstance(arg, Literal):
            if arg.value >= 2 ** (8 * target.bytes):
                raise scope.refuse(node, f"{shown(arg.value)} does not fit {target}",
                                   hint="ex.cast(…, ex.u64)" if target.name != "u64" else "a smaller number")
            args[n] = replace(arg, dtype=target)
    return replace(call, args=tuple(args))


def not_negative(value: Scalar, types: Sequence[DType], ranges: Ranges) -> bool:
    """Whether a value has an unsigned type or is known not to be negative."""
    if isinstance(value, Literal):
        return value.value >= 0
    if isinstance(value, IndexValue):
        return value.expr.interval(ranges)[0] >= 0
    if isinstance(value, Read):
        return types[value.slot].unsigned
    if isinstance(value, Cast):
        return value.dtype.unsigned or (value.dtype.kind == "int" and not_negative(value.arg, types, ranges))
    if value.op == "where":
        return all(not_negative(a, types, ranges) for a in value.args[1:])
    grows = value.op in ("add", "mul", "min", "max", "floordiv", "mod", "bitand", "bitor", "bitxor", "rshift")
    return type_of(value, types).unsigned or (grows and all(not_negative(a, types, ranges) for a in value.args))


def check_key(node: ast.Call, name: str, arguments: Sequence[Scalar], types: Sequence[DType], scope: Scope) -> None:
    """Keys have 32 bits for a value and 32 for its index; an index is taken from a key."""
    kinds = [type_of(a, types) for a in arguments]
    if name in ("argmax_key", "argmin_key"):
        if not fits_key(kinds[0]) and not isinstance(arguments[0], Literal):
            hint = f"y[i] = ex.{name[:6]}(… for k in range(N)), which takes two passes, or ex.cast(…, ex.f32)"
            raise scope.refuse(node.args[0], f"a value of type {kinds[0]} does not fit a key",
                               why="a key has 32 bits for the value and 32 for its index", hint=hint)
        if kinds[1].name != "i32":
            raise scope.refuse(node.args[1], f"the index in a key is an i32, not {kinds[1]}",
                               why="a key has 32 bits for the value and 32 for its index", hint="a loop variable")
    if name in ("argmax_index", "argmin_index") and kinds[0].name != "i64":
        raise scope.refuse(node.args[0], f"{name} takes a key, an i64, not {kinds[0]}",
                           hint=f"the {name[3:6]} of ex.{name[:6]}_key(…) in an i64")


def fits_key(dtype: DType) -> bool:
    """Whether values of a type are ordered by 32 bits with a sign."""
    return dtype.bytes <= 4 and dtype.name != "u32"
