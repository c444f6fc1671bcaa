"""Hand-written modules for the tests of the CPU device, and what they compute."""

from __future__ import annotations

from explorer.ir.dtype import DTYPES
from explorer.kernel.module import Buffer, CudaModule, Launch

F32, F16 = DTYPES["f32"], DTYPES["f16"]


def module(
    text: str,
    buffers: dict[str, tuple],
    block: tuple[int, int, int] | int = 32,
    grid: tuple[int, int, int] | int = 1,
    *,
    kernel: str = "kernel",
    dynamic: int = 0,
    source_map: dict | None = None,
    scalars: tuple[int, ...] = (),
) -> CudaModule:
    """A module of one launch; `buffers` maps names to (dtype name, shape, kind)."""
    made = tuple(
        Buffer(name, DTYPES[dtype], shape if isinstance(shape, tuple) else (shape,), kind)
        for name, (dtype, shape, kind) in buffers.items()
    )
    block = (block, 1, 1) if isinstance(block, int) else block
    grid = (grid, 1, 1) if isinstance(grid, int) else grid
    launch = Launch(kernel, grid, block, tuple(buffers), dynamic_shared_bytes=dynamic, scalars=scalars)
    return CudaModule(kernel, text, made, (launch,), source_map or {})


def body(code: str, parameters: str = "const float* __restrict__ x, float* __restrict__ y") -> str:
    """A kernel around `code`, which starts in line 2, with `t` the thread's number."""
    return f'extern "C" __global__ void kernel({parameters}) {{ const int t = threadIdx.x;\n{code}\n}}\n'


ROW_SUM = """#include <cuda_fp16.h>
extern "C" __global__ void __launch_bounds__(256) row_sum(const __half* __restrict__ x, float* __restrict__ y) {
  __shared__ float red[8];
  const int i = blockIdx.x;
  const int t = threadIdx.x;
  float total = 0.0f;
  for (int k = t; k < 1000; k += 256)
    total += __half2float(x[i * 1000 + k]);
  #pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2)
    total += __shfl_xor_sync(0xffffffffu, total, lanes);
  if (t % 32 == 0)
    red[t / 32] = total;
  __syncthreads();
  if (t == 0) {
    float sum = 0.0f;
    for (int w = 0; w < 8; ++w)
      sum += red[w];
    y[i] = sum;
  }
}
"""


def row_sum(text: str = ROW_SUM, rows: int = 5) -> CudaModule:
    """Sums of rows of 1000 halves: shuffles, shared memory, a barrier."""
    return module(
        text,
        {"x": ("f16", (rows, 1000), "in"), "y": ("f32", rows, "out")},
        256,
        rows,
        kernel="row_sum",
        source_map={"L0": ((3, 21),), "L1": ((7, 8),), "S2": ((8, 8),), "S3": ((19, 19),)},
    )


def edited(text: str, old: str, new: str) -> str:
    """`text` with the one place `old` replaced: a mutation that must hit."""
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times"
    return text.replace(old, new)
