"""See and shape how a loop nest becomes a fast GPU kernel.

Write an affine loop nest, transform its schedule by exact moves, read the CUDA, run it (on a GPU, or the same text
on the CPU), check it, time it, and leave with a ``.cu`` file.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from .api import Definition, Schedule, program
from .errors import (
    CompileError,
    CompilerMissing,
    DeviceError,
    ExplorerError,
    ExportError,
    FigureError,
    IllegalSchedule,
    KernelFault,
    KernelTimeout,
    OutOfMemory,
    ProgramError,
    ReplayError,
    ResourceError,
    ScheduleError,
    TransformError,
)
from .frontend import (
    abs,
    argmax,
    argmax_index,
    argmax_key,
    argmin,
    argmin_index,
    argmin_key,
    bf16,
    bool_,
    cast,
    erf,
    exp,
    f16,
    f32,
    f64,
    i8,
    i32,
    i64,
    inf,
    local,
    log,
    max,
    min,
    pow,
    rsqrt,
    sizes,
    sqrt,
    tanh,
    where,
)
from .glossary import lookup as help
from .views.reprs import attach as _attach

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from . import strategies, workloads
    from .app.explore import explore
    from .app.magic import load_ipython_extension
    from .gpu.spec import gpu
    from .views.compare import compare
else:
    from . import gpu

_attach()

__version__ = "0.1.0"

__all__ = [
    "CompileError",
    "CompilerMissing",
    "Definition",
    "DeviceError",
    "ExplorerError",
    "ExportError",
    "FigureError",
    "IllegalSchedule",
    "KernelFault",
    "KernelTimeout",
    "OutOfMemory",
    "ProgramError",
    "ReplayError",
    "ResourceError",
    "Schedule",
    "ScheduleError",
    "TransformError",
    "abs",
    "argmax",
    "argmax_index",
    "argmax_key",
    "argmin",
    "argmin_index",
    "argmin_key",
    "bf16",
    "bool_",
    "cast",
    "compare",
    "erf",
    "exp",
    "explore",
    "f16",
    "f32",
    "f64",
    "gpu",
    "help",
    "i8",
    "i32",
    "i64",
    "inf",
    "load_ipython_extension",
    "local",
    "log",
    "max",
    "min",
    "pow",
    "program",
    "rsqrt",
    "sizes",
    "sqrt",
    "strategies",
    "tanh",
    "where",
    "workloads",
]


_LATER = {"compare": ".views.compare", "explore": ".app.explore", "load_ipython_extension": ".app.magic"}
"""Names whose modules are imported on first use."""


def __getattr__(name: str) -> "ModuleType | Callable[..., Any]":
    """Packages and functions that are imported on first use."""
    if name in ("strategies", "workloads"):
        return _import_module(f".{name}", __name__)
    if name in _LATER:
        return getattr(_import_module(_LATER[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
