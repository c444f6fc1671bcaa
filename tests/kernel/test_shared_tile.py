"""The matrix descriptors of a warpgroup's factors, against the format that the PTX ISA gives, on the host's compiler."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import explorer.kernel.device
from explorer.run.cpu.compiler import find_compiler

TEXT = (Path(explorer.kernel.device.__file__).parent / "shared_tile.cuh").read_text(encoding="utf-8")
AROUND = """
#include <cstdio>
#include <initializer_list>
#define __device__
#define __forceinline__ inline
unsigned __cvta_generic_to_shared(const void* at) { return (unsigned)(unsigned long long)at; }
%s
int main() {
    for (unsigned at : {0u, 1024u, 0x12400u, 0x38C00u, 0x1000400u, 0x7012400u})
        for (int number = 0; number < 4; ++number)
            std::printf("%%u %%d %%llx\\n", at, number,
                        shared_tile<%d, false, %d, %d>((const void*)(unsigned long long)at).descriptor(number));
}
"""


@pytest.mark.parametrize(("swizzle", "panel", "step"), [(128, 8192, 32), (128, 16384, 2048), (64, 4096, 32), (32, 2048, 16)])
def test_descriptors_are_as_the_format_says(swizzle: int, panel: int, step: int, tmp_path: Path) -> None:
    """Bits 0-13 the address, 16-29 the leading and 32-45 the stride byte offset, in units of 16 bytes; 62-63 the swizzle.

    An address in a block has 18 bits; above them is the block's number in its cluster.
    """
    source, program = tmp_path / "tile.cpp", tmp_path / "tile"
    source.write_text(AROUND % (TEXT, swizzle, panel, step), encoding="utf-8")
    subprocess.run([find_compiler().path, str(source), "-std=c++17", "-w", "-o", str(program)], check=True)
    rows = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
    assert len(rows) == 24
    for at, number, found in (row.split() for row in rows):
        word = int(found, 16)
        assert word & 0x3FFF == ((int(at) + int(number) * step) & 0x3FFFF) >> 4
        assert word >> 16 & 0x3FFF == panel >> 4
        assert word >> 32 & 0x3FFF == 8 * swizzle >> 4
        assert word >> 62 == {128: 1, 64: 2, 32: 3}[swizzle]
        assert word & ~(0x3FFF | 0x3FFF << 16 | 0x3FFF << 32 | 3 << 62) == 0
