"""Matrix product: tiles of the result in registers, tiles of the inputs in shared memory, copied while computing.

Run it with ``python examples/matmul.py``: the kernel's text runs on the CPU, every access checked, and is compared with
the loops as written, computed in double precision.
"""

from __future__ import annotations

import explorer as ex

M, N, K = ex.sizes("M N K")


@ex.program
def matmul(a: ex.f32[M, K], b: ex.f32[K, N], c: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            total = ex.local(ex.f32)
            total = 0.0
            for k in range(K):
                total += a[i, k] * b[k, j]
            c[i, j] = total


def schedule(M: int = 72, N: int = 56, K: int = 44, *, block: tuple[int, int] = (32, 32), thread: tuple[int, int] = (4, 4),
             depth: int = 8, stages: int = 2, pad: int = 0) -> ex.Schedule:  # fmt: skip
    """A tiled, staged and pipelined matrix product.

    Parameters
    ----------
    M, N, K : int
        Sizes; K and N divisible by 4, because the copies move 16 bytes at a time.
    block : tuple of int
        Rows and columns of the result that one block of threads computes.
    thread : tuple of int
        Rows and columns that one thread computes, in registers; the columns divisible by 4.
    depth : int
        Elements of the inner dimension in one staged tile; divisible by 4.
    stages : int
        Tiles in flight: 1 is no pipeline, 2 is double buffering.
    pad : int
        Unused elements after each row of the staged tile of `a`; divisible by 4.
    """
    s = matmul.schedule(M=M, N=N, K=K)
    # i = block row · 32 + thread row · 4 + register row; the same for j
    s = s.tile(["i", "j"], block).tile(["i.i", "j.i"], thread)
    s = s.bind("i", "block.y").bind("j", "block.x").bind("i.i", "thread.y").bind("j.i", "thread.x")
    # three loop nests over the registers: set to zero, accumulate, write out
    s = s.distribute("j.i.i", after="S0").distribute("i.i.i", after="j.i.i")
    s = s.distribute("j.i.i.2", after="k").distribute("i.i.i.2", after="j.i.i.2")
    s = s.split("k", depth).reorder(["k", "k.i", "i.i.i.2", "j.i.i.2"])
    s = s.contract("total").stage("a", "k", vector=4, pad=pad).stage("b", "k", vector=4)
    for loop in ("i.i.i", "j.i.i", "k.i", "i.i.i.2", "j.i.i.2", "i.i.i.3"):
        s = s.unroll(loop)
    s = s.split("j.i.i.3", 4).vectorize("j.i.i.3.i") if thread[1] > 4 else s.vectorize("j.i.i.3")
    return s.pipeline("k", stages) if stages > 1 else s


if __name__ == "__main__":
    s = schedule()
    print(s)
    run = s.run(device="cpu", ragged_sizes=[{"M": 37, "N": 20, "K": 12}])
    print(run)
    assert run.correct
    assert run.evidence.emulated, "every access was checked, at these sizes and at ragged ones"
    assert "cp.async" in s.cuda, "the copies are asynchronous"
    assert schedule(stages=1).run(device="cpu", time=False, ragged=False).correct
