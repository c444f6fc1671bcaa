"""Engines of staged copies: loops, commits and waits, pipelines, and every reason why a copy cannot be a bulk copy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import explorer as ex
from explorer.errors import IllegalSchedule, TransformError
from explorer.ir.tree import Sync, walk
from explorer.schedule import Schedule
from explorer.transforms.stage import Stage
from tests.kernel.bulk_schedules import five, line, plane, product, several_tiles, tiled_product, tiles, vector, window

D, E = ex.sizes("D E")


def syncs(s: Schedule) -> list[str]:
    return [n.kind if n.kind == "commit" else f"wait {n.pending}" for n in walk(s.plan.kernels[0].body) if isinstance(n, Sync)]


def mechanisms(s: Schedule) -> set[str]:
    return {leaf.mechanism for leaf, _, _ in s.plan.leaves if leaf.statement in {c.name for c in s.plan.copies}}


def before() -> Schedule:
    """A product in tiles, without copies."""
    s = product.schedule(D=20, E=40, C=72).split("i", 8).split("j", 32).split("k", 16).reorder("i", "j", "i.i", "j.i")
    s = s.bind("i", "block.y").bind("j", "block.x").bind("i.i", "thread.y").contract("total", "register")
    return s.bind("j.i", "thread.x")


def test_a_bulk_copy(golden) -> None:
    golden(str(tiles(swizzle=128)))


def test_boxes_of_at_most_256_elements_that_lie_in_one_piece(golden) -> None:
    s = plane.schedule(D=600, E=256).split("d", 300).split("e", 256).reorder("d", "e", "d.i", "e.i")
    golden("\n".join(str(s.stage("x", "e", engine="bulk", swizzle=swizzle)) for swizzle in (0, 128)))


def test_copies_of_one_place_share_a_group_and_a_pipeline_takes_its_own(golden) -> None:
    s = tiled_product()
    assert syncs(s) == ["commit", "wait 0"]
    piped = s.pipeline("k", 3)
    assert syncs(piped) == ["commit", "wait 1", "commit"]
    assert mechanisms(piped) == {"bulk"}
    golden(f"{s}\n{piped}")


def test_asynchronous_copies_without_a_pipeline() -> None:
    s = before().stage("x", "k", engine="async", vector=4).stage("y", "k", engine="async", vector=8)
    assert (syncs(s), mechanisms(s)) == (["commit", "wait 0"], {"async"})
    assert s.run(device="cpu").correct
    assert syncs(s.pipeline("k", 3)) == ["commit", "wait 1", "commit"]
    plain = s.pipeline("k", 2, asynchronous=False)
    assert (syncs(plain), mechanisms(plain)) == ([], {"plain"})


def test_engines_beside_each_other() -> None:
    s = before().stage("x", "k", engine="bulk", swizzle=32).stage("y", "k", engine="async", vector=8)
    assert syncs(s) == ["commit", "wait 0"]
    assert s.run(device="cpu").correct
    piped = s.pipeline("k", 3)
    assert mechanisms(piped) == {"bulk", "async"}
    assert "async_commit();" in piped.cuda
    assert "mbarrier_arrive(arrived[" in piped.cuda
    assert piped.run(device="cpu").correct


def test_a_swizzle_of_other_engines() -> None:
    s = before().stage("x", "k", vector=8, swizzle=32).stage("y", "k", engine="async", vector=8, swizzle=64)
    assert s.run(device="cpu").correct
    assert "swizzled<64, __half>" in s.cuda


REFUSED: dict[str, tuple[Callable[[], Schedule], str]] = {
    "an unknown engine": (lambda: before().stage("x", "k", engine="dma"), "no engine is called 'dma'"),
    "an odd swizzle": (lambda: before().stage("x", "k", engine="bulk", swizzle=48), "32, 64 or 128 bytes, not 48"),
    "registers": (lambda: before().stage("x", "k", "register", engine="bulk"), "a copy in registers is made by its own thread"),
    "padding": (lambda: before().stage("x", "k", engine="bulk", pad=8), "no vectors, no padding and no threads"),
    "vectors": (lambda: before().stage("x", "k", engine="bulk", vector=8), "no vectors, no padding and no threads"),
    "a swizzle with padding": (lambda: before().stage("x", "k", pad=8, swizzle=32), "a swizzled array has no padding"),
    "rows that a swizzle does not divide": (lambda: before().stage("x", "k", engine="bulk", swizzle=128), "rows of 32 bytes"),
    "narrow copies": (lambda: before().stage("x", "k", engine="async"), "moves 2 bytes of x at once"),
    "odd rows of the array": (lambda: tiles(d=37, e=74), "rows of x are 148 bytes apart"),
    "odd rows of the box": (lambda: tiles(plane, 37, 72, (16, 20), threads=4), "a row of the box of x_s has 40 bytes"),
    "six dimensions": (lambda: six.schedule(D=4, E=8).stage("x", "f", engine="bulk"), "x has 6 dimensions"),
    "data-dependent elements": (lambda: picked.schedule(D=4, E=8).stage("x", "d", engine="bulk"), "data-dependent"),
    "gaps": (lambda: strided.schedule(E=64).split("e", 16).stage("x", "e", engine="bulk"),
             "elements of x that x_s copies lie 2 apart in a row"),
    "boxes that begin anywhere": (lambda: shifted.schedule(E=64).split("e", 16).stage("x", "e", engine="bulk"),
                                  "boxes of x begin at column 16*e + 1"),
    "no zeros": (lambda: unfilled(), "copies a part of a box"),
    "a sum's copy": (lambda: window().stage("x_s", "d.i", engine="bulk"), "copies from shared memory"),
    "what the launch writes": (lambda: twice.schedule(E=64).split("e", 16).split("f", 16).stage("t", "f", engine="bulk"),
                               "writes t in the launch in which"),
    "a plain pipeline of bulk copies": (lambda: tiled_product().pipeline("k", 2, asynchronous=False), "always is asynchronous"),
}


@ex.program
def six(x: ex.f32[2, 2, 2, 2, D, E], y: ex.f32[D, E]):
    for f in range(2):
        for d in range(D):
            for e in range(E):
                y[d, e] = x[f, 0, 0, 0, d, e]


@ex.program
def picked(x: ex.f32[D, E], i: ex.i32[E], y: ex.f32[D, E]):
    for d in range(D):
        for e in range(E):
            y[d, e] = x[d, i[e]]


@ex.program
def strided(x: ex.f32[2 * E], y: ex.f32[E]):
    for e in range(E):
        y[e] = x[2 * e]


@ex.program
def shifted(x: ex.f32[E + 1], y: ex.f32[E]):
    for e in range(E):
        y[e] = x[e + 1]


@ex.program
def twice(x: ex.f32[E], y: ex.f32[E]):
    t = ex.local(ex.f32, E)
    for e in range(E):
        t[e] = 2.0 * x[e]
    for f in range(E):
        y[f] = t[f] + 1.0


def unfilled() -> Schedule:
    s = line.schedule(E=300).split("e", 64).bind("e", "block.x").bind("e.i", "thread.x")
    return s.stage("x", "e", engine="bulk", fill=False)


@pytest.mark.parametrize("name", REFUSED)
def test_each_refusal_says_what_and_what_to_try(name: str) -> None:
    make, words = REFUSED[name]
    with pytest.raises(TransformError) as refused:
        make()
    assert words in str(refused.value)
    assert refused.value.hint or name in ("a sum's copy", "data-dependent elements"), refused.value


BREAKING: dict[str, tuple[Callable[[], Schedule], str]] = {
    "a loop of the box is divided": (lambda: tiles().split("x_s.1", 16), "x_s.1"),
    "it becomes a thread's": (lambda: tiles().bind("x_s.0", "thread.y"), "x_s.0"),
    "it is unrolled": (lambda: tiles().unroll("x_s.1"), "x_s.1"),
    "a loop comes between": (lambda: boxes().interchange("x_s.1", "x_s.0"), "x_s.0, over elements of a box, has x_s.1"),
    "loops of the box trade places": (lambda: tiles().interchange("x_s.0", "x_s.1"), "x_s"),
}


def boxes() -> Schedule:
    """Eight rows of two boxes each: rows longer than the swizzle."""
    return plane.schedule(D=32, E=64).tile(("d", "e"), (8, 64)).stage("x", "e", engine="bulk", swizzle=64)


@pytest.mark.parametrize("name", BREAKING)
def test_a_step_that_takes_a_box_apart_is_not_taken(name: str) -> None:
    make, words = BREAKING[name]
    with pytest.raises((TransformError, IllegalSchedule), match=words):
        make()


def test_the_judge_refuses_what_a_step_cannot_make() -> None:
    """A plan that says that it copies in bulk and cannot is not legal."""
    s = tiles()
    padded = replace(s.plan, buffers=tuple(replace(b, pad=8) for b in s.plan.buffers))
    (refusal,) = replace(s, plan=padded).judgement.refusals
    assert "x_s copies in bulk and cannot: the box of x_s does not lie in one piece in x_s" in refusal.what


def test_what_can_be_bulk_is_offered_with_the_widest_swizzle_that_fits() -> None:
    offered = [str(step) for step in Stage.candidates(before().plan, "k")]
    assert "stage('x', 'k', engine='bulk', swizzle=32)" in offered
    assert "stage('y', 'k', engine='bulk', swizzle=64)" in offered
    assert not [text for text in map(str, Stage.candidates(tiles_of_odd_rows().plan, "e")) if "bulk" in text]


def tiles_of_odd_rows() -> Schedule:
    return plane.schedule(D=37, E=74).split("d", 16).split("e", 64).reorder("d", "e", "d.i", "e.i")


ENGINES: dict[str, dict] = {"bulk": {"engine": "bulk"}, "async": {"engine": "async", "vector": 8}}


@pytest.mark.parametrize(("x", "y"), [("bulk", "bulk"), ("async", "async"), ("bulk", "async"), ("async", "bulk")])
@pytest.mark.parametrize(("stages", "open_"), [((4, 2), [4, 1]), ((2, 3), [2, 1]), ((3, 0), [4, 1]), ((0, 2), [2, 1])])
def test_stages_of_their_own(x: str, y: str, stages: tuple[int, int], open_: list[int]) -> None:
    """Bulk copies are waited for group by group, others by the youngest wait; 0 stages: for its own iteration."""
    s = before().stage("x", "k", **ENGINES[x]).stage("y", "k", **ENGINES[y])
    for name, n in zip(("x_s", "y_s"), stages, strict=True):
        s = s.pipeline("k", n, copies=(name,)) if n else s
    inside = [n for n in walk(s.plan.loops["k"].body) if isinstance(n, Sync) and n.kind == "wait"]
    oldest = (x, y)[stages.index(max(stages))]  # its wait is the one that leaves the most open
    assert [n.pending for n in inside] == (open_ if oldest == "bulk" else open_[1:])
    assert s.run(device="cpu").correct
    for sync in inside:
        late = replace(s, plan=s.plan.replace_node(sync.id, replace(sync, pending=sync.pending + 1)))
        assert late.judgement.refusals or late.obligations


def test_a_wait_that_is_for_no_group_alone() -> None:
    s = before().stage("x", "k", engine="bulk").stage("y", "k", engine="bulk").pipeline("k", 3, copies=("x_s",))
    first = next(n for n in walk(s.plan.loops["k"].body) if isinstance(n, Sync) and n.kind == "wait")
    (alone,) = replace(s, plan=s.plan.replace_node(first.id)).obligations
    assert "no wait is for the groups of x_s alone" in alone.what
    assert list(alone.hints) == ["pipeline the bulk copies of a loop together"]


def test_vectors_and_many_tiles_stay_right() -> None:
    for s in (vector(), several_tiles(), five.schedule(A=2, B=2, C=2, D=4, E=8).stage("x", "b", engine="bulk")):
        assert s.run(device="cpu").correct
