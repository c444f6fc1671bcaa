"""Stitching: edges and kinds, every scheme tried and run, the model's terms, the user's choices, the reasons of refusals."""

from __future__ import annotations

from functools import cache

import pytest

import explorer as ex
from explorer.errors import IllegalSchedule, TransformError
from explorer.poly.traffic import traffic
from explorer.strategies import Edge, auto, edges, stitch, stitching
from explorer.strategies.stitching.graph import SCHEMES
from explorer.views.findings import error_html
from tests.properties.programs import define
from tests.strategies.stitched import PROGRAMS, M, N, program, run_all, written
from tests.transforms.multiblock import ROWS

KINDS = {
    "batchnorm_relu": {"total->mean": "1:1", "square->scale": "1:1", "mean->scale": "1:1", "mean->y": "1:many",
                       "scale->y": "1:many"},
    "softmax": {"peak->total": "1:many", "peak->y": "1:many", "total->y": "1:many"},
    "layernorm": {"total->mean": "1:1", "mean->spread": "1:many", "spread->scale": "1:1", "mean->y": "1:many",
                  "scale->y": "1:many"},
    "cross_entropy": {"peak->total": "1:many", "peak->y": "1:1", "total->y": "1:1"},
    "bias_gelu": {"v->y": "1:1"},
    "two_nests": {"t->y": "many:1", "t->z": "1:1"},
}


@cache
def tried(name: str) -> tuple[Edge, ...]:
    return edges(written(name))


@pytest.mark.parametrize("name", PROGRAMS)
def test_edges_and_kinds(name: str) -> None:
    found = tried(name)
    assert {e.id: e.kind for e in found} == KINDS[name]
    for e in found:
        assert tuple(o.scheme for o in e.options) == SCHEMES
        assert e.id.startswith(f"{e.array}->")
        assert all(e.lines)
        assert e.lines[0] < e.lines[1]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_legal_option_is_right(name: str) -> None:
    made = []
    for e in tried(name):
        legal = [o.scheme for o in e.options if o.verdict]
        assert "cut" in legal
        assert "register" in legal
        for scheme in legal:
            found = stitching(written(name), {e.id: scheme})
            assert found.chosen[e.id] == scheme
            assert found.schedule.judgement.emittable
            made.append(found.schedule)
    run_all(made)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_illegal_option_is_refused_with_its_reason(name: str) -> None:
    refused = [(e, o) for e in tried(name) for o in e.options if not o.verdict]
    assert refused
    for e, o in refused:
        with pytest.raises((TransformError, IllegalSchedule)) as caught:
            stitch(written(name), {e.id: o.scheme})
        assert e.id in str(caught.value)
        assert o.verdict.what in str(caught.value)
        fits = [x.scheme for x in e.options if x.verdict]
        assert caught.value.hint == f"one of {', '.join(fits)}"


@pytest.mark.parametrize("name", PROGRAMS)
def test_terms_add_up(name: str) -> None:
    for e in tried(name):
        for o in e.options:
            assert o.total_us == pytest.approx(sum(us for _, us in o.terms))
            if o.verdict:
                assert o.total_us > 1
                assert 0 < o.occupancy <= 1
                assert o.registers >= 32
        cut = next(o for o in e.options if o.scheme == "cut")
        assert (cut.saved_bytes, cut.saved_launches) == (0, 0)


def test_a_reduction_cannot_be_computed_again_nor_a_plain_value_shuffled() -> None:
    options = {(e.id, o.scheme): o for e in tried("layernorm") for o in e.options}
    assert "reduction" in options["mean->y", "shuffle"].verdict.what
    assert "not defined by one plain statement" in options["total->mean", "recompute"].verdict.what
    assert options["mean->y", "recompute"].recomputed_flops > 0


def test_staying_in_a_kernel_saves_traffic_and_a_launch() -> None:
    source = written("softmax", M=4096, N=1024)
    option = {o.scheme: o for e in edges(source) if e.id == "total->y" for o in e.options}
    row = 2 * 4096 * 1024
    assert option["shuffle"].saved_launches == 1
    assert row <= option["shuffle"].saved_bytes <= 1.01 * row
    assert option["shuffle"].total_us < option["cut"].total_us


def test_a_stencil_cannot_stay_in_registers() -> None:
    source = written("stencils", M=12, N=8)
    (edge,) = edges(source)
    assert edge.kind == "many:many"
    option = {o.scheme: o for o in edge.options}
    assert not option["register"].verdict
    assert option["cut"].verdict
    assert option["recompute"].verdict
    with pytest.raises(IllegalSchedule, match="one of global, grid, recompute, cut"):
        stitch(source, {"t->y": "register"})
    run_all([stitch(source), stitch(source, {"t->y": "recompute"})])
    assert len(stitch(source, {"t->y": "recompute"}).plan.kernels) == 1


def test_a_refusal_names_the_instances() -> None:
    source = written("mirror", M=3, N=64)
    with pytest.raises(IllegalSchedule) as caught:
        stitch(source, {"t->y": "register"})
    assert "t->y cannot be 'register'" in str(caught.value)
    assert caught.value.finding.source.statement == "S0"
    assert caught.value.finding.sink.statement == "S1"
    assert str(caught.value.finding.sink) in str(caught.value)
    assert "shared" in caught.value.hint
    run_all([stitch(source, {"t->y": "shared"}), stitch(source)])


def test_choices_that_are_none_are_refused() -> None:
    source = written("softmax")
    with pytest.raises(TransformError, match="no edge 'nothing->y'"):
        stitch(source, {"nothing->y": "cut"})
    with pytest.raises(TransformError, match="there is no scheme 'warp'"):
        stitch(source, {"total->y": "warp"})
    with pytest.raises(TransformError, match=r"keeps total and y in one kernel"):
        stitch(source, {"total->y": "cut", "peak->y": "register"})


def test_choices_are_respected_and_the_rest_is_chosen() -> None:
    source = written("batchnorm_relu")
    found = stitching(source, {"total->mean": "global"})
    assert found.chosen["total->mean"] == "global"
    assert found.chosen["square->scale"] == "global"
    assert len(found.schedule.plan.kernels) == 3
    assert found.groups == (("total", "square", "mean", "scale"), ("y",))
    assert len(stitch(source, dict.fromkeys(found.chosen, "cut")).plan.kernels) == 4
    shared = stitch(source, {"mean->y": "shared"})
    assert shared.plan.buffer_of["mean"].space == "shared"
    text = str(found)
    assert "total->mean" in text
    assert "kernel 2: y" in text


def test_steps_are_ordinary_moves() -> None:
    made = stitch(written("batchnorm_relu"), {"mean->y": "global"})
    again = written("batchnorm_relu")
    for step in made.steps:
        again = again.apply(step)
    assert again.plan == made.plan
    assert program("batchnorm_relu").load(made.to_json()).plan == made.plan


MEASURED = {
    (8, 32, 784): (4.64, 5.95), (16, 32, 1024): (6.02, 6.75), (64, 32, 196): (6.18, 6.50), (8, 64, 3136): (7.79, 9.38),
    (16, 64, 1024): (6.51, 7.70), (32, 64, 784): (7.90, 9.60), (64, 64, 196): (6.34, 7.23), (32, 128, 784): (10.24, 13.02),
    (32, 32, 3136): (17.89, 14.30), (64, 16, 1024): (15.10, 8.30),
}
"""Batch normalisation of B images, C channels, P pixels on an H200: microseconds in one launch, and in two."""


@pytest.mark.parametrize("sizes", MEASURED)
def test_few_channels_take_as_many_launches_as_is_faster(sizes: tuple[int, int, int]) -> None:
    """A multiprocessor stores 32 bytes a cycle, so blocks that are few take long for what they write."""
    images, channels, pixels = sizes
    made = auto(written("batchnorm_relu", B=images, C=channels, P=pixels), gpu=ex.gpu("H200"))
    one, two = MEASURED[sizes]
    assert len(made.plan.launched) == (1 if one < two else 2)


@pytest.mark.parametrize("sizes", [{"B": 4, "C": 2, "P": 1024}, {"B": 3, "C": 7, "P": 50}, {"B": 64, "C": 256, "P": 3136}])
def test_batch_normalisation_reads_twice(sizes: dict[str, int]) -> None:
    made = stitch(written("batchnorm_relu", **sizes), {"mean->y": "global"})
    x = next(a for a in made.source.parameters if a.name == "x")
    above = {leaf.id: tuple(loop.id for loop in loops) for leaf, loops, _ in made.plan.leaves}
    passes: dict[tuple[str, ...], float] = {}
    for a in traffic(made.plan):
        if a.array == "x" and not a.writes:  # in one body, several reads of one element are one
            passes[above[a.leaf]] = a.requests * 32 * a.active * a.width_bytes
    assert len(passes) == 2
    assert sum(passes.values()) == pytest.approx(2 * x.nbytes, rel=0.1)
    if sizes["P"] % 4 == 0:
        assert made.cuda.count("&x[") == 2
    if sizes["B"] < 64:
        run_all([made])


def test_the_automatic_schedule_cuts_few_long_rows() -> None:
    assert len(auto(written("batchnorm_relu", B=64, C=256, P=3136)).plan.kernels) in (2, 3)
    few = auto(written("softmax", M=8, N=1 << 20))
    assert len(few.plan.kernels) == 3
    assert "rescale" in [step.name for step in few.steps]
    assert len(auto(written("softmax", M=4096, N=4096)).plan.kernels) == 1
    assert len(auto(written("layernorm", M=9001, N=1111)).plan.kernels) == 1


def test_long_rows_are_split_and_rescaled() -> None:
    source = written("softmax", M=3, N=16384)
    made = stitch(source, {"peak->y": "global", "total->y": "global"})
    assert [step.name for step in made.steps].count("rescale") == 1
    assert len(made.plan.kernels) == 3
    first = made.plan.kernels[0].id
    read = [a for a in traffic(made.plan, first) if a.array == "x" and not a.writes]
    assert len(read) == 1  # the maximum and the sum of a part are of what registers hold
    assert read[0].requests * 32 * read[0].width_bytes == 2 * 3 * 16384
    odd = stitch(written("softmax", M=2, N=9001), {"peak->y": "global", "total->y": "global"})
    loss = stitch(written("cross_entropy", M=3, N=16384))
    assert len(loss.plan.kernels) == 2  # what hangs on the results is computed where the parts are joined
    run_all([made, odd, loss])


def test_rows_too_long_for_registers_lie_in_shared_memory() -> None:
    made = auto(written("softmax", M=200, N=112000))
    assert len(made.plan.kernels) == 1
    assert made.plan.buffer_of["x_s"].space == "shared"
    assert made.module().launches[0].dynamic_shared_bytes > 2 * 112000


def test_independent_nests_are_packed() -> None:
    made = stitch(written("two_outputs", M=6, N=32))
    assert len(made.plan.kernels) == 1
    run_all([made])
    packed = stitch(written("batchnorm_relu"), {"total->mean": "cut"})
    first = packed.plan.kernels[0].id
    assert {"S1", "S3"} <= {leaf.statement for leaf, _, k in packed.plan.leaves if k.id == first}


def test_bound_loops_are_refused() -> None:
    with pytest.raises(TransformError, match="already block"):
        stitch(written("softmax").bind("i", "block.x"))
    with pytest.raises(TransformError, match="not a str"):
        edges("softmax")  # type: ignore[arg-type]


@ex.program
def rows_and_columns(x: ex.f32[M, N], y: ex.f32[M], z: ex.f32[N], v: ex.f32[M, N]):
    for i in range(M):
        y[i] = 0.0
        for k in range(N):
            y[i] += x[i, k]
    for k in range(N):
        z[k] = 0.0
        for i in range(M):
            z[k] += x[i, k]
    for i in range(M):
        for k in range(N):
            v[i, k] = x[i, k] * z[k]


def test_rows_and_columns_are_not_joined_where_there_are_as_many() -> None:
    for choices in ({}, {"z->v": "cut"}, {"z->v": "global"}):
        square, wide = (stitching(rows_and_columns.schedule(M=24, N=n), choices) for n in (24, 40))
        assert square.groups == wide.groups
        assert square.chosen == wide.chosen
        fused = [[str(s) for s in found.schedule.steps if s.name == "fuse"] for found in (square, wide)]
        assert fused[0] == fused[1]
        assert len(square.schedule.plan.kernels) == len(wide.schedule.plan.kernels)
        run_all([square.schedule])


@ex.program
def scaled_twice(x: ex.f32[M, N], y: ex.f32[M], z: ex.f32[M, N]):
    r = ex.local(ex.f32, M)
    t = ex.local(ex.f32, M, N)
    for i in range(M):
        r[i] = 0.0
        for k in range(N):
            r[i] += x[i, k]
    for i in range(M):
        for k in range(N):
            t[i, k] = x[i, k] * r[i]
    for i in range(M):
        y[i] = 0.0
        for k in range(N):
            y[i] += t[i, k]
    for i in range(M):
        for k in range(N):
            z[i, k] = t[i, k] * r[i]


@pytest.mark.parametrize("scheme", ["cut", "grid", "shuffle", "shared"])
def test_an_edge_into_what_is_computed_again_keeps_its_scheme(scheme: str) -> None:
    found = stitching(scaled_twice.schedule(M=7, N=64), {"r->t": scheme, "t->y": "recompute"})
    plan = found.schedule.plan
    assert found.chosen["r->t"] == scheme
    assert found.chosen["t->z"] == "recompute"
    assert "t" not in {plan.statement_of[leaf.statement].target.array for leaf, _, _ in plan.leaves}
    launch = {k.id: n for n, phases in enumerate(plan.launched) for k in phases}
    at = {array: {(k.id, launch[k.id]) for leaf, _, k in plan.leaves if plan.statement_of[leaf.statement].target.array == array}
          for array in ("r", "y", "z")}
    if scheme in ("cut", "grid"):
        assert not at["r"] & (at["y"] | at["z"])
    if scheme == "cut":
        assert not {n for _, n in at["r"]} & {n for _, n in at["y"] | at["z"]}
    run_all([found.schedule])


def test_choices_that_meet_where_a_value_is_computed_again_have_to_agree() -> None:
    with pytest.raises(TransformError, match=r"r->\w cannot be \w+ while r->\w is \w+") as caught:
        stitch(scaled_twice.schedule(M=7, N=64), {"r->t": "cut", "r->z": "grid", "t->z": "recompute"})
    assert "t is computed again" in str(caught.value)


@pytest.mark.parametrize(("name", "sizes"), [
    ("attention_softmax", {"B": 32, "H": 12, "Q": 512, "K": 512}), ("attention_softmax", {"B": 1, "H": 2, "Q": 2, "K": 50000}),
    ("bias_residual_layernorm", {"M": 16384, "N": 768}), ("cross_entropy", {"M": 8, "N": 200000})])
def test_nothing_legal_is_cheaper_than_what_is_chosen(name: str, sizes: dict[str, int]) -> None:
    source = written(name, **sizes)
    least = min(o.total_us for e in edges(source) for o in e.options if o.verdict)
    assert stitching(source).total_us <= 1.05 * least  # a model of its own ranks; the price is what is shown


def test_rows_that_no_shared_memory_holds_are_refused() -> None:
    source = written("attention_softmax", B=1, H=1, Q=1, K=100000)
    with pytest.raises(TransformError) as caught:
        stitch(source, {"row->peak": "shared"})
    assert "row->peak cannot be 'shared'" in str(caught.value)
    assert "bytes of shared memory" in str(caught.value)
    assert "232,448" in str(caught.value)


def test_a_refusal_shows_the_edge_and_what_fits() -> None:
    with pytest.raises(IllegalSchedule) as caught:
        stitch(written("mirror", M=3, N=64), {"t->y": "register"})
    for shown in (error_html(caught.value), str(caught.value)):
        assert "t-&gt;y cannot be" in shown or "t->y cannot be" in shown
        assert "one of shared, global, grid, recompute, cut" in shown
    assert caught.value.edge == "t->y"
    assert caught.value.fits == ("shared", "global", "grid", "recompute", "cut")
    assert "edge t->y (S0 → S1, made at line" in caught.value.where
    with pytest.raises(TransformError) as other:
        stitch(written("softmax"), {"peak->total": "recompute"})
    assert "edge peak-&gt;total" in error_html(other.value)
    assert f"one of {', '.join(other.value.fits)}" in error_html(other.value)


def test_a_consumer_that_is_computed_again_has_options() -> None:
    found = {e.id: {o.scheme: o for o in e.options} for e in edges(written("two_branches", M=12, N=20))}
    assert found["t->u"]["recompute"].verdict
    assert found["t->u"]["cut"].verdict


@pytest.mark.parametrize(("name", "sizes"), [("softmax", {"M": 16384, "N": 1024}), ("layernorm", {"M": 16384, "N": 768}),
                                             ("layernorm_gradient", {"M": 20, "N": 96})])
def test_what_the_model_has_costs_what_it_says_and_nothing_else_costs_less(name: str, sizes: dict[str, int]) -> None:
    found = stitching(written(name, **sizes))
    for edge in edges(written(name, **sizes)):
        options = {o.scheme: o for o in edge.options if o.verdict}
        assert options[found.chosen[edge.id]].total_us == pytest.approx(found.total_us), edge.id
        assert min(o.total_us for o in options.values()) >= found.total_us - 1e-9, edge.id
        assert stitching(written(name, **sizes), {edge.id: found.chosen[edge.id]}).schedule.plan == found.schedule.plan, edge.id


def test_an_edge_of_a_program_without_edges_is_refused_with_what_to_do() -> None:
    with pytest.raises(TransformError, match="no value of the program is read by another") as caught:
        stitch(define(ROWS, "rows.py").schedule(M=8, N=64), {"a->b": "register"})
    assert "one of" not in str(caught.value)


@pytest.mark.parametrize("name", ["softmax", "cross_entropy"])
def test_short_rows_take_one_launch(name: str) -> None:
    """The model of rows alone took three launches for rows of 28 bytes, which are read by sectors of 32; the price does not."""
    s = written(name, M=5, N=7)
    assert len(stitch(s).plan.kernels) == len(auto(s).plan.kernels) == 1
    apart = stitching(s, {e.id: "cut" for e in stitching(s).edges if e.array == "peak"})
    assert apart.total_us > stitching(s).total_us
