"""Finding NVRTC: CuPy's binding, with the library from the CUDA wheels where there is one."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType


@cache
def binding() -> ModuleType:
    """CuPy's NVRTC module, ready to call.

    The wheels' library is loaded first, by its path: CuPy before 14 looks for it by name alone, and the system's loader
    finds a library that is already there by that name.  Importing the binding neither needs nor looks for a GPU.

    Raises
    ------
    ImportError
        Without CuPy.
    """
    for path in wheel_libraries():
        with suppress(OSError):
            ctypes.CDLL(str(path), mode=getattr(ctypes, "RTLD_GLOBAL", 0))
    return importlib.import_module("cupy_backends.cuda.libs.nvrtc")


def wheel_folders() -> tuple[Path, ...]:
    """The folders of NVIDIA's wheels (``nvidia/cu13``, ``nvidia/cuda_nvrtc``, ...)."""
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(p) for p in (spec.submodule_search_locations or ())] if spec else []
    return tuple(sorted((p for root in roots for p in root.iterdir() if p.is_dir()), reverse=True))


def wheel_libraries() -> tuple[Path, ...]:
    """NVRTC libraries in the wheels, newest major version first."""
    found = (p for folder in wheel_folders() for p in (folder / "lib").glob("libnvrtc.so.*") if "alt" not in p.name)
    return tuple(sorted(found, key=lambda p: p.suffix, reverse=True))
