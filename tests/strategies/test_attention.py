"""Attention in one kernel: recognised, right at small and ragged sizes, on tensor cores without spills; and what is none."""

from __future__ import annotations

import subprocess
import sys
from math import prod
from pathlib import Path

import pytest

import explorer as ex
from benchmarks.product_programs import attention as plain
from benchmarks.product_programs import causal_attention, product_nn
from benchmarks.sass import disassembler, whole
from explorer.gpu.spec import default_gpu, gpu
from explorer.kernel.emit import emit
from explorer.run.nvrtc.compiler import compile_module
from explorer.strategies.attention import attention, tilings
from explorer.strategies.attention.form import ready_form
from explorer.strategies.attention.model import group_tilings
from explorer.strategies.attention.moves import Tiling
from explorer.strategies.attention_choices import attention_choices
from explorer.strategies.auto import auto, by_rules
from explorer.strategies.contraction.outputs import factors_outside
from explorer.strategies.guard import guarded
from explorer.strategies.price import price, through_memory_us

Q, K, D, E = ex.sizes("Q K D E")


@ex.program
def biased(a: ex.bf16[Q, D], b: ex.bf16[D, K], c: ex.bf16[K, E], bias: ex.f32[Q, K], y: ex.f32[Q, E]):
    """Keys stored across, other names and a bias on the scores."""
    for r in range(Q):
        w = ex.local(ex.bf16, K)
        s = ex.local(ex.f32, K)
        top = ex.local(ex.f32)
        norm = ex.local(ex.f32)
        for n in range(K):
            acc = ex.local(ex.f32)
            acc = 0.0
            for m in range(D):
                acc += a[r, m] * b[m, n]
            s[n] = acc * 0.25 + bias[r, n]
        top = -ex.inf
        for n in range(K):
            top = max(top, s[n])
        norm = 0.0
        for n in range(K):
            w[n] = ex.exp(s[n] - top)
            norm += w[n]
        for o in range(E):
            res = ex.local(ex.f32)
            res = 0.0
            for n in range(K):
                res += w[n] * c[n, o]
            y[r, o] = res / norm


def products(s: ex.Schedule) -> int:
    """Instructions of one tile of keys, by the schedule: all loops in that over tiles are unrolled."""
    found = [above for leaf, above, _ in s.plan.leaves if leaf.mechanism.startswith("m16n8k16")]
    return sum(prod(x.extent for x in above if not x.is_place and x.role != "tensor" and x.id != "j") for above in found)


def multiplied(cubin: bytes, file: Path) -> int:
    """Tensor instructions of the machine code."""
    file.write_bytes(whole(cubin))
    dump = subprocess.run([disassembler(), "-c", file], stdout=subprocess.PIPE, text=True, check=True).stdout
    return dump.count("HMMA.16816.F32")


@pytest.mark.parametrize(("program", "length", "width", "tiling"), [
    (plain, 64, 16, Tiling(32, 2, 16, 2)),
    (plain, 40, 24, Tiling(32, 1, 16, 3)), (causal_attention, 64, 16, Tiling(32, 2, 32, 2)),
    (causal_attention, 45, 16, Tiling(32, 2, 16, 2)),
])  # fmt: skip
def test_it_is_right_at_small_sizes(program, length: int, width: int, tiling: Tiling) -> None:  # type: ignore[no-untyped-def]
    s = attention(program.schedule(B=2, H=1, L=length, D=width), tiling=tiling)
    assert s.judgement.emittable
    assert len(s.plan.kernels) == 1
    assert s.run(device="cpu", time=False).correct


def test_other_orders_and_work_between() -> None:
    s = attention(biased.schedule(Q=32, K=48, D=16, E=8), tiling=Tiling(16, 1, 16, 2))
    assert "m16n8k16_bf16_bf16_f32" in {leaf.mechanism for leaf, _, _ in s.plan.leaves}
    assert s.run(device="cpu", time=False).correct


@pytest.mark.parametrize("program", [plain, causal_attention])
@pytest.mark.parametrize("width", [64, 128])
def test_what_is_chosen_compiles_without_spills(program, width: int, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    s = attention(program.schedule(B=1, H=1, L=512, D=width), gpu=ex.gpu("A100"))
    assert s.judgement.emittable
    made = compile_module(emit(s.plan, arch="sm_80"), "sm_80")
    (kernel,) = made.kernels.values()
    assert not kernel.spill_store_bytes
    assert multiplied(made.cubin, tmp_path / "sm_80") == products(s)


def test_whole_tiles_keep_parts_of_rows_in_registers() -> None:
    s = attention(plain.schedule(B=1, H=1, L=128, D=16), tiling=Tiling(32, 2, 32, 2))
    assert "__shfl_sync" in s.cuda
    assert {b.name for b in s.plan.buffers if b.space == "shared"} == {"q_s", "k_s", "v_s"}


def test_auto_takes_it_where_it_is_cheaper() -> None:
    s = auto(causal_attention.schedule(B=2, H=16, L=1024, D=64))
    assert len(s.plan.kernels) == 1
    assert any(step.name == "running" for step in s.steps)


def test_where_scores_cannot_stay_in_memory_nothing_else_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    written = plain.schedule(B=4, H=16, L=512, D=64)
    least, whole = through_memory_us(written.source, default_gpu()), attention(factors_outside(written))
    assert price(guarded(written, default_gpu(), True, None, by_rules).plan, default_gpu()).total_us > least
    assert price(whole.plan, default_gpu()).total_us < least
    monkeypatch.setattr(sys.modules[by_rules.__module__], "guarded", lambda *_: pytest.fail("another schedule was made"))
    assert auto(written).plan == whole.plan
    start = factors_outside(written)
    choices, ready = attention_choices(written, start, default_gpu(), True), ready_form(start, start.plan.kernels[0].id)
    assert ready is not None
    assert [c.label for c in choices] == [str(t) for t in group_tilings(ready[1], default_gpu())]


def test_what_is_no_attention_stays() -> None:
    rows = ex.workloads.get("attention_softmax")
    for s in (product_nn.schedule(M=32, N=32, K=32), rows.definition.schedule(**rows.tiny)):
        assert attention(s) is s


def test_tilings_fit() -> None:
    found = ready_form(plain.schedule(B=1, H=1, L=4096, D=128), "attention")
    assert found is not None
    gpu = default_gpu()
    for t in tilings(found[1], gpu):
        assert 2 * (t.rows * 128 + t.stages * t.keys * 256) <= gpu.shared_bytes_per_block_optin
    assert next(tilings(found[1], gpu)).warps == 4


@pytest.mark.parametrize("program", [plain, causal_attention], ids=lambda p: p.name)
def test_a_turing_gpu_multiplies_by_shorter_instructions(program) -> None:  # type: ignore[no-untyped-def]
    s = attention(program.schedule(B=1, H=2, L=96, D=32), gpu=gpu("T4"))
    assert "mma_m16n8k8_f16_f16_f32" in s.cuda
    assert "m16n8k16" not in s.cuda
    assert len(s.plan.kernels) == 1
    assert "no spills" in str(s.compile("T4"))
    assert s.run(device="cpu", time=False).correct
