"""Parts of a reduction combined in the launch of the updates: in the last block, by handoff, behind a barrier of the grid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.reduction_program import reduction
from explorer.errors import KernelFault, ResourceError
from explorer.gpu.occupancy import check_launch
from explorer.gpu.spec import gpu
from explorer.ir.expr import const, quotient, remainder, var
from explorer.ir.plan import Plan
from explorer.ir.text import loops_text
from explorer.ir.tree import Kernel, Leaf, Loop
from explorer.kernel.emit import emit
from explorer.poly.joins import check_joins
from explorer.poly.judge import judge
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from explorer.strategies.auto import auto
from explorer.transforms.bind import Bind
from explorer.transforms.join import Join
from tests.oracle import check_plan
from tests.poly import plans
from tests.properties.equal import difference
from tests.properties.walk import executions
from tests.run_plan import outcome, run_plan
from tests.transforms.multiblock import NAMES, ROWS, SHARES, every, spread, start

JOINED = ("last_block", "handoff", "grid")


@pytest.mark.parametrize("how", JOINED)
@pytest.mark.parametrize("name", NAMES)
def test_one_click_makes_one_launch_that_computes_the_same(name: str, how: str) -> None:
    s = spread(name).collect("y", how)
    assert not s.obligations
    check_plan(s.plan)
    module = emit(s.plan)
    assert len(module.launches) == 1
    assert module.launches[0].cooperative == (how == "grid")
    arrays = seeded_arrays(s.source, 3)
    for seed in range(4):
        assert not difference(s.source, arrays, run_plan(s.plan, arrays, seed)), f"order {seed}"


def test_the_text_runs_on_the_cpu_in_every_order_and_gives_the_same_bits() -> None:
    """100 orders of blocks and threads; the counters have to reset themselves from one to the next."""
    made = dict(every(*JOINED))
    device = CpuDevice(seeds=100)
    for (name, s), built in zip(made.items(), device.build_many([emit(s.plan) for s in made.values()]), strict=True):
        arrays = seeded_arrays(s.source, 1)
        results = device.run_seeds(built, arrays)
        assert len(results) == 100
        assert {r["y"].tobytes() for r in results} == {results[0]["y"].tobytes()}, name
        assert not difference(s.source, arrays, results[0]), name


def test_atomics_do_not_give_the_same_bits_in_every_order() -> None:
    """What the test above would notice."""
    s = spread("total").collect("y", "shuffle").collect("y", "atomic")
    results = CpuDevice(seeds=20).run_seeds(CpuDevice(seeds=20).build(emit(s.plan)), seeded_arrays(s.source, 1))
    assert len({r["y"].tobytes() for r in results}) > 1


@pytest.mark.parametrize("how", JOINED)
def test_the_fast_build_repeats_launches(how: str) -> None:
    s = spread("columns").collect("y", how)
    device, arrays = CpuDevice(checked=False, threads=2), seeded_arrays(s.source, 1)
    built = device.build(emit(s.plan))
    assert not difference(s.source, arrays, device.run(built, arrays))
    assert len(device.time(built, arrays, repeats=5)) == 5


@pytest.mark.parametrize("how", JOINED)
@pytest.mark.parametrize("name", ["total", "columns"])
def test_text(name: str, how: str, golden) -> None:
    s = spread(name).collect("y", how)
    text = emit(s.plan).text
    golden(loops_text(s.plan) + "\n\n" + text[text.index("__device__ unsigned int"):])


def test_what_one_phase_reads_of_another_is_no_constant_and_not_restricted() -> None:
    text = emit(spread("rows").collect("y", "last_block").plan).text
    assert "float* y_p_2)" in text
    assert "const float* __restrict__ x" in text
    assert "float* __restrict__ y," in text


def test_lines_of_every_phase_are_known() -> None:
    s = spread("rows").collect("y", "last_block")
    module = emit(s.plan)
    first, second = (k.id for k in s.plan.kernels)
    (low, high), = module.source_map[second]
    outer_low, outer_high = module.source_map[first][0]
    assert outer_low < low < high < outer_high
    assert "last_block" in module.text.splitlines()[low - 1]


# -- the question --------------------------------------------------------------------------------------------------


def shifted(read: str, blocks: str, grid: int = 4, how: str = "last_block") -> Plan:
    """Each block of one kernel writes a cell; one joined by `how` reads the one that `read` says, in these blocks."""
    i, j, n = var("i"), var("j"), grid
    cells = {"own": j, "next": remainder(j + 1, n), "last": const(n - 1) - j, "half": quotient(j, 2), "first": const(0)}
    s0 = plans.statement("S0", {"i": n}, plans.read("t", i), plans.Read(0), (plans.read("x", i),))
    s1 = plans.statement("S1", {"j": n}, plans.read("y", j), plans.Read(0), (plans.read("t", cells[read]),))
    arrays = (plans.array("x", n, role="in"), plans.array("t", n), plans.array("y", n, role="out"))
    program = plans.Program("p", arrays, (s0, s1), (plans.nest([("i", n, "seq")], plans.own(s0)),
                                                    plans.nest([("j", n, "seq")], plans.own(s1))))

    def leaf(s) -> Leaf:
        return Leaf(s.name, s.name, tuple((d, var(d)) for d in s.dims), tuple((d, var(d)) for d in s.dims))

    kernels = (Kernel("a", (Loop("i", n, (leaf(s0),), "block.x"),)),
               Kernel("b", (Loop("j", n, (leaf(s1),), blocks),), how))
    return Plan(program, kernels)


@pytest.mark.parametrize("how", ["last_block", "cluster"])
@pytest.mark.parametrize("blocks", ["block.x", "block.y", "thread.x"])
@pytest.mark.parametrize("read", ["own", "next", "last", "half", "first"])
def test_last_block_and_cluster_are_judged_as_enumeration_says(read: str, blocks: str, how: str) -> None:
    plan = shifted(read, blocks, how=how)
    runs = executions(plan)
    writes = {r.instance[1][0]: r for r in runs if r.instance[0] == "S0"}
    cell = plan.statement_of["S1"].reads[0].index[0]
    lost = [(writes[int(cell.evaluate({"j": r.instance[1][0]}))], r) for r in runs if r.instance[0] == "S1"]
    lost = [(a, b) for a, b in lost if not a.ordered_before(b)]
    found = check_joins(plan)
    assert bool(found) == bool(lost), f"{found} {lost}"
    assert bool(judge(plan).refusals) == bool(lost)
    if found:
        assert found[0].source
        assert found[0].sink
        assert (found[0].source.point, found[0].sink.point) in [(a.instance[1], b.instance[1]) for a, b in lost]
        assert "join('b', 'grid')" in found[0].hints
        arrays = {"x": np.arange(4, dtype=np.float32)}
        several = [outcome(plan, arrays, seed) for seed in range(20)]
        wanted = arrays["x"][[int(cell.evaluate({"j": j})) for j in range(4)]]
        assert any((run.outputs["y"] != wanted).any() for run in several), "refused, but right in every order of the blocks"
        assert any(h.kind in ("race", "uninitialised") and h.array == "t" for run in several for h in run.hazards)
    else:
        assert not any(outcome(plan, {"x": np.arange(4, dtype=np.float32)}, seed).hazards for seed in range(20))


def test_what_the_last_block_overwrites_must_be_read_by_then() -> None:
    """An antidependence: the joined kernel clears what another block may still have to read."""
    i, j = var("i"), var("j")
    s0 = plans.statement("S0", {"i": 4}, plans.read("y", i), plans.Read(0), (plans.read("u", remainder(i + 1, 4)),))
    s1 = plans.statement("S1", {"j": 4}, plans.read("u", j), plans.ZERO)
    arrays = (plans.array("u", 4, role="inout"), plans.array("y", 4, role="out"))
    program = plans.Program("p", arrays, (s0, s1), (plans.nest([("i", 4, "seq")], plans.own(s0)),
                                                    plans.nest([("j", 4, "seq")], plans.own(s1))))
    leaves = [Leaf(s.name, s.name, ((d, var(d)),), ((d, var(d)),)) for s, d in ((s0, "i"), (s1, "j"))]
    apart = Plan(program, (Kernel("a", (Loop("i", 4, (leaves[0],), "block.x"),)),
                           Kernel("b", (Loop("j", 4, (leaves[1],), "block.x"),))))
    assert judge(apart).legal
    finding, = check_joins(Join("b", "last_block").rewrite(apart))
    assert finding.kind == "anti"
    assert judge(Join("b", "grid").rewrite(apart)).legal


def test_threads_of_a_wider_phase_do_not_run_the_narrower_one() -> None:
    """Alone the second kernel has one thread; in the launch it has as many as the first, and every one would write."""
    s = spread("rows, two to a block").collect("y", "shuffle").collect("y", "kernel")
    join = s.plan.kernels[-1].id
    for how in ("last_block", "grid"):
        plan = s.join(join, how).plan
        assert plan.extents[join][3:] == (16, 2, 1)
        arrays = seeded_arrays(s.source, 1)
        built = CpuDevice(seeds=5).build(emit(plan))
        assert not difference(s.source, arrays, CpuDevice(seeds=5).run(built, arrays))


def test_a_phase_that_all_blocks_share_follows_the_barrier() -> None:
    """total by the last block, then every block divides behind a barrier of the grid: three phases, one launch."""
    s = start(SHARES, N=300).launch("shares.2", after="k").split("k", 32).bind("k", "block.x").bind("k.i", "thread.x")
    s = s.split("i", 32).bind("i", "block.x").bind("i.i", "thread.x").collect("total", "last_block")
    s = s.join(s.plan.kernels[-1].id, "grid")
    assert [k.join for k in s.plan.kernels] == ["", "last_block", "grid"]
    module = emit(s.plan)
    assert len(module.launches) == 1
    arrays = seeded_arrays(s.source, 1)
    device = CpuDevice(seeds=8)
    results = device.run_seeds(device.build(module), arrays)
    assert not any(difference(s.source, arrays, r) for r in results)
    for seed in range(4):
        assert not difference(s.source, arrays, run_plan(s.plan, arrays, seed))
    refused = Join(s.plan.kernels[-1].id, "last_block").rewrite(s.plan)
    assert check_joins(refused), "blocks that did not come last would divide by a total that is not there"


def test_a_last_block_among_last_blocks() -> None:
    """Parts of parts: the last of each row of blocks is counted again."""
    s = start(ROWS, M=6, N=64).bind("i_2", "block.x").split("k", 8).bind("k", "block.y").bind("k.i", "thread.x")
    s = s.collect("y", "last_block")
    plan = s.plan
    assert emit(plan).text.count("last_block(&") == 1
    # a second kernel, one block alone, joined to the phase of the last blocks
    tail = Kernel("tail", (), "last_block")
    extended = replace(plan, kernels=(*plan.kernels, tail))
    assert extended.joined_axes(tail) == ()
    text = emit(extended).text
    assert text.count("last_block(") == 3  # one of them in the library
    assert ", 6))" in text, "six blocks of the phase before it are counted"


# -- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("step", "words"), [
    (Join("nobody", "last_block"), "there is no kernel"),
    (Join("total", "last_block"), "is the first kernel"),
    (Join("total.2", "magic"), "no way 'magic'"),
    (Join("total.2", "launch"), "already is a launch of its own"),
])
def test_refusals(step: Join, words: str) -> None:
    verdict = step.check(spread("total").plan)
    assert not verdict
    assert words in str(verdict)


def test_join_and_back() -> None:
    s = spread("rows").collect("y", "shuffle").collect("y", "kernel")
    name = s.plan.kernels[-1].id
    joined = s.join(name, "grid")
    assert "behind a barrier of the grid" in loops_text(joined.plan)
    assert joined.join(name, "launch").plan == s.plan
    assert [str(c) for c in Join.candidates(s.plan, name)] == [
        f"join('{name}', '{how}')" for how in ("last_block", "handoff", "cluster", "grid")]


def test_loops_of_the_host_keep_their_launches() -> None:
    s = spread("rows").collect("y", "kernel")
    name = s.plan.kernels[-1].id
    hosted = s.bind("i_2", "seq").bind("i_2", "launch")
    verdict = Join(name, "grid").check(hosted.plan)
    assert not verdict
    assert "the host runs i_2" in str(verdict)
    assert check_joins(Join(name, "grid").rewrite(hosted.plan))
    joined = s.join(name, "grid").bind("i_2", "seq")
    assert "share one launch" in str(Bind("i_2", "launch").check(joined.plan))


def test_a_block_that_would_be_too_wide() -> None:
    s = start(ROWS, M=64, N=64).bind("k", "thread.x").collect("y", "shuffle").bind("i", "thread.y")
    verdict = Join(s.plan.kernels[-1].id, "grid").check(s.plan)
    assert not verdict
    assert "64 x 64 x 1 = 4096 threads" in str(verdict)


def test_a_grid_that_does_not_fit_is_refused_with_the_numbers() -> None:
    launch = emit(spread("total, many blocks").collect("y", "grid").plan).launches[0]
    check_launch(gpu("H200"), launch, 32)
    with pytest.raises(ResourceError, match="at once") as caught:
        check_launch(gpu("H200"), replace(launch, grid=(100_000, 1, 1)), 32)
    assert caught.value.blocks == 100_000
    assert f"{caught.value.room:,} in all" in caught.value.why


def test_the_cpu_holds_only_so_many_blocks_that_wait() -> None:
    module = emit(spread("total").collect("y", "grid").plan)
    built = CpuDevice().build(module)
    large = replace(module, launches=tuple(replace(x, grid=(4096, 1, 1)) for x in module.launches))
    with pytest.raises(ResourceError, match="32,768 threads"):
        CpuDevice().run(replace(built, module=large), {"x": np.zeros(250, np.float32)})


def test_a_barrier_of_the_grid_needs_a_cooperative_launch() -> None:
    s = spread("total").collect("y", "grid")
    module = emit(s.plan)
    plain = replace(module, launches=tuple(replace(x, cooperative=False) for x in module.launches))
    with pytest.raises(KernelFault) as caught:
        CpuDevice().run(CpuDevice().build(plain), seeded_arrays(s.source, 1))
    assert caught.value.kind == "grid-barrier"


def test_parts_in_a_cluster_ask_nothing_of_global_memory() -> None:
    held = auto(reduction((65536,), (0,), "f32", "sum"), "H200")
    assert [k.join for k in held.plan.kernels] == ["", "cluster"]
    written = held.join(held.plan.kernels[1].id, "last_block")
    parts = [[a for a in s.facts.accesses if "_p" in a.storage] for s in (held, written)]
    assert [(a.space, a.writes) for a in parts[0]] == [("cluster", True), ("cluster", False)]
    assert {a.space for a in parts[1]} == {"global"}
    assert sum(a.bytes for a in parts[0]) == 0 < sum(a.bytes for a in parts[1])
    assert "(cluster," in str(held.facts)
