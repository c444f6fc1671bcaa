"""A reduction of any shape, axes, type and operation as a program."""

from __future__ import annotations

import linecache

import explorer as ex
from explorer import frontend

START = {"sum": "0.0", "prod": "1.0", "max": "-inf", "min": "inf"}
UPDATE = {"sum": "acc += {0}", "prod": "acc *= {0}", "max": "acc = max(acc, {0})", "min": "acc = min(acc, {0})"}


def text(rank: int, axes: tuple[int, ...], dtype: str, op: str) -> str:
    """What a user would write: parallel loops, a start, reduced loops, the result."""
    index = [f"{'r' if a in axes else 'p'}{a}" for a in range(rank)]
    kept = [a for a in range(rank) if a not in axes]
    dims = ", ".join(f"D{a}" for a in range(rank))
    lines = [f"def reduction(x: {dtype}[{dims}], y: {dtype}[{', '.join(f'D{a}' for a in kept) or '1'}]):"]
    for depth, a in enumerate(kept):
        lines.append(f"{'    ' * (depth + 1)}for p{a} in range(D{a}):")
    indent = "    " * (len(kept) + 1)
    wide = {"f16": "f32", "bf16": "f32"}.get(dtype, dtype)
    lines += [f"{indent}acc = local({wide})", f"{indent}acc = {START[op]}"]
    for depth, a in enumerate(sorted(axes)):
        lines.append(f"{indent}{'    ' * depth}for r{a} in range(D{a}):")
    element = f"x[{', '.join(index)}]"
    lines.append(f"{indent}{'    ' * len(axes)}{UPDATE[op].format(element)}")
    lines.append(f"{indent}y[{', '.join(f'p{a}' for a in kept) or '0'}] = acc")
    return "\n".join(lines) + "\n"


def reduction(shape: tuple[int, ...], axes: tuple[int, ...], dtype: str, op: str) -> ex.Schedule:
    """The schedule that runs it as written."""
    source = text(len(shape), axes, dtype, op)
    name = f"<reduction {len(shape)} {axes} {dtype} {op}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    sizes = {f"D{a}": ex.sizes(f"D{a}") for a in range(len(shape))}
    scope = {n: getattr(frontend, n) for n in ("f16", "bf16", "f32", "f64", "i32", "inf", "local", "max", "min")} | sizes
    exec(compile(source, name, "exec"), scope)
    return ex.program(scope["reduction"]).schedule(**{f"D{a}": n for a, n in enumerate(shape)})
