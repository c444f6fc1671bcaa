"""What every device can do with a :class:`~explorer.codegen.module.CudaModule`: build it, run it, time it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..codegen.module import Buffer, CudaModule
from ..errors import DeviceError


@dataclass(frozen=True)
class Built:
    """A module compiled for one device; each device extends it with what it needs to launch.

    Attributes
    ----------
    module : CudaModule
        What was compiled.
    """

    module: CudaModule


class Device(Protocol):
    """A place where kernels run.

    Arrays are C-contiguous NumPy arrays of each buffer's shape and dtype; bf16 travels as its bits in ``uint16``.
    """

    @property
    def name(self) -> str:
        """What users read: ``"cpu"``, or the GPU's name."""
        ...

    def build(self, module: CudaModule) -> Built:
        """Compile.

        Raises
        ------
        CompilerMissing
            The machine lacks the compiler.
        CompileError
            The text was refused; has `line` (of ``module.text``), `nodes` and `log`.
        """
        ...

    def run(self, built: Any, arrays: Mapping[str, np.ndarray], *, time_limit_s: float | None = None) -> dict[str, np.ndarray]:
        """Run all launches once and return the ``out`` and ``inout`` arrays as new arrays; `arrays` is never modified.

        Raises
        ------
        KernelTimeout, KernelFault, OutOfMemory
        """
        ...

    def time(self, built: Any, arrays: Mapping[str, np.ndarray], *, repeats: int = 10, warmup: int = 2,
             time_limit_s: float | None = None) -> tuple[float, ...]:
        """Samples, one per repeat, of the duration of all launches, in microseconds."""
        ...


def checked_array(buffer: Buffer, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """The array given for an ``in`` or ``inout`` `buffer`, C-contiguous.

    Raises
    ------
    DeviceError
        It is missing, or has another shape or dtype.
    """
    if buffer.name not in arrays:
        wanted = f"{buffer.name}: {buffer.dtype} {list(buffer.shape)}"
        raise DeviceError(f"no array was given for {buffer.name}", hint=f"pass {wanted}")
    array = np.asarray(arrays[buffer.name])
    if array.shape != buffer.shape or array.dtype != buffer.dtype.numpy:
        raise DeviceError(
            f"the array given for {buffer.name} does not fit",
            why=f"the kernel wants {buffer.dtype.numpy} of shape {buffer.shape}; this is {array.dtype} of shape {array.shape}",
            hint="build the schedule for these sizes, or convert the array",
        )
    return np.ascontiguousarray(array)
