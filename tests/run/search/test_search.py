"""The measured search: who wins, what noise and failures do, what is remembered; timed by a clock of the test's own."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import explorer as ex
from benchmarks.reduction_program import reduction
from explorer.errors import DeviceError, KernelFault, TransformError
from explorer.gpu.spec import default_gpu
from explorer.kernel.module import CudaModule
from explorer.run.cuda import device as cuda
from explorer.run.nvrtc.compiler import Cubin
from explorer.run.search import memory as search_memory
from explorer.run.search.measured import forget, search, searched
from explorer.run.search.result import SearchResult
from explorer.run.timing import Samples
from explorer.schedule import Schedule
from explorer.strategies.auto import auto
from explorer.strategies.choices import together, variants
from explorer.system.cancel import Cancel, Cancelled
from tests.programs import two_sums

WRITTEN = reduction((512, 256), (1,), "f32", "sum")
LABELS = [v.label for v in variants(WRITTEN, default_gpu())]
STEPS = {v.label: v.schedule.steps for v in list(variants(WRITTEN, default_gpu()))[:8]}
NAME = {steps: label for label, steps in STEPS.items()}


class Clock:
    """A meter whose times the test says, by label; `noise` is added and taken away in turn."""

    name, clock = "clock", "the test's own time"

    def __init__(self, times: dict[str, float] | None = None, noise: float = 0.0, floor_us: float | None = None) -> None:
        self.times, self.noise, self.floor_us, self.target = times or {}, noise, floor_us, default_gpu()
        self.bad: dict[str, Exception | str] = {}
        self.name_of: Callable[[Any], str] = lambda steps: NAME.get(steps, "other")
        self.rounds: list[tuple[tuple[str, ...], int]] = []

    def build(self, schedule: Schedule) -> Any:
        label = self.name_of(schedule.steps)
        if isinstance(problem := self.bad.get(label), Exception):
            raise problem
        return SimpleNamespace(label=label, module=SimpleNamespace(text=str(schedule.steps), launches=()))

    def wrong(self, schedule: Schedule, built: Any) -> str:
        return str(self.bad.get(built.label, ""))

    def time(self, several: Sequence[Any], repeats: int) -> list[Samples]:
        self.rounds.append((tuple(b.label for b in several), repeats))
        return [Samples([self.times.get(b.label, 10.0) + self.noise * (n % 3 - 1) for n in range(repeats)]) for b in several]


def first(count: int) -> list[Any]:
    """The first variants."""
    return list(variants(WRITTEN, default_gpu()))[:count]


def found(clock: Clock, count: int = 5, **options: Any) -> SearchResult:
    return searched(WRITTEN, clock, trials=count, candidates=first(count), **options)


@pytest.fixture(autouse=True)
def _own_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_CACHE_DIR", str(tmp_path))


def test_the_fastest_wins_and_replays() -> None:
    result = found(Clock({LABELS[3]: 5.0, LABELS[1]: 8.0}, noise=0.1))
    assert [t.label for t in result.trials] == LABELS[:5]
    assert result.trials[result.best].label == LABELS[3]
    assert result.gain is not None
    assert result.gain.ratio == pytest.approx(2.0)
    assert not result.gain.noise
    assert result.time_us == 5.0
    assert result.steps == STEPS[LABELS[3]]
    assert WRITTEN.replay(result.steps).plan == result.schedule.plan
    assert result.start.steps == auto(WRITTEN).steps
    assert [t.label for t in result.ranked[:2]] == [LABELS[3], LABELS[1]]
    text = str(result)
    assert "2.00× faster than the start" in text
    assert f"→ {LABELS[3]}: 5 µs" in text
    assert "the test's own time" in text


def test_the_best_are_timed_again_in_turns_with_the_start() -> None:
    clock = Clock({label: 20.0 - n for n, label in enumerate(LABELS[:8])}, noise=0.1)
    clock.times[LABELS[0]] = 30.0
    result = found(clock, 8)
    alone, final = clock.rounds[:8], clock.rounds[-1]
    assert [len(labels) for labels, _ in alone] == [1] * 8
    assert final[0] == (LABELS[0], *LABELS[5:8])
    assert final[1] > alone[0][1]
    assert [t.rounds for t in result.trials] == [3, 2, 2, 2, 2, 3, 3, 3]


def test_noise_does_not_decide() -> None:
    result = found(Clock({LABELS[2]: 9.8}, noise=3.0))
    assert result.best == 0
    assert result.gain is None
    assert result.steps == auto(WRITTEN).steps
    assert "no variant is faster than the start by more than noise" in str(result)


def test_failing_variants_are_recorded_and_skipped() -> None:
    clock = Clock({LABELS[1]: 1.0, LABELS[2]: 1.0, LABELS[3]: 1.0, LABELS[4]: 7.0})
    clock.bad = {LABELS[1]: KernelFault("it wrote outside"), LABELS[2]: "y[3] is 4, not 5", LABELS[3]: ValueError("a defect")}
    result = found(clock)
    assert [t.problem for t in result.trials] == ["", "KernelFault: it wrote outside", "y[3] is 4, not 5", "ValueError: a defect",
                                                  ""]
    assert result.trials[result.best].label == LABELS[4]
    assert len(result.failed) == 3
    assert "3 of them failed" in str(result)
    assert {label for labels, _ in clock.rounds for label in labels} == {LABELS[0], LABELS[4]}


def test_a_start_that_fails_is_no_end() -> None:
    clock = Clock({LABELS[2]: 4.0})
    clock.bad = {LABELS[0]: "wrong"}
    result = found(clock)
    assert result.trials[result.best].label == LABELS[2]
    assert result.gain is None
    assert "the start has no time" in str(result)


def test_nothing_that_can_be_measured_is_an_error() -> None:
    clock = Clock()
    clock.bad = {label: TransformError("no") for label in LABELS}
    with pytest.raises(DeviceError, match="No variant could be measured") as error:
        found(clock, 3)
    assert "TransformError: no" in error.value.why


def test_progress_counts_and_says_the_best() -> None:
    lines: list[str] = []
    found(Clock({LABELS[1]: 8.0, LABELS[3]: 5.0}), 4, progress=lines.append)
    assert lines[:4] == ["1 of 4: best 10 µs", "2 of 4: best 8 µs", "3 of 4: best 8 µs", "4 of 4: best 5 µs"]
    assert lines[4] == "the best 4 again: best 5 µs"


@pytest.mark.parametrize("how", ["ask", "interrupt"])
def test_a_cancelled_search_keeps_the_best_so_far_and_is_not_remembered(how: str) -> None:
    cancel, clock = Cancel(), Clock({LABELS[2]: 5.0, LABELS[4]: 1.0})

    def stop(line: str) -> None:
        if line.startswith("3 of"):
            if how == "interrupt":
                raise KeyboardInterrupt
            cancel.ask()

    result = found(clock, 5, progress=stop, cancel=cancel, remember=True)
    assert [t.label for t in result.trials] == LABELS[:3]
    assert result.time_us == 5.0
    assert result.ended == "cancelled: the best so far"
    assert not list(search_memory.SEARCHES.folder.glob("*/search.json"))


def test_a_search_cancelled_before_it_measured_anything_says_so() -> None:
    cancel = Cancel()
    cancel.ask()
    with pytest.raises(Cancelled):
        found(Clock(), cancel=cancel)


def test_near_the_floor_the_search_ends() -> None:
    result = found(Clock({LABELS[1]: 5.05}, floor_us=5.0))
    assert len(result.trials) == 2
    assert result.ended == "the best is within 2% of the floor"
    assert "the floor is 5 µs" in str(result)


def test_the_same_kernels_are_timed_once() -> None:
    twice = [*first(2), first(2)[1]]
    clock = Clock()
    result = searched(WRITTEN, clock, trials=3, candidates=twice)
    assert result.trials[2].twin == LABELS[1]
    assert not result.failed
    assert sum(labels == (LABELS[1],) for labels, _ in clock.rounds) == 1


def remembered(clock: Clock, seed: int = 0) -> SearchResult:
    return found(clock, 4, remember=True, seed=seed)


def test_a_renewed_search_takes_the_place_of_the_one_remembered() -> None:
    first = remembered(Clock({LABELS[1]: 5.0}))
    renewed = found(Clock({LABELS[2]: 4.0}), 4, remember=True, renew=True)
    assert not renewed.remembered
    assert (first.time_us, renewed.time_us) == (5.0, 4.0)
    again = remembered(Clock())
    assert again.remembered
    assert again.time_us == 4.0


def test_a_search_is_remembered_and_forgotten() -> None:
    clock = Clock({LABELS[2]: 5.0}, noise=0.1)
    before = remembered(clock)
    assert not before.remembered
    taken = len(clock.rounds)
    again = remembered(clock)
    assert again.remembered
    assert "remembered from an earlier search" in str(again)
    assert len(clock.rounds) == taken
    assert again.trials == before.trials
    assert (again.gain, again.best, again.floor_us) == (before.gain, before.best, before.floor_us)
    assert again.schedule.plan == before.schedule.plan
    assert not remembered(clock, seed=1).remembered
    assert not found(clock, 4).remembered
    other = Clock()
    other.name = "another GPU"
    assert not remembered(other).remembered
    assert forget(reduction((512, 257), (1,), "f32", "sum")) == 0
    assert forget(before.schedule) == 3
    assert not remembered(clock).remembered
    assert forget() == 1


def test_a_search_that_is_not_to_be_remembered_writes_nothing() -> None:
    found(Clock(), 2)
    assert not search_memory.SEARCHES.folder.exists()


def damaged(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        data = json.loads(path.read_text())
        change(data)
        search_memory.SEARCHES.keep(path.parent.name, {path.name: json.dumps(data).encode()})

    return write


@pytest.mark.parametrize("damage", [
    lambda path: path.write_text("{"), lambda path: path.write_text("[]"), lambda path: path.write_bytes(b"\xff\xfe"),
    damaged(lambda d: d.pop("best")), damaged(lambda d: d.update(best=99)), damaged(lambda d: d.update(version=0)),
    damaged(lambda d: d["trials"][2].pop("timing")), damaged(lambda d: d["trials"][2]["timing"].update(samples=[])),
    damaged(lambda d: d["trials"][2]["schedule"]["sizes"].update(D0=1)),
    damaged(lambda d: d["trials"][2]["schedule"]["steps"][0].update(move="no such move")),
])  # fmt: skip
def test_a_damaged_file_is_noted_and_measured_again(damage: Callable[[Path], None]) -> None:
    clock = Clock({LABELS[2]: 5.0}, noise=0.1)
    remembered(clock)
    (path,) = search_memory.SEARCHES.folder.glob("*/search.json")
    damage(path)
    taken = len(clock.rounds)
    again = remembered(clock)
    assert not again.remembered
    assert len(clock.rounds) == 2 * taken
    assert any("remembered search" in note for note in again.notes)
    assert "remembered search" in str(again)
    third = remembered(clock)
    assert third.remembered


def test_what_is_remembered_is_judged_again() -> None:
    """A file that says an open reduction was the fastest is not believed."""
    clock = Clock({LABELS[2]: 5.0}, noise=0.1)
    remembered(clock)
    (path,) = search_memory.SEARCHES.folder.glob("*/search.json")
    damaged(lambda d: d["trials"][2]["schedule"].update(
        steps=[s for s in d["trials"][2]["schedule"]["steps"] if s["move"] != "collect"]))(path)
    again = remembered(clock)
    assert not again.remembered
    assert any("is of no use" in note for note in again.notes)
    assert again.schedule.judgement.emittable


def test_candidates_are_the_favourites_some_drawn_ones_own_and_neighbours_of_the_best() -> None:
    written = reduction((700, 768), (0,), "f32", "sum")
    every = [v.label for v in variants(written, default_gpu())]
    assert len(every) > 50
    mine = auto(written).undo(1)
    assert mine.judgement.emittable
    many = [searched(mine, Clock(), trials=12, seed=seed) for seed in (0, 0, 1)]
    labels = [[t.label for t in r.trials] for r in many]
    assert [len(found) for found in labels] == [12] * 3
    assert labels[0] == labels[1]
    assert labels[0][:6] == labels[2][:6] == [every[0], "as given", *every[1:5]]
    assert labels[0][6] != labels[2][6]
    assert set(labels[0]) <= {*every, "as given"}
    assert many[0].trials[1].steps == mine.steps


class Shaped(Clock):
    """A meter whose times depend on the threads, the width and the accesses of the kernel: the farther from some, the longer."""

    best = {"thread.x": 16, "thread.y": 16, "vector": 2, "unroll": 8, "block.y": 1}

    def build(self, schedule: Schedule) -> Any:
        built, loops = super().build(schedule), [*schedule.plan.loops.values()]
        built.label = str(len(self.times))
        extents = {role: next((x.extent for x in loops if x.role == role), 1) for role in self.best}
        self.times[built.label] = 10 + sum(abs(math.log2(n / self.best[role])) for role, n in extents.items())
        return built


@pytest.mark.parametrize("seed", range(2))
def test_a_search_walks_to_the_best_though_the_model_does_not_know_it(seed: int) -> None:
    """One variant of 2,330 takes 10 microseconds, several steps from the nearest of the 18 that come first."""
    result = searched(reduction((700, 768), (0,), "f32", "sum"), Shaped(), trials=40, seed=seed)
    assert len(result.trials) == 40
    assert min(t.time_us for t in result.trials[:18]) > 11
    assert result.time_us == 10.0
    assert result.best > 20


def test_a_search_with_steps_is_remembered_by_what_it_could_measure() -> None:
    options: dict[str, Any] = {"trials": 12, "remember": True}
    before = searched(WRITTEN, Clock({LABELS[2]: 5.0}), **options)
    other = Clock({LABELS[1]: 2.0})
    again = searched(WRITTEN, other, **options)
    assert again.remembered
    assert again.trials == before.trials
    assert not other.rounds
    assert not searched(WRITTEN, other, **{**options, "trials": 13}).remembered
    assert not searched(WRITTEN, other, **options, seed=1).remembered


def test_what_is_best_in_each_kernel_is_combined() -> None:
    written = two_sums.schedule(M=48, N=96)
    singles = [v for v in variants(written, default_gpu()) if len(v.changes) == 1]
    kernels = list(dict.fromkeys(v.changes[0].kernel for v in singles))
    best = {v.changes[0].kernel: v for v in reversed(singles)}
    clock, lines = Clock({"other": 10.0, "first": 7.0, "second": 8.0, "both": 4.0}), list[str]()
    names = {best[kernels[0]].schedule.steps: "first", best[kernels[1]].schedule.steps: "second",
             together(best.values()).schedule.steps: "both"}  # type: ignore[union-attr]
    clock.name_of = lambda steps: names.get(steps, "other")
    result = searched(written, clock, trials=12, progress=lines.append)
    assert result.time_us == 4.0
    assert set(result.trials[result.best].label.split("; ")) == {v.label for v in best.values()}
    assert len(result.trials) == 11
    assert lines[10] == "11 of 12: best 4 µs"
    assert lines[11].startswith("the best 8 again: ")


def test_options_are_checked() -> None:
    with pytest.raises(DeviceError, match="trials is a number of at least 1"):
        search(WRITTEN, device="cpu", trials=0)
    with pytest.raises(DeviceError, match="There is no device 'tpu'"):
        search(WRITTEN, device="tpu")
    with pytest.raises(DeviceError, match="search has no option 'trial'") as error:
        WRITTEN.search(trial=3)
    assert error.value.hint == "trials"
    with pytest.raises(DeviceError, match="cancel is an"):
        search(WRITTEN, device="cpu", cancel=True)  # type: ignore[arg-type]
    with pytest.raises(TransformError, match="a search takes a schedule, not a str"):
        search("softmax", device="cpu")  # type: ignore[type-var]
    with pytest.raises(DeviceError, match="nothing to search"):
        search(WRITTEN, device="cpu", candidates=[])
    with pytest.raises(DeviceError):
        search(WRITTEN, device="cpu", arrays={})


def test_a_notebook_sees_the_gain_and_the_failures() -> None:
    clock = Clock({LABELS[2]: 5.0}, noise=0.1)
    clock.bad = {LABELS[1]: "wrong: <y>"}
    picture = found(clock)._repr_html_()
    assert "2.00× faster than the start" in picture
    assert LABELS[2] in picture
    assert "wrong: &lt;y&gt;" in picture
    assert "<svg" in picture


def test_on_the_cpu_device_every_variant_is_checked_and_timed() -> None:
    result = WRITTEN.search(device="cpu", trials=3, remember=False)
    assert result.clock == "CPU device time, not GPU time"
    assert "CPU device time, not GPU time" in str(result)
    assert result.floor_us is None
    assert len(result.trials) == 3
    assert all(t.timing is not None and not t.problem for t in result.trials)
    assert isinstance(result.schedule, ex.Schedule)
    assert result.schedule.run(device="cpu", time=False, ragged=False).correct


def test_on_the_cpu_device_a_wrong_variant_is_found_out() -> None:
    other = first(2)
    wrong = reduction((512, 256), (1,), "f32", "max")
    bad = auto(wrong)
    other[1].__dict__["schedule"] = Schedule(WRITTEN.source, bad.plan, bad.steps)
    result = searched(WRITTEN, _cpu(), trials=2, candidates=other)
    assert result.trials[1].problem.startswith("wrong: ")
    assert result.best == 0


def test_on_a_gpu_every_variant_is_checked_and_timed_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The GPU is played by NumPy: one of the kernels is wrong."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "cuda"))
    device = cuda.CudaDevice(limit_s=5, backend="fake_cuda_engine:FakeBackend")
    small = reduction((64, 32), (1,), "f32", "sum")
    made: list[str] = []

    def build(module: CudaModule) -> cuda.CudaBuilt:
        (launch,) = module.launches
        total = "sum(1)" if len(made) != 1 else "max(1)"
        made.append(f"def {launch.kernel}({', '.join(launch.arguments)}):\n"
                    f"    y.view(np.float32)[:64] = x.view(np.float32)[:2048].reshape(64, 32).{total}\n# {len(made)}")
        return cuda.CudaBuilt(module, Cubin("sm_90", made[-1].encode(), "", "", {}), default_gpu(), made[-1])

    monkeypatch.setattr(device, "build", build)
    monkeypatch.setattr(cuda, "device", lambda: device)
    monkeypatch.setattr(cuda, "available", lambda: None)
    try:
        result = small.search(trials=4)
        again = small.search(trials=4)
    finally:
        device.close()
    assert result.device == "NVIDIA H200"
    assert "CUDA events" in result.clock
    assert result.floor_us is not None
    assert result.trials[1].problem.startswith("wrong: y")
    assert [t.rounds for t in result.trials] == [3, 0, 3, 3]
    assert [len(t.timing.samples) for t in result.trials if t.timing] == [31] * 3
    assert again.remembered
    assert len(made) == 4


def _cpu() -> Any:
    from explorer.run.search.meter import meter

    return meter(WRITTEN.source, "cpu", None, 0)
