"""See and shape how a loop nest becomes a fast GPU kernel.

Write an affine loop nest, transform its schedule by exact moves, read the CUDA, run it (on a GPU, or the same text
on the CPU), check it, time it, and leave with a ``.cu`` file.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

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
    ProgramWarning,
    ReplayError,
    ResourceError,
    ScheduleError,
    TransformError,
    Undecided,
)
from .frontend import (
    Definition,
    argmax,
    argmin,
    bf16,
    bool_,
    cast,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    f64,
    function,
    i8,
    i32,
    i64,
    inf,
    inout,
    local,
    program,
    sizes,
    u8,
    u16,
    u32,
    u64,
)
from .frontend.elements import no_such_word as _no_such_word
from .frontend.words import WORDS as _WORDS
from .schedule import Schedule
from .teach.manual import lookup as help
from .views.reprs import attach as _attach

if TYPE_CHECKING:
    from typing import Any

    from . import strategies, workloads
    from .app.explore import explore
    from .app.magic import load_ipython_extension
    from .gpu.spec import gpu
    from .views.compare import compare
else:
    from . import gpu

_attach()
globals().update(_WORDS)

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
    "ProgramWarning",
    "ReplayError",
    "ResourceError",
    "Schedule",
    "ScheduleError",
    "TransformError",
    "Undecided",
    "argmax",
    "argmin",
    "bf16",
    "bool_",
    "cast",
    "compare",
    "explore",
    "f8e4m3",
    "f8e5m2",
    "f16",
    "f32",
    "f64",
    "function",
    "gpu",
    "help",
    "i8",
    "i32",
    "i64",
    "inf",
    "inout",
    "load_ipython_extension",
    "local",
    "program",
    "sizes",
    "strategies",
    "u8",
    "u16",
    "u32",
    "u64",
    "workloads",
]
__all__ += sorted(_WORDS)  # pyright: ignore[reportUnsupportedDunderAll]


_LATER = {"compare": ".views.compare", "explore": ".app.explore", "load_ipython_extension": ".app.magic"}
"""Names whose modules are imported on first use."""


def __getattr__(name: str) -> "Any":
    """Packages and functions that are imported on first use."""
    if name in ("strategies", "workloads"):
        return _import_module(f".{name}", __name__)
    if name in _LATER:
        return getattr(_import_module(_LATER[name], __name__), name)
    raise _no_such_word(__name__, name, __all__)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
