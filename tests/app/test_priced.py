"""One plan has one price, wherever the explorer shows it, on the GPU that is planned for."""

from __future__ import annotations

from pathlib import Path

import pytest

import explorer as ex
from explorer.strategies.price import price

from .front import Front, front, text_of


@pytest.fixture
def shown(own_memory: Path) -> Front:
    f = front("softmax", M=6, N=64)
    f.ask("ready", wait=True)
    return f


@pytest.mark.parametrize("name", ["H200", "T4"])
def test_one_plan_has_one_price(shown: Front, name: str) -> None:
    f, gpu = shown, ex.gpu(name)
    f.ask("target", gpu=name, wait=True)
    f.ask("stitching", wait=True)
    assert f.panes["stitching"]["shown_us"] is None, "nothing is shown but the program"
    f.ask("strategy", name="stitch", wait=True)
    made = f.panes["strategy"]
    f.ask("strategy_step", to=len(made["steps"]), whole=True, wait=True)
    wanted = price(f.session.schedule.plan, gpu).total_us
    answered = f.data("stitch_price", choices=f.panes["stitching"]["model"]["chosen"])
    f.ask("run", wait=True)
    run, state = f.panes["run"], next(s for s in f.panes["history"]["states"] if s["id"] == f.panes["history"]["current"])
    f.ask("search", trials=3, wait=True)
    mine = next(t for t in f.panes["search"]["trials"] if t["label"] == "as given")
    figures = {
        "the strategy": made["total_us"], "its last step": made["steps"][-1]["estimate_us"],
        "its terms": sum(us for _, us in made["terms"]), "the stitching": f.panes["stitching"]["model"]["total_us"],
        "a choice of schemes": answered["total_us"], "the run": run["priced_us"], "the history": state["priced_us"],
        "the search": mine["estimate_us"], "what is shown, beside its edges": f.panes["stitching"]["shown_us"],
    }
    assert figures == {one: pytest.approx(wanted, rel=1e-6) for one in figures}
    assert {run["gpu"], state["gpu"], made["gpu"], f.panes["search"]["gpu"], f.panes["stitching"]["gpu"]} == {gpu.name}


def test_a_search_on_the_cpu_claims_no_gain(shown: Front) -> None:
    shown.ask("search", trials=3, wait=True)
    pane = shown.panes["search"]
    assert pane["status"] == "done"
    told = text_of(pane["html"])
    assert told.startswith("· the variants by their time on the CPU, which says nothing about a GPU")
    assert "faster" not in told.replace("no variant is faster", "")  # which the clock may say, too
    rows = [text_of(t["html"]) for t in pane["trials"] if t["time_us"]]
    assert rows
    assert all(" on the CPU " in row and f" on the {pane['gpu']}, by the model" in row for row in rows)
