"""Random moves: any transformation, by its own candidates or with arguments drawn from the kinds of its fields."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any

from explorer.ir.plan import Plan
from explorer.transforms.base import Transform, catalogue

COPYING = 0.25
"""Share of moves that make copies: of arrays and of copies, wide, early, in registers, running ahead."""
WEIGHT = {"bind": 5, "stage": 4, "contract": 3, "pipeline": 3, "collect": 2, "rfactor": 2, "vectorize": 2}
GROUND = {"pipeline": "stage", "collect": "bind", "vectorize": "split", "accumulate": "contract", "join": "launch",
          "swizzle": "stage"}  # fmt: skip
"""What prepares the ground for a transformation that has nothing to do in a program as written."""
SMALL = (1, 2, 2, 3, 3, 4, 5, 8)
NODES = 6
"""Nodes that are asked for candidates before a move is given up."""


def offered(kind: type[Transform], plan: Plan, pick: random.Random) -> Transform | None:
    """One of the candidates at some node, or None."""
    nodes = sorted(plan.ids)
    for node in pick.sample(nodes, min(NODES, len(nodes))):
        found = list(kind.candidates(plan, node))
        if kind.name == "bind":
            found = [s for s in found if "thread" in str(s) or "block" in str(s) or pick.random() < 0.3] or found
        if found:
            return pick.choice(found)
    return None


def random_step(plan: Plan, pick: random.Random, focus: str) -> Transform | None:
    """A move somewhere in the plan, or None where the drawn transformation has nothing to offer.

    Parameters
    ----------
    plan : Plan
    pick : random.Random
    focus : str
        A transformation that this chain is to exercise: it, or what prepares its ground, is drawn a third of the time.
    """
    known = catalogue()
    if pick.random() < 0.35:
        if (step := offered(known[focus], plan, pick)) is not None:
            return step
        if focus in GROUND:
            return offered(known[GROUND[focus]], plan, pick)
    if pick.random() < COPYING and (step := copying(plan, pick)) is not None:
        return step
    bound = any(x.is_thread for x in plan.loops.values())
    weights = [WEIGHT.get(name, 1) for name in known]
    for i, name in enumerate(known):
        if name == "pipeline":
            weights[i] = 6 if plan.copies else 0
        if name == "bind" and bound:
            weights[i] = 2
    kind = known[pick.choices(list(known), weights)[0]]
    return offered(kind, plan, pick) if pick.random() < 0.6 else drawn(kind, plan, pick)


def copying(plan: Plan, pick: random.Random) -> Transform | None:
    """A copy of what some leaf reads, copies themselves included, at a loop around it; or copies that run ahead."""
    known = catalogue()
    if plan.copies and pick.random() < 0.4:
        step = apart(plan, pick) if pick.random() < 0.4 else offered(known["pipeline"], plan, pick)
        if step is not None:
            return step
    readers = [(leaf, above) for leaf, above, _ in plan.leaves if above and plan.statement_of[leaf.statement].reads]
    if not readers:
        return None
    copied = [(leaf, above) for leaf, above in readers if leaf.statement in {c.name for c in plan.copies}]
    leaf, above = pick.choice(copied if copied and pick.random() < 0.4 else readers)
    values = {"array": pick.choice(plan.statement_of[leaf.statement].reads).array, "at": pick.choice(above).id,
              "space": pick.choice(("shared", "shared", "register")), "vector": pick.choice((1, 1, 2, 4, 4, 8, 16)),
              "pad": pick.choice((0, 0, 0, 1)), "fill": pick.random() < 0.8, "early": pick.random() < 0.3,
              "threads": pick.random() < 0.8, "read": pick.choice((-1, -1, -1, 0, 1)), "whole": pick.random() < 0.1}  # fmt: skip
    if values["space"] == "register":
        values |= {"pad": 0, "vector": 1}
    else:
        values |= {"engine": pick.choice(("thread", "thread", "async", "bulk")), "swizzle": pick.choice((0, 0, 32, 64, 128))}
        values |= {"pad": 0} if values["swizzle"] else {}
        boxes = values["engine"] == "bulk"
        values |= {"pad": 0, "vector": 1, "threads": True} if boxes else {"axes": pick.choice(((), (), (1, 0)))}
    return known["stage"](**values)


def apart(plan: Plan, pick: random.Random) -> Transform | None:
    """One copy of a loop that runs ahead by itself, or across the iterations of the loop around it; None if there is none."""
    names = {c.name for c in plan.copies}
    found = [(leaf.statement, above) for leaf, above, _ in plan.leaves if above and leaf.statement in names]
    if not found:
        return None
    name, above = pick.choice(found)
    loops = [x.id for x in above if x.role in ("seq", "unroll")]
    if not loops:
        return None
    at = pick.randrange(len(loops))
    across = loops[at - 1] if at and pick.random() < 0.5 else ""
    copies = (name,) if pick.random() < 0.7 else ()
    return catalogue()["pipeline"](loop=loops[at], stages=pick.choice((2, 2, 3, 4)), copies=copies,
                                   asynchronous=not across and pick.random() < 0.7, across=across)


def drawn(kind: type[Transform], plan: Plan, pick: random.Random) -> Transform:
    """The transformation with arguments drawn by the kinds of its fields; many of them do not fit."""
    values: dict[str, Any] = {}
    for f in fields(kind):  # type: ignore[arg-type]
        if f.default is MISSING or pick.random() < 0.35:
            value = _value(f.metadata, plan, pick, values)
            if value is not None:
                values[f.name] = tuple(value) if isinstance(value, list) else value
    return kind(**values)


def _value(metadata: Any, plan: Plan, pick: random.Random, before: dict[str, Any]) -> Any:
    """A value for a field."""
    kind = metadata["kind"]
    loops, leaves = sorted(plan.loops), sorted(leaf.id for leaf, _, _ in plan.leaves)
    arrays = sorted({*plan.array_of, *plan.buffer_of})
    if kind == "int":
        low, high = metadata.get("min", -3), metadata.get("max", 8)
        return max(low, min(high, pick.choice((*SMALL, -1, -2))))
    if kind == "bool":
        return pick.random() < 0.5
    if kind == "choice":
        return pick.choice(metadata["choices"])
    if kind == "ints":
        count = len(next((v for v in before.values() if isinstance(v, tuple)), (0,)))
        return [pick.choice(SMALL) for _ in range(count)]
    if kind == "loops":
        return _nest(plan, pick) if loops else []
    if kind == "arrays":
        return pick.sample(arrays, min(len(arrays), pick.choice((1, 1, 2))))
    if kind == "name":
        return pick.choice(("", "fresh", *loops[:1]))
    among = {"loop": loops, "leaf": leaves + arrays, "array": arrays, "node": [*loops, *leaves],
             "kernel": [k.id for k in plan.kernels]}[kind]
    return pick.choice(among) if among else "nothing"


def _nest(plan: Plan, pick: random.Random) -> list[str]:
    """Loops around one leaf, a contiguous part mostly in order; or any loops."""
    above = pick.choice(plan.leaves)[1] if plan.leaves else ()
    names = [x.id for x in above] or sorted(plan.loops)
    first = pick.randrange(len(names))
    chosen = names[first : first + pick.choice((1, 2, 2, 3))]
    if pick.random() < 0.25:
        pick.shuffle(chosen)
    return chosen


def repairs(plan: Plan, leaf: str) -> Iterator[Transform]:
    """Ways to discharge the obligation of an update."""
    statement = next((x.statement for x, _, _ in plan.leaves if x.id == leaf), "")
    for name in (leaf, statement):
        for how in ("shuffle", "shared", "atomic", "kernel", "last_block", "handoff", "grid", "cluster"):
            yield catalogue()["collect"](name, how)  # type: ignore[call-arg]
