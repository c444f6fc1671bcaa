"""A witness whose relation isl once followed in circles, until the stack ended: it must not take the process down.

`pipeline` beside a producer made the relation.  It is refused now, so the test takes that step without its precondition.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = '''
from dataclasses import replace
from explorer.transforms.contract import Contract
from explorer.transforms.pipeline import Pipeline
from tests.properties.programs import define

TEXT = """
@ex.program
def f(a: ex.f16[M, K], b: ex.f16[N, K], c: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            acc = ex.local(ex.f32)
            acc = 0
            for k in range(K):
                acc += a[i, k] * b[j, k]
            c[i, j] = acc
"""
s = define(TEXT, "circular.py").schedule(M=100, K=192, N=16).tile(("i", "j"), (64, 8))
for loop, after in (("j.i", "S1"), ("j.i", "S0"), ("i.i", "S1"), ("i.i", "S0")):
    s = s.distribute(loop, after)
s = s.reorder(("k", "i.i.3", "j.i.3")).split("k", 64).reorder(("k", "i.i.3", "j.i.3", "k.i")).contract("acc")
s = s.stage("a", "k", engine="bulk", swizzle=128).stage("b", "k", engine="bulk", swizzle=128).tensorize("S1")
s = s.specialise("k", 3)
s = replace(s, plan=Pipeline("k", 2).rewrite(s.plan)).split("i.i", 2).unroll("k").cut("i.i.2", -1)
verdict, _ = s.try_step(Contract("acc", "shared", fold=True))
print("refused" if not verdict else "accepted")
'''


def test_the_process_lives() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{done.returncode}\n{done.stderr[-2000:]}"
    assert "refused" in done.stdout
