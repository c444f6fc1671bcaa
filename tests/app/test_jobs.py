"""Runs in the background: phases, verdicts, comparisons, failures, and a cancel that ends child processes."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

import explorer as ex
from explorer.app import jobs
from explorer.app.jobs import Job, Order, Snapshot, numpy_reference
from explorer.errors import KernelFault
from explorer.run.execute import PHASES, execute
from explorer.run.timing import Timing
from explorer.system.cancel import Cancel, Cancelled, cancellable
from explorer.system.process import run_process
from explorer.system.worker import Worker
from tests.views.pages import Page

from .front import front, schedule


def test_a_run_reports_its_phases_and_what_it_has_shown() -> None:
    f = front("softmax", "bind('i', 'block.x')", M=16, N=12)
    f.ask("ready", wait=True)
    f.ask("run", wait=True, time=True)
    seen = [m["panes"]["run"] for m in f.messages if "run" in m["panes"]]
    doing = list(dict.fromkeys(p["doing"] for p in seen if p["status"] == "running"))
    assert doing[doing[0] == "starting":] == [  # the first may be over before it is shown
        "writing the CUDA text", "compiling", "running", "comparing with the reference", "timing",
        "running at sizes that do not divide", "timing what to compare with"]
    shares = [p["fraction"] for p in seen if p["fraction"] is not None]
    assert shares == sorted(shares)
    last = f.panes["run"]
    assert (last["status"], last["correct"]) == ("done", True)
    assert "facts wrong" not in last["html"]
    assert last["verdict"].startswith("right: ")
    names = [row[0] for row in Page(last["html"]).tables[0][1:]]
    assert names == ["the step before", "NumPy (the reference, in float64)"]
    assert set(last["samples"]) == {"this (warm L2)", "this"} & set(last["samples"]) | {*names}
    state = f.panes["history"]["states"][-1]
    assert (state["correct"], state["device"]) == (True, "cpu")
    assert state["time_us"] > 0
    badges = {b["name"]: b["state"] for b in f.panes["head"]["badges"]}
    assert badges == {"proved": "earned", "emulated": "earned", "compiled": "open", "GPU-checked": "open", "timed": "earned"}
    assert f.panes["head"]["busy"] == ""


def test_the_run_of_another_state_is_not_shown_as_this_one() -> None:
    f = front("softmax", "bind('i', 'block.x')", M=6, N=12)
    f.ask("ready", wait=True)
    f.ask("run", wait=True, time=False)
    assert f.panes["run"]["correct"] is True
    f.ask("undo")
    assert (f.panes["run"]["status"], f.panes["run"]["correct"], f.panes["run"]["verdict"]) == ("idle", None, "")
    f.ask("redo")
    assert f.panes["run"]["correct"] is True


def test_without_timing_nothing_is_timed_or_compared() -> None:
    f = front("softmax", "bind('i', 'block.x')", M=6, N=12)
    f.ask("run", wait=True, time=False)
    assert f.panes["run"]["samples"] == {}
    assert not Page(f.panes["run"]["html"]).tables
    assert "<p" not in f.panes["run"]["html"], "no line of times"


def test_a_run_that_cannot_be_made_has_its_problem() -> None:
    f = front("softmax", "bind('k', 'thread.x')", M=6, N=12)
    f.ask("run", wait=True, time=True)
    assert f.panes["run"]["status"] == "failed"
    assert {"text": "collect('peak', 'shuffle')", "call": "collect('peak', 'shuffle')"} in f.panes["run"]["problem"]["hints"]


def test_a_wrong_result_is_shown_with_its_first_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    def off(order: Any) -> Any:
        return lambda arrays, sizes: {"y": arrays["x"] * 0}

    monkeypatch.setattr("explorer.app.jobs.numpy_reference", off)
    f = front("softmax", M=3, N=4)
    f.ask("run", wait=True, time=False)
    run = f.panes["run"]
    assert run["correct"] is False
    assert run["verdict"].startswith("WRONG: y: 12 of 12 cells")
    told = Page(run["html"].partition("</dl>")[0] + "</dl>").text
    assert told.startswith("array yelement [0, 0]got ")
    assert "expected 0allowed " in told
    assert f.panes["history"]["states"][0]["correct"] is False


def test_a_second_run_waits_for_the_first() -> None:
    f = front("matmul", M=64, N=64, K=64)
    f.ask("run", time=True)
    problem = [m["problem"]["what"] for m in f.ask("run", time=True) if m["kind"] == "problem"]
    assert problem == ["a run is going on"]
    assert f.ask("select", node="k"), "the kernel answers meanwhile"
    f.ask("cancel", wait=True)
    assert f.panes["run"]["status"] == "cancelled"


def test_cancel_is_shown_at_once_and_nothing_follows() -> None:
    f = front("matmul", M=96, N=96, K=96)
    f.ask("ready", wait=True)
    f.ask("run", time=True)
    while f.panes["run"]["status"] == "running" and f.panes["run"]["doing"] in ("starting", "writing the CUDA text"):
        time.sleep(0.01)
    assert f.panes["run"]["status"] == "running", f.panes["run"]["problem"]
    answers = f.ask("cancel")
    assert answers[0]["panes"]["run"]["status"] == "cancelled"
    assert f.panes["head"]["busy"] == ""
    assert f.dispatcher.wait()
    assert f.panes["run"]["status"] == "cancelled"
    assert all(m["panes"].get("run", {"status": "cancelled"})["status"] == "cancelled" for m in f.messages)
    f.ask("apply", call="reverse('i')")
    f.ask("run", wait=True, time=False)
    assert f.panes["run"]["correct"] is True


def test_a_cancelled_child_process_is_killed_with_its_children(tmp_path: Path) -> None:
    cancel, mark = Cancel(), tmp_path / "mark"
    caught: list[BaseException] = []

    def work() -> None:
        try:
            with cancellable(cancel):
                run_process(["sh", "-c", f"(sleep 1.5; touch {mark}) & echo $!; wait"])
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.3)
    cancel.ask()
    thread.join(5)
    assert isinstance(caught[0], Cancelled)
    time.sleep(1.6)
    assert not mark.exists()


def test_a_cancelled_worker_is_killed_and_works_again() -> None:
    worker, cancel = Worker("tests.system.fake_worker_backend:Backend"), Cancel()
    caught: list[BaseException] = []

    def work() -> None:
        try:
            with cancellable(cancel):
                worker.call("hang", "at work", limit_s=100)
        except BaseException as error:
            caught.append(error)

    assert worker.call("echo", 1, limit_s=100) == 1
    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.3)
    cancel.ask()
    thread.join(10)
    assert isinstance(caught[0], Cancelled)
    assert worker.call("echo", 2, limit_s=100) == 2
    worker.close()


def test_what_is_cancelled_before_it_begins_never_begins() -> None:
    cancel = Cancel()
    cancel.ask()
    with pytest.raises(Cancelled), cancellable(cancel):
        run_process(["touch", "/nonexistent/never"])


def test_execute_names_its_phases_and_ends_when_progress_raises() -> None:
    phases: list[str] = []
    run = execute(schedule("softmax", M=3, N=4), device="cpu", progress=phases.append)
    assert run.correct
    assert tuple(dict.fromkeys(phases)) == PHASES

    def stop(phase: str) -> None:
        if phase == "verify":
            raise KernelFault("enough")

    with pytest.raises(KernelFault, match="enough"):
        execute(schedule("softmax", M=3, N=4), device="cpu", progress=stop)


def test_a_program_that_only_has_a_workloads_name_gets_no_reference() -> None:
    M, N = ex.sizes("M N")

    @ex.program
    def softmax(x: ex.f32[M, N], y: ex.f32[M, N]) -> None:
        for i in range(M):
            for j in range(N):
                y[i, j] = x[i, j]

    assert numpy_reference(softmax.schedule(M=3, N=4)) is None
    assert numpy_reference(schedule("softmax", M=3, N=4)) is not None


def test_nothing_is_reported_after_a_cancel() -> None:
    told: list[Snapshot] = []
    one = schedule("softmax", M=3, N=4)
    job = Job(Order("h0", one, "cpu", False, one), told.append)
    job.cancel()
    job.start()
    assert job.wait()
    assert told == []
    assert job.progress.status == "cancelled"


@pytest.mark.parametrize(("sizes", "steps", "repeats"), [
    ({"M": 4, "N": 8}, (), 30), ({"M": 4096, "N": 1024}, (), 5), ({"M": 16384, "N": 768}, (), 3),
    ({"M": 16384, "N": 768}, ("bind('i', 'block.x')",), 30)])
def test_a_baseline_of_one_thread_on_a_gpu_is_timed_as_often_as_seconds_allow(
        monkeypatch: pytest.MonkeyPatch, sizes: dict[str, int], steps: tuple[str, ...], repeats: int) -> None:
    taken: list[int] = []

    def together(schedules: Any, repeats: int) -> tuple[Timing, ...]:
        taken.append(repeats)
        return tuple(Timing.of([1.0]) for _ in schedules)

    monkeypatch.setattr(jobs, "time_together", together)
    one = schedule("sum_rows", *steps, **sizes)
    job = Job(Order("h0", one, "cuda", True, one), lambda snapshot: None)
    job._timed("as written, one thread", one)
    assert taken == [repeats]
    assert [name for name, *_ in job.progress.against] == ["as written, one thread"]
