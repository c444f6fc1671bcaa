"""Devices on which a schedule can run on this machine, and for the others what is missing."""

from __future__ import annotations

import ctypes
import importlib.util
import sys

from ..errors import CompilerMissing, ResourceError
from ..gpu.spec import gpu
from ..run.cpu.compiler import find_compiler
from ..run.cuda import device as cuda
from .protocol_results import DeviceChoice


def devices(ask_driver: bool = True) -> list[DeviceChoice]:
    """The GPU and the CPU; with `ask_driver` the GPU is really asked, which takes seconds the first time."""
    return [_gpu(ask_driver), _cpu()]


def gpu_is_likely() -> bool:
    """Whether it is worth asking the driver: CuPy and the driver's library are there (milliseconds)."""
    return importlib.util.find_spec("cupy") is not None and _driver()


def installed_gpu() -> str:
    """The catalogue's name of the machine's GPU, asking the driver; empty where there is none, or one that is not listed."""
    if cuda.available():
        return ""
    try:
        return gpu(cuda.device().installed().name).name
    except ResourceError:
        return ""


def _gpu(ask_driver: bool) -> DeviceChoice:
    if importlib.util.find_spec("cupy") is None:
        return _choice("cuda", "GPU", "CuPy is not installed: pip install cupy-cuda13x (or cupy-cuda12x, as your driver needs)")
    if not _driver():
        return _choice("cuda", "GPU", "this machine has no NVIDIA driver: open the notebook on one that has a GPU")
    if not ask_driver:
        return _choice("cuda", "GPU", "the GPU is being asked …")
    missing = cuda.available()
    return _choice("cuda", "GPU" if missing else cuda.device().installed().name, missing or "")


def _cpu() -> DeviceChoice:
    try:
        compiler = find_compiler()
    except CompilerMissing as error:
        return _choice("cpu", "CPU", ": ".join(filter(None, (error.what, error.hint))))
    return _choice("cpu", f"CPU ({compiler.version.split(' (')[0]})", "")


def _driver() -> bool:
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True


def _choice(name: str, label: str, why: str) -> DeviceChoice:
    return {"name": name, "label": label, "available": not why, "why": why}
