"""The buttons on a figure are those that are meant, whoever draws it: Plotly's own list has one that uploads the figure."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

import explorer as ex
from tests.app.front import schedule

FIGURES = ("domain", "memory", "pipeline", "roofline", "price", "occupancy", "partials", "dependences")
MEANT = {"pan2d", "zoom2d", "zoomIn2d", "zoomOut2d", "resetScale2d", "orbitRotation", "pan3d", "zoom3d", "resetCameraDefault3d"}


def buttons(config: dict[str, Any]) -> set[str]:
    return {name for group in config["modeBarButtons"] for name in group}


def staged() -> ex.Schedule:
    return schedule("matmul", M=8, N=8, K=8).bind("j", "thread.x", count=4).stage("a", "k").pipeline("k", 2)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_lists_its_buttons(name: str) -> None:
    shown = getattr(staged().plot, name)()
    assert shown.spec, f"{name} draws nothing of a schedule that has all: {shown}"
    for config in (shown.spec["config"], shown.data["spec"]["config"]):
        assert buttons(config) <= MEANT
        assert buttons(config)
        assert not config["displaylogo"]
        assert not config["showSendToCloud"]
        assert not config["plotlyServerURL"]


def test_a_solid_figure_has_buttons_that_turn_it() -> None:
    shown = schedule("matmul", M=4, N=4, K=4).plot.domain("S1", x="i", y="j", z="k")
    assert "orbitRotation" in buttons(shown.spec["config"])


@pytest.mark.parametrize("again", [lambda f: f, copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))])
def test_a_figure_that_is_taken_away_keeps_them(again: Any, tmp_path: Any) -> None:
    figure = again(schedule("matmul", M=8, N=8, K=8).plot.roofline().figure)
    figure.write_html(tmp_path / "page.html", include_plotlyjs=False)
    for text in (figure.to_html(include_plotlyjs=False), (tmp_path / "page.html").read_text()):
        assert '"modeBarButtons"' in text
        assert "cloud.plotly" not in text
    import plotly.io as pio

    before = pio.renderers.default
    pio.renderers.default = "plotly_mimetype"
    try:
        bundle = figure._repr_mimebundle_()
    finally:
        pio.renderers.default = before
    config = bundle["application/vnd.plotly.v1+json"]["config"]
    assert buttons(config) <= MEANT
    assert "cloud.plotly" not in json.dumps(config)
