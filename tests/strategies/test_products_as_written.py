"""A product of matrices in the words that people write it in: `auto` finds tiles, stages and tensor instructions for each."""

from __future__ import annotations

import pytest

from explorer.schedule import Schedule
from explorer.strategies.auto import auto
from explorer.strategies.contraction.outputs import summed_apart
from tests.frontend.support import body

START = "for i in range(M):\n    for j in range(N):\n        z[i, j] = 0.0\n"
UPDATE = "z[i, j] += x[i, k] * y[k, j]\n"
CAST = "total += ex.cast(x[i, k], ex.f32) * ex.cast(y[k, j], ex.f32)\n"
INNER = START + "    for k in range(K):\n        for j in range(N):\n            " + UPDATE
AS_WRITTEN = {
    "i, j, k": START + "        for k in range(K):\n            " + UPDATE,
    "two nests": START + "for i in range(M):\n    for j in range(N):\n        for k in range(K):\n            " + UPDATE,
    "i, k, j": INNER,
    "k, i, j": START + "for k in range(K):\n    for i in range(M):\n        for j in range(N):\n            " + UPDATE,
    "j, k, i": START + "for j in range(N):\n    for k in range(K):\n        for i in range(M):\n            " + UPDATE,
    "added to what is there": "for i in range(M):\n    for j in range(N):\n        for k in range(K):\n            " + UPDATE,
    "from a bias": START.replace("0.0", "b[j]") + "        for k in range(K):\n            " + UPDATE,
    "an array of sums": "t = ex.local(ex.f32, (M, N))\n" + INNER.replace("z", "t")
                        + "for i in range(M):\n    for j in range(N):\n        z[i, j] = t[i, j] * 2.0\n",
    "with casts": "for i in range(M):\n    for j in range(N):\n        total = ex.local(ex.f32)\n        total = 0.0\n"
                  "        for k in range(K):\n            " + CAST + "        z[i, j] = total\n",
}
SIGNATURE = "x: ex.{0}[M, K], y: ex.{0}[K, N], b: ex.{0}[N], z: ex.{0}[M, N]"


def written(name: str, dtype: str, m: int, n: int, k: int) -> Schedule:
    """The schedule of a program as it is written."""
    text, signature = AS_WRITTEN[name], SIGNATURE.format(dtype)
    if "b[j]" not in text:
        signature = signature.replace(f"b: ex.{dtype}[N], ", "")
    return body(text, signature).schedule(M=m, N=n, K=k)


@pytest.mark.parametrize("name", AS_WRITTEN)
def test_tensor_instructions_for_halves(name: str) -> None:
    s = auto(written(name, "f16", 40, 72, 88), "H200")
    assert any(leaf.mechanism.startswith(("mma", "m16", "wgmma")) for leaf, _, _ in s.plan.leaves), s
    assert len(s.plan.kernels) == 1
    assert s.run(device="cpu", time=False).correct


@pytest.mark.parametrize("name", ["i, k, j", "added to what is there", "from a bias"])
def test_tiles_in_shared_memory_for_floats(name: str) -> None:
    s = auto(written(name, "f32", 33, 41, 50), "H200")
    assert {b.space for b in s.plan.buffers} == {"register", "shared"}
    assert s.run(device="cpu", time=False).correct


def test_what_is_no_such_product_stays_as_it_is() -> None:
    """Two sums into one output, and a loop over the depth around something else."""
    two = body(START + "        for k in range(K):\n            " + UPDATE + "        for k in range(K):\n            " + UPDATE,
               SIGNATURE.format("f16").replace("b: ex.f16[N], ", "")).schedule(M=16, N=16, K=16)
    assert summed_apart(two, two.plan.kernels[0].id) is two
    other = body("for k in range(K):\n    b[k] = 0.0\n    for i in range(M):\n        for j in range(N):\n            " + UPDATE,
                 SIGNATURE.format("f16").replace("b: ex.f16[N]", "b: ex.f16[K]")).schedule(M=16, N=16, K=16)
    assert summed_apart(other, other.plan.kernels[0].id) is other
