"""See and shape how a loop nest becomes a fast GPU kernel.

Write an affine loop nest, transform its schedule by exact moves, read the CUDA, run it (on a GPU, or the same text
on the CPU), check it, time it, and leave with a ``.cu`` file.
"""

from .api import Definition, Schedule, program
from .errors import (
    CompileError,
    CompilerMissing,
    DeviceError,
    ExplorerError,
    ExportError,
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
from .gpu.spec import gpu
from .views.reprs import attach as _attach

_attach()

__version__ = "0.1.0"

__all__ = [
    "CompileError",
    "CompilerMissing",
    "Definition",
    "DeviceError",
    "ExplorerError",
    "ExportError",
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
    "bf16",
    "bool_",
    "cast",
    "erf",
    "exp",
    "f16",
    "f32",
    "f64",
    "gpu",
    "help",
    "i32",
    "i64",
    "i8",
    "inf",
    "local",
    "log",
    "max",
    "min",
    "pow",
    "program",
    "rsqrt",
    "sizes",
    "sqrt",
    "tanh",
    "where",
]
