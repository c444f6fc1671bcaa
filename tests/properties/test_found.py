"""What property runs have found wrong, each in its smallest schedule: judged rightly now, and run where it is accepted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from explorer.errors import ExplorerError, IllegalSchedule
from explorer.ir.tree import walk
from explorer.poly.judge import judge
from explorer.schedule import Schedule
from explorer.transforms.base import catalogue
from explorer.transforms.bind import Bind
from tests.mutants.gallery import GUARDED

from .programs import define
from .tally import ACCEPTED
from .trial import Trial
from .witness import doubt

ROWS = """@ex.program
def f(x: ex.f32[M, N], y: ex.f32[M]):
    for i in range(M):
        y[i] = 0.0
    for i in range(M):
        for k in range(N):
            y[i] += x[i, k]
"""
NARROW = """@ex.program
def f(x: ex.i8[M, N], y: ex.i32[M]):
    for i in range(M):
        t = ex.local(ex.i32)
        t = 0
        for k in range(N):
            t += x[i, k]
        y[i] = t
"""
ANY = """@ex.program
def f(x: ex.i8[M, N], y: ex.bool_[M]):
    for i in range(M):
        t = ex.local(ex.bool_)
        t = False
        for k in range(1, N):
            t = t or (x[i, k] < 0)
        y[i] = t
"""
EVERY_OTHER = """@ex.program
def f(u: ex.f32[2 * N + 1], y: ex.f32[M]):
    for i in range(M):
        y[i] = 1.0
    for i in range(N):
        u[2 * i + 1] = 0.5 * (u[2 * i] + u[2 * i + 2])
"""
LANES = """@ex.program
def f(x: ex.f32[M, 8], y: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            y[i, j] = x[i, 0] + x[i, 3]
"""
CUBE = """@ex.program
def f(x: ex.f32[M, N], y: ex.f32[3, M, N]):
    t = ex.local(ex.f32, M, N, 3)
    for i in range(M):
        for j in range(N):
            for k in range(3):
                t[i, j, k] = 0.5 * x[i, j] * k
    for k in range(3):
        for i in range(M):
            for j in range(N):
                y[k, i, j] = t[i, j, k] - x[i, j]
"""
PARTLY = """@ex.program
def f(x: ex.f32[M, N], y: ex.f32[M]):
    for i in range(M):
        t = ex.local(ex.f32)
        t = 1.0
        for k in range(N):
            t += x[i, k]
        y[i] = t
"""


COLUMNS = """
@ex.program
def f(x: ex.f32[M, N], y: ex.f32[M]):
    for k in range(N):
        for i in range(M):
            y[i] += x[i, k]
"""
ROUND = """
@ex.program
def f(x: ex.f32[M, N], S2: ex.f32[M, N], t: ex.f32[N]):
    for S1 in range(M):
        for f in range(N):
            S2[S1, f] = x[S1, f]
            if f % 2 == 1:
                S2[S1, f] = 0.5 * x[S1, f]
    for f in range(N):
        t[f] = S2[0, f]
"""
BAND = """
@ex.program
def f(x: ex.f32[M + 2, N + 2], y: ex.f32[M]):
    for i in range(M):
        y[i] = 0
    for i in range(M - 1, -1, -1):
        for k in range(max(0, i - 1), min(N, i + 2)):
            y[i] += x[i, k]
"""
REVERSED = """
@ex.program
def f(x: ex.f32[M, N], y: ex.f32[M, N]):
    t = ex.local(ex.f32, N)
    for j in range(N):
        t[j] = 0.5 * j
    for i in range(M):
        for j in range(N):
            y[i, j] = x[i, j] + t[j]
"""
SOME = """
@ex.program
def f(x: ex.f32[M, N], y: ex.f32[1]):
    y[0] = -ex.inf
    for i in range(M):
        for k in range(N):
            if 0 < i and i < 4:
                y[0] = max(y[0], x[i, k])
"""
ALL = """
@ex.program
def f(x: ex.f64[M, N], y: ex.f64[1]):
    y[0] = ex.inf
    for i in range(M):
        for k in range(N):
            y[0] = min(y[0], x[i, k])
"""


@dataclass(frozen=True)
class Case:
    """A program, a chain of moves, and what must come of it: accepted (and run), or the question that refuses it."""

    what: str
    text: str
    chain: Callable[[Schedule], Schedule]
    outcome: str = ACCEPTED
    sizes: tuple[tuple[str, int], ...] = (("M", 5), ("N", 4))


CASES = (
    Case("a cluster of one block", ALL, lambda s: s.bind("i", "block.y").collect("S1", "atomic").collect("S1_combine", "cluster"),
         sizes=(("M", 1), ("N", 8))),
    Case("partial results that start everywhere and are updated in some rows", SOME,
         lambda s: s.rfactor("S1", "i").compute_at("S1", "i.c").compute_at("S1_init", "i.c").accumulate("y_p")),
    Case("the values of all lanes at once, from a thread's own array", ROWS,
         lambda s: s.bind("k", "thread.x", count=2).reorder(("k", "k.b", "i_2")).collect("S1", "shuffle")),
    Case("a loop and an array called as statements are, a loop called as the program is", ROUND,
         lambda s: s.interchange("S1", "f").reverse("S1").split("f", 2).stage("x", "S1")),
    Case("shuffles for elements that nobody updates", BAND,
         lambda s: s.tile(("i_2", "k"), (2, 2)).bind("k.i", "thread.y").rfactor("S1", "k.i").bind("k", "thread.x")
         .collect("S1", "shuffle").collect("y", "shuffle"), sizes=(("M", 11), ("N", 4))),
    Case("an early copy in a body of copies alone", ROWS,
         lambda s: s.stage("x", "i_2", space="register").stage("x", "x_r.0", space="register", early=True)),
    Case("copies of a cut loop were no copies to question flow", ROWS,
         lambda s: s.stage("x", "k").cut("k", 1).distribute("k.2", "x_s.2"), "flow"),
    Case("registers outlived the loop they are declared in", ROWS,
         lambda s: s.stage("x", "k", space="register").shift("k", 1, of="S1"), "flow"),
    Case("copies of elements that nobody writes are masked", GUARDED, lambda s: s.stage("t", "j")),
    Case("copies of elements that another block writes", EVERY_OTHER,
         lambda s: s.stage("u", "i_2", space="register").bind("i", "block.x"), "flow"),
    Case("... within a block they do no harm", EVERY_OTHER,
         lambda s: s.stage("u", "i_2", space="register").bind("i", "thread.x")),
    Case("shuffles over threads that update several elements", ROWS,
         lambda s: s.coalesce(("i_2", "k")).bind("i_2", "thread.x"), "obligation"),
    Case("shuffles of narrow integers", NARROW, lambda s: s.bind("k", "thread.x").collect("t", "shuffle")),
    Case("shared memory for sums of narrow integers", NARROW, lambda s: s.bind("k", "thread.x").collect("t", "shared")),
    Case("partial results of a coalesced loop", ROWS, lambda s: s.coalesce(("i_2", "k")).rfactor("S1", "i_2")),
    Case("partial results of a skewed loop: two loops of one name", ROWS,
         lambda s: s.interchange("i_2", "k").skew("i_2", "k", factor=2).rfactor("S1", "i_2")),
    Case("partial results of a coalesced loop: two loops of one name", ROWS,
         lambda s: s.coalesce(("i_2", "k")).rfactor("S1", "i_2").skew("i_2.c", "i_2.c_2")),
    Case("a load that the compiler made up", ANY, lambda s: s.cut("k", 1).contract("t", space="shared").split("i", 2)),
    Case("register copies in a vector loop", LANES, lambda s: s.vectorize("j").stage("x", "j", space="register")),
    Case("a coalesced producer at its consumer, twice", CUBE,
         lambda s: s.compute_at("S0", "j_2").coalesce(("i_2", "j_2")).distribute("i_2", "S0").compute_at("S0", "i_2.2")),
    Case("a copy of a temporary in registers read before the block has it", PARTLY,
         lambda s: s.stage("t", "i").contract("t").bind("k", "warp"), "flow"),
    Case("updates of one element by two parts of a cut loop, in different blocks", COLUMNS,
         lambda s: s.cut("k", 1).bind("i.2", "block.x"), "order"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.what)
def test_found(case: Case) -> None:
    definition = define(case.text, "found.py")
    start = definition.schedule(**{name: dict(case.sizes)[name] for name in definition.sizes})
    trial = Trial(shrinks=0)
    if case.outcome in ("flow", "order"):
        with pytest.raises(IllegalSchedule) as caught:
            case.chain(start)
        assert caught.value.finding.question == case.outcome
        return
    trial.conclude("0:0", case.chain(start))
    trial.flush()
    assert not trial.tally.found, str(trial.tally.found[0])
    assert ACCEPTED in trial.tally.pairs.values()
    assert case.outcome in trial.tally.pairs.values()


@pytest.mark.parametrize(("sizes", "chain"), [
    ({"M": 5, "N": 0}, lambda s: s.bind("k", "thread.x").stage("x", "k")),
    ({"M": 4, "N": 4}, lambda s: s.stage("x", "i_2").vectorize("k").stage("x", "k")),
    ({"M": 5, "N": 4}, lambda s: s.coalesce(("i_2", "k")).bind("i_2", "thread.x").collect("y", "shuffle")),
    ({"M": 5, "N": 4}, lambda s: s.stage("x", "k").approximate("x_s")),
], ids=["a loop without iterations", "shared copies in a vector loop", "mixed elements", "a copy computes nothing"])
def test_refused_in_words(sizes: dict[str, int], chain: Callable[[Schedule], Schedule]) -> None:
    """A precondition with a reason, where there was a crash or wrong text."""
    with pytest.raises(ExplorerError) as caught:
        chain(define(ROWS, "found.py").schedule(**sizes))
    assert caught.value.what
    assert not isinstance(caught.value, IllegalSchedule)


def test_names_of_nodes_are_told_apart() -> None:
    """Statements and loops are named apart from what the user calls things."""
    s = define(ROUND, "round.py").schedule(M=3, N=4)
    names = [node.id for kernel in s.plan.kernels for node in walk(kernel.body)]
    assert len(names) == len(set(names)), names
    assert {leaf.statement for leaf, _, _ in s.plan.leaves} == {"S0", "S3", "S4"}


def test_a_wrong_copy_of_a_copy_is_seen_through_both() -> None:
    """The enumeration follows copies that are read by way of a view."""
    s = define(REVERSED, "reversed.py").schedule(M=2, N=3).stage("t", "i", space="register").reverse("j").stage("t", "t_r.0")
    plan = s.try_step(catalogue()["contract"]("t"))[1]  # type: ignore[call-arg]
    if plan is not None and (refusals := judge(plan).refusals):
        assert doubt(plan, refusals[0]) == ""


def test_a_shared_buffer_of_the_next_iteration_is_the_same_memory() -> None:
    """Of a race between lanes of a vector loop, where no barrier can stand (chain 8001:661)."""
    text = '''@ex.program
def f(x: ex.f32[N], y: ex.f32[N], z: ex.f32[M, N]):
    for i in range(N):
        y[i] = x[i]
    for k in range(M):
        for j in range(N):
            z[k, j] = 0.0
'''
    s = define(text, "lanes.py").schedule(N=4, M=3).stage("x", "i", space="register").stage("x", "i", pad=1)
    s = s.vectorize("i")
    _, plan = s.try_step(Bind("j", "lane"))
    assert plan is not None
    found = judge(plan).refusals
    assert {f.question for f in found} == {"race"}
    assert [doubt(plan, f) for f in found] == [""] * len(found)


def test_an_update_that_nobody_contributes_to_may_have_no_cell() -> None:
    """In the last round of a fused loop every thread gives the identity, to a cell that the array lacks (chain 8005:905)."""
    text = '''@ex.program
def f(x: ex.f32[N, K], y: ex.f32[N, K]):
    for i in range(N):
        t = ex.local(ex.f32)
        t = 0
        for k in range(K):
            t += abs(x[i, k])
        for j in range(K):
            y[i, j] = abs(x[i, j])
'''
    for how in ("shared", "shuffle"):
        s = define(text, "cells.py").schedule(N=4, K=3).distribute("i", "S0").bind("k", "thread.x").collect("t", how)
        s = s.contract("t").shift("i.2", 1, of="j").fuse("i", "i.2")
        assert s.run(device="cpu").correct
        assert "if (i <= 3) t[i] +=" in s.cuda or "if (i < 4) t[i] +=" in s.cuda


def test_warps_beside_an_axis_of_one_thread() -> None:
    """Chain 8005:723."""
    text = '''@ex.program
def f(x: ex.f32[K, N], y: ex.f32[1]):
    y[0] = ex.inf
    for i in range(K):
        for k in range(N):
            y[0] = min(y[0], x[i, k])
'''
    s = define(text, "warps.py").schedule(K=1, N=2).bind("i", "thread.y").bind("k", "warp")
    assert s.collect("y", "shuffle").run(device="cpu").correct


def test_a_narrow_type_keeps_its_identity_where_a_wider_one_adds_up() -> None:
    """Parts without instances hold the smallest i32, which as i8 would be 0 (chain 9001:815)."""
    text = '''@ex.program
def f(x: ex.i8[M + 2, N + 2], y: ex.i8[1]):
    y[0] = -100
    for i in range(0, M, 2):
        for j in range(max(0, i - 1), min(N, i + 2)):
            y[0] = max(y[0], x[i, j])
'''
    s = define(text, "narrow.py").schedule(M=3, N=1).bind("i", "block.x").bind("j", "thread.x")
    for way in ("last_block", "kernel", "atomic"):
        assert s.collect("S1", way).run(device="cpu").correct, way
    s = s.collect("S1", "last_block").collect("S1", "shared").collect("S1_combine", "shared").collect("S1_combine", "atomic")
    assert s.run(device="cpu").correct


def test_a_part_that_only_a_mixed_loop_tells_is_not_accumulated() -> None:
    """Chain 9011:443: the register form of a part of a handoff named a loop that was gone."""
    text = '''@ex.program
def f(x: ex.f16[N + 2, M + 2], y: ex.f16[N]):
    for i in range(N):
        y[i] = ex.inf
    for k in range(M):
        for i in range(0, N, 3):
            y[i] = min(y[i], x[i, k])
'''
    s = define(text, "mixed.py").schedule(N=2, M=1).skew("i_2", "k").bind("i_2", "block.x")
    with pytest.raises(ExplorerError, match="mix the elements"):
        s.collect("S1", "kernel").accumulate("y_p")
    with pytest.raises(ExplorerError, match="handed off"):
        s.collect("S1", "handoff")
    for how in ("last_block", "kernel"):
        assert s.collect("S1", how).run(device="cpu").correct, how


def test_what_a_copy_reads_and_nobody_uses_may_be_anything() -> None:
    """A cell that is copied ahead and written meanwhile matters only where somebody reads the copy (chain 9011:1088)."""
    text = '''@ex.program
def f(u: ex.i64[M + 2, N + 2]):
    for i in range(1, M):
        for j in range(0, N, 3):
            u[i + 1, j + 1] = u[i, j + 2] - u[i + 2, j + 1]
'''
    s = define(text, "unused.py").schedule(M=4, N=6).cut("i", 1).stage("u", "i.2").pipeline("i.2", 3)
    assert s.run(device="cpu").correct
    used = define(text.replace("j + 2", "j + 1"), "used.py").schedule(M=4, N=6).cut("i", 1).stage("u", "i.2")
    with pytest.raises(IllegalSchedule):
        used.pipeline("i.2", 3)
