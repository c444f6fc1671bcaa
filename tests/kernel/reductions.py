"""Programs that reduce the rows of a matrix, inputs with every special value, and NumPy's answers."""

from __future__ import annotations

import numpy as np

from explorer.frontend.definition import Definition
from explorer.ir.dtype import DTYPES, bf16_to_f32, f32_to_bf16
from explorer.ir.plan import Plan, initial
from explorer.ir.program import Program
from explorer.ir.scalar import BITWISE
from explorer.poly.judge import judge
from explorer.schedule import Schedule
from explorer.strategies.auto import auto
from explorer.strategies.default import default
from tests.frontend.support import define
from tests.kernel.plan_run import follow

FLOATS, INTS = ("f16", "bf16", "f32", "f64"), ("i8", "i32", "i64", "u8", "u16", "u32", "u64")
KINDS: dict[str, tuple[str, ...]] = {
    "sum": (*FLOATS, *INTS), "prod": (*FLOATS, *INTS), "squares": (*FLOATS, "i32"),
    "mean": (*FLOATS, "i32", "bool"),
    "max": (*FLOATS, *INTS, "bool"), "min": (*FLOATS, *INTS, "bool"), "and": ("bool",), "or": ("bool",), "xor": ("bool",),
    "bitand": INTS, "bitor": INTS, "bitxor": INTS, "count": ("bool",),
    "argmax": (*FLOATS, *INTS, "bool"), "argmin": (*FLOATS, *INTS, "bool"),
}  # fmt: skip
CASES = [(op, dtype) for op, dtypes in KINDS.items() for dtype in dtypes]
_LOWEST = {"i8": "-128", "i32": "-2**31", "i64": "-2**63", "u8": "0", "u16": "0", "u32": "0", "u64": "0", "bool": "False"}
_HIGHEST = {"i8": "127", "i32": "2**31 - 1", "i64": "2**63 - 1", "u8": "255", "u16": "65535",
            "u32": "2**32 - 1", "u64": "2**64 - 1", "bool": "True"}
_PARTS = {
    "sum": ("0", "y[i] += x[i, k]"), "prod": ("1", "y[i] *= x[i, k]"), "squares": ("0", "y[i] += x[i, k] * x[i, k]"),
    "mean": ("0", "y[i] += x[i, k] / N"), "and": ("True", "y[i] &= x[i, k]"), "or": ("False", "y[i] |= x[i, k]"),
    "xor": ("False", "y[i] ^= x[i, k]"), "bitor": ("0", "y[i] |= x[i, k]"), "bitxor": ("0", "y[i] ^= x[i, k]"),
    "count": ("0", "y[i] += x[i, k]"),
}  # fmt: skip


def result_type(op: str, dtype: str) -> str:
    """The element type of the result."""
    if op in ("argmax", "argmin", "count"):
        return "i32"
    return "f32" if op == "mean" and DTYPES[dtype].kind != "float" else dtype


def definition(op: str, dtype: str) -> Definition:
    """The reduction of each row of x to an element of y."""
    element = "bool_" if dtype == "bool" else dtype
    out = result_type(op, dtype).replace("bool", "bool_")
    head = f"@ex.program\ndef f(x: ex.{element}[M, N], y: ex.{out}[M]):\n    for i in range(M):\n"
    if op in ("argmax", "argmin"):
        return define(f"{head}        y[i] = ex.{op}(x[i, k] for k in range(N))\n")
    if op in ("max", "min"):
        start = (_LOWEST if op == "max" else _HIGHEST).get(dtype, "-ex.inf" if op == "max" else "ex.inf")
        update = f"y[i] = {op}(y[i], x[i, k])"
    elif op == "bitand":
        start, update = _HIGHEST[dtype] if DTYPES[dtype].unsigned else "-1", "y[i] &= x[i, k]"
    else:
        start, update = _PARTS[op]
    return define(f"{head}        y[i] = {start}\n        for k in range(N):\n            {update}\n")


_ROW = [("bind", "i", "block.x"), ("split", "k", 8), ("bind", "k.i", "thread.x")]
_BLOCKS = [("split", "k", 8), ("bind", "k", "block.x")]
WAYS: dict[str, list | None] = {
    "as written": [],
    "rfactor": [("split", "k", 8), ("rfactor", "the update", "k.i")],
    "shuffle": [*_ROW, ("collect", "the update", "shuffle")],
    "shared": [*_ROW, ("collect", "the update", "shared")],
    "atomic, threads": [*_ROW, ("collect", "the update", "atomic")],
    "lanes": [("bind", "i", "block.x"), ("split", "k", 32), ("bind", "k.i", "lane"), ("collect", "the update", "shuffle")],
    "atomic, blocks": [*_BLOCKS, ("collect", "the update", "atomic")],
    "kernel": [*_BLOCKS, ("collect", "the update", "kernel")],
    "in registers": [("split", "k", 6), ("unroll", "k.i"), ("accumulate", "the target"), ("contract", "the register")],
    "default": None,
    "auto": None,
}


def plan(program: Program, way: str) -> Plan:
    """The program scheduled in a way, and judged legal."""
    if not program.statements:
        return initial(program)
    if way in ("default", "auto"):
        return {"default": default, "auto": auto}[way](Schedule.of(program)).plan
    update = next(s for s in program.statements if s.update)
    target, steps = update.target.array, WAYS[way] or []
    own = any(a.name == target for a in program.temporaries)
    if own:
        steps = [s for s in steps if s[0] != "accumulate"]
    names = {"the update": update.name, "the target": target, "the register": target if own else f"{target}_acc"}
    made = follow(program, [tuple(names.get(part, part) if isinstance(part, str) else part for part in step) for step in steps])
    assert not judge(made).refusals, f"{way}: {judge(made).refusals}"
    return made


def inputs(op: str, dtype: str, columns: int) -> np.ndarray:
    """Rows of numbers whose sums are exact in any order; NaN, infinities, zeros of both signs and ties among them."""
    r, kind = np.random.default_rng(3), DTYPES[dtype]
    if kind.kind == "bool":
        x = r.random((9, columns)) < 0.5
        x[0], x[1], x[2] = True, False, np.arange(columns) != columns // 2
        return x
    few = {"prod": [-1.0, 1.0], "squares": [-1.0, 0.0, 1.0]}.get(op, [-1.0, 0.0, 1.0, 2.0, -2.0])
    x = r.choice([abs(v) for v in few] if kind.unsigned else few, (9, columns))
    if kind.kind == "float":
        x[1, 5], x[2, 7] = np.nan, np.inf
        x[3, 9], x[3, 11], x[3, 12] = -np.inf, np.inf, -np.inf
        x[4], x[4, 6] = -0.0, 0.0
        x[5, -1], x[5, 2] = np.nan, np.inf
        x[6, 4], x[6, -4] = -np.nan, np.nan  # the sign of a NaN means nothing
        x[7] = np.nan
    elif op in BITWISE:
        info = np.iinfo(kind.numpy)
        x = r.integers(info.min, info.max, (9, columns), kind.numpy, endpoint=True)
        one = kind.numpy.type(1) << r.integers(0, 8 * kind.bytes - 1, x.shape).astype(kind.numpy)
        x[2:] = {"bitand": ~one, "bitor": one, "bitxor": x}[op][2:]
        x[2:5, 4:] = kind.numpy.type(0 if op != "bitand" else info.max if kind.unsigned else -1)  # few bits are turned
    elif op not in ("sum", "prod", "squares", "mean"):
        info = np.iinfo(kind.numpy)
        x = x.astype(kind.numpy)
        x[1, 5], x[2, 5], x[3], x[4] = info.max, info.min, info.min, info.max
    return f32_to_bf16(x.astype(np.float32)) if dtype == "bf16" else x.astype(kind.numpy)


def wide(x: np.ndarray, dtype: str) -> np.ndarray:
    """Floats as float64."""
    if DTYPES[dtype].kind != "float":
        return x
    return (bf16_to_f32(x).reshape(x.shape) if dtype == "bf16" else x).astype(np.float64)


def expected(op: str, dtype: str, x: np.ndarray) -> np.ndarray:
    """What NumPy makes of the rows."""
    v = wide(x, dtype)
    functions = {"sum": np.sum, "count": np.sum, "prod": np.prod, "mean": np.mean, "max": np.max, "min": np.min, "and": np.all,
                 "or": np.any, "xor": np.logical_xor.reduce, "bitand": np.bitwise_and.reduce, "bitor": np.bitwise_or.reduce,
                 "bitxor": np.bitwise_xor.reduce, "argmax": np.argmax, "argmin": np.argmin}  # fmt: skip
    with np.errstate(all="ignore"):
        return np.sum(v * v, axis=1) if op == "squares" else functions[op](v, axis=1)
