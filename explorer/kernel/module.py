"""What code generation hands to a device: CUDA text, its buffers, its launches, and where each node stands in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from ..errors import ScheduleError, outspoken
from ..ir.dtype import DType


@dataclass(frozen=True)
class Buffer:
    """An array in global memory that the launches use.

    Attributes
    ----------
    name : str
        The user's name, or a workspace's.
    dtype : DType
    shape : tuple of int
        Row-major (C order) extents.
    kind : str
        ``"in"``, ``"out"``, ``"inout"`` (the user's arrays) or ``"workspace"`` (allocated by the device, contents undefined).
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    kind: str

    @property
    def size(self) -> int:
        """Elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes."""
        return self.size * self.dtype.bytes


@dataclass(frozen=True)
class TensorMap:
    """What the host tells the hardware of an array before a launch: a parameter of 128 bytes (``tensor_map`` in the text).

    Attributes
    ----------
    name : str
        By which launches name it.
    buffer : str
        The array.
    shape : tuple of int
        The array's extents as the hardware sees it: axes that a box runs through as one are one.
    box : tuple of int
        Elements that one bulk copy moves, along each dimension.
    steps : tuple of int
        From one of them to the next, in elements of the array.
    swizzle : int
        Bytes of a row of the pattern in which they lie in shared memory, 32, 64 or 128; 0 for none.
    pitch : int
        Elements in memory from one row to the next.
    """

    name: str
    buffer: str
    shape: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: int
    pitch: int

    @property
    def stored(self) -> tuple[int, ...]:
        """The array's extents in memory, as the hardware sees them."""
        return (*self.shape[:-1], self.pitch)

    @property
    def spans(self) -> tuple[int, ...]:
        """Elements of the array that a box reaches over."""
        return tuple(n * step for n, step in zip(self.box, self.steps, strict=True))


@dataclass(frozen=True)
class Launch:
    """One kernel launch; a module's launches run in order on one stream.

    Attributes
    ----------
    kernel : str
        The ``extern "C"`` function's name.
    grid, block : tuple of int
        Extents (x, y, z).
    arguments : tuple of str
        Names of buffers and, behind them, of tensor maps, in the order of the kernel's parameters, which come first.
    static_shared_bytes, dynamic_shared_bytes : int
        Shared memory declared in the text, and asked for at launch (``extern __shared__``).
    scalars : tuple of int
        Values of the ``int`` parameters that follow them (the iterations of loops that the host runs).
    cooperative : bool
        All blocks have to be resident at once, since the grid has a barrier (``cudaLaunchCooperativeKernel``).
    cluster : tuple of int
        Blocks (x, y, z) of a cluster, as the text declares them (``__cluster_dims__``).
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[str, ...]
    static_shared_bytes: int = 0
    dynamic_shared_bytes: int = 0
    scalars: tuple[int, ...] = ()
    cooperative: bool = False
    cluster: tuple[int, int, int] = (1, 1, 1)

    @property
    def threads_per_block(self) -> int:
        """Threads of a block, over its three dimensions."""
        return prod(self.block)


@dataclass(frozen=True)
class SharedArray:
    """An array in the shared memory of a kernel's blocks.

    Attributes
    ----------
    kernel, name : str
        The function, and the array's name in it.
    dtype : DType
    shape : tuple of int
        Extents as declared.
    """

    kernel: str
    name: str
    dtype: DType
    shape: tuple[int, ...]


@outspoken(ScheduleError)
@dataclass(frozen=True)
class CudaModule:
    """The CUDA text of a whole schedule.

    Attributes
    ----------
    name : str
        The program's name.
    text : str
        Self-contained CUDA C++ (NVRTC, nvcc, and the host compiler with ``simt.h`` all take it).
    buffers : tuple of Buffer
        In the order of the program's parameters, workspaces last.
    launches : tuple of Launch
    source_map : mapping of str to tuple of (int, int)
        Node id to the 1-based, inclusive line ranges of `text` that it became.
    tensor_maps : tuple of TensorMap
        What launches name beside buffers.
    above : int
        Lines of `text` above the first kernel: headers, the device library, counters.
    shared : tuple of SharedArray
    """

    name: str
    text: str
    buffers: tuple[Buffer, ...]
    launches: tuple[Launch, ...]
    source_map: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict[str, tuple[tuple[int, int], ...]])
    tensor_maps: tuple[TensorMap, ...] = ()
    above: int = 0
    shared: tuple[SharedArray, ...] = ()

    @property
    def kernels_text(self) -> str:
        """The text from the first kernel on."""
        return "".join(self.text.splitlines(keepends=True)[self.above :])

    def buffer(self, name: str) -> Buffer:
        """The buffer with this name."""
        return next(b for b in self.buffers if b.name == name)

    def nodes_at(self, line: int) -> tuple[str, ...]:
        """Ids of the nodes whose text covers `line`, innermost (shortest) first."""
        hits = [(last - first, node) for node, spans in self.source_map.items() for first, last in spans if first <= line <= last]
        return tuple(node for _, node in sorted(hits))
