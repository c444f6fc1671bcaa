"""Errors in the emitted text: a slice of them, in about a minute; ``python -m benchmarks.text_mutants`` makes them all."""

from __future__ import annotations

import re

import pytest

from benchmarks.text_mutants import PAGE, page
from explorer import workloads
from explorer.run.inputs.exact import KINDS

from .text import RULES, TextMutant, text_mutants
from .text_judgement import Noticed, control, judged
from .text_same import reason
from .text_subject import STRATEGIES, subject

SLICE = (("layernorm", "auto"), ("softmax", "auto, sizes that divide"), ("matmul", "default"), ("max_rows", "auto"),
         ("sum_all", "auto"), ("argmax_rows", "default"), ("attention_softmax", "default"), ("adam", "default"))  # fmt: skip
EVERY = 19
"""One mutant in so many."""


def sliced(mutants: list[TextMutant]) -> list[TextMutant]:
    """One in some of each kind."""
    return [m for kind in RULES for m in [x for x in mutants if x.kind == kind][::EVERY]]


@pytest.mark.parametrize(("workload", "strategy"), SLICE)
def test_no_mutant_of_the_slice_survives(workload: str, strategy: str) -> None:
    what = subject(workload, strategy)
    assert control(what) == "", "the text itself is right"
    found = judged(what, sliced(what.mutants))
    assert len(found) > 4
    assert not [m for m in found if m.survived]


def test_the_rules_find_every_kind_of_error_somewhere() -> None:
    found = {m.kind for s in STRATEGIES for w in ("layernorm", "sum_interleaved") for m in subject(w, s).mutants}
    assert found == set(RULES)


def test_a_mutant_is_the_text_with_one_line_changed() -> None:
    what = subject("softmax", "auto")
    lines = what.module.text.split("\n")
    for mutant in text_mutants(what.module):
        other = mutant.text.removeprefix("#include <cuda_fp16.h>\n") if "#include <cuda_fp16.h>" not in lines else mutant.text
        differing = [n for n, (a, b) in enumerate(zip(lines, other.split("\n"), strict=True)) if a != b]
        assert differing == [mutant.line - 1]


def test_what_has_no_reason_survives_whatever_its_bits() -> None:
    assert Noticed("a constant is another one", "y[i] = 2.0f * x[i];", "y[i] = 1.0f * x[i];", "", True).survived
    assert not Noticed("an operator is another one", "total += total_sum;", "total = total_sum;", "", True).survived
    assert Noticed("an operator is another one", "total += total_sum;", "total = total_sum;", "", False).survived
    square = "s += (x[k] - mean) * (x[k] - mean);"
    assert reason("an operator is another one", square, "s += (x[k] + mean) * (x[k] - mean);", False)
    assert not reason("an operator is another one", square, "s += (x[k] - mean) + (x[k] - mean);", False)


def test_the_committed_table_has_every_workload_and_no_survivor() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in workloads.names():
        assert re.search(rf"^\| {name} \| \d+ \|", text, re.MULTILINE), name
    for kind in (*RULES, *KINDS.values()):
        assert kind in text
    assert ", 0 survive." in text
    assert "What survives" not in text


def test_a_survivor_stands_in_the_page() -> None:
    one = Noticed("a constant is another one", "y[i] = 2.0f * x[i];", "y[i] = 1.0f * x[i];", "")
    text = page({("made_up", "auto"): [one]})
    assert "0 noticed, 0 compute the same, 1 survive." in text
    assert "| made_up, auto | a constant is another one | `y[i] = 2.0f * x[i];` |" in text
