"""The price of a kernel, term by term: which times it is made of, and which of them count.

The terms are those of :mod:`explorer.strategies.price`, in the same numbers: five roofs, of which the longest counts, and for a
kernel that computes in steps the times of its steps, which overlap (:mod:`explorer.strategies.pipelines.terms`).
"""

from __future__ import annotations

from dataclasses import dataclass

from ...schedule import Schedule
from ...strategies.pipelines.rates import RATES
from ...strategies.price import ROOFS, KernelPrice, price
from .asked import Asked, Look
from .palette import Theme
from .picture import Drawing
from .spec import Spec, axis, bars, layout, note, spec

WORDS = {
    "launch": "launches, or the barriers of the grid that it stands behind",
    "memory": "moved bytes / bandwidth of global memory",
    "sectors": "requested sectors and requests / what the busy multiprocessors take in from the second-level cache",
    "issue": "operations and accesses / what the busy multiprocessors issue",
    "path": "what one thread does one after the other × rounds in which the blocks are resident",
    "tensor": "tensor operations / what the busy multiprocessors' tensor cores compute",
    "fill": "start of the pipelines: a latency and what it copies first, for each round",
    "steps: tensor": "steps × products of all resident blocks / the rate of their instruction",
    "steps: issue": "steps × other instructions of all resident blocks / what a multiprocessor issues",
    "steps: banks": "steps × passes of all resident blocks over the banks of shared memory",
    "steps: step": "steps × one block's products with its waits and barriers, in which other blocks go on",
    "steps: load": "steps × tiles of all resident blocks / what a multiprocessor takes in from the second-level cache",
    "steps: latency": "steps × a load's latency / the steps in flight; with one stage, behind one another",
    "store": "results of all resident blocks / what a multiprocessor writes, for each round",
}
"""The formula of each term."""
STEPS = ("tensor", "issue", "banks", "step", "load", "latency")
ROW, LEAST_US = 26, 0.005
"""Pixels of a bar; and below which time a term has none."""


@dataclass(frozen=True)
class Term:
    """One time of a kernel, in microseconds; whether it is among those whose sum is the price, and how much of it counts."""

    name: str
    us: float
    counts: bool
    counted_us: float


@dataclass(frozen=True)
class PriceTerms:
    """The terms of one kernel of a schedule on one GPU.

    Attributes
    ----------
    kernel, gpu : str
    terms : tuple of Term
        In the order of the figure.
    total_us, whole_us : float
        Of the kernel, and of the schedule.
    """

    kernel: str
    gpu: str
    terms: tuple[Term, ...]
    total_us: float
    whole_us: float


def price_terms(schedule: Schedule, asked: Asked, look: Look) -> PriceTerms:
    """The terms of one kernel: the one that is looked at, or the one that takes longest."""
    plan, gpu = schedule.plan, asked.gpu(look)
    whole = price(plan, gpu)
    owner = plan.kernel_of(look.node) if look.node else None
    longest = max(whole.kernels, key=lambda k: k.total_us).counts.kernel
    names = [k.counts.kernel for k in whole.kernels]
    chosen = asked.one_of("kernel", "kernel", names, owner.id if owner else longest)
    own = next(k for k in whole.kernels if k.counts.kernel == chosen)
    return PriceTerms(chosen, gpu.name, terms_of(own), own.total_us, whole.total_us)


def terms_of(k: KernelPrice) -> tuple[Term, ...]:
    """All terms of a kernel's price; those that count add up to it."""
    roof = max(k.roofs)
    in_steps = k.steps is not None and k.counts.launches * k.steps.total_us > roof
    found = [Term("launch", k.launch_us, True, k.launch_us)]
    for name, us in zip(ROOFS, k.roofs, strict=True):
        counts = not in_steps and us == roof and us > 0
        found.append(Term(name, us, counts, us if counts else 0.0))
    if k.steps is None:
        return tuple(found)
    times, launches = k.steps, k.counts.launches
    found.append(Term("fill", launches * times.fill, in_steps, launches * times.fill * in_steps))
    for name in STEPS:
        us = launches * sum(getattr(cycles, name) for _, cycles in times.steps)
        counted = launches * sum(cycles.together(RATES[step.engine].norm) for step, cycles in times.steps if cycles.bound == name)
        found.append(Term(f"steps: {name}", us, in_steps and counted > 0, counted * in_steps))
    return (*found, Term("store", launches * times.store, in_steps, launches * times.store * in_steps))


def make(schedule: Schedule, asked: Asked, look: Look) -> Drawing:
    """The figure of a schedule."""
    data = price_terms(schedule, asked, look)
    rows: list[list[str | None]] = [
        [data.kernel, t.name, f"{t.us:,.2f}", f"{t.counted_us:,.2f}" if t.counts else "", WORDS[t.name]] for t in data.terms]
    title = f"Price of {data.kernel} on the {data.gpu}: {data.total_us:,.1f} µs"
    return Drawing(title, _remark(data), lambda theme: draw(data, theme), ["term", "µs", "counts", "formula"], rows)


def draw(data: PriceTerms, theme: Theme) -> Spec:
    """A bar for each term that is not nearly 0; those that count are marked, with what they add to the price."""
    terms = [t for t in data.terms if max(t.us, t.counted_us) >= LEAST_US]
    rows = [float(n) for n in range(len(terms))]
    most = max((max(t.us, t.counted_us) for t in terms), default=1.0)
    fills = [theme.thread if t.counts else theme.plain for t in terms]
    hover = [f"<b>{t.name}</b>: {t.us:,.2f} µs<br>{WORDS[t.name]}" + f"<br>adds {t.counted_us:,.2f} µs" * t.counts
             for t in terms]
    traces = [bars([0.0] * len(rows), [t.us for t in terms], rows, [data.kernel] * len(rows), color=fills, width=0.66,
                   hover=hover)]
    page = layout(theme, 70 + ROW * len(rows), left=112, top=10, bottom=44,
                  xaxis=axis(theme, "µs", (0, most * 1.3), grid=True),
                  yaxis=axis(theme, "", (len(rows) - 0.4, -0.6), [(r, t.name) for r, t in zip(rows, terms, strict=True)]))
    for r, t in zip(rows, terms, strict=True):
        more = f" {t.counted_us:,.2f}" * (t.counted_us - t.us >= LEAST_US)
        words = f"{t.us:,.2f}" + f" ◀ counts{more}" * t.counts
        colour = theme.ink if t.counts else ""
        page["annotations"].append(note(words, t.us + most * 0.01, r, theme, refs=("x", "y"), color=colour))
    return spec(traces, page)


def _remark(data: PriceTerms) -> str:
    share = f" of the schedule's {data.whole_us:,.1f} µs" if data.whole_us - data.total_us > 0.005 else ""
    adding = " + ".join(f"{t.name} {t.counted_us:,.2f}" for t in data.terms if t.counts and t.counted_us >= LEAST_US)
    steps = ("; of the times of steps the longest, and the others as far as they come near it"
             if any(t.counts for t in data.terms if t.name.startswith("steps")) else "")
    return (f"{data.total_us:,.2f} µs{share} = {adding}. Of the roofs the longest counts{steps}. "
            "Hover over a term for its formula.")
