"""A reference interpreter: a program's loops, in the order they were written, one instance at a time.

It is slow and plain, and shares nothing with the code generators: the oracle for tests at tiny sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import ProgramError
from .coding import coded, decoded, encoded
from .dtype import DTYPES, DType
from .expr import Expr
from .operations import OPERATIONS
from .program import Access, Array, Indirect, Program, Statement
from .scalar import REDUCTIONS, Call, Cast, IndexValue, Literal, Read, Scalar, argument_types, walk
from .tree import Leaf, Node, Sync

Values = dict[str, int]
Evaluate = Callable[[Values, list[Any]], Any]


Watch = Callable[[Statement, Mapping[str, int], str, tuple[int, ...], Any], None]


def interpret(
    program: Program, arrays: Mapping[str, np.ndarray], *, exact: bool = False, rounded: bool | None = None,
    watch: Watch | None = None,
) -> dict[str, np.ndarray]:
    """Run `program` on copies of `arrays` and return what it wrote.

    Parameters
    ----------
    program : Program
    arrays : mapping of str to ndarray
        Every "in" and "inout" parameter, with its shape and dtype (bf16 and 8-bit floats as their bits).  The initial
        content of an "out" parameter is kept where the program does not write, and NaN or 0 if it is missing.
    exact : bool
        Compute floats in float64 instead of the types that expressions widen to.
    rounded : bool, optional
        Whether stores round to the array's dtype; by default only if not `exact`.  Unrounded float arrays are float64.
    watch : callable, optional
        ``watch(statement, point, array, element, value)`` after every write, in the program's order.

    Returns
    -------
    dict of str to ndarray
        The "out" and "inout" parameters.

    Raises
    ------
    ProgramError
        If an array is missing or misshapen, an access leaves its array, or an element is read that nothing wrote.

    Notes
    -----
    An operation is evaluated in the compute type of its arguments, an update in the compute type of its target.
    """
    run = _Run(program, arrays, exact, (not exact) if rounded is None else rounded, watch)
    with np.errstate(all="ignore"):
        run.nodes(program.body, {})
    return {a.name: run.result(a) for a in program.arrays if a.role in ("out", "inout")}


class _Memory:
    """One array while the program runs: its elements, and which of them hold a value."""

    def __init__(self, array: Array, given: np.ndarray | None, wide: np.dtype, rounded: bool) -> None:
        self.array, self.rounded = array, rounded
        poison = {"float": np.nan, "int": 0, "bool": False}[array.dtype.kind]
        self.data = np.full(array.shape, poison, dtype=wide)
        if given is not None:
            bits = coded(array.dtype) and given.dtype == array.dtype.numpy
            self.data[...] = decoded(given, array.dtype).reshape(array.shape) if bits else given
        self.known = np.full(array.shape, array.role in ("in", "inout"))

    def round(self, value: Any, moved: bool = False) -> Any:
        """`value` as an element of the array keeps it, or as it gets it from another one of its type."""
        if not self.rounded:
            return value
        if coded(self.array.dtype):
            return decoded(encoded(value, self.array.dtype, moved), self.array.dtype)[()]
        return np.asarray(value).astype(self.array.dtype.numpy)


class _Run:
    def __init__(self, program: Program, arrays: Mapping[str, np.ndarray], exact: bool, rounded: bool,
                 watch: Watch | None = None) -> None:  # fmt: skip
        self.program, self.exact, self.rounded, self.watch = program, exact, rounded, watch
        self.memory = {a.name: _Memory(a, _given(a, arrays), self.numpy(a.dtype.wide), rounded) for a in program.arrays}
        self.compiled = {s.name: self.statement(s) for s in program.statements}

    def numpy(self, dtype: DType) -> np.dtype:
        """The NumPy type in which values of a compute type are held."""
        return np.dtype(np.float64) if self.exact and dtype.kind == "float" else dtype.numpy

    def result(self, array: Array) -> np.ndarray:
        data = self.memory[array.name].data
        if not self.rounded and array.dtype.kind == "float":
            return data
        return encoded(data, array.dtype, moved=True) if coded(array.dtype) else data.astype(array.dtype.numpy)

    def nodes(self, nodes: tuple[Node, ...], values: Values) -> None:
        for node in nodes:
            if isinstance(node, Leaf):
                self.compiled[node.statement]({d: e.evaluate(values) for d, e in node.at})
            elif not isinstance(node, Sync):
                for value in range(node.start, node.start + node.extent):
                    self.nodes(node.body, {**values, node.id: value})

    def statement(self, statement: Statement) -> Callable[[Values], None]:
        """The statement as a function of its dimensions."""
        array = self.program.array_of[statement.target.array]
        wide = self.numpy(array.dtype.wide)
        types = [self.program.array_of[r.array].dtype for r in statement.reads]
        value = self.scalar(statement.value, types)
        reads = _Reads(self, statement, types)
        moved = isinstance(statement.value, Read) and types[statement.value.slot] == array.dtype

        def instance(at: Values) -> None:
            if not all(c.holds(at) for c in statement.domain):
                return
            new = value(at, reads.of(at)) if all(c.holds(at) for c in statement.inside) else statement.fill
            memory, where = self.element(statement, statement.target, at, [])
            if statement.update is not None:
                op = OPERATIONS[REDUCTIONS[statement.update].operation]
                old = self.load(statement, memory, where)
                new = op.numpy(wide.type(old), wide.type(new))
            memory.data[where] = memory.round(new, moved)
            memory.known[where] = True
            if self.watch is not None:
                self.watch(statement, at, memory.array.name, where, memory.data[where])

        return instance

    def element(self, statement: Statement, access: Access, at: Values, read: list[Any]) -> tuple[_Memory, tuple[int, ...]]:
        """The array of an access and the position of its element; raises if it is outside."""
        memory = self.memory[access.array]
        types = [self.program.array_of[r.array].dtype for r in statement.reads]
        where = tuple(int(e.evaluate(at) if isinstance(e, Expr) else self.scalar(e.value, types)(at, read)) for e in access.index)
        if not all(0 <= w < n for w, n in zip(where, memory.array.shape, strict=True)):
            raise ProgramError(
                f"{access.array}{list(where)} is outside the array",
                where=_place(self.program, statement, at),
                why=f"{access.array} has the shape {memory.array.shape}",
            )
        return memory, where

    def load(self, statement: Statement, memory: _Memory, where: tuple[int, ...]) -> Any:
        if not memory.known[where]:
            raise ProgramError(
                f"{memory.array.name}{list(where)} is read before it is written", where=_place(self.program, statement, {})
            )
        return memory.data[where]

    def scalar(self, node: Scalar, types: list[DType]) -> Evaluate:
        """An expression as a function of the dimensions and the values read."""
        if isinstance(node, Literal):
            constant = self.numpy(node.dtype.wide).type(node.value)
            return lambda at, read: constant
        if isinstance(node, IndexValue):
            return lambda at, read: np.int64(node.expr.evaluate(at))
        if isinstance(node, Read):
            return lambda at, read: read[node.slot]
        if isinstance(node, Cast):
            return self.cast(node, types)
        return self.call(node, types)

    def cast(self, node: Cast, types: list[DType]) -> Evaluate:
        inner, wide = self.scalar(node.arg, types), self.numpy(node.dtype.wide)
        memory = _Memory(Array("", node.dtype, (), "temporary"), None, wide, self.rounded or node.dtype.kind == "int")
        return lambda at, read: wide.type(memory.round(inner(at, read)))

    def call(self, node: Call, types: list[DType]) -> Evaluate:
        parts = [self.scalar(a, types) for a in node.args]
        kinds = [self.numpy(t).type for t in argument_types(node, types)]
        op = OPERATIONS[node.op].numpy
        if node.op == "where":
            return lambda at, read: kinds[1](parts[1](at, read) if parts[0](at, read) else parts[2](at, read))
        return lambda at, read: op(*(kind(p(at, read)) for kind, p in zip(kinds, parts, strict=True)))


class _Reads:
    """The values a statement reads at one instance; an index that is data is read first."""

    def __init__(self, run: _Run, statement: Statement, types: list[DType]) -> None:
        self.run, self.statement = run, statement
        self.kinds = [run.numpy(t.wide).type for t in types]
        plain = [s for s, r in enumerate(statement.reads) if r.affine]
        self.order = plain + sorted((s for s, r in enumerate(statement.reads) if not r.affine), key=self.depth)

    def depth(self, slot: int) -> int:
        """How many reads stand inside one another in the index of a read."""
        inner = [
            n.slot
            for e in self.statement.reads[slot].index
            if isinstance(e, Indirect)
            for n in walk(e.value)
            if isinstance(n, Read)
        ]
        return 1 + max((self.depth(s) for s in inner), default=0)

    def of(self, at: Values) -> list[Any]:
        out: list[Any] = [None] * len(self.kinds)
        for slot in self.order:
            memory, where = self.run.element(self.statement, self.statement.reads[slot], at, out)
            out[slot] = self.kinds[slot](self.run.load(self.statement, memory, where))
        return out


def _given(array: Array, arrays: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """The caller's array, checked; None for a temporary or an output that was not given."""
    if array.role == "temporary" or (array.role == "out" and array.name not in arrays):
        return None
    if array.name not in arrays:
        raise ProgramError(f"the array {array.name} is missing", hint=f"a {array.dtype} array of shape {array.shape}")
    given = np.asarray(arrays[array.name])
    if given.shape != array.shape:
        raise ProgramError(f"{array.name} has the shape {given.shape}, not {array.shape}")
    if given.dtype != array.dtype.numpy and given.dtype != DTYPES["f64"].numpy:
        raise ProgramError(f"{array.name} is {given.dtype}, not {array.dtype}")
    return given


def _place(program: Program, statement: Statement, at: Values) -> str:
    point = ", ".join(f"{k}={v}" for k, v in at.items())
    return f"line {statement.line}: {statement.text}" + (f"  at {point}" if point else "")
