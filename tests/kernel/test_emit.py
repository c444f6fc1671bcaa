"""The text as a whole: goldens, source map, guards and barriers in their places, storage, launches."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from explorer import workloads
from explorer.errors import ResourceError
from explorer.ir.expr import const, var
from explorer.ir.plan import Plan, initial
from explorer.ir.program import Constraint
from explorer.ir.tree import Leaf, Loop, Sync, walk
from explorer.kernel.emit import emit
from explorer.kernel.resources import resources
from explorer.poly.expressible import check_expressible
from tests.kernel.plan_run import follow
from tests.kernel.schedules import elements, gemm, rows, warps
from tests.transforms import programs, storage


@dataclass(frozen=True)
class Fixed:
    """Barriers at given places."""

    before: frozenset = frozenset()
    races: tuple = ()


def plan_of(workload: str, steps: list, **sizes: int) -> Plan:
    w = workloads.get(workload)
    return follow(w.definition.at(**{**w.tiny, **sizes}), steps)


def kernels_only(text: str) -> str:
    """The text without the device library."""
    return text[text.index('extern "C"'):]


GOLDENS: dict[str, Callable[[], Plan]] = {
    "matmul_as_written": lambda: plan_of("matmul", []),
    "matmul_pipelined": lambda: plan_of(
        "matmul", [*gemm((64, 64, 16), (4, 4), width=4), ("pipeline", "k", 2)], M=1000, N=1000, K=1000),
    "softmax_block_per_row": lambda: plan_of(
        "softmax", rows({"peak": "k", "total": "k_2"}, ("k_3",), threads=256), M=4096, N=1000),
    "max_warp_per_row": lambda: plan_of("max_rows", warps("peak"), M=1001, N=768),
    "adam_vectors": lambda: plan_of("adam", elements("i", 4, 256), N=100000),
    "conv2d_staged": lambda: plan_of("conv2d", [
        ("tile", ("h", "w"), (8, 8)), ("bind", "k", "block.y"), ("bind", "h", "block.x"), ("bind", "n", "block.z"),
        ("bind", "h.i", "thread.y"), ("bind", "w.i", "thread.x"), ("contract", "total"), ("stage", "x", "c"),
        ("stage", "f", "c")], H=56, W=50),
    "jacobi_launches": lambda: plan_of("jacobi2d", [("bind", "t", "launch")]),
}


@pytest.mark.parametrize("name", GOLDENS)
def test_text(name: str, golden: Callable[..., None]) -> None:
    golden(kernels_only(emit(GOLDENS[name]()).text))


@pytest.mark.parametrize("name", GOLDENS)
def test_every_node_has_lines_and_a_comment(name: str) -> None:
    plan = GOLDENS[name]()
    module = emit(plan)
    lines = module.text.splitlines()
    comments = " ".join(re.findall(r"// (.*)", module.text))
    for kernel in plan.kernels:
        assert kernel.id in module.source_map
        for node in walk(kernel.body):
            spans = module.source_map[node.id]
            assert all(1 <= first <= last <= len(lines) for first, last in spans)
            assert list(spans) == sorted(spans)
            words = re.findall(r"[\w.]+", comments)
            assert node.id in words or node.role == "launch" if isinstance(node, Loop) else node.id in words
            if isinstance(node, Leaf):
                assert any(f"// {node.id}" in lines[n - 1] for first, last in spans for n in range(first, last + 1))


@pytest.mark.parametrize("name", GOLDENS)
def test_emitting_changes_nothing_and_is_repeatable(name: str) -> None:
    plan = GOLDENS[name]()
    assert emit(plan) == emit(plan)


def test_a_leaf_of_the_innermost_line_is_found() -> None:
    module = emit(plan_of("matmul", []))
    line = next(n for n, text in enumerate(module.text.splitlines(), 1) if "// S1" in text)
    assert module.nodes_at(line)[:3] == ("S1", "k", "j")


# -- guards and barriers ----------------------------------------------------------------------------------------------


def test_a_thread_guard_stays_below_a_barrier() -> None:
    plan = follow(programs.row_sum(10, 7), [("split", "i", 4), ("bind", "i", "block.x"), ("bind", "i.i", "thread.x")])
    free = emit(plan, barriers=lambda p, k: Fixed()).text
    assert free.index("4 * i + i_i < 10") < free.index("for (int k")
    held = emit(plan, barriers=lambda p, k: Fixed(frozenset({("k", 0)}))).text
    assert held.index("for (int k") < held.index("__syncthreads") < held.index("total[4 * i + i_i] += ")
    body = held[held.index("for (int k"):]
    assert body.index("__syncthreads") < body.index("4 * i + i_i < 10")


def test_a_barrier_keeps_the_whole_box_unless_the_loop_surely_runs() -> None:
    """k <= i with i a block: with a barrier inside, the bound is only taken because k = 0 always runs."""
    plan = follow(programs.triangle_sum(6), [("bind", "i", "block.x")])
    inside = Fixed(frozenset({("k", 0)}))
    assert "k <= i" in emit(plan, barriers=lambda p, k: inside).text
    shifted = follow(programs.triangle_sum(6), [("bind", "i", "block.x")])
    s1 = shifted.statement_of["S1"]
    strict = replace(s1, domain=(*s1.domain, *(replace(c, expr=c.expr - 1) for c in s1.domain[-1:])))
    program = replace(shifted.program, statements=tuple(strict if s is s1 else s for s in shifted.program.statements))
    empty = replace(shifted, program=program)
    assert "k < i" in emit(empty, barriers=lambda p, k: Fixed()).text
    text = emit(empty, barriers=lambda p, k: inside).text
    assert "k < 6" in text
    assert "if (k < i)" in text


def test_a_grid_stride_loop_with_barriers_gets_its_bound() -> None:
    """Everything the kernel does is in the loop, so whole iterations may be left out."""
    steps = [("bind", "i", "block.x", {"count": 3}), *rows({"total": "k"}, threads=64)[1:]]
    text = emit(plan_of("sum_rows", steps, M=7, N=70)).text
    assert "i <= (6 - i_b) / 3" in text
    assert "block_reduce" in text


def test_a_guard_moves_over_no_commit_of_its_loop() -> None:
    plan = plan_of("matmul", [*gemm(width=4), ("pipeline", "k", 2)], M=16, N=16, K=16)
    lines = emit(plan).text.splitlines()
    commit = next(n for n, line in enumerate(lines) if "async_commit();  // k.commit" in line)
    wait = next(n for n, line in enumerate(lines) if "async_wait<0>();  // k.wait" in line)
    depth = [len(line) - len(line.lstrip()) for line in lines]
    assert depth[commit] == depth[wait] == depth[next(n for n, line in enumerate(lines) if "for (int k = 0" in line)] + 2


def test_loops_that_index_registers_keep_constant_bounds() -> None:
    text = emit(plan_of("matmul", gemm(), M=13, N=11, K=7)).text
    for name in ("i_i_i_3", "j_i_i_3"):
        line = next(line for line in text.splitlines() if f"for (int {name} " in line)
        assert f"{name} < 2;" in line
        assert text[: text.index(line)].rstrip().endswith("#pragma unroll")


def test_narrow_place_loops_are_guarded() -> None:
    p = programs.chain(3, 5)
    loops = [n.id for n in p.body if isinstance(n, Loop)]
    plan = follow(p, [("bind", loop, "thread.x") for loop in loops])
    extents = sorted({plan.loops[x].extent for x in loops})
    idle = Loop("idle", extents[-1] + 4, (), "thread.x")
    wide = replace(plan, kernels=(replace(plan.kernels[0], body=(*plan.kernels[0].body, idle)),))
    text = emit(wide, barriers=lambda p, k: Fixed()).text
    assert f"tx < {extents[-1]}" in text


def test_unbound_places_run_once() -> None:
    """The total of a row is in global memory: one thread initialises and writes it."""
    plan = follow(programs.row_sum(4, 11), [("bind", "i", "block.x"), ("bind", "k", "thread.x"), ("collect", "S1", "shuffle")])
    text = emit(plan).text
    assert len(re.findall(r"if \(k == 0\)\s+\S+\[i\] = ", text)) == 2


# -- storage and launches ---------------------------------------------------------------------------------------------


def test_more_than_48_kib_of_shared_memory_is_dynamic() -> None:
    plan = plan_of("matmul", gemm((128, 128, 64), (8, 8)), M=256, N=256, K=256)
    module = emit(plan)
    launch = module.launches[0]
    assert launch.static_shared_bytes == 0
    assert launch.dynamic_shared_bytes == 2 * 128 * 64 * 4
    assert "extern __shared__ __align__(16) unsigned char shared_memory[];" in module.text
    assert "float (&b_s)[64][128] = *reinterpret_cast<float (*)[64][128]>(shared_memory + 32768);" in module.text
    small = emit(plan_of("matmul", gemm((64, 64, 16), (4, 4)), M=256, N=256, K=256)).launches[0]
    assert (small.static_shared_bytes, small.dynamic_shared_bytes) == (2 * 64 * 16 * 4, 0)


def test_buffers_are_the_parameters_and_then_workspaces() -> None:
    module = emit(plan_of("softmax", []))
    kinds = {b.name: b.kind for b in module.buffers}
    assert list(kinds.items()) == [("x", "in"), ("y", "out"), ("peak", "workspace"), ("total", "workspace")]
    assert module.launches[0].arguments == ("x", "y", "peak", "total")
    assert "const __half* __restrict__ x" in module.text
    assert "const float* __restrict__ peak" not in module.text
    contracted = emit(plan_of("softmax", [("contract", "peak"), ("contract", "total")]))
    assert [b.name for b in contracted.buffers] == ["x", "y"]


def test_a_kernel_that_does_nothing_is_not_launched() -> None:
    p = programs.copy(5)
    never = Constraint(const(-1))
    empty = replace(p, statements=tuple(replace(s, domain=(*s.domain, never)) for s in p.statements))
    module = emit(initial(empty))
    assert module.launches == ()
    assert "__global__" not in module.text
    zero = replace(p, body=(replace(p.body[0], extent=0),))  # type: ignore[type-var]
    assert emit(initial(zero)).launches == ()


def test_one_launch_for_each_iteration_of_the_host() -> None:
    module = emit(GOLDENS["jacobi_launches"]())
    assert [x.scalars for x in module.launches] == [(t,) for t in range(len(module.launches))]
    assert len(module.launches) > 1
    assert "const int t)" in module.text


def test_launch_bounds() -> None:
    plan = plan_of("matmul", gemm())
    assert "__launch_bounds__(16) matmul(" in emit(plan).text
    assert "__launch_bounds__(16, 4) matmul(" in emit(plan, min_blocks=4).text


def test_names_are_the_users_and_never_clash() -> None:
    p = programs.copy(8)
    renamed = replace(
        p, name="exp", arrays=tuple(replace(a, name={"x": "int", "y": "i"}[a.name]) for a in p.arrays),
        statements=tuple(replace(s, target=replace(s.target, array="i"), reads=tuple(replace(r, array="int") for r in s.reads))
                         for s in p.statements))
    text = emit(initial(renamed)).text
    assert "exp_kernel(const float* __restrict__ int_, float* __restrict__ i)" in text
    assert "i[i_2] = int_[i_2];  // S0" in text


def test_no_asynchronous_copies_before_sm_80() -> None:
    plan = plan_of("matmul", [*gemm(width=4), ("pipeline", "k", 2)], M=16, N=16, K=16)
    assert "async_copy<16>" in emit(plan, arch="sm_80").text
    assert "async_" not in emit(plan, arch="sm_75").text


def test_infinity_needs_no_header() -> None:
    assert "#define INFINITY __int_as_float(0x7f800000)" in emit(plan_of("max_rows", [])).text
    assert "INFINITY" not in emit(plan_of("matmul", [])).text


def test_resources_are_those_of_the_text() -> None:
    plan = plan_of("matmul", gemm((64, 64, 16), (4, 4)), M=256, N=256, K=256)
    facts = resources(plan, plan.kernels[0])
    launch = emit(plan).launches[0]
    assert (facts.block, facts.grid, facts.shared_bytes) == (launch.block, launch.grid, launch.static_shared_bytes)
    assert facts.register_words == 16
    assert facts.threads_per_block == 256


def test_waits_and_commits_are_in_the_source_map() -> None:
    plan = plan_of("matmul", [*gemm(width=4), ("pipeline", "k", 2)], M=16, N=16, K=16)
    module = emit(plan)
    for node in walk(plan.kernels[0].body):
        if isinstance(node, Sync):
            assert node.id in module.source_map


def test_an_index_beyond_two_billion_elements_is_64_bits_wide() -> None:
    text = emit(plan_of("sum_rows", [], M=70000, N=40000)).text
    assert "i * 40000LL + k" in text


def test_place_loops_may_start_above_zero() -> None:
    p = programs.copy(8)
    loop = p.body[0]
    assert isinstance(loop, Loop)
    low, high = replace(loop, role="thread.x", extent=3), replace(loop, id="late", role="thread.x", start=3, extent=5)
    leaf = loop.body[0]
    assert isinstance(leaf, Leaf)
    second = replace(leaf, id="S0.late", at=(("i", var("late")),), when=(("late", var("i")),))
    plan = initial(p)
    plan = replace(plan, kernels=(replace(plan.kernels[0], body=(low, replace(high, body=(second,)))),))
    text = emit(plan, barriers=lambda p, k: Fixed()).text
    assert re.search(r"if \(tx < 3\)\s+y\[tx\] = x\[tx\];  // S0\n", text)
    assert re.search(r"if \(tx >= 3\)\s+y\[tx\] = x\[tx\];  // S0.late", text)


def test_warps_alone_are_combined_in_flat_blocks_only() -> None:
    steps = [("bind", "k", "warp"), ("bind", "i", "thread.y"), ("collect", "S1", "shuffle")]
    (finding,) = check_expressible(follow(programs.row_sum(4, 3), steps))
    assert "blocks with one dimension" in finding.why


def test_what_a_thread_cannot_keep_is_no_kernel() -> None:
    plan = storage.rewritten(programs.matmul(), ("contract", "acc"))
    large = replace(plan, buffers=tuple(replace(b, shape=(330, 660)) for b in plan.buffers))
    with pytest.raises(ResourceError, match="871,200 bytes in each thread"):
        emit(large)
