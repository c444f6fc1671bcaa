"""Every defect put into the product is noticed by one of its judgements; without defects, nothing is."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.poly.barriers import barriers

from .gallery import GALLERY
from .judgement import SURVIVED, Caught, caught, control, page, table
from .mutants import MUTANTS, Mutant
from .patches import patched

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mutants.md"


@pytest.fixture(scope="module")
def found() -> list[Caught]:
    return caught()


def test_without_a_mutant_nothing_is_noticed() -> None:
    assert control() == {make.__name__: SURVIVED for make in GALLERY}


def test_every_mutant_is_noticed(found: list[Caught]) -> None:
    print(table(found))
    assert not [f"{c.mutant.part}: {c.mutant.breaks} ({c.by})" for c in found if c.survived]


def test_every_kind_of_judgement_notices_some(found: list[Caught]) -> None:
    kinds = {c.by.split(":")[0] for c in found}
    assert {"question cover", "question flow", "question race", "CPU device", "the reference"} <= kinds


def test_no_barrier_of_the_gallery_is_superfluous() -> None:
    """There are as many mutants that drop a barrier as there are barriers."""
    dropped = [m.make for m in MUTANTS if m.part == "barriers" and "dropped" in m.breaks]
    for make in GALLERY:
        plan = make().plan
        assert sum(len(barriers(plan, kernel).before) for kernel in plan.kernels) == dropped.count(make), make.__name__


def test_a_mutant_leaves_nothing_behind() -> None:
    """After a patch the product is what it was: the control passes once more, and the patched functions are the originals."""
    for mutant in MUTANTS:
        before = [getattr(*p.holder()) for p in mutant.patches]
        with patched(*mutant.patches):
            assert all(getattr(*p.holder()) is not old for p, old in zip(mutant.patches, before, strict=True))
        assert [getattr(*p.holder()) for p in mutant.patches] == before


def test_a_mutant_that_breaks_nothing_survives() -> None:
    """The harness can say that a mutant survived, and that its text was not found."""
    harmless, lost = caught([Mutant("text", "a comment is changed", GALLERY[0], text=(("// S2", "// S3"),)),
                             Mutant("text", "nothing to change", GALLERY[0], text=(("no such text", ""),))])
    assert harmless.survived
    assert lost.survived


def test_the_page_is_up_to_date(found: list[Caught]) -> None:
    assert PAGE.read_text(encoding="utf-8") == page(found), "python -m benchmarks.properties --mutants --write"
