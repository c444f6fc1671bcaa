"""All tilings of a product, or a sample of them, timed: how near the best of all the model's first choices come.

The universe is every tiling of every way to write the product, with every cut of its depth into slices, whatever the model says.
Each trial is verified and timed quickly as soon as it is built; the fastest, and the fastest of the model's first, are timed
again in turn, beside the library.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from functools import cache, partial
from heapq import merge
from typing import Any, NamedTuple

import product_programs
from product_cases import Product
from ranking import rank_correlation, reasons, sample, share_of_best
from trials import Builds, Job, Kept, Lab, Made

from explorer.gpu.spec import gpu
from explorer.strategies.contraction import ranked
from explorer.strategies.contraction.arrange import Way, ways
from explorer.strategies.contraction.model import product_time
from explorer.strategies.contraction.moves import build as tiled
from explorer.strategies.contraction.shapes import Tiling, sliced, tilings

FIRST = ((10, 0.90), (40, 0.99))
"""Of so many of the model's first choices the best is to reach this share of the best of all."""
BATCH, QUICK = 12, 7
"""Trials that are timed in one profile, in turn, and how often each."""
AGAIN, OF_FIRST = 20, 3
"""Of the fastest, and of the fastest of the model's first, so many are timed again."""
RESERVED_S = 20.0
"""Of a shape's time, what the second timing takes."""


class Candidate(NamedTuple):
    """A tiling of a way to write the product, and what the model says of it."""

    label: str
    predicted_us: float
    way: str
    tiling: Tiling


@cache
def ways_of(case: Product, on: str) -> dict[str, Way]:
    """By label; a pool's processes have them from the one that they were forked from."""
    written = getattr(product_programs, case.program).schedule(**case.sizes)
    return {w.label: w for w in ways(written, written.plan.kernels[0].id, gpu(on))}


def candidates(case: Product, on: str) -> list[Candidate]:
    """All of them: in the model's order those that it ranks, then, the cheapest first, slices that it leaves out for others."""
    target, found, others = gpu(on), list[list[Candidate]](), list[Candidate]()
    for w in ways_of(case, on).values():
        first = [_candidate(w, t, us) for t, us in ranked(w.form, target)]
        known = {c.tiling for c in first}
        every = (s for t in tilings(w.form, target) for s in (t, *sliced(t, w.form, target)) if s not in known)
        found.append(first)
        others += [_candidate(w, s, us) for s in every if (us := product_time(w.form, s, target))]
    model = merge(*found, key=lambda c: c.predicted_us)
    return [*{c.label: c for c in (*model, *sorted(others, key=lambda c: c.predicted_us))}.values()]


def _candidate(w: Way, t: Tiling, us: Any) -> Candidate:
    return Candidate(f"{t}{', ' * bool(w.label)}{w.label}", w.copy_us + us.total_us, w.label, t)


def schedule_of(case: Product, on: str, way: str, t: Tiling) -> Any:
    """That of a candidate."""
    w = ways_of(case, on)[way]
    return tiled(w.schedule, w.form, t, gpu(on))


def chosen(case: Product, on: str, trials: int, seed: int, kept: Kept) -> list[Job]:
    """The trials of a shape, in the order in which they are built; of how many, and up to which one none is left out, is kept."""
    every = candidates(case, on)
    place = {c.label: n for n, c in enumerate(every, 1)}
    picked = sample(every, trials, seed, FIRST[-1][0])
    tried = {c.label for c in picked}
    whole = next((n for n, c in enumerate(every) if c.label not in tried), len(every))
    kept.data["shapes"].setdefault(case.name, {}).update(
        universe=len(every), whole=whole, whole_to=every[whole - 1].predicted_us / every[0].predicted_us)
    return [Job(case.name, c.label, c.predicted_us, partial(schedule_of, case, on, c.way, c.tiling), on, place[c.label])
            for c in picked]


def left(jobs: Sequence[Job], kept: Kept) -> list[Job]:
    """Those without a result, and those that are timed again: their code is not kept."""
    times = {row["label"]: row["us"] for job in jobs[:1] for row in kept.trials(job.shape) if "us" in row}
    done = {row["label"] for job in jobs[:1] for row in kept.trials(job.shape)} - finalists(jobs, times)
    return [job for job in jobs if job.label not in done]


def explore(bench: Any, lab: Lab, builds: Builds, until: float) -> dict[str, Made]:
    """Time what a pool builds until it is late; the code by label."""
    waiting, code = list[tuple[Made, Any]](), dict[str, Made]()
    for made in builds.arriving(until - RESERVED_S):
        if (ours := lab.verified(made)) is None:
            lab.kept.add(lab.case.name, made.row)
            continue
        waiting.append((made, ours))
        code[made.row["label"]] = made
        if len(waiting) == BATCH:
            quickly(bench, lab, waiting)
            waiting = []
    quickly(bench, lab, waiting)
    return code


def quickly(bench: Any, lab: Lab, waiting: Sequence[tuple[Made, Any]]) -> None:
    """Time a batch, and keep the rows."""
    samples = bench.sampled([ours for _, ours in waiting] * QUICK) if waiting else []
    for n, (made, _) in enumerate(waiting):
        lab.kept.add(lab.case.name, made.row | {"us": statistics.median(samples[n::len(waiting)])})
    lab.kept.save()


def finalists(jobs: Sequence[Job], times: Mapping[str, float]) -> set[str]:
    """Those that are timed again: the fastest, and the fastest of the model's first."""
    def fastest(among: Sequence[Job], most: int) -> list[str]:
        return sorted((job.label for job in among if job.label in times), key=times.__getitem__)[:most]

    return {*fastest(jobs, AGAIN), *(x for n, _ in FIRST for x in fastest(jobs[:n], OF_FIRST))}


def careful(bench: Any, lab: Lab, code: Mapping[str, Made], jobs: Sequence[Job]) -> None:
    """The finalists in turn, beside the library's product."""
    rows = lab.kept.trials(lab.case.name)
    chosen = finalists(jobs, {row["label"]: row["us"] for row in rows if "us" in row and row["label"] in code})
    calls = {label: ours for label in chosen if (ours := lab.verified(code[label])) is not None}
    if calls:
        lab.kept.data["shapes"][lab.case.name]["again"] = bench.times_us(calls | {"torch": lab.peers.calls["torch"]})
    lab.kept.save()


def report(name: str, shape: dict[str, Any], jobs: Sequence[Job]) -> None:
    """What is said of a shape; its jobs begin with the model's first."""
    rows = {row["label"]: row for row in shape["trials"]}
    rows = {job.label: rows[job.label] for job in jobs if job.label in rows}
    timed = {label: row for label, row in rows.items() if "us" in row}
    print(f"\n{name}: {len(timed)} timed, {len(rows) - len(timed)} failed, {len(jobs) - len(rows)} not reached, of {len(jobs)} "
          f"chosen among {shape['universe']}; the model's first {shape['whole']}, up to {shape['whole_to']:.2f} times its "
          "cheapest, are all chosen")
    for reason, n in reasons(row["problem"] for row in rows.values() if "problem" in row).items():
        print(f"   {n} x {reason}")
    if not timed:
        return
    again = {label: us for label, us in shape.get("again", {}).items() if label in timed}
    times, order = again or {label: row["us"] for label, row in timed.items()}, [job.label for job in jobs]
    for label in sorted(times, key=times.__getitem__)[:5]:
        print(f"   {times[label]:.2f} µs, the model's number {timed[label]['rank']}, {timed[label]['predicted_us']:.2f}: {label}")
    if again:
        print(f"   {shape['again']['torch']:.2f} µs: torch.mm")
    shape["shares"] = {}
    for n, wanted in FIRST:
        share = shape["shares"][str(n)] = share_of_best(order, times, n)
        print(f"   the best of the model's first {n}, {sum(x not in timed for x in order[:n])} of them without a time: "
              f"{share:.3f} of the best of all, {wanted} wanted" + ", MISSED" * (share < wanted))
    shape["correlation"], shape["correlation_of_prices"] = (
        rank_correlation([(row[key], row["us"]) for row in timed.values()]) for key in ("predicted_us", "price_us"))
    print(f"   rank correlation of the model {shape['correlation']:.3f}, of plans' price {shape['correlation_of_prices']:.3f}",
          flush=True)
