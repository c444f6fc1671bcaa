"""Which guards inner loops may leave out, and which they must not."""

from __future__ import annotations

from dataclasses import replace

import pytest

import explorer as ex
from explorer import workloads
from explorer.ir.expr import const, quotient, remainder, var
from explorer.ir.plan import Plan
from explorer.ir.scalar import Call, Literal
from explorer.kernel.emit import emit
from explorer.poly.dead_cells import solve_cell
from tests.kernel.plan_run import Case, differences, follow
from tests.kernel.schedules import gemm, grid

SIZES = {"M": 13, "N": 11, "K": 7}


def matmul(sizes: dict[str, int] | None = None) -> Plan:
    return follow(workloads.get("matmul").definition.at(**(sizes or SIZES)), gemm())


def update_lines(plan: Plan, leaf: str = "S1") -> list[str]:
    """The text of an update with the lines between the loop over tiles and it."""
    lines = emit(plan).text.splitlines()
    end = next(n for n, line in enumerate(lines) if f"// {leaf}" in line)
    start = max(n for n in range(end) if "__syncthreads" in lines[n] or "extern" in lines[n])
    return lines[start : end + 1]


def test_staged_matmul_has_no_guard_in_its_inner_loops() -> None:
    assert not [line for line in update_lines(matmul()) if "if" in line or "min(" in line]
    text = emit(matmul()).text
    assert text.count("if (") == 2  # rows and columns of the result, nothing else
    assert "< 13" in text
    assert "< 11" in text


def test_reads_of_global_memory_keep_their_guard() -> None:
    plan = follow(workloads.get("matmul").definition.at(**SIZES), [*grid(), ("contract", "total")])
    assert [line for line in update_lines(plan) if "4 * i + i_i < 13 && 4 * j + j_i < 11" in line]


def test_without_zero_fill_every_bound_stays() -> None:
    """What lies beyond the edge is then never written, at least in the first tile."""
    steps = [s for s in gemm() if s[0] != "stage"]
    steps += [("stage", "a", "k", {"fill": False}), ("stage", "b", "k", {"fill": False})]
    plan = follow(workloads.get("matmul").definition.at(**SIZES), steps)
    lines = update_lines(plan)
    assert any("k_i < min(4, 7 - 4 * k)" in line for line in lines)
    assert any("if (" in line and "< 13)" in line for line in lines)


def test_one_staged_operand_is_not_enough() -> None:
    """Beyond the end of k the other operand would be read outside its array."""
    plan = follow(workloads.get("matmul").definition.at(**SIZES), gemm()[:-1])
    assert any("k_i < min(4, 7 - 4 * k)" in line for line in update_lines(plan))


def test_a_maximum_is_not_left_unchanged_by_zeros() -> None:
    plan = matmul()
    program = plan.program
    changed = tuple(replace(s, update="max") if s.update else s for s in program.statements)
    lines = update_lines(replace(plan, program=replace(program, statements=changed)))
    assert any("k_i < min(4, 7 - 4 * k)" in line for line in lines)


def test_a_fill_that_is_no_identity_keeps_the_bound() -> None:
    plan = matmul()
    copies = tuple(replace(s, fill=1.0) for s in plan.copies)
    assert any("k_i < min(4, 7 - 4 * k)" in line for line in update_lines(replace(plan, copies=copies)))


def test_a_sum_that_is_no_product_keeps_the_bound() -> None:
    """``total += a * b + 1``: zeros give one."""
    plan = matmul()
    program = plan.program
    s1 = next(s for s in program.statements if s.update)
    plus = Call("add", (s1.value, Literal(1.0, program.arrays[0].dtype)))
    statements = tuple(replace(s, value=plus) if s is s1 else s for s in program.statements)
    lines = update_lines(replace(plan, program=replace(program, statements=statements)))
    assert any("k_i < min(4, 7 - 4 * k)" in line for line in lines)


def test_a_triangle_is_no_edge() -> None:
    """The copies hold real data above the diagonal, so k <= i stays."""
    steps = [*grid(), ("contract", "total"), ("split", "k", 3), ("stage", "a", "k"), ("stage", "b", "k")]
    program = workloads.get("triangular_matmul").definition.at(M=6, N=5)
    assert any("4 * i + i_i - 3 * k + 1" in line for line in update_lines(follow(program, steps)))


def test_padded_convolution_runs_over_its_edges() -> None:
    steps = [("tile", ("h", "w"), (4, 4)), ("bind", "k", "block.y"), ("bind", "h", "block.x"), ("bind", "n", "block.z"),
             ("bind", "h.i", "thread.y"), ("bind", "w.i", "thread.x"), ("contract", "total"),
             ("stage", "x", "c"), ("stage", "f", "c")]
    program = workloads.get("conv2d").definition.at(**{**workloads.get("conv2d").tiny, "H": 16, "W": 12})
    lines = update_lines(follow(program, steps))
    assert not [line for line in lines if "if" in line or "min(" in line or "max(" in line]


@pytest.mark.parametrize("sizes", [{"M": 1, "N": 1, "K": 1}, {"M": 2, "N": 9, "K": 3}, {"M": 8, "N": 1, "K": 5}])
def test_no_full_tile_means_another_look_at_the_barriers(sizes: dict[str, int]) -> None:
    """Where no thread's real runs need a barrier, extra runs may: no race on the CPU device in any order."""
    w = workloads.get("matmul")
    assert not differences([Case(str(sizes), w.definition.at(**sizes), matmul(sizes=sizes), w.arrays(sizes))], seeds=6)


def test_cells_are_solved_when_they_are_digits() -> None:
    ranges = {"a": (0, 3), "b": (0, 7), "c": (0, 1)}
    assert solve_cell([var("a"), var("b")], ranges) == {"a": var("#0"), "b": var("#1")}
    solved = solve_cell([var("a") * 8 + var("b"), var("c") + 2], ranges)
    assert solved == {"a": quotient(var("#0"), 8), "b": remainder(var("#0"), 8), "c": var("#1") - 2}
    assert solve_cell([var("a") * 4 + var("b")], ranges) is None  # digits overlap
    assert solve_cell([var("a"), var("a")], ranges) is None
    assert solve_cell([remainder(var("b"), 2)], ranges) is None
    assert solve_cell([const(3)], ranges) == {}


def test_an_update_of_shared_memory_keeps_its_guard() -> None:
    """It reads its cell, which the guarded write before it leaves alone beyond the last row."""
    m, k = ex.sizes("M K")

    @ex.program
    def rows(p: ex.f32[k, m], z: ex.f32[m]):
        for i in range(m):
            s = ex.local(ex.f32)
            s = 0.0
            for j in range(k):
                s += p[j, i]
            z[i] = s

    s = rows.schedule(M=33, K=2).split("i", 32).bind("i", "block.x").bind("i.i", "thread.x").contract("s", space="shared")
    for at, row in (("i.i", "32 * i + i_i"), ("i", "32 * i + tx")):
        made = s.stage("p", at, space="register")
        text = emit(made.plan).text.splitlines()
        copied, update = (next(n for n, line in enumerate(text) if f"// {leaf}" in line) for leaf in ("p_r", "S1"))
        assert any(f"if ({row} < 33)" in line for line in text[copied + 2 : update + 1])
        assert made.run(device="cpu", time=False, ragged=False).correct
