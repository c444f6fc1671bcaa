"""Chains of steps whose text the tests run, compile and compare with goldens."""

from __future__ import annotations

from tests.kernel.plan_run import Step

Steps = list[Step]


def gemm(tile: tuple[int, int, int] = (8, 8, 4), thread: tuple[int, int] = (2, 2), width: int = 1, pad: int = 0) -> Steps:
    """A block tile staged in shared memory, a register tile in every thread."""
    return [
        ("tile", ("i", "j"), tile[:2]), ("tile", ("i.i", "j.i"), thread),
        ("distribute", "j.i.i", "S0"), ("distribute", "i.i.i", "j.i.i"),
        ("distribute", "j.i.i.2", "k"), ("distribute", "i.i.i.2", "j.i.i.2"),
        ("split", "k", tile[2]), ("reorder", ("k", "k.i", "i.i.i.2", "j.i.i.2")),
        ("bind", "i", "block.y"), ("bind", "j", "block.x"), ("bind", "i.i", "thread.y"), ("bind", "j.i", "thread.x"),
        ("contract", "total"),
        ("stage", "a", "k", {"vector": width, "pad": pad}), ("stage", "b", "k", {"vector": width, "pad": pad}),
    ]


def rows(reductions: dict[str, str], others: tuple[str, ...] = (), threads: int = 32, how: str = "shuffle") -> Steps:
    """A block for each row, its threads along it; every reduction (array to its loop) in registers and then across threads."""
    steps: Steps = [("bind", "i", "block.x")]
    for loop in (*reductions.values(), *others):
        steps += [("split", loop, threads), ("bind", f"{loop}.i", "thread.x")]
    steps += [("collect", array, how) for array in reductions]
    return [*steps, *(("contract", array) for array in reductions)]


def warps(array: str, loop: str = "k", per_block: int = 4) -> Steps:
    """A warp for each row."""
    return [("split", "i", per_block), ("bind", "i", "block.x"), ("bind", "i.i", "warp"),
            ("split", loop, 32), ("bind", f"{loop}.i", "lane"), ("collect", array, "shuffle"), ("contract", array)]


def grid(threads: tuple[int, int] = (4, 4)) -> Steps:
    """One thread for each element, in blocks."""
    return [("tile", ("i", "j"), threads), ("bind", "i", "block.y"), ("bind", "j", "block.x"),
            ("bind", "i.i", "thread.y"), ("bind", "j.i", "thread.x")]


def elements(loop: str, lanes: int, threads: int = 8) -> Steps:
    """Vectors of neighbouring elements in every thread."""
    return [("split", loop, lanes), ("vectorize", f"{loop}.i"), ("split", loop, threads, {"inner": "t"}),
            ("bind", loop, "block.x"), ("bind", "t", "thread.x")]
