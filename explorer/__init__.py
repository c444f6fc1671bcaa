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
    abs,  # noqa: A004
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
    max,  # noqa: A004
    min,  # noqa: A004
    pow,  # noqa: A004
    rsqrt,
    sizes,
    sqrt,
    tanh,
    where,
)
from .glossary import lookup as help  # noqa: A001
from .gpu.spec import gpu

__version__ = "0.1.0"

__all__ = sorted(name for name in dir() if not name.startswith("_") and name not in (
    "api", "codegen", "errors", "frontend", "glossary", "ir", "moves", "poly", "run", "saved", "schedule", "transforms"))
