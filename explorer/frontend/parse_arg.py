"""``y[i] = ex.argmax(x[i, k] for k in range(N))``: as the plain statements that compute it.

With values of 32 bits or fewer, one reduction over keys (see :data:`explorer.ir.scalar.OPERATIONS`)::

    y_key = ex.local(ex.i64)
    y_key = -2**63
    for k in range(N):
        y_key = max(y_key, ex.argmax_key(x[i, k], k))
    y[i] = ex.argmax_index(y_key)

Values of 64 bits leave no room for an index: there, the largest value first and then the first element that equals it::

    y_peak = ex.local(ex.f64)
    y_peak = -ex.inf
    for k in range(N):
        y_peak = max(y_peak, x[i, k])
    y_first = ex.local(ex.i32)
    y_first = 2**31 - 1
    for k in range(N):
        y_first = min(y_first, k if x[i, k] == y_peak or x[i, k] != x[i, k] else 2**31 - 1)
    y[i] = y_first

A NaN makes the largest value NaN, which equals nothing, so that the first NaN is found by itself.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..ir.dtype import DTYPES, DType
from ..ir.expr import Expr, const
from ..ir.operations import OPERATIONS
from ..ir.program import Constraint
from ..ir.scalar import REDUCTIONS, Call, walk
from . import words
from .operands import fits_key
from .parse_loop import range_of, surrounding
from .parse_value import ValueParser
from .scope import Scope, Surrounding
from .types import argmax, argmin, bool_, f32, f64, i32, i64, local, u32, u64

WORDS: dict[str, Any] = {
    "ex:local": local, "ex:max": builtins.max, "ex:min": builtins.min,
    "ex:bool": bool_, "ex:i32": i32, "ex:i64": i64, "ex:f32": f32, "ex:f64": f64, "ex:u32": u32, "ex:u64": u64,
    **{f"ex:{name}": words.WORDS[name] for name in ("argmax_key", "argmin_key", "argmax_index", "argmin_index")},
}  # fmt: skip
"""What the statements made here mention, under names that no text can have."""


def arg_of(node: ast.expr, scope: Scope) -> str:
    """``"argmax"`` or ``"argmin"`` for a call of these, else nothing."""
    called = scope.outside(node.func) if isinstance(node, ast.Call) else None
    return "argmax" if called is argmax else "argmin" if called is argmin else ""


def expanded(node: ast.Assign, scope: Scope, unique: Callable[[str], str]) -> tuple[list[ast.stmt], Scope]:
    """The statements that a dedicated assignment stands for, and the scope to read them in.

    Parameters
    ----------
    node : ast.Assign
        ``target = ex.argmax(...)`` or ``ex.argmin``.
    scope : Scope
    unique : callable
        A free name like the given one, for a temporary.

    Raises
    ------
    ProgramError
        For anything but a generator over one range, for an empty range, and for values of 64 bits that are computed.
    """
    name = arg_of(node.value, scope)
    assert isinstance(node.value, ast.Call)
    target, loop, value = node.targets[0], *_generator(node.value, name, scope)
    if len(node.targets) > 1 or not isinstance(target, (ast.Name, ast.Subscript)):
        raise scope.refuse(node, f"{name} gives one index", why="a statement writes one element", hint=f"y[i] = ex.{name}(…)")
    call = range_of(loop, scope)
    assert isinstance(loop.target, ast.Name)
    around = surrounding(call, loop.target.id, loop.target.id, scope)
    _check_elements(node, loop, around, name, scope)
    parser = ValueParser(scope.inside(around))
    parsed = parser.parse(value)
    dtype, wide_index = parser.type_of(parsed), around.value.interval(scope.inside(around).ranges)[1] >= 2**31 - 1
    base = target.value if isinstance(target, ast.Subscript) else target
    make = _Maker(node, loop, value, target, unique, f"{base.id if isinstance(base, ast.Name) else 'arg'}_")
    inner = replace(scope, captured={**scope.captured, **WORDS})
    if fits_key(dtype) and not wide_index:
        return make.by_keys(name), inner
    if not all(OPERATIONS[n.op].ulp == 0.0 for n in walk(parsed) if isinstance(n, Call)):
        # (equal bits wherever they are compiled; a sum of products may be contracted in one loop and not in another)
        raise scope.refuse(value, f"{name} of a computed {dtype} is not accepted",
                           why="its key would not fit 64 bits, and the second of two passes could round otherwise than the first",
                           hint="ex.cast(…, ex.f32), or the values in an array or a temporary before this line")  # fmt: skip
    return make.by_passes(name, dtype, "i64" if wide_index else "i32"), inner


def _generator(call: ast.Call, name: str, scope: Scope) -> tuple[ast.For, ast.expr]:
    """The loop and the element of the generator."""
    hint = f"y[i] = ex.{name}(x[i, k] for k in range(N))"
    if len(call.args) != 1 or call.keywords or not isinstance(call.args[0], ast.GeneratorExp):
        raise scope.refuse(call, f"{name} takes elements and their range", why="it gives the place of one of them", hint=hint)
    generator = call.args[0]
    if len(generator.generators) > 1:
        raise scope.refuse(call, f"{name} runs over one range", why="the index is the value of its variable",
                           hint=f"loops, and key = {name[3:]}(key, ex.{name}_key(x[i, j, k], j*N + k))")  # fmt: skip
    part = generator.generators[0]
    if part.ifs or part.is_async:
        raise scope.refuse(call, f"an `if` in {name} is not accepted", why="there might be no element",
                           hint="ex.where(…, x[i, k], -ex.inf) as the element")  # fmt: skip
    loop = ast.For(part.target, part.iter, [], [])
    return ast.copy_location(loop, call), generator.elt


def _check_elements(node: ast.Assign, loop: ast.For, around: Surrounding, name: str, scope: Scope) -> None:
    """Refuse a range that has no element, or may have none, in an instance of the statement."""
    never = any(s.loop.extent == 0 for s in scope.loops) or any(c.expr.interval(scope.ranges)[1] < 0 for c in scope.conditions)
    if scope.trial or never:
        return
    spans = _spans(around.bounds, around.loop.id)
    known = [const(0), *(c.expr for c in scope.domain)]  # at least 0 in every instance
    if all(any((e - k).interval(scope.ranges)[0] >= 0 for k in known) for e in spans):
        return
    text, variable = ast.unparse(loop.iter), around.name
    sizes = ", ".join(f"{k}={v}" for k, v in scope.sizes.items())
    if any(e.interval(scope.ranges)[1] < 0 for e in spans):
        what = f"{name} over an empty range: the loop {variable} in {text} has no elements with {sizes}"
    else:
        what = f"{name} over a range that may be empty: the loop {variable} in {text}"
    key = f"key = {name[3:]}(key, ex.{name}_key(…, {variable}))"
    raise scope.refuse(loop.iter, what, why=f"no element has an index in `{scope.source.segment(node)}`",
                       hint=f"larger sizes, or a loop with {key}, whose index is -1 where there is no element")


def _spans(bounds: tuple[Constraint, ...], name: str) -> list[Expr]:
    """Expressions that are all at least 0 exactly where a range has an element: each upper bound less each lower one."""
    factors = [(c.expr, dict(c.expr.terms).get(name, 0)) for c in bounds]
    return [low * -b + high * a for low, a in factors if a > 0 for high, b in factors if b < 0]


@dataclass(frozen=True)
class _Maker:
    """Builds statements at the place of the user's."""

    node: ast.Assign
    loop: ast.For
    value: ast.expr
    target: ast.expr
    unique: Callable[[str], str]
    prefix: str

    def by_keys(self, name: str) -> list[ast.stmt]:
        key, variable = self.unique(f"{self.prefix}key"), self.loop.target
        start = REDUCTIONS[name[3:]].identity(DTYPES["i64"])
        update = _call(name[3:], ast.Name(key, ast.Load()), _call(f"{name}_key", self.value, variable))
        return self.placed(*self.reduction(key, "i64", start, update),
                           ast.Assign([self.target], _call(f"{name}_index", ast.Name(key, ast.Load()))))

    def by_passes(self, name: str, dtype: DType, index: str) -> list[ast.stmt]:
        peak, first = self.unique(f"{self.prefix}peak"), self.unique(f"{self.prefix}first")
        start = REDUCTIONS[name[3:]].identity(dtype)
        best = _call(name[3:], ast.Name(peak, ast.Load()), self.value)
        last = 2**63 - 1 if index == "i64" else 2**31 - 1
        none, variable = ast.Constant(last), self.loop.target
        found = ast.BoolOp(ast.Or(), [ast.Compare(self.value, [ast.Eq()], [ast.Name(peak, ast.Load())]),
                                      ast.Compare(self.value, [ast.NotEq()], [self.value])])
        lowest = _call("min", ast.Name(first, ast.Load()), ast.IfExp(found, variable, none))
        return self.placed(*self.reduction(peak, dtype.name, start, best),
                           *self.reduction(first, index, last, lowest),
                           ast.Assign([self.target], ast.Name(first, ast.Load())))

    def reduction(self, name: str, dtype: str, start: float | int | bool, update: ast.expr) -> list[ast.stmt]:
        """A temporary of this type, its start, and its updates over the range."""
        place: list[ast.expr] = [ast.Name(name, ast.Store())]
        body: list[ast.stmt] = [ast.Assign(place, update)]
        return [ast.Assign(place, _call("local", ast.Name(f"ex:{dtype}", ast.Load()))), ast.Assign(place, ast.Constant(start)),
                ast.For(self.loop.target, self.loop.iter, body, [])]

    def placed(self, *statements: ast.stmt) -> list[ast.stmt]:
        """The statements, with the place of the user's where they have none of their own."""
        for statement in statements:
            for made in ast.walk(statement):
                if "lineno" in made._attributes and not hasattr(made, "lineno"):
                    ast.copy_location(made, self.node)
        return list(statements)


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(f"ex:{name}", ast.Load()), list(arguments), [])
