"""What a block may take of others by handoff: refusals with their reason, and what is legal runs in every order."""

from __future__ import annotations

from dataclasses import replace

import pytest

import explorer as ex
from explorer.errors import IllegalSchedule, KernelFault
from explorer.ir.expr import var
from explorer.ir.plan import Plan
from explorer.ir.tree import Kernel, Leaf, Loop
from explorer.kernel.emit import emit
from explorer.poly.joins import check_joins
from explorer.poly.judge import judge
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from explorer.transforms.join import Join
from tests.poly import plans
from tests.properties.equal import difference
from tests.transforms.multiblock import NAMES, TOTAL, apart, spread, start


def refusal(plan: Plan) -> str:
    """What the judge says."""
    finding, = judge(plan).refusals
    assert finding.question == "order"
    return f"{finding.what}; {finding.why}"


@pytest.mark.parametrize("name", NAMES)
def test_two_launches_become_one(name: str) -> None:
    s, kernel = apart(spread(name))
    joined = s.join(kernel, "handoff")
    assert len(emit(s.plan).launches) == len(emit(joined.plan).launches) + 1
    assert "handed_off<float>" in emit(joined.plan).text
    assert "handed_off" not in emit(s.plan).text
    arrays, device = seeded_arrays(s.source, 5), CpuDevice(seeds=4)
    for results in device.run_seeds(device.build(emit(joined.plan)), arrays):
        assert not difference(s.source, arrays, results)


def test_doubles_do_not_fit_beside_their_mark() -> None:
    s = start(TOTAL.replace("f32", "f64"), N=250).split("k", 16).bind("k", "block.x").bind("k.i", "thread.x")
    with pytest.raises(IllegalSchedule, match="8 bytes") as refused:
        s.collect("y", "handoff")
    assert "last_block" in str(refused.value)
    assert s.collect("y", "last_block").plan.kernels[-1].join == "last_block"


def test_parts_that_are_written_twice_are_not_handed_off() -> None:
    """Started with zero and then updated: a reader might take the zero."""
    s = spread("rows").collect("y", "shuffle").collect("y", "kernel")
    assert "not written by one statement" in refusal(Join(s.plan.kernels[-1].id, "handoff").rewrite(s.plan))


@pytest.mark.parametrize(("extent", "legal"), [(2, True), (6, False)])
def test_what_has_no_instances_shares_nothing(extent: int, legal: bool) -> None:
    """The update beside the value that is handed off runs in no iteration of 2, and in some of 6."""
    k, n = ex.sizes("K N")

    @ex.program
    def f(x: ex.i32[n, k], total: ex.i32[1], y: ex.i32[k, n]):
        total[0] = 0
        for i in range(n):
            for j in range(1, k, 2):
                if j % 3 != 1:
                    total[0] += x[i, j]
        for i in range(k):
            for j in range(n):
                y[i, j] = x[j, i] + 1

    s = f.schedule(N=8, K=extent).rearrange("x", (1, 0)).launch("f", after="S0")
    if legal:
        s = s.join("f.2", "handoff")
        assert s.judgement.emittable
        assert s.run(device="cpu", time=False).correct
    else:
        with pytest.raises(IllegalSchedule, match="use total, which is not handed off"):
            s.join("f.2", "handoff")


def test_an_argument_holds_no_marks() -> None:
    s, kernel = apart(spread("total"))
    part = next(a for a in s.plan.program.arrays if a.name.startswith("y_p") and a.role == "temporary"
                and ("array", a.name) in s.join(kernel, "handoff").plan.handed_off)
    arrays = tuple(replace(a, role="out") if a is part else a for a in s.plan.program.arrays)
    plan = replace(s.plan, program=replace(s.plan.program, arrays=arrays))
    assert "is an argument" in refusal(Join(kernel, "handoff").rewrite(plan))


def test_what_is_not_handed_off_is_not_ordered() -> None:
    """The joining block takes the parts, and clears what the other blocks may still have to read."""
    i, j = var("i"), var("j")
    s0 = plans.statement("S0", {"i": 4}, plans.read("part", i), plans.Read(0), (plans.read("u", i),))
    s1 = plans.statement("S1", {"j": 4}, plans.read("y", j), plans.Read(0), (plans.read("part", j),))
    s2 = plans.statement("S2", {"j": 4}, plans.read("u", j), plans.ZERO)
    arrays = (plans.array("u", 4, role="inout"), plans.array("part", 4, role="temporary"), plans.array("y", 4, role="out"))
    nests = (plans.nest([("i", 4, "seq")], plans.own(s0)), plans.nest([("j", 4, "seq")], plans.own(s1), plans.own(s2)))
    program = plans.Program("p", arrays, (s0, s1, s2), nests)
    leaf = {s.name: Leaf(s.name, s.name, ((d, var(d)),), ((d, var(d)),)) for s, d in ((s0, "i"), (s1, "j"), (s2, "j"))}
    first = Kernel("a", (Loop("i", 4, (leaf["S0"],), "block.x"),))

    def joined(*names: str) -> Plan:
        return Plan(program, (first, Kernel("b", (Loop("j", 4, tuple(leaf[n] for n in names)),), "handoff")))

    assert not check_joins(joined("S1"))
    finding, = check_joins(joined("S1", "S2"))
    assert "S0 and S2 use u, which is not handed off" in finding.what
    assert "join('b', 'last_block')" in finding.hints


def test_a_handoff_follows_blocks_and_ends_a_launch() -> None:
    s = spread("columns").collect("y", "handoff")
    for how, said in (("handoff", "is run by one block alone"), ("last_block", "cannot follow the block")):
        again = replace(s.plan.kernels[-1], id="again", join=how)
        found = [f.what for f in check_joins(replace(s.plan, kernels=(*s.plan.kernels, again)))]
        assert any(said in what for what in found), found


@pytest.mark.parametrize(("what", "text"), [
    ("blocks are not counted", ("last = atomicAdd(launches, 1u) % parts == parts - 1", "last = true")),
    ("the value is not handed over", ("= (unsigned long long)flag << 32 | bits;", "= (unsigned long long)flag << 32;")),
    ("the flag is forgotten", ("= (unsigned long long)flag << 32 | bits;", "= bits;")),
])
def test_mutants(what: str, text: tuple[str, str]) -> None:
    s = spread("total").collect("y", "handoff")
    module = emit(s.plan)
    assert text[0] in module.text, what
    broken = replace(module, text=module.text.replace(*text))
    arrays, device = seeded_arrays(s.source, 1), CpuDevice(seeds=3)
    try:
        results = device.run_seeds(device.build(broken), arrays)
    except KernelFault:
        return
    assert any(difference(s.source, arrays, r) for r in results), what


def test_too_many_words() -> None:
    s = start(TOTAL, N=1 << 25).split("k", 2).bind("k", "block.x").bind("k.i", "thread.x")
    assert "words" in judge(s.collect("y", "handoff").plan).obligations[0].what
