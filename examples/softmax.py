"""Softmax of each row: a row lives in the registers of one block's threads, read once and written once.

Run it with ``python examples/softmax.py``.
"""

from __future__ import annotations

import explorer as ex

M, N = ex.sizes("M N")


@ex.program
def softmax(x: ex.f32[M, N], y: ex.f32[M, N]):
    for i in range(M):
        peak = ex.local(ex.f32)
        total = ex.local(ex.f32)
        e = ex.local(ex.f32, N)
        peak = -ex.inf
        total = 0.0
        for k in range(N):
            peak = max(peak, x[i, k])
        for j in range(N):
            e[j] = ex.exp(x[i, j] - peak)
            total += e[j]
        for n in range(N):
            y[i, n] = e[n] / total


def schedule(M: int = 24, N: int = 520, *, threads: int = 64, vector: int = 4) -> ex.Schedule:
    """One block for each row; each thread reads `vector` neighbouring elements at a time.

    Parameters
    ----------
    M, N : int
        Sizes; N divisible by `vector`.
    threads : int
        Threads per block.
    vector : int
        1 (plain accesses), 2 or 4.
    """
    s = softmax.schedule(M=M, N=N).bind("i", "block.x")
    for loop in ("k", "j", "n"):
        # element = loop · threads · vector + thread · vector + lane
        thread, lane = f"{loop}.t", f"{loop}.v"
        s = s.split(loop, threads * vector, thread)
        s = s.split(thread, vector, lane) if vector > 1 else s
        s = s.interchange(loop, thread).bind(thread, "thread.x")
    # each thread first reduces its own elements, then the block's threads combine theirs
    s = s.collect("peak", "shuffle").collect("total", "shuffle")
    # one loop over the threads, in whose body the row's part is read once, into registers
    s = s.fuse("k.t", "j.t").fuse("k.t", "n.t").stage("x", "k.t", space="register", vector=vector)
    for temporary in ("peak", "total", "e"):
        s = s.contract(temporary)
    for loop in ("k", "k.v", "j", "j.v", "n") if vector > 1 else ("k", "j", "n"):
        s = s.unroll(loop)
    return s.vectorize("n.v") if vector > 1 else s


if __name__ == "__main__":
    s = schedule()
    print(s)
    run = s.run(device="cpu", ragged_sizes=[{"M": 5, "N": 132}])
    print(run)
    assert run.correct
    assert run.evidence.emulated, "every access was checked, at these sizes and at ragged ones"
    facts = s.facts
    print(facts)
    assert facts.requested_bytes <= 1.1 * facts.compulsory_bytes, "the row is read once and written once"
    assert schedule(M=7, N=61, vector=1).run(device="cpu", time=False, ragged=False).correct
