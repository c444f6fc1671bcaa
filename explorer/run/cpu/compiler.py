"""The system's C++ compiler: find it, run it."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ...errors import CompilerMissing, DeviceError
from ...system.cache import Cache
from ...system.process import run_process

BUILDS = Cache("", 2 << 30, spread=True)
"""What it built, by what determines it: the text, the flags, the compiler."""

_NO_ROOM = re.compile("No space left on device|Disk quota exceeded|File too large|File size limit exceeded")
_INSTALL = {
    "debian": "sudo apt-get install g++",
    "fedora": "sudo dnf install gcc-c++",
    "arch": "sudo pacman -S gcc",
    "suse": "sudo zypper install gcc-c++",
    "alpine": "sudo apk add g++ musl-dev",
    "darwin": "xcode-select --install",
}


@dataclass(frozen=True)
class Compiler:
    """A C++17 compiler that works like g++.

    Attributes
    ----------
    path : str
        The executable.
    kind : str
        ``"gcc"`` or ``"clang"``.
    version : str
        First line of its ``--version``.
    """

    path: str
    kind: str
    version: str

    def flags(self, checked: bool, watched: bool = True) -> tuple[str, ...]:
        """The options that a kernel's text is compiled with; `checked` instruments every access, unless it is not `watched`.

        Type punning is how CUDA text widens accesses, hence ``-fno-strict-aliasing``; integers wrap, as on a GPU.
        Optimisations that would merge or invent accesses are off in the checked build: what is checked is what was written.
        """
        common = ("-std=c++17", "-w", "-g1", "-gdwarf-4", "-fno-strict-aliasing", "-fno-exceptions", "-fno-rtti",
                  "-fno-math-errno", "-ffp-contract=fast", "-fno-stack-protector", "-fwrapv")
        if not checked:
            return (*common, "-O3", _native(), "-DSIMT_CHECKED=0")
        if not watched:
            return (*common, "-O1", "-DSIMT_CHECKED=1")
        if self.kind == "gcc":
            exact = ("-fsanitize=thread,bounds,alignment,integer-divide-by-zero", "-fno-tree-loop-distribute-patterns",
                     "-fno-tree-loop-im", "-fno-store-merging", "-fno-tree-vectorize")
        else:
            exact = ("-fsanitize=thread,array-bounds,alignment,integer-divide-by-zero", "-fno-vectorize", "-fno-slp-vectorize",
                     "-mllvm", "-tsan-instrument-read-before-write=1")
        return (*common, "-O1", *exact, "-DSIMT_CHECKED=1")

    @property
    def identity(self) -> str:
        """What must be equal for two results to be interchangeable: the compiler and the processor it tunes for."""
        return f"{self.path}|{self.version}|{_processor()}"


def _native() -> str:
    """The option that tunes for this processor."""
    return "-march=native" if platform.machine().lower() in ("x86_64", "amd64", "i686") else "-mcpu=native"


@lru_cache(maxsize=1)
def _processor() -> str:
    """The processor's model and features, so that a cache shared between machines holds no illegal instructions."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    wanted = [line for line in text.splitlines() if line.startswith(("model name", "flags", "Features", "CPU part"))]
    return hashlib.sha256("\n".join(sorted(set(wanted))).encode()).hexdigest()[:16]


def find_compiler() -> Compiler:
    """The compiler named by the environment variable ``CXX``, else g++, clang++ or c++ on the path.

    Raises
    ------
    CompilerMissing
        There is none, or the system is Windows without WSL.
    """
    return _find(os.environ.get("CXX", ""), os.environ.get("PATH", ""))


@lru_cache(maxsize=8)
def _find(wanted: str, path: str) -> Compiler:
    """`find_compiler` for one environment."""
    if sys.platform == "win32":
        raise CompilerMissing(
            "The CPU device does not run on Windows itself.",
            why="it needs a compiler like g++ and the memory mapping of Unix",
            hint="use WSL (wsl --install), and install this package and g++ inside it",
        )
    for candidate in filter(None, (wanted.split()[0] if wanted.split() else "", "g++", "clang++", "c++")):
        found = shutil.which(candidate, path=path or None)
        if not found:
            continue
        answer = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
        if answer.returncode == 0:
            kind = "clang" if "clang" in answer.stdout.lower() else "gcc"
            return Compiler(found, kind, answer.stdout.splitlines()[0] if answer.stdout else "")
    raise CompilerMissing(
        "No C++ compiler was found, so kernels cannot run on the CPU.",
        why="looked for $CXX, g++, clang++ and c++ on the path",
        hint=f"{_install_command()} (in a conda environment: conda install -c conda-forge gxx)",
    )


def _install_command() -> str:
    """How to install a compiler on this system."""
    if sys.platform == "darwin":
        return _INSTALL["darwin"]
    try:
        facts = platform.freedesktop_os_release()
    except (OSError, AttributeError):
        facts = {}
    for name in (facts.get("ID", ""), *facts.get("ID_LIKE", "").split()):
        family = {"ubuntu": "debian", "rhel": "fedora", "centos": "fedora", "opensuse": "suse"}.get(name, name)
        if family in _INSTALL:
            return _INSTALL[family]
    return f"{_INSTALL['debian']} on Debian or Ubuntu, {_INSTALL['fedora']} on Fedora"


def run_compiler(compiler: Compiler, arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the compiler in `folder`; its messages are in English and its outcome is the caller's to judge, but for a full disk.

    Raises
    ------
    DeviceError
        The compiler had no room for what it writes: there, or for its temporary files.
    """
    answer = run_process([compiler.path, *arguments], cwd=folder, env={**os.environ, "LC_ALL": "C"})
    if answer.returncode and (found := _NO_ROOM.search(answer.stderr)):
        places = f"{folder.parent} or {tempfile.gettempdir()}"
        raise DeviceError(f"A kernel cannot be compiled: {found[0].lower()}.", where=places,
                          hint="make room there, or set EXPLORER_CACHE_DIR and TMPDIR to folders on another disk")
    return answer
