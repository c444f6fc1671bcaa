"""Tensor maps: what the host tells the hardware of an array before bulk copies of its boxes (``cuTensorMapEncodeTiled``)."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from ...errors import DeviceError
from ...kernel.export.tensor_maps import SWIZZLES, data_type, row_strides
from ...kernel.module import Buffer, TensorMap

BYTES, ALIGNMENT = 128, 64
"""Of a tensor map (CUDA Driver API, ``CUtensorMap``)."""
_L2_256 = 3
"""Lines are brought into the second-level cache 256 bytes at a time."""


@cache
def _driver() -> Any:
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


def conditions_unmet(tensor_map: TensorMap, buffer: Buffer, address: int) -> Iterator[str]:
    """What the driver asks of a tensor map that is not so here, in words (CUDA Driver API, ``cuTensorMapEncodeTiled``)."""
    shape, box, row = tensor_map.shape, tensor_map.spans, tensor_map.box[-1] * buffer.dtype.bytes
    if address % 16:
        yield f"{buffer.name} begins {address % 16} bytes behind a multiple of 16"
    if not 1 <= len(shape) <= 5:
        yield f"it has {len(shape)} dimensions, not 1 to 5"
    if not all(0 < n <= 1 << 32 for n in shape):
        yield f"its extents {list(shape)} are not all between 1 and 2**32"
    if odd := next((n for n in row_strides(tensor_map.stored, buffer.dtype.bytes) if n % 16 or n >= 1 << 40), 0):
        yield f"its rows are {odd} bytes apart, not a multiple of 16 below 2**40"
    if not all(0 < n <= 256 for n in box):
        yield f"a box of {list(box)} has not 1 to 256 elements along each dimension"
    if tensor_map.steps[-1] > 1 or max(tensor_map.steps) > 8:
        yield f"its steps {list(tensor_map.steps)} are not at most 8, and 1 within rows"
    if row % 16:
        yield f"a row of the box has {row} bytes, not a multiple of 16"
    if tensor_map.swizzle and row > tensor_map.swizzle:
        yield f"a row of the box has {row} bytes, more than the swizzle's {tensor_map.swizzle}"


def encoded(tensor_map: TensorMap, buffer: Buffer, address: int) -> np.ndarray:
    """The 128 bytes that a kernel gets, for an array at an address.

    Parameters
    ----------
    tensor_map : TensorMap
    buffer : Buffer
        Its array.
    address : int
        Where the array begins in global memory, a multiple of 16.

    Returns
    -------
    ndarray
        One element of 128 bytes, which launches take as an argument.

    Raises
    ------
    DeviceError
        If the driver refuses it, with what it was asked.
    """
    shape = tensor_map.shape[::-1]  # innermost first
    rank = len(shape)
    memory = ctypes.create_string_buffer(BYTES + ALIGNMENT)
    at = -(-ctypes.addressof(memory) // ALIGNMENT) * ALIGNMENT
    extents = (ctypes.c_uint64 * rank)(*shape)
    strides = (ctypes.c_uint64 * max(rank - 1, 1))(*row_strides(tensor_map.stored, buffer.dtype.bytes))
    box = (ctypes.c_uint32 * rank)(*tensor_map.spans[::-1])
    steps = (ctypes.c_uint32 * rank)(*tensor_map.steps[::-1])
    status = _driver().cuTensorMapEncodeTiled(
        ctypes.c_void_p(at), data_type(buffer.dtype), ctypes.c_uint32(rank), ctypes.c_void_p(address), extents, strides, box,
        steps, 0, SWIZZLES[tensor_map.swizzle], _L2_256, 0)  # no interleaving; zeros beyond the array
    if status:
        unmet = "; ".join(conditions_unmet(tensor_map, buffer, address)) or "every condition that is known here holds"
        raise DeviceError(f"The driver makes no tensor map of {buffer.name}: {unmet}.", status=status,
                          why=f"error {status} for {buffer.dtype}{list(tensor_map.shape)}, boxes of {list(tensor_map.box)} in "
                              f"steps of {list(tensor_map.steps)}, swizzle {tensor_map.swizzle}",
                          hint="stage with engine='async', which has no such conditions")
    return np.frombuffer(ctypes.string_at(at, BYTES), dtype=np.dtype([("words", f"V{BYTES}")]))
