"""Whether `auto` is ever slower than the default by counted facts: random programs of several nests, and all workloads.

``python benchmarks/never_worse.py --programs 200 --seed 0`` prints one row for each program: the prices of both plans
(:mod:`explorer.strategies.price`), their ratio, that of the rules of `auto` where nothing is held against the default, operations
over those of the program as written, busy threads, and seconds of planning; and exits with 1 if one of them is worse.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import explorer as ex  # noqa: E402
from explorer.errors import ProgramError  # noqa: E402
from explorer.ir.plan import initial  # noqa: E402
from explorer.strategies import auto, default  # noqa: E402
from explorer.strategies.auto import by_rules  # noqa: E402
from explorer.strategies.counts import work  # noqa: E402
from explorer.strategies.guard import WORSE  # noqa: E402
from explorer.strategies.price import price  # noqa: E402
from explorer.strategies.producers import GROWTH  # noqa: E402
from tests.properties.several import several_case  # noqa: E402
from tests.strategies.between_kernels import CASES  # noqa: E402

H200 = ex.gpu("H200")


def programs(count: int, seed: int) -> Iterator[tuple[str, ex.Schedule]]:
    """The programs that are looked at."""
    for name in ex.workloads.names():
        workload = ex.workloads.get(name)
        for kind, sizes in (("tiny", workload.tiny), ("typical", workload.typical)):
            yield f"{name} {kind}", workload.definition.schedule(**sizes)
    for name, (program, sizes) in CASES.items():
        yield name, program.schedule(**sizes)
    for number in range(count):
        try:
            yield f"random {number}", several_case(seed, number)
        except ProgramError as error:
            print(f"random {number}: {error.what}", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    worse = before = total = 0
    print(f"{'program':32s} {'auto µs':>10s} {'default':>10s} {'ratio':>7s} {'rules':>7s} {'work':>6s} {'busy':>10s} {'s':>8s}")
    for name, schedule in programs(chosen.programs, chosen.seed):
        begin = time.process_time()
        made = auto(schedule)
        took = time.process_time() - begin
        own, plain, rules = (price(s.plan, H200) for s in (made, default(schedule), by_rules(schedule, H200)))
        ratio, unheld = own.total_us / plain.total_us, rules.total_us / plain.total_us
        growth = work(made.plan) / max(1, work(initial(schedule.source)))
        bad = ratio > WORSE or growth > GROWTH or not made.judgement.emittable
        worse, before, total = worse + bad, before + (unheld > WORSE), total + 1
        print(f"{name:32s} {own.total_us:10.4g} {plain.total_us:10.4g} {ratio:7.3f} {unheld:7.3g} {growth:6.2f} {own.busy:10,} "
              f"{took:8.2f}{'  worse' if bad else ''}", flush=True)
    print(f"\n{total} programs, {worse} worse than {WORSE} times the default; by the rules alone {before}")
    return int(bool(worse))


if __name__ == "__main__":
    sys.exit(main())
