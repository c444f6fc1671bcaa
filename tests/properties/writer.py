"""The text of a random program under construction: parameters, ranges, conditions, values and updates to draw from."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

SIZES = ("M", "N", "K")
REDUCTIONS = {"sum": ("{t} += {v}", "0"), "prod": ("{t} *= {v}", "1"), "max": ("{t} = max({t}, {v})", "-ex.inf"),
              "min": ("{t} = min({t}, {v})", "ex.inf"), "bitand": ("{t} &= {v}", "-1"), "bitor": ("{t} |= {v}", "0"),
              "bitxor": ("{t} ^= {v}", "0")}  # fmt: skip
BITS = ("bitand", "bitor", "bitxor")
FLOATS = ("f32", "f32", "f32", "f64", "f16", "f16", "bf16")
INTEGERS = ("i32", "i32", "i64", "i8", "i8")
WIDER = {"f16": "f32", "bf16": "f32", "i8": "i32"}


@dataclass
class Writer:
    """The text of one program: its parameters and the lines of its body."""

    pick: random.Random
    dtype: str
    parameters: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    count: int = 0

    @property
    def real(self) -> bool:
        return self.dtype in FLOATS

    @property
    def compute(self) -> str:
        """Type of a temporary that accumulates."""
        wide = WIDER.get(self.dtype, self.dtype)
        return self.pick.choice((wide, wide, self.dtype))

    def sizes(self, count: int) -> list[str]:
        return self.pick.sample(SIZES, count)

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def array(self, letter: str, *sizes: str, dtype: str = "", halo: int = 0) -> str:
        """A new parameter, `halo` elements larger than its sizes."""
        name = self.name(letter)
        self.parameters[name] = f"{name}: {self._type(sizes, dtype or self.dtype, halo)}"
        return name

    def old_or_new(self, letter: str, *sizes: str, halo: int = 0) -> str:
        """An earlier parameter of the same shape and letter, or a new one."""
        wanted = f": {self._type(sizes, self.dtype, halo)}"
        fitting = [n for n, text in self.parameters.items() if text.endswith(wanted) and n[0] == letter]
        return self.pick.choice(fitting) if fitting and self.pick.random() < 0.6 else self.array(letter, *sizes, halo=halo)

    @staticmethod
    def _type(sizes: tuple[str, ...], dtype: str, halo: int) -> str:
        return f"ex.{dtype}[{', '.join(f'{s} + {halo}' if halo else s for s in sizes)}]"

    def local(self, depth: int, *sizes: str, dtype: str = "") -> str:
        """A new temporary of this shape, declared here."""
        name = self.name("t")
        self.add(depth, f"{name} = ex.local({', '.join((f'ex.{dtype or self.compute}', *sizes))})")
        return name

    def add(self, depth: int, *lines: str) -> None:
        self.lines += ["    " * (depth + 1) + line for line in lines]

    def guard(self, depth: int, names: tuple[str, ...], share: float = 0.2) -> int:
        """Maybe an ``if``; the depth of what follows."""
        if self.pick.random() >= share:
            return depth
        self.add(depth, f"if {self.condition(names)}:")
        return depth + 1

    def span(self, size: str, outer: tuple[str, ...] = (), full: bool = False) -> str:
        """A range of values in 0 … size - 1; `outer` may shape it."""
        forms = [f"range({size})"] * 5
        if not full:
            forms += [f"range(1, {size})", f"range(0, {size}, 2)", f"range({size} - 1, -1, -1)", f"range(0, {size}, 3)",
                      f"range(1, {size}, 2)"]
            for v in outer:
                forms += [f"range({v}, {size})", f"range(min({v} + 1, {size}))", f"range({v} // 2, {size})",
                          f"range(max(0, {v} - 1), min({size}, {v} + 2))"]
        return self.pick.choice(forms)

    def condition(self, names: tuple[str, ...]) -> str:
        a, b = self.pick.choice(names), self.pick.choice(names)
        return self.pick.choice((f"{a} + {b} < 6", f"({a} + {b}) % 2 == 0", f"{a} <= 2 * {b}", f"{a} >= {b}",
                                 f"0 < {a} and {b} < 4", f"{a} == {b}", f"{a} // 2 == 1", f"{a} % 3 < 2",
                                 f"{a} % 3 == 1", f"{a} % 2 == 1", f"{a} % 4 == {b} % 2", f"{a} % 2 == 0 and {b} % 3 != 1",
                                 f"{a} != {b}", f"{a} == 0 or {b} > 2", f"not {a} < {b}"))

    def map(self, a: str, b: str) -> str:
        """A value of two operands, continuous in both and of moderate size."""
        forms = [a, f"{a} + {b}", f"{a} - {b}", f"max({a}, {b})", f"min({a}, {b})", f"2 * {a}", f"abs({a})", f"{a} + 1"]
        if self.real:
            forms += [f"0.5 * {a} * {b}", f"ex.tanh({a})", f"ex.exp(0.25 * {a})", f"({a} + {b}) / 4",
                      f"ex.where({a} > 0, {a}, {b})"]
        return self.pick.choice(forms)

    def reduction(self, among: tuple[str, ...] = ("sum", "sum", "sum", "max", "min", "prod")) -> tuple[str, str]:
        """The template of an update, and its first value."""
        name = self.pick.choice(among if self.real else (*among, *BITS))
        if name == "prod" and not self.real:
            name = "sum"
        update, start = REDUCTIONS[name]
        if "inf" in start and not self.real:
            start = "-100" if name == "max" else "100"
        return update, start
