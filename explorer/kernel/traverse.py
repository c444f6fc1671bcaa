"""Walking the IR: the nodes inside of a node, what a node is made of, and the same with something changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from ..ir.dtype import DType
from ..ir.expr import Expr
from ..ir.program import Indirect
from ..ir.tree import Loop
from .nodes import For, Get, If, Node, Ref
from .sites import Site, Store

_OPAQUE = (Site, Store, Loop, DType)


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly inside."""
    if isinstance(node, If):
        return (*node.body, *node.otherwise)
    return node.body if isinstance(node, For) else ()


def walk(nodes: tuple[Node, ...]) -> Iterator[Node]:
    """All nodes, outer ones first, in order."""
    for node in nodes:
        yield node
        yield from walk(children(node))


def map_bodies(node: Node, change: Callable[[tuple[Node, ...]], tuple[Node, ...]]) -> Node:
    """The node with each of its bodies changed."""
    if isinstance(node, If):
        return replace(node, body=change(node.body), otherwise=change(node.otherwise))
    return replace(node, body=change(node.body)) if isinstance(node, For) else node


def parts(value: Any) -> Iterator[Any]:
    """Everything that a node is made of, its bodies apart: operands, conditions, expressions."""
    if isinstance(value, tuple):
        for item in cast("tuple[Any, ...]", value):
            yield from parts(item)
    elif isinstance(value, _OPAQUE) or not is_dataclass(value):
        return
    else:
        yield value
        if not isinstance(value, (Expr, Indirect)):
            for f in fields(value):
                if f.name not in ("body", "otherwise") or isinstance(value, Get):
                    yield from parts(getattr(value, f.name))


def map_exprs(value: Any, change: Callable[[Expr], Expr]) -> Any:
    """The value with every expression in it changed."""
    if isinstance(value, Expr):
        return change(value)
    if isinstance(value, tuple):
        return tuple(map_exprs(item, change) for item in cast("tuple[Any, ...]", value))
    if isinstance(value, (*_OPAQUE, Indirect)) or not is_dataclass(value) or isinstance(value, type):
        return value
    new = {f.name: map_exprs(getattr(value, f.name), change) for f in fields(value) if f.init}
    changed = {name: v for name, v in new.items() if v is not getattr(value, name)}
    return replace(value, **changed) if changed else value


def exprs(value: Any) -> Iterator[Expr]:
    """Every expression of a node, its bodies apart."""
    for part in parts(value):
        if isinstance(part, Expr):
            yield part


def refs(node: Node) -> Iterator[Ref]:
    """Every element of memory or of a plan's buffer that a node names, its bodies apart."""
    for part in parts(node):
        if isinstance(part, Ref):
            yield part


def with_id(node: Node, name: str) -> Node:
    """The node, of one more node of the plan."""
    return replace(node, ids=(*node.ids, name))


def with_ids(nodes: Iterable[Node], ids: tuple[str, ...]) -> tuple[Node, ...]:
    """The nodes, of these nodes of the plan too: what a pass puts in place of a node belongs to the bound loops around it."""
    return tuple(replace(node, ids=tuple(dict.fromkeys((*node.ids, *ids)))) for node in nodes)
