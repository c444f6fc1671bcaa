"""The timeline figure: copies, waits, products and stores of one block on the clock, as the price of the plan has them.

The first steps, the last ones and the results' way out are to scale; what lies between them is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...gpu.spec import Gpu
from ...ir.instructions import instruction
from ...ir.plan import Plan
from ...ir.tree import Kernel, Sync, walk
from ...schedule import Schedule
from ...strategies.pipelines.facts import Stepping, steppings
from ...strategies.pipelines.rates import RATES
from ...strategies.pipelines.terms import Cycles, Step
from ...strategies.pipelines.trace import Part, Span, traced
from ...strategies.price import clock_of, price
from .asked import Asked, Look

LAST = 2
"""Steps at the end that are drawn, where not all are."""
WORDS = {"tensor": "the tensor cores' rate", "issue": "the rate of instructions", "banks": "the banks of shared memory",
         "load": "what a multiprocessor takes in", "step": "one block's own products, waits and barriers",
         "latency": "the latency of copies"}
"""What each of the six times of a step is, in words."""


@dataclass(frozen=True)
class Gantt:
    """One block's steps on the clock.

    Attributes
    ----------
    gpu, loop : str
    count, stages, resident, rounds : int
        Steps of a block; those in flight; blocks of a multiprocessor at a time; how often the grid fills the GPU.
    copies : tuple of (str, str)
        Leaf, and buffer, of what brings tiles.
    tensor : bool
        Whether tensor instructions compute.
    spans : tuple of Span
        In microseconds.
    gap : tuple of (float, float) or None
        What is not drawn.
    steps_us, store_us : float
        Of one block: all its steps, from the first copy on; its results' way out.
    period_us : float
        From step to step, in the middle.
    terms : Cycles
        The six times of a step, in microseconds.
    total_us : float
        The price of the kernel.
    wait : str
        The node that waits for copies; "" if none does.
    """

    gpu: str
    loop: str
    count: int
    stages: int
    resident: int
    rounds: int
    copies: tuple[tuple[str, str], ...]
    tensor: bool
    spans: tuple[Span, ...]
    gap: tuple[float, float] | None
    steps_us: float
    store_us: float
    period_us: float
    terms: Cycles
    total_us: float
    wait: str


def gantt(schedule: Schedule, asked: Asked, look: Look) -> Gantt | str:
    """The steps of one loop, or a sentence where no kernel computes in steps."""
    plan, gpu = schedule.plan, asked.gpu(look)
    found = [(kernel, n, s) for kernel in plan.kernels for n, s in enumerate(steppings(plan, kernel))]
    if not found:
        return ("No loop computes in steps: none has copies that bring another tile to shared memory in each of its iterations. "
                "stage('…', 'k') an array that a loop reads, then pipeline('k', 3).")
    words = {s.loop: f"{s.loop} ({', '.join(dict.fromkeys(u.leaf.statement for u in s.copies))})" for _, _, s in found}
    chosen = asked.one_of("loop", "loop", words, _focus(plan, [s for _, _, s in found], look))
    kernel, number, s = next(x for x in found if x[2].loop == chosen)
    shown = asked.number("steps", "steps drawn", min(2, s.count), min(s.count, 16), min(s.count, 6))
    return _follow(plan, kernel, number, s, gpu, shown)


def _focus(plan: Plan, found: list[Stepping], look: Look) -> str:
    """The loop that is selected, or that is around the selected node; else the one with most steps."""
    hit = plan.find(look.node) if look.node else None
    around = {look.node, *(x.id for x in hit[1])} if hit else {look.node}
    return next((s.loop for s in found if s.loop in around), max(found, key=lambda s: s.count).loop)


def _follow(plan: Plan, kernel: Kernel, number: int, s: Stepping, gpu: Gpu, shown: int) -> Gantt:
    (priced,) = (k for k in price(plan, gpu).kernels if k.counts.kernel == kernel.id)
    whole = priced.steps
    assert whole is not None
    step, us = whole.steps[number]
    clock = clock_of(gpu) / us.stretch(RATES[step.engine].norm)  # the trace overlaps all that may be overlapped
    kept = set(range(shown)) if s.count <= shown else {*range(shown - min(LAST, shown - 1)), *range(s.count - LAST, s.count)}
    beside = {t + n for t in kept for n in range(1 - s.stages, s.stages)}  # whose tiles are in slots meanwhile
    trace = traced(step, _shares(s), _parts(s, step), priced.counts.threads, whole.resident, frozenset(kept | beside))
    wait = next((n.id for n in walk(plan.loops[s.loop].body) if isinstance(n, Sync) and n.kind == "wait"), "")
    cut = [n for n in range(s.count) if n not in kept]
    hidden = (trace.ends[cut[0] - 1], trace.ends[cut[-1]]) if cut else (0.0, 0.0)
    before = _before(plan, kernel, s)
    spans = [Span(x.kind, _node(x, s, before, wait), x.step, start / clock, end / clock)
             for x in trace.spans for start, end in _seen(x, hidden, x.step in kept)]
    end, store = trace.ends[-1] / clock, whole.store / whole.rounds  # while those of the others go out, too
    writer = _writer(plan, kernel, s)
    spans.append(Span("store", writer, -1, end, end + store))
    gap = (hidden[0] / clock, hidden[1] / clock) if cut else None
    middle = (len(trace.ends) - 1) // 2  # a single step takes all the time there is
    period = (trace.ends[-1] - trace.ends[middle] * (len(trace.ends) > 1)) / max(1, len(trace.ends) - 1 - middle) / clock
    one = whole.rounds * s.count
    copies = (*((u.leaf.id, u.leaf.statement) for u in s.copies), *((first, name) for name, first in before.items()))
    return Gantt(gpu.name, s.loop, s.count, s.stages, whole.resident, whole.rounds, copies, bool(s.instructions), tuple(spans),
                 gap, end, store, period, us.scaled(1.0 / one), priced.total_us, wait)


def _before(plan: Plan, kernel: Kernel, s: Stepping) -> dict[str, str]:
    """For each copy the leaf that makes it ahead of the loop, where there is one."""
    inside, named = {u.leaf.id for u in s.copies}, {u.leaf.statement for u in s.copies}
    return {leaf.statement: leaf.id for leaf, _, k in plan.leaves
            if k.id == kernel.id and leaf.statement in named and leaf.id not in inside}


def _node(x: Span, s: Stepping, before: dict[str, str], wait: str) -> str:
    """What a span is of: the first tiles are copied ahead of the loop; no leaf waits, but a node of its own or the loop."""
    if x.node is None:
        return wait if x.kind == "wait" and wait else s.loop
    copied = next((u.leaf.statement for u in s.copies if u.leaf.id == x.node), "")
    return before.get(copied, x.node) if x.step < s.stages - 1 else x.node


def _seen(x: Span, hidden: tuple[float, float], kept: bool) -> list[tuple[float, float]]:
    """The parts of a span outside of what is not drawn; of other steps than those drawn, what lies in slots meanwhile."""
    if not kept and x.kind not in ("copy", "held"):
        return []
    parts = ((x.start, min(x.end, hidden[0])), (max(x.start, hidden[1]), x.end))
    return [(start, end) for start, end in parts if end > start]


def _shares(s: Stepping) -> tuple[tuple[str, float], ...]:
    """The copies of a step, and their shares in its bytes."""
    times = [use.times for use in s.copies]
    return tuple((use.leaf.id, n / sum(times)) for use, n in zip(s.copies, times, strict=True))


def _parts(s: Stepping, step: Step) -> tuple[Part, ...]:
    """What computes in a step, with its share: tensor instructions by their operations, the rest by its instructions."""
    heavy = s.instructions
    if not heavy:
        last = next((u for u in reversed(s.uses) if u.statement.update), s.uses[-1])
        return ((last.leaf.id, "compute", 1.0),)
    other = step.issue / max(step.issue + step.tensor, 1e-9)
    plain = [u for u in s.uses if not instruction(u.leaf.mechanism) and u.used[-1].space != "register"]
    work = sum(u.times for u, _ in heavy)
    found: list[Part] = [(u.leaf.id, "product", (1.0 - other) * u.times / work) for u, _ in heavy]
    if other > 0.02 and plain:
        found.insert(1 if len(found) > 1 else len(found), (plain[-1].leaf.id, "compute", other))
    return tuple(found)


def _writer(plan: Plan, kernel: Kernel, s: Stepping) -> str | None:
    """The last leaf of the kernel that writes to global memory."""
    inside = {u.leaf.id for u in (*s.copies, *s.uses)}
    leaves = [leaf for leaf, _, k in plan.leaves if k.id == kernel.id and leaf.id not in inside]
    return next((x.id for x in reversed(leaves) if x.view(len(plan.statement_of[x.statement].reads)) is None), None)
