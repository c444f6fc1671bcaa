"""The system's C++ compiler: find it, run it, keep what it made.

Results are cached on disk under a key of everything that can change them, so that a kernel is compiled once per machine.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..errors import CompilerMissing, DeviceError
from .cancel import run_process

CACHE_LIMIT_BYTES = 2 * 2**30

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

        Type punning is how CUDA text widens accesses, hence ``-fno-strict-aliasing``.  Optimisations that would merge or
        invent accesses are off in the checked build, so that what is checked is what was written.
        """
        common = ("-std=c++17", "-w", "-g1", "-gdwarf-4", "-fno-strict-aliasing", "-fno-exceptions", "-fno-rtti",
                  "-fno-math-errno", "-ffp-contract=fast", "-fno-stack-protector")
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


def cache_folder() -> Path:
    """The folder of compiled kernels: ``EXPLORER_CACHE_DIR``, else the platform's folder for caches."""
    if chosen := os.environ.get("EXPLORER_CACHE_DIR"):
        return Path(chosen)
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "explorer"
    home = Path(os.path.expanduser("~"))
    return home / ("Library/Caches/explorer" if sys.platform == "darwin" else ".cache/explorer")


def key_of(*parts: object) -> str:
    """A name for the result that `parts` determine."""
    return hashlib.sha256(json.dumps([str(p) for p in parts]).encode()).hexdigest()[:40]


def cached(key: str, make: Callable[[Path], None]) -> Path:
    """The folder that `make` filled for `key`, now or earlier.

    The folder appears under its name in one step, complete, so concurrent processes never see half of it; of two that make
    the same one, either result stays.
    """
    final = cache_folder() / key[:2] / key
    if final.is_dir():
        _touch(final)
        return final
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=".making-", dir=final.parent))
    except OSError as error:
        raise DeviceError("The folder for compiled kernels cannot be written.", where=str(final.parent), why=str(error),
                          hint="set EXPLORER_CACHE_DIR to a folder that can") from error
    try:
        make(work)
        try:
            work.rename(final)
        except OSError:
            if not final.is_dir():
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return final


def _touch(folder: Path) -> None:
    """Note the use of a cached result; a read-only cache is fine."""
    with contextlib.suppress(OSError):
        os.utime(folder)


def prune_cache(limit_bytes: int = CACHE_LIMIT_BYTES) -> int:
    """Delete the least recently used results until at most `limit_bytes` remain; returns the bytes deleted."""
    entries = []
    for folder in cache_folder().glob("??/*"):
        try:
            size = sum(f.stat().st_size for f in folder.iterdir() if f.is_file())
            entries.append((folder.stat().st_mtime, size, folder))
        except OSError:
            continue
    excess = sum(size for _, size, _ in entries) - limit_bytes
    deleted = 0
    for _, size, folder in sorted(entries, key=lambda e: e[0]):
        if deleted >= excess:
            break
        shutil.rmtree(folder, ignore_errors=True)
        deleted += size
    return deleted


def run_compiler(compiler: Compiler, arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the compiler in `folder`; its messages are in English and its outcome is the caller's to judge."""
    return run_process([compiler.path, *arguments], cwd=folder, env={**os.environ, "LC_ALL": "C"})
