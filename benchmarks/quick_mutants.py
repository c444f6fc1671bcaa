"""Which share of the mutants ``make quick`` notices: writes ``results/quick_mutants.md``.

``python -m benchmarks.quick_mutants`` collects the quick tests once, and then, for each mutant, runs them in a child process that
has the mutant until one fails.  The mutants are those of ``tests/mutants/mutants.py`` that change the package, and one for each
rule of ``tests/mutants/text.py``: every text that is emitted has that error, in the middle one of the places where it can be.
``--tests`` takes other files or folders than all quick tests; ``--limit`` ends the tests of one mutant after so many seconds of
processor time, and counts it as not noticed.  It needs Linux (``fork``).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from explorer.kernel.module import CudaModule  # noqa: E402
from tests.mutants.mutants import MUTANTS  # noqa: E402
from tests.mutants.patches import Patch, after, patched  # noqa: E402
from tests.mutants.text import RULES, text_mutants  # noqa: E402

PAGE = ROOT / "benchmarks" / "results" / "quick_mutants.md"
HEAD = """# What `make quick` notices

A mutant is an error put into the package for the length of one run of the quick tests (`python -m pytest -m "not slow"`).  The
first test that fails has noticed it.
"""
HARNESS = "the harness:"


@dataclass(frozen=True)
class Injected:
    """An error that every test of a run meets."""

    part: str
    breaks: str
    patches: tuple[Patch, ...]


@dataclass(frozen=True)
class Outcome:
    """What the quick tests said: the test that failed (or nothing), and processor time until then."""

    by: str
    cpu_s: float


def mutants() -> list[Injected]:
    """Those that change the package, each once."""
    judge = {m.patches: Injected(m.part, m.breaks, m.patches) for m in MUTANTS if m.patches}
    return [*judge.values(), *(Injected("every text", kind, (_everywhere(kind),)) for kind in RULES)]


def _everywhere(kind: str) -> Patch:
    """Every module that is emitted gets the error."""

    def wrong(module: CudaModule, *_: Any) -> CudaModule:
        found = [m for m in text_mutants(module) if m.kind == kind] if 'extern "C"' in module.text else []
        return replace(module, text=found[len(found) // 2].text) if found else module

    return Patch("explorer.kernel.emit", "CudaModule", after(wrong))


class Trial:
    """A plugin of pytest that runs what was collected once for each mutant, and once without one."""

    def __init__(self, tried: Sequence[Injected], limit_s: float) -> None:
        self.tried, self.limit_s, self.outcomes = tried, limit_s, dict[Injected | None, Outcome]()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In the place of pytest's own loop."""
        for mutant in (None, *self.tried):
            self.outcomes[mutant] = outcome = self._child(session, mutant)
            name = f"{mutant.part}: {mutant.breaks}" if mutant else "without a mutant"
            print(f"{outcome.cpu_s:6.1f} s  {outcome.by or '-':60s} {name}", file=sys.stderr, flush=True)
        return True

    def _child(self, session: pytest.Session, mutant: Injected | None) -> Outcome:
        reading, writing = os.pipe()
        if (child := os.fork()) == 0:
            os.close(reading)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            by, start = "", sum(os.times()[:4])
            try:
                with patched(*(mutant.patches if mutant else ())):
                    by = self._first_failure(session, start + self.limit_s if mutant else float("inf"))
            except BaseException as error:
                by = f"{HARNESS} {error!r}"
            finally:
                os.write(writing, f"{sum(os.times()[:4]) - start} {by}".encode())
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as answer:
            seconds, _, by = answer.read().partition(" ")
        os.waitpid(child, 0)
        return Outcome(by, float(seconds))

    def _first_failure(self, session: pytest.Session, end: float) -> str:
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                return item.nodeid
            if sum(os.times()[:4]) > end:
                return ""
        return ""


def page(found: dict[Injected | None, Outcome]) -> str:
    """The committed page."""
    tried = {m: o for m, o in found.items() if m is not None}
    noticed = sum(bool(o.by) for o in tried.values())
    rows = [f"| {m.part} | {m.breaks} | {f'`{o.by}`' if o.by else 'nothing'} | {o.cpu_s:.1f} |" for m, o in tried.items()]
    return "\n".join([HEAD, f"{len(tried)} mutants, {noticed} noticed: {noticed / len(tried):.0%}.  Without a mutant all "
                      f"pass, in {found[None].cpu_s:.0f} s of processor time.", "",
                      "| in | error | noticed first by | s |", "|---|---|---|---:|", *rows, "",
                      "Made by `python -m benchmarks.quick_mutants`.", ""])  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tests", nargs="*", default=[], help="files or folders; without, all, and the page is written")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of processor time for one mutant")
    chosen = parser.parse_args()
    trial = Trial(mutants(), chosen.limit)
    pytest.main(["-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist", *chosen.tests],
                plugins=[trial])
    if odd := [o.by for m, o in trial.outcomes.items() if o.by and (m is None or o.by.startswith(HARNESS))]:
        print(f"{odd[0]}: this is no mutant's fault", file=sys.stderr)
        return 2
    text = page(trial.outcomes)
    print(text) if chosen.tests else PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
