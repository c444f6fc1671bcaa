"""The form of a transformation, made from the fields that it declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from ...ir.plan import Plan
from ...ir.tree import Loop
from ...schedule import Schedule
from ...transforms.base import Transform
from ..protocol_moves import Field


def form(kind: type[Transform], schedule: Schedule, node: str, step: Transform | None) -> list[Field]:
    """The fields of a transformation at a node, filled in from `step`, else from the node and the defaults."""
    return [_field(spec, schedule.plan, node, step) for spec in fields(kind)]  # type: ignore[arg-type]


def _field(spec: Any, plan: Plan, node: str, step: Transform | None) -> Field:
    metadata: Mapping[str, Any] = spec.metadata
    required, kind = spec.default is MISSING, metadata.get("kind", "name")
    value = getattr(step, spec.name) if step is not None else None if required else spec.default
    if step is None and required:
        value = _guess(kind, plan, node)
    out: Field = {"name": spec.name, "kind": kind, "help": metadata.get("help", ""), "required": required,
                  "value": list(value) if isinstance(value, tuple) else value}
    if (choices := _choices(kind, plan, metadata)) is not None:
        out["choices"] = choices
    if "min" in metadata:
        out["min"] = metadata["min"]
    if "max" in metadata:
        out["max"] = metadata["max"]
    return out


def _choices(kind: str, plan: Plan, metadata: Mapping[str, Any]) -> list[str] | None:
    """What may be chosen, where that is a list of names."""
    loops, kernels = list(plan.loops), [k.id for k in plan.kernels]
    leaves = [leaf.id for leaf, _, _ in plan.leaves]
    arrays = list(dict.fromkeys([*plan.array_of, *plan.buffer_of]))
    return {
        "choice": lambda: list(metadata.get("choices", ())),
        "loop": lambda: [*loops, *kernels], "loops": lambda: loops, "leaf": lambda: [*leaves, *arrays],
        "array": lambda: arrays, "arrays": lambda: arrays, "node": lambda: [*loops, *leaves], "kernel": lambda: kernels,
    }.get(kind, lambda: None)()


def _guess(kind: str, plan: Plan, node: str) -> Any:
    """A first value for a required field: the selected node where it is of the right kind."""
    hit = plan.find(node)
    is_loop = hit is not None and isinstance(hit[0], Loop)
    if kind == "loop" and is_loop:
        return node
    if kind == "loops" and is_loop:
        return [node]
    if kind == "leaf" and hit is not None and not is_loop:
        return node
    if kind in ("array", "arrays") and node in (plan.array_of.keys() | plan.buffer_of.keys()):
        return node if kind == "array" else [node]
    return [] if kind in ("loops", "ints", "arrays") else None
