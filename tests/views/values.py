"""One value of every class that has a picture, from real schedules; runs are made up so that nothing is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import explorer as ex
from examples.matmul import schedule as matmul
from examples.softmax import schedule as softmax_schedule
from examples.softmax import softmax
from explorer.gpu.roofline import roofline
from explorer.gpu.spec import default_gpu
from explorer.ir.dtype import DTYPES
from explorer.run.counterexample.result import ON_DEVICE, Counterexample
from explorer.run.kernel import Compiled
from explorer.run.result import Comparison, Evidence, Run
from explorer.run.search.result import SearchResult, Trial
from explorer.run.timing import Samples, Timing, compare
from explorer.run.verify.outputs import Check, Tolerance

GOOD = Check("y", 8, 8, 0, 1e-7, 0.25, Tolerance(DTYPES["f32"], 9, 6e-8, 4e-7, True), "the loops as written")
BAD = replace(GOOD, wrong=1, index=(3,), got=1.0, expected=2.0)


def refused(move: Callable[[], object]) -> ex.ExplorerError:
    try:
        move()
    except ex.ExplorerError as error:
        return error
    raise AssertionError("it was not refused")


def timing(*samples: float) -> Timing:
    return Timing.of(Samples(samples, l2="cold", overhead_us=2.0))


def run(**fields: Any) -> Run:
    floor = roofline(default_gpu(), 10**8, 10**6)
    given = {"program": "softmax", "device": "H200", "sizes": (("M", 8),), "checks": (GOOD,), "bytes": 10**8, "flops": 10**6,
             "timings": {"cold": timing(*(50 + k / 7 for k in range(12)))}, "roofline": floor,
             "evidence": Evidence(proved=True, compiled=("sm_90",), gpu="H200", timed="H200, cold L2")}
    return Run(**{**given, **fields})


class CompiledTwice(Compiled):
    """A result with its rows given, because compiling is not what is tested."""

    rows = (("sm_90", "softmax", "H200", 32, 0, 16, "100%", "warps"),)  # type: ignore[assignment]


def searched(schedule: Any) -> SearchResult:
    """Two variants that were timed, and one that failed."""
    slow, quick = (timing(*(start + k / 7 for k in range(12))) for start in (30, 20))
    trials = (Trial("auto: rows", (), 21.0, slow, 3), Trial("more <threads>", schedule.steps, None, quick, 3),
              Trial("a wide one", (), 19.0, None, 0, "wrong: y[3] is 4 & not 5"))
    return SearchResult("softmax", schedule.source.sizes, "NVIDIA H200", "CUDA events", schedule, trials, 1, compare(slow, quick),
                        12.5, "all were measured", True, ("a note",))


def executed(finding: Any) -> Counterexample:
    """A refused step whose order computes a wrong cell."""
    cells = (("y[0, 0]", "1", "1", "right"), ("y[0, 1]", "7", "<3>", "wrong"), ("y[1, 0]", "2", "2", "right"))
    return Counterexample("fuse('k', 'j')", True, "at M=2, N=2, y[0, 1] is 7 and should be <3>; 1 of 4 cells is wrong",
                          (("M", 2), ("N", 2)), "y", (0, 1), "7", "<3>", cells, finding, ON_DEVICE, "threads & blocks in order",
                          "the CPU device's checks stop the text", matmul().cuda, (("x", "x[0, 0] = 1, x[0, 1] = 2"),),
                          (("S2[0, 0]", "1"), ("… 4 more", ""), ("S5[0, 1]", "<3>")))  # fmt: skip


MORE: list[Callable[[], Any]] = []


def value(make: Callable[[], Any]) -> Callable[[], Any]:
    """Have what a function makes among the values, under its name."""
    MORE.append(make)
    return make


@cache
def values() -> dict[str, Any]:
    plain, tuned = softmax.schedule(M=64, N=1000), softmax_schedule(M=64, N=1000, threads=128)
    spread = plain.bind("i", "block.x").bind("k", "thread.x")
    moves = plain.moves("k")
    crossing = refused(lambda: plain.fuse("k", "j"))
    faster = run(timings={"cold": timing(*(25 + k / 7 for k in range(12)))})
    refusal = ex.CompileError("the text was refused", why="line 3: expected a <type>")
    return {
        "definition": softmax, "program": plain.source, "plain": plain, "tuned": tuned, "pipelined": matmul(), "to do": spread,
        "moves": moves, "move that applies": moves[0], "move that does not": moves[-1], "verdict": moves[-1].verdict,
        "dependences": plain.dependences, "finding": crossing.finding, "illegal": crossing,
        "counterexample": executed(crossing.finding), "not caught": Counterexample("fuse('i', 'k')", False, "no cell is wrong"),
        "obligation": refused(lambda: spread.cuda), "wrong name": refused(lambda: plain.split("q", 4)), "kernel": tuned.kernel(),
        "pass": tuned.ir(after="vectorize"),
        "facts": matmul().facts, "compiled": CompiledTwice("softmax", (), {"sm_75": refusal}), "run": run(),
        "wrong run": run(checks=(BAD,), faults=("at N=7: race",)),
        "evidence": run().evidence, "comparison": Comparison.of(run(), faster), "search": searched(tuned),
        **{make.__name__: make() for make in MORE},
    }
