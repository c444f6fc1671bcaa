"""Products of values that are computed from elements: each value once, in a nest before, and then a product of two elements.

``total += max(a[i, k], 0) * b[k, j]`` computes a maximum in every iteration, and no tensor instruction takes it.  With the maxima
in an array of their own the rest is a product of matrices.  So it is of three factors, and of weights in a narrower type.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from ...gpu.spec import Gpu, default_gpu
from ...ir.dtype import DTYPES, DType
from ...ir.instructions import INSTRUCTIONS
from ...ir.plan import Plan
from ...ir.program import Statement
from ...ir.scalar import Call, Literal, Read, Scalar, type_of, walk
from ...poly.tensor import is_product
from ...schedule import Schedule
from .._steps import Builder
from .form import WHOLE

KEPT = frozenset({"max", "min", "neg", "abs", "clamp"})
"""Operations that give one of their operands, or its negative: what a type can hold before, it can hold after."""
WHOLE_NUMBERS = {"f16": 1 << 11, "bf16": 1 << 8, "f32": 1 << 24}
"""Up to which a type has all of them."""
HALVES = ("f16", "bf16")
"""Types that tensor instructions multiply, and hold all numbers of 8 bits."""


def factors_before(schedule: Schedule, approximate: bool, gpu: Gpu | None = None) -> Schedule:
    """Compute factors of sums before them, where a product of two elements is left.

    Parameters
    ----------
    schedule : Schedule
        Nothing of it is spread.
    approximate : bool
        Whether a factor may be rounded to the type of the elements it is made of, as library kernels do that store it.
    gpu : Gpu, optional
        By default the H200.  What it has no instruction for, floats of 8 bits, is multiplied in f16.

    Returns
    -------
    Schedule
        Legal; the same schedule where there is no such sum.
    """
    b, arch = Builder(schedule), int("".join(filter(str.isdigit, (gpu or default_gpu()).arch)))
    for leaf, above, _ in schedule.plan.leaves:
        s = b.plan.statement_of[leaf.statement]
        if s.update != "sum" or not s.reads or min((x.extent for x in above), default=0) < 2 or _is_ready(b.plan, s, arch):
            continue
        types = [b.plan.array_of[r.array].dtype for r in s.reads]
        keep, kind, wide = b.schedule, _type(b.plan, s), type_of(s.value, types)
        exact = _is_exact(s.value, DTYPES[kind], types) if kind else None
        if exact is None or not (exact or approximate):
            kind = wide.name
        if not any(_are_before(b, leaf.id, leaf.statement, k, arch) for k in dict.fromkeys((kind, wide.name))):
            b.schedule = keep
    return b.schedule


def _are_before(b: Builder, leaf: str, statement: str, kind: str, arch: int) -> bool:
    """Compute the factors of a sum before it, in one type, until a product of two elements is left; whether it came to that."""
    keep = b.schedule
    for array in dict.fromkeys(r.array for r in b.plan.statement_of[statement].reads):
        now = b.plan.statement_of[statement]
        if not _is_ready(b.plan, now, arch) and any(r.array == array for r in now.reads):
            b.attempt("precompute", leaf, array, kind)
    if _is_ready(b.plan, b.plan.statement_of[statement], arch) and _is_worth(b.plan, statement):
        return True
    b.schedule = keep
    return False


def _is_ready(plan: Plan, s: Statement, arch: int) -> bool:
    """Whether a statement adds up products of two elements of one type, for which there is an instruction if it is narrow."""
    types = {plan.array_of[r.array].dtype for r in s.reads}
    if not is_product(s) or len(types) > 1:
        return False
    (kind,) = types
    short = kind.kind == "float" and kind.bytes == 1
    return not short or any(row.a == kind and row.runs_on(arch) for row in INSTRUCTIONS.values())


def _is_worth(plan: Plan, statement: str) -> bool:
    """Whether each factor's elements are used often."""
    s = plan.statement_of[statement]
    sizes = [plan.array_of[r.array].size for r in s.reads]
    terms = 1
    for leaf, above, _ in plan.leaves:
        if leaf.statement == statement:
            for x in above:
                terms *= x.extent
    return all(terms >= WHOLE * size for size in sizes)


def _type(plan: Plan, s: Statement) -> str:
    """The type that all elements of the factors have, or can be held in; "" where there is none that is multiplied."""
    types = [plan.array_of[r.array].dtype for r in s.reads]
    wide = [t.name for t in types if t.bytes > 1]
    if len(set(wide)) > 1 or any(t.kind == "bool" for t in types):
        return ""
    if wide:
        return wide[0] if wide[0] in HALVES or all(t.bytes > 1 for t in types) else ""
    return HALVES[0] if any(t.kind == "float" for t in types) else types[0].name if len(set(types)) == 1 else ""


def _is_exact(value: Scalar, kind: DType, types: Sequence[DType]) -> bool | None:
    """Whether the factors of a value are numbers of a type; None where whole numbers among them may lie beyond it."""
    factors = [value]
    while any(isinstance(f, Call) and f.op == "mul" for f in factors):
        factors = [x for f in factors for x in (f.args if isinstance(f, Call) and f.op == "mul" else (f,))]
    exact = len(factors) <= 2
    for f in factors:
        if type_of(f, types).kind == "float":
            exact &= all(isinstance(n, Read) or (isinstance(n, Call) and n.op in KEPT) or (
                isinstance(n, Literal) and bool(kind.numpy.type(n.value) == n.value)) for n in walk(f))
        elif not isinstance(f, Literal) and _largest(f, types) > WHOLE_NUMBERS.get(kind.name, 0):
            return None
    return exact


def _largest(node: Scalar, types: Sequence[DType]) -> float:
    """The largest magnitude of a value of elements of 8 bits; infinity for others."""
    if isinstance(node, Literal):
        return abs(float(node.value))
    if isinstance(node, Read):
        return 1 << 8 * types[node.slot].bytes if types[node.slot].bytes == 1 else inf
    if isinstance(node, Call) and node.op in ("add", "sub", "neg", "abs", "max", "min"):
        return sum(_largest(x, types) for x in node.args)
    return inf
