"""Tiles in registers are written twice, without their masks and with them: where, that it is right, and faults in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import pytest

import explorer as ex
from benchmarks.product_programs import attention as plain
from benchmarks.product_programs import causal_attention
from explorer.ir.expr import var
from explorer.kernel.conditions import Condition
from explorer.kernel.emit import emit
from explorer.kernel.launches import PlanIR, plan_ir
from explorer.kernel.nodes import Do, If, Multiply, Node
from explorer.kernel.passes.whole_tiles import may_hold, whole_tiles
from explorer.kernel.traverse import map_bodies, walk
from explorer.kernel.validate import judged
from explorer.run.nvrtc.compiler import compile_module
from explorer.strategies.attention import attention
from explorer.strategies.attention.moves import Tiling

ONE = Tiling(64, 4, 32, 2, 1)


def made(program: Any = causal_attention, length: int = 128, keys: int = 32) -> ex.Schedule:
    return attention(program.schedule(B=1, H=1, L=length, D=32), tiling=replace(ONE, keys=keys))


def doubled(nodes: tuple[Node, ...]) -> list[If]:
    """The checks before tiles that are written twice."""
    return [n for n in walk(nodes) if isinstance(n, If) and n.otherwise and _leaves(n.body) == _leaves(n.otherwise) != []]


def _leaves(nodes: tuple[Node, ...]) -> list[str]:
    return [n.site.leaf.id for n in walk(nodes) if isinstance(n, (Do, Multiply))]


def body_of(ir: PlanIR) -> tuple[Node, ...]:
    return ir.launches[0].bodies[0]


def faults(ir: PlanIR) -> list[str]:
    return [x.what for launch in ir.launches for x in judged(launch)]


@pytest.mark.parametrize(("program", "length", "keys", "twice"), [
    (causal_attention, 128, 32, [{"S4", "S6", "S7", "S8", "p_r", "S10"}]),  # behind the diagonal: up to the second product
    (causal_attention, 256, 128, [{"S4", "S6", "S7", "S8", "p_r", "S10"}]),  # whose depth is two instructions'
    (plain, 128, 48, [{"S4", "S6", "S7", "S8", "p_r", "S10"}]),  # beyond the last key
    (plain, 112, 48, [{"S4"}, {"p_r", "S10"}]),  # and beyond the last row, where parts of sums lie in shared memory
    (plain, 128, 32, []),  # no mask
])
def test_what_is_written_twice(program: Any, length: int, keys: int, twice: list[set[str]]) -> None:
    s = made(program, length, keys)
    checks = doubled(body_of(plan_ir(s.plan)))
    assert len(checks) == len(twice)
    assert all(names <= set(_leaves(n.body)) for n, names in zip(checks, twice, strict=True))
    threads = {"tx", "i_w"}
    assert not any(c.variables() & threads for n in checks for c in n.conditions), "the same for the whole block"
    for n in checks:
        assert not any(isinstance(x, If) or (isinstance(x, Do) and x.inside) for x in walk(n.body)), "no mask is left"
    assert s.run(device="cpu", time=False, ragged=False).correct


def test_before_and_after() -> None:
    s = made()
    before, after = (plan_ir(s.plan, after=name).launches[0].bodies[0] for name in ("place_guards", whole_tiles.__name__))
    assert not doubled(before)
    assert doubled(after)


def test_checks_that_never_hold_together_are_not_written() -> None:
    i, j, box = var("i"), var("j"), {"i": (0, 7), "j": (0, 3)}
    assert not may_hold((Condition(i - 1), Condition(i * -4 - j + 3)), box)
    assert may_hold((Condition(i - 1), Condition(i * -4 - j + 4)), box)
    assert not may_hold((Condition(i * 0 - 1),), box)
    random = Random(1)
    answers = {True: 0, False: 0}
    for _ in range(300):
        rows = [[random.randint(-4, 4) for _ in range(3)] for _ in range(2)]
        holds = any(all(a * x + b * y + c >= 0 for a, b, c in rows) for x, y in product(range(8), range(4)))
        found = may_hold([Condition(i * a + j * b + c) for a, b, c in rows], box)
        assert found or not holds, rows
        answers[found] += 1
    assert min(answers.values()) > 30


FAULTS: dict[str, Callable[[If], If]] = {
    "a tile with the diagonal in it is taken for a whole one": lambda n: replace(
        n, conditions=tuple(Condition(c.expr + 1) for c in n.conditions)),
    "no tile is asked": lambda n: replace(n, conditions=(Condition(n.conditions[0].expr * 0),)),
    "the wrong way round": lambda n: replace(n, body=n.otherwise, otherwise=n.body),
    "the masked one is lost": lambda n: replace(n, otherwise=()),
    "the whole one is lost": lambda n: replace(n, body=n.otherwise, otherwise=()),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_caught(fault: str) -> None:
    ir = plan_ir(made().plan)
    assert not faults(ir)
    chosen = doubled(body_of(ir))
    (wrong,) = chosen

    def among(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(FAULTS[fault](wrong) if n is wrong else map_bodies(n, among) for n in nodes)

    (launch,) = ir.launches
    assert faults(replace(ir, launches=(replace(launch, bodies=(among(body_of(ir)),)),)))


def test_weights_that_wait_for_a_turn_are_packed_before_it() -> None:
    """Else NVRTC 13.5 unpacks them at the end of the branch, and keeps each in a register of its own: three spilled."""
    in_turns = Tiling(128, 8, 128, 2, 2, registers=240, turns=True, through=True)
    s = attention(causal_attention.schedule(B=1, H=1, L=512, D=128), tiling=in_turns)
    packed = {store.name for n in walk(body_of(plan_ir(s.plan))) if isinstance(n, If) for store in n.packed}
    assert packed == {"p"}
    assert s.cuda.count("pack_registers(p);") == 1
    [kernel] = compile_module(emit(s.plan, arch="sm_90a"), "sm_90a").kernels.values()
    assert not kernel.spill_store_bytes
    assert not any(n.packed for n in walk(body_of(plan_ir(made().plan))) if isinstance(n, If)), "its product is in the branch"
