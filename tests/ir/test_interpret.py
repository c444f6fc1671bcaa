"""The reference interpreter: rounding, exactness, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.errors import ProgramError
from explorer.ir.dtype import DTYPES, bf16_to_f32, f32_to_bf16
from explorer.ir.expr import const, var
from explorer.ir.interpret import interpret
from explorer.ir.program import Access, Array, Constraint, Indirect, Program, Statement
from explorer.ir.scalar import Call, Cast, IndexValue, Literal, Read
from explorer.ir.tree import Leaf, Loop

AT = var("i")


def program(statement, *arrays, extent=4):
    leaf = Leaf(statement.name, statement.name, (("i", AT),))
    return Program("p", arrays, (statement,), (Loop("i", extent, (leaf,)),))


def array(name, role, dtype="f32", shape=(4,)):
    return Array(name, DTYPES[dtype], shape, role)


def statement(value, reads=(), target=None, **more):
    return Statement("S0", ("i",), more.pop("domain", ()), target or Access("y", (AT,), "write"), value, tuple(reads), **more)


X = Access("x", (AT,))


def test_stores_round_to_the_type_and_exact_ones_do_not():
    p = program(
        statement(Call("mul", (Read(0), Literal(1 / 3, DTYPES["f32"]))), [X]), array("x", "in", "f16"), array("y", "out", "f16")
    )
    x = np.array([1, 2, 3, 4], np.float16)
    third = np.float32(1 / 3)
    got = interpret(p, {"x": x})["y"]
    assert got.dtype == np.float16
    assert got.tolist() == (x.astype(np.float32) * third).astype(np.float16).tolist()
    exact = interpret(p, {"x": x}, exact=True)["y"]
    assert exact.dtype == np.float64
    assert exact.tolist() == (x.astype(np.float64) / 3).tolist()
    assert (
        interpret(p, {"x": x}, exact=True, rounded=True)["y"].tolist() == (x.astype(np.float64) / 3).astype(np.float16).tolist()
    )


def test_bf16_is_bits_outside_and_numbers_inside():
    p = program(
        statement(Call("add", (Read(0), Literal(1.0, DTYPES["f32"]))), [X]), array("x", "in", "bf16"), array("y", "out", "bf16")
    )
    x = np.array([0.001, 1, 255, -3], np.float32)
    got = interpret(p, {"x": f32_to_bf16(x)})["y"]
    assert got.dtype == np.uint16
    wanted = f32_to_bf16(bf16_to_f32(f32_to_bf16(x)) + np.float32(1))
    assert got.tolist() == wanted.tolist()


def test_updates_round_every_time():
    p = program(
        statement(Read(0), [X], target=Access("y", (const(0),), "update"), update="sum"),
        array("x", "in", "f16"),
        array("y", "inout", "f16", (1,)),
    )
    x, y = np.full(4, 0.4, np.float16), np.full(1, 1024, np.float16)
    assert interpret(p, {"x": x, "y": y})["y"].tolist() == [1024]
    assert interpret(p, {"x": x, "y": y}, exact=True)["y"][0] == pytest.approx(1024 + 4 * float(x[0]), rel=1e-15)


@pytest.mark.parametrize(("name", "wanted"), [("sum", 6), ("prod", 0), ("max", 5), ("min", 0)])
def test_reductions(name, wanted):
    p = program(statement(IndexValue(AT), [], target=Access("y", (), "update"), update=name), array("y", "inout", "i32", ()))
    start = {"sum": 0, "prod": 1, "max": 5, "min": 9}[name]
    assert interpret(p, {"y": np.array(start, np.int32)})["y"] == wanted


def test_casts_truncate_towards_zero():
    cast = Cast(DTYPES["i32"], Call("sub", (IndexValue(AT), Literal(2.5, DTYPES["f32"]))))
    p = program(statement(cast), array("y", "out", "i32"))
    assert interpret(p, {})["y"].tolist() == [-2, -1, 0, 0]
    half = Cast(DTYPES["f16"], Literal(0.1, DTYPES["f32"]))
    assert interpret(program(statement(half), array("y", "out")), {})["y"][0] == np.float32(np.float16(0.1))


def test_only_instances_of_the_domain_run():
    p = program(
        statement(Literal(1.0, DTYPES["f32"]), domain=(Constraint(AT - 1), Constraint(AT - 2 * (AT // 2) - 1, equality=True))),
        array("y", "out"),
    )
    got = interpret(p, {})["y"]
    assert np.isnan(got[[0, 2]]).all()
    assert got[[1, 3]].tolist() == [1, 1]


def test_fill_stands_outside_and_the_reads_do_not_happen():
    p = program(
        statement(Read(0), [Access("x", (AT - 1,))], inside=(Constraint(AT - 1),), fill=7.0), array("x", "in"), array("y", "out")
    )
    assert interpret(p, {"x": np.arange(4, dtype=np.float32)})["y"].tolist() == [7, 0, 1, 2]


def test_an_output_keeps_what_is_not_written():
    p = program(statement(Literal(1.0, DTYPES["f32"]), domain=(Constraint(AT - 2),)), array("y", "out"))
    given = np.array([3, 4, 5, 6], np.float32)
    assert interpret(p, {"y": given})["y"].tolist() == [3, 4, 1, 1]
    assert given.tolist() == [3, 4, 5, 6]


def test_an_index_may_be_data_of_data():
    at = Access("at", (AT,))
    inner = Access("at", (Indirect(Read(0)),))
    outer = Access("x", (Indirect(Read(1)),))
    p = program(statement(Read(2), [at, inner, outer]), array("at", "in", "i32"), array("x", "in"), array("y", "out"))
    at_values = np.array([1, 2, 3, 0], np.int32)
    x = np.array([10, 11, 12, 13], np.float32)
    assert interpret(p, {"at": at_values, "x": x})["y"].tolist() == x[at_values[at_values]].tolist()
    first = statement(Read(0), [Access("x", (Indirect(Read(2)),)), at, Access("at", (Indirect(Read(1)),))])
    p = program(first, array("at", "in", "i32"), array("x", "in"), array("y", "out"))
    assert interpret(p, {"at": at_values, "x": x})["y"].tolist() == x[at_values[at_values]].tolist()


@pytest.mark.parametrize("index", [AT + 1, AT - 1])
def test_outside_the_array(index):
    p = program(statement(Read(0), [Access("x", (index,))], line=3, text="y[i] = x[i + 1]"), array("x", "in"), array("y", "out"))
    with pytest.raises(ProgramError, match="is outside the array") as caught:
        interpret(p, {"x": np.zeros(4, np.float32)})
    assert "line 3: y[i] = x[i + 1]  at i=" in caught.value.where


def test_outside_the_array_by_data():
    p = program(
        statement(Read(1), [Access("at", (AT,)), Access("x", (Indirect(Read(0)),))]),
        array("at", "in", "i32"),
        array("x", "in"),
        array("y", "out"),
    )
    with pytest.raises(ProgramError, match=r"x\[-1\] is outside the array"):
        interpret(p, {"at": np.array([0, -1, 0, 0], np.int32), "x": np.zeros(4, np.float32)})


@pytest.mark.parametrize("role", ["out", "temporary"])
def test_read_before_written(role):
    p = program(statement(Read(0), [Access("t", (3 - AT,))], target=Access("t", (AT,), "write")), array("t", role))
    with pytest.raises(ProgramError, match=r"t\[3\] is read before it is written"):
        interpret(p, {})


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({}, "the array x is missing"),
        ({"x": np.zeros(3, np.float32)}, r"x has the shape \(3,\), not \(4,\)"),
        ({"x": np.zeros(4, np.int32)}, "x is int32, not f32"),
    ],
)
def test_arrays_are_checked(given, what):
    p = program(statement(Read(0), [X]), array("x", "in"), array("y", "out"))
    with pytest.raises(ProgramError, match=what):
        interpret(p, given)
