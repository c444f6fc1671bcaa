"""The device function of a tensor instruction, made from its row of the table."""

from __future__ import annotations

from ...ir.dtype import DType
from ...ir.instructions import Mma

_LETTERS = {"f32": "f", "f64": "d", "i32": "r"}
"""What inline assembly calls a register that holds one element."""


def mma_name(row: Mma) -> str:
    """What the function is called: ``mma_m16n8k16_f16_f16_f32``."""
    return f"mma_{row.name}"


def mma_text(row: Mma) -> str:
    """The function that adds the product of two fragments to a third, called by all 32 lanes of a warp.

    Parameters
    ----------
    row : Mma

    Returns
    -------
    str
        CUDA C++.
    """
    held = {"c": (row.c, row.accumulator.registers), "a": (row.a, row.left.registers), "b": (row.b, row.right.registers)}
    operands = {name: register_operands(name, dtype, count, row.significand > 0 and name != "c")
                for name, (dtype, count) in held.items()}
    packs = {name: found for name, found in operands.items() if held[name][0].bytes < 4}
    numbers = iter(range(sum(map(len, operands.values()))))
    c, a, b = ("{" + ", ".join(f"%{next(numbers)}" for _ in found) + "}" for found in operands.values())
    parameters = ", ".join(f"{'const ' * (name != 'c')}{dtype.cuda} (&{name})[{count}]" for name, (dtype, count) in held.items())
    template = f"{row.m}, {row.n}, {row.k}" + (f", {row.significand}" if row.significand else "")
    outputs = ", ".join(f'"+{letter}"({text})' for letter, text in operands["c"])
    inputs = ", ".join(f'"{letter}"({text})' for name in "ab" for letter, text in operands[name])
    return "\n".join((
        f"// c += a * b on fragments of a {row.m} x {row.n} x {row.k} tile, by a whole warp (PTX ISA, mma.sync; sm_{row.arch}).",
        f"__device__ __forceinline__ void {mma_name(row)}({parameters}) {{",
        "#if defined(SIMT_HOST)",
        f"    simt_mma<{template}>(c, a, b, __builtin_LINE());",
        "#else",
        *(f"    unsigned {name}_[{len(found)}];\n    memcpy({name}_, {name}, sizeof {name}_);" for name, found in packs.items()),
        f'    asm volatile("{row.ptx} "',
        f'                 "{c}, {a}, {b}, {c};"',
        f"                 : {outputs}",
        f"                 : {inputs});",
        *(["    memcpy(c, c_, sizeof c_);"] if "c" in packs else []),
        "#endif",
        "}",
        "",
    ))


def register_operands(name: str, dtype: DType, count: int, as_bits: bool = False) -> list[tuple[str, str]]:
    """The registers of an operand: the letter that inline assembly has for their type, and their text."""
    if as_bits:
        return [("r", f"__float_as_uint({name}[{n}])") for n in range(count)]
    if dtype.bytes < 4:
        return [("r", f"{name}_[{n}]") for n in range(count * dtype.bytes // 4)]
    return [(_LETTERS[dtype.name], f"{name}[{n}]") for n in range(count)]
