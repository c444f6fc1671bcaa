"""The GPU that plans are made for: one choice of the session, which every plan, estimate and CUDA text follows."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from explorer.app import devices, planning, recipes, running, stitches
from explorer.app.panes import ways as pane
from explorer.app.recipes import recipe
from explorer.app.session import Session
from explorer.app.tasks import Task
from explorer.gpu.spec import catalogue, gpu
from explorer.strategies import auto
from explorer.strategies._steps import Builder
from explorer.strategies.collects import Way
from explorer.strategies.price import price
from explorer.strategies.stitch import edges, stitching
from tests.transforms.multiblock import spread

from .front import Front, front, schedule


@pytest.fixture
def shown() -> Front:
    f = front("sum_rows", M=16, N=262144)
    f.ask("ready", wait=True)
    return f


def calls(f: Front) -> list[str]:
    return [s["call"] for s in f.panes["strategy"]["steps"]]


def test_the_default_is_planned_for_and_the_catalogue_is_offered(shown: Front) -> None:
    pane = shown.panes["target"]
    assert pane["gpu"] == shown.session.gpu.name == "H200"
    assert [g["name"] for g in pane["gpus"]] == list(catalogue())
    assert not any(g["here"] for g in pane["gpus"])
    words = {g["name"]: g["words"] for g in pane["gpus"]}
    assert words["T4"] == "sm_75: 40 multiprocessors, 0.32 TB/s, 64 KiB shared memory a block"


def test_a_strategy_that_is_shown_is_made_again(shown: Front) -> None:
    start = shown.session.schedule
    shown.ask("strategy", wait=True, name="auto")
    large = shown.panes["strategy"]
    assert (large["gpu"], calls(shown)) == ("H200", [str(s) for s in auto(start, "H200").steps])
    shown.ask("target", wait=True, gpu="T4")
    small = shown.panes["strategy"]
    assert (small["status"], small["name"], small["gpu"], shown.panes["target"]["gpu"]) == ("done", "auto", "T4", "T4")
    made = auto(start, "T4")
    assert calls(shown) == [str(s) for s in made.steps] != [s["call"] for s in large["steps"]]
    assert (len(made.plan.kernels), len(auto(start, "H200").plan.kernels)) == (1, 2), "for 132 multiprocessors rows are cut"
    assert small["start_us"] == pytest.approx(price(start.plan, gpu("T4")).total_us)
    assert small["steps"][-1]["estimate_us"] == pytest.approx(price(made.plan, gpu("T4")).total_us)
    assert small["steps"][-1]["estimate_us"] > 2 * large["steps"][-1]["estimate_us"]
    assert small["total_us"] > 2 * large["total_us"]
    assert not shown.session.schedule.steps, "the schedule stays as it is"


def test_it_survives_undo_sizes_and_other_schedules(shown: Front) -> None:
    shown.ask("target", wait=True, gpu="T4")
    shown.ask("strategy", wait=True, name="auto")
    count = len(calls(shown))
    shown.ask("strategy_step", to=count, whole=True)
    assert shown.panes["strategy"]["at"] == count
    for kind, fields in (("undo", {}), ("redo", {}), ("goto", {"state": "h0"}), ("sizes", {"sizes": {"M": 32}})):
        shown.ask(kind, wait=True, **fields)
        assert (shown.panes["target"]["gpu"], shown.panes["strategy"]["gpu"]) == ("T4", "T4")
    shown.ask("strategy", wait=True, name="default")
    assert shown.panes["strategy"]["gpu"] == "T4"


def test_the_schedule_shown_keeps_its_place_where_the_steps_are_the_same() -> None:
    f = front("bias_gelu", M=4096, N=4096)
    f.ask("ready", wait=True)
    f.ask("strategy", wait=True, name="default")
    f.ask("strategy_step", to=2)
    before = f.panes["strategy"]["steps"][-1]["estimate_us"]
    f.ask("target", wait=True, gpu="L4")
    assert (f.panes["strategy"]["at"], f.panes["strategy"]["gpu"]) == (2, "L4")
    assert f.panes["strategy"]["steps"][-1]["estimate_us"] > 2 * before


def test_a_pane_made_before_does_not_replace_a_newer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that ends while a request's panes are made is shown as ended: its report comes after them, or is in them."""
    f = front("bias_gelu", M=16, N=16)
    f.ask("ready", wait=True)
    f.ask("strategy", wait=True, name="default")
    f.ask("strategy_step", to=2)
    real = planning.stitching_pane

    def slow(*given: Any) -> Any:  # made after the strategies pane, in the same answer
        task = f.dispatcher._planning._task
        assert task is not None
        task.wait(1.5)
        return real(*given)

    monkeypatch.setattr(planning, "stitching_pane", slow)
    f.ask("target", wait=True, gpu="L4")
    assert (f.panes["strategy"]["status"], f.panes["strategy"]["at"]) == ("done", 2)


def test_unknown_names_are_refused_with_those_there_are(shown: Front) -> None:
    problem = shown.problem("target", gpu="Voodoo 2")
    assert problem["what"] == "No GPU called 'Voodoo 2' is in the catalogue."
    assert all(name in problem["why"] for name in catalogue())
    for wrong in (None, 3, ["T4"]):
        assert "a GPU is asked for by its name" in shown.problem("target", gpu=wrong)["what"]
    assert shown.session.gpu.name == "H200"
    shown.ask("target", wait=True, gpu="nvidia l4")
    assert shown.panes["target"]["gpu"] == "L4", "the driver's names are known, too"


def test_a_cell_may_choose(shown: Front) -> None:
    shown.ask("strategy", wait=True, name="auto")
    before = calls(shown)
    shown.session.aim("T4")
    assert shown.dispatcher.wait()
    assert shown.panes["target"]["gpu"] == shown.panes["strategy"]["gpu"] == "T4"
    assert calls(shown) != before


def test_the_edges_are_forgotten_and_tried_for_the_gpu() -> None:
    f = front("softmax", M=16, N=65536)
    f.ask("ready", wait=True)
    f.ask("stitching", wait=True)
    large = f.panes["stitching"]
    f.ask("target", wait=True, gpu="T4")
    pane = f.panes["stitching"]
    assert (pane["gpu"], pane["status"], pane["edges"], pane["model"]) == ("T4", "idle", [], None)
    f.ask("stitching", wait=True)
    small = f.panes["stitching"]
    start = f.session.schedule
    assert small["model"]["total_us"] == pytest.approx(stitching(start, gpu="T4").total_us)
    assert small["model"]["total_us"] > 1.5 * large["model"]["total_us"]
    known = {(e.id, o.scheme): o for e in edges(start, "T4") for o in e.options}
    for edge in small["edges"]:
        for option in edge["options"]:
            if option["applies"]:
                assert option["total_us"] == pytest.approx(known[edge["id"], option["scheme"]].total_us)
    choices = {"peak->total": "cut"}
    price = f.data("stitch_price", choices=choices)
    assert price["total_us"] == pytest.approx(stitching(start, choices, "T4").total_us)
    f.ask("stitch_apply", wait=True, choices=choices)
    assert [str(s) for s in f.session.schedule.steps] == [str(s) for s in stitching(start, choices, "T4").schedule.steps]
    assert f.panes["strategy"]["gpu"] == "T4"
    f.ask("undo")
    f.ask("target", wait=True, gpu="H200")
    assert (f.panes["strategy"]["gpu"], f.panes["strategy"]["total_us"]) == (
        "H200", pytest.approx(stitching(start, choices, "H200").total_us)), "the choices stay"
    assert not f.session.schedule.steps, "made again, but not applied again"


def test_the_cuda_text_the_export_and_the_limits_are_those_of_the_gpu() -> None:
    f = front("matmul", "split('i', 64)", "bind('i', 'block.x')", "bind('i.i', 'thread.x')", M=128, N=64, K=512)
    f.ask("ready", wait=True)
    f.ask("target", wait=True, gpu="T4")
    assert (f.panes["cuda"]["arch"], f.panes["cuda"]["problem"]) == ("sm_75", None)
    assert "Made for T4 (sm_75)." in f.data("export", what="cu")["text"]
    f.ask("apply", call="stage('a', 'i')")
    problem = f.panes["cuda"]["problem"]
    assert problem["what"] == "The launch is too big for the T4."
    assert problem["why"] == "shared memory per block: 131,072 bytes, limit 65,536"
    assert f.problem("export", what="cu")["what"] == problem["what"]
    f.ask("target", wait=True, gpu="H200")
    assert (f.panes["cuda"]["arch"], f.panes["cuda"]["problem"]) == ("sm_90", None)


@pytest.mark.parametrize("name", ["roofline", "occupancy", "partials"])
def test_figures_are_drawn_for_the_gpu_unless_they_have_another(name: str) -> None:
    f = Front(Session(spread("rows")))
    f.ask("ready", wait=True)

    def shown(**options: str) -> str:
        found = f.data("figure", name=name, options=options)
        return str((found["title"], found["note"], found["table"]))

    large = f.data("figure", name=name, options={})
    f.ask("target", wait=True, gpu="T4")
    assert "T4" in shown()
    assert "H200" not in shown()
    assert "L4" in shown(gpu="L4")
    changed = f.data("figure", name=name, options={}, have=large["sign"])
    assert changed["options"][0]["labels"][0] == "target: T4" or changed["options"][1]["labels"][0] == "target: T4"


def test_states_are_compared_on_the_gpu() -> None:
    f = front("matmul", "split('i', 64)", "bind('i', 'block.x')", "bind('i.i', 'thread.x')", M=128, N=64, K=512)
    f.ask("ready", wait=True)
    f.ask("target", wait=True, gpu="T4")
    rows = {row[0]: row[1:] for row in f.data("compare", a="h2", b="h3")["rows"]}
    assert "floor on the T4" in rows
    assert "floor on the H200" not in rows


def test_the_ways_to_combine_are_judged_for_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    real = pane.ways

    def noted(start: Any, leaf: str, which: Any) -> tuple[Way, ...]:
        asked.append(which.name)
        return real(start, leaf, which)

    monkeypatch.setattr(pane, "ways", noted)
    f = Front(Session(spread("rows")))
    f.ask("ready", wait=True)
    moves = f.moves("k")
    judged: list[str] = []
    monkeypatch.setattr("explorer.app.judging.moves_at", lambda *_: judged.append("again") or iter(()))
    f.ask("target", wait=True, gpu="T4")
    assert asked[-2:] == ["H200", "T4"]
    assert (f.panes["moves"]["moves"], f.panes["moves"]["pending"], judged) == (moves, False, []), "moves know no GPU"
    assert f.panes["moves"]["ways"]


def test_the_gpu_of_the_machine_is_planned_for_until_one_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = {"name": "cpu", "label": "CPU", "available": True, "why": ""}
    here = {"name": "cuda", "label": "NVIDIA L4", "available": True, "why": ""}
    monkeypatch.setattr(running, "devices", lambda ask_driver=True: [here, cpu])
    monkeypatch.setattr(running, "gpu_is_likely", lambda: True)
    monkeypatch.setattr(running, "installed_gpu", lambda: "L4")
    f = front("sum_rows", M=16, N=262144)
    f.ask("ready", wait=True)
    assert f.panes["target"]["gpu"] == "L4"
    assert [g["name"] for g in f.panes["target"]["gpus"] if g["here"]] == ["L4"]
    assert f.panes["cuda"]["arch"] == "sm_89"
    f.ask("target", wait=True, gpu="H200")
    f.ask("ready", wait=True)
    assert f.panes["target"]["gpu"] == "H200"
    assert [g["name"] for g in f.panes["target"]["gpus"] if g["here"]] == ["L4"]


def test_the_driver_is_asked_for_its_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    class Machine:
        name = "NVIDIA GeForce RTX 4090"

        def installed(self) -> Machine:
            return self

    machine = Machine()
    monkeypatch.setattr(devices.cuda, "available", lambda: "")
    monkeypatch.setattr(devices.cuda, "device", lambda: machine)
    assert devices.installed_gpu() == "RTX 4090"
    machine.name = "NVIDIA Titan X"
    assert devices.installed_gpu() == "", "not in the catalogue: the default stays"
    monkeypatch.setattr(devices.cuda, "available", lambda: "no GPU")
    assert devices.installed_gpu() == ""


def test_what_is_being_made_is_made_for_the_new_gpu(shown: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, go_on = threading.Event(), threading.Event()
    asked: list[str] = []

    def slow(start, name, gpu, tell):  # type: ignore[no-untyped-def]
        asked.append(gpu.name)
        inside.set()
        assert go_on.wait(10)
        return recipe(start, name, gpu, tell)

    monkeypatch.setattr(planning, "recipe", slow)
    shown.ask("strategy", name="default")
    assert inside.wait(10)
    shown.ask("target", gpu="T4")
    go_on.set()
    assert shown.dispatcher.wait()
    assert asked == ["H200", "T4"]
    assert (shown.panes["strategy"]["status"], shown.panes["strategy"]["gpu"]) == ("done", "T4")


def test_what_was_stopped_is_not_made_again(shown: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    monkeypatch.setitem(recipes.MAKERS, "auto", lambda start, gpu, tell: go_on.wait(10) and tell("never"))
    shown.ask("strategy", name="auto")
    shown.ask("strategy_stop")
    go_on.set()
    shown.ask("target", wait=True, gpu="T4")
    assert (shown.panes["strategy"]["status"], shown.panes["strategy"]["steps"]) == ("idle", [])


def test_a_stop_comes_between_two_moves_of_a_strategy(monkeypatch: pytest.MonkeyPatch) -> None:
    start, taken, tasks = schedule("sum_rows", M=4, N=64), list[int](), list[Task]()

    def stopped_at_two(written: Any) -> Any:
        for _ in range(5):
            written = written.split("k", 2)
            taken.append(len(written.steps))
            if len(taken) == 2:
                tasks[0].cancel()
        return written

    monkeypatch.setattr(recipes, "default", stopped_at_two)
    tasks.append(Task(lambda tell: recipe(start, "default", gpu("T4"), tell), lambda progress: None))
    tasks[0].start()
    assert tasks[0].wait()
    assert taken == [1, 2]
    assert (tasks[0].progress.status, tasks[0].progress.result) == ("cancelled", None)


def test_a_stop_comes_between_two_moves_of_an_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    start, tasks, after = schedule("softmax", M=8, N=64), list[Task](), list[str]()
    real = Builder.do

    def noted(builder: Builder, name: str, *arguments: object, **options: object) -> Builder:
        if tasks and tasks[0].progress.doing.startswith("peak → total"):
            tasks[0].cancel()
        done = real(builder, name, *arguments, **options)
        if tasks and not tasks[0].running:
            after.append(name)
        return done

    monkeypatch.setattr(Builder, "do", noted)
    tasks.append(Task(lambda tell: stitches.tried(start, gpu("T4"), tell), lambda progress: None))
    tasks[0].start()
    assert tasks[0].wait()
    assert (tasks[0].progress.status, tasks[0].progress.result.edges, after) == ("cancelled", (), [])
