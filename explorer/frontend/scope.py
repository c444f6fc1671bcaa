"""The symbol table at one point of a program: loop variables, arrays, sizes and captured constants."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

import numpy as np

from ..errors import ProgramError, shown
from ..ir.dtype import DType
from ..ir.expr import Expr, Ranges
from ..ir.program import Array, Constraint
from ..ir.tree import Loop
from .refuse import refuse
from .size import SizeValue
from .snapshot import MISSING, field_of, fields_read, snapshot
from .source import Source

_PLACES = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
"""Arithmetic in a constant index."""

@dataclass(frozen=True)
class Surrounding:
    """A loop around the current statement: its node without a body, and the constraints of its bounds."""

    loop: Loop
    bounds: tuple[Constraint, ...]
    name: str
    value: Expr


@dataclass(frozen=True)
class Scope:
    """The meaning of names, and where a refusal points.

    Attributes
    ----------
    source : Source
    captured : mapping of str to object
        Values of the names that the function takes from outside.
    assigned : frozenset of str
        Names that the function itself binds: by Python's rule these are never the outside ones.
    sizes : mapping of str to int
    trial : bool
        True where `sizes` are stand-ins: then nothing that depends on their values is refused.
    loops : tuple of Surrounding
        Outermost first.
    arrays : mapping of str to Array
        By the user's name; a temporary's array may have another.
    conditions : tuple of Constraint
    declared : mapping of str to str
        How the user declared each array: ``f32[M, N]``.
    masks : tuple of (ast.expr, bool)
        Tests on data around this point, outermost first, each with the value that it has here.
    depths : mapping of str to int
        Under how many masks each temporary was declared: it lives and dies under them.
    aliases : mapping of str to Expr
        Names that the user gave to indices.
    inferred : mapping of str to (key, DType or None)
        The temporaries that were not declared, with the type that is taken so far.
    wording : str
        What a statement made of several says, where that is not one piece of the user's text.
    """

    source: Source
    captured: Mapping[str, Any]
    assigned: frozenset[str]
    sizes: Mapping[str, int]
    trial: bool
    loops: tuple[Surrounding, ...] = ()
    arrays: Mapping[str, Array] = field(default_factory=dict)
    conditions: tuple[Constraint, ...] = ()
    declared: Mapping[str, str] = field(default_factory=dict)
    masks: tuple[tuple[ast.expr, bool], ...] = ()
    depths: Mapping[str, int] = field(default_factory=dict)
    aliases: Mapping[str, Expr] = field(default_factory=dict)
    inferred: Mapping[str, tuple[tuple[str, int, int], DType | None]] = field(default_factory=dict)
    wording: str = ""

    @property
    def ranges(self) -> Ranges:
        """Intervals of the dimensions around this point."""
        return {s.loop.id: s.loop.range for s in self.loops}

    @property
    def dims(self) -> tuple[str, ...]:
        """Dimensions at this point, outermost first."""
        return tuple(s.loop.id for s in self.loops)

    @property
    def domain(self) -> tuple[Constraint, ...]:
        """Bounds of all loops, outermost first, then conditions."""
        return (*(c for s in self.loops for c in s.bounds), *self.conditions)

    def variable(self, name: str) -> Expr | None:
        """The value of a live loop variable, or of a name for an index, over the dimensions; or None."""
        return next((s.value for s in reversed(self.loops) if s.name == name), None) or self.aliases.get(name)

    def inside(self, loop: Surrounding) -> Scope:
        """The scope in the body of `loop`."""
        return replace(self, loops=(*self.loops, loop))

    def under(self, conditions: tuple[Constraint, ...]) -> Scope:
        """The scope in the body of an ``if``."""
        return replace(self, conditions=(*self.conditions, *conditions))

    def masked(self, test: ast.expr, value: bool) -> Scope:
        """The scope in a branch of an ``if`` on data."""
        return replace(self, masks=(*self.masks, (test, value)), wording="")

    def refuse(self, node: ast.AST, what: str, *, why: str = "", hint: str = "") -> ProgramError:
        """The error that refuses `node`: ``raise scope.refuse(...)``."""
        return refuse(self.source, node, what, why=why, hint=hint)

    def outside(self, node: ast.expr) -> Any:
        """The captured value of a plain or dotted name, or of an element at a constant place in one, or :data:`MISSING`."""
        if isinstance(node, ast.Name):
            return MISSING if node.id in self.assigned else self.captured.get(node.id, MISSING)
        if isinstance(node, ast.Attribute):
            base = self.outside(node.value)
            return MISSING if base is MISSING else field_of(base, node.attr)
        if isinstance(node, ast.Subscript) and isinstance(base := self.outside(node.value), (tuple, list, dict, np.ndarray)):
            return self._element(node, base)
        return MISSING

    def _element(self, node: ast.Subscript, base: Any) -> Any:
        """An element of a captured tuple, list, dict or array, at the time of its definition."""
        try:
            key = self._place(node.slice)
        except ValueError:
            raise self.refuse(node, f"{ast.unparse(node)} is not a number", hint="a constant index, or pass it as a parameter",
                              why=f"{ast.unparse(node.value)} is a {type(base).__name__} from outside") from None
        try:
            return base[key]
        except (LookupError, TypeError):
            keys = ", ".join(map(shown, list(base)[:20])) if isinstance(base, dict) else ""
            has = f"the keys {keys}" if keys else f"{len(base)} elements"
            raise self.refuse(node, f"there is no {ast.unparse(node)}", why=f"{ast.unparse(node.value)} has {has}") from None

    def _place(self, node: ast.expr) -> Any:
        """A constant index: a number or a text, a captured one, a tuple of such, or arithmetic on them."""
        if isinstance(node, ast.Tuple):
            return tuple(self._place(part) for part in node.elts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._whole(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in _PLACES:
            return _PLACES[type(node.op)](self._whole(node.left), self._whole(node.right))
        value = node.value if isinstance(node, ast.Constant) else self.outside(node)
        if isinstance(value, str | int | float | np.integer):
            return value
        raise ValueError

    def _whole(self, node: ast.expr) -> int:
        value = self._place(node)
        if isinstance(value, int | np.integer):
            return int(value)
        raise ValueError

    def number(self, node: ast.expr) -> int | float | bool | None:
        """The captured number or size that a name stands for, or None."""
        value = self.outside(node)
        if isinstance(value, SizeValue):
            return self.size(node, value)
        if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and not value.ndim):
            value = value.item()
        return value if isinstance(value, (bool, int, float)) else None

    def size(self, node: ast.AST, value: SizeValue) -> int:
        """A size, or arithmetic on sizes, as an integer."""
        try:
            return value.evaluate(self.sizes)
        except ZeroDivisionError:
            if self.trial:
                return 1
            raise self.refuse(node, f"{value} divides by zero", why=f"with {show_sizes(self.sizes)}") from None

    def unknown(self, node: ast.Name, indices: int = 0) -> ProgramError:
        """The refusal of a name that means nothing here; of something with so many indices that gets a value."""
        name = node.id
        if indices:
            sizes = ", ".join(("N",) if indices == 1 else ("M", "N") if indices == 2 else (f"N{n}" for n in range(indices)))
            return self.refuse(
                node,
                f"unknown array {name}",
                why="an array is a parameter, or a temporary that is declared before",
                hint=f"{name} = ex.local(ex.f32, {sizes}) above the loops, or a parameter {name}: ex.f32[{sizes}]",
            )
        if name in self.assigned:
            return self.refuse(
                node,
                f"{name} has no value here",
                why=f"it is a loop variable or a temporary of another place, or {name} is used before it is declared",
                hint=f"declare it before, in this loop or one around it: {name} = ex.local(ex.f32)",
            )
        return self.refuse(
            node,
            f"unknown name {name}",
            why="it is no parameter, loop variable, temporary, size or captured number",
            hint=f"import it, define it above the function, correct its spelling, or add it to the parameters: {name}: ex.f32[N]",
        )


def show_sizes(sizes: Mapping[str, int]) -> str:
    """Sizes as the user writes them: ``M=3, N=4``."""
    return ", ".join(f"{k}={v}" for k, v in sizes.items())


def bound_names(tree: ast.FunctionDef) -> frozenset[str]:
    """Names that the function binds: parameters, loop variables and assigned names."""
    stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    a = tree.args
    return frozenset(stored | {p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)})


def capture(function: Callable[..., Any], tree: ast.FunctionDef, frame: FrameType | None) -> dict[str, Any]:
    """Values of the names that `tree` mentions, as they are now: closure, then the places around it, then globals, builtins."""
    closure: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            closure[name] = cell.cell_contents
        except ValueError:
            continue
    scopes: list[Mapping[str, Any]] = [closure]
    while frame is not None:
        if frame.f_globals is function.__globals__:
            scopes.append(frame.f_locals)
            break
        frame = frame.f_back
    scopes += [function.__globals__, vars(builtins)]
    names = {n.id for part in (tree, *_quoted(tree)) for n in ast.walk(part) if isinstance(n, ast.Name)}
    fields = fields_read(tree)
    return {name: snapshot(scope[name], fields) for name in sorted(names) for scope in reversed(scopes) if name in scope}


def _quoted(tree: ast.FunctionDef) -> Iterator[ast.AST]:
    """Annotations that were written as text."""
    for argument in tree.args.args:
        if isinstance(argument.annotation, ast.Constant) and isinstance(argument.annotation.value, str):
            with suppress(SyntaxError):
                yield ast.parse(argument.annotation.value, mode="eval")


LONGEST_NAME = 80
"""Characters; what is made of several names still fits the 255 that the CPU device reads."""


def check_length(node: ast.AST, name: str, scope: Scope) -> None:
    """Refuse a name that is too long."""
    if len(name) > LONGEST_NAME:
        raise scope.refuse(node, f"the name {name[:20]}… is too long", why=f"it has {len(name):,} characters",
                           hint=f"at most {LONGEST_NAME}")


def check_name(node: ast.AST, name: str, scope: Scope) -> None:
    """Refuse a name that a kernel could not carry, or that hides an operation."""
    check_length(node, name, scope)
    if not name.isascii():
        raise scope.refuse(
            node, f"the name {name} is not ASCII", why="the kernel keeps your names", hint="letters a to z, digits and _"
        )
    if name in ("range", "min", "max", "abs", "pow"):
        raise scope.refuse(
            node,
            f"the name {name} hides an operation",
            why="inside the function it would mean the array or variable",
            hint=f"{name}_",
        )
