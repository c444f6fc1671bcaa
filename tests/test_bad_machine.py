"""Machines and texts that fail: no compiler, one that is none, a kernel that never ends, a text that no compiler takes."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import explorer as ex
from explorer.ir.dtype import DTYPES
from explorer.kernel.module import Buffer, CudaModule, Launch
from explorer.run.cpu import compiler
from explorer.run.cpu.device import CpuDevice
from explorer.run.nvrtc.compiler import compile_module
from tests.test_bad_input import CPU, S, refused


@pytest.mark.parametrize(("system", "release", "fix"), [
    ("linux", {"ID": "mint", "ID_LIKE": "ubuntu debian"}, "apt-get install g++"),
    ("linux", {"ID": "fedora"}, "dnf install gcc-c++"),
    ("linux", {"ID": "arch"}, "pacman -S gcc"), ("linux", {"ID": "alpine"}, "apk add g++"), ("linux", {}, "on Debian or Ubuntu"),
    ("darwin", {}, "xcode-select --install"), ("win32", {}, "wsl --install")])
def test_without_a_compiler_there_is_one_sentence_with_the_fix(system: str, release: dict[str, str], fix: str, tmp_path: Path,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: release)
    compiler._find.cache_clear()
    try:
        error = refused(lambda: S.run(**CPU), ex.CompilerMissing, "")
    finally:
        compiler._find.cache_clear()
    assert fix in error.hint
    assert "\n" not in error.what


def test_a_compiler_that_is_none() -> None:
    code = "import tests.test_bad_input as t; t.S.run(**t.CPU)"
    root = str(Path(__file__).resolve().parent.parent)
    for extra in ({"CXX": "/bin/false"}, {"CXX": "/nonexistent/g++"}, {"CXX": ""}):
        clean = {k: v for k, v in os.environ.items() if k not in ("CXX", "PATH")}
        done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False,
                              env={**clean, "PATH": "", "PYTHONPATH": root, **extra})
        assert done.returncode
        last = [line for line in done.stderr.splitlines() if line.startswith("explorer.errors.")]
        assert last == [line for line in last if "CompilerMissing" in line]
        assert last, done.stderr


def endless() -> CudaModule:
    text = 'extern "C" __global__ void spin(float* y) { volatile float* w = y; while (w[0] != 12345.0f) {} y[threadIdx.x] = 1; }'
    return CudaModule("spin", text, (Buffer("y", DTYPES["f32"], (4,), "inout"),), (Launch("spin", (1, 1, 1), (4, 1, 1), ("y",)),))


@pytest.mark.parametrize("checked", [True, False])
def test_a_kernel_that_never_ends_is_stopped(checked: bool) -> None:
    device = CpuDevice(checked=checked, time_limit_s=1.0)
    built = device.build(endless())
    error = refused(lambda: device.run(built, {"y": np.zeros(4, np.float32)}), ex.KernelTimeout, "")
    assert error.hint


def test_a_text_that_no_compiler_takes() -> None:
    broken = CudaModule("spin", endless().text.replace("y[threadIdx.x]", "z[threadIdx.x]"), endless().buffers, endless().launches)
    for ask in (lambda: compile_module(broken), lambda: CpuDevice().build(broken)):
        assert "z" in refused(ask, ex.CompileError, "").why
