"""Random schedules of random programs against the reference and the enumerated instances; and the mutants.

``python benchmarks/properties.py --pairs 5000 --seed 1`` draws programs and chains of moves until so many pairs of a
program and a schedule have been judged, prints the table, and exits with 1 if one of them was judged wrongly.
``--mutants`` prints which judgement notices which defect (``--write`` puts it into docs/mutants.md); ``--bugs`` what is said of
the bugs in pipelines that users of other compilers have reported (docs/hazards.md).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from itertools import count
from math import inf
from multiprocessing import Pool, TimeoutError
from multiprocessing.pool import Pool as PoolOf
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.hazards.bugs import BUGS  # noqa: E402
from tests.hazards.replayed import page as bugs_page  # noqa: E402
from tests.hazards.replayed import replay  # noqa: E402
from tests.mutants.judgement import caught, control, page, table  # noqa: E402
from tests.properties.tally import Tally  # noqa: E402
from tests.properties.trial import Trial  # noqa: E402

CHAINS = 50
"""Chains of one task: enough that their kernels fill a compilation."""


def task(seed: int, number: int) -> Tally:
    """The chains of one task, the same in any process."""
    return Trial().run(seed, range(number * CHAINS, (number + 1) * CHAINS))


def tasks(pairs: int, seed: int, processes: int, first: int = 0, stop_s: float = inf) -> Iterator[Tally]:
    """The tally after each task from the `first` on, in order, until there are enough pairs or it is late."""
    total, until = Tally(), time.perf_counter() + stop_s
    with Pool(processes) as pool:  # ended, not joined, when left
        for one in _in_order(pool, seed, processes, first, until):
            total.merge(one)
            yield total
            if len(total.pairs) >= pairs:
                break


def _in_order(pool: PoolOf, seed: int, processes: int, first: int, until: float) -> Iterator[Tally]:
    """The tasks' own tallies, as long as it is not late; some are always on their way."""
    numbers = count(first)
    waiting = [pool.apply_async(task, (seed, next(numbers))) for _ in range(2 * processes)]
    while True:
        try:
            yield waiting.pop(0).get(None if until == inf else max(0.0, until - time.perf_counter()))
        except TimeoutError:
            return
        waiting.append(pool.apply_async(task, (seed, next(numbers))))


def properties(pairs: int, seed: int, processes: int, first: int = 0, stop_s: float = inf) -> int:
    begin, total = time.perf_counter(), Tally()
    told = 0
    for number, total in enumerate(tasks(pairs, seed, processes, first, stop_s), first + 1):
        for found in total.found[told:]:  # at once: a long run may be ended
            print(found, file=sys.stderr)
        told = len(total.found)
        print(f"{len(total.pairs):,} pairs, {len(total.found)} wrong, {number} tasks, {time.perf_counter() - begin:.0f} s",
              file=sys.stderr)
    print(total.table())
    print(f"\nseed {seed}, {processes} processes, {time.perf_counter() - begin:.1f} s, {len(total.found)} judged wrongly")
    for found in total.found:
        print(found)
    if total.never_made:
        print(f"never exercised: {', '.join(total.never_made)}")
    return int(bool(total.found or total.never_made))


def mutants(write: bool) -> int:
    begin = time.perf_counter()
    unclean = {name: by for name, by in control().items() if by != "nothing"}
    found = caught()
    print(table(found))
    survived = [c for c in found if c.survived]
    print(f"\n{len(found)} mutants, {len(survived)} survived; control {unclean or 'clean'}; "
          f"{time.perf_counter() - begin:.1f} s")
    if write:
        (ROOT / "docs" / "mutants.md").write_text(page(found), encoding="utf-8")
    return int(bool(survived or unclean))


def bugs(write: bool) -> int:
    text = bugs_page(found := [replay(bug) for bug in BUGS])
    print(text)
    if write:
        (ROOT / "docs" / "hazards.md").write_text(text, encoding="utf-8")
    return int(any(r.mended or not r.device for r in found))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pairs", type=int, default=5000, help="pairs of a program and a schedule to judge")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, metavar="N", help="begin with this task: a run that was ended goes on")
    parser.add_argument("--stop", type=float, default=inf, metavar="S", help="seconds after which no task counts any more")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--mutants", action="store_true", help="put defects into the product instead")
    parser.add_argument("--bugs", action="store_true", help="replay the bugs in pipelines instead")
    parser.add_argument("--write", action="store_true", help="with --mutants or --bugs: write the page of the documentation")
    chosen = parser.parse_args()
    if chosen.bugs:
        return bugs(chosen.write)
    return mutants(chosen.write) if chosen.mutants else properties(
        chosen.pairs, chosen.seed, chosen.processes, chosen.first, chosen.stop)


if __name__ == "__main__":
    sys.exit(main())
