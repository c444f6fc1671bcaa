"""Sum of each column: many blocks share a column, and combine their partial sums by atomic additions.

Run it with ``python examples/column_sum.py``.
"""

from __future__ import annotations

import explorer as ex

M, N = ex.sizes("M N")


@ex.program
def column_sum(x: ex.f32[M, N], y: ex.f32[N]):
    for j in range(N):
        y[j] = 0.0
    for i in range(M):
        for j in range(N):
            y[j] += x[i, j]


def schedule(M: int = 200, N: int = 100, *, rows: int = 64, columns: int = 32) -> ex.Schedule:
    """Neighbouring threads take neighbouring columns; a block takes `rows` rows of them.

    Parameters
    ----------
    M, N : int
        Sizes; any.
    rows, columns : int
        Elements that one block sums: `columns` is its number of threads.
    """
    s = column_sum.schedule(M=M, N=N)
    s = s.launch("column_sum", after="j")  # the zeros are written before any block adds
    s = s.split("j", columns).bind("j", "block.x").bind("j.i", "thread.x")
    s = s.split("i", rows).split("j_2", columns).reorder(["i", "j_2", "j_2.i", "i.i"])
    s = s.bind("i", "block.y").bind("j_2", "block.x").bind("j_2.i", "thread.x")
    assert s.obligations, "blocks that share a column would race: nothing is emitted before that is settled"
    return s.collect("y", "atomic")


if __name__ == "__main__":
    s = schedule()
    print(s)
    run = s.run(device="cpu")
    print(run)
    assert run.correct
    assert run.evidence.emulated, "every access was checked, at these sizes and at ragged ones"
    assert "atomicAdd" in s.cuda
    assert not s.obligations
