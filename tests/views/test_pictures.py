"""Pictures of values: well formed, self-contained, escaped, small enough, and readable where styles are stripped."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

import explorer as ex
from explorer import workloads
from explorer.ir.finding import Finding, Instance
from explorer.ir.text import loop_text, loops_text, statement_text
from explorer.strategies.default import default
from explorer.views import reprs
from explorer.views.counterexamples import counter_box
from explorer.views.loops import loop_rows, loops_html
from explorer.views.reprs import LIMIT, html, views
from explorer.views.search import Scale, trial_html
from explorer.views.style import ROLE_GLYPHS
from tests.transforms.multiblock import TOTAL, spread, start

from .pages import Page
from .test_stripped import Strict
from .values import BAD, GOOD, run, values

NASTY = '<script>alert("x")</script> & <b>bold</b>'
NAMES = tuple(values())


def test_every_class_with_a_picture_is_among_the_values() -> None:
    covered = {k for v in values().values() for k in type(v).__mro__}
    assert set(views()) <= covered


def test_a_mark_names_the_class_that_its_function_takes() -> None:
    assert len(views()) > 15
    for kind, (module, name) in views().items():
        function = getattr(import_module(f"explorer.views.{module}"), name)
        first = next(iter(inspect.signature(function).parameters.values()))
        assert first.annotation == kind.__name__, name


def test_every_mark_is_found() -> None:
    folder = Path(reprs.__file__).parent
    marked = [line for path in folder.rglob("*.py") if path.name != "reprs.py" for line in path.read_text().splitlines()
              if "picture_of(" in line]
    assert len(marked) == len(views())


@pytest.mark.parametrize("name", NAMES)
def test_picture_is_well_formed_small_and_self_contained(name: str) -> None:
    picture = values()[name]._repr_html_()
    page = Page(picture)
    assert len(picture) <= LIMIT
    assert page.text.strip()
    assert not page.tags & {"script", "link", "img", "iframe", "object", "form"}
    assert not re.search(r"https?:|url\(|@import|on\w+=", picture)


@pytest.mark.parametrize("name", NAMES)
def test_text_says_something_in_lines_of_bearable_length(name: str) -> None:
    value = values()[name]
    text = repr(value)
    assert len(text) > 5
    assert not re.match(rf"{type(value).__name__}\(\w+=", text), "a generated repr"
    if name in ("run", "wrong run", "comparison", "moves", "dependences", "finding", "compiled"):
        assert max(map(len, text.splitlines())) <= 170


@pytest.mark.parametrize("name", ["plain", "tuned", "pipelined"])
def test_loops_are_indented_without_styles(name: str) -> None:
    """A host that strips classes and styles shows the loop nest by its spaces alone."""
    schedule = values()[name]
    page = Page(loops_html(schedule.plan))
    lines = page.text.splitlines()
    assert set(page.nodes) >= {*schedule.plan.loops, *(leaf.id for leaf, _, _ in schedule.plan.leaves)}
    for loop in schedule.plan.loops.values():
        depth = next(depth for depth, known in _depths(schedule.plan) if known == loop.id)
        head = loop_text(loop).partition(" in ")[0]
        assert any(line.startswith("    " * depth) and line.strip().partition(" ")[2].startswith(head) for line in lines), loop.id
    for leaf, above, _ in schedule.plan.leaves:
        glyph = "Σ" if schedule.plan.statement_of[leaf.statement].update else "·"
        text = "    " * (len(above) + 1) + f"{glyph} {leaf.id}\u2002{statement_text(schedule.plan, leaf)}"
        assert any(line.startswith(text) for line in lines), leaf.id


def _depths(plan) -> list[tuple[int, str]]:
    found = []
    for _, above, _ in plan.leaves:
        found += [(depth, loop.id) for depth, loop in enumerate(above, 1)]
    return found


def test_each_role_has_a_glyph_and_a_word() -> None:
    s = values()["pipelined"]
    text = Page(loops_html(s.plan)).text
    for loop in s.plan.loops.values():
        assert ROLE_GLYPHS[loop.role][0] in text
        assert loop.role in ("seq",) or loop.role in text


@pytest.mark.parametrize(("schedule", "note"), [
    (spread("total").collect("y", "last_block"), "in the same launch, by the block that finishes last (last_block)"),
    (spread("total").collect("y", "grid"), "in the same launch, behind a barrier of the grid"),
    (start(TOTAL, N=64).split("k", 2).bind("k.i", "thread.x").launch_bounds("total.2", 2),
     "a multiprocessor holds at least 2 blocks"),
    (start(TOTAL, N=64).accumulate("y", method="kahan"), "compensated (Kahan)"),
])
def test_every_picture_of_the_loops_says_what_the_text_says(schedule: ex.Schedule, note: str) -> None:
    rows = loop_rows(schedule.plan, 400)
    assert note in loops_text(schedule.plan)
    assert note in Page(loops_html(schedule.plan)).text
    told = [row for row in rows if any(note in chip.title for chip in row.chips)]
    assert told
    assert all(note in row.label for row in told), "what a reader cannot see is read out"


def test_long_nests_say_how_many_rows_are_left_out() -> None:
    s = values()["plain"]
    big = replace(s.plan, kernels=tuple(replace(k, id=f"{k.id}{n}") for n in range(12) for k in s.plan.kernels))
    text = Page(loops_html(big)).text
    assert re.search(r"… \d+ more rows", text)


@pytest.mark.parametrize("name", workloads.names())
def test_every_workload_has_pictures_within_the_limit(name: str) -> None:
    workload = workloads.get(name)
    s = default(workload.definition.schedule(**workload.typical))
    for value in (s, s.source, s.dependences, s.moves(next(iter(s.plan.loops)))):
        assert html(value) is not None
    for value in (workload.definition, s.kernel()):
        picture = html(value)
        assert picture is not None
        Page(picture)


def test_what_is_too_large_falls_back_to_text() -> None:
    note = run(notes=("x" * LIMIT,))
    assert note._repr_html_() is None
    assert "x" * 50 in repr(note)
    assert html(object()) is None


def test_users_text_is_escaped_everywhere() -> None:
    finding = Finding("order", f"what {NASTY}", f"why {NASTY}", NASTY, (1,), "flow", Instance(NASTY, (0,)), Instance("S1", (1,)),
                      (), (3,), (NASTY, f"skew('{NASTY}')"))  # fmt: skip
    bad = replace(BAD, array=NASTY, reference=NASTY)
    noted = run(program=NASTY, device=NASTY, notes=(NASTY,), faults=(NASTY,), checks=(bad,))
    error = ex.TransformError(NASTY, where=NASTY, why=NASTY, hint=NASTY)
    renamed = replace(values()["program"], name=NASTY, source=NASTY)
    for value in (finding, noted, error, renamed, replace(values()["evidence"], gpu=NASTY)):
        picture = value._repr_html_()
        assert "<script" not in picture
        assert "<b>bold" not in picture
        assert NASTY in Page(picture).text


def test_refusal_quotes_both_source_lines_and_both_instances() -> None:
    text = Page(values()["illegal"]._repr_html_()).text
    assert "fuse('k', 'j') is not legal" in text
    for part in ("peak = max(peak, x[i, k])", "e[j] = ex.exp(x[i, j] - peak)", "S2[0, 1]", "S3[0, 0]", "peak[0]"):
        assert part in text


def test_a_counterexample_shows_the_wrong_cell_in_its_row_and_both_orders() -> None:
    value = values()["counterexample"]
    picture = value._repr_html_()
    lines = [line.strip() for line in Strict(picture).lines]
    assert "y[0, 0] 1 ✓ right" in lines
    assert "y[0, 1] ✗ 7 must be <3>" in lines
    both = lines[lines.index("in the program: <3>") : lines.index("inputs")]
    assert both == ["in the program: <3>", "S2[0, 0] leaves y[0, 1] = 1", "… 4 more", "S5[0, 1] leaves y[0, 1] = <3>",
                    "in the refused order: 7", "S3[0, 0] at time (0, 0)", "S2[0, 1] at time (0, 1)",
                    "in the end y[0, 1] is 7"]  # fmt: skip
    assert lines[lines.index("pair") + 1].startswith("S2[0, 1] → S3[0, 0] on peak[0]")
    shared = counter_box(value)
    assert picture.partition('<div class="ostrip"')[2].partition("</dl>")[0] in shared, "a pane shows the same"
    assert "<dl>" not in values()["not caught"]._repr_html_(), "no section is empty"


def test_a_search_shows_the_rows_of_the_search_pane() -> None:
    value = values()["search"]
    lines = [" ".join(line.split()) for line in Strict(value._repr_html_()).lines]
    assert lines[1] == "3 variants, 1 of them failed; all were measured · remembered from an earlier search · " \
                       "NVIDIA H200: CUDA events · the floor is 12.5 µs · a note"  # fmt: skip
    assert re.fullmatch(r"★ more <threads> 20.8 µs \([\d.]+ to [\d.]+\) timed in 3 rounds", lines[2])
    assert re.fullmatch(r"· auto: rows 30.8 µs \([\d.]+ to [\d.]+\) what Auto makes · estimated 21 µs · timed in 3 rounds",
                        lines[3])
    assert "✗ a wide one wrong: y[3] is 4 & not 5" in lines
    first, *_ = value.ranked
    button = trial_html(first, Scale.of(value.trials), best=True, number=1)
    assert button.partition(">")[2].removesuffix("</button>") in value._repr_html_(), "a pane shows the same"
    assert 'aria-label="more &lt;threads&gt;. 20.8 µs (' in button
    assert "the best" in button.partition(">")[0]
    assert "aria-disabled" not in button
    assert 'aria-disabled="true"' in trial_html(value.failed[0], Scale.of(value.trials), number=2), "it has no steps to take"


def test_schedule_says_what_is_proved_and_what_is_to_do() -> None:
    proved, pending = (Page(values()[name]._repr_html_()).text for name in ("tuned", "to do"))
    assert "✓ proved: cover, order, flow, obligations" in proved
    assert "27 steps" in proved
    assert "to do" not in proved
    assert "✓ legal: cover, order, flow" in pending
    assert "collect('peak', 'shuffle')" in pending


def test_moves_are_grouped_and_none_is_lost() -> None:
    moves = values()["moves"]
    good, bad = Page(moves._repr_html_()).tables
    assert {row[0].removeprefix("✓ ") for row in good[1:]} == {m.name for m in moves if m.applies}
    for move in moves:
        if move.applies:
            assert any(str(move.step) in row[1] for row in good), move
    assert {row[0].removeprefix("✗ ") for row in bad[1:]} == {m.name for m in moves if not m.applies}


def test_dependences_list_every_pair() -> None:
    facts = values()["dependences"]
    (rows,) = Page(facts._repr_html_()).tables
    assert len(rows) - 1 == len(facts.ordered) + len(facts.reductions)
    assert ["flow", "S0 → S2", "peak", "S0[0] → S2[0, 0]"] in rows


def test_run_shows_verdict_floor_and_badge() -> None:
    value = values()["run"]
    text = Page(value._repr_html_()).text
    assert f"{value.share:.0%} of the floor" in text
    assert "softmax on H200: right" in text
    badge = Page(value._repr_html_()).tables[-1]
    assert [row[0] for row in badge[1:]] == ["✓ proved", "· emulated", "✓ compiled", "✓ GPU-checked", "✓ timed"]
    wrong = Page(values()["wrong run"]._repr_html_()).text
    assert "softmax on H200: WRONG" in wrong
    assert "y[3] = 1, expected 2" in wrong
    assert "✗ at N=7: race" in wrong


def test_ragged_failure_is_shown() -> None:
    text = Page(run(checks=(GOOD,), ragged=(("M=5", (BAD,)),))._repr_html_()).text
    assert "✗ at M=5: y: 1 of 8 cells wrong" in text


def test_comparison_says_ratio_and_noise() -> None:
    assert "softmax: faster" in Page(values()["comparison"]._repr_html_()).text
    assert "smaller than noise" in Page(run().compare(run())._repr_html_()).text
    assert "the second result is WRONG" in Page(run().compare(run(checks=(BAD,)))._repr_html_()).text


def test_compiled_shows_refusals() -> None:
    page = Page(values()["compiled"]._repr_html_())
    assert "✗ sm_75: the text was refused; line 3: expected a <type>" in page.text
    assert page.tables[0][1] == ["sm_90", "H200", "softmax", "32", "0", "16", "100%", "warps"]


def test_facts_mark_wasteful_accesses() -> None:
    facts = values()["facts"]
    rows = Page(facts._repr_html_()).tables[-1]
    for access, row in zip(facts.accesses, rows[1:], strict=True):
        assert row[0] == facts.text_of(access)
        assert row[3].startswith("✗" if access.efficiency < 0.99 else "✓")


def test_notebook_gets_text_and_picture() -> None:
    from IPython.core.formatters import DisplayFormatter

    data, _ = DisplayFormatter().format(values()["run"])
    assert set(data) == {"text/plain", "text/html"}
    assert data["text/plain"] == repr(values()["run"])
    assert data["text/html"].startswith("<style>")


def test_the_kernels_after_a_pass_show_what_it_does_and_its_changed_lines() -> None:
    stage = values()["pass"]
    page = Page(stage._repr_html_())
    assert "after vectorize" in page.text
    assert f"{stage.what} {len(stage.changed)} lines changed (›)" in page.text
    lines = page.text[page.text.index('  1  extern "C"'):].splitlines()
    assert [line.removeprefix("› ").strip().partition("  ")[2] for line in lines] == stage.text.split("\n")
    assert tuple(n for n, line in enumerate(lines, 1) if line.startswith("›")) == stage.changed != ()
    assert repr(stage).startswith("after vectorize: "), "the text stays"
