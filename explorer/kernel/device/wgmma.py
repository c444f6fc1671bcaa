"""The device function of a warpgroup's tensor instructions, made from its row."""

from __future__ import annotations

from dataclasses import replace

from ...ir.instructions import STEP_BYTES, Wgmma
from .mma import register_operands


def wgmma_name(row: Wgmma) -> str:
    """What the function is called, whatever the number of steps: ``wgmma_m64n256_f16_f16_f32``, or ``…_async``."""
    return f"wgmma_m{row.m}n{row.n}_{row.a}_{row.b}_{row.c}{'_async' if row.in_flight else ''}"


def wgmma_part(row: Wgmma) -> str:
    """The part of the device library that holds it: that of one step."""
    return f"wgmma_{replace(row, steps=1).name}"


def wgmma_text(row: Wgmma) -> str:
    """The function that adds the product of two tiles in shared memory to a fragment, called by all 128 threads of a warpgroup.

    Parameters
    ----------
    row : Wgmma

    Returns
    -------
    str
        CUDA C++.
    """
    count, step = row.accumulator.registers, STEP_BYTES // row.a.bytes
    registers = register_operands("c", row.c, count)
    twin = f"simt_{'wgmma_async' if row.in_flight else 'wgmma'}"
    packed = row.c.bytes < 4
    c = ", ".join(f"%{n}" for n in range(len(registers)))
    left, right = len(registers), len(registers) + 1
    factors = f"%{left}, %{right}, p" + (", 1, 1" if row.c.kind == "float" else "")
    orders = f", %{left + 2}, %{left + 3}" if row.transposable else ""
    inputs = ['"l"(a.descriptor(step))', '"l"(b.descriptor(step))']
    inputs += ['"n"((int)A::transposed)', '"n"((int)B::transposed)'] if row.transposable else []
    outputs = ", ".join(f'"+{letter}"({text})' for letter, text in registers)
    return "\n".join((
        f"// c += a * b on a tile of {row.m} x {row.n} x {step} * STEPS, by a warpgroup, factors in shared memory.",
        f"// It is {'in flight' if row.in_flight else 'done'} when the function returns (PTX ISA, wgmma.mma_async; sm_90a).",
        "template <int STEPS, class A, class B>",
        f"__device__ __forceinline__ void {wgmma_name(row)}({row.c.cuda} (&c)[{count}], const A a, const B b) {{",
        "#if defined(SIMT_HOST)",
        f"    {twin}<{row.n}, {step}, STEPS, {row.a.cuda}, {row.b.cuda}>(c, a, b, __builtin_LINE());",
        "#else",
        *([f"    unsigned c_[{len(registers)}];\n    memcpy(c_, c, sizeof c_);"] if packed else []),
        '    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");',
        "    #pragma unroll",
        "    for (int step = 0; step < STEPS; ++step)",
        '        asm volatile("{ .reg .pred p; setp.eq.u32 p, 0, 0; "',
        f'                     "{row.ptx} "',
        f'                     "{{{c}}}, {factors}{orders}; }}"',
        f"                     : {outputs}",
        f"                     : {', '.join(inputs)} : \"memory\");",
        '    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");',
        *([] if row.in_flight else [f'    asm volatile("wgmma.wait_group.sync.aligned 0;" : {outputs} :: "memory");']),
        *(["    memcpy(c, c_, sizeof c_);"] if packed else []),
        "#endif",
        "}",
        "",
    ))
