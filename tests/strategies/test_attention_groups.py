"""Attention on warpgroups: right at small and ragged sizes, products that are HGMMA without spills, mutants, tilings."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import explorer as ex
from benchmarks.product_programs import attention as plain
from benchmarks.product_programs import causal_attention
from benchmarks.sass import disassembler, whole
from explorer.errors import TransformError
from explorer.gpu.spec import default_gpu
from explorer.ir.expr import const
from explorer.ir.tree import Sync, walk
from explorer.kernel.emit import emit
from explorer.poly.judge import judge
from explorer.poly.traffic import traffic
from explorer.run.nvrtc.compiler import compile_module
from explorer.strategies.attention import attention
from explorer.strategies.attention.form import AttentionForm, ready_form
from explorer.strategies.attention.model import group_tilings, held, shared_bytes, tiling_us
from explorer.strategies.attention.moves import Tiling
from tests.strategies.test_attention import biased

ONE, TWO = Tiling(64, 4, 32, 2, 1), Tiling(128, 8, 32, 2, 2)
TURNS = replace(ONE, keys=64, through=True, persistent=2)


def form_of(program, **sizes: int) -> AttentionForm:  # type: ignore[no-untyped-def]
    found = ready_form(program.schedule(**sizes), program.name)
    assert found is not None
    return found[1]


@pytest.mark.parametrize(("program", "length", "tiling"), [
    (plain, 64, ONE), (plain, 128, TWO), (causal_attention, 64, ONE), (causal_attention, 128, TWO),
    (plain, 64, replace(ONE, keys=64, stages=1)), (plain, 128, replace(TWO, through=True)),
    (plain, 192, TURNS), (plain, 256, replace(TURNS, stages=3, persistent=3)),
    (plain, 384, replace(TWO, keys=64, turns=True, through=True, persistent=2)), (plain, 80, replace(ONE, keys=48)),
    (causal_attention, 104, replace(TWO, keys=48, through=True)),
], ids=lambda x: getattr(x, "name", str(x)))  # fmt: skip
def test_it_is_right(program, length: int, tiling: Tiling) -> None:  # type: ignore[no-untyped-def]
    s = attention(program.schedule(B=1, H=1, L=length, D=32), tiling=tiling)
    assert s.judgement.emittable
    assert len(s.plan.kernels) == 1
    assert {x.mechanism.partition("_")[2] for x, _, _ in s.plan.leaves if x.mechanism.startswith("m64")} == {
        "f16_f16_f32", "f16_f16_f32_rs"}
    assert s.run(device="cpu", time=False, checked=tiling.persistent > 0).correct


@pytest.mark.parametrize(("rows", "keys", "tiling"), [(128, 96, replace(TWO, keys=48)),
                                                      (70, 40, replace(ONE, keys=48, stages=1))])
def test_keys_stored_across_with_a_bias_in_bf16(rows: int, keys: int, tiling: Tiling) -> None:
    s = attention(biased.schedule(Q=rows, K=keys, D=32, E=16), tiling=tiling)
    assert {x.mechanism.partition("_")[2] for x, _, _ in s.plan.leaves if x.mechanism.startswith("m64")} == {
        "bf16_bf16_f32", "bf16_bf16_f32_rs"}
    assert s.run(device="cpu", time=False, ragged=False).correct


def test_whole_tiles_meet_nowhere_in_the_loop() -> None:
    s = attention(plain.schedule(B=1, H=1, L=128, D=32), tiling=TWO)
    assert "__shfl_sync" in s.cuda
    assert {b.name for b in s.plan.buffers if b.space == "shared"} == {"q_s", "k_s", "v_s"}
    text = s.cuda[s.cuda.index('extern "C"'):]
    producer, consumers = text[text.index("the producer"):].split("} else {", 1)
    assert producer.count("bulk_copy_2d") == 2
    loop = consumers[consumers.index("for (int j = 0"):consumers.index("mbarrier_release")]
    assert not re.search(r"barrier_of|__syncthreads", loop)


@pytest.mark.parametrize("tiling", [TWO, Tiling(32, 2, 32, 2)], ids=str)
def test_results_through_shared_memory_leave_in_whole_lines(tiling: Tiling) -> None:
    written = plain.schedule(B=1, H=1, L=128, D=64)
    pairs, s = (attention(written, tiling=t) for t in (tiling, replace(tiling, through=True)))
    assert {b.name for b in s.plan.buffers if b.space == "shared"} == {"q_s", "k_s", "v_s", "y_t"}
    assert [next(f.efficiency for f in traffic(x.plan) if f.array == "y" and f.writes) for x in (pairs, s)] == [0.5, 1.0]
    assert s.run(device="cpu", time=False).correct


@pytest.mark.parametrize("program", [plain, causal_attention], ids=lambda x: x.name)
@pytest.mark.parametrize("width", [64, 128])
def test_what_is_chosen_multiplies_without_spills(program, width: int, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    s = attention(program.schedule(B=1, H=132, L=1024, D=width))
    assert s.judgement.emittable
    made = compile_module(emit(s.plan), "sm_90")
    (kernel,) = made.kernels.values()
    assert kernel.spill_store_bytes <= 16 * (program is causal_attention), "four words at most, where a tile has an edge"
    file = tmp_path / "cubin"
    file.write_bytes(whole(made.cubin))
    dump = subprocess.run([disassembler(), "-c", file], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "HGMMA.64x" in dump
    assert "HMMA.16816" not in dump


def test_mutants_are_refused() -> None:
    plan = attention(plain.schedule(B=1, H=1, L=128, D=32), tiling=ONE).plan
    syncs = {n.kind: n for n in walk(plan.kernels[0].body) if isinstance(n, Sync)}
    assert syncs.keys() == {"acquire", "commit", "wait", "release"}
    acquire = syncs["acquire"]
    mutants = {f"no {kind}": plan.replace_node(n.id) for kind, n in syncs.items()}
    mutants["a release too early"] = plan.replace_node(acquire.id, replace(acquire, pending=acquire.pending + 1))

    def other(leaf):  # type: ignore[no-untyped-def]
        views = tuple((slot, replace(v, lane=(v.lane + 4) % 32) if v.lane is not None else v) for slot, v in leaf.views)
        return replace(leaf, views=views)

    mutants["another row's lanes"] = plan.map_leaves(other)
    for kind, mutant in mutants.items():
        assert not judge(mutant).legal, kind


def test_queries_of_the_next_tile_are_asked_for_while_others_compute() -> None:
    s = attention(plain.schedule(B=1, H=1, L=192, D=32), tiling=TURNS)
    text = s.cuda[s.cuda.index('extern "C"'):]
    producer, consumers = text[text.index("the producer"):].split("} else {", 1)
    assert [x for x in re.findall(r"\w+", producer) if x in ("mbarrier_wait", "bulk_copy_2d", "mbarrier_arrive")] == [
        "bulk_copy_2d", "mbarrier_arrive", "mbarrier_wait", "bulk_copy_2d", "bulk_copy_2d", "mbarrier_arrive"]
    assert "bulk_copy" not in consumers
    assert s.plan.buffer_of["q_s"].shape == (2, 64, 32)
    assert " arrived[4];" in text, "each group of a tile: one of queries, three of keys"
    assert " released[2];" in text


def test_mutants_of_queries_in_turn_are_refused() -> None:
    plan = attention(plain.schedule(B=1, H=1, L=192, D=32), tiling=TURNS).plan
    assert judge(plan).legal
    commit, wait = (next(n for n in walk(plan.kernels[0].body) if isinstance(n, Sync) and n.id == f"q_s.{kind}")
                    for kind in ("commit", "wait"))

    def one_slot(leaf):  # type: ignore[no-untyped-def]
        views = tuple((n, replace(v, index=(const(0), *v.index[1:])) if v.buffer == "q_s" else v) for n, v in leaf.views)
        return replace(leaf, views=views)

    late = replace(wait, pending=1)
    mutants = {"no commit": plan.replace_node(commit.id), "no wait": plan.replace_node(wait.id),
               "one slot": plan.map_leaves(one_slot), "waits for one group less": plan.replace_node(wait.id, late)}
    for kind, mutant in mutants.items():
        assert not judge(mutant).emittable, kind


def test_queries_are_not_written_before_their_last_use_where_keys_have_more_slots_than_steps() -> None:
    """Three steps of a tile and four slots: the producer is a tile ahead before the tile before that is done."""
    written, t = plain.schedule(B=1, H=1, L=192, D=32), replace(TURNS, persistent=1)
    assert attention(written, tiling=replace(t, stages=3)).judgement.legal
    (found, *_) = attention(written, tiling=replace(t, stages=4)).judgement.refusals
    assert found.what.startswith("q_s[")
    assert "may write q_s[0, 0, 0] before S1[" in found.what
    form = form_of(plain, B=4, H=16, L=192, D=32)
    assert not any(t.persistent and 192 // t.keys < t.stages for t in group_tilings(form, default_gpu()))


def test_tilings_fit_and_the_shortest_time_is_first() -> None:
    gpu = default_gpu()
    for program in (plain, causal_attention):
        for width in (32, 64, 128, 256):
            form = form_of(program, B=4, H=16, L=4096, D=width)
            found = list(group_tilings(form, gpu))
            times = [tiling_us(form, t, gpu) for t in found]
            assert found
            assert times == sorted(times)
            assert all(shared_bytes(form, t) <= gpu.shared_bytes_per_block_optin and held(form, t.keys) <= 240 for t in found)
    form = form_of(plain, B=4, H=16, L=4096, D=128)
    assert next(group_tilings(form, gpu)).groups == 2  # one multiplies while the other takes exponentials
    assert not [*group_tilings(form, ex.gpu("A100"))]
    assert not [*group_tilings(form_of(plain, B=4, H=16, L=4096, D=24), gpu)]


@pytest.mark.parametrize("length", [1, 2, 17, 64, 127, 128, 255])
def test_fewer_rows_than_a_tile_have_tilings(length: int) -> None:
    found = [*group_tilings(form_of(plain, B=1, H=1, L=length, D=64), default_gpu())]
    assert found
    assert not any(t.persistent for t in found)


def test_refusals() -> None:
    s = plain.schedule(B=1, H=1, L=128, D=32)
    for wrong in (replace(ONE, rows=32), replace(ONE, keys=24)):
        with pytest.raises(TransformError, match="attention cannot have"):
            attention(s, tiling=wrong)


@pytest.mark.parametrize("width", [48, 96, 144])
def test_heads_whose_rows_are_no_whole_panels(width: int) -> None:
    """Their swizzle has rows of 16 or 32 elements, and so has an instruction text of the scores."""
    s = attention(plain.schedule(B=1, H=2, L=96, D=width))
    assert "wgmma" in s.cuda
    assert s.run(device="cpu", time=False).correct
