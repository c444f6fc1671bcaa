"""The signature of a program: array parameters with element types and shapes made of sizes."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.dtype import DType
from .elements import ELEMENTS, nearest_element
from .refuse import refuse
from .scope import Scope, show_sizes
from .size import SizeValue
from .source import Source
from .types import ArrayType, Element


@dataclass(frozen=True)
class Parameter:
    """An array parameter.

    Attributes
    ----------
    name : str
    dtype : DType
    shape : tuple of int or SizeValue
        Empty for a scalar.
    node : ast.arg
        Where it stands.
    inout : bool
        Whether it was declared in-out.
    """

    name: str
    dtype: DType
    shape: tuple[int | SizeValue, ...]
    node: ast.arg
    inout: bool = False

    def extents(self, scope: Scope) -> tuple[int, ...]:
        """The shape in integers; raises ProgramError for a negative extent."""
        out: list[int] = []
        for part in self.shape:
            value = scope.size(self.node, part) if isinstance(part, SizeValue) else part
            if value < 0 and not scope.trial:
                raise scope.refuse(
                    self.node,
                    f"{self.name} has a negative extent: {part} is {value}",
                    why=f"with {show_sizes(scope.sizes)}",
                    hint="sizes that leave at least 0",
                )
            out.append(max(value, 0))
        return tuple(out)

    @property
    def declared(self) -> str:
        """The type as the user wrote it: ``f32[M, N]``."""
        return str(ArrayType(self.dtype, self.shape)) if self.shape else f"a scalar of type {self.dtype}"

    def __str__(self) -> str:
        return f"{self.name}: {self.declared if self.shape else self.dtype}"


def signature(function: Callable[..., Any], source: Source, captured: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """The parameters of a decorated function, from its annotations (evaluated, or as text under PEP 563)."""
    arguments = source.tree.args
    for node, kind in ((arguments.vararg, "*"), (arguments.kwarg, "**")):
        if node is not None:
            raise refuse(
                source,
                node,
                f"{kind}{node.arg} is not accepted",
                why="each array has a type and a shape of its own",
                hint=f"{node.arg}: ex.f32[M, N]",
            )
    for node in (*arguments.kwonlyargs, *arguments.posonlyargs):
        raise refuse(
            source,
            node,
            "keyword-only and positional-only parameters are not accepted",
            why="a program is scheduled, not called",
            hint="plain parameters, without * and /",
        )
    for node in arguments.defaults:
        raise refuse(
            source, node, "a default is not accepted", why="a program is scheduled, not called", hint="a name: ex.f32[M, N]"
        )
    if not arguments.args:
        raise refuse(
            source,
            source.tree,
            f"{source.tree.name} has no parameters",
            why="results are what it writes to its arrays",
            hint=f"def {source.tree.name}(x: ex.f32[N], y: ex.f32[N]):",
        )
    try:
        evaluated = dict(function.__annotations__)
    except NameError:
        evaluated = {}
    return tuple(_parameter(node, evaluated.get(node.arg, ""), source, captured) for node in arguments.args)


def _parameter(node: ast.arg, value: Any, source: Source, captured: Mapping[str, Any]) -> Parameter:
    hint = f"{node.arg}: ex.f32[M, N]"
    if node.annotation is None:
        raise refuse(
            source, node, f"the parameter {node.arg} has no annotation", why="it says the element type and the shape", hint=hint
        )
    if isinstance(value, str):
        value = _evaluate(node.annotation, source, captured)
    if isinstance(value, type) and issubclass(value, Element) and value is not Element:
        value = ArrayType(value.dtype, ())
    if not isinstance(value, ArrayType):
        near = nearest_element(ast.unparse(node.annotation)) or "f32"
        raise refuse(
            source,
            node.annotation,
            f"{ast.unparse(node.annotation)} is not an array type",
            why=f"the element types are {ELEMENTS}",
            hint=f"{node.arg}: ex.{near} for a number, {node.arg}: ex.{near}[M, N] for an array",
        )
    shape: list[int | SizeValue] = []
    for part in value.shape:
        part = part.item() if isinstance(part, np.integer) else part
        if not isinstance(part, (int, SizeValue)) or isinstance(part, bool):
            raise refuse(
                source,
                node.annotation,
                f"{part!r} is not an extent",
                why="a shape is made of sizes and integers",
                hint='M, N = ex.sizes("M N") above the function',
            )
        if isinstance(part, int) and part < 0:
            raise refuse(source, node.annotation, f"the extent {part} is negative", why="an extent is at least 0", hint=hint)
        shape.append(part)
    return Parameter(node.arg, value.dtype, tuple(shape), node, value.inout)


def _evaluate(annotation: ast.expr, source: Source, captured: Mapping[str, Any]) -> Any:
    text = (
        annotation.value
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str)
        else ast.unparse(annotation)
    )
    try:
        return eval(text, {"__builtins__": vars(builtins)}, dict(captured))
    except Exception as error:
        raise refuse(
            source,
            annotation,
            f"{text} cannot be evaluated",
            why=f"{type(error).__name__}: {error}",
            hint='M, N = ex.sizes("M N") above the function, and ex.f32[M, N]',
        ) from error
