"""Every error in a pipeline is noticed by the judge of the IR and by the CPU device; ir_mutants.py runs all, this a slice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .ir_pipelines import ALL, KINDS, PIPELINES, Pipelined
from .pipelines import answers

IN_TESTS = [p for p in PIPELINES if p.in_tests]
PAGE = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "pipeline_mutants.md"


@pytest.mark.parametrize("pipeline", IN_TESTS, ids=lambda p: f"{p.engine}: {p.name}")
def test_the_judge_and_the_device_notice_them(pipeline: Pipelined) -> None:
    found = answers(pipeline, pipeline.in_tests)
    assert len(found) > 3
    assert not [(a.mutant.kind, a.mutant.at, a.judge, a.device) for a in found if a.survived]
    assert sum(a.right for a in found) <= 1, "most errors are some"


def test_a_wait_that_another_one_makes_superfluous_is_no_error() -> None:
    pipeline = next(p for p in PIPELINES if p.name == "a copy behind it that lands at once")
    found = answers(pipeline, ALL)
    assert not [a for a in found if a.survived]
    assert {a.mutant.kind for a in found if a.right} == {"wait", "arrive"}


def test_stages_of_their_own_have_no_wait_too_many() -> None:
    found = answers(next(p for p in PIPELINES if p.name == "unequal stages"), ALL)
    assert found
    assert not [a for a in found if a.survived or a.right]


def test_the_table_says_that_all_are_noticed() -> None:
    rows = [re.findall(r"\d+", line.split("|", 3)[3].rsplit("|", 2)[0]) for line in PAGE.read_text(encoding="utf-8").splitlines()
            if line.startswith(tuple(f"| {kind} " for kind in (*KINDS, "all")))]
    assert len(rows) > len(KINDS)
    for made, right, judge, device in rows:
        assert int(made) - int(right) == int(judge) == int(device)
