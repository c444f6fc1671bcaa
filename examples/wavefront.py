"""Gauss-Seidel relaxation in place: no loop is parallel as written, but after a skew every antidiagonal is.

Run it with ``python examples/wavefront.py``.
"""

from __future__ import annotations

import explorer as ex

T, H, W = ex.sizes("T H W")


@ex.program
def gauss_seidel(u: ex.f32[H, W]):
    for t in range(T):
        for i in range(1, H - 1):
            for j in range(1, W - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


def schedule(T: int = 2, H: int = 34, W: int = 26, *, threads: int = 32) -> ex.Schedule:
    """The host runs time steps and diagonals, one launch each; the points of a diagonal run in parallel.

    Parameters
    ----------
    T, H, W : int
        Sweeps, and the points of the plane with its edge.
    threads : int
        Threads per block.
    """
    s = gauss_seidel.schedule(T=T, H=H, W=W)
    s = s.skew("j", by="i").interchange("i", "j")  # j now counts the diagonals i + j
    s = s.bind("t", "launch").bind("j", "launch")
    return s.split("i", threads).bind("i", "block.x").bind("i.i", "thread.x")


if __name__ == "__main__":
    plain = gauss_seidel.schedule(T=2, H=34, W=26)
    for loop in ("t", "i", "j"):
        try:
            plain.bind(loop, "thread.x")
        except ex.IllegalSchedule as refusal:
            print(f"{refusal}\n")
        else:
            raise AssertionError(f"{loop} carries a dependence and must not be spread over threads")
    s = schedule()
    print(s)
    run = s.run(device="cpu")
    print(run)
    assert run.correct
    assert run.evidence.emulated
