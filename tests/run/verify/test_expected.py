"""What runs are held against: computed once for a program and a seed, sampled where it is large; wrong kernels are found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.reduction_program import reduction
from explorer import workloads
from explorer.errors import DeviceError
from explorer.gpu.spec import default_gpu
from explorer.ir.dtype import DTYPES, f32_to_bf16
from explorer.ir.program import Array
from explorer.kernel.emit import emit
from explorer.kernel.module import Buffer
from explorer.kernel.reference.slices import cost
from explorer.run import execute
from explorer.run.cpu.device import CpuDevice
from explorer.run.cuda import device as cuda
from explorer.run.inputs import arguments as inputs
from explorer.run.inputs.arguments import Inputs, Recipe
from explorer.run.inputs.seeded import Seeded
from explorer.run.verify import expected, ragged
from explorer.schedule import Schedule
from explorer.strategies.auto import auto

QUICK: dict[str, Any] = {"device": "cpu", "time": False, "ragged": False, "checked": False, "seeds": 1}
TILE = (8, 16)


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    expected._kept.clear()
    yield
    expected._kept.clear()


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds that the loops were computed for; runs on exact inputs are left out."""
    seen: list[int] = []
    real = expected.references

    def noted(*args: Any, **options: Any) -> Any:
        seen.append(options["seed"])
        return real(*args, **options)

    monkeypatch.setattr(expected, "references", noted)
    for module in (execute, ragged):
        monkeypatch.setattr(module, "run_sharp", lambda *args, **options: ((), ()))
    return seen


def test_exact_inputs_too_are_computed_with_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    real = expected.references
    monkeypatch.setattr(expected, "references", lambda *args, **options: seen.append(options) or real(*args, **options))
    for s in (total(), auto(total())):
        assert [c.sharpness for c in execute.execute(s, **QUICK).exact] == ["y bit for bit"] * 2
    assert len(seen) == 3


def total(n: int = 3000) -> Schedule:
    return reduction((n,), (0,), "f32", "sum")


def tiled(m: int = 61, n: int = 63) -> Schedule:
    s = workloads.get("matmul").definition.schedule(M=m, N=n, K=24)
    s = s.tile(("i", "j"), TILE).bind("i", "block.y").bind("j", "block.x")
    return s.bind("i.i", "thread.y").bind("j.i", "thread.x")


# -- once for a program and a seed ---------------------------------------------------------------------------------


def test_schedules_of_one_program_share_what_they_are_held_against(computed: list[int]) -> None:
    first, second = (execute.execute(s, **QUICK) for s in (total(), auto(total())))
    assert first.correct
    assert second.correct
    assert first.checks[0].expected == second.checks[0].expected
    assert computed == [0]
    execute.execute(total(), **QUICK, seed=1)
    execute.execute(total(3001), **QUICK)
    assert computed == [0, 1, 0]


def test_a_wrong_kernel_is_found_with_what_is_known(computed: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    assert execute.execute(tiled(), **QUICK).correct
    monkeypatch.setattr(execute, "emit", changed(lambda text: text.replace(" += a[", " -= a[")))
    assert execute.execute(tiled(), **QUICK).correct is False
    assert computed == [0]


def test_values_that_are_given_are_computed_with_each_time(computed: list[int]) -> None:
    for fill in (1.0, 2.0):
        run = execute.execute(total(64), {"x": np.full(64, fill, np.float32)}, **QUICK)
        assert run.correct
        assert run.outputs["y"][0] == 64 * fill
    assert computed == [0, 0]


def test_a_numpy_reference_is_always_asked() -> None:
    asked: list[str] = []

    def reference(arrays: dict[str, np.ndarray], sizes: dict[str, int]) -> np.ndarray:
        asked.append("again")
        return arrays["x"].sum(keepdims=True) + (len(asked) - 1)

    assert execute.execute(total(), **QUICK, reference=reference).correct
    assert execute.execute(total(), **QUICK, reference=reference).correct is False
    assert len(asked) == 2


def test_the_oldest_go_first_and_what_is_large_is_not_kept(computed: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expected, "KEPT_BYTES", 40)  # a value and a bound of 8 bytes each
    for seed in (0, 1, 0, 2, 0, 1):
        expected.expected(Inputs(total().source, seed))
    assert computed == [0, 1, 2, 1], "1 was asked for longest ago when 2 came"
    (kept,) = expected.expected(Inputs(total().source, 1))[0]
    with pytest.raises(ValueError, match="read-only"):
        kept.values["y"][0] = 1.0
    expected.expected(Inputs(tiled().source, 0))
    assert not expected._kept


# -- inputs made where they are used -------------------------------------------------------------------------------


class StandIn:
    """A GPU played by the CPU device, which keeps what it was given."""

    def __init__(self) -> None:
        self.given: list[dict[str, Any]] = []

    def installed(self) -> Any:
        return SimpleNamespace(gpu=default_gpu(), name="NVIDIA H200")

    def build(self, module: Any) -> Any:
        return SimpleNamespace(module=module, inner=CpuDevice(checked=False).build(module), cubin=SimpleNamespace(arch="sm_90"))

    def run(self, built: Any, arrays: dict[str, Any]) -> Any:
        self.given.append(dict(arrays))
        read = [b for b in built.module.buffers if b.kind in ("in", "inout")]
        made = {b.name: arrays[b.name].host(b) if isinstance(arrays[b.name], Seeded) else arrays[b.name] for b in read}
        return CpuDevice(checked=False).run(built.inner, made)


def test_a_gpu_makes_a_seeds_inputs_itself_and_the_host_does_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu, made = StandIn(), list[int]()
    real = inputs.arguments
    monkeypatch.setattr(inputs, "arguments", lambda *args: made.append(args[2]) or real(*args))
    monkeypatch.setattr(cuda, "available", lambda: None)
    monkeypatch.setattr(cuda, "device", lambda: gpu)
    for s in (total(), auto(total())):
        assert execute.execute(s, time=False, ragged=False, seeds=2).correct
    assert made == [0, 1, 0, 0], "the seeds, and the first one's exact inputs"
    assert gpu.given[0] == {"x": Seeded(0, high=0)}
    assert gpu.given[1] == {"x": Seeded(1000, high=0)}
    assert gpu.given[2]["x"].kind == gpu.given[3]["x"].kind == "integers"
    assert gpu.given[4:] == gpu.given[:4]
    x = np.ones(3000, np.float32)
    assert execute.execute(total(), {"x": x}, time=False, ragged=False).correct
    np.testing.assert_array_equal(gpu.given[8]["x"], x)
    assert gpu.given[9:] == gpu.given[2:4], "a lost digit shows whatever data is given"


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_a_description_rounds_once_in_the_wide_type_and_once_in_its_own(dtype: str) -> None:
    recipe, array = Recipe("normal", 3, 1.0, 2.0**-5), Array("x", DTYPES[dtype], (41,), "in")
    wide = np.float64 if dtype == "f64" else np.float32
    drawn = Seeded(7003).host(Buffer("x", DTYPES["f64" if dtype == "f64" else "f32"], (41,), "in"))
    values = drawn * wide(2.0**-5) + wide(1.0)
    wanted = f32_to_bf16(values) if dtype == "bf16" else values.astype(DTYPES[dtype].numpy)
    np.testing.assert_array_equal(recipe.fill(array, 7), wanted)
    assert recipe.seeded(7) == Seeded(7003, offset=1.0, scale=2.0**-5, high=0)


def test_what_does_not_fit_is_refused_before_anything_is_made() -> None:
    with pytest.raises(DeviceError, match="x is missing"):
        Inputs(total().source, 0, {})


# -- a sample of many cells ----------------------------------------------------------------------------------------


def changed(edit: Callable[[str], str]) -> Callable[..., Any]:
    """An emitter whose text was edited; the edit must change something."""
    def wrong(plan: Any, **options: Any) -> Any:
        built = emit(plan, **options)
        text = edit(built.text)
        assert text != built.text
        return replace(built, text=text)

    return wrong


def skipped(y: int, x: int) -> Callable[[str], str]:
    """One block does nothing."""
    start = re.compile(r'(extern "C" __global__ .*?\) \{\n)', re.S)
    return lambda text: start.sub(rf"\1  if (blockIdx.x == {x} && blockIdx.y == {y}) return;\n", text)


WRONG = {
    **{f"block {y}, {x} does nothing": skipped(y, x) for y, x in ((0, 0), (0, 3), (3, 1), (5, 2), (7, 0), (7, 3))},
    "the last row is dropped": lambda text: text.replace("i_i < 61", "i_i < 60"),
    "the last column is dropped": lambda text: text.replace("j_i < 63", "j_i < 62"),
    "the last term is dropped": lambda text: text.replace("k < 24", "k < 23"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_sample_finds(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = tiled()
    budget = cost(schedule.source) // 12
    right = execute.execute(schedule, **QUICK, budget=budget)
    (check,) = right.checks
    assert right.correct
    assert check.total / 24 < check.checked < check.total / 12
    density = re.search(r"at least one in any (\d+) × (\d+) of c", check.reference)
    assert density is not None
    assert all(int(side) <= tile for side, tile in zip(density.groups(), TILE, strict=True)), "no tile is without a cell"
    assert f"{check.checked:,} of {check.total:,} cells right" in str(right)
    monkeypatch.setattr(execute, "emit", changed(WRONG[what]))
    assert execute.execute(schedule, **QUICK, budget=budget).correct is False


@pytest.mark.parametrize("seed", range(3))
def test_no_box_of_the_density_said_is_without_a_sampled_cell(seed: int) -> None:
    schedule = tiled(83, 47)
    (found,), _ = expected.expected(Inputs(schedule.source, seed), budget=cost(schedule.source) // 20)
    seen = np.zeros((83, 47), bool)
    seen[np.ix_(*found.cells["c"])] = True
    high, wide = map(int, re.search(r"any (\d+) × (\d+) of c", found.source).groups())  # type: ignore[union-attr]
    boxes = np.lib.stride_tricks.sliding_window_view(seen, (high, wide))
    assert boxes.any(axis=(2, 3)).all()
    for smaller in ((high - 1, wide), (high, wide - 1)):
        assert not np.lib.stride_tricks.sliding_window_view(seen, smaller).any(axis=(2, 3)).all()
    assert seen[[0, 0, -1, -1], [0, -1, 0, -1]].all(), "the corners"


def test_a_sum_that_cannot_be_sampled_is_computed_whole() -> None:
    schedule = total(20_000)
    (found,), notes = expected.expected(Inputs(schedule.source), budget=cost(schedule.source) // 100)
    assert found.complete
    assert notes == ()
    assert found.source == "the loops as written in float64 C (all cells)"
