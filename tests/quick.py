"""Which tests are slow: those that ``tests/slow.txt`` lists, with the processor time that they took when it was written.

``make quick`` leaves them out.  The list is made from a measurement of all tests, and not by hand::

    python -m pytest -n 0 --cpu-times /tmp/times.jsonl
    python -m tests.quick /tmp/times.jsonl

After new tests it is enough to measure those that are not listed (``-m "not slow"``) and to give ``--add``: what is listed
stays so.

Test functions (with all their parameters) stay quick in the order of their processor time, until these sum up to `BUDGET_S`.
Files of which nothing is quick are listed as a whole: they are not even imported.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests" / "slow.txt"
BUDGET_S = 45.0
"""Processor time of all quick tests: about half a minute on two cores, beside finding and importing them."""
WORTH_MEASURING = 2.0
"""Times the budget, on a clock, from which a run of the quick tests asks for a new measurement."""
ALWAYS = ("tests/browser/", "tests/test_notebooks.py")
"""Slow by nature: a browser, and kernels of notebooks."""
HEAD = "# Written by python -m tests.quick: seconds of processor time, and the test (all its parameters) or file that is slow.\n"


@cache
def listed() -> dict[str, float]:
    """The slow tests and files, with their seconds."""
    rows = [line.split() for line in LIST.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return {name: float(seconds) for seconds, name in rows}


def is_slow(name: str, slow: Mapping[str, float]) -> bool:
    """Whether a test, by its id, is among them."""
    function = name.partition("[")[0]
    return function in slow or is_slow_file(function.partition("::")[0], slow)


def is_slow_file(name: str, slow: Mapping[str, float]) -> bool:
    """Whether a whole file is."""
    return name in slow or name.startswith(ALWAYS)


def cpu_s() -> float:
    """Processor time of this process, of its children and theirs, ended or not (those that run are seen on Linux alone)."""
    return sum(os.times()[:4]) + sum(map(_of_running, _children("self")))


def _children(process: str) -> list[str]:
    """Ids of the processes that a process has started and that still run."""
    with contextlib.suppress(OSError):
        return [child for task in Path(f"/proc/{process}/task").iterdir() for child in (task / "children").read_text().split()]
    return []


def _of_running(process: str) -> float:
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") + sum(map(_of_running, _children(process)))
    return 0.0


def chosen(times: Mapping[str, float], budget_s: float = BUDGET_S) -> dict[str, float]:
    """The slow functions and files, from the processor time of each test by its id."""
    functions: dict[str, float] = defaultdict(float)
    for name, seconds in times.items():
        functions[name.partition("[")[0]] += seconds
    slow, spent = dict[str, float](), 0.0
    for name, seconds in sorted(functions.items(), key=lambda row: (row[1], row[0])):
        spent += seconds
        if spent > budget_s or name.startswith(ALWAYS):
            slow[name] = seconds
    files: dict[str, list[str]] = defaultdict(list)
    for name in functions:
        files[name.partition("::")[0]].append(name)
    for file, names in files.items():
        if all(name in slow for name in names):
            slow[file] = sum(slow.pop(name) for name in names)
    return slow


def main() -> None:
    """Write the list."""
    *options, measured = sys.argv[1:]
    before = listed() if options == ["--add"] else {}
    times: dict[str, float] = defaultdict(float)
    for line in Path(measured).read_text(encoding="utf-8").splitlines():
        name, seconds = json.loads(line)
        times[name] += seconds
    rows = sorted((before | chosen(times)).items(), key=lambda row: row[0])
    LIST.write_text(HEAD + "".join(f"{seconds:6.1f} {name}\n" for name, seconds in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
