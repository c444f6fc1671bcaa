"""Random programs of several nests, as a user would write them: chains and graphs of values, each made by a nest of its own."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from explorer.frontend.definition import Definition
from explorer.schedule import Schedule

from .programs import define

SIZES = ("M", "N", "K")
UNARY = ("{0} * 0.5", "max({0}, 0.0)", "ex.exp({0} * 0.125)", "{0} / (1.0 + ex.exp({0} * -1.0))", "{0}")
BINARY = ("{0} + {1}", "{0} * {1}", "max({0}, {1})", "({0} - {1}) * 0.25")
STARTS = {"sum": ("0.0", "{0} += {1}"), "max": ("-ex.inf", "{0} = max({0}, {1})")}
LETTERS: dict[str, str] = {"M": "i", "N": "j", "K": "k"}


@dataclass
class Several:
    """A program that grows nest by nest.

    Attributes
    ----------
    pick : Random
    inputs : dict of str to str
        Declarations.
    values : dict of str to tuple of str
        What the nests have made so far, by name, with the sizes of its axes.
    lines : list of str
    read : set of str
    """

    pick: random.Random
    inputs: dict[str, str] = field(default_factory=dict)
    values: dict[str, tuple[str, ...]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    read: set[str] = field(default_factory=set)

    def value(self, dims: tuple[str, ...]) -> str:
        """Something with these axes: mostly what a nest has made, else an input."""
        made = [v for v, have in self.values.items() if have == dims]
        if made and self.pick.random() < 0.85:
            name = made[-1] if self.pick.random() < 0.6 else self.pick.choice(made)
            self.read.add(name)
            return name
        have = [n for n in self.inputs if n.endswith("_" + "".join(dims).lower())]
        if have and self.pick.random() < 0.5:
            return self.pick.choice(have)
        name = f"x{len(self.inputs)}_{''.join(dims).lower()}"
        self.inputs[name] = f"{self.pick.choice(('ex.f32', 'ex.f32', 'ex.f16'))}[{', '.join(dims)}]"
        return name

    def new(self, dims: tuple[str, ...]) -> str:
        """A value that comes to be."""
        name = f"v{len(self.values)}"
        self.values[name] = dims
        return name

    def nest(self, dims: tuple[str, ...], body: list[str]) -> None:
        """Loops over some axes around a body."""
        for depth, d in enumerate(dims):
            self.lines.append("    " * depth + f"for {LETTERS[d]} in range({d}):")
        self.lines += ["    " * len(dims) + line for line in body]

    def text(self) -> str:
        """The program; what nothing reads, and sometimes what something reads, is a result."""
        results = [v for v in self.values if v not in self.read or self.pick.random() < 0.15]
        declared = [f"{n}: {d}" for n, d in self.inputs.items()]
        declared += [f"{v}: ex.f32[{', '.join(self.values[v])}]" for v in results]
        locals_ = [f"{v} = ex.local(ex.f32, {', '.join(dims)})" for v, dims in self.values.items() if v not in results]
        return (f"@ex.program\ndef several({', '.join(declared)}):\n"
                + "\n".join("    " + line for line in (*locals_, *self.lines)) + "\n")


def _at(name: str, dims: tuple[str, ...]) -> str:
    return f"{name}[{', '.join(LETTERS[d] for d in dims)}]"


def elementwise(s: Several) -> None:
    """Each element from those at its place in one value or in two."""
    dims = _axes(s, 2 if s.pick.random() < 0.8 else 1)
    names = [s.value(dims) for _ in range(s.pick.choice((1, 2)))]
    form = s.pick.choice(UNARY if len(names) == 1 else BINARY)
    made = s.new(dims)
    s.nest(dims, [f"{_at(made, dims)} = {form.format(*(_at(n, dims) for n in names))}"])


def broadcast(s: Several) -> None:
    """Each element of a matrix with one of a vector."""
    dims = _axes(s, 2)
    one = (s.pick.choice(dims),)
    names = s.value(dims), s.value(one)
    made = s.new(dims)
    s.nest(dims, [f"{_at(made, dims)} = {s.pick.choice(BINARY).format(_at(names[0], dims), _at(names[1], one))}"])


def reduction(s: Several) -> None:
    """A sum or maximum over an axis, of elements or of what is made of them."""
    dims = _axes(s, 2)
    kept = (s.pick.choice(dims),)
    gone = next(d for d in dims if d not in kept)
    name, made = s.value(dims), s.new(kept)
    start, update = STARTS[s.pick.choice(("sum", "max"))]
    form = s.pick.choice(("{0}", "{0}", "{0} * {0}", "ex.exp({0} * 0.125)"))
    s.nest(kept, [f"{_at(made, kept)} = {start}", f"for {LETTERS[gone]} in range({gone}):",
                  "    " + update.format(_at(made, kept), form.format(_at(name, dims)))])


def contraction(s: Several) -> None:
    """A matrix product."""
    rows, columns, inner = s.pick.sample(SIZES, 3)
    one, other = s.value((rows, inner)), s.value((inner, columns))
    made = s.new((rows, columns))
    target = _at(made, (rows, columns))
    s.nest((rows, columns), [f"{target} = 0.0", f"for {LETTERS[inner]} in range({inner}):",
                             f"    {target} += {_at(one, (rows, inner))} * {_at(other, (inner, columns))}"])


def stencil(s: Several) -> None:
    """A mean of neighbours along the last axis; the ends stay."""
    dims = _axes(s, 2)
    name, made, (row, last) = s.value(dims), s.new(dims), dims
    i, j = LETTERS[row], LETTERS[last]
    s.lines += [f"for {i} in range({row}):", f"    {made}[{i}, 0] = {name}[{i}, 0]",
                f"    for {j} in range(1, {last} - 1):",
                f"        {made}[{i}, {j}] = ({name}[{i}, {j} - 1] + {name}[{i}, {j}] + {name}[{i}, {j} + 1]) * 0.333",
                f"    {made}[{i}, {last} - 1] = {name}[{i}, {last} - 1]"]


def transposition(s: Several) -> None:
    """Rows become columns."""
    dims = _axes(s, 2)
    name, made = s.value(dims), s.new(dims[::-1])
    s.nest(dims, [f"{_at(made, dims[::-1])} = {_at(name, dims)}"])


KINDS = (elementwise, elementwise, elementwise, broadcast, broadcast, reduction, reduction, contraction, stencil, transposition)


def _axes(s: Several, count: int) -> tuple[str, ...]:
    """Axes of something that there is already, mostly."""
    made = [dims for dims in s.values.values() if len(dims) == count]
    if made and s.pick.random() < 0.8:
        return s.pick.choice(made[-2:])
    return tuple(s.pick.sample(SIZES, count))


def several(pick: random.Random) -> str:
    """The text of a program of two to seven nests."""
    s = Several(pick)
    for _ in range(pick.choice((2, 2, 3, 3, 4, 5, 7))):
        pick.choice(KINDS)(s)
    return s.text()


def several_case(seed: int, number: int) -> Schedule:
    """A random program of several nests at random sizes, from a few to some thousands."""
    pick = random.Random(f"several {seed} {number}")
    definition: Definition = define(several(pick), f"several_{seed}_{number}.py")
    sizes = {}
    for name in definition.sizes:
        n = int(2 ** pick.uniform(2, 12))
        sizes[name] = n if pick.random() < 0.5 else max(4, n // 32 * 32)
    return definition.schedule(**sizes)
