"""What is refused, and what the refusal says: the smallest pair of instances, both orders, the lines, what to try.

Run it with ``python examples/refusals.py``.
"""

from __future__ import annotations

from collections.abc import Callable

import explorer as ex

M, N = ex.sizes("M N")


@ex.program
def slide(a: ex.f32[M, N]):
    for i in range(1, M):
        for j in range(N - 1):
            a[i, j] = 0.5 * a[i, j] + 0.5 * a[i - 1, j + 1]


@ex.program
def row_sum(x: ex.f32[M, N], y: ex.f32[M]):
    for i in range(M):
        total = ex.local(ex.f32)
        total = 0.0
        for k in range(N):
            total += x[i, k]
        y[i] = total


def schedule(M: int = 16, N: int = 24) -> ex.Schedule:
    """The program that the refusals are about, as written.

    Parameters
    ----------
    M, N : int
        Sizes; any.
    """
    return slide.schedule(M=M, N=N)


def refused(move: Callable[[], object], kind: type[ex.ExplorerError]) -> ex.ExplorerError:
    """The error that a move raises."""
    try:
        move()
    except kind as error:
        print(f"{kind.__name__}: {error}\n")
        return error
    raise AssertionError(f"{kind.__name__} was expected")


if __name__ == "__main__":
    s, rows = schedule(), row_sum.schedule(M=8, N=64)

    # order: (i, j) -> (i + 1, j - 1) would be turned around
    error = refused(lambda: s.interchange("i", "j"), ex.IllegalSchedule)
    finding = error.finding
    assert finding.question == "order"
    assert (finding.source.point, finding.sink.point) == ((1, 1), (2, 0))
    assert "skew" in error.hint, "the hint names the move that makes it legal"
    s.skew("j", by="i").interchange("i", "j")

    # order: rows depend on rows, so they cannot be blocks of one launch
    assert refused(lambda: s.bind("i", "block.x"), ex.IllegalSchedule).finding.kind == "flow"

    # flow: one register for a sum that all threads of a block need
    spread = rows.bind("i", "block.x").bind("k", "thread.x")
    error = refused(lambda: spread.contract("total").cuda, ex.IllegalSchedule)

    # obligation: 64 threads add to one cell
    error = refused(lambda: spread.cuda, ex.IllegalSchedule)
    assert error.finding.question == "obligation"
    assert spread.collect("total", "shuffle").run(device="cpu", time=False).correct

    # a move's own precondition, and names that are not there
    refused(lambda: s.vectorize("j"), ex.TransformError)
    assert "i, j" in refused(lambda: s.split("q", 4), ex.TransformError).hint

    # more shared memory than any GPU has
    tall = rows.stage("x", "row_sum")
    assert "360,000 bytes" in refused(lambda: row_sum.schedule(M=300, N=300).stage("x", "row_sum"), ex.TransformError).what
    assert tall.kernel("H200").launches

    # a program outside of what is accepted
    def quadratic(x: ex.f32[N], y: ex.f32[N]) -> None:
        for i in range(N):
            y[i * i] = x[i]  # type: ignore[index]

    refused(lambda: ex.program(quadratic), ex.ProgramError)
