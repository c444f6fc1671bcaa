"""Values: the right-hand side of a statement as a scalar expression and the list of its reads."""

from __future__ import annotations

import ast
from types import FunctionType
from typing import Any

from ..errors import ProgramError
from ..ir.dtype import DTYPES, DType
from ..ir.expr import Expr, Ranges, var
from ..ir.operations import OPERATIONS
from ..ir.program import Access, Array, Indirect
from ..ir.scalar import Call, Cast, IndexValue, Literal, Read, Scalar, type_of
from .elements import ELEMENTS, nearest_element
from .function import Function
from .literals import fold, literal, settle
from .operands import check_key, checked
from .parse_index import index, is_index
from .refuse import EXPRESSIONS, OPERATORS, instead, refuse_expression
from .scope import MISSING, Scope
from .types import Element, argmax, argmin, cast, local
from .words import OPERATION_OF

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.BitAnd: "bitand", ast.BitOr: "bitor", ast.BitXor: "bitxor", ast.LShift: "lshift", ast.RShift: "rshift"}  # fmt: skip
_LOGICAL: dict[type[ast.operator], str] = {ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor"}
_COMPARE: dict[type[ast.cmpop], str] = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
_OUTSIDE = "pass arrays as parameters; take plain numbers from outside"
_CLOSED = "values are made of array elements, numbers, loop variables and the operations " + ", ".join(
    sorted({*OPERATION_OF.values(), "cast"})
) + ", also as math and NumPy spell them"

_OWN = "write the arithmetic itself, or a function of your own under @ex.function"

_CLAMPS = ("min", "max", "abs")
"""Operations that may make the index of a read."""

_LOOPS = {
    "sum": "a loop with +=",
    "prod": "a loop with *=",
    "any": "a loop with |=",
    "all": "a loop with &=",
    "len": "a size",
    "dot": "a loop with +=",
    "matmul": "a loop with +=",
    "mean": "a loop with +=, then a division by the size",
    "argmax": "ex.argmax(x[i, k] for k in range(N))",
    "argmin": "ex.argmin(x[i, k] for k in range(N))",
    **dict.fromkeys(("temp", "temporary", "array", "zeros", "empty", "ones", "full", "alloc", "shared", "register"),
                    "t = ex.local(ex.f32, N) declares a temporary; moves say where it lies"),
}


class ValueParser:
    """Parses the values of one statement and collects its reads, each array element once."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.reads: list[Access] = []
        self.inside: tuple[Function, ...] = ()  # the functions whose calls are being written out

    @property
    def ranges(self) -> Ranges:
        """Intervals of the dimensions that an index is made of."""
        return self.scope.ranges

    @property
    def types(self) -> list[DType]:
        """Element types of the reads."""
        of = {array.name: array.dtype for array in self.scope.arrays.values()}
        return [of[read.array] for read in self.reads]

    def type_of(self, scalar: Scalar) -> DType:
        """The type of a value."""
        return type_of(scalar, self.types)

    def parse(self, node: ast.expr) -> Scalar:
        """The value of `node`; raises ProgramError for what is not accepted."""
        if isinstance(node, ast.Constant):
            return self._constant(node)
        if is_index(node, self.scope):
            return self._index_value(index(node, self.scope), self.ranges)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._name(node)
        if isinstance(node, ast.Subscript):
            if (number := self.scope.number(node)) is not None:
                return literal(number)
            return self._read(node, self.access(node))
        if isinstance(node, ast.BinOp):
            return self._binary(node)
        if isinstance(node, ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, ast.Compare):
            return self._compare(node)
        if isinstance(node, ast.BoolOp):
            name = "and" if isinstance(node.op, ast.And) else "or"
            return self._chain(name, [self.truth(v) for v in node.values])
        if isinstance(node, ast.IfExp):
            return Call("where", (self.truth(node.test), self.parse(node.body), self.parse(node.orelse)))
        if isinstance(node, ast.Call):
            return self._call(node)
        raise refuse_expression(self.scope.source, node)

    def access(self, node: ast.Subscript | ast.Name, kind: str = "read") -> Access:
        """The array element that `node` names."""
        base = node.value if isinstance(node, ast.Subscript) else node
        if not isinstance(base, ast.Name):
            raise self.scope.refuse(
                node, "only an array by its name can be indexed", why="every access names one array", hint="x[i, j]"
            )
        array = self.scope.arrays.get(base.id)
        if array is None:
            if isinstance(node, ast.Subscript) and (value := self.scope.outside(node)) is not MISSING:
                raise self.scope.refuse(node, f"{ast.unparse(node)} is not a number", why=f"it is {type(value).__name__}",
                                        hint=_OUTSIDE)
            if self.scope.variable(base.id) is not None or self.scope.outside(base) is not MISSING:
                raise self.scope.refuse(
                    node,
                    f"{base.id} is not an array of this program",
                    why="only parameters and temporaries can be indexed",
                    hint=f"add a parameter {base.id}: ex.f32[…]",
                )
            raise self.scope.unknown(base, len(_parts(node)) if kind != "read" else 0)
        parts = _parts(node)
        wanted = array.given if array.role == "temporary" else len(array.shape)
        if len(parts) != wanted:
            dims = "no dimension" if wanted == 0 else f"{wanted} dimension{'s' * (wanted > 1)}"
            letters = ", ".join("ijklmnop"[:wanted]) if wanted <= 8 else "…"
            raise self.scope.refuse(
                node,
                f"{base.id} has {dims}, not {len(parts)}",
                why=f"it is {self.scope.declared[base.id]}",
                hint=f"{base.id}[{letters}]" if wanted else base.id,
            )
        return Access(array.name, (*self._leading(array, wanted), *(self._subscript(p, kind) for p in parts)), kind)

    def _leading(self, array: Array, given: int) -> tuple[Expr, ...]:
        """A temporary's own dimensions: one for each loop around its declaration, counted from 0."""
        return tuple(var(s.loop.id) - s.loop.start for s in self.scope.loops[: len(array.shape) - given])

    def _subscript(self, node: ast.expr, kind: str) -> Expr | Indirect:
        if _negative(node):
            raise self.scope.refuse(
                node,
                "a negative index is not accepted",
                why="indices count from 0, as in the kernel",
                hint="the size minus a constant: x[N - 1]",
            )
        clamped = kind == "read" and (
            isinstance(node, ast.IfExp) or (isinstance(node, ast.Call) and operation_of(node, self.scope) in _CLAMPS))
        if is_index(node, self.scope) or isinstance(node, (ast.Compare, ast.BoolOp)) or not (clamped or _reads(node, self.scope)):
            return index(node, self.scope)
        if kind != "read":
            raise self.scope.refuse(
                node,
                "a write at a data-dependent index is not accepted",
                why="it may touch any element, so no order of two iterations could be proved",
                hint="write where the loop variables say, and read at the data-dependent index",
            )
        value = self.parse(node)
        if self.type_of(value).kind != "int":
            raise self.scope.refuse(
                node, f"an index must be an integer, not {self.type_of(value)}", hint="an i32 array, or ex.cast(…, ex.i32)"
            )
        return Indirect(settle(value, self.type_of(value), self.types))

    def _read(self, node: ast.expr, access: Access) -> Read:
        if access not in self.reads:
            self.reads.append(access)
        return Read(self.reads.index(access))

    def _constant(self, node: ast.Constant) -> Literal:
        if isinstance(node.value, (bool, int, float)):
            return literal(node.value)
        kind = "text" if isinstance(node.value, (str, bytes)) else ast.unparse(node)
        raise self.scope.refuse(node, f"{kind} is not accepted", why="values are real numbers and truth values", hint="a number")

    def _index_value(self, expr: Expr, ranges: Ranges) -> Scalar:
        if expr.is_constant:
            return literal(expr.const)
        low, high = expr.interval(ranges)
        wide = low < -(2**31) or high >= 2**31
        return Cast(DTYPES["i64"], IndexValue(expr)) if wide else IndexValue(expr)

    def _name(self, node: ast.Name | ast.Attribute) -> Scalar:
        if isinstance(node, ast.Name) and node.id in self.scope.arrays:
            return self._read(node, self.access(node))
        if (number := self.scope.number(node)) is not None:
            return literal(number)
        value = self.scope.outside(node)
        if isinstance(node, ast.Name) and value is MISSING:
            raise self.scope.unknown(node)
        root = next(n for n in ast.walk(node) if isinstance(n, ast.Name))
        if root.id in self.scope.arrays:
            why, hint = f"{root.id} is an array, of which only elements have a meaning here", f"{root.id}[…], or a size"
        elif value is MISSING:
            why, hint = "nothing of this name is known", "import it, define it above the function, or correct its spelling"
        else:
            why, hint = f"it is {type(value).__name__}", _OUTSIDE
        raise self.scope.refuse(node, f"{ast.unparse(node)} is not a number", why=why, hint=hint)

    def _binary(self, node: ast.BinOp) -> Scalar:
        if type(node.op) not in _BINARY:
            symbol, hint = OPERATORS[type(node.op)]
            raise self.scope.refuse(node, f"`{symbol}` is not accepted in a value", why=_CLOSED, hint=instead(node) or hint)
        sides = self.parse(node.left), self.parse(node.right)
        if type(node.op) in _LOGICAL and any(self.type_of(side).kind == "bool" for side in sides):
            return self._chain(_LOGICAL[type(node.op)], [self.truth(node.left), self.truth(node.right)])
        return fold(self._checked(node, Call(_BINARY[type(node.op)], sides)))

    def _checked(self, node: ast.expr, call: Call) -> Call:
        return checked(node, call, self.types, self.scope)

    def _unary(self, node: ast.UnaryOp) -> Scalar:
        if isinstance(node.op, ast.Not):
            return Call("not", (self.truth(node.operand),))
        if isinstance(node.op, ast.Invert):
            return self._checked(node, Call("invert", (self.parse(node.operand),)))
        inner = self.parse(node.operand)
        return inner if isinstance(node.op, ast.UAdd) else self.negated(inner)

    def _compare(self, node: ast.Compare) -> Scalar:
        sides = [node.left, *node.comparators]
        parts: list[Scalar] = []
        for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
            if type(op) not in _COMPARE:
                symbol, hint = OPERATORS[type(op)]
                raise self.scope.refuse(node, f"`{symbol}` is not accepted in a value", why=_CLOSED, hint=hint)
            parts.append(self._checked(node, Call(_COMPARE[type(op)], (self.parse(left), self.parse(right)))))
        return self._chain("and", parts)

    def truth(self, node: ast.expr) -> Scalar:
        """The value of `node`, which must be true or false."""
        value = self.parse(node)
        if self.type_of(value).kind != "bool":
            raise self.scope.refuse(
                node,
                f"a truth value is expected, not {self.type_of(value)}",
                why="numbers are not true or false by themselves",
                hint=f"{ast.unparse(node)} != 0",
            )
        return value

    def negated(self, value: Scalar) -> Scalar:
        """``-value``."""
        return fold(Call("neg", (value,)))

    def _chain(self, op: str, parts: list[Scalar]) -> Scalar:
        total = parts[0]
        for part in parts[1:]:
            total = Call(op, (total, part))
        return total

    def _call(self, node: ast.Call) -> Scalar:
        called = self.scope.outside(node.func)
        if type(node.func) in EXPRESSIONS:
            raise refuse_expression(self.scope.source, node.func)
        if isinstance(called, Function):
            from .parse_function import inlined

            return inlined(node, called, self)
        name = operation_of(node, self.scope)
        if name is None and called is not cast:
            raise self._unknown_call(node, called)
        if node.keywords:
            raise self.scope.refuse(node, "keyword arguments are not accepted", why=_CLOSED, hint="arguments by position")
        if called is cast:
            return self._cast(node)
        assert name is not None
        arity = OPERATIONS[name].arity
        if len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp):
            raise refuse_expression(self.scope.source, node.args[0])
        if starred := next((a for a in node.args if isinstance(a, ast.Starred)), None):
            raise refuse_expression(self.scope.source, starred)
        many = OPERATIONS[name].many
        if len(node.args) != arity and not (many and len(node.args) > arity):
            raise self.scope.refuse(
                node,
                f"{name} takes {arity}{' or more' * many} argument{'s' * (arity > 1)}, not {len(node.args)}",
                why="it works on single numbers",
                hint=f"{ast.unparse(node.func)}({', '.join([*map(ast.unparse, node.args), '1.0', '1.0', '1.0'][:arity])})",
            )
        if name == "where":
            return Call("where", (self.truth(node.args[0]), self.parse(node.args[1]), self.parse(node.args[2])))
        arguments = [self.parse(a) for a in node.args]
        check_key(node, name, arguments, self.types, self.scope)
        if not many:
            return fold(self._checked(node, Call(name, tuple(arguments))))
        total = arguments[0]
        for part in arguments[1:]:
            total = self._checked(node, Call(name, (total, part)))
        return total

    def _cast(self, node: ast.Call) -> Scalar:
        dtype = self.scope.outside(node.args[1]) if len(node.args) == 2 else None
        if not (isinstance(dtype, type) and issubclass(dtype, Element)) or dtype is Element:
            words = sorted(map(ast.unparse, node.args), key=lambda w: bool(nearest_element(w)))
            value, near = (words[0], nearest_element(words[-1]) or "f32") if len(words) == 2 else ("x[i]", "f32")
            raise self.scope.refuse(node, "cast takes a value and an element type",
                                    why=f"the value comes first; the element types are {ELEMENTS}",
                                    hint=f"ex.cast({value}, ex.{near})")
        return Cast(dtype.dtype, self.parse(node.args[0]))

    def _unknown_call(self, node: ast.Call, called: Any) -> ProgramError:
        words = ast.unparse(node.func)
        if called is local:
            return self.scope.refuse(node, "a temporary is declared on a line of its own", hint="t = ex.local(ex.f32)")
        if called in (argmax, argmin):
            name = called.__name__
            return self.scope.refuse(node, f"{name} stands on a line of its own", why="it is a loop over its elements",
                                     hint=f"y[i] = ex.{name}(x[i, k] for k in range(N)), and then y[i]")  # fmt: skip
        if self.inside and words == self.inside[-1].name:
            return self.scope.refuse(node, f"{words} calls itself", why="a call is written out, which would never end",
                                     hint="a loop in the program")
        if isinstance(called, FunctionType):
            return self.scope.refuse(node, f"{words} is a Python function", why="a program is parsed, never executed",
                                     hint=f"@ex.function above `def {called.__name__}`")
        if isinstance(called, type) and issubclass(called, (Element, float, int, bool)):
            inner = ast.unparse(node.args[0]) if node.args else "x[i]"
            return self.scope.refuse(node, f"{words}(…) is not accepted", why=_CLOSED,
                                     hint=f"ex.cast({inner}, ex.{nearest_element(words) or 'f32'})")
        short = words.rsplit(".", 1)[-1]
        near = {"fmax": "max", "maximum": "max", "fmin": "min", "minimum": "min", "power": "pow"}.get(short, short)
        hint = f"ex.{near}(…)" if near in OPERATIONS else _LOOPS.get(short, _OWN)
        return self.scope.refuse(node, f"{words} is not an operation of programs", why=_CLOSED, hint=hint)


def operation_of(node: ast.Call, scope: Scope) -> str | None:
    """Name of the operation that is called, however it was imported; None if it is no operation."""
    try:
        return OPERATION_OF.get(scope.outside(node.func))
    except TypeError:
        return None


def _parts(node: ast.Subscript | ast.Name) -> list[ast.expr]:
    if isinstance(node, ast.Name):
        return []
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def _negative(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant)


def _reads(node: ast.AST, scope: Scope) -> bool:
    return any(isinstance(n, ast.Name) and n.id in scope.arrays for n in ast.walk(node))
