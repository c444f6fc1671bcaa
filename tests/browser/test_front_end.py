"""The front end alone: a test plays the kernel, so that every message and its order are known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from explorer.run.counterexample.result import Counterexample
from explorer.views.counterexamples import counter_box
from explorer.views.style import cards, table
from tests.browser import panes
from tests.browser.stage import Stage


class Kernel(Stage):
    """A stage whose kernel is the test."""

    def sent(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.page.evaluate("() => window.sent") if one["kind"] == kind]

    def wait(self, kind: str, count: int = 1) -> dict[str, Any]:
        """The newest request of a kind, once there are `count`."""
        self.page.wait_for_function(
            "([kind, count]) => window.sent.filter((one) => one.kind === kind).length >= count", arg=[kind, count]
        )
        return self.sent(kind)[-1]

    def panes(self, request: dict[str, Any], **changed: Any) -> None:
        self.tell({"kind": "panes", "serial": request["serial"], "panes": changed})

    def answer(self, request: dict[str, Any], data: Any) -> None:
        self.tell({"kind": "answer", "serial": request["serial"], "to": request["kind"], "data": data})

    def refuse(self, request: dict[str, Any], problem: dict[str, Any]) -> None:
        self.tell({"kind": "problem", "serial": request["serial"], "to": request["kind"], "problem": problem})


@pytest.fixture
def kernel(page: Page) -> Iterator[Kernel]:
    stage = Kernel(page)
    stage.panes(stage.wait("ready"), **panes.everything())
    stage.answer(stage.wait("figure"), panes.figure())
    yield stage
    assert not stage.faults
    assert page.evaluate("() => window.harmed") is None, "a text was taken for markup"


def test_text_is_never_markup(kernel: Kernel) -> None:
    expect(kernel.page.locator(".signature")).to_have_text(panes.HOSTILE)
    expect(kernel.page.locator("[role=tree][aria-label=loops] .row[data-node=S0] .code")).to_have_text(panes.HOSTILE)
    kernel.page.locator("li[data-name=fuse] .mmain").click()
    assert kernel.page.locator(".exw img").count() == 0


def test_selection_is_marked_everywhere_before_the_kernel_answers(kernel: Kernel) -> None:
    page = kernel.page
    page.locator("[role=tree][aria-label=loops] .row[data-node=i]").click()
    expect(page.locator("[role=tree][aria-label=loops] .row[aria-selected=true]")).to_have_attribute("data-node", "i")
    assert page.locator(".cl.on").evaluate_all("all => all.map(one => one.querySelector('.no').textContent)") == ["3", "4", "5"]
    expect(page.locator("tr.on")).to_have_attribute("data-node", "i")
    assert kernel.wait("select")["node"] == "i"


def test_a_line_of_cuda_selects_the_innermost_node(kernel: Kernel) -> None:
    kernel.page.locator(".cl").nth(4).click()
    first = kernel.wait("select")
    assert first["node"] == "S0"
    kernel.panes(first, selection={"node": "S0"})
    kernel.page.locator(".cl").nth(2).click()
    assert kernel.wait("select", 2)["node"] == "i"


def test_a_late_answer_does_not_move_the_selection_back(kernel: Kernel) -> None:
    kernel.page.locator("[role=tree][aria-label=loops] .row[data-node=i]").click()
    first = kernel.wait("select")
    kernel.page.locator("[role=tree][aria-label=loops] .row[data-node=n]").click()
    kernel.panes(first, selection={"node": "i"})
    expect(kernel.page.locator("[role=tree][aria-label=loops] .row[aria-selected=true]")).to_have_attribute("data-node", "n")
    kernel.panes(kernel.wait("select", 2), selection={"node": "n"})
    expect(kernel.page.locator("[role=tree][aria-label=loops] .row[aria-selected=true]")).to_have_attribute("data-node", "n")


def test_a_preview_asked_anew_drops_the_older_answer(kernel: Kernel) -> None:
    page = kernel.page
    page.locator("li[data-name=split] .mmain").click()
    first = kernel.wait("preview")
    page.locator("[data-field=factor]").fill("16")
    second = kernel.wait("check")
    assert second["arguments"] == {"loop": "k", "factor": 16}
    kernel.answer(
        second,
        {
            "call": "split('k', 16)",
            "applies": True,
            "diff": [{"sign": "+", "text": "newer"}],
            "problem": None,
            "errors": {},
            "effects": [],
        },
    )
    kernel.answer(
        first,
        {
            "call": "split('k', 4)",
            "applies": True,
            "diff": [{"sign": "+", "text": "older"}],
            "problem": None,
            "errors": {},
            "effects": [],
        },
    )
    expect(page.locator(".mdetail .dl.add .dt")).to_have_text("newer")
    expect(page.locator(".mdetail .mapply .call")).to_have_text(".split('k', 16)")


def test_a_wrong_field_says_so_beside_itself(kernel: Kernel) -> None:
    page = kernel.page
    page.locator("li[data-name=split] .mmain").click()
    expect(page.locator(".field:has([data-field=factor]) .range")).to_have_text("2 … 64")
    page.locator("[data-field=factor]").fill("1000")
    kernel.answer(
        kernel.wait("check"),
        {"call": "", "applies": False, "diff": [], "problem": None, "errors": {"factor": "at most 64"}, "effects": []},
    )
    expect(page.locator(".field:has([data-field=factor]) .err")).to_have_text("at most 64")
    expect(page.locator("[data-field=factor]")).to_have_attribute("aria-invalid", "true")


def test_enter_applies_the_move_and_the_form(kernel: Kernel) -> None:
    page = kernel.page
    page.locator("li[data-name=reverse] .mmain").focus()
    page.keyboard.press("Enter")
    assert kernel.wait("apply")["call"] == "reverse('k')"
    page.locator("li[data-name=split] .mmain").click()
    page.locator("[data-field=factor]").fill("8")
    page.keyboard.press("Enter")
    request = kernel.wait("apply", 2)
    assert (request["name"], request["arguments"]) == ("split", {"loop": "k", "factor": 8})


def test_a_refused_move_shows_its_pair_and_runs_its_counterexample(kernel: Kernel) -> None:
    page = kernel.page
    row = page.locator("li[data-name=fuse]")
    row.locator(".mmain").click()
    expect(row.locator(".problem dl")).to_contain_text("S0[0] → S1[0, 1] on y[0]")
    row.get_by_role("button", name="run the counterexample").click()
    found = Counterexample(
        "fuse('k', 'n')", True, f"y[0] is wrong {panes.HOSTILE}", (("M", 3),), "y", (0,), "1", "3",
        (("y[0]", "1", "3", "wrong"), ("y[1]", "3", "3", "right")), inputs=(("x", f"x[0] = 2 {panes.HOSTILE}"),),
        trace=(("S0[0]", "0"), ("S1[0, 1]", "3")), text=panes.HOSTILE)  # fmt: skip
    kernel.answer(
        kernel.wait("counterexample"),
        {"call": found.step, "caught": True, "html": counter_box(found)},
    )
    box = page.locator(".executed .counterbox")
    expect(box.locator(".ocell.wrong")).to_contain_text("✗ 1")
    expect(box.locator(".ocell")).to_have_count(2)
    expect(box).to_contain_text("M = 3")
    expect(box).to_contain_text("x[0] = 2")
    expect(box.locator(".oorder").first).to_contain_text("S1[0, 1] leaves y[0] = 3")
    expect(box.locator(".cudatext")).to_contain_text(panes.HOSTILE)
    expect(row.locator(".counter .what")).to_contain_text(f"✗ y[0] is wrong {panes.HOSTILE} (drawn in the domain)")
    row.locator(".mrow .hint").click()
    assert kernel.wait("apply")["call"] == "cut('k', 1)"


def test_redrawing_keeps_elements_and_focus(kernel: Kernel) -> None:
    page = kernel.page
    page.locator("[role=tree][aria-label=loops] .row[data-node=k]").click()
    page.evaluate("() => { for (const row of document.querySelectorAll('.row')) row.kept = true; }")
    loops = panes.everything()["loops"]
    loops.insert(3, panes.row("k.i", 3, "for k.i"))
    kernel.panes({"serial": 10_000}, loops=loops)
    expect(page.locator(".tree:visible .row")).to_have_count(6)
    assert page.evaluate(
        "() => [...document.querySelectorAll('[role=tree][aria-label=loops] .row')]"
        ".filter((row) => !row.kept).map((row) => row.dataset.node)"
    ) == ["k.i"]
    assert page.evaluate("() => document.activeElement.dataset.node") == "k"
    kernel.panes({"serial": 10_000}, loops=[row for row in loops if row["node"] != "k"], selection={"node": "i"})
    assert page.evaluate("() => document.activeElement.dataset.node") == "i"


def test_the_tree_walks_and_folds_by_keys(kernel: Kernel) -> None:
    page = kernel.page
    page.locator("[role=tree][aria-label=loops] .row[data-node=f]").click()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("[role=tree][aria-label=loops] .row[data-node=i]")).to_have_attribute("aria-expanded", "false")
    expect(page.locator("[role=tree][aria-label=loops] .row[data-node=k]")).to_be_hidden()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("() => document.activeElement.dataset.node") == "n"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("() => document.activeElement.dataset.node") == "k"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("() => document.activeElement.dataset.node") == "i"


def test_unsaved_edits_are_kept_and_an_error_stands_at_its_line(kernel: Kernel) -> None:
    page = kernel.page
    page.get_by_role("tab", name="Script").click()
    area = page.get_by_label("the schedule as Python")
    area.fill("s = f.schedule(M=4)\ns = s.splat('k')")
    request = None
    page.locator(".script").get_by_role("button", name="Apply").click()
    request = kernel.wait("script")
    kernel.panes(
        request,
        script={"text": request["text"], "steps": [], "error": {"line": 2, "problem": panes.problem("there is no splat")}},
    )
    expect(page.locator(".serror")).to_contain_text("line 2; nothing has changed")
    expect(page.locator(".gutter .bad")).to_have_text("2")
    expect(area).to_have_attribute("aria-invalid", "true")
    kernel.panes({"serial": 10_000}, script={"text": "s = f.schedule(M=4)", "steps": [["a", 1]], "error": None})
    expect(area).to_have_value("s = f.schedule(M=4)\ns = s.splat('k')")
    expect(page.locator(".script [role=status]")).to_contain_text("unsaved edits, kept")
    page.get_by_role("button", name="drop my edits").click()
    expect(area).to_have_value("s = f.schedule(M=4)")


def test_history_branches_take_lanes_and_any_two_are_compared(kernel: Kernel) -> None:
    page = kernel.page
    place = {one: page.locator(f"[data-state={one}]").bounding_box() or {} for one in "abcd"}
    assert place["a"]["y"] == place["b"]["y"] == place["c"]["y"] < place["d"]["y"]
    assert place["b"]["x"] == place["d"]["x"] < place["c"]["x"]
    page.locator("[data-state=d]").click()
    assert kernel.wait("goto")["state"] == "d"
    page.get_by_role("button", name="compare with").click()
    page.locator("[data-state=c]").click()
    request = kernel.wait("compare")
    assert {request["a"], request["b"]} == {"b", "c"}
    kernel.answer(
        request, {"a": "c", "b": "b", "loops": [{"sign": "+", "text": "for k"}], "cuda": [], "rows": [["threads", "1", "32"]]}
    )
    expect(page.locator(".compared tbody")).to_contain_text("threads132")


def test_history_is_walked_by_keys_and_renamed(kernel: Kernel) -> None:
    page = kernel.page
    page.locator("[data-state=b]").focus()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("() => document.activeElement.dataset.state") == "a"
    page.keyboard.press("ArrowDown")
    assert page.evaluate("() => document.activeElement.dataset.state") == "d"
    page.keyboard.press("F2")
    page.keyboard.type("mine")
    page.keyboard.press("Enter")
    request = kernel.wait("rename")
    assert (request["state"], request["title"]) == ("d", "mine")


def test_a_run_shows_progress_cancel_and_the_wrong_cell(kernel: Kernel) -> None:
    page = kernel.page
    page.get_by_role("button", name="Run and time").click()
    request = kernel.wait("run")
    assert request["time"] is True
    kernel.panes(request, run={**panes.RUN, "status": "running", "doing": "compiling", "fraction": 0.25})
    expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "25")
    page.locator(".run .cancel").click()
    kernel.panes(
        kernel.wait("cancel"),
        run={
            **panes.RUN,
            "status": "done",
            "correct": False,
            "verdict": "y differs",
            "html": cards(("cell", f"y[3] {panes.HOSTILE}", ""), kind="wrong")
            + table(("against", "time", "ratio", ""), [("previous", "20.0 µs", "0.55 ×", "faster")], kind="against"),
            "samples": {"warm": [10.0, 11.0, 12.5]},
        },
    )
    expect(page.locator(".verdict")).to_have_text("✗ y differs")
    expect(page.locator("dl.wrong")).to_contain_text("y[3]")
    expect(page.get_by_role("img", name="median 11.0 µs")).to_be_visible()
    expect(page.locator(".against tbody")).to_contain_text("0.55 ×faster")
    expect(page.get_by_role("progressbar")).to_be_hidden()


@pytest.mark.parametrize("width", [1440, 900])
def test_the_cuda_text_has_a_key(kernel: Kernel, width: int) -> None:
    page = kernel.page
    page.set_viewport_size({"width": width, "height": 1000})
    page.locator(".exw .headrun").focus()
    page.keyboard.press("c")
    assert page.evaluate("() => document.activeElement.className") == "lines"
    expect(page.locator(".cuda .lines")).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".cl.cursor")).to_be_visible()


@pytest.mark.parametrize("width", [1440, 1170, 700])
def test_the_head_holds_still_while_something_goes_on(kernel: Kernel, width: int) -> None:
    page = kernel.page
    page.set_viewport_size({"width": width, "height": 1000})
    boxes = """() => ['.head', '.main', '.head .signature', '.head .badges'].map((one) =>
        document.querySelector(`.exw ${one}`).getBoundingClientRect()).map((box) => [box.x, box.y].map(Math.round))"""
    before = page.evaluate(boxes)
    head = {**panes.everything()["head"], "busy": "running at sizes that do not divide"}
    kernel.panes(kernel.wait("ready"), head=head)
    busy = page.locator(".head .busy")
    expect(busy).to_have_text(head["busy"])
    assert page.evaluate(boxes) == before
    assert busy.get_attribute("title") == head["busy"], "what is cut can be read"


def test_times_have_no_more_digits_than_their_unit_needs(kernel: Kernel) -> None:
    for time_us, words in ((999.7, "1.00 ms"), (0.9997, "1.00 µs"), (16770.0, "16.8 ms"), (2.06, "2.06 µs")):
        states = [panes.state("0", None, time_us=time_us, device="NVIDIA H200")]
        kernel.panes(kernel.wait("ready"), history={"states": states, "current": "0", "path": ["0"]})
        expect(kernel.page.locator(".state .sfacts b")).to_have_text(words)


def test_a_problem_is_shown_inside_and_can_be_dismissed(kernel: Kernel) -> None:
    page = kernel.page
    page.get_by_role("button", name="undo").click()
    kernel.refuse(kernel.wait("undo"), panes.problem("nothing to undo"))
    expect(page.locator(".alert")).to_contain_text("nothing to undo")
    page.get_by_role("button", name="dismiss").click()
    expect(page.locator(".alert")).to_be_empty()


def test_undo_and_redo_name_the_action_and_have_keys(kernel: Kernel) -> None:
    page = kernel.page
    expect(page.get_by_role("button", name="undo split k")).to_be_enabled()
    expect(page.get_by_role("button", name="redo")).to_be_disabled()
    page.locator("[role=tree][aria-label=loops] .row[data-node=k]").click()
    page.keyboard.press("Control+z")
    kernel.wait("undo")
    page.keyboard.press("Control+Shift+z")
    kernel.wait("redo")


def test_two_widgets_on_a_page_do_not_mix(kernel: Kernel) -> None:
    ids = kernel.page.evaluate("""async () => {
        const host = document.body.appendChild(document.createElement('div'));
        const source = [...document.querySelectorAll('script')].pop().textContent;
        const from = source.indexOf('[', source.indexOf('new Blob(')) + 1;
        const text = JSON.parse(source.slice(from, source.lastIndexOf('], { type')));
        const widget = (await import(URL.createObjectURL(new Blob([text], { type: 'text/javascript' })))).default;
        widget.render({ model: { send() {}, on() {}, off() {} }, el: host });
        const all = [...document.querySelectorAll('.exw [id]')].map((one) => one.id);
        return [all.length, new Set(all).size];
    }""")
    assert ids[0] == ids[1] > 20


def test_a_kernel_that_does_not_answer_is_told_from_one_that_has_gone(kernel: Kernel) -> None:
    page = kernel.page
    page.locator("[role=tree][aria-label=loops] .row[data-node=i]").click()
    expect(page.locator(".exw .silent")).to_contain_text("may be busy", timeout=12_000)
    assert page.locator(".exw .lost:visible").count() == 0
    kernel.panes(kernel.wait("select"), selection={"node": "i"})
    expect(page.locator(".exw .silent")).to_be_hidden()
    page.evaluate("() => window.lose()")
    expect(page.locator(".exw .lost")).to_be_visible()
    assert page.locator(".exw .main").evaluate("one => one.inert")
    before = len(page.evaluate("() => window.sent"))
    page.locator("[role=tree][aria-label=loops] .row[data-node=k]").click(force=True)
    assert len(page.evaluate("() => window.sent")) == before, "nothing is asked of a kernel that is not there"


def test_a_line_that_cannot_send_is_a_kernel_that_has_gone(kernel: Kernel) -> None:
    page = kernel.page
    page.evaluate("() => { window.broken = true; }")
    page.locator("[role=tree][aria-label=loops] .row[data-node=i]").click()
    expect(page.locator(".exw .lost")).to_be_visible()
