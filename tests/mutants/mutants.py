"""The mutants: what each breaks in the product, and the correct or illegal schedule on which that must be noticed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from explorer.ir.finding import YES, Finding
from explorer.ir.plan import Plan
from explorer.ir.tree import Loop, Sync, walk
from explorer.schedule import Schedule

from . import gallery as g
from .patches import Patch, after, returning


@dataclass(frozen=True)
class Mutant:
    """A defect, and where it must show.

    Attributes
    ----------
    part : str
        The part of the product it is in.
    breaks : str
        In words.
    make : callable
        Makes the schedule while the defect is there.
    patches : tuple of Patch
    text : tuple of (str, str)
        What is replaced in the emitted text, for defects of code generation and of the device library.
    """

    part: str
    breaks: str
    make: Callable[[], Schedule]
    patches: tuple[Patch, ...] = ()
    text: tuple[tuple[str, str], ...] = ()


# -- defects of the questions ------------------------------------------------------------------------------------


def _without(kind: str) -> Patch:
    """The program's dependences without one kind."""
    return Patch("explorer.poly.plan_facts", "analyse",
                 after(lambda found, program: replace(found, ordered=tuple(d for d in found.ordered if d.kind != kind))))


def _blind(words: str) -> Patch:
    """Question *order* without the refusals whose reason has these words."""
    def seen(findings: tuple[Finding, ...], *_: Any) -> tuple[Finding, ...]:
        return tuple(f for f in findings if words not in f.why)

    return Patch("explorer.poly.judge", "check_order", after(seen))


def _by_name(_: Any) -> Callable[[Plan, str], str]:
    return lambda plan, buffer: buffer if any(c.name == buffer for c in plan.copies) else ""


NO_COVER = Patch("explorer.poly.judge", "check_cover", returning(()))
NO_ORDER = Patch("explorer.poly.judge", "check_order", returning(()))
NO_OBLIGATIONS = Patch("explorer.poly.judge", "check_obligations", returning(()))
NO_FLOW = Patch("explorer.poly.flow", "check_flow", returning(()))
NO_ASYNC = Patch("explorer.poly.asynchronous", "check_async", returning(()))
NO_RACES = (Patch("explorer.kernel.lower", "Context.without_races", lambda _: lambda builder, found: frozenset(found.before)),
            Patch("explorer.poly.barriers", "check_races", lambda _: lambda plan: ()))


# -- defects of transformations ----------------------------------------------------------------------------------


def _rewrite(kind: str, name: str, change: Callable[[Plan], Plan]) -> Patch:
    """The plan that a transformation makes, changed."""
    return Patch(f"explorer.transforms.{kind}", f"{name}.rewrite", after(lambda plan, *_: change(plan)))


def _shorter(plan: Plan) -> Plan:
    loop = plan.loops["i"]
    return plan.replace_node("i", replace(loop, extent=loop.extent - 1))


def _off_by_one(plan: Plan) -> Plan:
    return plan.map_leaves(lambda leaf: replace(leaf, at=tuple((d, e - 1) for d, e in leaf.at)))


def _late_waits(plan: Plan) -> Plan:
    for kernel in plan.kernels:
        for node in walk(kernel.body):
            if isinstance(node, Sync) and node.kind == "wait":
                plan = plan.replace_node(node.id, replace(node, pending=node.pending + 1))
    return plan


def _without_syncs(kind: str) -> Callable[[Plan], Plan]:
    def change(plan: Plan) -> Plan:
        for kernel in plan.kernels:
            for node in walk(kernel.body):
                if isinstance(node, Sync) and node.kind == kind:
                    plan = plan.replace_node(node.id)
        return plan

    return change


def _short_prologue(plan: Plan) -> Plan:
    early = plan.loops["k.pro"]
    return plan.replace_node(early.id, replace(early, extent=early.extent - 1))


def _small_buffers(plan: Plan) -> Plan:
    return replace(plan, buffers=tuple(replace(b, shape=(*b.shape[:-1], b.shape[-1] - 1)) for b in plan.buffers))


def _neighbour(plan: Plan) -> Plan:
    def moved(copy: Any) -> Any:
        access = copy.reads[0]
        return replace(copy, reads=(replace(access, index=(access.index[0] + 1, *access.index[1:])),), inside=())

    return replace(plan, copies=tuple(map(moved, plan.copies)))


def _uninitialised(plan: Plan) -> Plan:
    inits = [s for s in plan.program.statements if s.origin == "init"]
    for s in inits:
        for leaf, above, _ in plan.leaves:
            if leaf.statement == s.name:
                own = [x for x in above if [n for n in walk((x,)) if not isinstance(n, Loop)] == [leaf]]
                plan = plan.replace_node(own[0].id if own else leaf.id)
    return plan


SHORT_SPLIT = _rewrite("split", "Split", _shorter)
LATE_WAITS = _rewrite("pipeline", "Pipeline", _late_waits)
MIXING = Patch("explorer.transforms.collect", "_one_element", returning(YES))
SMALL = _rewrite("contract", "Contract", _small_buffers)


# -- defects of code generation ----------------------------------------------------------------------------------


def _guards(by: int) -> Patch:
    """Every condition too wide or too narrow by one."""
    return Patch("explorer.kernel.sites", "condition",
                 lambda original: lambda e, equality, ranges: original(e if equality else e + by, equality, ranges))


def _no_barrier(number: int) -> Patch:
    """The analysis of barriers forgets one of those it needs, counted over the kernel."""
    def fewer(found: Any, *_: Any) -> Any:
        order = sorted(found.before)
        return replace(found, before=frozenset(order[:number] + order[number + 1 :]))

    return Patch("explorer.poly.barriers", "barriers", after(fewer))


QUESTIONS = (
    Mutant("dependences", "flow dependences are skipped", g.scanned_backwards, (_without("flow"),)),
    Mutant("dependences", "antidependences are skipped", g.moved_backwards, (_without("anti"),)),
    Mutant("dependences", "output dependences are skipped", g.last_backwards, (_without("output"),)),
    Mutant("order", "the question is not asked", g.scanned_backwards, (NO_ORDER,)),
    Mutant("order", "threads at one time count as ordered", g.scanned_in_threads, (_blind("same time"),)),
    Mutant("order", "blocks of one launch count as ordered", g.chained_in_blocks, (_blind("different blocks"),)),
    Mutant("order", "threads at one time count as ordered, and races of barriers are not looked at", g.scanned_in_threads,
           (_blind("same time"), *NO_RACES)),
    Mutant("obligations", "open obligations are not seen", g.uncollected, (NO_OBLIGATIONS,)),
    Mutant("obligations", "open obligations are not seen, and races of barriers are not looked at", g.uncollected,
           (NO_OBLIGATIONS, *NO_RACES)),
    Mutant("obligations", "the question is not asked; threads that update different elements are combined", g.mixed,
           (NO_OBLIGATIONS, MIXING, NO_RACES[1])),
    Mutant("cover", "the question is not asked; split forgets the last part", g.split, (NO_COVER, SHORT_SPLIT)),
    Mutant("flow", "the question is not asked; one slot too few", lambda: g.pipelined(3, 2), (NO_FLOW,)),
    Mutant("flow", "the question is not asked; a buffer one cell too small", g.chained_in_threads, (NO_FLOW, SMALL)),
    Mutant("flow", "copies of what nobody wrote are let through, and not masked", g.copied_unwritten,
           (Patch("explorer.poly.flow", "check_overapproximated", returning(())),
            Patch("explorer.transforms.stage", "overapproximates", returning(False)))),
    Mutant("flow", "a copy is known by its name alone", g.cut_copies,
           (*(Patch(f"explorer.poly.{m}", "plan_copy", _by_name) for m in ("flow", "footprint", "plan_facts")),)),
    Mutant("joins", "the question is not asked: a block goes on with the parts of others", g.last_block_of_neighbours,
           (Patch("explorer.poly.joins", "check_joins", returning(())),)),
    Mutant("replicas", "the question is not asked: every block reads for itself what one of them writes", g.replicated,
           (Patch("explorer.poly.replicas", "check_replicas", returning(())),)),
    Mutant("asynchronous copies", "the question is not asked; a wait lets one group more go on", g.pipelined,
           (NO_ASYNC, LATE_WAITS)),
    Mutant("asynchronous copies", "the question is not asked; no wait at all", g.pipelined,
           (NO_ASYNC, _rewrite("pipeline", "Pipeline", _without_syncs("wait")))),
    Mutant("bulk copies", "the question of landing is not asked; a wait lets one group more go on", g.boxes,
           (NO_ASYNC, LATE_WAITS)),
    Mutant("bulk copies", "the question whose group a wait is for is not asked; of two arrays one is waited for", g.half_ahead,
           (Patch("explorer.poly.expressible", "miscounts", returning(())),)),
    Mutant("bulk copies", "no barrier stands between a wait and the phase after next", lambda: g.boxes(3, 6),
           (Patch("explorer.poly.barriers", "reuses", returning(())),)),
    Mutant("bulk copies", "a box need not lie in one piece", g.padded_boxes,
           (Patch("explorer.poly.bulk", "_place", returning(None)),)),
    Mutant("bulk copies", "a box is copied wherever it stands", g.boxes,
           (Patch("explorer.poly.bulk", "_uniform", returning(())),)),
)
TRANSFORMATIONS = (
    Mutant("split", "the last part is forgotten", g.split, (SHORT_SPLIT,)),
    Mutant("reverse", "one iteration off", g.reversed_points, (_rewrite("reverse", "Reverse", _off_by_one),)),
    Mutant("pipeline", "one slot too few", lambda: g.pipelined(3, 2)),
    Mutant("pipeline", "a wait lets one group more go on", g.pipelined, (LATE_WAITS,)),
    Mutant("pipeline", "no wait", g.pipelined, (_rewrite("pipeline", "Pipeline", _without_syncs("wait")),)),
    Mutant("pipeline", "no commit", g.pipelined, (_rewrite("pipeline", "Pipeline", _without_syncs("commit")),)),
    Mutant("pipeline", "the prologue fills one slot too few", g.pipelined, (_rewrite("pipeline", "Pipeline", _short_prologue),)),
    Mutant("contract", "a buffer one cell too small", g.chained_in_threads, (SMALL,)),
    Mutant("stage", "the neighbouring row is copied", g.staged, (_rewrite("stage", "Stage", _neighbour),)),
    Mutant("collect", "threads that update different elements are combined", g.mixed, (MIXING,)),
    Mutant("rfactor", "partial results are not started", g.rfactored, (_rewrite("rfactor", "Rfactor", _uninitialised),)),
)
CODE = (
    Mutant("barriers", "the first of a staged tile is dropped", g.staged, (_no_barrier(0),)),
    Mutant("barriers", "the second of a staged tile is dropped", g.staged, (_no_barrier(1),)),
    Mutant("barriers", "the first of a swizzled tile is dropped", g.swizzled, (_no_barrier(0),)),
    Mutant("barriers", "the second of a swizzled tile is dropped", g.swizzled, (_no_barrier(1),)),
    Mutant("barriers", "the one of a pipeline is dropped", g.pipelined, (_no_barrier(0),)),
    Mutant("barriers", "the one of a pipeline of bulk copies is dropped", g.boxes, (_no_barrier(0),)),
    Mutant("barriers", "the one between two loops is dropped", g.chained_in_threads, (_no_barrier(0),)),
    Mutant("barriers", "__syncwarp for __syncthreads", g.chained_in_threads, text=(("__syncthreads();\n", "__syncwarp();\n"),)),
    Mutant("barriers", "half of the threads meet", g.chained_in_threads,
           text=(("  __syncthreads();\n", "  if (threadIdx.x < 16) __syncthreads();\n"),)),
    Mutant("guards", "one element too many", g.split, (_guards(1),)),
    Mutant("guards", "one element too few", g.split, (_guards(-1),)),
    Mutant("batched loads", "one element too many", g.loaded_early, text=(("4 * k + k_i < 7 ?", "4 * k + k_i < 8 ?"),)),
    Mutant("batched loads", "beyond the end an element is a number", g.loaded_early, text=((": -INFINITY;", ": 1000.0f;"),)),
    Mutant("batched loads", "beyond the end zero is thought to change nothing", g.loaded_early_where_it_is,
           (Patch("explorer.kernel.passes.batch_loads", "masked_load_value", returning(0)),)),
    Mutant("batched loads", "beyond the end the values are used", g.loaded_early_where_it_is,
           text=(("if (4 * k + k_i < 7)\n        total", "if (4 * k + k_i < 8)\n        total"),)),
    Mutant("batched loads", "lanes before the row are used", g.aligned,
           text=(("if ((3 * i) % 4 <= 8 * k + 4 * u + v && ", "if ("),)),
    Mutant("batched loads", "lanes behind the row are used", g.aligned,
           text=((" && 8 * k + 4 * u + v <= (3 * i) % 4 + 18)", ")"),)),
    Mutant("batched loads", "a row is thought to end one element late", g.aligned_sums,
           text=(("x + 19 * i + 19,", "x + 19 * i + 20,"),)),
    Mutant("batched loads", "a row is thought to begin one element early", g.aligned_sums,
           text=((", x + 19 * i,", ", x + 19 * i - 1,"),)),
    Mutant("batched loads", "a row is thought to end one element early", g.aligned_sums,
           text=(("x + 19 * i + 19,", "x + 19 * i + 18,"),)),
    Mutant("device library", "a partial vector is loaded whole", g.aligned_sums,
           text=(("    if (first + N <= end) return *", "    return *"),)),
    Mutant("device library", "what is not between two places is kept", g.aligned_sums,
           text=(("if (begin <= first && first + N <= end) return;", "if (begin <= first || first + N <= end) return;"),)),
    Mutant("loops", "one iteration too few", g.scanned, text=(("j < 5", "j < 4"),)),
    Mutant("asynchronous copies", "a wait is not written", g.pipelined, text=(("async_wait<1>();", ""),)),
    Mutant("asynchronous copies", "a wait lets one group more go on", g.pipelined,
           text=(("async_wait<1>();", "async_wait<2>();"),)),
    Mutant("asynchronous copies", "a commit is not written", g.pipelined, text=(("async_commit();  // k.pro.commit", ""),)),
    Mutant("asynchronous copies", "beyond the edge the source is read", g.pipelined,
           (Patch("explorer.kernel.lower", "inside_conditions", returning(())),)),
    Mutant("asynchronous copies", "beyond the edge nothing is written", g.pipelined,
           text=(("async_copy<4>(&b_s[(k + 2)", "if (k + i_i < 1) async_copy<4>(&b_s[(k + 2)"),)),
    Mutant("bulk copies", "a wait is not written", g.boxes, text=(("mbarrier_wait(arrived[k % 3], k / 3);", ""),)),
    Mutant("bulk copies", "a wait is for the phase before", g.boxes,
           text=(("mbarrier_wait(arrived[k % 3], k / 3)", "mbarrier_wait(arrived[k % 3], 1 - k / 3)"),)),
    Mutant("bulk copies", "a wait is for the next group", g.boxes,
           text=(("mbarrier_wait(arrived[k % 3], k / 3)", "mbarrier_wait(arrived[(k + 1) % 3], (k + 1) / 3)"),)),
    Mutant("bulk copies", "an arrival is not written", g.boxes, text=(("mbarrier_arrive(arrived[k_pro]);", ""),)),
    Mutant("bulk copies", "half of the bytes are expected", g.boxes,
           text=(("(counted, BX * BY * (int)sizeof(T));", "(counted, BX * BY * (int)sizeof(T) / 2);"),)),
    Mutant("bulk copies", "a coordinate is off by one", g.boxes, text=(("a_map, 8 * k_pro, 0,", "a_map, 8 * k_pro + 1, 0,"),)),
    Mutant("bulk copies", "coordinates trade places", g.boxes,
           text=(("b_map, 16 * j, 8 * k_pro,", "b_map, 8 * k_pro, 16 * j,"),)),
    Mutant("bulk copies", "a box goes to the next slot", g.boxes, text=(("&b_s[k_pro][0][0]", "&b_s[k_pro + 1][0][0]"),)),
    Mutant("bulk copies", "two threads make the mbarriers ready", g.boxes,
           text=(("if (j_i == 0 && i_i == 0)\n    mbarrier_begin", "if (j_i < 2 && i_i == 0)\n    mbarrier_begin"),)),
    Mutant("staged copies", "ones instead of zeros beyond the edge", g.staged, text=((": 0.0f;", ": 1.0f;"),)),
    Mutant("shared layouts", "one access forgets that units change places", g.swizzled,
           text=(("a_s[swizzled<64, float>(i_i * 16 + k_i)]", "a_s[i_i * 16 + k_i]"),)),
    Mutant("shared layouts", "a panel has half of its rows", g.swizzled, text=(("+ 128 * (j_i / 8)", "+ 64 * (j_i / 8)"),)),
    Mutant("device library", "units of 8 bytes change places", g.swizzled,
           text=(("unit = 16 / sizeof(T)", "unit = 8 / sizeof(T)"),)),
    Mutant("launches", "the kernels run in another order", g.atomics,
           (Patch("explorer.kernel.assemble", "_launches", after(lambda found, *_: reversed(list(found)))),)),
    Mutant("vectors", "the lanes are swapped", g.vectors, text=(("t_i_i.at[i_i]", "t_i_i.at[1 - i_i]"),)),
    Mutant("vectors", "alignment is not looked at", g.misaligned,
           (Patch("explorer.transforms.vectorize", "_strides", returning(YES)),
            Patch("explorer.kernel.lanes", "gcd", returning(4)))),
    Mutant("collectives", "every thread updates memory", g.atomics,
           (Patch("explorer.kernel.printer", "writers_of", returning(())),)),
    Mutant("collectives", "a plain update for an atomic one", g.atomics, text=(("atomic_add(&y[0], y_sum)", "y[0] += y_sum"),)),
    Mutant("collectives", "the identity of max is 0", g.warps, text=(("float peak_p = -INFINITY", "float peak_p = 0.0f"),)),
    Mutant("device library", "shuffles over half of the lanes", g.warps,
           text=(("int lanes = WIDTH / 2;", "int lanes = WIDTH / 4;"),)),
    Mutant("device library", "shuffles within groups of 16 lanes", g.warps,
           text=(("warp_reduce<reduce_max, 32>", "warp_reduce<reduce_max, 16>"),)),
    Mutant("device library", "no barrier in a reduction's tree", g.blocks,
           text=(("        }\n        __syncthreads();\n", "        }\n"),)),
    Mutant("device library", "nothing but zeros is copied", g.pipelined,
           text=(("simt_async_copy(shared, global, BYTES, 0, valid_bytes)", "simt_async_copy(shared, global, BYTES, 0, 0)"),)),
    Mutant("last block", "the block does not wait for its own threads", g.in_last_block,
           text=(("    __syncthreads();  // the whole block has done its work\n", ""),)),
    Mutant("last block", "no fence releases the block's work", g.in_last_block,
           text=(("        __threadfence();  // releases it to the other blocks\n", ""),)),
    Mutant("last block", "no fence acquires the others' work", g.in_last_block,
           text=(("        __threadfence();  // acquires theirs\n", ""),)),
    Mutant("last block", "the counter is not reset", g.in_last_block,
           text=(("atomicInc(finished, parts - 1)", "atomicAdd(finished, 1u)"),)),
    Mutant("last block", "one block too few is waited for", g.in_last_block, text=(("[blockIdx.x], 7)", "[blockIdx.x], 6)"),)),
    Mutant("last block", "one counter for all tiles", g.in_last_block, text=(("finished[blockIdx.x]", "finished[0]"),)),
    Mutant("last block", "the threads do not hear who came last", g.in_last_block,
           text=(("return __syncthreads_or(last);", "return last;"),)),
    Mutant("last block", "every block goes on", g.in_last_block, text=(("bool last = false;", "bool last = true;"),)),
    Mutant("last block", "a block that did not come last along an axis goes on", g.in_last_block,
           (Patch("explorer.ir.plan", "Plan.joined_axes", returning(())),)),
    Mutant("barrier of the grid", "it is not written", g.barred, text=(("  grid_barrier(columns_2_barrier);", "  "),)),
    Mutant("barrier of the grid", "a barrier of the block instead", g.barred,
           text=(("  grid_barrier(columns_2_barrier);", "  __syncthreads();"),)),
    Mutant("barrier of the grid", "the launch is not cooperative", g.barred,
           (Patch("explorer.kernel.assemble", "_launches",
                  after(lambda found, *_: [replace(x, cooperative=False) for x in found])),)),
    Mutant("operations", "min for max", g.warps, text=(("max_nan(peak, peak_max)", "fminf(peak, peak_max)"),)),
)
MUTANTS = (*QUESTIONS, *TRANSFORMATIONS, *CODE)
