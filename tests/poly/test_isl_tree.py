"""The derived schedule tree: its text, and isl's own code generator run as an oracle for the order of instances."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl
import pytest

from explorer.ir.plan import Plan
from explorer.poly.isl_tree import schedule_tree, tree_text
from tests.oracle import run_order
from tests.poly import plans

PLANS = {
    "softmax": plans.softmax(m=2, k=6, threads=4, e="shared"),
    "softmax fused": plans.softmax(m=2, k=6, threads=4, fused=True),
    "pipelined": plans.matmul(m=4, n=4, k=10, ahead=1, buffers=2),
    "asynchronous": plans.matmul(m=4, n=4, k=10, ahead=2, buffers=3, mechanism="async"),
    "ragged": plans.matmul(m=3, n=5, k=6),
    "wavefront": plans.wavefront(),
}


def execute(node: isl.AstNode, env: dict[str, int], out: list) -> None:
    """Run isl's program: loops, conditions, blocks, marks and statements."""
    kind = node.get_type()
    if kind == isl.ast_node_type.for_:
        name = node.for_get_iterator().get_id().get_name()
        value = evaluate(node.for_get_init(), env)
        step = 1 if node.for_is_degenerate() else evaluate(node.for_get_inc(), env)
        while node.for_is_degenerate() or evaluate(node.for_get_cond(), {**env, name: value}):
            execute(node.for_get_body(), {**env, name: value}, out)
            if node.for_is_degenerate():
                break
            value += step
    elif kind == isl.ast_node_type.if_:
        if evaluate(node.if_get_cond(), env):
            execute(node.if_get_then(), env, out)
        elif node.if_has_else():
            execute(node.if_get_else(), env, out)
    elif kind == isl.ast_node_type.block:
        children = node.block_get_children()
        for i in range(children.n_ast_node()):
            execute(children.get_at(i), env, out)
    elif kind == isl.ast_node_type.mark:
        execute(node.mark_get_node(), env, out)
    else:
        call = node.user_get_expr()
        name = call.get_op_arg(0).get_id().get_name()
        out.append((name, tuple(evaluate(call.get_op_arg(i), env) for i in range(1, call.get_op_n_arg()))))


def evaluate(expr: isl.AstExpr, env: dict[str, int]) -> int:
    """C text with exact integers; isl's divisions here are floored or exact."""
    text = expr.to_C_str().replace("&&", " and ").replace("||", " or ").replace("/", "//")
    return eval(text, {"__builtins__": {}, "floord": lambda a, b: a // b, "min": min, "max": max}, env)


def order(plan: Plan) -> list:
    out: list = []
    execute(isl.AstBuild.from_context(isl.Set("{ : }")).node_from_schedule(schedule_tree(plan)), {}, out)
    return out


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_isl_runs_the_instances_in_our_order(plan):
    assert order(plan) == [(statement, point) for _, _, statement, point in run_order(plan)]


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_every_loop_is_a_mark(plan):
    text = tree_text(plan)
    for loop in plan.loops.values():
        assert f'mark: "{loop.id}:{loop.role}"' in text


def test_launches_are_a_sequence():
    plan = plans.softmax(m=2, k=4)
    row = plan.loops["i"]
    first = replace(plan.kernels[0], id="one", body=(replace(row, body=row.body[:1]),))
    second = replace(plan.kernels[0], id="two", body=(replace(row, body=row.body[1:]),))
    cut = replace(plan, kernels=(first, second))
    assert [s for s, _ in order(cut)][:8] == ["S0"] * 8
    assert tree_text(cut).splitlines()[2].strip() == "sequence:"


def test_a_single_statement_has_no_sequence():
    text = tree_text(plans.wavefront())
    assert "sequence" not in text
    assert "(2d0 + d1)" in text
