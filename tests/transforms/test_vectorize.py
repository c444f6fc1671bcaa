"""Vectorize: what it accepts is wide, aligned and uniformly guarded, by enumeration; each refusal names the access."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from math import prod

import pytest

import explorer as ex
from explorer.errors import TransformError
from explorer.ir.dtype import DTYPES
from explorer.ir.expr import const, quotient, var
from explorer.ir.plan import Buffer, Plan, initial
from explorer.ir.program import Access, Constraint, Indirect, Program
from explorer.ir.scalar import IndexValue, Read
from explorer.ir.text import loops_text
from explorer.ir.tree import Leaf, View
from explorer.schedule import Schedule
from explorer.steps.calls import read_call
from explorer.transforms.bind import Bind
from explorer.transforms.coalesce import Coalesce
from explorer.transforms.interchange import Interchange
from explorer.transforms.shift import Shift
from explorer.transforms.skew import Skew
from explorer.transforms.split import Split
from explorer.transforms.tile import Tile
from explorer.transforms.vectorize import Vectorize
from tests.oracle import check_plan, enumerate_plan
from tests.transforms.nests import copy, copy_2d, cube, matmul, plan, refusal, softmax, stencil1d, triangle, widen
from tests.transforms.programs import array, leaf, loops, program, read, statement


def lanes_of(p: Plan, name: str) -> dict[tuple, list[tuple[int, Leaf, tuple[int, ...]]]]:
    """For each leaf and values of the loops around the vector loop: lane, leaf and point of what runs."""
    groups: dict[tuple, list] = {}
    for (_, _, _, point), node, values in enumerate_plan(p):
        if name in values:
            key = (node.id, *(v for k, v in sorted(values.items()) if k != name))
            groups.setdefault(key, []).append((values[name], node, point))
    return groups


def assert_wide(p: Plan, name: str) -> None:
    """Every group of lanes is complete, and its accesses are equal or neighbouring and aligned."""
    width = p.loops[name].extent
    for group in lanes_of(p, name).values():
        assert [lane for lane, _, _ in group] == list(range(width)), "some lanes run and others do not"
        statement_ = p.statement_of[group[0][1].statement]
        for access in statement_.accesses:
            shape = p.array_of[access.array].shape
            cells = []
            for _, _, point in group:
                values = dict(zip(statement_.dims, point, strict=True))
                cells.append(sum(e.evaluate(values) * prod(shape[n + 1 :]) for n, e in enumerate(access.index)))
            steps = {b - a for a, b in pairwise(cells)}
            assert steps == {0} or (steps == {1} and cells[0] % width == 0), f"{access} at {cells}"


def test_what_is_accepted_is_wide() -> None:
    """Random splits, skews, tiles and interchanges of random sizes: enumeration agrees with every yes."""
    accepted = refused = 0
    for seed in range(700):
        pick = random.Random(seed)
        make = pick.choice((copy_2d, copy_2d, triangle, lambda m, n: copy(n), lambda m, n: matmul(m, n, 4)))
        sizes = pick.randint(2, 6), pick.choice((4, 6, 8, 12, 16))
        p = initial(make(max(sizes)) if make is triangle else make(*sizes))
        for _ in range(pick.randint(0, 3)):
            names = list(p.loops)
            one, two = pick.choice(names), pick.choice(names)
            step = pick.choice((
                Split(one, pick.choice((2, 3, 4, 8))), Coalesce((one, two)), Interchange(one, two), Tile((one,), (4,)),
                Skew(one, two, pick.choice((1, 4))), Shift(one, pick.choice((2, 4)))))
            if step.check(p):
                p = step.rewrite(p)
        try:
            check_plan(p)  # a split may overrun a part of a dimension; such plans are refused elsewhere
        except AssertionError:
            continue
        for name in p.loops:
            if Vectorize(name).check(p):
                accepted += 1
                wide = Vectorize(name).rewrite(p)
                check_plan(wide)
                assert_wide(wide, name)
            else:
                refused += 1
    assert accepted > 100
    assert refused > 100


@pytest.mark.parametrize("width", [2, 4])
def test_divisible_rows_are_accepted(width: int) -> None:
    assert_wide(plan(copy_2d(6, 16), Split("j", width), Vectorize("j.i")), "j.i")


def test_guards_that_all_lanes_share_are_accepted() -> None:
    """16 is no multiple of the tile 12, but 4 divides both: the guard holds for whole vectors."""
    p = plan(copy_2d(6, 16), Split("j", 12), Split("j.i", 4), Vectorize("j.i.i"))
    assert_wide(p, "j.i.i")


def test_sums_over_lanes_are_accepted() -> None:
    """The target of a reduction stays, the reads are wide."""
    p = plan(softmax(2, 8), Split("k_3", 4), Vectorize("k_3.i"))
    check_plan(p)
    assert_wide(p, "k_3.i")


def test_tree(golden) -> None:
    golden(loops_text(plan(copy_2d(6, 16), Split("j", 4), Bind("i", "block.x"), Vectorize("j.i"))))


def test_unlike_strides_are_refused_with_the_loop_that_has_neighbours() -> None:
    verdict = refusal(plan(copy_2d(8, 16), Split("i", 4), Interchange("i.i", "j")), Vectorize("i.i"))
    assert verdict.what == "S0 reads x[4*i + i.i, j]: consecutive iterations of i.i are 16 elements apart"
    assert verdict.hint == "vectorize('j'), whose iterations are neighbours"


def test_misaligned_rows_constants_and_offsets_are_refused() -> None:
    verdict = refusal(plan(copy_2d(6, 6), Split("j", 4)), Vectorize("j.i"))
    assert verdict.what == "S0 reads x[i, 4*j + j.i], not aligned to 4 elements: its linear index in x holds 6*i"
    assert verdict.why == "the address of a vector access is a multiple of its 16 bytes"
    verdict = refusal(plan(stencil1d(16), Split("i", 4)), Vectorize("i.i"))
    assert "x[4*i + i.i + 1]" in verdict.what
    assert "holds the constant 1" in verdict.what


def test_partial_vectors_are_refused() -> None:
    verdict = refusal(plan(copy(13), Split("i", 4)), Vectorize("i.i"))
    assert verdict.what == "S0 runs where 4*i + i.i < 13: for some lanes of i.i, not for others"
    assert verdict.why == "the lanes of a vector access all run or none does, unless it only reads inputs or writes results"
    assert "j <= i" in refusal(initial(triangle(4)), Vectorize("j")).what


def test_wide_types_are_refused_and_narrow_ones_go_further() -> None:
    verdict = refusal(plan(copy_2d(4, 16), Split("j", 8)), Vectorize("j.i"))
    assert verdict.what == "S0 reads x[i, 8*j + j.i]: 8 elements of 4 bytes are 32 bytes"
    assert verdict.hint == "split('j.i', 4) and vectorize('j.i.i')"
    assert Vectorize("j.i").check(plan(copy_2d(4, 16, "f16"), Split("j", 8)))
    assert "16 elements of 2 bytes" in refusal(initial(copy_2d(4, 16, "f16")), Vectorize("j")).what
    assert Vectorize("j").check(initial(copy_2d(4, 16, "i8")))
    assert "writes y[8*i + i.i]: 8 elements of 4 bytes" in refusal(plan(widen(), Split("i", 8)), Vectorize("i.i")).what


@pytest.mark.parametrize(("steps", "loop", "said"), [
    ("split('j', 3)", "j.i", "split('j', 4) in place of split('j', 3)"),
    ("split('j', 7, 'q')", "q", "split('j', 4, inner='q') in place of split('j', 7, inner='q')"),
    ("tile(('i', 'j'), (2, 5))", "j.i", "tile(('i', 'j'), (2, 4)) in place of tile(('i', 'j'), (2, 5))"),
    ("split('j', 6)", "j.i", "split('j.i', 2) and vectorize('j.i.i')"),
])
def test_the_factor_of_an_earlier_split_is_named_where_it_is_at_fault(steps: str, loop: str, said: str) -> None:
    s = Schedule.of(copy_2d(6, 48)).apply(read_call(steps)).bind("i", "block.x")
    with pytest.raises(TransformError) as caught:
        s.vectorize(loop)
    assert caught.value.hint == said
    if " in place of " in said:
        assert Schedule.of(copy_2d(6, 48)).apply(read_call(said.partition(" in place")[0])).bind("i", "block.x").vectorize(loop)


def test_no_other_factor_is_named_where_none_helps() -> None:
    """Rows of odd length are not aligned to any width; a loop that no split made has no factor."""
    for s, loop in ((Schedule.of(copy_2d(6, 45)).split("j", 3), "j.i"), (Schedule.of(copy_2d(6, 3)), "j")):
        with pytest.raises(TransformError) as caught:
            s.vectorize(loop)
        assert caught.value.hint == "a size that 2, 4, 8 or 16 divides"


def test_loops_that_cannot_be_lanes() -> None:
    assert "a vector has 2, 4, 8 or 16 lanes" in refusal(initial(copy(13)), Vectorize("i")).what
    assert refusal(plan(copy_2d(6, 16), Bind("j", "thread.x")), Vectorize("j")).what == "j is already thread.x"
    assert Vectorize.offers(initial(copy(13)), "i").hint.startswith("split('i', 4) and vectorize('i.i'); or ")
    verdict = refusal(initial(cube(4)), Vectorize("i"))
    assert verdict.what == "i holds j beside or instead of statements"
    assert "not an innermost loop" in Vectorize.offers(initial(cube(4)), "i").what
    verdict = refusal(plan(copy(8), Split("i", 4), Interchange("i", "i.i")), Vectorize("i"))
    assert "2 elements apart" not in verdict.what
    assert "consecutive iterations of i are 4 elements apart" in verdict.what


def test_a_loop_along_which_nothing_moves_is_refused() -> None:
    s0 = statement("S0", {"i": 4, "r": 4}, read("y", var("i")), Read(0), (read("x", var("i")),), "sum")
    p = program("repeat", (array("x", 4, role="in"), array("y", 4, role="inout")), (s0,), loops({"i": 4, "r": 4}, leaf(s0)))
    verdict = refusal(initial(p), Vectorize("r"))
    assert verdict.what == "no access below r reads or writes neighbouring elements"
    assert verdict.hint == "unroll('r') instead"


def _gather(moves: bool) -> Program:
    """``y[i, j] = x[t[i], j]``, or ``x[i, t[j]]`` where the index `moves` with j."""
    i, j = var("i"), var("j")
    index = (i, Indirect(Read(1))) if moves else (Indirect(Read(1)), j)
    s0 = statement("S0", {"i": 4, "j": 8}, read("y", i, j), Read(0), (Access("x", index), read("t", j if moves else i)))
    arrays = (array("x", 8, 8, role="in"), array("t", 8, role="in", dtype="i32"), array("y", 4, 8, role="out"))
    return program("gather", arrays, (s0,), loops({"i": 4, "j": 8}, leaf(s0)))


def test_data_dependent_rows_are_wide_and_columns_are_not() -> None:
    assert Vectorize("j.i").check(plan(_gather(False), Split("j", 4)))
    verdict = refusal(plan(_gather(True), Split("j", 4)), Vectorize("j.i"))
    assert verdict.what == "S0 reads x[i, t[4*j + j.i]], whose elements are not evenly spaced along j.i"
    by_value = replace(_gather(True), statements=(replace(
        _gather(True).statements[0], reads=(Access("x", (var("i"), Indirect(IndexValue(var("j"))))), read("t", const(0)))),))
    assert "not evenly spaced" in refusal(plan(by_value, Split("j", 4)), Vectorize("j.i")).what


def _stored(space: str, shape: tuple[int, ...], pad: int = 0) -> Plan:
    """copy_2d split by 4 whose target is a buffer indexed like it."""
    p = plan(copy_2d(6, 16), Split("j", 4))
    node = p.leaves[0][0]
    view = View("b", (var("i"), var("j") * 4 + var("j.i")))
    buffer = Buffer("b", DTYPES["f32"], shape, space, pad)
    return replace(p.replace_node("S0", replace(node, views=((1, view),))), buffers=(buffer,))


def test_padding_counts_and_registers_do_not() -> None:
    assert Vectorize("j.i").check(_stored("shared", (6, 16), 4))
    verdict = refusal(_stored("shared", (6, 16), 1), Vectorize("j.i"))
    assert verdict.what == "S0 writes b[i, 4*j + j.i], not aligned to 4 elements: its linear index in b holds 17*i"
    assert Vectorize("j.i").check(_stored("register", (6, 17)))


def test_folded_indices_are_compared_lane_by_lane() -> None:
    """``(4*j + j.i) // 4`` is the same for all lanes, ``(4*j + j.i) // 2`` is not."""
    p = plan(copy_2d(6, 16), Split("j", 4))
    node, index = p.leaves[0][0], var("j") * 4 + var("j.i")
    for by, good in ((4, True), (2, False)):
        view = View("b", (quotient(index, by),))
        stored = p.replace_node("S0", replace(node, views=((0, view),)))
        stored = replace(stored, buffers=(Buffer("b", DTYPES["f32"], (8,), "shared"),))
        assert bool(Vectorize("j.i").check(stored)) == good


def test_a_start_counts_for_the_alignment() -> None:
    assert "holds the constant 2" in refusal(_inner_start(2), Vectorize("j")).what
    aligned = Vectorize("j").rewrite(_inner_start(4))
    assert aligned.loops["j"].start == 0
    assert_wide(aligned, "j")


def _inner_start(start: int) -> Plan:
    """``y[i, j]`` for j in start … start + 4."""
    i, j = var("i"), var("j")
    s0 = statement("S0", {"i": 6, "j": 16}, read("y", i, j), Read(0), (read("x", i, j),), where=(j - start, const(start + 3) - j))
    arrays = (array("x", 6, 16, role="in"), array("y", 6, 16, role="out"))
    p = initial(program("part", arrays, (s0,), loops({"i": 6, "j": 4}, leaf(s0))))
    return p.replace_node("j", replace(p.loops["j"], start=start))


def test_equalities_and_zero_fill_are_guards_too() -> None:
    base = plan(copy_2d(6, 16), Split("j", 4))
    s0 = base.program.statements[0]
    for extra, good in ((Constraint(var("i") - 2, equality=True), True), (Constraint(var("j") - 5, equality=True), False)):
        p = replace(base, program=replace(base.program, statements=(replace(s0, domain=(*s0.domain, extra)),)))
        assert bool(Vectorize("j.i").check(p)) == good
    for edge, good in ((12, True), (13, False)):
        filled = replace(s0, inside=(Constraint(const(edge - 1) - var("j")),))
        p = replace(base, program=replace(base.program, statements=(filled,)))
        assert bool(Vectorize("j.i").check(p)) == good


def test_inputs_that_are_no_neighbours_are_read_one_by_one_where_asked() -> None:
    """A vector of rows of odd length ends in the next row, where the bias begins again."""
    p = plan(_gather(True), Split("j", 4))
    assert refusal(p, Vectorize("j.i")).hint == "vectorize('j.i', gather=True) reads it one by one"
    assert Vectorize("j.i", gather=True).check(p)
    check_plan(Vectorize("j.i", gather=True).rewrite(p))
    turned = plan(copy_2d(8, 16), Split("i", 4), Interchange("i.i", "j"))
    assert "16 elements apart" in refusal(turned, Vectorize("i.i", gather=True)).what  # the result would be no vector


def test_lanes_update_by_atomics_one_by_one() -> None:
    a, b, c = ex.sizes("A B C")

    @ex.program
    def peaks(x: ex.f32[a, b, c], y: ex.f32[b]):
        for i in range(b):
            peak = ex.local(ex.f32)
            peak = -ex.inf
            for j in range(a):
                for k in range(c):
                    peak = max(peak, x[j, i, k])
            y[i] = peak

    s = peaks.schedule(A=3, B=3, C=2).bind("j", "thread.y", count=2).rfactor("S1", "k")
    s = s.collect("S1", "shuffle").collect("S1_combine_2", "atomic").vectorize("k.c_3")
    assert s.judgement.emittable
    assert "atomic_max(&peak_p[" in s.cuda
    assert s.run(device="cpu", time=False, checked=True).correct
