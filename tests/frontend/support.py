"""Defining programs from text, and running the same text by Python as an oracle."""

from __future__ import annotations

import ast
import itertools
import linecache
import math
import textwrap

import numpy as np

import explorer.frontend
from explorer.frontend.definition import Definition
from explorer.ir.interpret import interpret
from explorer.ir.program import Array, Program

_COUNT = itertools.count()


def define(text: str, file: str = "", **names: object) -> Definition:
    """Run `text`, whose last definition is the program, with ``ex`` and the sizes M, N, K, T at hand."""
    text = textwrap.dedent(text).strip("\n") + "\n"
    file = file or f"case{next(_COUNT)}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    sizes = dict(zip("MNKT", explorer.frontend.sizes("M N K T"), strict=True))
    space: dict[str, object] = {"ex": explorer.frontend, "__name__": "user", **sizes, **names}
    exec(compile(text, file, "exec"), space)
    return next(v for v in reversed(space.values()) if isinstance(v, Definition))


def body(lines: str, signature: str = "x: ex.f32[M, N], y: ex.f32[M, N]", **names: object) -> Definition:
    """A program ``f`` with this body, whose first line is line 3."""
    inner = textwrap.indent(textwrap.dedent(lines).strip("\n"), "    ")
    return define(f"@ex.program\ndef f({signature}):\n{inner}\n", **names)


class _Words:
    """What ``ex`` means when Python itself runs a program, in float64."""

    inf = np.inf
    exp, log, sqrt, tanh = np.exp, np.log, np.sqrt, np.tanh
    erf = staticmethod(math.erf)
    abs, min, max, pow = abs, min, max, pow
    f16 = f32 = f64 = "float"
    i32 = i64 = "int"
    bool_ = "bool"

    @staticmethod
    def argmax(elements):
        return int(np.argmax(list(elements)))

    @staticmethod
    def argmin(elements):
        return int(np.argmin(list(elements)))

    @staticmethod
    def rsqrt(x):
        return 1 / np.sqrt(x)

    @staticmethod
    def where(condition, value, other):
        return value if condition else other

    @staticmethod
    def cast(value, dtype):
        return {"float": float, "int": int, "bool": bool}[dtype](value)

    @staticmethod
    def local(dtype, *shape):
        shape = shape[0] if len(shape) == 1 else shape
        return np.nan if shape in ((), []) else np.full(shape, np.nan)


def by_python(
    definition: Definition, sizes: dict[str, int], arrays: dict[str, np.ndarray], **names: object
) -> dict[str, np.ndarray]:
    """The arrays after Python has executed the function's own text: an oracle that shares nothing with the parser."""
    function = ast.parse(definition.source).body[0]
    assert isinstance(function, ast.FunctionDef)
    function.decorator_list = []
    for argument in function.args.args:
        argument.annotation = None
    space: dict[str, object] = {"ex": _Words, **names, **sizes}
    exec(compile(ast.fix_missing_locations(ast.Module([function], [])), "oracle.py", "exec"), space)
    copies = {k: v.astype(np.float64) if v.dtype.kind == "f" else v.copy() for k, v in arrays.items()}
    with np.errstate(all="ignore"):
        space[definition.name](*(copies[p.name] for p in definition.parameters))  # type: ignore[operator]
    return copies


def agrees(definition: Definition, sizes: dict[str, int], seed: int = 0, **names: object) -> Program:
    """Assert that the interpreter and Python leave the same arrays; returns the program."""
    program = definition.at(**{k: v for k, v in sizes.items() if k in definition.sizes})
    rng = np.random.default_rng(seed)
    arrays = {a.name: _random(a, rng) for a in program.parameters}
    wanted = by_python(definition, sizes, arrays, **names)
    got = interpret(program, arrays, exact=True)
    assert got
    for name, value in got.items():
        np.testing.assert_allclose(value, wanted[name], rtol=1e-12, atol=1e-12, err_msg=name)
    return program


def _random(array: Array, rng: np.random.Generator) -> np.ndarray:
    if array.dtype.kind == "float":
        return rng.uniform(-2, 2, array.shape).astype(array.dtype.numpy)
    return rng.integers(0, 2, array.shape).astype(array.dtype.numpy)
