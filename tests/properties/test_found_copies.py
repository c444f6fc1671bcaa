"""What property runs have found wrong of copies, of combined values and of what nothing runs: judged rightly, and run."""

from __future__ import annotations

import pytest

from explorer import workloads
from explorer.errors import ExplorerError, IllegalSchedule
from explorer.poly.judge import judge
from explorer.transforms.bind import Bind
from explorer.transforms.contract import Contract
from explorer.transforms.load_matrix import LoadMatrix
from explorer.transforms.pipeline import Pipeline

from .programs import define
from .tf32_tiles import tf32_tiles
from .witness import doubt


def test_two_copies_in_flight_to_one_cell_are_refused_whoever_reads_it() -> None:
    """They are undefined, and a fault on the CPU device; the check of the witness asked for wrong values (chain 9412:1040)."""
    text = '''@ex.program
def f(x: ex.f32[M, N], y: ex.f32[M]):
    for i in range(M):
        for k in range(N):
            if i != i:
                y[i] += x[i, k]
'''
    s = define(text, "flight.py").schedule(M=5, N=2).stage("x", "i", threads=False, early=True)
    step = Pipeline("i", 3, buffers=1)
    with pytest.raises(IllegalSchedule, match="has landed") as caught:
        s.apply(step)
    _, plan = s.try_step(step)
    assert plan is not None
    assert not doubt(plan, caught.value.finding)
    assert doubt(s.pipeline("i", 3, buffers=3).plan, caught.value.finding)
    assert "while an asynchronous copy into it is pending" in str(s.counterexample(step))
    assert s.pipeline("i", 2, buffers=1).run(device="cpu").correct


def test_kernels_that_share_a_launch_share_its_block() -> None:
    """320 threads of one and 8 rows of another are blocks of 2,560 (chain 9001:935)."""
    text = '''@ex.program
def f(x: ex.f32[N, M], y: ex.f32[N]):
    for i in range(N):
        y[i] = ex.inf
    for i in range(N):
        for k in range(M):
            y[i] = min(y[i], x[i, k])
'''
    s = define(text, "block.py").schedule(N=10, M=8).launch("f", after="i").bind("k", "block.x").collect("S1", "last_block")
    s = s.bind("i_2", "warp")
    with pytest.raises(ExplorerError, match="320 x 8 x 1 = 2560 threads"):
        s.bind("k.c", "thread.y")


def test_a_prologue_may_copy_from_another_copy_than_the_loop_does() -> None:
    """The judge of the IR asks each of them for the element, and the one that has it answers (chain 9201:687)."""
    s = workloads.get("conv2d").definition.schedule(B=1, C=1, H=4, W=5, K=1, R=3, S=3).tile(("r", "s"), (2, 2))
    s = s.bind("r.i", "lane").stage("f", "s.i").pipeline("s.i", 2).stage("f", "k", space="register")
    s = s.stage("x", "c", space="register").stage("f", "s.i.pro", space="register").collect("total", "shuffle")
    assert "total_p += x_r[r][2 * s + s_i] * f_s[s_i][lane]" in s.cuda
    assert s.run(device="cpu").correct


def test_every_iteration_counts_its_groups_of_copies() -> None:
    """Bounds that skip iterations of a loop around a pipeline would skip its commits too (chain 9102:89)."""
    text = '''@ex.program
def f(u: ex.f32[M, N]):
    for t in range(K):
        for i in range(1, M - 1):
            for j in range(1, N - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
'''
    s = define(text, "counted.py").schedule(M=5, N=4, K=3).cut("j", -1).split("i", 2)
    s = s.stage("u", "j").pipeline("j", 2).skew("i.i", "i", factor=2).split("i.i", 2)
    assert "async_commit" in s.cuda
    assert s.run(device="cpu").correct


def test_a_loop_may_have_a_name_that_is_a_word_of_c() -> None:
    """A comment that ended with ``extern`` made the next line a dynamic shared array on the CPU device (chain 9102:1080)."""
    text = '''@ex.program
def f(x: ex.i32[N, 3], y: ex.i32[N]):
    for i in range(N):
        y[i] = 0
        for extern in range(1):
            y[i] += x[i, extern]
'''
    s = define(text, "extern.py").schedule(N=2).accumulate("y").skew("extern", "i", factor=2).bind("extern", "thread.y")
    s = s.contract("y_acc", space="shared")
    assert "thread.y: extern\n" in s.cuda
    assert s.run(device="cpu").correct


def test_a_block_does_not_read_for_a_copy_what_another_writes() -> None:
    """Only block 0 uses the first copy, and the others filled theirs while it wrote (chain 9301:745)."""
    text = '''@ex.program
def f(w: ex.f32[N], g: ex.f32[N]):
    for i in range(N):
        w[i] -= g[i] * w[i]
'''
    s = define(text, "replicas.py").schedule(N=7).stage("w", "i").cut("i", 2)
    with pytest.raises(IllegalSchedule, match=r"reads w\[0\] in every block") as caught:
        s.bind("i.2", "block.y")
    _, plan = s.try_step(Bind("i.2", "block.y"))
    assert plan is not None
    assert not doubt(plan, caught.value.finding)
    assert s.bind("i.2", "block.y", also=("i",)).run(device="cpu").correct
    assert s.launch("f", after="i").bind("i.2", "block.y").run(device="cpu").correct


def test_a_vector_that_is_written_and_then_read_under_a_condition() -> None:
    """The wide load for the reader stood before the lanes that write (chain 9301:160)."""
    text = '''@ex.program
def f(x: ex.f32[N, 2], y: ex.f32[M]):
    for i in range(M):
        if 2 * i < N:
            y[i] = x[i, 0] - x[i, 1]
'''
    s = define(text, "masked.py").schedule(N=6, M=7).stage("x", "i", threads=False).stage("x", "i", vector=2, threads=False)
    s = s.bind("x_s.0", "seq").vectorize("x_s.0").fuse("x_s_2.v", "x_s.0")
    assert s.run(device="cpu").correct


def test_a_copy_that_only_an_unused_copy_reads_is_not_used() -> None:
    """What such a copy finds in memory may be anything, as far as the chain of copies goes (chains 9301:979 and 1138)."""
    text = '''@ex.program
def f(u: ex.i64[M + 2]):
    for t in range(3):
        for i in range(1, M, 2):
            u[i + 1] = u[i] + u[i + 2] + u[i + 1]
'''
    s = define(text, "chain.py").schedule(M=4).split("t", 3).stage("u", "t.i", space="register").stage("u", "t.i")
    assert s.pipeline("t.i", 2).run(device="cpu").correct


def test_a_way_to_combine_ends_with_the_places_that_it_was_for() -> None:
    """Blocks of a cluster that became a loop of another kernel were still combined as a cluster there (chain 9411:1655)."""
    text = '''@ex.program
def f(x: ex.i64[K, N], y: ex.i64[K]):
    for i in range(K):
        y[i] = 0
        for k in range(N):
            y[i] += x[i, k]
'''
    for n in (1, 4):
        s = define(text, "ways.py").schedule(K=3, N=n).distribute("i", "S0").launch("f", after="i").bind("k", "block.y")
        s = s.collect("S1", "cluster").collect("S1", "kernel")
        assert not s.plan.resolve("S1_combine")[0].collect  # type: ignore[index]
        assert s.run(device="cpu").correct


def test_a_loop_without_iterations_reads_nothing() -> None:
    """A part that is cut off empty was asked about its first iteration (chains 9501:467, 9503:171 and four others)."""
    text = '''@ex.program
def f(x: ex.f32[M, N], y: ex.f32[1]):
    y[0] = 0.0
    for i in range(M):
        for j in range(N):
            y[0] += x[i, j]
'''
    s = define(text, "empty.py").schedule(M=5, N=6).split("i", 2).stage("x", "i").cut("i.i", 2)
    assert s.plan.loops["i.i.2"].extent == 0
    assert s.run(device="cpu").correct


def test_two_parts_of_a_statement_in_one_loop_may_run_through_different_dimensions() -> None:
    """Each of them would have got the loop that ends the part, twice (chain 9505:1045)."""
    text = '''@ex.program
def f(x: ex.f32[M, K], y: ex.f32[M, N]):
    for i in range(M - 1, -1, -1):
        for j in range(N):
            y[i, j] = 0
            for k in range(1, K):
                y[i, j] += x[i, k]
'''
    s = define(text, "dims.py").schedule(M=7, K=7, N=1).cut("k", -1).tile(("i", "j"), (2, 2)).skew("k", "j.i")
    s = s.coalesce(("i.i", "j.i")).reorder(("j", "i.i", "i")).fuse("k.part", "k.2")
    try:
        s = s.shift("k.part", 2, of="S1.2")
    except ExplorerError:
        return
    assert s.run(device="cpu").correct


def test_registers_of_a_loop_that_stands_twice_in_the_text_are_apart() -> None:
    """The lanes of the last vector run one by one, with registers of their own (chain 9601:314)."""
    text = '''@ex.program
def f(x: ex.f32[M + 2, N + 2], y: ex.f32[M, N]):
    for i in range(0, M, 3):
        for j in range(N):
            if i <= 2 * i:
                y[i, j] = ex.tanh(x[i, j])
'''
    s = define(text, "twice.py").schedule(M=3, N=5).stage("x", "i", space="register").tile(("j",), (2,)).vectorize("j.i")
    s = s.stage("x_r", "j.i", space="register", fill=False).stage("x", "x_r.0", space="register").stage("x_r", "j")
    assert s.run(device="cpu").correct


def test_an_update_of_another_element_makes_a_cell_wrong() -> None:
    """The check of the witness passed over all updates by the reader's own statement (chain 9701:535)."""
    text = '''@ex.program
def f(x: ex.f32[M, N], y: ex.f32[N]):
    for k in range(M):
        for i in range(N):
            y[i] += x[k, i]
'''
    s = define(text, "elements.py").schedule(M=2, N=2).accumulate("y").cut("i", 1).cut("i.z", 1).cut("i.c", 1)
    _, plan = s.try_step(Contract("y_acc"))
    assert plan is not None
    found = [f for f in judge(plan).refusals if "S0[0, 0] overwrites it, then S0[0, 1] reads" in f.why]
    assert [doubt(plan, f) for f in found] == [""]


def test_a_prologue_may_read_the_array_where_the_loop_reads_a_copy() -> None:
    """The judge of the IR took what the loop's copy lacks for unknown, and refused a right text (chain 9702:1504)."""
    text = '''@ex.program
def f(x: ex.f32[N], w: ex.f32[3], y: ex.f32[N]):
    for i in range(N):
        for s in range(3):
            if 0 <= i + s - 1 < N:
                y[i] += x[i + s - 1] * w[s]
'''
    s = define(text, "direct.py").schedule(N=5).accumulate("y").stage("x", "s", space="register")
    s = s.stage("w", "s", space="register").pipeline("s", 3, asynchronous=False).contract("y_acc").stage("w", "s")
    assert "w_r[s_pro] = w[s_pro]" in s.cuda
    assert s.run(device="cpu").correct


def test_a_slot_that_no_copy_fills_is_not_read() -> None:
    """A thread without an iteration ran all the same, and read a slot of the pipeline behind the last copy (chain 9704:235)."""
    text = '''@ex.program
def f(x: ex.f32[N, M], y: ex.f32[N]):
    for i in range(N):
        for k in range(M):
            y[i] = max(y[i], x[i, k])
'''
    s = define(text, "slots.py").schedule(N=1, M=2).rfactor("S0", "k").contract("y_p").stage("x", "i", pad=1).pipeline("i", 2)
    assert s.tile(("i",), (2,)).bind("i.i", "thread.x").run(device="cpu").correct
    s = define(text, "slots.py").schedule(N=3, M=2).accumulate("y").split("i", 4).bind("i.i", "thread.x").contract("y_acc")
    assert s.stage("x", "i", fill=False).run(device="cpu").correct


def test_what_nobody_contributes_to_is_not_updated() -> None:
    """In a round without contributors the update by the identity raced with another statement's write (chain 9704:749)."""
    text = '''@ex.program
def f(u: ex.f32[16, 8]):
    for i in range(1, 4, 2):
        for k in range(i, i + 2):
            if k + i < 6:
                u[2 * i + 1, i] = min(u[2 * i + 1, i], u[2 * i + 1, i // 2])
            if i // 2 == 1:
                u[i + k, i] = 0.5 * u[i, i // 2]
'''
    for how in ("shuffle", "shared"):
        s = define(text, "rounds.py").schedule().bind("k", "thread.x").collect("S0", how)
        assert "if (k == 0 && i < 1) u[" in s.cuda
        assert s.run(device="cpu").correct


@pytest.mark.parametrize(("condition", "test"), [
    ("k == i and k % 2 == b", "i % 2 == b"), ("k == i and 2 * b <= k and k < 2 * b + 2", "2 * b <= i && i <= 2 * b + 1"),
    ("2 * k >= 2 * i + b and 2 * k < 2 * i + b + 1", "b < 1"),
    ("(k + 2 * i) // 4 == b and k < 2", "2 * b <= i && i <= 2 * b + 1")])
def test_a_block_without_contributors_does_not_update(condition: str, test: str) -> None:
    """The sibling between blocks, where the update by the identity would lose another block's."""
    text = f'''@ex.program
def f(x: ex.f32[4], u: ex.f32[4]):
    for b in range(2):
        for i in range(4):
            for k in range(4):
                if {condition}:
                    u[i] += x[k]
'''
    s = define(text, "blocks.py").schedule().bind("b", "block.x").bind("k", "thread.x").collect("u", "shuffle")
    assert f"if (k == 0 && {test}) u[i] += u_sum" in s.cuda
    assert s.run(device="cpu").correct


def test_nothing_is_declared_for_a_combination_without_instances() -> None:
    """The text declared its scalar alone under an ``if`` without braces, and did not compile (chain 433521:509)."""
    text = '''@ex.program
def f(x: ex.f16[M + 2, N + 2], y: ex.f16[M]):
    for i in range(M):
        y[i] = 0
    for k in range(1, N):
        for i in range(1, M, 2):
            y[i] += x[i, k]
'''
    s = define(text, "none.py").schedule(M=1, N=8).bind("k", "block.y").collect("S1", "last_block")
    s = s.distribute("i_2.c", "S1_combine_init")
    assert "y_acc" not in s.cuda
    assert s.run(device="cpu").correct


def test_copies_in_flight_into_a_buffer_of_the_next_iteration() -> None:
    """It is the same memory; the check of the witness took it for another (chain 840574:167)."""
    text = '''@ex.program
def f(x: ex.i64[M + 2, N + 2], y: ex.i64[M, N]):
    for i in range(0, M, 3):
        for j in range(N):
            y[i, j] = min(x[i, j], x[i + 1, j + 2])
'''
    s = define(text, "lives.py").schedule(N=6, M=0).split("j", 4).reorder(("j", "j.i", "i"))
    s = s.stage("x", "j.i").pipeline("j.i", 4)
    step = Bind("j.i", "thread.y")
    with pytest.raises(IllegalSchedule, match="has landed") as caught:
        s.apply(step)
    _, plan = s.try_step(step)
    assert plan is not None
    assert not doubt(plan, caught.value.finding)


def test_a_single_register_is_no_fragment_of_a_matrix_move() -> None:
    """A copy of one element, in loops as a fragment has them, was asked for the last axis of its register (chain 341001:1628)."""
    s = tf32_tiles(4)
    s = s.reorder(("d", "i.i.3", "j.i.3")).split("d", 4).reorder(("d", "i.i.3", "j.i.3", "d.i")).contract("acc")
    s = s.stage("b", "d").stage("b_s", "d", space="register").stage("a", "d").stage("a_s", "d", space="register").tensorize("S1")
    s = s.reverse("i.i").load_matrix("a_r").outline("S2").stage("a", "j", space="register").pipeline("j", 3, asynchronous=False)
    s = s.stage("b_s", "b_r.0", space="register", threads=False, early=True)
    s = s.stage("a", "a_r_2.0.pro", fill=False, threads=False).split("i.i", 2).reverse("b_s.r").distribute("b_r.0", "b_r_2.e")
    fragments = [step for leaf, _, _ in s.plan.leaves for step in LoadMatrix.candidates(s.plan, leaf.id)]
    assert all(s.plan.buffer_of[s.plan.find(step.leaf)[0].view(1).buffer].shape for step in fragments)
