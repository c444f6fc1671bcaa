"""The device library: CUDA text that generated kernels use, included verbatim, and what Python must know about it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from math import prod
from pathlib import Path

from ...errors import ExplorerError
from ...ir.instructions import INSTRUCTIONS, Wgmma, instruction
from ...ir.operations import OPERATIONS
from .mma import mma_text
from .pieces import needed, pieces
from .wgmma import wgmma_text

_FOLDER = Path(__file__).parent
_NEEDS = {"reduce": ("extreme",), "multicast": ("bulk_copy",), "bulk_store": ("bulk_copy",),
          "async_copy_between": ("async_copy",)}

@cache
def parts_of_operations() -> dict[str, str]:
    """The parts that define what the table of scalar operations spells, by the function."""
    words = {word for row in OPERATIONS.values() for text in row.cuda.values() for word in re.findall(r"[A-Za-z_]\w*", text)}
    return {name: part for part in library_names() for piece in pieces(_part(part)) for name in piece.names if name in words}

@cache
def library_names() -> tuple[str, ...]:
    """The parts there are: ``arg``, ``async_copy``, ``atomic``, ``extreme``, ``reduce`` and so on."""
    return tuple(sorted(p.stem for p in _FOLDER.glob("*.cuh")))


@cache
def defined_names() -> frozenset[str]:
    """The functions, types and macros of all parts: names that an array, a loop or a kernel cannot have in a text."""
    return frozenset(name for part in library_names() for piece in pieces(_part(part)) for name in piece.names)


def library_text(names: Iterable[str], code: str | None = None) -> str:
    """The text of the named parts, each once, in the order given, after what they use themselves.

    Parameters
    ----------
    names : iterable of str
    code : str, optional
        What uses them: definitions that it does not need are left out.

    Raises
    ------
    ExplorerError
        There is no such part.
    """
    parts = [_part(part) for part in dict.fromkeys(part for name in names for part in (*_NEEDS.get(name, ()), name))]
    return "\n".join(parts if code is None else needed(parts, code))


@cache
def _part(name: str) -> str:
    if row := INSTRUCTIONS.get(name.removeprefix("mma_")):
        return mma_text(row)
    if isinstance(group := instruction(name.removeprefix("wgmma_")), Wgmma):
        return wgmma_text(group)
    if name not in library_names():
        raise ExplorerError(f"The device library has no part called {name!r}.", hint=f"it has {', '.join(library_names())}")
    return (_FOLDER / f"{name}.cuh").read_text()


def reduce_scratch_elements(block: Sequence[int], axes: Collection[str], first: bool = False) -> int:
    """Elements of shared memory that ``block_reduce`` needs (``block_reduce_scratch`` in ``reduce.cuh`` is the same formula).

    Parameters
    ----------
    block : (X, Y, Z)
        Extents of the box of threads.
    axes : collection of {"x", "y", "z"}
        Those reduced over.
    first : bool
        Whether the first thread of a group alone needs the result (``block_reduce_first``).

    Examples
    --------
    >>> reduce_scratch_elements((256, 1, 1), "x"), reduce_scratch_elements((32, 8, 1), "y")
    (8, 256)
    """
    members, groups = _members(block, axes)
    if first and groups == 1 and prod(block) > 32:
        return prod(block)
    if groups == 1:
        members = min(members, -(-prod(block) // 32))
    return 0 if members == 1 else members * groups


def reduce_lanes_scratch_elements(block: Sequence[int], axes: Collection[str], count: int) -> int:
    """Elements of shared memory that ``block_reduce_lanes`` needs for `count` values a thread (``reduce_lanes.cuh``).

    Examples
    --------
    >>> reduce_lanes_scratch_elements((32, 8, 1), "y", 4), reduce_lanes_scratch_elements((8, 4, 1), "y", 4)
    (1024, 0)
    """
    members, groups = _members(block, axes)
    return 0 if members == 1 else members * groups * count


def _members(block: Sequence[int], axes: Collection[str]) -> tuple[int, int]:
    """Partial results of a group that shuffles leave apart, and groups."""
    x, y, z = block
    bits_x = _bits(x, 5)
    bits_y = _bits(y, 5 - bits_x) if x == 1 << bits_x else 0
    bits_z = _bits(z, 5 - bits_x - bits_y) if x == 1 << bits_x and y == 1 << bits_y else 0
    members = prod(n >> bits for axis, n, bits in (("x", x, bits_x), ("y", y, bits_y), ("z", z, bits_z)) if axis in axes)
    return members, prod(n for axis, n in zip("xyz", block, strict=True) if axis not in axes)


def _bits(extent: int, most: int) -> int:
    """log2 of the largest power of two that divides `extent`, at most `most`."""
    return min((extent & -extent).bit_length() - 1, most)
