"""Random programs as the text a user would write: one to three nests out of a dozen shapes, at tiny and ragged sizes."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from dataclasses import dataclass

import explorer as ex
from explorer import workloads
from explorer.api import Definition, Schedule

SIZES = ("M", "N", "K")
REDUCTIONS = {"sum": ("{t} += {v}", "0"), "prod": ("{t} *= {v}", "1"), "max": ("{t} = max({t}, {v})", "-ex.inf"),
              "min": ("{t} = min({t}, {v})", "ex.inf")}
FLOATS = ("f32", "f32", "f32", "f64", "f16", "bf16")
INTEGERS = ("i32", "i32", "i64", "i8")


@dataclass(frozen=True)
class Case:
    """A program at concrete sizes, and where it comes from."""

    name: str
    schedule: Schedule


@dataclass
class Writer:
    """The text of one program under construction: its parameters and the lines of its body."""

    pick: random.Random
    dtype: str

    def __post_init__(self) -> None:
        self.parameters: dict[str, str] = {}
        self.lines: list[str] = []
        self.count = 0

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def array(self, letter: str, *sizes: str, dtype: str = "", halo: int = 0) -> str:
        """A new parameter, `halo` elements larger than its sizes."""
        name = self.name(letter)
        shape = ", ".join(f"{s} + {halo}" if halo else s for s in sizes)
        self.parameters[name] = f"{name}: ex.{dtype or self.dtype}[{shape}]"
        return name

    def old_or_new(self, letter: str, *sizes: str, halo: int = 0) -> str:
        """An earlier parameter of the same shape and letter, or a new one."""
        wanted = f": ex.{self.dtype}[{', '.join(f'{s} + {halo}' if halo else s for s in sizes)}]"
        fitting = [n for n, text in self.parameters.items() if text.endswith(wanted) and n[0] == letter]
        return self.pick.choice(fitting) if fitting and self.pick.random() < 0.6 else self.array(letter, *sizes, halo=halo)

    def add(self, depth: int, *lines: str) -> None:
        self.lines += ["    " * (depth + 1) + line for line in lines]

    @property
    def compute(self) -> str:
        """Type of a temporary that accumulates."""
        wide = {"f16": "f32", "bf16": "f32", "i8": "i32"}.get(self.dtype, self.dtype)
        return self.pick.choice((wide, wide, self.dtype))

    def span(self, size: str, outer: tuple[str, ...] = (), full: bool = False) -> str:
        """A range of values in 0 … size - 1; `outer` may shape it."""
        forms = [f"range({size})"] * 5
        if not full:
            forms += [f"range(1, {size})", f"range(0, {size}, 2)", f"range({size} - 1, -1, -1)", f"range({size} // 2 + 1)" if size == "Z" else f"range(0, {size}, 3)"]
            for v in outer:
                forms += [f"range({v}, {size})", f"range(min({v} + 1, {size}))", f"range({v} // 2, {size})",
                          f"range(max(0, {v} - 1), min({size}, {v} + 2))"]
        return self.pick.choice(forms)

    def condition(self, names: tuple[str, ...]) -> str:
        a, b = self.pick.choice(names), self.pick.choice(names)
        forms = (f"{a} + {b} < 6", f"({a} + {b}) % 2 == 0", f"{a} <= 2 * {b}", f"{a} >= {b}", f"0 < {a} and {b} < 4", f"{a} == {b}")
        return self.pick.choice(forms)

    def map(self, a: str, b: str) -> str:
        """A value of two operands, continuous in both and of moderate size."""
        forms = [a, f"{a} + {b}", f"{a} - {b}", f"max({a}, {b})", f"min({a}, {b})", f"2 * {a}", f"abs({a})", f"{a} + 1"]
        if self.dtype in FLOATS:
            forms += [f"0.5 * {a} * {b}", f"ex.tanh({a})", f"ex.exp(0.25 * {a})", f"({a} + {b}) / 4", f"ex.where({a} > 0, {a}, {b})"]
        return self.pick.choice(forms)

    def reduction(self, among: tuple[str, ...] = ("sum", "sum", "sum", "max", "min", "prod")) -> tuple[str, str]:
        """The template of an update, and its first value."""
        name = self.pick.choice(among)
        if name == "prod" and self.dtype not in FLOATS:
            name = "sum"
        update, start = REDUCTIONS[name]
        if "inf" in start and self.dtype not in FLOATS:
            start = "-100" if name == "max" else "100"
        return update, start


def _guard(w: Writer, depth: int, names: tuple[str, ...], share: float = 0.2) -> int:
    """Maybe an ``if``; the depth of what follows."""
    if w.pick.random() < share:
        w.add(depth, f"if {w.condition(names)}:")
        return depth + 1
    return depth


def pointwise(w: Writer) -> None:
    m, n = w.pick.sample(SIZES, 2)
    x, y = w.old_or_new("x", m, n, halo=2), w.array("y", m, n)
    w.add(0, f"for i in {w.span(m)}:")
    w.add(1, f"for j in {w.span(n, ('i',))}:")
    at = w.pick.choice((f"{x}[i, j + 1]", f"{x}[i + 1, j]", f"{x}[i + 1, j + 2]"))
    w.add(_guard(w, 2, ("i", "j")), f"{y}[i, j] = {w.map(f'{x}[i, j]', at)}")


def deep(w: Writer) -> None:
    """Four loops, one store; the index may be transposed or folded."""
    m, n, k = w.pick.sample(SIZES, 3)
    x, y = w.array("x", m, n, k), w.array("y", k, m, n, "2")
    w.add(0, f"for i in {w.span(m)}:")
    w.add(1, f"for j in {w.span(n, ('i',))}:")
    w.add(2, f"for k in {w.span(k)}:")
    w.add(3, "for l in range(2):")
    w.add(_guard(w, 4, ("i", "j", "k", "l")), f"{y}[k, i, j, l] = {w.map(f'{x}[i, j, k]', f'{x}[i, j, (k + l) % {k}]' if w.pick.random() < 0.5 else 'l')}")


def chain(w: Writer) -> None:
    """Producer and consumer with a temporary of full shape between them."""
    m, n = w.pick.sample(SIZES, 2)
    x, y, t = w.old_or_new("x", m, n, halo=2), w.array("y", m, n), w.name("t")
    w.add(0, f"{t} = ex.local(ex.{w.dtype}, {m} + 2, {n})", f"for i in range({m} + 2):", f"    for j in {w.span(n, full=True)}:",
          f"        {t}[i, j] = {w.map(f'{x}[i, j]', f'{x}[i, j + 1]')}")
    w.add(0, f"for i in {w.span(m)}:")
    w.add(1, f"for j in {w.span(n, ('i',))}:")
    w.add(_guard(w, 2, ("i", "j")), f"{y}[i, j] = {w.map(f'{t}[i, j]', w.pick.choice((f'{t}[i + 1, j]', f'{t}[i + 2, j]', f'{x}[i, j]')))}")


def local_value(w: Writer) -> None:
    """A scalar temporary of the inner loop."""
    m, n = w.pick.sample(SIZES, 2)
    x, y, t = w.old_or_new("x", m, n, halo=2), w.array("y", m, n), w.name("t")
    w.add(0, f"for i in {w.span(m)}:")
    w.add(1, f"for j in {w.span(n, ('i',))}:")
    depth = _guard(w, 2, ("i", "j"))
    w.add(depth, f"{t} = ex.local(ex.{w.compute})", f"{t} = {w.map(f'{x}[i, j]', f'{x}[i + 1, j]')}", f"{y}[i, j] = {w.map(t, f'{x}[i, j + 1]')}")


def row_reduction(w: Writer) -> None:
    """One temporary per row, used after the reduction, perhaps by a second pass."""
    m, n = w.pick.sample(SIZES, 2)
    x, t = w.old_or_new("x", m, n, halo=2), w.name("t")
    update, start = w.reduction()
    w.add(0, f"for i in {w.span(m)}:")
    w.add(1, f"{t} = ex.local(ex.{w.compute})", f"{t} = {start}", f"for k in {w.span(n, ('i',))}:")
    w.add(_guard(w, 2, ("i", "k")), update.format(t=t, v=w.pick.choice((f"{x}[i, k]", f"{x}[i + 1, k]", f"abs({x}[i, k])"))))
    if w.pick.random() < 0.5:
        y = w.array("y", m)
        w.add(1, f"{y}[i] = {w.map(t, t)}")
    else:
        y = w.array("y", m, n)
        w.add(1, f"for j in {w.span(n)}:", f"    {y}[i, j] = {w.map(f'{x}[i, j]', t)}")


def direct_reduction(w: Writer) -> None:
    """Updates of an output; the reduced loop inside or outside."""
    m, n = w.pick.sample(SIZES, 2)
    x, y = w.old_or_new("x", m, n, halo=2), w.array("y", m)
    update, start = w.reduction()
    if w.pick.random() < 0.7:
        w.add(0, f"for i in range({m}):", f"    {y}[i] = {start}")
    inner = [f"for i in {w.span(m)}:", f"for k in {w.span(n, ('i',))}:"]
    if w.pick.random() < 0.5:
        inner = [f"for k in {w.span(n)}:", f"for i in {w.span(m, ('k',))}:"]
    w.add(0, inner[0])
    w.add(1, inner[1])
    w.add(_guard(w, 2, ("i", "k")), update.format(t=f"{y}[i]", v=f"{x}[i, k]"))


def total(w: Writer) -> None:
    """Everything into one number."""
    m, n = w.pick.sample(SIZES, 2)
    x, y = w.old_or_new("x", m, n, halo=2), w.array("y", "1")
    update, start = w.reduction(("sum", "max", "min"))
    w.add(0, f"{y}[0] = {start}", f"for i in {w.span(m)}:")
    w.add(1, f"for k in {w.span(n, ('i',))}:")
    w.add(_guard(w, 2, ("i", "k")), update.format(t=f"{y}[0]", v=f"{x}[i, k]"))


def logical(w: Writer) -> None:
    """``and`` and ``or`` of comparisons."""
    m, n = w.pick.sample(SIZES, 2)
    x, y, t = w.old_or_new("x", m, n, halo=2), w.array("y", m, dtype="bool_"), w.name("t")
    word, start = w.pick.choice((("and", "True"), ("or", "False")))
    w.add(0, f"for i in {w.span(m)}:")
    w.add(1, f"{t} = ex.local(ex.bool_)", f"{t} = {start}", f"for k in {w.span(n, ('i',))}:")
    w.add(2, f"{t} = {t} {word} ({x}[i, k] {w.pick.choice('<>')} {w.pick.choice(('0', f'{x}[i, k + 1]'))})")
    w.add(1, f"{y}[i] = {t}")


def product(w: Writer) -> None:
    """A matrix product, perhaps triangular, with or without a temporary."""
    a, b, c = w.array("x", "M", "K"), w.old_or_new("x", "K", "N"), w.array("y", "M", "N")
    k = w.span("K", ("i",)) if w.pick.random() < 0.4 else "range(K)"
    if w.pick.random() < 0.5:
        t = w.name("t")
        w.add(0, "for i in range(M):", "    for j in range(N):", f"        {t} = ex.local(ex.{w.compute})", f"        {t} = 0",
              f"        for k in {k}:", f"            {t} += {a}[i, k] * {b}[k, j]", f"        {c}[i, j] = {t}")
    else:
        w.add(0, "for i in range(M):", "    for j in range(N):", f"        {c}[i, j] = 0", f"        for k in {k}:",
              f"            {c}[i, j] += {a}[i, k] * {b}[k, j]")


def stencil(w: Writer) -> None:
    """A stencil over time: in place, or between two planes by the parity of time."""
    n = w.pick.choice(SIZES)
    half = "0.25 * " if w.dtype in FLOATS else ""
    if w.pick.random() < 0.5:
        u = w.array("u", n, halo=2)
        w.add(0, "for t in range(3):", f"    for i in {w.span(n)}:", f"        {u}[i + 1] = {half}({u}[i] + {u}[i + 2] + {u}[i + 1])")
    else:
        u = w.array("u", "2", n, halo=2)
        w.add(0, "for t in range(3):", f"    for i in range(1, {n} + 1):",
              f"        {u}[(t + 1) % 2, i] = {half}({u}[t % 2, i - 1] + {u}[t % 2, i] + {u}[t % 2, i + 1])")


def plane_stencil(w: Writer) -> None:
    """In place in two dimensions, with a chosen set of neighbours."""
    m, n = w.pick.sample(SIZES, 2)
    u = w.array("u", m, n, halo=2)
    near = w.pick.sample([f"{u}[i, j + 1]", f"{u}[i + 1, j]", f"{u}[i + 2, j + 1]", f"{u}[i + 1, j + 2]", f"{u}[i, j + 2]"], 2)
    half = "0.5 * " if w.dtype in FLOATS else ""
    w.add(0, f"for i in {w.span(m)}:", f"    for j in {w.span(n)}:", f"        {u}[i + 1, j + 1] = {half}({near[0]} - {near[1]})")


def scan(w: Writer) -> None:
    """A prefix along one loop, independent along another."""
    m, n = w.pick.sample(SIZES, 2)
    x, y = w.old_or_new("x", m, n, halo=2), w.array("y", m, n)
    w.add(0, f"for i in {w.span(m)}:")
    w.add(1, f"{y}[i, 0] = {x}[i, 0]", f"for j in range(1, {n}):", f"    {y}[i, j] = {w.pick.choice((f'{y}[i, j - 1] + {x}[i, j]', f'max({y}[i, j - 1], {x}[i, j])'))}")


def two_reductions(w: Writer) -> None:
    """The second reduction reads the result of the first, as in softmax."""
    m, n = w.pick.sample(SIZES, 2)
    x, y, t, s = w.old_or_new("x", m, n, halo=2), w.array("y", m, n), w.name("t"), w.name("t")
    value = f"ex.exp({x}[i, k] - {t})" if w.dtype in FLOATS else f"{x}[i, k] - {t}"
    low = "-ex.inf" if w.dtype in FLOATS else "-100"
    w.add(0, f"for i in {w.span(m)}:")
    w.add(1, f"{t} = ex.local(ex.{w.compute})", f"{t} = {low}", f"for k in range({n}):", f"    {t} = max({t}, {x}[i, k])", f"{s} = ex.local(ex.{w.compute})",
          f"{s} = 0", f"for k in range({n}):", f"    {s} += {value}", f"for k in {w.span(n)}:",
          f"    {y}[i, k] = {value} + {s}")


def gather(w: Writer) -> None:
    """A read at a data-dependent index."""
    m, n = w.pick.sample(SIZES, 2)
    x, y, at = w.array("x", n), w.array("y", m), w.array("n", m, dtype="i32")
    w.add(0, f"for i in {w.span(m)}:", f"    {y}[i] = {w.map(f'{x}[{at}[i]]', f'{x}[{at}[i]]')}")


def folded(w: Writer) -> None:
    """Quotients and remainders in an index."""
    n = w.pick.choice(SIZES)
    x, y = w.array("x", n, "3"), w.array("y", f"3 * {n}")
    w.add(0, f"for i in range(3 * {n}):", f"    {y}[i] = {w.map(f'{x}[i // 3, i % 3]', f'{x}[i // 3, 0]')}")


SHAPES: tuple[Callable[[Writer], None], ...] = (
    pointwise, deep, chain, local_value, row_reduction, row_reduction, direct_reduction, direct_reduction, total, logical,
    product, product, stencil, plane_stencil, scan, two_reductions, gather, folded)


def random_text(pick: random.Random) -> str:
    """The text of a random program."""
    w = Writer(pick, pick.choice(FLOATS) if pick.random() < 0.8 else pick.choice(INTEGERS))
    for _ in range(pick.choice((1, 1, 1, 2, 2, 3))):
        pick.choice(SHAPES)(w)
    head = f"@ex.program\ndef f({', '.join(w.parameters.values())}):\n"
    return head + "\n".join(w.lines) + "\n"


def define(text: str, file: str) -> Definition:
    """The program of a text, with the sizes M, N and K at hand."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, object] = {"ex": ex, "__name__": "user", **dict(zip(SIZES, ex.sizes(" ".join(SIZES)), strict=True))}
    exec(compile(text, file, "exec"), space)
    found = space["f"]
    assert isinstance(found, Definition)
    return found


def random_case(pick: random.Random, label: str) -> Case:
    """A random program at random sizes; sizes of 0 and 1 are rare but there.

    Raises
    ------
    ProgramError
        If the program reads what nothing wrote, or leaves an array, at these sizes.
    """
    definition = define(random_text(pick), f"{label}.py")
    sizes = {s: pick.choice((1, 2, 3, 3, 4, 4, 5, 5, 6, 7, 8)) if pick.random() < 0.98 else 0 for s in definition.sizes}
    return Case("random", definition.schedule(**sizes))


def workload_case(pick: random.Random) -> Case:
    """A ready program at one of a few tiny or ragged sizes."""
    chosen = workloads.get(pick.choice(workloads.names()))
    sizes = dict(chosen.tiny)
    if pick.random() < 0.5:
        small = pick.choice((1, 2))
        sizes = {name: max(1, value - small) if value > 3 else value for name, value in sizes.items()}
    return Case(chosen.name, chosen.definition.into(Definition).schedule(**sizes))
