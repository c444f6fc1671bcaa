"""Pictures as values: the accessor, notebooks' bundles, a machine without Plotly, colours that can be read."""

from __future__ import annotations

import subprocess
import sys

import pytest

import explorer as ex
from explorer.errors import FigureError
from explorer.views.figures.palette import CIVIDIS, CYCLE, DARK, LIGHT, STATIC, amount, contrast, on
from explorer.views.figures.picture import PLOTLY_MIME
from tests.views.figures.support import matmul, written


def test_the_accessor_has_every_figure_with_its_options():
    s = matmul(stages=2)
    assert s.plot.domain("S1", colour="time", at={"k": 3}).title == "Instances of S1 in order of execution · k = 3"
    assert "a_s" in s.plot.memory("a_s").title
    assert s.plot.memory(access="S2:1", view="tile", scope="one thread").title == "Elements of c that one thread touches"
    assert s.plot.pipeline("k", iterations=3).title.endswith("2 stages")
    assert "T4" in s.plot.roofline(gpu="T4").title
    assert "L4" in s.plot.occupancy(gpu="L4", registers=40).title
    assert s.plot.dependences("reduction").table[0][1] == "reduction"
    assert "domain" in repr(s.plot)


@pytest.mark.parametrize(("call", "says"), [
    (lambda p: p.domain("nowhere"), "nothing in this schedule is called 'nowhere'"),
    (lambda p: p.domain(x="q"), "x='q' is not a choice here"),
    (lambda p: p.domain(at={"q": 1}), "the domain figure has no option 'at.q' here"),
    (lambda p: p.memory(warp=99), "warp=99 is outside its range"),
    (lambda p: p.pipeline(iterations="many"), "iterations='many' is not a whole number"),
    (lambda p: p.dependences("output"), "kind='output' is not a choice here")])
def test_what_does_not_fit_is_refused_with_a_hint(call, says):
    with pytest.raises(FigureError) as error:
        call(matmul(K=32, stages=2).plot)
    assert error.value.what == says
    assert error.value.hint


def test_a_notebook_gets_a_live_a_static_and_a_text_form():
    shown = matmul(stages=2).plot.pipeline()
    bundle = shown._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", PLOTLY_MIME}
    assert bundle[PLOTLY_MIME] is shown.spec
    assert shown.svg in bundle["text/html"]
    assert "copy a_s" in bundle["text/plain"]
    nothing = written("softmax").plot.pipeline()
    assert set(nothing._repr_mimebundle_()) == {"text/plain", "text/html"}
    assert "Nothing is staged" in str(nothing)


def test_text_has_the_table_and_says_what_it_leaves_out():
    text = str(written("matmul", M=8, N=8, K=8).plot.domain())
    assert "S1[0, 0, 0]" in text
    assert "… 24 more rows" in text


def test_without_plotly_pictures_stay_and_the_figure_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    shown = matmul().plot.domain()
    assert shown.svg
    assert shown.spec["data"]
    with pytest.raises(FigureError) as error:
        _ = shown.figure
    assert "pip install" in error.value.hint


def test_drawing_imports_no_plotly():
    code = ("import sys, explorer as ex; from explorer.workloads import get; "
            "s = get('matmul').definition.schedule(M=4, N=4, K=4); s.plot.domain(); s.plot.roofline(); "
            "assert 'plotly' not in sys.modules")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_text_and_lines_can_be_read_on_both_themes():
    for theme in (LIGHT, DARK):
        assert contrast(theme.ink, theme.paper) >= 7
        assert contrast(theme.soft, theme.paper) >= 4.5
        for hue in (theme.block, theme.thread, theme.vector, theme.copy, theme.bad):
            assert contrast(hue, theme.paper) >= 4.5
    for hue in (STATIC.block, STATIC.thread, STATIC.vector, STATIC.copy, STATIC.bad):
        assert min(contrast(hue, LIGHT.paper), contrast(hue, DARK.paper)) >= 3
    for fill in (*CYCLE, *CIVIDIS, LIGHT.plain, DARK.plain):
        assert contrast(on(fill), fill) >= 4.5


def test_neighbouring_fills_differ_in_lightness_for_eyes_that_see_no_hue():
    for a, b in zip(CYCLE, (*CYCLE[1:], CYCLE[0]), strict=True):
        assert contrast(a, b) > 1.15
    shades = [contrast(c, "#000000") for c in CIVIDIS]
    assert shades == sorted(shades)


def test_amounts_run_over_the_scale():
    assert (amount(0), amount(1), amount(7)) == (CIVIDIS[0].lower(), CIVIDIS[-1].lower(), CIVIDIS[-1].lower())
    middle = [contrast(amount(i / 20), "#000000") for i in range(21)]
    assert middle == sorted(middle)


def test_compare_is_exported():
    assert ex.compare.__name__ == "compare"
    assert "compare" in ex.__all__
