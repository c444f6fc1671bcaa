"""Whether a mutant that nothing notices computes what the text computes: the same bits on inputs chosen to tell them apart.

The probes hold numbers of many magnitudes, of which sums lose other digits in another order; infinities, NaN and zeros of both
signs; and small integers.  A mutant is the same if every output has equal bits on all of them in three orders of threads (a NaN
is a NaN), and there is a reason, which the line shows.
"""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np

from explorer.errors import ExplorerError
from explorer.ir.dtype import f32_to_bf16
from explorer.run.cpu.device import CpuBuilt, CpuDevice
from explorer.run.inputs.arguments import Inputs

from .text_subject import Subject

ORDERS = (0, 1, 5)
_SPECIAL = (np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-30, -1e30)

_SUM = r"(?P<x>[^()]*(?:\([^()]*\))?[^()]*) - (?P<m>[\w\[\]]+)"
REASONS: tuple[tuple[str, str, str], ...] = (
    ("an operator", r" \+= \w+_sum(?:_\d+)?;", "the cell holds 0 before, so that adding to it is setting it"),
    ("", r"block_reduce\w*<.* \? ", "a thread beyond the last row: it stores nothing, and no other one reads its part"),
    ("a constant", r"block_reduce\w*<", "extents of the block that this reduction, within a warp, does not use"),
    ("a loop's bound|a constant", r"^for ", "the guard inside leaves out the iteration that is more"),
    ("a guard|a constant|an operator", r"^if \([^&]* < \d+\)$", "beyond the edge a copy holds what the reduction may take: 0"),
    ("an operator", r"_acc(?:\[\w+\])+ \+= ", "each cell is updated once, and holds 0 before"),
    ("an accumulator", r" \+= __half2float\([^()]*\);$", "each cell is updated once, and by a number of f16"),
    ("a constant|an index", r"^__shared__", "memory that is more, and not used"),
    ("operands", r"\[(\w+) \+ (\w+)\]", "the sum of the two is the same"),
    ("a constant", r"if \(tx == 0", "every lane holds the result of the reduction, so that any one may store it"),
    ("a constant", r"^if \(.* < \d+\) \{$", "the other branch does the same, each load under a condition of its own"),
    ("a constant", r"^if \(.*&&", "the other conditions leave out the same iterations"),
    ("", r"load_within<", "elements beyond the end are 0, loaded or not; in the branch that is always taken the factor is 0"),
    ("a constant", r"/ \d+\]", "the quotients are equal for the values that occur"),
    ("a constant", r" \? .* : __\w+\([01]\.0f\);$", "what a copy holds beyond the edge is not used"),
)
"""Kinds and lines, and why a mutant of them may compute the same."""
ORDER = "the same partial results are joined in another order: sums of integers keep their bits"
ALGEBRA = "the sum of (x + m)(x - m) is that of (x - m)², where m is the mean of x"


class Probes:
    """Inputs, and what the text itself makes of them."""

    def __init__(self, what: Subject, device: CpuDevice) -> None:
        self.what, self.device = what, CpuDevice(seeds=ORDERS, time_limit_s=device.time_limit_s)

    @cached_property
    def arrays(self) -> list[dict[str, np.ndarray]]:
        """One set of inputs for each probe."""
        return [self._probe(n) for n in range(6)]

    @cached_property
    def wanted(self) -> list[list[bytes]]:
        """The bits of the outputs."""
        return self._bits(self.device.build(self.what.module))

    def same(self, built: CpuBuilt) -> bool:
        """Whether a mutant's outputs have the bits of the text's."""
        try:
            return self._bits(built) == self.wanted
        except ExplorerError:
            return False

    def _bits(self, built: CpuBuilt) -> list[list[bytes]]:
        return [[_plain(value) for outputs in self.device.run_seeds(built, arrays) for value in outputs.values()]
                for arrays in self.arrays]

    def _probe(self, number: int) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(number)
        seeded = Inputs(self.what.program, 40 + number, kind="integers" if number == 5 else "normal").arrays
        out = {}
        for a in self.what.program.parameters:
            values = seeded[a.name]
            if a.role != "out" and a.dtype.kind == "float" and number < 5:
                wide = rng.standard_normal(a.shape) * 2.0 ** rng.integers(-9, 10, a.shape)
                if number >= 3:
                    wide = np.where(rng.random(a.shape) < 0.02, rng.choice(_SPECIAL, a.shape), wide)
                with np.errstate(over="ignore"):
                    values = f32_to_bf16(wide.astype(np.float32)) if a.dtype.name == "bf16" else wide.astype(a.dtype.numpy)
            out[a.name] = values
        return out


def _plain(values: np.ndarray) -> bytes:
    """The bits, one NaN for all."""
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), np.array(np.nan, values.dtype), values)
    return values.tobytes()


def reason(kind: str, was: str, now: str, same: bool) -> str:
    """Why a mutant that nothing notices is none; empty if it is one, or if nobody knows why not."""
    square = re.search(rf" \+= \({_SUM}\) \* \((?P=x) - (?P=m)\);", was)
    if square and now.replace(f" + {square['m']}", f" - {square['m']}") == was:
        return ALGEBRA
    if not same and kind == "a constant is another one" and re.sub(r"<reduce.*?>", "", was) == re.sub(r"<reduce.*?>", "", now):
        return ORDER
    found = [why for kinds, line, why in REASONS if re.match(kinds, kind) and re.search(line, was)]
    return found[0] if same and found else ""
