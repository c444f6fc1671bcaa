"""Counts, against enumeration."""

from __future__ import annotations

from itertools import product

import pytest

import explorer as ex
from benchmarks import fused_programs, product_programs
from explorer.gpu.roofline import roofline
from explorer.ir.expr import const, var
from explorer.ir.program import Access, Indirect, Program, Statement
from explorer.ir.scalar import Call, Read
from explorer.poly.count import arithmetic_type, compulsory, compulsory_bytes, flops, footprint, instances
from explorer.poly.sites import sites
from explorer.schedule import Schedule
from explorer.strategies.price import price
from tests.oracle import points
from tests.poly import plans


def triangle(n: int = 6) -> Program:
    """y[i] += x[i - j, j] over j <= i."""
    i, j = var("i"), var("j")
    s0 = plans.statement("S0", {"i": n, "j": n}, plans.read("y", i), Read(0), (plans.read("x", i - j, j),), "sum", where=(i - j,))
    arrays = (plans.array("x", n, n, role="in"), plans.array("y", n, role="inout"))
    return Program("triangle", arrays, (s0,), (plans.nest([("i", n, "seq"), ("j", n, "seq")], plans.own(s0)),))


def convolution(n: int = 7, taps: int = 3) -> Program:
    """Overlapping windows, every second element."""
    i, r = var("i"), var("r")
    read = plans.read("x", i * 2 + r)
    s0 = plans.statement("S0", {"i": n, "r": taps}, plans.read("y", i), Read(0), (read,), "max")
    arrays = (plans.array("x", 2 * n + taps, role="in"), plans.array("y", n, role="inout"))
    return Program("windows", arrays, (s0,), (plans.nest([("i", n, "seq"), ("r", taps, "seq")], plans.own(s0)),))


def overwritten(n: int = 5) -> Program:
    """y[i] = x[i]; z[i] = y[i] + y[i + 1]: only the last element of y comes from outside."""
    i = var("i")
    s0 = plans.statement("S0", {"i": n}, plans.read("y", i), Read(0), (plans.read("x", i),))
    both = Call("add", (Read(0), Read(1)))
    j = var("j")
    s1 = plans.statement("S1", {"j": n}, plans.read("z", j), both, (plans.read("y", j), plans.read("y", j + 1)))
    arrays = (plans.array("x", n, role="in"), plans.array("y", n + 1, role="inout"), plans.array("z", n, role="out"))
    body = (plans.nest([("i", n, "seq")], plans.own(s0)), plans.nest([("j", n, "seq")], plans.own(s1)))
    return Program("overwritten", arrays, (s0, s1), body)


PROGRAMS = {p.name: p for p in (triangle(), convolution(), plans.matmul_program(5, 6, 7), plans.softmax_program(3, 5),
                                overwritten(),
                                plans.wavefront().program)}


def touched(statement: Statement, access: Access) -> set[tuple[int, ...]]:
    return {tuple(e.evaluate(dict(zip(statement.dims, p, strict=True))) for e in access.index) for p in points(statement)}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_instances_and_operations(program):
    counted = instances(program)
    assert counted == {s.name: len(list(points(s))) for s in program.statements}
    per_instance = {"triangle": 1, "windows": 1}
    if program.name in per_instance:
        assert flops(program) == counted["S0"]


def test_operations_of_a_product():
    assert flops(plans.matmul_program(5, 6, 7)) == 2 * 5 * 6 * 7


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_compulsory_bytes(program):
    total = 0
    for a in program.parameters:
        first_read: set = set()
        written: set = set()
        for values in walk(program):
            statement, point = values
            for use in (*statement.reads, *([statement.target] if statement.update else [])):
                if use.array == a.name and (cell := element(use, point)) not in written:
                    first_read.add(cell)
            if statement.target.array == a.name:
                written.add(element(statement.target, point))
        counted = next(e for e in compulsory(program) if e.array == a.name)
        assert counted.exact
        assert (counted.read, counted.written) == (0 if a.role == "out" else len(first_read), len(written)), a.name
        total += counted.bytes
    assert compulsory_bytes(program) == total


def element(use: Access, point: dict[str, int]) -> tuple[int, ...]:
    return tuple(e.evaluate(point) for e in use.index)


def walk(program: Program):
    """Statement and point, in program order."""
    def visit(nodes, env):
        for node in nodes:
            if hasattr(node, "body"):
                for v in range(node.start, node.start + node.extent):
                    yield from visit(node.body, {**env, node.id: v})
            else:
                statement = program.statement_of[node.statement]
                point = {d: e.evaluate(env) for d, e in node.at}
                if all(c.holds(point) for c in statement.domain):
                    yield statement, point

    return visit(program.body, {})


def test_copies_are_counted_in_a_plan():
    plan = plans.matmul()
    assert instances(plan)["As"] == len(list(points(plan.copies[0])))


def test_large_boxes_are_counted_by_arithmetic():
    assert instances(plans.matmul_program(4096, 4096, 4096))["S1"] == 4096**3


def test_an_impossible_statement_never_runs():
    s0 = plans.statement("S0", {"i": 4}, plans.read("y", var("i")), Read(0), (plans.read("x", var("i")),), where=(const(-1),))
    program = Program("never", (plans.array("x", 4, role="in"), plans.array("y", 4, role="out")), (s0,), ())
    assert instances(program) == {"S0": 0}


def test_a_data_dependent_index_gives_a_bound():
    """x[i, t[i]] reads at most one element for each i."""
    i = var("i")
    gather = Access("x", (i, Indirect(Read(0))))
    s0 = plans.statement("S0", {"i": 4}, plans.read("y", i), Read(1), (plans.read("t", i), gather))
    arrays = (plans.array("x", 4, 100, role="in"), plans.array("t", 4, role="in"), plans.array("y", 4, role="out"))
    program = Program("gather", arrays, (s0,), (plans.nest([("i", 4, "seq")], plans.own(s0)),))
    x, t, y = compulsory(program)
    assert (x.read, x.exact) == (4, False)
    assert (t.read, t.exact) == (4, True)
    assert y.written == 4


def test_without_budget_the_whole_array_is_the_bound(monkeypatch):
    monkeypatch.setattr("explorer.poly.count.BUDGET", 1)
    compulsory.cache_clear()
    found = compulsory(triangle())
    compulsory.cache_clear()
    assert (found[0].read, found[0].exact) == (36, False)


def test_footprint_of_a_tile():
    plan = plans.matmul(m=7, n=5, k=10)
    by_name = {(s.leaf.id, s.slot): s for s in sites(plan)["matmul"]}
    assert footprint(by_name["S1", 0], "ko") == (4 * 4, True)
    assert footprint(by_name["S1", 0], "bj") == (4 * 4, True), "one buffer, whatever the number of tiles"
    assert footprint(by_name["As.a", 0], "bj") == (4 * 12, True)
    c = by_name["S2", 1]
    assert footprint(c) == (len(set(product(range(7), range(5)))), True)


def test_cost_is_one_for_an_update():
    i = var("i")
    s0 = plans.statement("S0", {"i": 3}, plans.read("y", i), Call("mul", (Read(0), Read(0))), (plans.read("x", i),), "sum")
    program = Program("squares", (plans.array("x", 3, role="in"), plans.array("y", 3, role="inout")), (s0,), ())
    assert flops(program) == 6


@pytest.mark.parametrize(("schedule", "arithmetic"), [
    (product_programs.product_nn.schedule(M=64, N=64, K=64), "f16"),  # which sums in f32
    (product_programs.product_f32.schedule(M=64, N=64, K=64), "f32"),
    (product_programs.attention.schedule(B=1, H=1, L=64, D=64), "f16"),
    (fused_programs.gelu.schedule(M=64), "f32"),  # no product is summed
], ids=["product", "f32", "attention", "gelu"])
def test_products_count_with_the_type_of_their_factors(schedule: Schedule, arithmetic: str) -> None:
    assert arithmetic_type(schedule.source) == arithmetic


def test_no_schedule_of_a_product_is_priced_below_its_floor() -> None:
    s = ex.strategies.auto(product_programs.product_nn.schedule(M=1024, N=1024, K=1024))
    h200 = ex.gpu("H200")
    floor = roofline(h200, compulsory_bytes(s.source), flops(s.source), arithmetic_type(s.source)).floor_us
    assert s.facts.roofline.floor_us == floor
    assert 2.0 < floor < price(s.plan, h200).total_us < 8.0
