"""What every device can do with a :class:`~explorer.kernel.module.CudaModule`: build it, run it, time it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..errors import CompilerMissing, DeviceError
from ..kernel.module import Buffer, CudaModule

_KDL_CUDA = 2  # kDLCUDA in dlpack.h


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


def plain(array: Any, name: str = "") -> np.ndarray:
    """An array that is nothing but its numbers, in this machine's byte order.

    Raises
    ------
    DeviceError
        It is, or is made of, an array that means more than its numbers: a mask, a unit.  A device would lose that.
    """
    for part in (array, *(array if isinstance(array, list | tuple) else ())):
        kind = type(part)
        if isinstance(part, np.ndarray) and kind not in (np.ndarray, np.memmap):
            masked = isinstance(part, np.ma.MaskedArray)
            raise DeviceError(
                f"{name or 'An array'} is a {kind.__name__}, which means more than its numbers.",
                why="its mask would be lost" if masked else "what it has beyond a NumPy array would be lost",
                hint=".filled(value) gives the masked cells a value" if masked else "np.asarray(…) gives its numbers alone")
    values = np.asarray(array)
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))


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
    array = plain(arrays[buffer.name], buffer.name)
    if array.shape != buffer.shape or array.dtype != buffer.dtype.numpy:
        raise DeviceError(
            f"the array given for {buffer.name} does not fit",
            why=f"the kernel wants {buffer.dtype.numpy} of shape {buffer.shape}; this is {array.dtype} of shape {array.shape}",
            hint="build the schedule for these sizes, or convert the array",
        )
    return np.asarray(array, order="C")


def as_numpy(array: Any, name: str = "") -> np.ndarray:
    """Any array as a NumPy array on the host: NumPy itself, CuPy, or whatever speaks DLPack.

    Raises
    ------
    CompilerMissing
        For an array on a GPU where CuPy is not installed.
    DeviceError
        For a type that DLPack or NumPy cannot express, such as torch's bfloat16, and for an array that means more than its
        numbers, such as one with a mask.
    """
    if isinstance(array, np.ndarray):
        return plain(array, name)
    on_gpu = hasattr(array, "__cuda_array_interface__") or (
        hasattr(array, "__dlpack_device__") and int(array.__dlpack_device__()[0]) == _KDL_CUDA)
    try:
        if on_gpu:
            cupy = importlib.import_module("cupy")
            return cupy.asnumpy(cupy.asarray(array) if hasattr(array, "__cuda_array_interface__") else cupy.from_dlpack(array))
        return np.from_dlpack(array) if hasattr(array, "__dlpack__") else plain(array, name)
    except ImportError as error:
        raise CompilerMissing("An array on the GPU needs CuPy to be read.", hint="pip install cupy-cuda13x") from error
    except (BufferError, TypeError, ValueError, RuntimeError) as error:
        raise DeviceError(f"The {type(array).__name__} cannot be read as a NumPy array.", why=str(error),
                          hint="give bfloat16 as its bits: tensor.view(torch.uint16)") from error
