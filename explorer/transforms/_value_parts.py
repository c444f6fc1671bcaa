"""Parts of a statement's value that depend on the element of one array alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from ..ir.dtype import DTYPES, DType
from ..ir.expr import Expr, var
from ..ir.finding import Verdict, no
from ..ir.plan import Plan
from ..ir.program import Access, Array, Indirect, Statement
from ..ir.scalar import Call, Cast, IndexValue, Read, Scalar, children, rebuild, type_of, walk
from ..ir.tree import Leaf, Loop
from ._domain import all_dims, bounds, dim_ranges

ORIGIN = "precompute"
"""Of the statements that compute a part before."""


@dataclass(frozen=True)
class User:
    """A statement that reads a part where it was computed: as it is then, and which slots it has left, and where."""

    statement: Statement
    kept: Mapping[int, int]


@dataclass(frozen=True)
class Part:
    """A part of a statement's value, in a statement of its own.

    Attributes
    ----------
    statement : Statement
        What writes the temporary.
    temporary : Array
    users : mapping of str to User
        By their names.
    """

    statement: Statement
    temporary: Array
    users: Mapping[str, User]


def part_of(plan: Plan, leaf: Leaf, slot: int, dtype: str, around: tuple[Loop, ...] = ()) -> Part | Verdict:
    """The part with a read of a statement, or why there is none.

    Parameters
    ----------
    plan : Plan
    leaf : Leaf
    slot : int
        The read.
    dtype : str
        Of the temporary; "" for that of the value.
    around : tuple of Loop
        Loops of the program around the statement that are to be around the part, too.
    """
    s = plan.statement_of[leaf.statement]
    array, axes = plan.array_of[s.reads[slot].array], s.reads[slot].index
    shared = {x.id for x in around}
    if missing := sorted(shared - {str(e) for e in axes}):
        return no(f"{missing[0]} does not number the elements of {array.name}", f"its index is [{', '.join(map(str, axes))}]",
                  "a loop further out, or none")
    names = [str(e) for e in axes]
    if twice := next((x for x in sorted(shared) if names.count(x) > 1), ""):
        return no(f"{twice} numbers several axes of {array.name}", f"its index is [{', '.join(names)}]",
                  "a loop further out, or none")
    told = Told(s, axes, _names(plan, axes, shared))
    _, part = told.largest(s.value, slot)
    if part == [Read(slot)] and dtype in ("", array.dtype.name):
        return no(f"{leaf.id} reads an element of {array.name} and computes nothing of it alone",
                  "what it is combined with depends on other loops", f"stage('{array.name}', …) makes a copy")
    slots = list(dict.fromkeys(n.slot for f in part for n in walk(f) if isinstance(n, Read)))
    if views := [v.buffer for n, v in leaf.views if n in slots]:
        return no(f"{leaf.id} reads {views[0]}, a copy", hint="precompute before stage")
    box = {name: x.range for name in told.names for x in around if x.id == name}
    box = {name: box.get(name, (0, size - 1)) for name, size in zip(told.names, array.shape, strict=True)}
    reads = tuple(Access(s.reads[n].array, tuple(told.over(e) or e for e in s.reads[n].index)) for n in slots)
    product = reduce(lambda a, b: Call("mul", (a, b)), part)
    kind = DTYPES[dtype] if dtype else type_of(product, [plan.array_of[r.array].dtype for r in s.reads])
    wide = array.dtype if part == [Read(slot)] else type_of(product, [plan.array_of[r.array].dtype for r in s.reads])
    if not holds(kind, wide) and "float" not in (wide.kind, plan.array_of[s.target.array].dtype.kind):
        return no(f"{kind.name} does not hold the part of {leaf.id}", f"it is {wide.name}, and so is what is made of it: "
                  "nothing may be rounded", "a type that does, or none")
    if not holds(kind, wide) and kind.kind != "float":
        return no(f"{kind.name} does not hold the part of {leaf.id}", f"it is {wide.name}", "a type of floats, or none")
    types = [plan.array_of[r.array].dtype for r in s.reads]
    if kind.kind == "float" and wide.kind != "float" and (op := next(_whole_uses(s.value, slot, part, types), "")):
        return no(f"{kind.name} does not hold the part of {leaf.id}", f"it is {wide.name}, and {op!r} of it is asked for: a type "
                  "of floats would round, or has no such operation", "a type of whole numbers, or none")
    temporary = Array(plan.fresh(f"{array.name}_p"), kind, array.shape, "temporary", array.given)
    asked = [replace(c, expr=e) for c in s.domain if (e := told.over(c.expr)) is not None]
    domain = asked if array.role == "temporary" else []  # other elements of it may have no value
    target = Access(temporary.name, tuple(map(var, told.names)), "write")
    own = Statement(plan.fresh(f"{s.name}_p"), told.names, tuple(domain), target, told.moved(product, slots), reads,
                    origin=ORIGIN, line=s.line)
    known = dim_ranges(own)
    open_ends = [(n, low, high) for n, (low, high) in box.items() if known[n][0] < low or known[n][1] > high]
    lacking = [c for n, low, high in open_ends for c in bounds(n, low, high - low + 1)]
    own = replace(own, domain=(*lacking, *domain))
    known = dim_ranges(own)
    for r in reads:
        for e, size in zip(r.index, plan.array_of[r.array].shape, strict=True):
            assert isinstance(e, Expr)
            low, high = e.interval(known)
            if low < 0 or high >= size:
                return no(f"{r.array} has no element for some of {array.name}", f"its index goes from {low} to {high}",
                          f"precompute('{s.name}', '{r.array}')")
    mine = [told.spelled(f) for f in part]
    exact = kind == type_of(own.value, [plan.array_of[r.array].dtype for r in own.reads])
    users = {x.name: user for x in plan.program.statements if (x is s or exact) and x.name not in {c.name for c in plan.copies}
             if (user := _user(x, array.name, mine, told.names, temporary.name)) is not None}
    return Part(own, temporary, users)


_TEMPORARY = Read(-1)


LINEAR = {"add", "sub", "mul", "neg"}
"""Operations on whole numbers that floats have, too, and that round no worse than their arguments."""


def _whole_uses(node: Scalar, slot: int, part: Sequence[Scalar], types: Sequence[DType]) -> Iterator[str]:
    """Other operations on whole numbers between a value and a part of it that has a read."""
    if node in part or not any(isinstance(x, Read) and x.slot == slot for x in walk(node)):
        return
    if type_of(node, types).kind != "float" and isinstance(node, (Call, Cast)):
        name = node.op if isinstance(node, Call) else "cast"
        if name not in LINEAR:
            yield name
    for child in children(node):
        yield from _whole_uses(child, slot, part, types)


def _user(s: Statement, array: str, part: list[object], names: tuple[str, ...], temporary: str) -> User | None:
    """A statement that reads the part where it has it in its value; None where it does not."""
    for axes in dict.fromkeys(r.index for r in s.reads if r.array == array and r.affine):
        told = Told(s, axes, names)
        value = without_part(s.value, told, part, _TEMPORARY)
        if value == s.value:
            continue
        left = sorted(_used(s, value) - {_TEMPORARY.slot})
        first = next(n for n, r in enumerate(s.reads) if r.array == array and r.index == axes)
        at = sum(n < first for n in left)  # where the part's first read was
        kept = {n: place + (place >= at) for place, n in enumerate(left)}
        old = {place: n for n, place in kept.items()}
        reads = tuple(in_slots(s.reads[old[place]], kept, {}) if place != at else Access(temporary, axes)
                      for place in range(len(left) + 1))
        changed = replace(s, value=renumbered(value, kept | {_TEMPORARY.slot: at}, {}), reads=reads,
                          target=in_slots(s.target, kept, {}))
        return User(changed, kept | {len(s.reads): len(reads)})
    return None


def without_part(value: Scalar, told: Told, part: list[object], by: Scalar) -> Scalar:
    """A value with another one for some factors in it, which are given as they are spelled."""

    def change(node: Scalar) -> Scalar | None:
        factors = factors_of(node)
        spelled, taken = [told.spelled(f) if told.tells(f) else None for f in factors], list[int]()
        for x in part:  # each factor of the part is one of the value's
            found = next((n for n, y in enumerate(spelled) if y == x and n not in taken), None)
            if found is None:
                return None
            taken.append(found)
        left = [by if n == min(taken) else f for n, f in enumerate(factors) if n == min(taken) or n not in taken]
        return reduce(lambda a, b: Call("mul", (a, b)), left)

    return rebuild(value, change)


def _used(s: Statement, value: Scalar) -> set[int]:
    """The slots that a value of a statement reads, and those that data-dependent indices of these and of the target do."""
    found, queue = set[int](), [value, *(e.value for e in s.target.index if isinstance(e, Indirect))]
    while queue:
        for n in walk(queue.pop()):
            if isinstance(n, Read) and n.slot not in found:
                found.add(n.slot)
                queue += [e.value for e in s.reads[n.slot].index if isinstance(e, Indirect)] if n.slot >= 0 else []
    return found


def _names(plan: Plan, axes: tuple[object, ...], shared: set[str]) -> tuple[str, ...]:
    """A dimension for each axis: a loop that is around the part, or one called after the loop that moves the axis alone."""
    taken, out = set(all_dims(plan.program)), list[str]()
    for n, e in enumerate(axes):
        single = isinstance(e, Expr) and len(e.terms) == 1 and isinstance(e.terms[0][0], str)
        name = f"{e.terms[0][0]}.p" if isinstance(e, Expr) and single else f"{n}.p"
        out.append(str(e) if str(e) in shared else plan.fresh(name, frozenset(taken)))
        taken.add(out[-1])
    return tuple(out)


def factors_of(node: Scalar) -> list[Scalar]:
    """What is multiplied with each other in a value."""
    return [f for a in node.args for f in factors_of(a)] if isinstance(node, Call) and node.op == "mul" else [node]


class Told:
    """What an element of an array tells, by the coordinates of its axes."""

    def __init__(self, s: Statement, axes: tuple[object, ...], names: tuple[str, ...]) -> None:
        self.statement, self.names = s, names
        self.axes = [(e, name) for e, name in zip(axes, names, strict=True) if isinstance(e, Expr)]
        self.values = {str(e.terms[0][0]): var(name) - e.const for e, name in self.axes
                       if len(e.terms) == 1 and isinstance(e.terms[0][0], str) and e.terms[0][1] == 1}

    def over(self, e: object) -> Expr | None:
        """An index over the axes; None where they do not tell it."""
        if not isinstance(e, Expr):
            return None
        for axis, name in self.axes:
            if (e - axis).is_constant and axis.terms:
                return var(name) + (e - axis).const
        return e.substitute(self.values) if e.variables() <= self.values.keys() else None

    def tells(self, node: Scalar) -> bool:
        """Whether an expression depends on nothing else."""
        return all(self.over(n.expr) is not None if isinstance(n, IndexValue) else
                   all(self.over(e) is not None for e in self.statement.reads[n.slot].index)
                   for n in walk(node) if isinstance(n, (IndexValue, Read)))

    def largest(self, node: Scalar, slot: int) -> tuple[Scalar, list[Scalar]]:
        """The largest part with a read of a slot that depends on nothing else: factors of a product."""
        factors = factors_of(node)
        part = [f for f in factors if self.tells(f)]
        if any(Read(slot) in walk(f) for f in part):
            return node, part
        inside = next(f for f in factors if Read(slot) in walk(f))
        return self.largest(next(c for c in children(inside) if Read(slot) in walk(c)), slot)

    def spelled(self, node: Scalar) -> object:
        """An expression with the elements that it reads, over the axes: the same for one that computes the same."""
        if isinstance(node, Read):
            access = self.statement.reads[node.slot]
            return access.array, tuple(self.over(e) for e in access.index)
        if isinstance(node, IndexValue):
            return self.over(node.expr)
        if isinstance(node, (Call, Cast)):
            return node.op if isinstance(node, Call) else node.dtype, tuple(self.spelled(c) for c in children(node))
        return node

    def moved(self, node: Scalar, slots: list[int]) -> Scalar:
        """An expression over the axes."""

        def change(n: Scalar) -> Scalar | None:
            if isinstance(n, IndexValue):
                return IndexValue(self.over(n.expr) or n.expr)
            return Read(slots.index(n.slot)) if isinstance(n, Read) else None

        return rebuild(node, change)


def spelled(node: Scalar, reads: tuple[Access, ...]) -> object:
    """An expression with the elements that it reads: the same for other orders of factors, and without conversions of floats."""
    if isinstance(node, Cast) and node.dtype.kind == "float":
        return spelled(node.arg, reads)
    if isinstance(node, Read):
        index = reads[node.slot].index
        return reads[node.slot].array, tuple(spelled(e.value, reads) if isinstance(e, Indirect) else str(e) for e in index)
    if isinstance(node, IndexValue):
        return str(node.expr)
    if isinstance(node, Call) and node.op == "mul":
        return "mul", tuple(sorted((spelled(f, reads) for f in _flat(node)), key=repr))
    if isinstance(node, (Call, Cast)):
        return node.op if isinstance(node, Call) else node.dtype.name, tuple(spelled(c, reads) for c in children(node))
    return node


def _flat(node: Scalar) -> list[Scalar]:
    """All that is multiplied, also what is converted between."""
    if isinstance(node, Cast) and node.dtype.kind == "float":
        return _flat(node.arg)
    return [f for a in node.args for f in _flat(a)] if isinstance(node, Call) and node.op == "mul" else [node]


def holds(kind: DType, other: DType) -> bool:
    """Whether a type has all numbers of another one."""
    if kind == other or (kind.kind == other.kind and kind.bytes > other.bytes):
        return True
    return kind.kind == "float" and other.kind != "float" and 2 * other.bytes <= kind.bytes


def without_returns(value: Scalar, types: Sequence[DType]) -> Scalar:
    """A value without conversions to a type that has all its numbers, and back."""

    def change(node: Scalar) -> Scalar | None:
        if not (isinstance(node, Cast) and isinstance(node.arg, Cast)):
            return None
        inner = node.arg.arg
        same = type_of(inner, types) == node.dtype and holds(node.arg.dtype, node.dtype)
        return without_returns(inner, types) if same else None

    return rebuild(value, change)


def renumbered(value: Scalar, slots: Mapping[int, int], dims: Mapping[str, Expr]) -> Scalar:
    """A value with its reads in other slots, and expressions for dimensions."""

    def change(node: Scalar) -> Scalar | None:
        if isinstance(node, Read):
            return Read(slots[node.slot])
        return IndexValue(node.expr.substitute(dims)) if isinstance(node, IndexValue) else None

    return rebuild(value, change)


def in_slots(access: Access, slots: Mapping[int, int], dims: Mapping[str, Expr]) -> Access:
    """An access whose data-dependent indices read other slots, with expressions for dimensions."""
    index = tuple(Indirect(renumbered(e.value, slots, dims)) if isinstance(e, Indirect) else e.substitute(dims)
                  for e in access.index)
    return replace(access, index=index)
