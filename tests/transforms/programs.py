"""Small programs written out by hand, for tests of transformations: no front end, every size concrete."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.ir.dtype import DTYPES
from explorer.ir.expr import Expr, const, var
from explorer.ir.plan import Plan, initial
from explorer.ir.program import Access, Array, Constraint, Program, Statement
from explorer.ir.scalar import Call, Literal, Read, Scalar
from explorer.ir.tree import Leaf, Loop, Node

F32 = DTYPES["f32"]


def array(name: str, *shape: int, role: str = "temporary", dtype: str = "f32") -> Array:
    return Array(name, DTYPES[dtype], shape, role, len(shape))


def lit(value: float) -> Literal:
    return Literal(value, F32)


def call(op: str, *args: Scalar) -> Call:
    return Call(op, args)


def read(name: str, *index: Expr | int) -> Access:
    return Access(name, tuple(const(e) if isinstance(e, int) else e for e in index), "read")


def statement(name: str, loops: Mapping[str, int], target: Access, value: Scalar, reads: tuple[Access, ...] = (),
              update: str | None = None, where: tuple[Expr, ...] = (), text: str = "") -> Statement:
    """A statement under rectangular loops; `where` are further conditions ``e >= 0``."""
    bounds = [c for d, n in loops.items() for c in (Constraint(var(d)), Constraint(const(n - 1) - var(d)))]
    kind = "update" if update else "write"
    return Statement(name, tuple(loops), (*bounds, *map(Constraint, where)), Access(target.array, target.index, kind), value,
                     reads, update,
                     line=int(name[1:]) + 1, text=text)


def leaf(s: Statement) -> Leaf:
    return Leaf(s.name, s.name, tuple((d, var(d)) for d in s.dims))


def loops(extents: Mapping[str, int], *body: Node) -> Node:
    """A perfect nest around `body`."""
    nodes: tuple[Node, ...] = body
    for name, extent in reversed(extents.items()):
        nodes = (Loop(name, extent, nodes),)
    return nodes[0]


def program(name: str, arrays: tuple[Array, ...], statements: tuple[Statement, ...], *body: Node) -> Program:
    return Program(name, arrays, statements, body)


def matmul(m: int = 5, n: int = 7, k: int = 6) -> Program:
    """``acc = 0; acc += A B; C = acc`` with a temporary per element."""
    i, j, kk = var("i"), var("j"), var("k")
    out = {"i": m, "j": n}
    s0 = statement("S0", out, read("acc", i, j), lit(0.0))
    s1 = statement("S1", {**out, "k": k}, read("acc", i, j), call("mul", Read(0), Read(1)), (read("A", i, kk), read("B", kk, j)),
                   "sum")
    s2 = statement("S2", out, read("C", i, j), Read(0), (read("acc", i, j),))
    arrays = (array("A", m, k, role="in"), array("B", k, n, role="in"), array("C", m, n, role="out"), array("acc", m, n))
    return program("matmul", arrays, (s0, s1, s2), loops(out, leaf(s0), loops({"k": k}, leaf(s1)), leaf(s2)))


def matmul_direct(m: int = 5, n: int = 7, k: int = 6, init: bool = True) -> Program:
    """``C = 0; C += A B`` without a temporary (`init` False: C is an inout)."""
    i, j, kk = var("i"), var("j"), var("k")
    out = {"i": m, "j": n}
    s0 = statement("S0", out, read("C", i, j), lit(0.0))
    s1 = statement("S1", {**out, "k": k}, read("C", i, j), call("mul", Read(0), Read(1)), (read("A", i, kk), read("B", kk, j)),
                   "sum")
    arrays = (array("A", m, k, role="in"), array("B", k, n, role="in"), array("C", m, n, role="out" if init else "inout"))
    inner = loops({"k": k}, leaf(s1))
    body = (leaf(s0), inner) if init else (inner,)
    return program("matmul_direct", arrays, (s0, s1) if init else (s1,), loops(out, *body))


def copy(n: int = 13) -> Program:
    s0 = statement("S0", {"i": n}, read("y", var("i")), Read(0), (read("x", var("i")),))
    return program("copy", (array("x", n, role="in"), array("y", n, role="out")), (s0,), loops({"i": n}, leaf(s0)))


def row_sum(m: int = 4, n: int = 11, op: str = "sum") -> Program:
    """One temporary per row: init, reduction, output."""
    i, k = var("i"), var("k")
    start = {"sum": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf}[op]
    s0 = statement("S0", {"i": m}, read("total", i), lit(start))
    s1 = statement("S1", {"i": m, "k": n}, read("total", i), Read(0), (read("x", i, k),), op)
    s2 = statement("S2", {"i": m}, read("y", i), Read(0), (read("total", i),))
    arrays = (array("x", m, n, role="in"), array("y", m, role="out"), array("total", m))
    return program("row_sum", arrays, (s0, s1, s2), loops({"i": m}, leaf(s0), loops({"k": n}, leaf(s1)), leaf(s2)))


def all_sum(n: int = 23, op: str = "sum") -> Program:
    """One number: ``y[0] = 0; y[0] += x[k]``."""
    start = {"sum": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf}[op]
    s0 = statement("S0", {}, read("y", 0), lit(start))
    s1 = statement("S1", {"k": n}, read("y", 0), Read(0), (read("x", var("k")),), op)
    return program("all_sum", (array("x", n, role="in"), array("y", 1, role="out")), (s0, s1), leaf(s0),
                   loops({"k": n}, leaf(s1)))


def column_sum(m: int = 6, n: int = 5) -> Program:
    """The reduced loop is outside: ``for k: for j: y[j] += x[k, j]``."""
    k, j = var("k"), var("j")
    s0 = statement("S0", {"j0": n}, read("y", var("j0")), lit(0.0))
    s1 = statement("S1", {"k": m, "j": n}, read("y", j), Read(0), (read("x", k, j),), "sum")
    return program("column_sum", (array("x", m, n, role="in"), array("y", n, role="out")), (s0, s1),
                   loops({"j0": n}, leaf(s0)), loops({"k": m, "j": n}, leaf(s1)))


def triangle_sum(n: int = 6) -> Program:
    """``for i: for k <= i: y[i] += x[i, k]``, initialised in a loop of its own."""
    i, k = var("i"), var("k")
    s0 = statement("S0", {"i0": n}, read("y", var("i0")), lit(0.0))
    s1 = statement("S1", {"i": n, "k": n}, read("y", i), Read(0), (read("x", i, k),), "sum", where=(i - k,))
    return program("triangle_sum", (array("x", n, n, role="in"), array("y", n, role="out")), (s0, s1),
                   loops({"i0": n}, leaf(s0)), loops({"i": n, "k": n}, leaf(s1)))


def softmax(m: int = 3, n: int = 10) -> Program:
    """Row softmax with the exponentials kept: peak, e, total, y."""
    i = var("i")
    row = {"i": m}
    s0 = statement("S0", row, read("peak", i), lit(-np.inf))
    s1 = statement("S1", {**row, "k": n}, read("peak", i), Read(0), (read("x", i, var("k")),), "max")
    s2 = statement("S2", row, read("total", i), lit(0.0))
    s3 = statement("S3", {**row, "k_2": n}, read("e", i, var("k_2")), call("exp", call("sub", Read(0), Read(1))),
                   (read("x", i, var("k_2")), read("peak", i)))
    s4 = statement("S4", {**row, "k_3": n}, read("total", i), Read(0), (read("e", i, var("k_3")),), "sum")
    s5 = statement("S5", {**row, "k_4": n}, read("y", i, var("k_4")), call("div", Read(0), Read(1)),
                   (read("e", i, var("k_4")), read("total", i)))
    arrays = (array("x", m, n, role="in"), array("y", m, n, role="out"), array("peak", m), array("total", m), array("e", m, n))
    return program("softmax", arrays, (s0, s1, s2, s3, s4, s5), loops(
        row, leaf(s0), loops({"k": n}, leaf(s1)), leaf(s2), loops({"k_2": n}, leaf(s3)), loops({"k_3": n}, leaf(s4)),
        loops({"k_4": n}, leaf(s5))))


def stencil1d(n: int = 14) -> Program:
    """``y[i] = x[i-1] + 2 x[i] + x[i+1]`` inside the edges."""
    i = var("i")
    s0 = statement("S0", {"i": n}, read("y", i), call("add", call("add", Read(0), call("mul", lit(2.0), Read(1))), Read(2)),
                   (read("x", i), read("x", i + 1), read("x", i + 2)))
    return program("stencil1d", (array("x", n + 2, role="in"), array("y", n, role="out")), (s0,), loops({"i": n}, leaf(s0)))


def conv1d(n: int = 11, taps: int = 3, step: int = 2) -> Program:
    """Strided convolution: ``y[i] += w[t] x[step i + t]``."""
    i, t = var("i"), var("t")
    s0 = statement("S0", {"i": n}, read("acc", i), lit(0.0))
    s1 = statement("S1", {"i": n, "t": taps}, read("acc", i), call("mul", Read(0), Read(1)),
                   (read("w", t), read("x", i * step + t)), "sum")
    s2 = statement("S2", {"i": n}, read("y", i), Read(0), (read("acc", i),))
    arrays = (array("w", taps, role="in"), array("x", step * (n - 1) + taps, role="in"), array("y", n, role="out"),
              array("acc", n))
    return program("conv1d", arrays, (s0, s1, s2), loops({"i": n}, leaf(s0), loops({"t": taps}, leaf(s1)), leaf(s2)))


def chain(m: int = 6, n: int = 8) -> Program:
    """Producer and consumer in nests of their own: ``t = 2 x``, ``y = t + 1``."""
    s0 = statement("S0", {"i": m, "j": n}, read("t", var("i"), var("j")), call("mul", lit(2.0), Read(0)),
                   (read("x", var("i"), var("j")),))
    s1 = statement("S1", {"i_2": m, "j_2": n}, read("y", var("i_2"), var("j_2")), call("add", Read(0), lit(1.0)),
                   (read("t", var("i_2"), var("j_2")),))
    return program("chain", (array("x", m, n, role="in"), array("y", m, n, role="out"), array("t", m, n)), (s0, s1),
                   loops({"i": m, "j": n}, leaf(s0)), loops({"i_2": m, "j_2": n}, leaf(s1)))


def doubled(m: int = 6, n: int = 7) -> Program:
    """``y = x + x``, element by element."""
    i, j = var("i"), var("j")
    s = statement("S0", {"i": m, "j": n}, read("y", i, j), call("add", Read(0), Read(0)), (read("x", i, j),))
    return program("doubled", (array("x", m, n, role="in"), array("y", m, n, role="out")), (s,), loops({"i": m, "j": n}, leaf(s)))


def blur(n: int = 12) -> Program:
    """Producer needed at three places: ``t = x * x``, ``y = t[i] + t[i+1] + t[i+2]``."""
    i, i2 = var("i"), var("i_2")
    s0 = statement("S0", {"i": n + 2}, read("t", i), call("mul", Read(0), Read(0)), (read("x", i),))
    s1 = statement("S1", {"i_2": n}, read("y", i2), call("add", call("add", Read(0), Read(1)), Read(2)),
                   (read("t", i2), read("t", i2 + 1), read("t", i2 + 2)))
    return program("blur", (array("x", n + 2, role="in"), array("y", n, role="out"), array("t", n + 2)), (s0, s1),
                   loops({"i": n + 2}, leaf(s0)), loops({"i_2": n}, leaf(s1)))


def inputs(p: Program, seed: int = 0) -> dict[str, np.ndarray]:
    """Random arrays for the parameters that are read."""
    rng = np.random.default_rng(seed)
    return {a.name: rng.standard_normal(a.shape).astype(np.float32) for a in p.parameters if a.role in ("in", "inout")}


def reference(p: Program, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the program computes, straight from NumPy, in float64."""
    a = {name: value.astype(np.float64) for name, value in arrays.items()}
    if p.name == "matmul":
        return {"C": a["A"] @ a["B"]}
    if p.name == "matmul_direct":
        return {"C": a["A"] @ a["B"] + a.get("C", 0.0)}
    if p.name == "copy":
        return {"y": a["x"]}
    if p.name in ("row_sum", "all_sum"):
        reduce = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}[next(s.update for s in p.statements if s.update)]
        return {"y": reduce(a["x"], axis=-1).reshape(-1)}
    if p.name == "column_sum":
        return {"y": a["x"].sum(axis=0)}
    if p.name == "triangle_sum":
        return {"y": np.tril(a["x"]).sum(axis=1)}
    if p.name == "softmax":
        e = np.exp(a["x"] - a["x"].max(axis=1, keepdims=True))
        return {"y": e / e.sum(axis=1, keepdims=True)}
    if p.name == "stencil1d":
        return {"y": a["x"][:-2] + 2 * a["x"][1:-1] + a["x"][2:]}
    if p.name == "conv1d":
        taps, n = len(a["w"]), p.array_of["y"].shape[0]
        step = (len(a["x"]) - taps) // (n - 1)
        return {"y": np.array([a["w"] @ a["x"][step * i : step * i + taps] for i in range(n)])}
    if p.name == "doubled":
        return {"y": 2 * a["x"]}
    if p.name == "chain":
        return {"y": 2 * a["x"] + 1}
    assert p.name == "blur"
    return {"y": (a["x"] ** 2)[:-2] + (a["x"] ** 2)[1:-1] + (a["x"] ** 2)[2:]}


def plan_of(p: Program) -> Plan:
    return initial(p)
