"""Names that C, CUDA, the standard headers, the device library or the schedule itself use: what a user may call things anyway."""

from __future__ import annotations

import random
import re

_WORDS = """
EOF INT_MAX M_PI _Complex SIMT_CHECKED __CUDA_ARCH__ cudaError_t NULL NAN INFINITY CHAR_BIT FLT_MAX RAND_MAX errno
stdin stdout linux unix I int float double char short signed unsigned auto register volatile static extern struct
union enum switch case goto asm template typename this new delete operator namespace private public virtual mutable
constexpr decltype explicit friend inline using bool true false nullptr wchar_t half __half __restrict__ __shared__
blockIdx threadIdx gridDim blockDim warpSize dim3 float4 int2 tx ty tz bx by bz main printf malloc free exp tanh sqrt
y1 j0 j1 div abs_ size_t uint32_t int8_t std simt reduce_sum block_reduce smem shared scratch x_s x_r t_p k_i S0 S1
f_S0 launch seed out result check
"""
HOSTILE = tuple(_WORDS.split())
"""Identifiers of Python, none of them one that the text of a program uses itself."""
_OWN = re.compile(r"(?<![.\w])(?:[ijklabp]|[a-z]\d+|[MNK])(?!\w)")


def renamed(text: str, sizes: tuple[str, ...], pick: random.Random) -> tuple[str, tuple[str, ...]]:
    """A program's text with some of its arrays, loops and sizes under hostile names, and the names of the sizes."""
    own = sorted(set(_OWN.findall(text)) | set(sizes))
    chosen = [name for name in own if pick.random() < 0.6]
    names = dict(zip(chosen, pick.sample(HOSTILE, len(chosen)), strict=True))
    return _OWN.sub(lambda found: names.get(found[0], found[0]), text), tuple(names.get(s, s) for s in sizes)
