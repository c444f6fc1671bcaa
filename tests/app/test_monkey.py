"""Random requests: nothing raises, every answer fits the protocol, and the script always rebuilds what is shown."""

from __future__ import annotations

import random
from typing import Any

import pytest

from explorer.app.explore import session_of

from .front import Front, front

KINDS = ("select", "apply", "undo", "redo", "goto", "preview", "check", "rename", "script", "sizes", "cancel", "device", "export",
         "compare", "search", "search_stop", "search_apply", "junk")
WEIGHTS = (4, 6, 3, 2, 2, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1)


def anything(rng: random.Random, f: Front, kind: str) -> dict[str, Any]:
    """Fields for a request, right and wrong ones, from what the front end can see."""
    nodes = [r["node"] for r in f.panes["loops"] if r["node"]]
    states = [s["id"] for s in f.panes["history"]["states"]]
    moves = f.panes["moves"]["moves"]
    calls = [m["call"] for m in moves if m["call"]]
    calls += [h["call"] for m in moves if m["problem"] for h in m["problem"]["hints"] if h["call"]]
    call = rng.choice([*calls, "split('i', 2)", "reverse('k')", "nonsense", "split('i'", "bind('i', 'thread.x')"])
    if kind == "script":
        lines = f.session.script.splitlines()
        if len(lines) > 1 and rng.random() < 0.5:
            lines.pop(rng.randrange(1, len(lines)))
        return {"text": "\n".join(lines + rng.choice([[], ["s = s.reverse('i')"], ["import os"], ["# remark"], ["s = s.("]]))}
    size = rng.choice([name for name, _ in f.session.schedule.source.sizes])
    return {
        "select": {"node": rng.choice([*nodes, None, "zz"])}, "apply": {"call": call}, "preview": {"call": call},
        "check": {"name": rng.choice(["split", "tile", "stage", "zz"]),
                  "arguments": {"loop": rng.choice(nodes), "factor": rng.choice([2, "3", "x"])}},
        "goto": {"state": rng.choice([*states, "h999"])},
        "rename": {"state": rng.choice(states), "title": rng.choice(["", "mine"])},
        "sizes": {"sizes": {size: rng.choice([3, 5, 8, -1, "q"])}}, "device": {"device": rng.choice(["cpu", "cuda", "x"])},
        "export": {"what": rng.choice(["share", "json", "script", "zip"])}, "compare": {"a": rng.choice(states), "b": "h0"},
        "search": {"trials": rng.choice([0, "x", None])}, "search_apply": {"trial": rng.choice([0, -1, "x"])},
    }.get(kind, {})


@pytest.mark.parametrize(("seed", "name", "sizes"), [
    (1, "softmax", {"M": 6, "N": 12}), (2, "matmul", {"M": 6, "N": 8, "K": 8}), (3, "gauss_seidel", {"T": 3, "H": 6, "W": 7}),
    (4, "sum_rows", {"M": 5, "N": 16})])
def test_a_thousand_random_requests(seed: int, name: str, sizes: dict[str, int]) -> None:
    rng, f = random.Random(seed), front(name, **sizes)
    program = f.session.schedule.definition
    f.ask("ready", wait=True)
    for number in range(250):
        kind = rng.choices(KINDS, WEIGHTS)[0]
        for message in f.ask(kind, wait=kind == "compare" or (kind == "select" and rng.random() < 0.3), **anything(rng, f, kind)):
            if message["kind"] == "problem":
                assert "explorer itself" not in message["problem"]["what"], (number, kind, message)
        if number % 25 == 24:
            shown = f.session.schedule
            for text in (f.session.script, shown.share(), shown.to_json()):
                again = session_of(program, text).schedule
                assert again.plan == shown.plan
                assert again.steps == shown.steps
    assert len(f.session.history.states) > 10
    assert f.dispatcher.wait()
    f.dispatcher.close()
