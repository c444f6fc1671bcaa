"""Loop nests for tests of the classic transformations, beside those of `programs`: tiny sizes, every shape."""

from __future__ import annotations

from explorer.errors import ExplorerError
from explorer.ir.dtype import DTYPES
from explorer.ir.expr import var
from explorer.ir.finding import Verdict
from explorer.ir.plan import Plan, initial
from explorer.ir.program import Program
from explorer.ir.scalar import Cast, Read
from explorer.ir.tree import Loop
from explorer.transforms.base import Transform
from tests.transforms.programs import (
    array,
    blur,
    call,
    chain,
    column_sum,
    copy,
    leaf,
    lit,
    loops,
    matmul,
    program,
    read,
    softmax,
    statement,
    stencil1d,
    triangle_sum,
)

F32 = DTYPES["f32"]


def copy_2d(m: int = 6, n: int = 16, dtype: str = "f32") -> Program:
    """``y[i, j] = x[i, j]``."""
    i, j = var("i"), var("j")
    s0 = statement("S0", {"i": m, "j": n}, read("y", i, j), Read(0), (read("x", i, j),))
    arrays = (array("x", m, n, role="in", dtype=dtype), array("y", m, n, role="out", dtype=dtype))
    return program("copy_2d", arrays, (s0,), loops({"i": m, "j": n}, leaf(s0)))


def widen(n: int = 16) -> Program:
    """``y[i] = f32(x[i])``, x of 16 bits."""
    s0 = statement("S0", {"i": n}, read("y", var("i")), Cast(F32, Read(0)), (read("x", var("i")),))
    return program("widen", (array("x", n, role="in", dtype="f16"), array("y", n, role="out")), (s0,), loops({"i": n}, leaf(s0)))


def seidel(steps: int = 4, n: int = 9) -> Program:
    """An in-place stencil over time: ``a[i + 1] = (a[i] + a[i + 1] + a[i + 2]) / 3``."""
    i = var("i")
    value = call("div", call("add", call("add", Read(0), Read(1)), Read(2)), lit(3.0))
    s0 = statement("S0", {"t": steps, "i": n}, read("a", i + 1), value, (read("a", i), read("a", i + 1), read("a", i + 2)))
    return program("seidel", (array("a", n + 2, role="inout"),), (s0,), loops({"t": steps, "i": n}, leaf(s0)))


def triangle(n: int = 7) -> Program:
    """``y[i, j] = x[i, j]`` for ``j <= i``."""
    i, j = var("i"), var("j")
    s0 = statement("S0", {"i": n, "j": n}, read("y", i, j), Read(0), (read("x", i, j),), where=(i - j,))
    arrays = (array("x", n, n, role="in"), array("y", n, n, role="inout"))
    return program("triangle", arrays, (s0,), loops({"i": n, "j": n}, leaf(s0)))


def cube(n: int = 4) -> Program:
    """A perfect nest of three loops: ``y[i, j, k] = x[k, j, i]``."""
    i, j, k = var("i"), var("j"), var("k")
    s0 = statement("S0", {"i": n, "j": n + 1, "k": n + 2}, read("y", i, j, k), Read(0), (read("x", k, j, i),))
    arrays = (array("x", n + 2, n + 1, n, role="in"), array("y", n, n + 1, n + 2, role="out"))
    return program("cube", arrays, (s0,), loops({"i": n, "j": n + 1, "k": n + 2}, leaf(s0)))


def siblings(first: int = 8, second: int = 8, start: int = 0) -> Program:
    """``for i: t[i] = x[i]`` and ``for j from start: y[j] = t[j]``."""
    s0 = statement("S0", {"i": first}, read("t", var("i")), Read(0), (read("x", var("i")),))
    s1 = statement("S1", {"j": start + second}, read("y", var("j")), Read(0), (read("t", var("j")),), where=(var("j") - start,))
    size = max(first, start + second)
    arrays = (array("x", size, role="in"), array("y", size, role="out"), array("t", size))
    return program("siblings", arrays, (s0, s1), loops({"i": first}, leaf(s0)), Loop("j", second, (leaf(s1),), start=start))


PROGRAMS = {
    "blur": blur, "chain": chain, "column_sum": column_sum, "copy": copy, "copy_2d": lambda: copy_2d(4, 8),
    "cube": lambda: cube(3),
    "matmul": lambda: matmul(3, 4, 5), "seidel": lambda: seidel(3, 6), "siblings": siblings, "softmax": lambda: softmax(2, 6),
    "stencil1d": stencil1d, "triangle": triangle, "triangle_sum": triangle_sum,
}
"""Makers of all programs, at sizes that can be enumerated."""


def plan(made: Program, *steps: Transform) -> Plan:
    """The plan after steps that must all apply."""
    current = initial(made)
    for step in steps:
        current = apply(current, step)
    return current


def apply(current: Plan, step: Transform) -> Plan:
    """The plan after one step that must apply."""
    verdict = step.check(current)
    assert verdict, f"{step}: {verdict}"
    return step.rewrite(current)


def refusal(current: Plan, step: Transform) -> Verdict:
    """Why a step does not apply; it must not."""
    verdict = step.check(current)
    assert not verdict, f"{step} applies"
    assert verdict.what[-1] != "."
    assert ExplorerError(verdict.what, why=verdict.why, hint=verdict.hint).message()
    return verdict
