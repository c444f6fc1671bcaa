"""What the CUDA worker needs of a GPU library: seventeen operations, implemented with CuPy in `explorer.run.cuda.cupy_engine`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ...errors import ExplorerError
from ...kernel.module import Buffer, Launch, TensorMap
from ..inputs.seeded import Seeded


class Engine(Protocol):
    """Memory, launches and clocks of one device.

    Attributes
    ----------
    method : str
        How times are taken, for the reader of a result.
    """

    method: str

    def describe(self) -> dict[str, Any]:
        """Facts about the device, under the names of `explorer.run.cuda.device.Installed`."""
        ...

    def allocate(self, nbytes: int) -> Any:
        """Memory; what comes back is the `handle` of the other operations."""
        ...

    def fill(self, handle: Any, offset: int, nbytes: int, byte: int) -> None:
        """Set bytes."""
        ...

    def write(self, handle: Any, offset: int, host: np.ndarray) -> None:
        """Host to device, finished on return."""
        ...

    def read(self, handle: Any, offset: int, host: np.ndarray) -> None:
        """Device to host, finished on return."""
        ...

    def copy(self, target: Any, target_offset: int, source: Any, source_offset: int, nbytes: int) -> None:
        """Device to device, in order."""
        ...

    def generate(self, handle: Any, offset: int, buffer: Buffer, seeded: Seeded) -> None:
        """Make a seeded input in place."""
        ...

    def load(self, cubin: bytes, launches: Sequence[Launch]) -> Any:
        """Load machine code; what comes back is the `program` of `launch`."""
        ...

    def encode(self, tensor_map: TensorMap, buffer: Buffer, handle: Any, offset: int) -> Any:
        """A tensor map of an array, as `launch` takes it."""
        ...

    def launch(self, program: Any, launch: Launch, arguments: Sequence[Any]) -> None:
        """Start one launch; arguments are pairs of a handle and an offset, and tensor maps."""
        ...

    def synchronize(self) -> None:
        """Wait for everything started; raises what went wrong."""
        ...

    def record(self, work: Callable[[], None] | None) -> Any:
        """Prepare launches for replay; None stands for one empty kernel."""
        ...

    def replay(self, recorded: Any) -> None:
        """Do recorded work once, untimed."""
        ...

    def time(self, recorded: Any) -> float:
        """Microseconds of one replay."""
        ...

    def flush(self) -> None:
        """Leave the cache full of clean lines of no interest."""
        ...

    def release(self) -> None:
        """Give unused memory back."""
        ...

    def explain(self, error: Exception) -> ExplorerError | None:
        """The library's failure as one of ours; None if it is something else."""
        ...
