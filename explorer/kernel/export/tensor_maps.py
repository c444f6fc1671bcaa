"""Tensor maps in an exported file: the function that has the driver make one, and the calls of the launcher."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ...ir.dtype import DType
from ..module import CudaModule, TensorMap

ENCODE = """\
// The driver makes tensor maps (cuTensorMapEncodeTiled, found by name: no library to link beside the runtime).
inline cudaError_t encode_tensor_map(tensor_map* map, int type, unsigned rank, const void* array,
                                     const unsigned long long* extents, const unsigned long long* strides, const unsigned* box,
                                     const unsigned* steps, int swizzle) {
    typedef int (*Encode)(void*, int, unsigned, void*, const unsigned long long*, const unsigned long long*, const unsigned*,
                          const unsigned*, int, int, int, int);
    void* found = nullptr;
    cudaDriverEntryPointQueryResult status;
#if CUDART_VERSION >= 12050
    cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &status);
#else
    cudaError_t error = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &status);
#endif
    if (error != cudaSuccess) return error;
    if (status != cudaDriverEntryPointSuccess || !found) return cudaErrorNotSupported;
    const int no = ((Encode)found)(map, type, rank, (void*)array, extents, strides, box, steps, 0, swizzle, 3, 0);
    return no ? cudaErrorInvalidValue : cudaSuccess;
}
"""
_TYPES = {("float", 2): 6, ("float", 4): 7, ("float", 8): 8, ("int", 1): 0, ("int", 2): 1, ("int", 4): 3, ("int", 8): 5,
          ("bool", 1): 0, ("float", 1): 0}
_BF16, SWIZZLES = 9, {0: 0, 32: 1, 64: 2, 128: 3}
"""``CU_TENSOR_MAP_SWIZZLE`` by bytes of a row."""


def data_type(dtype: DType) -> int:
    """``CU_TENSOR_MAP_DATA_TYPE`` of an element type (CUDA Driver API); elements are moved, not computed with."""
    return _BF16 if dtype.name == "bf16" else _TYPES[dtype.kind, dtype.bytes]


def row_strides(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Bytes from one element to the next along each dimension but the innermost, inner ones first."""
    inner = shape[::-1]
    return tuple(prod(inner[:axis]) * size for axis in range(1, len(inner)))


def encode_lines(module: CudaModule, tensor_map: TensorMap, pointer: Mapping[str, str]) -> list[str]:
    """The lines of a launcher that make one tensor map."""
    buffer, name = module.buffer(tensor_map.buffer), pointer[tensor_map.name]
    strides = row_strides(tensor_map.stored, buffer.dtype.bytes) or (0,)
    return [f"    tensor_map {name};",
            f"    const unsigned long long {name}_extents[] = {{{', '.join(map(str, tensor_map.shape[::-1]))}}};",
            f"    const unsigned long long {name}_strides[] = {{{', '.join(map(str, strides))}}};",
            f"    const unsigned {name}_box[] = {{{', '.join(map(str, tensor_map.spans[::-1]))}}};",
            f"    const unsigned {name}_steps[] = {{{', '.join(map(str, tensor_map.steps[::-1]))}}};",
            f"    error = encode_tensor_map(&{name}, {data_type(buffer.dtype)}, {len(tensor_map.shape)}, {pointer[buffer.name]}, "
            f"{name}_extents, {name}_strides, {name}_box, {name}_steps, {SWIZZLES[tensor_map.swizzle]});",
            "    if (error != cudaSuccess) return error;"]
