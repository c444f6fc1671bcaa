"""Compile an exported file with the host's compiler and a stand-in for CUDA's headers, and run it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import explorer.run
from explorer.run.compiler import find_compiler

HEADERS = Path(__file__).parent / "host_cuda"
SIMT = Path(explorer.run.__file__).parent / "simt"
_LAUNCH = re.compile(r"(\w+)<<<(dim3\(.*?\)), (dim3\(.*?\)), \d+, stream>>>\((.*?)\);")


def host_run(text: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The finished process of the file's ``main``."""
    program = host_build(text, folder)
    return subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False, timeout=120)


def host_build(text: str, folder: Path) -> Path:
    """The executable."""
    source = folder / "exported.cpp"
    source.write_text(_LAUNCH.sub(r"host_launch(\2, \3, [=] { \1(\4); });", text))
    options = ["-std=c++17", "-O0", "-w", f"-I{HEADERS}", f"-I{SIMT}", "-lpthread"]
    built = subprocess.run([find_compiler().path, str(source), *options, "-o", str(folder / "exported")],
                           capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder / "exported"
