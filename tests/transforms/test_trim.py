"""Trim: a loop ends, in each block, with its last iteration that does anything; by brute force, run, and with faults in it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

import explorer as ex
from benchmarks.product_programs import causal_attention
from explorer.ir.expr import Expr
from explorer.ir.tree import leaves, ranges
from explorer.kernel import sites
from explorer.kernel.validate import NotProved
from explorer.poly import early_end, ends
from explorer.strategies.attention import attention
from explorer.strategies.attention.moves import Tiling
from explorer.transforms import trim as module
from explorer.transforms.trim import Trim
from explorer.views.loops import loop_rows

N, M = ex.sizes("N M")


@ex.program
def lower(a: ex.f32[N, N], b: ex.f32[N, M], c: ex.f32[N, M]):
    """A triangle times a matrix."""
    for i in range(N):
        for j in range(M):
            s = ex.local(ex.f32)
            s = 0.0
            for k in range(i + 1):
                s += a[i, k] * b[k, j]
            c[i, j] = s


@ex.program
def banded(a: ex.f32[N, N], b: ex.f32[N, M], c: ex.f32[N, M]):
    """A band times a matrix."""
    for i in range(N):
        for j in range(M):
            s = ex.local(ex.f32)
            s = 0.0
            for k in range(N):
                if i <= k + 5 and k <= i + 3:
                    s += a[i, k] * b[k, j]
            c[i, j] = s


@ex.program
def full(a: ex.f32[N, N], b: ex.f32[N, M], c: ex.f32[N, M]):
    for i in range(N):
        for j in range(M):
            s = ex.local(ex.f32)
            s = 0.0
            for k in range(N):
                s += a[i, k] * b[k, j]
            c[i, j] = s


def tiled(of: Any, rows: int, keys: int, n: int = 45, **how: Any) -> ex.Schedule:
    """Rows and columns over threads, a tile of keys in shared memory."""
    s = of.schedule(N=n, M=16).split("k", keys).split("i", rows)
    s = s.bind("i", "block.x").bind("i.i", "thread.y").bind("j", "thread.x")
    return s.contract("s", "register").stage("b", "k", **how).stage("a", "k", **how)


def last_by_hand(s: ex.Schedule, loop: str) -> dict[int, int]:
    """For each block, the last iteration of a loop in which a statement of the program has an instance."""
    found = dict[int, int]()
    plan = s.plan
    for leaf, above in leaves(plan.kernels[0].body):
        names = [x.id for x in above]
        if loop not in names or leaf.statement not in plan.program.statement_of:
            continue
        for values in product(*(range(x.start, x.start + x.extent) for x in above)):
            here = dict(zip(names, values, strict=True))
            at = {d: int(e.evaluate(here)) for d, e in leaf.at}
            if all(c.expr.evaluate(at) >= 0 for c in plan.statement_of[leaf.statement].domain):
                block = here["i"]
                found[block] = max(found.get(block, 0), here[loop])
    return found


def shape(s: ex.Schedule) -> str:
    """The head of the loop over keys in the text."""
    return next(line.strip() for line in s.cuda.splitlines() if line.strip().startswith("for (int k = 0"))


@pytest.mark.parametrize(("of", "rows", "keys"), [(lower, 8, 4), (lower, 4, 16), (lower, 5, 3), (banded, 8, 4), (banded, 3, 8)])
def test_the_end_is_that_of_brute_force(of: Any, rows: int, keys: int) -> None:
    s = tiled(of, rows, keys, n=21)
    made = s.trim("k")
    last = ends.last_iteration(made.plan, "k")
    assert isinstance(last, Expr)
    wanted = last_by_hand(s, "k")
    top = made.plan.loops["k"].range[1]
    assert {i: min(int(last.evaluate({"i": i})), top) for i in wanted} == wanted
    assert made.run(device="cpu", time=False).correct


@pytest.mark.parametrize("first", ["trim", "pipeline"])
@pytest.mark.parametrize(("of", "stages"), [(lower, 2), (lower, 4), (banded, 3)])
def test_before_and_after_a_pipeline(of: Any, stages: int, first: str) -> None:
    s = tiled(of, 8, 4)
    one = s.trim("k").pipeline("k", stages) if first == "trim" else s.pipeline("k", stages).trim("k")
    assert one.judgement.emittable
    assert "i" in shape(one).replace("int", "")
    assert one.run(device="cpu", time=False).correct


def test_the_copies_of_iterations_that_do_not_run_are_not_made() -> None:
    s = tiled(lower, 8, 4)
    before, after = (sum(count(x, name) for name in ("a_s", "b_s")) for x in (s, s.trim("k")))
    assert after < 0.6 * before


def count(s: ex.Schedule, copy: str) -> int:
    """Instances of a copy."""
    statement = s.plan.statement_of[copy]
    total = 0
    for leaf, above, _ in s.plan.leaves:
        if leaf.statement == copy:
            for values in product(*(range(x.start, x.start + x.extent) for x in above)):
                at = {d: int(e.evaluate(dict(zip(ranges(above), values, strict=True)))) for d, e in leaf.at}
                total += all(c.expr.evaluate(at) >= 0 for c in statement.domain)
    return total


@pytest.mark.parametrize("tiling", [Tiling(32, 1, 32, 2), Tiling(32, 2, 32, 3), Tiling(16, 1, 32, 1)])
def test_causal_attention_ends_at_the_diagonal(tiling: Tiling) -> None:
    """Blocks run backwards: those of the last rows, which have most keys, start first."""
    made = attention(causal_attention.schedule(B=1, H=1, L=100, D=16), tiling=tiling)
    assert "trim('j')" in map(str, made.steps)
    assert made.judgement.emittable
    head = next(line.strip() for line in made.cuda.splitlines() if line.strip().startswith("for (int j = 0"))
    assert head.startswith({32: "for (int j = 0; j < 4 - i;", 16: "for (int j = 0; j < (6 - i) / 2 + 1;"}[tiling.rows])
    assert "mma_m16n8k16" in made.cuda
    assert made.run(device="cpu", time=False, ragged=False).correct


@pytest.mark.parametrize("pipelined", [False, True])
def test_an_end_that_is_one_too_low_is_caught(pipelined: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    s = tiled(lower, 8, 4).trim("k")
    s = s.pipeline("k", 3) if pipelined else s
    monkeypatch.setattr(sites, "end_of", lambda *x: early_end.end_of(*x) - 1)  # type: ignore[operator]
    with pytest.raises(NotProved, match="does not run in every instance"):
        _ = s.cuda


def test_copies_that_end_too_early_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "last_iteration", lambda *x: ends.last_iteration(*x) - 1)  # type: ignore[operator]
    with pytest.raises(ex.IllegalSchedule):
        tiled(lower, 12, 4).trim("k")  # sizes of its own: steps that have been taken are remembered


def test_what_a_later_move_takes_away_is_not_trimmed_any_more() -> None:
    made = tiled(lower, 8, 4).trim("k").pipeline("k", 2)
    assert shape(made.bind("i", "seq")) == "for (int k = 0; k < 12; ++k) {  // k"


def test_refusals() -> None:
    def why(s: ex.Schedule, loop: str = "k") -> str:
        verdict, _ = s.try_step(Trim(loop))
        assert not verdict
        return f"{verdict.what}: {verdict.why}"

    assert "S1 may run in the last iteration of k in every block" in why(tiled(full, 8, 4))
    assert "k is trimmed already" in why(tiled(lower, 8, 4).trim("k"))
    assert "i is block.x" in why(tiled(lower, 8, 4), "i")
    assert "k has waits and runs again in i" in why(tiled(lower, 8, 4).pipeline("k", 2).bind("i", "seq"))


@pytest.mark.parametrize("order", [
    ("stage", "trim"), ("trim", "stage"), ("trim", "stage", "pipeline"), ("trim", "pipeline", "stage")])
@pytest.mark.parametrize("engine", ["thread", "async"])
def test_copies_made_later_end_with_the_loop(order: tuple[str, ...], engine: str) -> None:
    s = lower.schedule(N=45, M=16).split("k", 4).split("i", 8)
    s = s.bind("i", "block.x").bind("i.i", "thread.y").bind("j", "thread.x").contract("s", "register")
    s = s.stage("b", "k", engine=engine)
    for name in order:
        s = s.trim("k") if name == "trim" else s.pipeline("k", 3) if name == "pipeline" else s.stage("a", "k", engine="thread")
    assert s.judgement.emittable
    assert "i" in shape(s).replace("int", "")
    assert s.run(device="cpu", time=False).correct


def test_what_runs_all_its_iterations_again_can_be_trimmed_again() -> None:
    s = tiled(lower, 8, 4).trim("k")
    copies = {c.name for c in s.plan.copies}
    loose = replace(s.plan, copies=tuple(replace(c, domain=c.domain[:-1]) for c in s.plan.copies), program=replace(
        s.plan.program, statements=tuple(replace(x, domain=x.domain[:-1]) if x.name in copies else x
                                         for x in s.plan.program.statements)))
    assert "may run in the last iteration" in str(early_end.end_of(loose, loose.kernels[0], loose.loops["k"]))
    assert Trim("k").check(loose)
    assert Trim("k").rewrite(loose) == s.plan


@pytest.mark.parametrize("first", ["trim", "pipeline"])
@pytest.mark.parametrize("engine", ["thread", "async"])
def test_threads_beyond_the_last_row_read_behind_a_barrier(engine: str, first: str) -> None:
    """They run without their condition, where no thread of the last block reads what another one copied."""
    s = lower.schedule(N=3, M=8).split("k", 1).split("i", 2)
    s = s.bind("i", "block.x").bind("i.i", "thread.y").bind("j", "thread.x").contract("s", "register")
    s = s.stage("b", "k", engine=engine).stage("a", "k", engine=engine)
    s = s.trim("k").pipeline("k", 2) if first == "trim" else s.pipeline("k", 2).trim("k")
    assert s.judgement.emittable
    assert s.run(device="cpu", time=False, checked=True).correct


def test_threads_beyond_the_last_row_of_a_statement_without_instances() -> None:
    @ex.program
    def never(a: ex.f32[16], c: ex.f32[16]):
        for i in range(16):
            s = ex.local(ex.f32)
            s = 0.0
            for k in range(16):
                if k + 17 <= i:
                    s += a[k]
            c[i] = s

    s = never.schedule().split("i", 5).split("k", 4).bind("i", "block.x").bind("i.i", "thread.x")
    s = s.contract("s", "register").stage("a", "k")
    assert s.judgement.emittable
    assert s.run(device="cpu", time=False, checked=True).correct


def test_the_tree_shows_where_a_trimmed_loop_ends() -> None:
    s = tiled(lower, 8, 4).trim("k")
    (row,) = (r for r in loop_rows(s.plan, 99) if r.key == "k")
    assert [(c.text, c.title) for c in row.chips] == [("trimmed", "ends with iteration 2*i + 1 in each block")]
    (row,) = (r for r in loop_rows(s.pipeline("k", 2).bind("i", "seq").plan, 99) if r.key == "k")
    assert row.chips[0].text == "trim without effect"
    assert "runs again in i" in row.chips[0].title
