"""Mistakes that users make: each is answered by the package's own error with the next step, none by a traceback of a tool."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import explorer as ex
from explorer.run.nvrtc.compiler import compile_module
from tests import programs
from tests.frontend.support import define
from tests.programs import row_sum

M, N = ex.sizes("M N")
CPU: dict[str, Any] = {"device": "cpu", "time": False, "ragged": False, "seeds": 1}


@ex.program
def copied(x: ex.i8[M, N], y: ex.i8[M, N]):
    for i in range(M):
        for k in range(N):
            y[i, k] = x[i, k]


@ex.program
def counted(x: ex.i32[N], y: ex.i32[N]):
    for k in range(N):
        y[k] = x[k] + 1


S = row_sum.schedule(M=5, N=8)
X = np.arange(40, dtype=np.float32).reshape(5, 8)
Ask = Callable[[], Any]


def refused(ask: Ask, kind: type[ex.ExplorerError], words: str) -> ex.ExplorerError:
    """The error, which must be of this kind, say what is wrong, and read well in a notebook."""
    with pytest.raises(kind) as caught:
        ask()
    error = caught.value
    assert words in error.what, error.message()
    assert len(error.what) < 250
    assert error._render_traceback_() == [f"{type(error).__name__}: {error.message()}"]
    return error


SIZES: list[tuple[Ask, str]] = [
    (lambda: row_sum.schedule(M=3), "missing size N"),
    (lambda: row_sum.schedule(), "missing sizes M, N"),
    (lambda: row_sum.schedule(M=3, N=4, K=5), "unknown size K"),
    (lambda: row_sum.schedule(3, 4), "sizes are given by name"),
    (lambda: row_sum.schedule(M=-3, N=4), "the size M is -3"),
    (lambda: row_sum.schedule(M=3.0, N=4), "the size M must be an integer, not 3.0"),
    (lambda: row_sum.schedule(M="3", N=4), "the size M must be an integer, not '3'"),
    (lambda: row_sum.schedule(M=True, N=4), "the size M must be an integer, not True"),
    (lambda: row_sum.schedule(M=M, N=4), "the size M must be an integer"),
    (lambda: row_sum.schedule(M=10**30, N=4), "the size M is 1e+30"),
    (lambda: row_sum.schedule(M=2**40, N=2**40), "the array x is too large"),
    (lambda: S.at(M=-1), "the size M is -1"),
    (lambda: S.at(K=1), "unknown size K"),
    (lambda: row_sum(X), "row_sum is a program, not a function"),
    (lambda: ex.program(3), "expects a function, not int"),
    (lambda: ex.program(lambda x: x), "does not match"),
    (lambda: ex.sizes(3), "sizes are named in a string, not in 3"),
    (lambda: ex.sizes("M M"), "does not name sizes"),
    (lambda: ex.workloads.get("soft"), "no workload is called 'soft'"),
]


@pytest.mark.parametrize(("ask", "words"), SIZES, ids=[words for _, words in SIZES])
def test_programs_and_sizes(ask: Ask, words: str) -> None:
    assert refused(ask, ex.ProgramError, words).hint


MOVES: list[tuple[Ask, str]] = [
    (lambda: S.split("q", 4), "there is no loop 'q'"),
    (lambda: S.split(3, 4), "loop must be a name, not 3"),
    (lambda: S.split("k", 0), "at least 1, not 0"),
    (lambda: S.split("k", "4"), "factor must be an integer of at most 31 bits, not '4'"),
    (lambda: S.split("k", 2.0), "factor must be an integer"),
    (lambda: S.split("k", True), "factor must be an integer"),
    (lambda: S.split("k", 10**20), "factor must be an integer"),
    (lambda: S.split("k", 4, inner="a b"), "inner must be a name of letters, digits, _ and ."),
    (lambda: S.split("k", 4, inner="i"), "the name 'i' is taken"),
    (lambda: S.bind("i", "block.w"), "there is no place 'block.w'"),
    (lambda: S.bind("i", ["block.x"]), "to must be a name"),
    (lambda: S.tile(["i"], "4"), "sizes must be integers"),
    (lambda: S.stage("x", "k").pipeline("k", 2, copies=("",)), "copies must be names, not ('',)"),
    (lambda: S.bind("k", "thread.x").collect("y", "shuffle", loops=[""]), "loops must be names, not ('',)"),
    (lambda: S.rfactor("y", "k").contract("y_p", at="q"), "there is no loop 'q'"),
    (lambda: S.rfactor("y", "k").contract("y_p", at="S1"), "S1 is a statement, not a loop"),
    (lambda: S.coalesce(["i", ""]), "loops must be names"),
    (lambda: S.moves("zz"), "there is no node 'zz'"),
    (lambda: S.apply("split"), "'split' is no transformation"),
    (lambda: S.replay(["split"]), "'split' is no transformation"),
    (lambda: S.replay(3), "replay takes steps, not 3"),
    (lambda: S.undo("all"), "undo takes a number of steps"),
    (lambda: S.undo(-1), "undo takes a number of steps"),
    (lambda: S.undo(), "there is nothing to undo"),
    (lambda: S.split("k", 4).undo(2), "undo(2) takes back more steps than there are"),
    (lambda: row_sum.schedule(M=5000, N=2).bind("i", "thread.x"), "at most 1024 places"),
    (lambda: ex.strategies.default(row_sum), "a strategy takes a schedule, not a program"),
]


CALLS: list[tuple[Ask, str, str]] = [
    (lambda: ex.sizes("A", "B"), "sizes: too many", 'M, N = ex.sizes("M N")'),
    (lambda: S.export(), "export: missing", 's.export("kernel.cu")'),
    (lambda: S.save(), "save: missing", 's.save("schedule.json")'),
    (lambda: S.moves(), "moves: missing", 's.moves("i")'),
    (lambda: S.at(33), "at: too many", "s.at(N=64)"),
    (lambda: row_sum.load(), "load: missing", "program.load(text)"),
    (lambda: ex.strategies.auto(S, aproximate=False), "auto: got an unexpected", "approximate=…"),
    (lambda: S.run(x=X), "run has no option 'x'", "arrays are passed together: run({'x': …})"),
    (lambda: S.search(x=X), "search has no option 'x'", "arrays are passed together: search(arrays={'x': …})"),
    (lambda: S.bind(("i", "k"), ("block.y", "block.x")), "to must be a name", "bind('i', 'block.y').bind('k', 'block.x')"),
    (lambda: S.vectorize("k", 4), "gather must be", "split('k', 4).vectorize('k.i')"),
    (lambda: S.unroll("k", 4), "wrong arguments", "split('k', 4).unroll('k.i')"),
    (lambda: row_sum.schedule(M=33), "missing size N", "row_sum.schedule(M=33, N=32)"),
    (lambda: S.at(Q=33), "unknown size Q", ".at(M=5, N=8)"),
]


@pytest.mark.parametrize(("ask", "words", "hint"), CALLS, ids=[hint for _, _, hint in CALLS])
def test_calls_that_do_not_fit_say_what_was_most_likely_meant(ask: Ask, words: str, hint: str) -> None:
    assert hint in refused(ask, ex.ExplorerError, words).hint


def test_a_program_says_that_it_has_to_be_scheduled_first() -> None:
    with pytest.raises(AttributeError, match=r"a program has no run: a schedule has; try row_sum\.schedule\(M=…, N=…\)\.run"):
        row_sum.run()
    assert not hasattr(row_sum, "_repr_png_")


@pytest.mark.parametrize(("ask", "words"), MOVES, ids=[words for _, words in MOVES])
def test_moves(ask: Ask, words: str) -> None:
    refused(ask, ex.TransformError, words)


class Metres(np.ndarray):
    """Numbers with a unit."""


ARRAYS: list[tuple[Ask, str]] = [
    (lambda: S.run({}, **CPU), "The argument x is missing"),
    (lambda: S.run({"x": X, "z": X}, **CPU), "row_sum has no parameter 'z'"),
    (lambda: S.run(X, **CPU), "The arrays are given by name, not as a ndarray"),
    (lambda: S.run([X], **CPU), "The arrays are given by name, not as a list"),
    (lambda: S.run({"x": X.T}, **CPU), "x has shape [8, 5], the program has [5, 8]"),
    (lambda: S.run({"x": X.ravel()}, **CPU), "x has shape [40]"),
    (lambda: S.run({"x": None}, **CPU), "x has shape []"),
    (lambda: S.run({"x": X.astype(complex)}, **CPU), "x is complex128, the program has f32"),
    (lambda: S.run({"x": X.astype(object)}, **CPU), "x is object"),
    (lambda: S.run({"x": X.astype(str)}, **CPU), "x is <U"),
    (lambda: S.run({"x": [[1.0], [2.0, 3.0]]}, **CPU), "cannot be read as a NumPy array"),
    (lambda: S.run({"x": np.ma.masked_array(X, X > 0)}, **CPU), "x is a MaskedArray, which means more than its numbers"),
    (lambda: S.run({"x": [np.ma.masked_array(row, row > 0) for row in X]}, **CPU), "x is a MaskedArray"),
    (lambda: S.run({"x": X.view(np.matrix)}, **CPU), "x is a matrix, which means more than its numbers"),
    (lambda: S.run({"x": X.view(Metres)}, **CPU), "x is a Metres, which means more"),
    (lambda: S.run({"x": np.rec.fromarrays([X, X])}, **CPU), "x is a recarray"),
    (lambda: S.run({"x": X.astype("m8[s]")}, **CPU), "x is timedelta64[s], the program has f32"),
    (lambda: S.run({"x": X.astype("M8[s]")}, **CPU), "x is datetime64[s], the program has f32"),
    (lambda: S.run({"x": np.full((5, 8), 1e300)}, **CPU), "x does not fit f32"),
    (lambda: S.run(reference=lambda arrays, sizes: np.ma.masked_array(arrays["x"].sum(1), [True] * 5), **CPU),
     "The reference's y is a MaskedArray"),
    (lambda: counted.schedule(N=2).run({"x": np.array([1, 2], "m8[s]")}, **CPU), "x is timedelta64[s], the program has i32"),
    (lambda: counted.schedule(N=2).run({"x": np.array([0.5, 1])}, **CPU), "x is float64, the program has i32"),
    (lambda: counted.schedule(N=2).run({"x": np.array([2**40, 1])}, **CPU), "x is int64, the program has i32"),
    (lambda: S.run(reference=3, **CPU), "reference is a function, not 3"),
    (lambda: S.run(reference=lambda arrays, sizes: {"q": X}, **CPU), "returns nothing for y"),
    (lambda: S.run(reference=lambda arrays, sizes: np.zeros(3), **CPU), "returns shape [3] for y"),
    (lambda: S.run(device="tpu"), "There is no device 'tpu'"),
    (lambda: S.run(devcie="cpu"), "run has no option 'devcie'"),
    (lambda: S.run(**{**CPU, "seeds": 0}), "seeds is a number of at least 1, not 0"),
    (lambda: S.run(**{**CPU, "seeds": "2"}), "seeds is a number of at least 1"),
    (lambda: S.run(seed="a", **CPU), "seed is an integer, not 'a'"),
    (lambda: S.run(repeats=0, **CPU), "repeats is a number of at least 1"),
    (lambda: S.run(device="cpu", l2="hot"), "There is no state 'hot' of the L2 cache"),
    (lambda: S.run(device="cpu", ragged_sizes=[{"Q": 3}]), "ragged_sizes is a list of sizes by name"),
    (lambda: S.run(device="cpu", ragged_sizes=3), "ragged_sizes is a list of sizes by name"),
    (lambda: row_sum.schedule(M=2**20, N=2**20).run(**CPU), "too many for the CPU"),
]


@pytest.mark.parametrize(("ask", "words"), ARRAYS, ids=[words for _, words in ARRAYS])
def test_arguments_of_a_run(ask: Ask, words: str) -> None:
    refused(ask, ex.DeviceError, words)


GPUS: list[tuple[Ask, str]] = [
    (lambda: ex.gpu("H2000"), "No GPU called 'H2000'"),
    (lambda: ex.gpu(200), "a GPU is asked for by its name, not by 200"),
    (lambda: S.run(gpu="H2000", **CPU), "No GPU called 'H2000'"),
    (lambda: S.kernel(200), "a GPU is asked for by its name"),
    (lambda: S.module("sm_12"), "no architecture is called 'sm_12'"),
    (lambda: S.run(archs=["sm_12"], **CPU), "no architecture is called 'sm_12'"),
    (lambda: S.compile("Voodoo"), "No GPU called 'Voodoo'"),
    (lambda: S.compile(90), "architectures are asked for by their names"),
    (lambda: S.compile([90]), "a GPU is asked for by its name"),
]


@pytest.mark.parametrize(("ask", "words"), GPUS, ids=[words for _, words in GPUS])
def test_gpus_and_architectures(ask: Ask, words: str) -> None:
    assert refused(ask, ex.ResourceError, words).hint


def test_paths(tmp_path: Path) -> None:
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\x00")
    for write in (S.export, S.save):
        refused(lambda write=write: write(tmp_path / "none" / "file"), ex.ExportError, "is not there")
        refused(lambda write=write: write("a\0b"), ex.ExportError, "cannot be written")
        refused(lambda write=write: write(3), ex.ExportError, "a file is given by its path, not by 3")
    refused(lambda: S.save(tmp_path), ex.ExportError, "is a folder")
    refused(lambda: S.export(tmp_path), ex.ExportError, "is a folder")
    refused(lambda: S.export(tmp_path / "a.cu", buget=3), ex.ExportError, "export has no option 'buget'")
    refused(lambda: row_sum.load(tmp_path / "none.json"), ex.ReplayError, "cannot read")
    refused(lambda: row_sum.load(binary), ex.ReplayError, "cannot read")
    refused(lambda: row_sum.load("a\0b"), ex.ReplayError, "cannot read")
    refused(lambda: row_sum.load("a" * 5000), ex.ReplayError, "cannot read")
    refused(lambda: row_sum.load(3), ex.ReplayError, "from a text or a path, not from 3")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["binary.json"]


def test_an_open_obligation_is_said_before_anything_is_built(tmp_path: Path) -> None:
    racing = S.bind("k", "thread.x")
    for ask in (lambda: racing.cuda, lambda: racing.run(**CPU), racing.kernel, racing.compile,
                lambda: racing.export(tmp_path / "a")):
        error = refused(ask, ex.IllegalSchedule, "would race")
        assert "collect('y', 'shuffle')" in error.hint
        line = Path(programs.__file__).read_text().splitlines()[int(error.where.removeprefix("source line ")) - 1]
        assert line.strip() == "y[i] += x[i, k]"
    assert not list(tmp_path.iterdir())


def mapped() -> np.memmap:
    with tempfile.TemporaryFile() as file:
        file.write(X.tobytes())
        file.flush()
        return np.memmap(file, np.float32, "r", shape=(5, 8))


GIVEN: list[tuple[str, Any]] = [
    ("read-only", lambda: np.frombuffer(X.tobytes(), np.float32).reshape(5, 8)),
    ("column by column", lambda: np.asfortranarray(X)),
    ("strided", lambda: np.repeat(np.repeat(X, 2, 0), 3, 1)[::2, ::3]), ("backwards", lambda: X[::-1].copy()[::-1]),
    ("other byte order", lambda: X.astype(">f4")), ("float64", lambda: X.astype(np.float64)),
    ("integers", lambda: X.astype(np.int16)), ("mapped from a file", mapped), ("long double", lambda: X.astype(np.longdouble)),
    ("a list", X.tolist), ("broadcast", lambda: np.broadcast_to(X[:1], (5, 8))),
]


@pytest.mark.parametrize(("name", "make"), GIVEN, ids=[name for name, _ in GIVEN])
def test_any_layout_of_the_right_values_is_taken(name: str, make: Callable[[], Any]) -> None:
    given = make()
    before = np.array(given)
    run = S.run({"x": given}, **CPU)
    assert run.correct
    np.testing.assert_array_equal(run.outputs["y"], np.asarray(before, np.float32).sum(axis=1))
    np.testing.assert_array_equal(given, before)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_values_that_are_no_numbers_come_through(odd: float) -> None:
    x = X.copy()
    x[2, 3] = odd
    run = S.run({"x": x}, **CPU)
    assert run.correct
    np.testing.assert_array_equal(run.outputs["y"], x.sum(axis=1))


@pytest.mark.parametrize("sizes", [(0, 4), (4, 0), (0, 0), (1, 1), (1, 257), (257, 1), (13, 31)])
def test_empty_single_and_prime_sizes(sizes: tuple[int, int]) -> None:
    s = row_sum.schedule(M=sizes[0], N=sizes[1])
    spread = s.split("i", 4).split("k", 4).bind("i", "block.x").bind("k.i", "thread.x").collect("y", "shuffle")
    for schedule in (s, spread, ex.strategies.default(s)):
        assert schedule.run(**CPU).correct
        for node in schedule.plan.ids:
            assert schedule.moves(node)
    compile_module(spread.module())


def test_more_elements_than_an_int_can_count() -> None:
    big = ex.strategies.default(copied.schedule(M=2**17 + 1, N=2**15 + 1))
    assert "256LL * i" in big.cuda
    assert "4295131137LL" in big.cuda
    compile_module(big.module())
    assert max(big.module().launches[0].grid) < 2**31
    plain = copied.schedule(M=2**33, N=4).cuda
    assert "long long i = 0; i < 8589934592LL" in plain
    small = copied.schedule(M=2**15, N=2**15).cuda
    assert "LL" not in small[small.index('extern "C"'):]


def test_more_blocks_than_a_grid_has() -> None:
    refused(lambda: copied.schedule(M=2**33, N=4).bind("i", "block.x"), ex.TransformError, "places")
    refused(lambda: copied.schedule(M=2**17, N=4).bind("i", "block.y"), ex.TransformError, "at most 65535 places")


def test_more_memory_than_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sysconf", lambda name: 1024)
    refused(lambda: copied.schedule(M=2**10, N=2**10).run(**CPU), ex.OutOfMemory, "The arrays of copied take 0 GiB")


@ex.program
def added(x: ex.f32[N], z: ex.f32[N], y: ex.f32[N]):
    for i in range(N):
        y[i] = x[i] + z[i]


@ex.program
def doubled(x: ex.bf16[N], y: ex.f32[N]):
    for i in range(N):
        y[i] = x[i] * 2


def test_bits_keep_their_meaning_in_any_byte_order() -> None:
    """bf16 travels as its bits in uint16; in the other byte order they are bits too, not numbers."""
    bits = np.array([0x3F80, 0x4000, 0xC040], np.uint16)  # 1, 2, -3
    for given in (bits, bits.astype(">u2")):
        np.testing.assert_array_equal(doubled.schedule(N=3).run({"x": given}, **CPU).outputs["y"], [2, 4, -6])


def test_one_array_may_be_given_twice_and_none_is_written() -> None:
    """Outputs are new arrays, so that what overlaps, or may not be written, does not matter."""
    whole = np.arange(12, dtype=np.float32)
    run = added.schedule(N=8).run({"x": whole[:8], "z": whole[4:], "y": whole[2:10]}, **CPU)
    np.testing.assert_array_equal(run.outputs["y"], whole[:8] + whole[4:])
    np.testing.assert_array_equal(whole, np.arange(12))


@pytest.mark.parametrize("length", [81, 300, 10_000])
def test_names_that_are_too_long(length: int) -> None:
    long = "a" * length
    for text in (f"def {long}(x: ex.f32[M], y: ex.f32[M]):\n    for i in range(M):\n        y[i] = x[i]\n",
                 f"def f({long}: ex.f32[M], y: ex.f32[M]):\n    for i in range(M):\n        y[i] = {long}[i]\n",
                 f"def f(x: ex.f32[M], y: ex.f32[M]):\n    for {long} in range(M):\n        y[{long}] = x[{long}]\n"):
        error = refused(lambda text=text: define(f"@ex.program\n{text}"), ex.ProgramError, "is too long")
        assert f"{length:,} characters" in error.why
