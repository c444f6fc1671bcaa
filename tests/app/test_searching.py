"""A measured search in the explorer: told variant by variant, stopped with the best so far, any variant taken as one action."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from explorer.app import searching
from explorer.run.search.measured import searched
from explorer.run.search.result import SearchResult
from explorer.strategies.auto import auto
from explorer.system.cancel import Cancel, Cancelled
from tests.run.search.test_search import Clock

from .front import Front, front, text_of


class Labelled(Clock):
    """Times by the number of the variant: the third is the fastest, the second is wrong."""

    def __init__(self) -> None:
        super().__init__({"2": 5.0}, floor_us=None)
        self.bad = {"1": "wrong: y[0]"}
        self.seen: list[Any] = []
        self.name_of = self.number

    def number(self, steps: Any) -> str:
        if steps not in self.seen:
            self.seen.append(steps)
        return str(self.seen.index(steps))


@pytest.fixture
def shown(own_memory: Path) -> Front:
    f = front("softmax", M=6, N=64)
    f.ask("ready", wait=True)
    return f


@pytest.fixture
def by_clock(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Searches by a clock of the test's own; what each was asked."""
    asked: list[dict[str, Any]] = []

    def search(schedule: Any, *, device: str, gpu: Any, **options: Any) -> SearchResult:
        asked.append({"device": device, "gpu": gpu, **options})
        return searched(schedule, Labelled(), remember=True, **options)

    monkeypatch.setattr(searching, "search", search)
    return asked


def starts(trial: dict[str, Any]) -> bool:
    return "what Auto makes" in text_of(trial["html"])


def test_every_variant_is_shown_the_best_first(shown: Front, by_clock: list[dict[str, Any]]) -> None:
    assert shown.panes["search"]["status"] == "idle"
    shown.ask("search", wait=True, trials=5)
    pane = shown.panes["search"]
    assert (pane["status"], pane["total"], len(pane["trials"])) == ("done", 5, 5)
    assert pane["trials"][0]["number"] == 2
    first, *_, last = pane["trials"]
    assert (first["best"], first["time_us"], starts(first)) == (True, 5.0, False)
    assert f"★ {first['label']} 5 µs (5 to 5) on the CPU" in text_of(first["html"])
    assert (last["number"], last["time_us"]) == (1, None)
    assert text_of(last["html"]).split() == f"✗ {last['label']} wrong: y[0]".split()
    assert [starts(t) for t in pane["trials"]].count(True) == 1
    assert [re.findall(r"width:([\d.]+)%", t["html"]) for t in pane["trials"]] == [["50.0"], *[["100.0"]] * 3, ["0.0"]]
    told = text_of(pane["html"])
    assert told.startswith("✓ 2.00× faster than the start")
    assert "5 variants, 1 of them failed; all were measured · clock: the test's own time" in told
    assert (pane["remembered"], "remembered" in told) == (False, False)
    assert by_clock[0]["device"] == "cpu"
    assert len(shown.session.history.states) == 1, "a search changes nothing"


def test_it_is_told_variant_by_variant(shown: Front, by_clock: list[dict[str, Any]]) -> None:
    told: list[tuple[int, float]] = []
    take = shown.take

    def listen(message: dict[str, Any], buffers: list[bytes]) -> None:
        take(message, buffers)
        pane = message.get("panes", {}).get("search")
        if pane and pane["status"] == "running" and pane["trials"]:
            told.append((len(pane["trials"]), pane["fraction"]))

    shown.dispatcher._send = listen
    shown.ask("search", wait=True, trials=4)
    assert [count for count, _ in told][:4] == [1, 2, 3, 4]
    assert [fraction for _, fraction in told][:4] == [0.25, 0.5, 0.75, 1.0]


def test_a_variant_is_taken_as_one_action(shown: Front, by_clock: list[dict[str, Any]]) -> None:
    start = shown.session.schedule
    shown.ask("apply", call="split('k', 4)")
    shown.ask("search", wait=True, trials=5)
    pane = shown.panes["search"]
    given = next(t for t in pane["trials"] if t["label"] == "as given")
    assert given["here"]
    shown.ask("search_apply", wait=True, trial=0)
    assert shown.session.schedule.steps == auto(start).steps
    assert shown.session.history.before(shown.session.history.current) == "h1", "undo goes back to what was shown"
    assert shown.panes["head"]["undo"] == f"search · {len(auto(start).steps)} steps"
    assert [t["here"] for t in shown.panes["search"]["trials"] if starts(t)] == [True]
    taken = [t["html"].partition(">")[0] for t in shown.panes["search"]["trials"] if t["here"]]
    assert all('aria-current="step"' in button and "shown now" in button for button in taken)
    shown.ask("undo")
    assert [t["label"] for t in shown.panes["search"]["trials"] if t["here"]] == ["as given"]
    shown.ask("undo")
    assert not any(t["here"] for t in shown.panes["search"]["trials"])
    shown.ask("search_apply", wait=True, trial=given["number"])
    assert [str(s) for s in shown.session.schedule.steps] == ["split('k', 4)"]


def test_what_was_searched_is_remembered_and_can_be_measured_again(shown: Front, by_clock: list[dict[str, Any]]) -> None:
    shown.ask("search", wait=True, trials=3)
    first = shown.panes["search"]
    shown.ask("search", wait=True, trials=3)
    again = shown.panes["search"]
    assert again["remembered"]
    assert "remembered from an earlier search" in text_of(again["html"])
    assert [t["time_us"] for t in again["trials"]] == [t["time_us"] for t in first["trials"]]
    shown.ask("search_apply", wait=True, trial=2)
    assert shown.session.schedule.steps
    shown.ask("search", wait=True, trials=3, again=True)
    assert not shown.panes["search"]["remembered"]
    assert [one["renew"] for one in by_clock] == [False, False, True]


def halting(inside: threading.Event, after: int) -> Callable[..., SearchResult]:
    """A search that waits, after so many variants, to be stopped."""
    def search(schedule: Any, *, cancel: Cancel, watch: Callable[..., None], device: str, gpu: Any,
               **options: Any) -> SearchResult:
        clock = Labelled()
        measure = clock.time

        def time(several: Sequence[Any], repeats: int) -> Any:
            if len(clock.rounds) == after:
                inside.set()
                while not cancel.asked:
                    threading.Event().wait(0.01)
                raise Cancelled("The run was cancelled.")
            return measure(several, repeats)

        clock.time = time  # type: ignore[method-assign]
        return searched(schedule, clock, cancel=cancel, watch=watch, **options)

    return search


def test_stopping_keeps_the_best_so_far(shown: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = threading.Event()
    monkeypatch.setattr(searching, "search", halting(inside, 2))
    shown.ask("search", trials=6)
    assert inside.wait(20)
    for kind in ("run", "search"):
        assert [m["problem"]["what"] for m in shown.ask(kind, trials=6) if m["kind"] == "problem"] == ["a search is going on"]
    shown.ask("search_stop", wait=True)
    pane = shown.panes["search"]
    assert pane["status"] == "done"
    assert "; cancelled: the best so far" in text_of(pane["html"])
    assert [t["time_us"] for t in pane["trials"] if t["time_us"]] == [5.0, 10.0]
    shown.ask("search", trials=6)
    shown.dispatcher.close()
    assert shown.dispatcher.wait(), "closing ends it, too"


def test_stopping_before_anything_is_measured(shown: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = threading.Event()
    monkeypatch.setattr(searching, "search", halting(inside, 0))
    shown.ask("search", trials=6)
    assert inside.wait(20)
    shown.ask("search_stop", wait=True)
    assert (shown.panes["search"]["status"], shown.panes["search"]["trials"]) == ("cancelled", [])


def test_other_sizes_have_not_been_searched(shown: Front, by_clock: list[dict[str, Any]]) -> None:
    shown.ask("search", wait=True, trials=3)
    shown.ask("sizes", sizes={"M": 8})
    assert (shown.panes["search"]["status"], shown.panes["search"]["trials"]) == ("idle", [])
    assert shown.problem("search_apply", trial=0)["what"] == "nothing has been searched at these sizes"
    shown.ask("undo")
    shown.ask("sizes", sizes={"M": 6})
    assert shown.panes["search"]["status"] == "done"


@pytest.mark.parametrize("fields", [{}, {"trials": 0}, {"trials": 201}, {"trials": "many"}, {"trials": True}])
def test_a_number_that_is_none_is_refused(shown: Front, fields: dict[str, Any]) -> None:
    assert "1 to 200 variants" in shown.problem("search", **fields)["what"]


@pytest.mark.parametrize("trial", [None, -1, 3, "0", True])
def test_a_variant_that_is_none_is_refused(shown: Front, by_clock: list[dict[str, Any]], trial: Any) -> None:
    shown.ask("search", wait=True, trials=3)
    assert shown.problem("search_apply", trial=trial)["what"].startswith("there is no variant")


def test_a_search_that_fails_says_why(shown: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    shown.session.device = "cuda"
    shown.ask("search", wait=True, trials=3)
    pane = shown.panes["search"]
    assert (pane["status"], pane["problem"]["what"]) == ("failed", "There is no GPU to search on.")


def test_the_real_search_on_the_cpu_device(shown: Front) -> None:
    shown.ask("search", wait=True, trials=2)
    pane = shown.panes["search"]
    assert pane["status"] == "done"
    assert "cpu: CPU device time, not GPU time" in text_of(pane["html"])
    assert all(t["time_us"] > 0 and "✗" not in t["html"] for t in pane["trials"])
