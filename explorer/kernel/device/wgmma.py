"""The device function of a warpgroup's tensor instructions, made from its row."""

from __future__ import annotations

from dataclasses import replace

from ...ir.instructions import STEP_BYTES, Wgmma
from .mma import register_operands


def wgmma_name(row: Wgmma) -> str:
    """What the function is called, whatever the number of steps: ``wgmma_m64n256_f16_f16_f32``, ``…_rs``, or ``…_async``."""
    return f"wgmma_m{row.m}n{row.n}_{row.name.partition('_')[2]}"


def wgmma_part(row: Wgmma) -> str:
    """The part of the device library that holds it: that of one step."""
    return f"wgmma_{replace(row, steps=1).name}"


def wgmma_text(row: Wgmma) -> str:
    """The function that adds a product to a fragment, called by all 128 threads of a warpgroup.

    The right factor is a tile in shared memory; the left one another, or a fragment, too.

    Parameters
    ----------
    row : Wgmma

    Returns
    -------
    str
        CUDA C++.
    """
    left_type, right_type = ("simt_tf32" if row.significand else d.cuda for d in (row.a, row.b))
    count, step = row.accumulator.registers, STEP_BYTES // row.a.bytes
    registers = register_operands("c", row.c, count)
    twin = f"simt_{'wgmma_async' if row.in_flight else 'wgmma'}"
    packed, held, words = row.c.bytes < 4, row.held, STEP_BYTES // 8
    left = [f'"r"(a_[{words} * step + {n}])' for n in range(words)] if held else ['"l"(a.descriptor(step))']
    orders = ['"n"((int)A::transposed)', '"n"((int)B::transposed)'][held:] if row.transposable else []
    inputs = [*left, '"l"(b.descriptor(step))', *orders]
    number = [f"%{n}" for n in range(len(registers) + len(inputs))]
    c, a = (", ".join(number[n : n + m]) for n, m in ((0, len(registers)), (len(registers), len(left))))
    behind = number[len(registers) + len(left):]
    factors = ", ".join((f"{{{a}}}" if held else a, behind[0], "p", *(("1", "1") if row.c.kind == "float" else ()), *behind[1:]))
    outputs = ", ".join(f'"+{letter}"({text})' for letter, text in registers)
    return "\n".join((
        f"// c += a * b on a tile of {row.m} x {row.n} x {step} * STEPS, by a warpgroup, "
        f"{'b in shared memory.' if held else 'factors in shared memory.'}",
        f"// It is {'in flight' if row.in_flight else 'done'} when the function returns (PTX ISA, wgmma.mma_async; sm_90a).",
        f"template <int STEPS, class {'B' if held else 'A, class B'}>",
        f"__device__ __forceinline__ void {wgmma_name(row)}({row.c.cuda} (&c)[{count}], "
        f"const {f'{row.a.cuda} (&a)[{step // 2} * STEPS]' if held else 'A a'}, const B b) {{",
        "#if defined(SIMT_HOST)",
        f"    {twin}<{row.n}, {step}, STEPS, {left_type}, {right_type}>(c, a, b, __builtin_LINE());",
        "#else",
        *([f"    unsigned c_[{len(registers)}];\n    memcpy(c_, c, sizeof c_);"] if packed else []),
        *([f"    unsigned a_[{words} * STEPS];\n    memcpy(a_, a, sizeof a_);"] if held else []),
        '    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");',
        "    #pragma unroll",
        "    for (int step = 0; step < STEPS; ++step)",
        '        asm volatile("{ .reg .pred p; setp.eq.u32 p, 0, 0; "',
        f'                     "{row.ptx} "',
        f'                     "{{{c}}}, {factors}; }}"',
        f"                     : {outputs}",
        f"                     : {', '.join(inputs)} : \"memory\");",
        '    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");',
        *([] if row.in_flight else [f'    asm volatile("wgmma.wait_group.sync.aligned 0;" : {outputs} :: "memory");']),
        *(["    memcpy(c, c_, sizeof c_);"] if packed else []),
        "#endif",
        "}",
        "",
    ))
