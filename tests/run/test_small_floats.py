"""Programs on 8-bit floats: copies, sums into f32, staged and asynchronous copies, vectors, exports, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from explorer.errors import DeviceError, ProgramError
from explorer.frontend.elements import nearest_element
from explorer.ir.coding import decoded, encoded
from explorer.ir.dtype import DTYPES
from explorer.ir.interpret import interpret
from explorer.kernel.emit import emit
from explorer.kernel.interpreter import execute
from explorer.run.cpu.device import CpuDevice
from explorer.run.export import exported
from explorer.run.nvrtc.compiler import compile_module
from explorer.run.verify.reference import reference
from explorer.schedule import Schedule
from explorer.strategies.auto import auto
from explorer.strategies.default import default
from tests.frontend.support import body
from tests.kernel.host_run import host_run

NAMES = ("f8e4m3", "f8e5m2")
TEXTS = {
    "copy": ("for i in range(M):\n    for k in range(N):\n        y[i, k] = x[i, k]", "x: ex.T[M, N], y: ex.T[M, N]"),
    "scaled": ("for i in range(M):\n    for k in range(N):\n        y[i, k] = 3.0 * x[i, k] + 0.3",
               "x: ex.T[M, N], y: ex.T[M, N]"),
    "rounded": ("for i in range(M):\n    for k in range(N):\n        y[i, k] = ex.cast(x[i, k], ex.T) * 5.0",
                "x: ex.f32[M, N], y: ex.f32[M, N]"),
    "temporary": ("for i in range(M):\n    for k in range(N):\n        t = ex.local(ex.T)\n        t = x[i, k] * 100.0\n"
                  "        y[i, k] = t + 0.5", "x: ex.T[M, N], y: ex.f32[M, N]"),
    "sum": ("for i in range(M):\n    y[i] = 0.0\n    for k in range(N):\n        y[i] += x[i, k]", "x: ex.T[M, N], y: ex.f32[M]"),
    "largest": ("for i in range(M):\n    y[i] = -ex.inf\n    for k in range(N):\n        y[i] = max(y[i], x[i, k])",
                "x: ex.T[M, N], y: ex.f32[M]"),
}  # fmt: skip
M, N = 6, 80


def made(text: str, name: str, way: str = "default") -> Schedule:
    lines, signature = (part.replace("ex.T", f"ex.{name}") for part in TEXTS[text])
    s = body(lines, signature).schedule(M=M, N=N)
    return {"default": default, "auto": auto}[way](s) if way != "as written" else s


def data(text: str, name: str, codes: bool = False) -> np.ndarray:
    r = np.random.default_rng(1)
    if TEXTS[text][1].startswith("x: ex.f32"):
        x = r.standard_normal((M, N)).astype(np.float32) * np.float32(10.0) ** r.integers(-4, 4, (M, N)).astype(np.float32)
        x[0, :4] = np.inf, -np.inf, np.nan, -0.0
        return x
    if codes:
        return np.resize(np.arange(256, dtype=np.uint8), (M, N))
    return encoded(r.standard_normal((M, N)) * 2.0 ** r.integers(-6, 6, (M, N)), DTYPES[name])


def wide(values: np.ndarray, kind: str) -> np.ndarray:
    return decoded(values, DTYPES[kind]) if kind in NAMES else values


def wanted(text: str, name: str, x: np.ndarray) -> np.ndarray:
    """NumPy's, in f32, each element rounded where the program stores it."""
    kind = DTYPES[name]
    v = wide(x, name) if x.dtype == np.uint8 else x
    f = np.float32
    with np.errstate(all="ignore"):
        return {"copy": lambda: v, "scaled": lambda: decoded(encoded(f(3.0) * v + f(0.3), kind), kind),
                "rounded": lambda: decoded(encoded(v, kind), kind) * f(5.0),
                "temporary": lambda: decoded(encoded(v * f(100.0), kind), kind) + f(0.5),
                "sum": lambda: v.astype(np.float64).sum(1), "largest": lambda: v.max(1)}[text]()


@pytest.mark.parametrize("way", ["as written", "default", "auto"])
@pytest.mark.parametrize("name", NAMES)
def test_programs_are_numpys(name: str, way: str) -> None:
    device = CpuDevice(seeds=2)
    schedules = [made(text, name, way) for text in TEXTS]
    for text, s, built in zip(TEXTS, schedules, device.build_many([emit(s.plan) for s in schedules]), strict=True):
        for codes in (False, True) if text != "sum" else (False,):
            x = data(text, name, codes)
            want, kind = wanted(text, name, x), s.source.parameters[1].dtype.name
            for got in (*device.run_seeds(built, {"x": x}), interpret(s.source, {"x": x}), execute(s.plan, {"x": x}).outputs):
                rounding = 1e-4 if text == "sum" else 0.0
                np.testing.assert_allclose(wide(got["y"], kind), want, rtol=0, atol=rounding, err_msg=f"{text}, {way}")


@pytest.mark.parametrize("name", NAMES)
def test_a_run_is_verified_with_the_types_own_rounding(name: str) -> None:
    for text in TEXTS:
        run = made(text, name, "auto").run(device="cpu", time=False, seeds=1)
        assert not run.faults, text
        assert all(c.wrong == 0 for c in (*run.checks, *run.exact, *(c for _, checks in run.ragged for c in checks))), (text, run)
        found = reference(made(text, name).source, {"x": data(text, name)})
        if text in ("copy", "largest"):
            assert not found.bounds["y"].any(), text


@pytest.mark.parametrize("name", NAMES)
def test_vectors_and_asynchronous_copies_of_16_elements(name: str) -> None:
    s = body(TEXTS["scaled"][0], TEXTS["scaled"][1].replace("ex.T", f"ex.{name}")).schedule(M=32, N=64)
    s = s.bind("i", "block.x").split("k", 16).bind("k", "thread.x").stage("x", at="k", vector=16)
    module = emit(s.plan)
    assert f"vec<{DTYPES[name].cuda}, 16>" in module.text
    ahead = body("for i in range(M):\n    for t in range(N // 16):\n        for k in range(16):\n"
                 "            y[i, 16 * t + k] = 2.0 * x[i, 16 * t + k]", f"x: ex.{name}[M, N], y: ex.{name}[M, N]")
    p = ahead.schedule(M=32, N=64).bind("i", "thread.x").stage("x", at="t", vector=16).pipeline("t", stages=2)
    later = emit(p.plan)
    assert "async_copy<16>" in later.text
    x = np.resize(np.arange(256, dtype=np.uint8), (32, 64))
    device = CpuDevice(seeds=2)
    for plan, made_, scale, add in ((s.plan, module, 3.0, 0.3), (p.plan, later, 2.0, 0.0)):
        want = decoded(encoded(np.float32(scale) * decoded(x, DTYPES[name]) + np.float32(add), DTYPES[name]), DTYPES[name])
        for got in (*device.run_seeds(device.build(made_), {"x": x}), execute(plan, {"x": x}).outputs):
            np.testing.assert_array_equal(decoded(got["y"], DTYPES[name]), want)
        for arch in ("sm_75", "sm_80", "sm_89", "sm_90"):
            assert compile_module(emit(plan, arch=arch), arch).kernels


@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
@pytest.mark.parametrize("name", NAMES)
def test_nvrtc_takes_every_program(name: str, arch: str) -> None:
    for text in TEXTS:
        assert compile_module(emit(made(text, name, "auto").plan, arch=arch), arch).kernels, text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", ["scaled", "sum"])
def test_exported_files_check_themselves(name: str, text: str, tmp_path: Path) -> None:
    answer = host_run(exported(made(text, name)), tmp_path)
    assert answer.returncode == 0, answer.stdout
    assert "0 wrong" in answer.stdout


@pytest.mark.parametrize("line", ["y[i] += x[i]", "y[i] = max(y[i], x[i])", "y[i] *= 2.0"])
def test_updates_are_refused_so_that_no_atomic_is_asked_for(line: str) -> None:
    with pytest.raises(ProgramError, match="an element of f8e5m2 cannot be updated") as caught:
        body(f"for i in range(N):\n    y[i] = 0.0\nfor i in range(N):\n    {line}", "x: ex.f32[N], y: ex.f8e5m2[N]")
    assert "f32 temporary" in (caught.value.hint or "")


def test_arguments_that_do_not_fit_and_other_names() -> None:
    s = made("copy", "f8e4m3")
    with pytest.raises(DeviceError, match="does not fit f8e4m3") as caught:
        s.run({"x": np.full((M, N), 1000.0)}, device="cpu", time=False)
    assert "would become 448.0" in str(caught.value)
    run = s.run({"x": np.full((M, N), 460.0)}, device="cpu", time=False)
    assert decoded(run.outputs["y"], DTYPES["f8e4m3"]).tolist() == np.full((M, N), 448.0).tolist()
    assert [nearest_element(word) for word in ("float8_e4m3fn", "float8_e5m2", "fp8")] == ["f8e4m3", "f8e5m2", "f8e4m3"]
