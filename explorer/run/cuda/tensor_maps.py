"""Tensor maps: what the host tells the hardware of an array before bulk copies of its boxes (``cuTensorMapEncodeTiled``)."""

from __future__ import annotations

import ctypes
import sys
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
    shape = buffer.shape[::-1]  # innermost first
    rank = len(shape)
    memory = ctypes.create_string_buffer(BYTES + ALIGNMENT)
    at = -(-ctypes.addressof(memory) // ALIGNMENT) * ALIGNMENT
    extents = (ctypes.c_uint64 * rank)(*shape)
    strides = (ctypes.c_uint64 * max(rank - 1, 1))(*row_strides(buffer.shape, buffer.dtype.bytes))
    box = (ctypes.c_uint32 * rank)(*tensor_map.box[::-1])
    steps = (ctypes.c_uint32 * rank)(*([1] * rank))
    status = _driver().cuTensorMapEncodeTiled(
        ctypes.c_void_p(at), data_type(buffer.dtype), ctypes.c_uint32(rank), ctypes.c_void_p(address), extents, strides, box,
        steps, 0, SWIZZLES[tensor_map.swizzle], _L2_256, 0)  # no interleaving; zeros beyond the array
    if status:
        what = f"{buffer.dtype}{list(buffer.shape)} at an address {address % 128} bytes behind a multiple of 128"
        raise DeviceError(f"The driver makes no tensor map of {buffer.name}.", status=status,
                          why=f"error {status} for {what}, boxes of {list(tensor_map.box)}, swizzle {tensor_map.swizzle}",
                          hint="addresses and rows of 16 bytes, boxes of at most 256 elements along each dimension")
    return np.frombuffer(ctypes.string_at(at, BYTES), dtype=np.dtype([("words", f"V{BYTES}")]))
