"""The glossary: our words, other systems' words, and words that nobody uses."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.transforms.base import catalogue
from explorer.views.figures.plots import Plots


def first_line(name: str) -> str:
    return (catalogue()[name].__doc__ or "").strip().splitlines()[0]


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_every_move_is_explained(name: str) -> None:
    text = ex.help(name)
    assert text.startswith(f"{name} — ")
    assert first_line(name) in text
    assert "Before" in text


@pytest.mark.parametrize("name", sorted({a for k in catalogue().values() for a in k.aliases}))
def test_every_alias_leads_to_its_move(name: str) -> None:
    wanted = {k.name for k in catalogue().values() if name in k.aliases} | ({name} & catalogue().keys())
    heads = [line.split(" — ")[0].strip() for line in ex.help(name).splitlines() if " — " in line]
    assert set(heads) >= wanted or name in catalogue()
    assert "no move is called" not in ex.help(name)


@pytest.mark.parametrize("name", ["memory", "timeline", "plot.pipeline"])
def test_figures_are_explained(name: str) -> None:
    figure = name.removeprefix("plot.")
    assert ex.help(name).startswith(f"{figure} — {(getattr(Plots, figure).__doc__ or '').strip().splitlines()[0]}")
    assert ex.help("pipeline").startswith("pipeline — Let the staged copies"), "a move goes before a figure of its name"
    assert figure in ex.help()


@pytest.mark.parametrize(("words", "ours"), [
    ("Exo: mult_loops", "coalesce"), ("Halide: fuse", "coalesce"), ("TVM: fuse", "coalesce"), ("Exo: fuse", "fuse"),
    ("halide: compute_with", "fuse"), ("  OpenMP :collapse ", "coalesce"), ("Clay: split", "distribute"),
    ("Clay: stripmine", "split"),
    ("loopy: add_prefetch", "stage"), ("TVM: cache_read", "stage"), ("TVM: cache_write", "outline"),
    ("Clay: peel", "cut"),
])
def test_other_dialects(words: str, ours: str) -> None:
    assert ex.help(words).startswith(f"{ours} — ")


def test_one_word_of_two_moves_gives_both() -> None:
    text = ex.help("isl: band_tile")
    assert text.startswith("isl: band_tile stands for several moves:")
    assert f"  split — {first_line('split')}" in text
    assert f"  tile — {first_line('tile')}" in text
    assert "Clay's split is distribute here" in text, "false friends are pointed out there, too"
    assert "Before" not in text, "of each a line"


def test_false_friends_are_pointed_out() -> None:
    assert "for nested loops" in ex.help("fuse")
    assert "Beware" in ex.help("Clay: stripmine")
    assert "Beware" not in ex.help("unroll")


def test_moving_the_consumer_is_no_word_for_moving_the_producer() -> None:
    assert "reverse_compute_at" not in catalogue()["compute_at"].aliases
    for words in ("reverse_compute_at", "TVM: reverse_compute_at"):
        said = ex.help(words)
        assert said.startswith("fuse —")
        assert "reverse_compute_at is a fuse for each loop" in said


def test_what_nobody_calls_anything() -> None:
    assert ex.help("splitt").startswith("no move is called 'splitt'; did you mean split")
    assert "coalesce" in ex.help("Exo: mult_loop") or "Exo: mult_loops" in ex.help("Exo: mult_loop")
    assert ex.help("zzzzzz") == "no move is called 'zzzzzz'; print(ex.help()) lists all"
    for nothing in (ex.help(), ex.help("")):
        assert all(f"  {name} " in nothing for name in catalogue())
        assert "export" in nothing
        assert "auto" in nothing


@pytest.mark.parametrize(("word", "said"), [
    ("run", "repeats : int"), ("export", "self-checking"), ("search", "trials : int"), ("compile", "architectures"),
    ("cuda", "The CUDA text."), ("schedule", "A value for every size"), ("load", "share string"),
    ("auto", "fast schedule by rules"),
])  # fmt: skip
def test_methods_and_strategies_are_explained_with_their_options(word: str, said: str) -> None:
    text = ex.help(word)
    assert text.startswith(f"{word} — ")
    assert said in text


def test_a_number_is_no_move() -> None:
    assert "no move is called '3'" in ex.help(3)  # type: ignore[arg-type]


def test_words_of_other_systems_lead_to_their_move() -> None:
    rows = {name: kind.elsewhere for name, kind in catalogue().items() if kind.elsewhere}
    assert len(rows) > 20
    for name, row in rows.items():
        for system, words in row.items():
            for word in words.split(","):
                assert f"{name} — " in ex.help(f"{system}: {word}"), (system, word)
