"""Does the model rank pipelines, and tilings, as a GPU does?

    python benchmarks/ablation.py ablation [--shapes NAME,...] [--json PATH]
    python benchmarks/ablation.py exhaustive [--shapes NAME,...] [--trials 500] [--json PATH] [--stop S] [--resume PATH]

`ablation`: products in one block tile, by `mma.sync` and by `wgmma`, with 1 to 5 stages, without and with the second level of
their pipeline (fragments loaded ahead; products in flight): the price of each plan beside its time, and the pairs that differ by
more than 10 % and are priced in the wrong order.  The tile is the model's best that has room for five stages.

`exhaustive`: of three products N tilings, the model's first and a sample of the others, or all of them (exhaustive.py).

Shapes are names of products (product_cases.py).  Processes build beside the timing; `--dry` builds some and times none.  A kernel
that never ends, or ends in a fault, ends the run with status 3: `--resume` goes on without it.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from building import processes
from exhaustive import careful, chosen, explore, left, report, schedule_of, ways_of
from product_cases import FEW_ROWS, MATMULS, ORDERS, Product, drawn_products
from ranking import Timed, told_apart, wrong_order
from trials import Builds, Job, Kept, Lab, built_here

from explorer.gpu.spec import gpu
from explorer.schedule import Schedule
from explorer.strategies.contraction import ranked
from explorer.strategies.contraction.shapes import Tiling
from explorer.strategies.pipelines.facts import steppings
from explorer.strategies.pipelines.family import template
from explorer.views.figures.ablation import LEVELS, with_second, with_stages

SHAPES = {"ablation": "L-mm-4096,L-mm-1024,L-fc-1024x64x2048,L-bert-fc1-512,L-gpt2-fc2-512,1000x1504x776-nn",
          "exhaustive": "L-mm-1024,L-bert-fc1-512,4248x2081x2176-nn"}
"""Large, medium, skinny, wide, deep and ragged; the last one of `exhaustive` is a random one, with rows of an odd length."""
SEED = 4242
"""Of the random products."""
STAGES = (1, 2, 3, 4, 5)
ENGINES = {"warp": "mma.sync", "warpgroup": "wgmma"}
DRY = 4
"""Trials of a shape that a dry run builds."""


def products() -> dict[str, Product]:
    """Every product by name: the public ones, the random ones of the suite, and others."""
    return {case.name: case for case in (*MATMULS, *ORDERS, *FEW_ROWS, *drawn_products(30, 0), *drawn_products(30, SEED))}


def tile_of(case: Product, on: str, engine: str) -> Tiling | None:
    """The model's best tiling of an engine, whole and without a producer, among those that have room for all stages."""
    form, most = ways_of(case, on)[""].form, max(STAGES)
    for t, _ in ranked(form, gpu(on)):
        deep = replace(t, stages=most)
        fits = deep.shared_bytes(form) + 1024 <= gpu(on).shared_bytes_per_block_optin and form.extents[2] >= most * t.depth
        if t.engine == engine and t.slices == 1 and not t.persistent and not t.producer and fits:
            return replace(t, stages=1)
    return None


def variant(case: Product, on: str, t: Tiling, stages: int, level: int) -> Schedule:
    """A cell of the ablation.

    Raises
    ------
    ValueError
        If there is no such pipeline.
    """
    bare = schedule_of(case, on, "", t)
    (loop,) = (s.loop for kernel in bare.plan.kernels for s in steppings(bare.plan, kernel))
    plan = with_stages(bare.plan, template((), loop), stages)
    if level and not isinstance(plan, str):
        plan = with_second(plan, loop, t.engine)
    if isinstance(plan, str):
        raise ValueError(plan)
    return Schedule(plan.program, plan)


def cells(case: Product, on: str, tiles: Mapping[str, Tiling] | None = None) -> list[Job]:
    """The variants of a shape, in these tiles of the engines, or in the model's best."""
    if tiles is None:
        tiles = {engine: t for engine in ENGINES if (t := tile_of(case, on, engine))}
    return [Job(case.name, f"{path}, {stages} stage{'s' * (stages > 1)}, {LEVELS[engine][level]}", math.nan,
                partial(variant, case, on, tiles[engine], stages, level), on)
            for engine, path in ENGINES.items() if engine in tiles for level in (0, 1) for stages in STAGES]


def ablate(bench: Any, lab: Lab, builds: Builds, until: float) -> None:
    """Time the variants of a shape in turn."""
    calls = dict[str, Any]()
    for made in builds.arriving(until):
        if (ours := lab.verified(made)) is not None:
            calls[made.row["label"]] = ours
        lab.kept.add(lab.case.name, made.row)
    times = bench.times_us(calls) if calls else {}
    for row in lab.kept.trials(lab.case.name):
        row |= {"us": times[row["label"]]} if row["label"] in times else {}


def told(case: Product, on: str, jobs: list[Job], kept: Kept) -> None:
    """Prices beside times, and the pairs that are priced in the wrong order."""
    rows = {row["label"]: row for row in kept.trials(case.name)}
    found = [Timed(label, row["price_us"], row["us"]) for label, row in rows.items() if "us" in row]
    print(f"\n{case.name}: " + "; ".join(str(t).replace(", 1 stages", "") for e in ENGINES if (t := tile_of(case, on, e))))
    for row in (rows.get(job.label, {"label": job.label, "problem": "not reached"}) for job in jobs):
        words = f"{row['price_us']:9.2f} priced {row['us']:9.2f} measured" if "us" in row else row["problem"][:110]
        print(f"   {row['label']:46s} {words}")
    shape = kept.data["shapes"][case.name]
    shape["wrong"] = {}
    for path in (*ENGINES.values(), ""):
        mine = [f for f in found if f.label.startswith(path)]
        wrong = wrong_order(mine)
        shape["wrong"][path or "both"] = [[fast.label, slow.label] for fast, slow in wrong]
        print(f"   {path or 'both'}: {len(wrong)} of {len(told_apart(mine))} pairs that differ by more than 10 % in wrong order")
        for fast, slow in wrong if path else ():
            print(f"      {fast.label} ({fast.predicted_us:.2f}, {fast.measured_us:.2f}) before {slow.label} "
                  f"({slow.predicted_us:.2f}, {slow.measured_us:.2f})", flush=True)
    kept.save()


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("ablation", "exhaustive"))
    parser.add_argument("--shapes", default="")
    parser.add_argument("--trials", type=int, default=500, metavar="N", help="of each shape; 0 for all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--gpu", default="H200", help="for which prices are, of the catalogue")
    parser.add_argument("--json")
    parser.add_argument("--stop", type=float, default=math.inf, metavar="S", help="seconds after which nothing more is timed")
    parser.add_argument("--resume", metavar="PATH", help="trials of an earlier run, which are kept")
    parser.add_argument("--dry", action="store_true", help=f"build {DRY} trials of each shape, and time none")
    return parser.parse_args()


def main() -> None:
    began, arguments = time.monotonic(), parsed()
    known, kept, on = products(), Kept.of(arguments.json, arguments.resume), arguments.gpu
    names = (arguments.shapes or SHAPES[arguments.what]).split(",")
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"no product is called {', '.join(unknown)}; one of {', '.join(known)}")
    cases, exhaustive = [known[name] for name in names], arguments.what == "exhaustive"
    jobs = [chosen(case, on, arguments.trials, arguments.seed, kept) if exhaustive else cells(case, on) for case in cases]
    with multiprocessing.get_context("fork").Pool(processes()) as pool:  # before CUDA is begun here; ended, not joined, when left
        if arguments.dry:
            for case, own in zip(cases, jobs, strict=True):
                of = f" of {kept.data['shapes'][case.name]['universe']}" if exhaustive else ""
                print(f"{case.name}: {len(own)} trials{of}", flush=True)
                list(built_here(pool, own[::max(1, len(own) // DRY)][:DRY]))
            return
        todo = [left(own, kept) if exhaustive else [job for job in own if not kept.ended(job)] for own in jobs]
        builds = [Builds(pool, own) for own in todo]
        from measure import Bench

        bench = Bench(repeats=9)
        kept.data |= {"gpu": bench.gpu, "priced_for": on, **bench.versions}
        print(f"{bench.gpu}, prices for {on}; {sum(map(len, todo))} trials in {processes()} processes", flush=True)
        for n, (case, own, coming) in enumerate(zip(cases, jobs, builds, strict=True)):
            now, lab = time.monotonic(), Lab(case, kept)
            until = now + (began + arguments.stop - now) / (len(cases) - n)  # what a shape leaves is for the next ones
            if exhaustive:
                careful(bench, lab, explore(bench, lab, coming, until), own)
                report(case.name, kept.data["shapes"][case.name], own)
            else:
                ablate(bench, lab, coming, until)
                told(case, on, own, kept)
            kept.save()
        print(f"{time.monotonic() - began:.0f} s" + ", stopped by the time" * (time.monotonic() - began > arguments.stop - 5))


if __name__ == "__main__":
    main()
