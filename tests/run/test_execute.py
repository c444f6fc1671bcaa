"""Running a schedule from start to end: on the CPU device, and on a stand-in for the GPU."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from explorer import workloads
from explorer.errors import DeviceError, IllegalSchedule, KernelFault, ResourceError
from explorer.gpu.spec import default_gpu
from explorer.kernel.emit import emit
from explorer.run import execute as module
from explorer.run.cpu.device import CpuDevice
from explorer.run.cuda import device as cuda
from explorer.run.execute import execute
from explorer.run.inputs.seeded import Seeded
from explorer.run.timing import Samples
from explorer.run.verify import ragged
from explorer.run.verify.ragged import ragged_sizes_of
from explorer.schedule import Schedule


def matmul(**sizes: int) -> Schedule:
    definition = workloads.get("matmul").definition
    s = definition.schedule(**{"M": 16, "N": 16, "K": 12, **sizes})
    return s.split("i", 8).bind("i", "block.x").bind("i.i", "thread.y").bind("j", "thread.x")


def ticks(run) -> dict[str, bool]:
    return {t.name: t.earned for t in run.evidence.ticks}


def mutated(monkeypatch, target, *, when=lambda plan: True) -> None:
    """Emit a kernel that subtracts where it should add."""
    def wrong(plan, **options):
        built = emit(plan, **options)
        return replace(built, text=built.text.replace(" += a[", " -= a[")) if when(plan) else built

    monkeypatch.setattr(target, "emit", wrong)


def test_right_schedule_earns_what_was_done() -> None:
    run = execute(matmul(), device="cpu", reference=workloads.get("matmul").reference)
    assert run.correct is True
    assert run.device == "cpu"
    assert [c.reference for c in run.checks] == ["the loops as written in float64 C (all cells)", "the NumPy reference"]
    assert ticks(run) == {"proved": True, "emulated": True, "compiled": False, "GPU-checked": False, "timed": True}
    assert run.evidence.emulated == ("these sizes", "K=29, M=37, N=31", "K=5, M=7, N=11") or len(run.evidence.emulated) == 3
    assert len(run.ragged) == 2
    assert all(all(checks) for _, checks in run.ragged)
    assert run.share is None
    assert run.flops == 2 * 16 * 16 * 12
    assert run.bytes == 4 * (2 * 16 * 12 + 16 * 16)
    assert run.time_us is not None
    assert run.time_us > 0
    np.testing.assert_allclose(run.outputs["c"].shape, (16, 16))


def test_nothing_is_claimed_that_was_not_asked() -> None:
    run = execute(matmul(), device="cpu", time=False, ragged=False)
    assert ticks(run)["timed"] is False
    assert run.timing is None
    assert run.evidence.emulated == ("these sizes",)
    unchecked = execute(matmul(), device="cpu", time=False, ragged=False, checked=False)
    assert unchecked.correct
    assert ticks(unchecked)["emulated"] is False


def test_wrong_kernel_is_found_and_refutes_the_tick(monkeypatch) -> None:
    mutated(monkeypatch, module)
    run = execute(matmul(), device="cpu", time=False, ragged=False)
    assert run.correct is False
    assert ticks(run)["emulated"] is False
    assert re.search(r"✗ emulated +failed", str(run))
    assert run.checks[0].index == (0, 0)


def test_kernel_wrong_at_ragged_sizes_alone_is_found(monkeypatch) -> None:
    mutated(monkeypatch, ragged)
    run = execute(matmul(), device="cpu", time=False)
    assert all(run.checks)
    assert run.correct is False
    assert ticks(run)["emulated"] is False
    assert "at K=" in str(run) or "at M=" in str(run)


def test_fault_at_ragged_sizes_is_reported_not_raised(monkeypatch) -> None:
    class Faulty(CpuDevice):
        def run_seeds(self, built, arrays, **options):
            raise KernelFault("a read left its array")

    monkeypatch.setattr(ragged, "CpuDevice", Faulty)
    run = execute(matmul(), device="cpu", time=False)
    assert run.correct is False
    assert len(run.faults) == 2
    assert "a read left its array" in str(run)


def test_given_arrays_are_used_and_not_modified() -> None:
    s = matmul()
    a, b = np.ones((16, 12)), np.full((12, 16), 2.0, np.float32)
    run = execute(s, {"a": a, "b": b}, device="cpu", time=False, ragged=False)
    np.testing.assert_array_equal(run.outputs["c"], np.full((16, 16), 24.0))
    assert (a == 1).all()
    with pytest.raises(DeviceError, match="b is missing"):
        execute(s, {"a": a}, device="cpu")


def test_large_sizes_are_not_checked_and_say_so() -> None:
    run = execute(matmul(M=2048, N=32, K=512), device="cpu", time=False, ragged=False)
    assert run.correct is True
    assert not ticks(run)["emulated"]
    limits = r"accesses were not checked at these sizes: 2 × \S+ operations, 3e\+07 at most; checked=True .*"
    assert re.fullmatch(limits, run.notes[0])
    with pytest.raises(DeviceError, match="too many for the CPU"):
        execute(matmul(M=1 << 20, N=64, K=1 << 20), device="cpu")


def test_steps_that_do_not_apply_elsewhere_are_a_note() -> None:
    def again(sizes):
        raise IllegalSchedule("this order is not legal")

    run = execute(matmul(), device="cpu", time=False, again=again)
    assert run.correct is True
    assert run.ragged == ()
    assert run.evidence.emulated == ("these sizes",)
    assert [note.split(": ")[1] for note in run.notes if "do not apply" in note] == ["this order is not legal"] * 2


def test_where_nothing_is_emulated_a_note_says_how_to_give_sizes() -> None:
    def again(sizes):
        raise IllegalSchedule("this order is not legal")

    run = execute(matmul(), device="cpu", time=False, again=again, checked=False)
    assert not ticks(run)["emulated"]
    (why, how) = run.notes
    assert why.startswith("not run at small sizes: the steps do not apply at M=37, K=29, N=31; M=7, K=5, N=11; ")
    assert why.endswith("; nor at M=40, K=24, N=56: this order is not legal")
    assert how == "to run at others, of 2e+07 operations at most: ragged_sizes=[{'M': …, 'K': …, 'N': …}]"


def test_limits_are_named_in_numbers() -> None:
    run = execute(matmul(), device="cpu", time=False, ragged_sizes=[{"M": 5120, "N": 100, "K": 512}])
    (note,) = run.notes
    assert note == "not run at M=5120, N=100, K=512: too large to check every access: 2 × 1.6e+09 operations, 4e+07 at most"


def test_open_obligation_and_big_block_are_refused() -> None:
    definition = workloads.get("sum_rows").definition
    s = definition.schedule(M=4, N=64)
    loop = next(name for name, node in s.plan.loops.items() if node.extent == 64)
    with pytest.raises(IllegalSchedule):
        execute(s.bind(loop, "thread.x"), device="cpu")
    small = replace(default_gpu(), max_threads_per_block=64)
    with pytest.raises(ResourceError, match="too big"):
        execute(matmul(), device="cpu", gpu=small)


def test_no_gpu_is_a_sentence(monkeypatch) -> None:
    monkeypatch.setattr(cuda, "available", lambda: "this machine has no NVIDIA driver")
    with pytest.raises(DeviceError, match="no GPU") as caught:
        execute(matmul(), device="cuda")
    assert "driver" in caught.value.why
    assert execute(matmul(), time=False, ragged=False).device == "cpu"
    with pytest.raises(DeviceError, match="no device 'tpu'"):
        execute(matmul(), device="tpu")


class StandIn:
    """A CUDA device that runs on the CPU device."""

    def __init__(self) -> None:
        self.runs = 0

    def installed(self):
        return SimpleNamespace(gpu=default_gpu(), name="NVIDIA H200")

    def build(self, built):
        inner = CpuDevice(checked=False).build(built)
        return SimpleNamespace(module=built, inner=inner, cubin=SimpleNamespace(arch="sm_90"))

    def run(self, built, arrays):
        self.runs += 1
        self.given = dict(arrays)
        made = {b.name: arrays[b.name].host(b) if isinstance(arrays.get(b.name), Seeded) else arrays.get(b.name)
                for b in built.module.buffers if b.kind in ("in", "inout")}
        return CpuDevice(checked=False).run(built.inner, made)

    def time(self, built, arrays, *, repeats, l2):
        return Samples([10.0] * repeats, l2=l2, overhead_us=2.5)


def test_gpu_path(monkeypatch) -> None:
    stand_in = StandIn()
    monkeypatch.setattr(cuda, "available", lambda: None)
    monkeypatch.setattr(cuda, "device", lambda: stand_in)
    run = execute(matmul(), seeds=3)
    assert stand_in.runs == 3 + 2, "three seeds, and two kinds of exact inputs"
    assert run.device == "H200"
    assert run.correct is True
    assert ticks(run) == {"proved": True, "emulated": True, "compiled": True, "GPU-checked": True, "timed": True}
    assert set(run.timings) == {"cold", "warm"}
    assert run.share == pytest.approx(run.roofline.floor_us / 7.5)
    mutated(monkeypatch, module)
    wrong = execute(matmul(), ragged=False)
    assert wrong.correct is False
    assert not ticks(wrong)["GPU-checked"]


def test_ragged_sizes_have_no_common_factors_and_keep_windows() -> None:
    first, second = ragged_sizes_of(workloads.get("matmul").definition.at(M=1024, N=1024, K=3))
    assert first["K"] == 3
    assert len({first["M"], first["N"], second["M"], second["N"]}) == 4
