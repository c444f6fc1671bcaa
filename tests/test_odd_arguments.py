"""Whatever is passed to what users hold, they read one of the package's own errors, and a short one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from inspect import signature
from typing import Any

import numpy as np
import pytest

import explorer as ex
from tests.programs import row_sum

QUICK: dict[str, Any] = {"device": "cpu", "time": False, "ragged": False, "seeds": 1}
S = row_sum.schedule(M=5, N=8)


class Unspeakable:
    """What cannot say what it is."""

    def __repr__(self) -> str:
        raise RuntimeError


ODD = {
    "none": None, "negative": -1, "fraction": 2.5, "nan": math.nan, "infinity": math.inf, "huge": 10**40, "number": np.int64(3),
    "nothing": "", "long": "a" * 10_000, "bytes": b"k",
    "scalar array": np.array(3), "array": np.array([1, 2]), "empty": np.array([]),
    "list": ["k"], "dict": {"k": 1}, "set": {1}, "object": object(), "unspeakable": Unspeakable(), "type": int, "module": ex,
    "schedule": S, "program": row_sum, "surrogate": "\ud800",
}  # fmt: skip
OF_A_SCHEDULE = ("apply", "try_step", "counterexample", "moves", "undo", "replay", "module", "kernel", "compile", "script",
                 "to_json", "share")  # fmt: skip
OPTIONS = ("device", "time", "repeats", "l2", "ragged", "ragged_sizes", "checked", "seeds", "seed", "reference", "archs", "gpu",
           "budget", "progress", "again")  # fmt: skip
PLOTS = ("domain", "memory", "fragments", "pipeline", "timeline", "roles", "ablation", "legality", "roofline", "occupancy",
         "partials", "dependences")


CALLED = ("reference", "progress", "again", "watch")
"""Options that are functions: what a function of the user's raises is the user's."""


def passed() -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """What users call, with one odd argument."""
    for name in OF_A_SCHEDULE:
        yield f"s.{name}(…)", getattr(S, name)
        yield f"s.{name}('k', …)", lambda odd, name=name: getattr(S, name)("k", odd)
    yield "s.at(M=…)", lambda odd: S.at(M=odd)
    yield "s.at(…)", lambda odd: S.at(*[odd])
    yield "p.at(M=…)", lambda odd: row_sum.at(M=odd, N=3)
    yield "p.at(…)", lambda odd: row_sum.at(*[odd])
    yield "p.load(…)", row_sum.load
    yield "p.schedule(M=…)", lambda odd: row_sum.schedule(M=odd, N=3)
    yield "s.run(…, …)", lambda odd: S.run(*[{"x": odd}, odd])
    for name in OPTIONS:
        yield f"s.run({name}=…)", lambda odd, name=name: S.run(**{**QUICK, name: odd})
    for name in ("device", "trials", "seed", "cancel", "watch"):
        yield f"s.search({name}=…)", lambda odd, name=name: S.search(**{"device": "cpu", "trials": 1, name: odd})
    for name in PLOTS:
        yield f"s.plot.{name}(…)", getattr(S.plot, name)
        yield f"s.plot.{name}(…, …)", lambda odd, name=name: getattr(S.plot, name)(odd, odd)
        for option in (p.name for p in signature(getattr(S.plot, name)).parameters.values() if p.kind is p.KEYWORD_ONLY):
            yield f"s.plot.{name}({option}=…)", lambda odd, name=name, option=option: getattr(S.plot, name)(**{option: odd})
    for name in ("auto", "default", "stitch", "stitching", "edges"):
        yield f"ex.strategies.{name}(…)", getattr(ex.strategies, name)
        yield f"ex.strategies.{name}(s, …)", lambda odd, name=name: getattr(ex.strategies, name)(S, odd)
    for name in ("explore", "compare", "gpu", "help", "program", "sizes"):
        yield f"ex.{name}(…)", getattr(ex, name)
    yield "ex.compare(s, …)", lambda odd: ex.compare(S, odd)
    yield "ex.explore(s, …)", lambda odd: ex.explore(S, odd)
    yield "ex.workloads.get(…)", ex.workloads.get


@pytest.mark.parametrize(("call", "ask"), [pytest.param(c, a, id=c) for c, a in passed()])
def test_odd_arguments_are_answered(call: str, ask: Callable[[Any], Any]) -> None:
    wrong: list[str] = []
    for name, odd in ODD.items():
        if name == "type" and any(f"({option}=" in call for option in CALLED):
            continue
        try:
            ask(odd)
        except ex.ExplorerError as error:
            if len(error.what) > 500:
                wrong.append(f"{name}: a message of {len(error.what):,} characters")
        except Exception as error:
            wrong.append(f"{name}: {type(error).__name__}: {error}"[:200])
    assert not wrong, "\n".join([call, *wrong])
