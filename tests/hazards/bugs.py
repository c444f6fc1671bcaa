"""Bugs in pipelines that users of other compilers reported, each as a schedule here: refused, or made by an edit of its IR.

Where one of the moves would make it, the move is refused with the least pair of instances.  Where none ever makes it, the IR of a
right schedule is edited as the other compiler's pass had, and the judge of the IR and the CPU device have to notice, each by
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from explorer.errors import IllegalSchedule
from explorer.ir.expr import const, quotient, remainder, var
from explorer.ir.finding import Finding
from explorer.kernel.conditions import Condition
from explorer.kernel.launches import PlanIR, plan_ir, standing
from explorer.kernel.nodes import Arrive, Await, Do, If, Wait, WaitProducts
from explorer.kernel.validate import judged
from explorer.schedule import Schedule
from explorer.schedule.step import Step
from explorer.transforms.overlap import Overlap
from explorer.transforms.pipeline import Pipeline
from explorer.transforms.shift import Shift
from tests.kernel.bulk_schedules import several_tiles, tiled_product
from tests.mutants.ir import Body, Rule, ir_mutants, no_barrier, with_nodes
from tests.mutants.ir_pipelines import no_arrival, no_fence, warpgroup
from tests.mutants.ir_products import PRODUCTS
from tests.transforms.test_overlap import tiled

from .corpus import SIZES, TWICE, rows, tiles

WAR = """@ex.program
def f(first: ex.f32[M], x: ex.f32[K, M], y: ex.f32[M]):
    s = ex.local(ex.f32, M)
    for i in range(M):
        s[i] = first[i]
        y[i] = 0.0
    for k in range(K):
        for i in range(M):
            y[i] += s[M - 1 - i]
        for i in range(M):
            s[i] = x[k, i]
"""
THROUGH_AN_ATOMIC = """@ex.program
def f(u: ex.i32[K + 1, M], x: ex.i32[K, M, 4], y: ex.i32[K, M]):
    for k in range(K):
        for i in range(M):
            y[k, i] = u[k, M - 1 - i]
        for i in range(M):
            for j in range(4):
                u[k + 1, i] += x[k, i, j]
"""


@dataclass(frozen=True)
class Bug:
    """A bug, and what it is here.

    Attributes
    ----------
    name : str
        The report.
    link : str
    mechanism : str
        In words.
    says : str
        What the refusal, or the judge's finding, says: a regular expression.
    mend : callable
        The schedule as it should be, with a trip count or with its own.
    before : callable or None
        The same of the schedule on which a move is refused, and `step` that move.
    step : Step or None
    edit : rule or None
        What the other compiler's pass does to the IR of `mend`; of several places the one with this `number`.
    number : int
    mended : str
        In words.
    legal : str
        For which sizes it is said to be legal: a regular expression.
    least : dict of str to int
        The least sizes that fail, and the iteration.
    pair : (str, str)
        Regular expressions for the two that do not fit.
    faults : tuple of str
        What the CPU device may say: kinds of faults, or "a wrong result".
    """

    name: str
    link: str
    mechanism: str
    says: str
    mended: str
    mend: Callable[..., Schedule]
    before: Callable[..., Schedule] | None = None
    step: Step | None = None
    edit: Rule | None = None
    number: int = 0
    legal: str = ""
    least: Mapping[str, int] = field(default_factory=dict[str, int])
    pair: tuple[str, str] = ("", "")
    faults: tuple[str, ...] = ()

    def refusal(self) -> Finding:
        """What the move is refused with, or the first thing that the judge finds in the edited IR."""
        found = self.refused()
        assert found is not None
        return found

    def refused(self, *trips: int) -> Finding | None:
        """The same with a trip count, if it is refused with that."""
        if self.step is None:
            return next((found for launch in self.wrong(*trips).launches for found in judged(launch)), None)
        assert self.before is not None
        try:
            self.before(*trips).apply(self.step)
        except IllegalSchedule as refusal:
            return refusal.finding
        return None

    def wrong(self, *trips: int) -> PlanIR:
        """The IR with the bug, of the refused move or of the edit."""
        if self.step is not None and self.before is not None:
            return plan_ir(self.step.rewrite(self.before(*trips).plan), barriers=standing)
        assert self.edit is not None
        return ir_mutants(plan_ir(self.mend(*trips).plan), {self.name: self.edit})[self.number].ir


def _awaits(body: Body) -> Iterator[tuple[int, Await]]:
    return ((n, node) for n, node in enumerate(body) if isinstance(node, Await))


def forgets_tiles(body: Body) -> Iterator[Body]:
    """The wait counts from the beginning of its own loop, whatever the loops around it have counted."""
    for n, node in _awaits(body):
        own = {"i": const(0), "j": const(0)}
        yield with_nodes(body, n, replace(node, parity=node.parity.substitute(own, {"k": (0, 9)})))


def parity_of_a_ring(body: Body) -> Iterator[Body]:
    """The parity is that of a ring of three mbarriers, and there are two."""
    for n, node in _awaits(body):
        k = var("k")
        yield with_nodes(body, n, replace(node, parity=remainder(quotient(k, 3, {"k": (0, 9)}), 2, {"k": (0, 9)})))


def parity_of_the_iteration(body: Body) -> Iterator[Body]:
    """The parity is that of the iteration, as for a single mbarrier, and the mbarriers take turns."""
    for n, node in _awaits(body):
        yield with_nodes(body, n, replace(node, parity=remainder(var("k"), 2, {"k": (0, 9)})))


def waits_for_the_last_copies(body: Body) -> Iterator[Body]:
    """A wait is for the group that is closed behind it."""
    for n, node in _awaits(body):
        ahead = {"k": var("k") + 2}
        yield with_nodes(body, n, replace(node, slot=node.slot.substitute(ahead, {"k": (0, 9)}),
                                     parity=node.parity.substitute(ahead, {"k": (0, 9)})))


def nobody_arrives(body: Body) -> Iterator[Body]:
    """The thread that should arrive is in no block: the signal is another role's."""
    for n, node in enumerate(body):
        if isinstance(node, Arrive):
            yield with_nodes(body, n, If((Condition(var("j_i") - 1),), (node,)))


def reads_before_it_waits(body: Body) -> Iterator[Body]:
    """The first statement that reads stands before the wait, which another array's reader has behind it."""
    wait = next((n for n, node in enumerate(body) if isinstance(node, Wait)), None)
    reader = next((n for n, node in enumerate(body) if isinstance(node, Do)), None)
    if wait is not None and reader is not None:
        yield (*body[:wait], body[reader], *body[wait:reader], *body[reader + 1 :])


def no_wait_for_products(body: Body) -> Iterator[Body]:
    """Threads meet, and the next copy follows, while products read."""
    for n, node in enumerate(body):
        if isinstance(node, WaitProducts) and node.pending:
            yield with_nodes(body, n)


def arrives_twice(body: Body) -> Iterator[Body]:
    """An arrival once more, before anybody has waited."""
    for n, node in enumerate(body):
        if isinstance(node, Arrive):
            yield with_nodes(body, n, node, node)


def one_group_more(body: Body) -> Iterator[Body]:
    """A wait counts iterations, and each closes two groups."""
    for n, node in enumerate(body):
        if isinstance(node, Wait):
            yield with_nodes(body, n, replace(node, pending=node.pending + 1))


def shared(*copied: str, trips: int = SIZES["K"]) -> Schedule:
    """A block's threads run along the rows; a temporary is in shared memory."""
    return rows(WAR, *copied, K=trips).contract("s", "shared")


def through_an_atomic(trips: int = 5) -> Schedule:
    """Each iteration reads rows that the one before has added to."""
    return rows(THROUGH_AN_ATOMIC, "u", M=6, K=trips)


def twice(trips: int = SIZES["K"]) -> Schedule:
    """Two statements read what is copied."""
    return rows(TWICE, "x", K=trips).pipeline("k", 3)


def steps(stages: int, trips: int = 5) -> Schedule:
    """A product with a tile of both factors for each step."""
    return tiled_product(stages, 16 * trips - 8 if trips > 1 else 16)


def factors(stages: int, trips: int = 4, rows: int = 64) -> Schedule:
    """A product of warpgroups, a tile of both factors for each step."""
    return tiled(stages, rows, M=rows, N=64, K=64 * trips)


def small_tiles(*, trips: int = 0, slots: int = 0) -> Schedule:
    """A product of threads whose copies run ahead."""
    return tiles(**({"K": 4 * trips} if trips else {})).pipeline("k", 2, buffers=slots, asynchronous=False)


NEVER = "never legal: it fails for every K >= 1"
TILELANG = "https://github.com/tile-ai/tilelang"
BUGS = (
    Bug("TileLang #2668", f"{TILELANG}/issues/2668",
        "A loop reads a shared array and then overwrites it for its next iteration; the pipeline makes the overwriting copy run "
        "ahead of the read.",
        r"S2\[0, 0\] reads s\[6\], which S3\[0, 6\] overwrites", "the copy gets an array of its own, with a slot for each stage",
        lambda k=SIZES["K"]: shared("x", trips=k).pipeline("k", 2), lambda k=SIZES["K"]: shared(trips=k),
        Shift("k", -1, of="i_3"),
        legal=NEVER + ", with K iterations of k", least={"K": 1, "k": 0},
        pair=(r"S2\[0, 0\]$",
              r"S3\[0, 6\]$"),
        faults=("race", "a wrong result", "uninitialised")),
    Bug("TileLang #2595", f"{TILELANG}/issues/2595",
        "What an iteration reads is added to by the one before; the pipeline does not see the dependence, since it runs through "
        "an atomic, and copies the row before the sum is complete.",
        r"S1\[0, 0, 0\] writes u\[1, 0\], which u_s\[1, 0\] reads", "the copy stays in its iteration",
        through_an_atomic, through_an_atomic, Pipeline("k", 2),
        legal=r"legal iff K == 1, with K iterations of k", least={"K": 2, "k": 0},
        pair=(r"S1\[0, 0, 0\]$",
              r"u_s\[1, 0\]$"),
        faults=("race", "a wrong result")),
    Bug("TileLang #2613", f"{TILELANG}/issues/2613",
        "No barrier stands between the products that read a shared factor, there of two warpgroups, and the copy for the next "
        "step.",
        r"races with S1 for a_s: no barrier stands between them", "a barrier at the end of the loop", warpgroup, edit=no_barrier,
        legal=r"legal iff K == 1", least={"K": 2, "k": 0},
        pair=(r"S1 at k = 0, .*\(thread tx = 1\) reads a_s\[0, 0\]",
              r"a_s at k = 1, .*\(thread tx = 0\) writes a_s\[0, 0\]"),
        faults=("race",)),
    Bug("TileLang #2566", f"{TILELANG}/issues/2566",
        "With a single iteration the copy takes another path, which expects the bytes and never arrives: the wait does not end.",
        r"commits or waits otherwise than the schedule", "the first thread arrives", lambda k=1: steps(2, k),
        edit=no_arrival,
        legal=NEVER, least={"K": 1, "k": 0},
        pair=(r"k\.pro\.commit at k_pro = 0 \(the first thread\) does not arrive for group 0",
              r"k\.wait at k = 0 \(every thread\) waits for group 0"),
        faults=("mbarrier",)),
    Bug("TileLang #2567", f"{TILELANG}/issues/2567",
        "A wait was moved before the arrival that its own group depends on: threads wait for what they would only ask for "
        "behind.",
        r"uses the mbarrier of another group, first at k = 0", "the wait is for the group of its own iteration",
        lambda k=5: steps(3, k), edit=waits_for_the_last_copies,
        legal=NEVER, least={"K": 1, "S": 3, "k": 0},
        pair=(r"k\.pro\.commit at k_pro = 0 .* arrives on mbarrier 0 for group 0",
              r"k\.wait at k = 0 .* uses mbarrier 2 for group 0"),
        faults=("mbarrier",)),
    Bug("TileLang #2634", f"{TILELANG}/issues/2634",
        "Threads write a factor, and a tensor instruction reads it through the asynchronous proxy without `fence.proxy.async` "
        "between.",
        r"no barrier with a fence of the asynchronous proxy", "each thread's fence before the barrier", warpgroup, edit=no_fence,
        number=1,
        legal=NEVER, least={"K": 1, "k": 0},
        pair=(r"a_s at k = 0, .*\(thread tx = 0\) writes a_s\[0, 0\]",
              r"S1 at k = 0, .*\(thread tx = 1\) reads a_s\[0, 0\]"),
        faults=("proxy-unfenced",)),
    Bug("TileLang PR #2674", f"{TILELANG}/pull/2674",
        "In a persistent loop every tile counts phases from 0, whatever the tiles before have left: right iff the number of "
        "steps is a multiple of twice the number of mbarriers, or all groups of the four tiles come in their first turn.",
        r"waits for another phase of the mbarrier, first at i = 0, j = 1, k = 0", "the number of the group counts all tiles",
        lambda k=5: several_tiles(3, k), edit=forgets_tiles,
        legal=r"legal iff 4 \* K <= S or K % \(2 \* S\) == 0", least={"K": 1, "S": 3, "i": 1, "j": 1, "k": 0},
        pair=(r"k\.pro\.commit at i = 1, j = 0, k_pro = 1 .* group 3",
              r"k\.wait at i = 1, j = 1, k = 0 .* phase 0 of mbarrier 0, where group 3 is counted in phase 1"),
        faults=("mbarrier", "bulk-pending")),
    Bug("TileLang PR #2166", f"{TILELANG}/pull/2166",
        "The place of the wait was taken from one copied array; a statement that reads another one stands before it.",
        r"the text of S0 runs in another order", "the wait before the first reader", twice,
        edit=reads_before_it_waits,
        legal="k is never legal: it fails for every trip count K >= 1",
        least={"slots": 3, "release distance": 1, "K": 1, "k": 0},
        pair=(r"x_s\[0, 0\]",
              r"S0\[0, 0\]"),
        faults=("async-pending", "uninitialised")),
    Bug("TileLang PR #3087", f"{TILELANG}/pull/3087",
        "The parity of a wait is that of a ring of stages, and its mbarriers are fewer.",
        r"waits for another phase of the mbarrier, first at k = 2", "the parity of the mbarrier's own phase",
        lambda k=5: steps(1, k), edit=parity_of_a_ring,
        legal=r"legal iff K <= 2", least={"K": 3, "S": 2, "k": 2},
        pair=(r"x_s\.commit at k = 2 .* mbarrier 0 for group 2",
              r"x_s\.wait at k = 2 .* phase 0 of mbarrier 0, where group 2 is counted in phase 1"),
        faults=("mbarrier", "bulk-pending", "race")),
    Bug("TileLang #2927", f"{TILELANG}/issues/2927",
        "The parity of a wait is that of the iteration, as if one mbarrier were used in each; they take turns.",
        r"waits for another phase of the mbarrier, first at k = 1", "the parity of the mbarrier's own phase",
        lambda k=5: steps(3, k), edit=parity_of_the_iteration,
        legal=r"legal iff S == 1 or \(K == 1 and S >= 2\)", least={"K": 2, "S": 3, "k": 1},
        pair=(r"k\.pro\.commit at k_pro = 1 .* group 1",
              r"k\.wait at k = 1 .* phase 1 of mbarrier 1, where group 1 is counted in phase 0"),
        faults=("mbarrier", "bulk-pending", "uninitialised")),
    Bug("TileLang PR #2505", f"{TILELANG}/pull/2505",
        "A wait counts stages, and each has several groups: it lets one go on that its reader needs.",
        r"commits or waits otherwise than the schedule", "waits count groups", twice,
        edit=one_group_more,
        legal=r"k is legal iff release distance \+ in flight <= slots - 1 and release distance >= 1; otherwise .*",
        least={"slots": 3, "release distance": 1, "in flight": 2, "K": 1, "k": 0},
        pair=(r"x_s\[0, 0\]",
              r"S0\[0, 0\]"),
        faults=("async-pending",)),
    Bug("CUTLASS #2404", "https://github.com/NVIDIA/cutlass/issues/2404",
        "The thread that should arrive is one of another role: nobody does, and the other side waits for ever.",
        r"is not run by the threads that should", "the thread that asks for the copies arrives", lambda k=5: steps(2, k),
        edit=nobody_arrives,
        legal=NEVER, least={"K": 1, "k": 0},
        pair=(r"k\.pro\.commit at k_pro = 0 .* does not arrive for group 0",
              r"k\.wait at k = 0 \(every thread\) waits for group 0"),
        faults=("mbarrier",)),
    Bug("Triton #3106, #8554", "https://github.com/triton-lang/triton/pull/3106",
        "A product in flight still reads a slot that the copy of a later step overwrites: one slot too few.",
        r"may write x_s\[0, 0, 0\] while S1\[0, 0, 0\] is in flight", "a slot for each product in flight",
        lambda k=4: factors(4, k).overlap("k", steps=2), lambda k=4: factors(3, k), Overlap("k", 2),
        legal=r"k is legal iff in flight <= release distance and release distance <= slots - 1; otherwise .*",
        least={"slots": 3, "release distance": 1, "in flight": 2, "K": 4, "k": 0},
        pair=(r"S1\[0, 0, 0\]",
              r"x_s\[0, 0, 3, 0, 0\]"),
        faults=("a wrong result", "race", "bulk-pending")),
    Bug("Triton #8139", "https://github.com/triton-lang/triton/pull/8139",
        "A use is scheduled behind the next copy into its slot: the buffer needs one slot more than stages.",
        r"S1\[0, 0, 0\] would not get the value that a_s\[0, 0, 0, 0, 0\] writes for it", "one slot more",
        lambda k=0: small_tiles(trips=k, slots=3).shift("k", 1, of="k.i"), lambda k=0: small_tiles(trips=k),
        Shift("k", 1, of="k.i"),
        legal=r"k is legal iff release distance >= 2; otherwise only where trip count <= slots",
        least={"slots": 2, "release distance": 1, "K": 3, "k": 1},
        pair=(r"a_s\[0, 0, 0, 0, 0\]",
              r"S1\[0, 0, 0\]"),
        faults=("a wrong result", "race")),
    Bug("Fuser #3561", "https://github.com/NVIDIA/Fuser/issues/3561",
        "No `wgmma.wait_group` stands before the slot of a product is given free.",
        r"commits or waits otherwise than the schedule", "the wait before the barrier", lambda k=4: factors(2, k).overlap("k"),
        edit=no_wait_for_products,
        legal=r"k is legal only where trip count <= slots", least={"slots": 2, "K": 3, "k": 0},
        pair=(r"S1\[0, 0, 0\]",
              r"x_s\[0, 0, 2, 0, 0\]"),
        faults=("a wrong result", "race", "bulk-pending")),
    Bug("Fuser #3865", "https://github.com/NVIDIA/Fuser/pull/3865",
        "Threads meet, and then each waits for its own products: other warps' products still read the slot.",
        r"races with x_s for x_s: no barrier stands between them", "the wait before the barrier",
        lambda k=4: factors(3, k, 128).overlap("k"),
        edit=PRODUCTS["threads meet before they wait"],
        legal=r"k is legal only where trip count <= slots", least={"slots": 3, "K": 4, "k": 0},
        pair=(r"S1 at k = 0, .*\(thread tx = 0, i_w = 1\) reads x_s\[0, 64, 0\]",
              r"x_s at k = 1, .*\(thread tx = 0, i_w = 0\) writes x_s\[0, 64, 0\]"),
        faults=("a wrong result", "race", "bulk-pending")),
    Bug("vLLM #26026", "https://github.com/vllm-project/vllm/pull/26026",
        "An early way out arrives and goes round the loop to arrive again, before anybody has waited for the first phase.",
        r"commits or waits otherwise than the schedule", "an arrival for each group", lambda k=5: several_tiles(3, k),
        edit=arrives_twice,
        legal=NEVER, least={"K": 1, "i": 0, "j": 0, "k": 0},
        pair=(r"k\.pro\.commit at i = 0, j = 0, k_pro = 0 .* arrives for group 0",
              r"k\.pro\.commit at i = 0, j = 0, k_pro = 0 .* arrives again"),
        faults=("mbarrier-again", "mbarrier-unwaited", "bulk-pending", "mbarrier")),
)
