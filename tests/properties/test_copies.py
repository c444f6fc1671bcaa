"""Copies, vectors and collectives at odd lengths, blocks and types: what hostile use has found, run on the checked CPU device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from explorer.schedule import Schedule

from .programs import define
from .tally import ACCEPTED
from .trial import Trial

LANE_SUMS = """@ex.program
def f(x: ex.f32[M, 33], y: ex.f32[M], z: ex.f32[K]):
    for i in range(M):
        y[i] = 0.0
        for k in range(N):
            y[i] += x[i, k]
    for j in range(K):
        z[j] = x[0, 0] * j
"""


@dataclass(frozen=True)
class Case:
    """A program, its sizes, and a chain of moves that is accepted, compiles and computes the right thing."""

    what: str
    text: str
    chain: Callable[[Schedule], Schedule]
    sizes: tuple[tuple[str, int], ...] = ()


def run(*cases: Case) -> None:
    """Each schedule runs in two orders of its threads and gives what the loops as written give."""
    trial = Trial(shrinks=0)
    for number, case in enumerate(cases):
        definition, sizes = define(case.text, "copies.py"), dict(case.sizes)
        trial.conclude(f"{number}:0", case.chain(definition.schedule(**{name: sizes[name] for name in definition.sizes})))
    trial.flush()
    assert not trial.tally.found, "\n".join(map(str, trial.tally.found))
    assert list(trial.tally.pairs.values()) == [ACCEPTED] * len(cases)


BACKWARDS = """@ex.program
def f(x: ex.f32[M, K], y: ex.f32[M, K]):
    for a in range(M):
        for j in range(K):
            y[a, j] = x[a, K - 1 - j] * 2.0
"""
COLUMNS = """@ex.program
def f(x: ex.f32[4, 6], y: ex.f32[4, 6]):
    for i in range(6):
        for j in range(4):
            y[j, i] = x[j, i]
"""
STENCIL = """@ex.program
def f(x: ex.f16[N + 2], y: ex.f16[N]):
    for t in range(N):
        y[t] = x[t] + x[t + 1] + x[t + 2]
"""
CONSTANT = """@ex.program
def f(x: ex.f32[N], y: ex.f32[N]):
    t = ex.local(ex.{dtype})
    t = 0.1
    for i in range(N):
        y[i] = t * x[i]
"""
ONE_ROW = """@ex.program
def f(x: ex.{dtype}[N], y: ex.{dtype}[N]):
    for t in range(N):
        y[t] = x[t]
"""


def _bound(s: Schedule, roles: tuple[str, ...]) -> Schedule:
    if roles == ("warp", "lane"):
        return s.bind("i", "warp").bind("k", "lane")
    return s.bind("k", roles[0])


COLLECTED = tuple(
    Case(f"{how} over {'+'.join(roles)} in a block of {threads} threads", LANE_SUMS,
         lambda s, how=how, roles=roles: _bound(s, roles).bind("j", "thread.x").collect("y", how),
         (("M", 2), ("N", 32 if "lane" in roles else 2), ("K", threads)))
    for how in ("shuffle", "shared") for roles in (("lane",), ("warp",), ("warp", "lane")) for threads in (1, 31, 33, 65, 96)
)

COPIED = (
    Case("a copy that ran ahead asynchronously, then from shared memory", BACKWARDS,
         lambda s: s.bind("j", "thread.x", count=16).stage("x", "a", vector=2).pipeline("a", 2).stage("x", "x_s.r"),
         (("M", 6), ("K", 64))),
    Case("... and once more", BACKWARDS,
         lambda s: s.bind("j", "thread.x", count=8).stage("x", "a", vector=2).pipeline("a", 3).stage("x", "x_s.r", vector=2)
         .stage("x", "x_s.r", vector=2, space="register"), (("M", 5), ("K", 32))),
    Case("... from registers", BACKWARDS,
         lambda s: s.bind("j", "thread.x", count=16).stage("x", "a", vector=2).pipeline("a", 3)
         .stage("x", "x_s.r", space="register"), (("M", 6), ("K", 64))),
    Case("an asynchronous copy that never runs", ONE_ROW.replace("{dtype}", "i8").replace("range(N)", "range(1)"),
         lambda s: s.split("t", 8).stage("x", "t", vector=8).pipeline("t", 2), (("N", 1),)),
    Case("vectors of a copy beyond whose edge there are zeros", COLUMNS,
         lambda s: s.split("j", 3).stage("x", "f", vector=4).stage("x", "x_s.r", vector=4)),
    Case("... some of a vector", ONE_ROW.replace("{dtype}", "f32"),
         lambda s: s.split("t", 16).stage("x", "f", vector=4).stage("x", "x_s.r", vector=4), (("N", 19),)),
    Case("... none of a vector beyond the copy", STENCIL,
         lambda s: s.bind("t", "thread.x", count=16).stage("x", "t.b", pad=4).stage("x", "t.b", vector=4)
         .stage("x", "t", vector=4),
         (("N", 19),)),
    Case("... by threads", COLUMNS, lambda s: s.split("j", 3).bind("j.i", "thread.x").stage("x", "f", vector=2)
         .stage("x", "x_s.r", vector=2)),
    *(Case(f"a constant of {dtype} where no array has the type", CONSTANT.replace("{dtype}", dtype), lambda s: s.inline("t"),
           (("N", 5),)) for dtype in ("f16", "bf16")),
)


@pytest.mark.parametrize("case", COPIED, ids=lambda c: c.what)
def test_copies_of_copies(case: Case) -> None:
    run(case)


@pytest.mark.parametrize("how", ["shuffle", "shared"])
def test_lanes_in_blocks_of_odd_sizes(how: str) -> None:
    run(*(c for c in COLLECTED if c.what.startswith(how)))


WAYS: tuple[Callable[[Schedule, int], Schedule], ...] = (
    lambda s, v: s.stage("x", "t", vector=v).pipeline("t", 2),
    lambda s, v: s.bind("t.i", "thread.x", count=8).stage("x", "t", vector=v).pipeline("t", s.plan.loops["t"].extent + 1),
    lambda s, v: s.bind("t.i", "thread.x").stage("x", "t", vector=v),
    lambda s, v: s.stage("x", "t", vector=v).pipeline("t", 2, asynchronous=False),
    lambda s, v: s.stage("x", "t", vector=v, space="register"),
)


@pytest.mark.parametrize(("dtype", "vector"), [
    ("i8", 4), ("i8", 16), ("f16", 2), ("f16", 8), ("bf16", 4), ("i32", 2), ("f32", 4), ("f64", 2), ("i64", 2)])
def test_the_last_vector_is_partial(dtype: str, vector: int) -> None:
    """Of what lies beyond the array nothing is read, and its cells are zeros."""
    text = ONE_ROW.replace("{dtype}", dtype)
    run(*(Case("", text, lambda s, way=way: way(s.split("t", 16), vector), (("N", n),)) for n in (9, 19, 33) for way in WAYS))


@pytest.mark.parametrize("how", ["shuffle", "shared"])
def test_lanes_of_a_phase_whose_launch_has_more_threads(how: str) -> None:
    def chain(s: Schedule) -> Schedule:
        s = _bound(s, ("warp", "lane")).bind("j", "thread.x").collect("y", how)
        s = s.launch("f", after="i")
        return s.join(s.plan.kernels[1].id, "grid")

    run(Case("", LANE_SUMS, chain, (("M", 2), ("N", 32), ("K", 65))))
