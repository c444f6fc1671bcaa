"""Compile an exported file with the host's compiler and a stand-in for CUDA's headers, and run it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import explorer.run.cpu
from explorer.run.cpu.compiler import find_compiler

HEADERS = Path(__file__).parent / "host_cuda"
SIMT = Path(explorer.run.cpu.__file__).parent / "simt"
_LAUNCH = re.compile(r"(\w+)<<<(dim3\(.*?\)), (dim3\(.*?\)), \d+, stream>>>\((.*?)\);")


def host_run(text: str, folder: Path, *arguments: str, more: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """The finished process of the file's ``main``, compiled with `more` options."""
    program = host_build(text, folder, *more)
    return subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False, timeout=120)


def host_warnings(text: str, folder: Path) -> str:
    """What the host's compiler warns of in the whole file, its kernels included."""
    source = folder / "whole.cpp"
    text = re.sub(r"\bextern(\s+)__shared__\b", r"extern\1__dynamic_shared__", text)
    source.write_text(_LAUNCH.sub(r"host_launch(\2, \3, [=] { \1(\4); }, stream);", text))
    command = [find_compiler().path, str(source), "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-unknown-pragmas",
               f"-isystem{HEADERS / 'whole'}", f"-isystem{SIMT}", "-DSIMT_CHECKED=0"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def host_build(text: str, folder: Path, *more: str) -> Path:
    """The executable, compiled with `more` options."""
    source = folder / "exported.cpp"
    source.write_text(_LAUNCH.sub(r"host_launch(\2, \3, [=] { \1(\4); });", text))
    options = ["-std=c++17", "-O0", "-w", f"-I{HEADERS}", f"-I{SIMT}", "-lpthread", *more]
    built = subprocess.run([find_compiler().path, str(source), *options, "-o", str(folder / "exported")],
                           capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder / "exported"
