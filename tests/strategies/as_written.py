"""Random memory-bound programs in the styles in which people write them: the same values, in other nests.

A value is a matrix, one number for each row or for each column.  It is an output or a temporary; its start, its updates and what
finishes it stand in one nest or in several; nests over rows stand apart or share one loop over the rows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

INDEX = {"all": "i, k", "row": "i", "column": "k"}
EXTENTS = {"all": "M, N", "row": "M", "column": "N"}
LOOPS = {"i": "M", "k": "N"}


@dataclass
class Chain:
    """A program that grows value by value.

    Attributes
    ----------
    pick : random.Random
    dtype : str
        Of the inputs.
    kinds : dict of str to str
        Values so far, and whether each is a matrix (``"all"``) or has one number per ``"row"`` or ``"column"``.
    lines : list of str
    """

    pick: random.Random
    dtype: str
    kinds: dict[str, str] = field(default_factory=lambda: {"x": "all", "w": "column", "c": "row"})
    lines: list[str] = field(default_factory=list)

    def read(self, *kinds: str) -> str:
        """An element of a value of one of these kinds."""
        name = self.pick.choice([n for n, kind in self.kinds.items() if kind in kinds])
        return f"{name}[{INDEX[self.kinds[name]]}]"

    def nest(self, loops: str, *body: str, depth: int = 0) -> None:
        """Lines under some loops, of which the first `depth` stand already."""
        for level, loop in enumerate(loops):
            if level >= depth:
                self.lines.append(f"{'    ' * (level + 1)}for {loop} in range({LOOPS[loop]}):")
        self.lines += [f"{'    ' * (len(loops) + 1)}{line}" for line in body]

    def mapped(self, name: str, shared: bool) -> None:
        """A value for each element."""
        one, other = self.read("all"), self.read("all", "row", "column")
        value = self.pick.choice((f"{one} - {other} * 0.25", f"ex.exp({one} * 0.125 - ex.abs({other}))", f"max({one}, {other})"))
        self.nest("ik", f"{name}[i, k] = {value}", depth=shared)
        self.kinds[name] = "all"

    def finished(self, name: str, shared: bool) -> None:
        """A value for each row, from others of the rows."""
        one, other = self.read("row"), self.read("row")
        value = self.pick.choice((f"ex.rsqrt({one} * {one} + 1.0)", f"{one} * 0.5 + {other}"))
        self.nest("i", f"{name}[i] = {value}", depth=shared)
        self.kinds[name] = "row"

    def reduced(self, name: str, kind: str, shared: bool) -> None:
        """A sum or a maximum for each row or column."""
        own, along = ("i", "k") if kind == "row" else ("k", "i")
        element, other = self.read("all"), self.read("all", kind)
        element = self.pick.choice((element, f"{element} * {other}", f"ex.abs({element})",
                                    f"({element} - {other} * 0.25) * ({element} - {other} * 0.25)"))
        y, largest = f"{name}[{own}]", self.pick.random() < 0.3
        start, update = (f"{y} = -ex.inf", f"{y} = max({y}, {element})") if largest else (f"{y} = 0.0", f"{y} += {element}")
        end = [] if largest or self.pick.random() < 0.5 else [f"{y} = {y} / {LOOPS[along]}"]
        style = "one nest" if shared else self.pick.choice(("one nest", "apart", "in the order of memory"))
        if style == "one nest":
            self.nest(own, start, depth=shared)
            self.nest(own + along, update, depth=1)
            self.nest(own, *end, depth=1)
        else:
            self.nest(own, start)
            self.nest(own + along if style == "apart" else "ik", update)
            if end:
                self.nest(own, *end)
        self.kinds[name] = kind

    def text(self) -> str:
        """The program: values that nothing reads are outputs, of the others some."""
        own = [n for n in self.kinds if n not in ("x", "w", "c")]
        used = {n for n in self.kinds for line in self.lines if f"{n}[" in line and not line.strip().startswith(f"{n}[")}
        out = [n for n in own if n not in used or self.pick.random() < 0.3]
        given = [f"{n}: ex.{self.dtype}[{EXTENTS[self.kinds[n]]}]" for n in ("x", "w", "c") if n in used]
        parameters = given + [f"{n}: ex.f32[{EXTENTS[self.kinds[n]]}]" for n in out]
        held = [f"    {n} = ex.local(ex.f32, {EXTENTS[self.kinds[n]]})" for n in own if n not in out]
        return "\n".join(["@ex.program", f"def chain({', '.join(parameters)}):", *held, *self.lines, ""])


def chain(seed: int) -> str:
    """A random chain of two to seven values."""
    pick = random.Random(seed)
    c = Chain(pick, pick.choice(("f16", "bf16", "f32")))
    shared = pick.random() < 0.4
    if shared:
        c.nest("i")
    kinds = ("all", "row", "row", "finish") + (() if shared else ("column",))
    for number in range(pick.randint(2, 7)):
        name, kind = f"v{number}", "row" if number == 0 else pick.choice(kinds)
        if kind == "all":
            c.mapped(name, shared)
        elif kind == "finish":
            c.finished(name, shared)
        else:
            c.reduced(name, kind, shared)
    return c.text()


OPERATIONS = {"sum": ("0.0", "{y} += {e}"), "max": ("-ex.inf", "{y} = max({y}, {e})"), "min": ("ex.inf", "{y} = min({y}, {e})"),
              "prod": ("1.0", "{y} *= {e} * 0.01 + 1.0")}


def reductions(seed: int) -> tuple[str, dict[str, int]]:
    """One to three reductions of an array of rank 1 to 4 over the same axes, and sizes."""
    pick = random.Random(seed)
    rank = pick.randint(1, 4)
    sizes = {n: pick.choice((1, 2, 3, 5, 8, 17, 64)) for n in "KLMN"[:rank]}
    axes = [a for a in range(rank) if pick.random() < 0.5] or [pick.randrange(rank)]
    loops = [f"{'r' if a in axes else 'p'}{a}" for a in range(rank)]
    kept, along = ([x for x in loops if x[0] == kind] for kind in "pr")
    own, back = ", ".join(kept) or "0", pick.sample(kept, len(kept))
    extents = ", ".join("KLMN"[int(x[1:])] for x in kept) or "1"
    ops = [pick.choice(list(OPERATIONS)) for _ in range(pick.randint(1, 3))]
    x = f"x[{', '.join(loops)}]"
    elements = [pick.choice((x, f"ex.abs({x})", f"{x} * {x}")) for _ in ops]
    updates = [OPERATIONS[op][1].format(y=f"y{n}[{own}]", e=e) for n, (op, e) in enumerate(zip(ops, elements, strict=True))]
    starts = [f"y{n}[{own}] = {OPERATIONS[op][0]}" for n, op in enumerate(ops)]
    lines: list[str] = []

    def nest(over: list[str], *body: str) -> None:
        lines.extend(f"{'    ' * (n + 1)}for {v} in range({'KLMN'[int(v[1:])]}):" for n, v in enumerate(over))
        lines.extend(f"{'    ' * (len(over) + 1)}{line}" for line in body)

    if pick.random() < 0.5:
        nest(back, *starts)
        nest(pick.choice((loops, kept + along)), *updates)
    else:
        for start, update in zip(starts, updates, strict=True):
            nest(back, start)
            nest(kept + along, update)
    dtype, wide = pick.choice((("f16", "f32"), ("f32", "f32"), ("f64", "f64")))
    results = "".join(f", y{n}: ex.{wide}[{extents}]" for n in range(len(ops)))
    head = f"def reduced(x: ex.{dtype}[{', '.join('KLMN'[:rank])}]{results}):"
    return "\n".join(["@ex.program", head, *lines, ""]), sizes
