"""Every workload in every figure: a picture or a sentence, of valid nodes, small, and the same as a table and as an SVG."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any
from xml.etree import ElementTree

import pytest

import explorer as ex
from explorer.errors import FigureError
from explorer.strategies.default import default
from explorer.transforms.base import catalogue
from explorer.views.figures import FIGURES, figure_data, picture
from explorer.workloads import get, names
from tests.views.figures.support import matmul, program, written
from tests.views.figures.test_timeline import tensor

POINTS, BYTES = 2000, 150_000


@cache
def schedules(name: str) -> tuple[ex.Schedule, ...]:
    """As written and in parallel, at sizes as the field has them."""
    s = program(name).schedule(**get(name).typical)
    return s, default(s)


def nodes_of(spec: dict[str, Any]) -> Iterator[str]:
    for trace in spec.get("data", []):
        for custom in trace.get("customdata", []):
            yield from (c for c in (custom if isinstance(custom, list) else [custom]) if c is not None)


def check(s: ex.Schedule, data: dict[str, Any]) -> None:
    assert set(data) == {"name", "title", "spec", "note", "options", "header", "table", "svg"}
    text = json.dumps(data, allow_nan=False)
    assert json.loads(text) == data, "plain data"
    known = s.plan.ids | s.plan.statement_of.keys() | s.plan.buffer_of.keys()
    assert set(nodes_of(data["spec"])) <= known
    assert {row[0] for row in data["table"]} - {None} <= known
    assert all(len(row) == len(data["header"]) + 1 for row in data["table"])
    assert data["title"]
    assert data["note"].endswith(".") or data["note"].endswith(")")
    for option in data["options"]:
        assert option["value"] in option["choices"] if option["choices"] else option["min"] <= option["value"] <= option["max"]
        assert len(option["choices"]) == len(option["labels"])
    if data["spec"]:
        assert len(json.dumps(data["spec"])) < BYTES
        assert len(data["svg"]) < BYTES / 2
        assert all(len(t.get("x", ())) <= POINTS for t in data["spec"]["data"])
        assert data["table"]
        root = ElementTree.fromstring(data["svg"])
        assert root.get("role") == "img"
        assert root.get("aria-label") == data["title"]
        assert root.findall(".//{http://www.w3.org/2000/svg}path")
    else:
        assert data["svg"] == ""


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_or_a_sentence(name, figure):
    for s in schedules(name):
        check(s, figure_data(s, figure))


@pytest.mark.parametrize("figure", FIGURES)
def test_every_choice_and_every_bound_of_every_option(figure):
    for s in (matmul(stages=3), default(written("gauss_seidel"), threads=4), default(written("softmax"))):
        first = figure_data(s, figure)
        for option in first["options"]:
            for value in option["choices"] or (option["min"], option["max"]):
                data = picture(s, figure, {option["name"]: value}, strict=True).data
                check(s, data)
                again = next((o for o in data["options"] if o["name"] == option["name"]), None)
                assert again is None or again["value"] == value


@pytest.mark.parametrize("figure", FIGURES)
def test_every_node_can_be_selected(figure):
    s = matmul(stages=2)
    for node in sorted(s.plan.ids | s.plan.buffer_of.keys()):
        check(s, figure_data(s, figure, node=node))


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize(("name", "step", "arguments"), [
    ("gauss_seidel", "bind", ("i", "block.x")), ("three loops", "fuse", ("k", "j")), ("jacobi2d", "interchange", ("t", "i"))])
def test_refused_plans_are_drawn_too(figure, name, step, arguments):
    s = written(name)
    verdict, plan = s.try_step(catalogue()[step](*arguments))
    assert verdict.finding
    refused = replace(s, plan=plan)
    check(refused, figure_data(refused, figure, finding=verdict.finding))


@pytest.mark.parametrize("figure", FIGURES)
def test_plotly_takes_the_spec_and_both_themes_differ_in_colours_alone(figure):
    s = tensor(2) if figure == "fragments" else matmul(stages=2)
    light, dark = (picture(s, figure, theme=theme) for theme in ("light", "dark"))
    drawn = light.figure
    assert len(drawn.data) == len(light.spec["data"])
    assert len(drawn.frames) == len(light.spec["frames"])
    assert drawn.layout.paper_bgcolor == "rgba(0,0,0,0)"
    assert light.spec != dark.spec
    assert light.svg == dark.svg
    assert [t["type"] for t in light.spec["data"]] == [t["type"] for t in dark.spec["data"]]
    assert [t.get("x") for t in light.spec["data"]] == [t.get("x") for t in dark.spec["data"]]
    assert figure_data(s, figure, {"theme": "dark"}) == dark.data


def test_the_largest_workloads_open_as_the_smallest():
    for name in ("conv2d", "matmul"):
        for s in schedules(name):
            cells = figure_data(s, "domain", {"size": "large"})["spec"]["data"]
            assert max(len(t["customdata"]) for t in cells if "customdata" in t) <= 640


def test_an_unknown_figure_says_what_there_is():
    with pytest.raises(FigureError, match="no figure is called 'domian'") as error:
        picture(matmul(), "domian")
    assert error.value.hint == "did you mean 'domain'?"
