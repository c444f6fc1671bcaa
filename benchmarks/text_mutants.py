"""Errors put into the emitted text of every workload, and what notices each: writes ``results/text_mutants.md``.

``python -m benchmarks.text_mutants`` makes every mutant that the rules of ``tests/mutants/text.py`` find in the kernels of all
workloads, by the default strategy and by the automatic one, runs each as a run is checked, and exits with 1 if one passes for
right.  It takes half an hour on one core.  ``--rows FILE`` keeps what is known of each text there, and goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from explorer import workloads  # noqa: E402
from explorer.run.inputs.exact import KINDS  # noqa: E402
from tests.mutants.text import RULES  # noqa: E402
from tests.mutants.text_judgement import Noticed, control, judged  # noqa: E402
from tests.mutants.text_subject import STRATEGIES, subject  # noqa: E402

PAGE = ROOT / "benchmarks" / "results" / "text_mutants.md"
HEAD = """# Mutants of the emitted text

One small error in one place of a kernel, for every place that the rules of `tests/mutants/text.py` find, in the kernels of all
workloads by the default strategy (four threads to a block, sizes that nothing divides), by the automatic one at such sizes, and
by the automatic one at sizes that divide.  Each is run as a schedule is: on the CPU device in two orders of threads, against the
float64 loops on seeded normal inputs, then on the exact inputs.  The first that notices it is counted.
"""
SAME = """## What computes the same

Outputs have equal bits on six sets of probes (many magnitudes, infinities, NaN, zeros of both signs, integers) in three orders
of threads, and the line shows why.  Two reasons stand for other roundings of the same value, which pass every check: another
order of a sum, and an identity of algebra.

| why | mutants | for example | with the mutant |
|---|---:|---|---|"""
Rows = dict[tuple[str, str], list[Noticed]]
"""By workload and strategy."""


def swept(names: Sequence[str], kept: Path | None) -> Rows:
    """Every mutant of these workloads."""
    rows: Rows = {}
    lines = kept.read_text().splitlines() if kept and kept.exists() else []
    for line in map(json.loads, lines):
        rows[line["workload"], line["strategy"]] = [Noticed(**m) for m in line["mutants"]]
    for name in names:
        for strategy in STRATEGIES:
            if (name, strategy) in rows:
                continue
            what = subject(name, strategy)
            assert not control(what), (name, strategy, control(what))
            found = rows[name, strategy] = judged(what, what.mutants)
            survived = sum(m.survived for m in found)
            print(f"{name}, {strategy}: {len(found)} mutants, {survived} survived", file=sys.stderr, flush=True)
            if kept:
                with kept.open("a") as file:
                    file.write(json.dumps({"workload": name, "strategy": strategy, "mutants": [asdict(m) for m in found]}) + "\n")
    return {key: rows[key] for key in ((name, strategy) for name in names for strategy in STRATEGIES)}


def page(rows: Rows) -> str:
    """The committed page."""
    every = [m for found in rows.values() for m in found]
    same = [m for m in every if m.why]
    survived = [(key, m) for key, found in rows.items() for m in found if m.survived]
    sharp = sum(m.by in KINDS.values() for m in every)
    by_kind = {k: [m for m in every if m.kind == k] for k in RULES}
    by_workload = {n: [m for (w, _), f in rows.items() if w == n for m in f] for n in dict.fromkeys(w for w, _ in rows)}
    noticed = len(every) - len(same) - len(survived)
    lines = [HEAD, f"{len(every):,} mutants: {noticed:,} noticed, {len(same):,} compute the same, {len(survived):,} survive.  "
             f"{sharp:,} are noticed by exact inputs alone.", "", "## By kind of error", "", *_table("kind", by_kind), "",
             "## By workload", "", *_table("workload", by_workload), "", SAME]  # fmt: skip
    for why in dict.fromkeys(m.why for m in same):
        several = [m for m in same if m.why == why]
        lines.append(f"| {why} | {len(several)} | {_code(several[0].was)} | {_code(several[0].now)} |")
    if survived:
        lines += ["", "## What survives", "", "| in | kind | line | with the mutant |", "|---|---|---|---|"]
        lines += [f"| {w}, {s} | {m.kind} | {_code(m.was)} | {_code(m.now)} |" for (w, s), m in survived]
    return "\n".join([*lines, "", "Made by `python -m benchmarks.text_mutants`.", ""])


def _table(head: str, groups: dict[str, list[Noticed]]) -> list[str]:
    checks = ("the compiler", "CPU device", "seeded normal inputs", *KINDS.values())
    columns = list(dict.fromkeys((*checks, "computes the same", "survives")))
    lines = [f"| {head} | mutants | {' | '.join(columns)} |", f"|---|{'---:|' * (len(columns) + 1)}"]
    for name, found in groups.items():
        counts = Counter("survives" if m.survived else m.by.partition(":")[0] or "computes the same" for m in found)
        lines.append(f"| {name} | {len(found)} | {' | '.join(str(counts[c] or '') for c in columns)} |")
    return lines


def _code(line: str) -> str:
    """A line in a table's cell, shortened."""
    short = line if len(line) <= 110 else f"{line[:107]}…"
    return f"`{short.replace('|', chr(92) + '|')}`"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--workload", action="append", help="this one alone, printed and not written")
    parser.add_argument("--rows", type=Path, help="keep what is known of each text in this file")
    chosen = parser.parse_args()
    rows = swept(chosen.workload or workloads.names(), chosen.rows)
    text = page(rows)
    if chosen.workload:
        print(text)
    else:
        PAGE.write_text(text, encoding="utf-8")
    survived = Counter(m.kind for found in rows.values() for m in found if m.survived)
    print(f"{sum(map(len, rows.values()))} mutants, {sum(survived.values())} survived {dict(survived) or ''}", file=sys.stderr)
    return int(bool(survived))


if __name__ == "__main__":
    sys.exit(main())
