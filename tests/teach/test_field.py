"""Words of GPU engineers: each leads to the moves, figures and methods that belong to it, and these exist."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import fields

import pytest

import explorer as ex
from explorer.schedule import Schedule
from explorer.teach.field import FIELD, WORDS, Word, find, key, spellings
from explorer.teach.words import OWN
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


@pytest.mark.parametrize("word", [
    "obligation", "dependence", "cover", "order", "flow", "race", "legal", "proved", "judge", "witness", "counterexample", "plan",
    "schedule", "step", "move", "transformation", "node", "leaf", "statement", "instance", "floor", "price", "bank", "slot",
    "stage", "release distance", "in flight", "handoff", "wavefront", "quad", "fragment", "box", "tile", "stitch", "stitching",
    "launch", "kernel", "phase", "lane", "sector", "roofline", "emulated", "trial", "variant",
])  # fmt: skip
def test_words_that_the_pages_use_are_known(word: str) -> None:
    row = find(word)
    assert row is not None
    for said in (word, word.capitalize(), *row.said):
        assert row.means in ex.help(said), said
    assert listed(ex.help(word))


@pytest.mark.parametrize("row", OWN, ids=lambda row: row.said[0])
def test_own_words_are_sentences(row: Word) -> None:
    assert row.means.split()[0] in ("A", "An", "The", row.said[0].split()[0].capitalize()), "the subject comes first"
    assert row.means.endswith((".", "?"))


def test_the_word_stands_behind_what_has_its_name() -> None:
    for move in ("launch", "stage", "tile"):
        assert ex.help(move).startswith(f"{move} — {(catalogue()[move].__doc__ or '').strip()}")
    assert ex.help("stage_mem") == ex.help("stage")
    assert "\n\nThe word: A schedule is a plan" in ex.help("schedule")
    assert ex.help("steps").startswith("step — A step is one move"), "and not what a tuple is"
    assert ex.help("CUTLASS: price").startswith("no move is called"), "they are our words, no other system's"


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
    assert listed(ex.help("stitch")) == ["stitching", "edges", "join"], "and not itself"
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
    moves = {key(name) for name in catalogue()}
    assert not {key(word) for row in FIELD for word in row.said} & moves
    assert {key(word) for row in OWN for word in row.said} & moves == {"launch", "stage", "tile"}
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
    assert len(set(answers)) == len(answers) <= 3, said


@pytest.mark.parametrize("word", ["zzzzzz", "3", "tille", "staging", "s", "contrct", "obligatory", "proven", "widgets", "shar"])
def test_a_wrong_word_is_answered_with_three_names_at_most(word: str) -> None:
    text = ex.help(word)
    assert text.startswith(f"no move is called {word!r}; ")
    near = text.partition("did you mean ")[2].rstrip("?").split(", ")
    assert len(near) <= 3
    assert near != [""] or text.endswith("; print(ex.help()) lists all")
    assert sum(bool(re.search(rf"\b{name}\b", text)) for name in catalogue()) <= 3


def test_words_far_from_any_are_not_guessed() -> None:
    assert ex.help("zzzzzz") == "no move is called 'zzzzzz'; print(ex.help()) lists all"
    assert ex.help("wgmm").startswith("no move is called 'wgmm'; did you mean wgmma")


def test_without_a_word_they_are_listed() -> None:
    assert f"words of the field: {', '.join(spellings(FIELD))}" in ex.help()
    assert f"words of this tool: {', '.join(spellings(OWN))}" in ex.help()
    assert "steps" not in ex.help().partition("a schedule also has: ")[2].partition("\n")[0].split(", "), "a field"
