"""Programs whose results leave through shared memory in a nest of their own: what bulk stores are for."""

from __future__ import annotations

import random

from explorer.ir.dtype import DTYPES

from .programs import Case, define


def tiles_of_results(pick: random.Random, label: str) -> Case:
    """A map or a filter, a tile of whose results threads leave in shared memory; tiles may be cut, or follow each other."""
    dtype = pick.choice(("f16", "f32", "f64", "i8"))
    size = DTYPES[dtype].bytes
    rows, columns = pick.choice((4, 8)), pick.choice((16, 32, 128)) // size
    text = f"""@ex.program
def f(x: ex.{dtype}[M, N], y: ex.{dtype}[M, N]):
    for i in range(M):
        for j in range(N):
            y[i, j] = x[i, j] + x[i, N - 1 - j]
"""
    m = rows * pick.choice((1, 2)) + pick.choice((0, 0, 1))
    n = columns * pick.choice((1, 2)) + pick.choice((0, 0, 16 // size, 1))
    s = define(text, f"{label}.py").schedule(M=m, N=n)
    s = s.tile(("i", "j"), (rows, columns)).outline("S0").distribute("j.i", after="S0").distribute("i.i", after="j.i")
    s = s.contract("y_t", "shared")
    if pick.random() < 0.7:
        s = s.bind("i", "block.y")
    s = s.bind("j", "block.x").bind("i.i", "thread.y").bind("j.i", "thread.x")
    if rows == 8 and columns * size in (32, 128) and pick.random() < 0.5:
        s = s.swizzle("y_t", columns * size)
    return Case("tiles of results", s)
