"""Updates of bits and of truth values: which reduction each spelling is, and what the language's other rules make of it."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.ir.dtype import DTYPES
from explorer.ir.interpret import interpret
from explorer.ir.operations import OPERATIONS
from explorer.ir.scalar import BITWISE, REDUCTIONS
from explorer.run.verify.reference import reference
from tests.frontend.support import body

SHAPES = "b: ex.bool_[M, N]; n: ex.i32[M, N]; c: ex.u8[M, N]; odd: ex.bool_[M]; y: ex.i32[M]; z: ex.u8[M]"

SPELLINGS = {
    "odd[i] ^= b[i, k]": "xor",
    "odd[i] = b[i, k] ^ odd[i]": "xor",
    "odd[i] = odd[i] & b[i, k] & b[i, 0]": "and",
    "odd[i] |= n[i, k] > 3": "or",
    "y[i] &= n[i, k]": "bitand",
    "y[i] |= n[i, k] & 12": "bitor",
    "y[i] = n[i, k] ^ y[i] ^ c[i, k]": "bitxor",
    "y[i] |= b[i, k]": "bitor",
    "z[i] ^= c[i, k]": "bitxor",
    "z[i] &= n[i, k]": "bitand",
    "y[i] ^= y[i] >> 1": None,
    "y[i] = y[i] ^ n[i, k] ^ y[i]": None,
    "y[i] = n[i, k] & (y[i] + 1)": None,
    "odd[i] = odd[i] ^ (b[i, k] and odd[i])": None,
}


def data() -> dict[str, np.ndarray]:
    r = np.random.default_rng(2)
    return {"b": r.random((4, 7)) < 0.7, "n": r.integers(-(2**31), 2**31, (4, 7)).astype(np.int32),
            "c": r.integers(0, 256, (4, 7)).astype(np.uint8)}  # fmt: skip


@pytest.mark.parametrize("line", SPELLINGS)
def test_spellings_are_pythons(line: str) -> None:
    names = {n for n in ("b", "n", "c", "odd", "y", "z") if f"{n}[" in line}
    shapes = ", ".join(part for part in SHAPES.split("; ") if part[: part.index(":")] in names)
    (target,) = names & {"odd", "y", "z"}
    start = {"odd": True, "y": 0x2F0F0F0F, "z": 0x5A}[target]
    text = f"for i in range(M):\n    {target}[i] = {start}\n    for k in range(N):\n        {line}"
    arrays = {n: v for n, v in data().items() if n in names}
    want = np.full(4, start, {"odd": np.bool_, "y": np.int32, "z": np.uint8}[target])
    space = {n: v if target == "odd" else v.astype(want.dtype) for n, v in arrays.items()} | {target: want}
    for i in range(4):
        for k in range(7):
            exec(line, {**space, "i": i, "k": k})
    program = body(text, shapes).at(M=4, N=7)
    assert program.statements[-1].update == SPELLINGS[line]
    np.testing.assert_array_equal(interpret(program, arrays)[target], want)
    found = reference(program, arrays)
    np.testing.assert_array_equal(found.values[target], want)
    assert not found.bounds[target].any()


def test_bits_of_what_was_rounded_are_not_certain() -> None:
    text = "for i in range(M):\n    y[i] = 0\n    for k in range(N):\n        y[i] ^= ex.cast(x[i, k] * x[i, k] * 3.0, ex.i32)"
    program = body(text, "x: ex.f32[M, N], y: ex.i32[M]").at(M=2, N=3)
    x = np.array([[1.5, 2.25, 3.5], [1.5, np.sqrt(np.float32(1 / 3)), 2.0]], np.float32)
    found = reference(program, {"x": x})
    assert found.bounds["y"].tolist() == [0.0, np.inf]


def test_a_scalar_needs_no_declaration() -> None:
    text = "for i in range(M):\n    parity = 0\n    flag = False\n    for k in range(N):\n        parity ^= n[i, k]\n" \
           "        if n[i, k] > 0:\n            flag ^= b[i, k]\n    y[i] = parity\n    odd[i] = flag"  # fmt: skip
    program = body(text, "b: ex.bool_[M, N], n: ex.i32[M, N], odd: ex.bool_[M], y: ex.i32[M]").at(M=4, N=7)
    assert [s.update for s in program.statements if s.update] == ["bitxor", "xor"]
    arrays = data()
    got = interpret(program, {k: arrays[k] for k in ("b", "n")})
    np.testing.assert_array_equal(got["y"], np.bitwise_xor.reduce(arrays["n"], axis=1))
    np.testing.assert_array_equal(got["odd"], np.logical_xor.reduce(arrays["b"] & (arrays["n"] > 0), axis=1))


@pytest.mark.parametrize("name", BITWISE)
@pytest.mark.parametrize("dtype", ["i8", "u8", "u16", "i32", "u32", "i64", "u64"])
def test_the_identity_changes_nothing(name: str, dtype: str) -> None:
    kind, info = DTYPES[dtype], np.iinfo(DTYPES[dtype].numpy)
    identity = kind.numpy.type(REDUCTIONS[name].identity(kind))
    for value in (info.min, info.max, 0, 5):
        assert OPERATIONS[REDUCTIONS[name].operation].numpy(identity, kind.numpy.type(value)) == value
