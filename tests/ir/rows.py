"""Programs that compute rows of the table of operations on numbers that are likely to go wrong, for every type a row takes."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from explorer.ir.dtype import DTYPES, DType
from explorer.ir.expr import const, var
from explorer.ir.operation import Operation
from explorer.ir.program import Access, Array, Constraint, Program, Statement
from explorer.ir.scalar import Call, Read, argument_types, operand_type, type_of
from explorer.ir.tree import Leaf, Loop
from explorer.kernel.reference.c_text import c_type
from explorer.kernel.reference.error_bound import HELPERS, smallest
from explorer.kernel.reference.helpers import FAULTS, INDEXING
from explorer.run.cpu.compiler import find_compiler, run_compiler

COUNT = 4096
SPECIAL = {"float": (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, 3.0, -7.25, 88.0, -89.5, 750.0, 1e-30, -1e-30, 1e30, -3e38,
                     1e-42, np.inf, -np.inf, np.nan),
           "int": (0, 1, -1, 2, -3, 5, 7, -8, 31, 32, 33, 63, 64, 255, -256, 1000003), "bool": (False, True)}


def takes(row: Operation, dtype: DType) -> bool:
    """Whether a row is evaluated in a compute type."""
    if not row.accepts(dtype):
        return False
    own = [DTYPES[fixed] if fixed else dtype for fixed in row.fixed]
    return operand_type(Call(row.name, tuple(map(Read, range(row.arity)))), own) == dtype


def program(rows: Sequence[Operation], dtype: DType) -> Program:
    """One statement for each row, ``y_sin[n] = sin(f32_0[n])``; the indices that keys hold are not negative."""
    where, arrays, statements = (var("n"),), {}, []
    domain = (Constraint(where[0]), Constraint(const(COUNT - 1) - where[0]))
    for row in rows:
        call = Call(row.name, tuple(map(Read, range(row.arity))))
        own = [DTYPES[fixed] if fixed else dtype for fixed in row.fixed]
        assert list(argument_types(call, own)) == own
        names = arguments(row, dtype)
        arrays |= {name: Array(name, kind, (COUNT,), "in", 1) for name, kind in zip(names, own, strict=True)}
        arrays[f"y_{row.name}"] = Array(f"y_{row.name}", type_of(call, own), (COUNT,), "out", 1)
        statements.append(Statement(f"S_{row.name}", ("n",), domain, Access(f"y_{row.name}", where, "write"), call,
                                    tuple(Access(name, where) for name in names)))
    body = tuple(Loop(f"n{k}", COUNT, (Leaf(s.name, s.name, (("n", var(f"n{k}")),)),)) for k, s in enumerate(statements))
    return Program("rows", tuple(arrays.values()), tuple(statements), body)


def arguments(row: Operation, dtype: DType) -> list[str]:
    """The inputs that a row is evaluated on."""
    return [f"{fixed or dtype}_{'at_' * (fixed == 'i32')}{n}" for n, fixed in enumerate(row.fixed)]


def inputs(of: Program) -> dict[str, np.ndarray]:
    """Every combination of special values, then random ones: near 0, of one digit with ties, and of any bits."""
    made = {a.name: _values(a.dtype, int(a.name[-1]), a.size) for a in of.arrays if a.role == "in"}
    return {name: values & 0x7FFFFFFF if "_at_" in name else values for name, values in made.items()}


def _values(dtype: DType, position: int, count: int) -> np.ndarray:
    draw = np.random.default_rng(position)
    special = np.array(SPECIAL[dtype.kind])
    if dtype.kind == "int":
        info = np.iinfo(dtype.numpy)
        ends = (info.min, info.min + 1, info.max, info.max // 3)
        special = np.array([v for v in (*SPECIAL["int"], *ends) if v >= info.min], object)
        near = draw.integers(-9 if info.min else 0, 70, count // 4)
        anywhere = draw.integers(info.min, info.max, count, dtype.numpy, endpoint=True)
    elif dtype.kind == "float":
        near = np.concatenate([draw.standard_normal(count // 8), draw.integers(-40, 40, count // 8) / 4])
        bits = draw.integers(0, 2 ** (8 * dtype.bytes), count, np.uint64 if dtype.bytes == 8 else np.uint32)
        anywhere = np.where(np.arange(count) % 2, bits.view(dtype.numpy), draw.standard_normal(count) * 30)
    else:
        near, anywhere = np.array([], bool), draw.random(count) < 0.5
    pairs = np.arange(min(len(special) ** 2, count // 2)) // len(special) ** position % len(special)
    combined = special[pairs if position < 2 else draw.integers(0, len(special), len(pairs))]
    with np.errstate(all="ignore"):
        return np.concatenate([combined.astype(dtype.numpy), near.astype(dtype.numpy), anywhere.astype(dtype.numpy)])[:count]


def meaning(row: Operation, dtype: DType, given: Mapping[str, np.ndarray], *, exact: bool = False) -> np.ndarray:
    """The NumPy meaning, in the compute type or (of floats) in float64."""
    parts = [given[name] for name in arguments(row, dtype)]
    with np.errstate(all="ignore"):
        return np.asarray(row.numpy(*(p.astype(np.float64) if exact and p.dtype.kind == "f" else p for p in parts)))



def bound_of(row: Operation, dtype: DType, values: Sequence[np.ndarray], errors: Sequence[np.ndarray]) -> np.ndarray:
    """The rule for a row's error bound, compiled as it stands."""
    call = Call(row.name, tuple(map(Read, range(row.arity))))
    own = [DTYPES[fixed] if fixed else dtype for fixed in row.fixed]
    at = {f"v{n}": f"v{n}" for n in range(row.arity)} | {f"e{n}": f"e{n}" for n in range(row.arity)}
    value = row.in_c(dtype)[0].format(*(f"({'double' if row.result == 'float' else c_type(d)})v{n}" for n, d in enumerate(own)))
    text = "\n".join(("#include <math.h>", "#include <stdlib.h>", FAULTS, INDEXING, HELPERS,
                      'extern "C" void bounds(long long count, const void** at, double* out) {',
                      "    for (long long i = 0; i < count; ++i) {",
                      *(f"        const {c_type(d)} v{n} = (({c_type(d)}*)at[{n}])[i];" for n, d in enumerate(own)),
                      *(f"        const double e{n} = ((double*)at[{n + row.arity}])[i];" for n in range(row.arity)),
                      f"        const {c_type(type_of(call, own))} t = {value};",
                      f"        out[i] = {row.bound.format(t='t', tiny=repr(smallest(dtype)), **at)}; (void)t;", "    }", "}"))
    out = np.zeros(len(values[0]))
    with TemporaryDirectory() as folder:
        Path(folder, "rule.cpp").write_text(text)
        flags = ("-std=c++17", "-w", "-O0", "-fPIC", "-shared", "rule.cpp", "-o", "rule.so")
        done = run_compiler(find_compiler(), flags, Path(folder))
        assert not done.returncode, done.stderr
        held = [np.ascontiguousarray(v, v.dtype) for v in (*values, *errors)]
        pointers = (ctypes.c_void_p * len(held))(*(v.ctypes.data for v in held))
        ctypes.CDLL(f"{folder}/rule.so").bounds(ctypes.c_longlong(len(out)), pointers, ctypes.c_void_p(out.ctypes.data))
    return out
