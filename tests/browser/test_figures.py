"""The figures with a real kernel side: five views follow one brush and lead back to it; what a refused step would make; PTX."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

import explorer as ex
from examples.matmul import schedule as tiled
from explorer.app import answers
from explorer.errors import CompilerMissing
from tests.app.front import schedule
from tests.browser.shown import Open
from tests.browser.stage import Stage


def settle(stage: Any) -> None:
    """Until both sides and the kernel's threads are quiet."""
    stage.settle(200)
    assert stage.dispatcher.wait()
    stage.settle(300)


def row(page: Page, node: str) -> Locator:
    return page.locator(f".exw [role=tree][aria-label=loops] .row[data-node='{node}']").first


def select(stage: Stage, node: str) -> None:
    row(stage.page, node).click()
    settle(stage)


def tab(stage: Stage, name: str) -> None:
    stage.page.get_by_role("tab", name=name, exact=True).click()
    settle(stage)


def traces(page: Page) -> list[dict[str, Any]]:
    """The traces of the figure that is open, as Plotly holds them."""
    return page.evaluate("""() => {
        const plot = [...document.querySelectorAll('.exw .vmain .plot')].find((one) => one.offsetParent);
        return plot.data.map(({ name, mode, x, y, customdata, selectedpoints, marker, textfont }) =>
            ({ name, mode, x, y, customdata, selectedpoints, size: marker?.size, width: marker?.line?.width,
               font: textfont?.size }));
    }""")


def cells(page: Page) -> dict[str, Any]:
    (found,) = [t for t in traces(page) if t["name"] == "instances"]
    return found


def shown_rows(page: Page) -> Locator:
    """The marked rows of the table of the view that is open."""
    return page.locator(".exw .vmain > :not([hidden]) tr.on")


def asked(page: Page) -> int:
    return page.evaluate("() => window.sent.filter((one) => one.kind === 'figure').length")


def outlined(page: Page) -> list[tuple[float, float]]:
    found = cells(page)
    return [(x, y) for x, y, w in zip(found["x"], found["y"], found["width"], strict=True) if w] if found["width"] else []


def tiles() -> ex.Schedule:
    s = schedule("matmul", "tile(['i', 'j'], (4, 4))", "bind('i', 'block.y')", "bind('j', 'block.x')", M=12, N=12, K=8)
    return s.bind("i.i", "thread.y").bind("j.i", "thread.x")


def test_the_domain_marks_the_instances_of_a_node_without_being_drawn_anew(opened: Open) -> None:
    stage = opened(tiles())
    page = stage.page
    select(stage, "S1")
    before = asked(page)
    assert outlined(page) == [(0, 0)], "one instance of a statement"
    select(stage, "i.i")
    assert asked(page) == before, "no new picture"
    assert sorted(outlined(page)) == [(x, y) for x in range(4) for y in range(4)], "one run of the loop is a tile"
    expect(page.locator(".exw .marked:visible")).to_have_text("Outlined: one run of i.i, 16 of 144 instances shown.")
    select(stage, "j.i")
    assert sorted(outlined(page)) == [(x, 0) for x in range(4)], "a row of the tile"
    select(stage, "i")
    assert outlined(page) == [], "all of them is no mark"
    expect(page.locator(".exw .marked:visible")).to_have_count(0)


def test_other_leaves_of_the_statement_are_dimmed(opened: Open) -> None:
    stage = opened(schedule("sum_rows", "cut('k', 3)", M=4, N=8))
    select(stage, "k")
    found = cells(stage.page)
    inside = [n for n, x in enumerate(found["x"]) if x < 3]
    assert len(found["x"]) == 32
    assert found["selectedpoints"] == inside
    select(stage, "k.2")
    assert cells(stage.page)["selectedpoints"] == [n for n in range(32) if n not in inside]


def test_a_click_on_an_instance_selects_and_marks_it(opened: Open) -> None:
    stage = opened(tiles())
    page = stage.page
    select(stage, "k")
    where = page.evaluate("""() => {
        const plot = document.querySelector('.exw .vmain .plot'), { xaxis, yaxis } = plot._fullLayout;
        const box = plot.getBoundingClientRect();
        return [5, 2].map((v, n) => [box.x + xaxis._offset, box.y + yaxis._offset][n] + [xaxis, yaxis][n].l2p(v));
    }""")
    page.mouse.move(*where)
    page.wait_for_timeout(200)
    page.mouse.click(*where)
    settle(stage)
    expect(row(page, "S1")).to_have_attribute("aria-selected", "true")
    assert outlined(page) == [(5, 2)]
    expect(page.locator(".exw .marked:visible")).to_contain_text("Outlined: S1[2, 5, 0]")


def test_five_views_follow_one_brush_and_lead_back(opened: Open) -> None:
    stage = opened(tiled(stages=2))
    page = stage.page
    select(stage, "a_s")
    lines = page.locator(".exw .cl.on").all_inner_texts()
    assert any("a_s[" in line for line in lines), "CUDA"
    for name, marked in (("Domain", "a_s"), ("Memory", "S1"), ("Pipeline", "a_s")):
        tab(stage, name)
        nodes = [(t["customdata"], t["selectedpoints"]) for t in traces(page) if t["customdata"]]
        assert any(marked in custom for custom, _ in nodes), f"{name} shows it (the access that wastes most is of S1)"
        for custom, points in nodes:
            assert points == [n for n, node in enumerate(custom) if node == marked], name
        assert name == "Memory" or shown_rows(page).count() > 0, f"a row of the table of {name}"
    tab(stage, "Roofline")
    expect(shown_rows(page).locator("td").first).to_have_text("a_s reads a")
    tab(stage, "Pipeline")
    # back: a bar of the pipeline, a row of a table, a line of the text
    rows = page.locator(".exw .vmain .astable:visible")
    rows.locator("summary").click()
    rows.locator("tr[data-node='S1'] .nodelink").first.click()
    settle(stage)
    expect(row(page, "S1")).to_have_attribute("aria-selected", "true")
    assert any("+=" in line for line in page.locator(".exw .cl.on").all_inner_texts())
    page.locator(".exw .cl", has_text="// b_s").last.click()
    settle(stage)
    assert page.locator(".exw [role=tree][aria-label=loops] .row[aria-selected=true]").get_attribute("data-node") != "S1"


def test_a_choice_of_what_is_shown_gives_way_to_the_brush(opened: Open) -> None:
    stage = opened(schedule("softmax", M=4, N=8))
    page = stage.page
    page.locator(".exw .vmain [data-option=statement]:visible").select_option(index=0)
    settle(stage)
    assert set(cells(page)["customdata"]) == {"S0"}
    select(stage, "S4")
    assert set(cells(page)["customdata"]) == {"S4"}


def test_digits_that_could_not_be_read_are_left_out(opened: Open) -> None:
    stage = opened(schedule("matmul", "bind('i', 'block.x')", "bind('j', 'thread.x')", M=64, N=64, K=8))
    page = stage.page
    size = page.locator(".exw .vmain [data-option=size]:visible")
    size.select_option("large")
    settle(stage)
    large = cells(page)
    assert large["mode"] == "markers"
    expect(page.locator(".exw .note:visible").last).to_contain_text("Numbers in the cells: a small window")
    size.select_option("small")
    settle(stage)
    small = cells(page)
    assert small["mode"] == "markers+text"
    assert small["font"] >= 9
    assert small["size"] > large["size"]
    gap = page.evaluate("() => document.querySelector('.exw .vmain .plot')._fullLayout.xaxis._length / 16.4")
    assert small["size"] < gap, "squares stand apart"


def test_words_end_where_their_box_does(opened: Open) -> None:
    stage = opened(schedule("layernorm_backward", M=20, N=96))
    page = stage.page

    def ends() -> list[list[float]]:
        """Right ends of the statements' texts and of their boxes, in pixels, and how long the texts are."""
        return page.evaluate("""() => {
            const plot = [...document.querySelectorAll('.exw .vmain .plot')].find((one) => one.offsetParent);
            const right = (one) => one.getBoundingClientRect().right;
            const box = Math.min(...[...plot.querySelectorAll('.shapelayer path')].map(right));
            return [...plot.querySelectorAll('.annotation-text')].filter((one) => /^(S[0-9]|↻)/.test(one.textContent))
                .map((one) => [right(one), box, one.textContent.length]);
        }""")

    lengths = []
    for width in (2600, 1500):
        page.set_viewport_size({"width": width, "height": 1000})
        tab(stage, "Dependences")
        page.wait_for_function("() => !document.querySelector('.exw .figure[aria-busy]')")
        settle(stage)
        found = ends()
        assert len(found) > 10
        assert all(right <= box + 1 for right, box, _ in found), (width, found)
        lengths.append(sum(n for _, _, n in found))
    assert lengths[0] > lengths[1]


def test_what_is_cut_ends_in_one_mark(opened: Open) -> None:
    stage = opened(schedule("softmax", M=64, N=1000))
    page = stage.page
    tab(stage, "Dependences")
    for width in range(1210, 1300, 12):
        page.set_viewport_size({"width": width, "height": 1000})
        settle(stage)
        words = page.locator(".exw .vmain .annotation-text").all_text_contents()
        assert any(one.endswith("…") for one in words), width
        assert not [one for one in words if "……" in one], width


def test_a_refused_pair_is_drawn_and_left_again(opened: Open) -> None:
    stage = opened(schedule("softmax", M=4, N=8))
    page = stage.page
    select(stage, "k_2")
    tab(stage, "Memory")
    move = page.locator(".exw li.move[data-name='fuse']")
    move.locator(".mmain").click()
    settle(stage)
    move.get_by_role("button", name="draw the pair").click()
    settle(stage)
    expect(page.locator(".exw .vmain h4:visible")).to_contain_text("Instances of S3 and S4")
    expect(page.locator(".exw .refusedpair:visible")).to_contain_text("fuse('k_2', 'k_3')")
    words = page.locator(".exw .vmain .plot:visible .annotation-text").all_text_contents()
    assert [w for w in words if "must run" in w] == ["1  S3[0, 1] must run first", "2  S4[0, 0] must run later"]
    page.get_by_role("button", name="back to the schedule").click()
    settle(stage)
    expect(page.locator(".exw .vmain h4:visible")).to_contain_text("Instances of S3 in order")
    expect(page.locator(".exw .refusedpair:visible")).to_have_count(0)


def test_the_counterexample_stands_beside_its_pair_and_says_who_showed_it(opened: Open) -> None:
    stage = opened(schedule("gauss_seidel"))
    page = stage.page
    select(stage, "i")
    move = page.locator(".exw li.move[data-name='reverse']")
    move.locator(".mmain").click()
    settle(stage)
    move.get_by_role("button", name="run the counterexample").click()
    settle(stage)
    box = page.locator(".exw .vmain .executed .counterbox")
    expect(box.locator(".ocell.wrong b").first).to_contain_text("✗")
    expect(box.locator(".oorder").nth(0)).to_contain_text("S0[0, 1, 1] leaves u[1, 1] = ")
    expect(box.locator(".oorder").nth(1)).to_contain_text("in the end u[1, 1] is ")
    expect(box).to_contain_text("u[0, 1] = ")
    words = page.locator(".exw .vmain .plot:visible .annotation-text").all_text_contents()
    assert [w for w in words if "must run" in w], "the pair is drawn below it"
    expect(box).to_contain_text("the emitted text on the CPU device: threads and blocks in order")
    expect(box).to_contain_text("S0[0, 1, 1] → S0[0, 2, 1] on u[1, 1]")
    box.locator("summary").click()
    expect(box.locator("pre")).to_contain_text("__global__")


# ---- PTX ----


def test_ptx_on_demand_follows_the_schedule_and_the_architecture(opened: Open) -> None:
    pytest.importorskip("cupy")
    stage = opened(schedule("sum_rows", M=4, N=8))
    page = stage.page
    page.get_by_role("button", name="PTX").click()
    settle(stage)
    text = page.locator(".exw .ptx:visible")
    expect(text).to_contain_text(".visible .entry sum_rows")
    expect(text).to_contain_text(".target sm_90")
    page.get_by_role("combobox", name="architecture").select_option("sm_80")
    settle(stage)
    expect(text).to_contain_text(".target sm_80")
    assert ".maxntid 1" in text.inner_text()
    page.locator(".exw .badge.earned", has_text="compiled").wait_for()
    select(stage, "i")
    move = page.locator(".exw li.move[data-name='bind']").first
    move.locator(".mmain").click()
    page.locator(".exw .variant", has_text="thread.x").first.click()
    page.locator(".exw .mdetail").get_by_role("button", name="Apply").click()
    settle(stage)
    expect(text).to_contain_text("%tid.x")


def test_figures_and_comparisons_follow_the_gpu_that_is_planned_for(opened: Open) -> None:
    stage = opened(schedule("softmax", "split('k', 4)", M=6, N=64))
    page = stage.page

    def aim(name: str) -> None:
        stage.handle({"kind": "target", "serial": 0, "gpu": name})  # type: ignore[misc]
        settle(stage)

    tab(stage, "Roofline")
    title, choice = page.locator(".exw .figure:visible h4"), page.locator(".exw .figure:visible [data-option=gpu]")
    expect(title).to_contain_text("under the roof of the H200")
    expect(choice.locator("option:checked")).to_have_text("target: H200")
    aim("H100 SXM")  # the same architecture, so the CUDA text stays
    expect(title).to_contain_text("under the roof of the H100 SXM")
    expect(choice.locator("option:checked")).to_have_text("target: H100 SXM")
    choice.select_option(index=1)
    settle(stage)
    other = choice.locator("option:checked").inner_text()
    aim("L4")
    expect(choice.locator("option:checked")).to_have_text(other)
    expect(title).not_to_contain_text("the L4")
    choice.select_option("target: L4")
    settle(stage)
    expect(title).to_contain_text("under the roof of the L4")
    page.get_by_role("button", name="compare with").click()
    page.locator(".exw .state").first.click()
    settle(stage)
    expect(page.locator(".exw .compared table")).to_contain_text("floor on the L4")
    aim("T4")
    expect(page.locator(".exw .compared table")).to_contain_text("floor on the T4")
    shown = page.locator(".exw .compare select").evaluate_all("all => all.map((one) => one.selectedOptions[0].textContent)")
    assert "split" in str(shown), shown
    assert len(set(shown)) == 2, shown


def test_what_has_not_changed_is_not_drawn_again(opened: Open) -> None:
    stage = opened(schedule("sum_rows", M=4, N=8).unroll("k"))
    page = stage.page
    plot = "[...document.querySelectorAll('.exw .vmain .plot')].find((one) => one.offsetParent)"
    page.evaluate(f"() => {{ {plot}.data[0].seen = true; }}")
    page.locator(".exw .undo").click()
    settle(stage)
    assert page.evaluate(f"() => {plot}.data[0].seen ?? false")
    page.get_by_role("combobox", name="across").select_option("i")
    settle(stage)
    assert not page.evaluate(f"() => {plot}.data[0].seen ?? false")


def test_without_nvrtc_the_pane_says_what_to_install(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise CompilerMissing("NVRTC is not installed.", hint="pip install 'cupy-cuda13x[ctk]'")

    monkeypatch.setattr(answers, "compile_module", missing)
    stage = opened(schedule("sum_rows", M=4, N=8))
    stage.page.get_by_role("button", name="PTX").click()
    settle(stage)
    text = stage.page.locator(".exw .ptx:visible")
    expect(text).to_contain_text("NVRTC is not installed.")
    expect(text).to_contain_text("pip install")


def test_the_bar_of_a_figure_has_the_buttons_that_are_meant(opened: Open) -> None:
    stage = opened(tiles())
    titles = "all => all.map((one) => one.getAttribute('data-title') ?? one.getAttribute('aria-label'))"
    for name in ("Domain", "Roofline", "Occupancy"):
        tab(stage, name)
        found = stage.page.locator(".exw .plot:visible .modebar-btn").evaluate_all(titles)
        assert found == ["Pan", "Zoom", "Zoom in", "Zoom out", "Reset axes"], (name, found)


def test_figures_that_share_a_tab_are_chosen_there(opened: Open) -> None:
    stage = opened(tiled(128, 128, 128, stages=2))
    page = stage.page
    tab(stage, "Pipeline")
    shown = page.locator(".exw .vmain .figure:visible h4")
    for choice, title in (("timeline", "One block's steps over"), ("ablation", "Stages of"), ("legality", "legal"),
                          ("pipeline", "Copies and uses")):
        page.locator("select[data-which=pipeline]").select_option(choice)
        settle(stage)
        expect(shown).to_have_count(1)
        expect(shown).to_contain_text(title)
    page.locator("select[data-which=pipeline]").select_option("timeline")
    tab(stage, "Domain")
    tab(stage, "Pipeline")
    expect(shown).to_contain_text("One block's steps over")
    for copy in ("a_s.pro", "a_s"):
        select(stage, copy)
        assert shown_rows(page).count() > 0
    assert {node for t in traces(page) for node in t["customdata"]} <= stage.session.schedule.plan.ids
