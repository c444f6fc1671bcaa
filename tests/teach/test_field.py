"""Words of GPU engineers: each leads to the moves, figures and methods that belong to it, and these exist."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import fields

import pytest

import explorer as ex
from explorer.schedule import Schedule
from explorer.teach.field import WORDS, Word, find, key, spellings
from explorer.transforms.base import catalogue
from explorer.views.figures.plots import Plots


def listed(text: str) -> list[str]:
    """The names that a list in an answer has, in its order."""
    return re.findall(r"^  ([\w.]+) — ", text, re.M)


@pytest.mark.parametrize(("word", "see"), [
    ("wgmma", "tensorize"), ("mma", "tensorize"), ("mma.sync", "load_matrix"), ("tensor core", "tensorize"),
    ("tensor cores", "tensorize"), ("TMA", "store_bulk"), ("cp.async", "stage"), ("mbarrier", "specialise"),
    ("epilogue", "outline"), ("warp", "bind"), ("warpgroup", "tensorize"), ("warp specialization", "specialise"),
    ("double buffering", "pipeline"), ("multi-stage", "pipeline"), ("split-K", "rfactor"), ("stream-K", "persist"),
    ("persistent kernel", "persist"),
    ("persistent kernel", "join"), ("cluster", "multicast"), ("DSMEM", "collect"), ("bank conflict", "swizzle"),
    ("coalescing", "plot.memory"), ("occupancy", "launch_bounds"), ("shared memory", "contract"), ("register tile", "accumulate"),
    ("flash attention", "running"), ("online softmax", "rescale"), ("implicit GEMM", "auto"),
])  # fmt: skip
def test_words_of_the_field_lead_to_what_belongs_to_them(word: str, see: str) -> None:
    text = ex.help(word)
    assert see in listed(text)
    assert "no move is called" not in text


@pytest.mark.parametrize(("word", "move"), [
    ("ldmatrix", "load_matrix"), ("stmatrix", "store_matrix"), ("LD-Matrix", "load_matrix"), ("double_buffer", "pipeline"),
    ("Strip Mine", "split"), ("TVM: Set-Scope", "contract"),
])  # fmt: skip
def test_a_word_for_one_move_gives_its_documentation(word: str, move: str) -> None:
    assert ex.help(word) == ex.help(move)


@pytest.mark.parametrize("word", ["tensor core", "Tensor Cores", "tensor_core", "TENSOR-CORES", "  TensorCore "])
def test_spelling_does_not_matter(word: str) -> None:
    assert ex.help(word) == ex.help("tensor core")
    assert ex.help("CUTLASS: epilogue") == ex.help("Epilogues")
    assert ex.help("MMA_Sync") == ex.help("mma.sync")


def test_a_list_has_the_first_line_of_each() -> None:
    text = ex.help("TMA")
    assert text.startswith("TMA — Hopper's engine")
    for move in ("stage", "store_bulk", "multicast"):
        assert f"  {move} — {(catalogue()[move].__doc__ or '').strip().splitlines()[0]}\n" in text
    assert "  plot.memory — What one request of a warp asks of memory" in ex.help("coalescing")
    assert "  auto — A fast schedule by rules" in ex.help("epilogue")
    assert text.endswith("ex.help('stage') says more.")


def test_a_figure_or_a_strategy_of_that_name_goes_first() -> None:
    assert listed(ex.help("stitch")) == ["join"], "which has the alias"
    text = ex.help("occupancy")
    assert text.startswith("occupancy — How many blocks fit on a multiprocessor")
    assert listed(text) == ["launch_bounds", "kernel"], "and not itself"


@pytest.mark.parametrize("row", WORDS, ids=lambda row: row.said[0])
def test_what_a_row_names_exists(row: Word) -> None:
    for name in row.see:
        if name.startswith("plot."):
            assert hasattr(Plots, name.removeprefix("plot.")), name
        else:
            assert name in catalogue() or hasattr(Schedule, name) or name in ex.strategies.__all__, name
    assert len(set(row.see)) == len(row.see) > 0
    for call, arguments in re.findall(r"`(\w+)(?:\(([^`]*)\))?`", row.means):
        assert call in catalogue() or call in ("auto", "compile", "pad"), call
        options = {f.name: f.metadata for f in fields(catalogue()[call])} if call in catalogue() else {}
        assert set(re.findall(r"(\w+)=", arguments)) <= options.keys(), (call, arguments)
        choices = {c for m in options.values() for c in m.get("choices", ())}
        assert set(re.findall(r"'([^'…]+)'", arguments)) <= choices, (call, arguments)


def test_a_spelling_stands_in_one_row() -> None:
    counted = Counter(key(word) for row in WORDS for word in {key(w): w for w in row.said}.values())
    assert [word for word, count in counted.items() if count > 1] == []
    assert not {key(word) for row in WORDS for word in row.said} & {key(name) for name in catalogue()}
    assert find("") is None
    assert find("…") is None


def test_moves_that_have_the_word_as_an_alias_join_the_list() -> None:
    for row in WORDS:
        wanted = {name for name, kind in catalogue().items() if set(map(key, row.said)) & set(map(key, kind.aliases))}
        assert wanted <= set(row.see) | set(listed(ex.help(row.said[0]))), row.said[0]
    assert listed(ex.help("register"))[-1] == "shuffle"


@pytest.mark.parametrize("word", ["tensor cor", "wgmm", "epilog", "splitt", "TVM: tensoriz", "tensorze"])
def test_no_suggestion_is_made_twice(word: str) -> None:
    said = ex.help(word).partition("did you mean ")[2].rstrip("?").split(", ")
    answers = [ex.help(s) for s in said]
    assert len(set(answers)) == len(answers) <= 4, said


def test_words_far_from_any_are_not_guessed() -> None:
    assert "did you mean one of accumulate" in ex.help("zzzzzz")
    assert ex.help("wgmm").startswith("no move is called 'wgmm'; did you mean wgmma")


def test_without_a_word_they_are_listed() -> None:
    assert f"words of the field: {', '.join(spellings())}" in ex.help()
