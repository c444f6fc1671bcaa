"""Accumulators of warpgroups' products that machine code reads before they are complete.

A product stays in flight until a wait has let it through (PTX ISA, ``wgmma.wait_group``), and the compiler keeps reads behind it.
NVRTC 13.5 did not where neighbouring halves were stored one by one: it packed two of them in front of the wait, so that the last
products were missing in both.  No test on a CPU can see that, so the machine code is looked at.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.sass import disassembler, whole

PRODUCT = re.compile(r"[HIQ]GMMA\.64x(\d+)x\d+(\.F16)?\S* R(\d+),")
COMPLETE = re.compile(r"WARPGROUP\.DEPBAR\.LE gsb0, 0x0")
INSTRUCTION = re.compile(r"\*/\s+(.*?);")
REGISTER = re.compile(r"\bR(\d+)\b")


def read_in_flight(cubin: bytes) -> dict[str, list[str]]:
    """Of each kernel the instructions that touch an accumulator between its product and the wait for all products.

    Instructions are looked at in the order in which they stand, so that a loop counts once.
    """
    with TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(whole(cubin))
        text = subprocess.run([disassembler(), "-c", file], stdout=subprocess.PIPE, text=True, check=True).stdout
    return {part.partition(":")[0]: [*early(part)] for part in re.split(r"\n\.text\.", text)[1:]}


def early(text: str) -> Iterator[str]:
    """Those of one kernel, from what ``nvdisasm -c`` prints of it."""
    flying = set[int]()
    for line in text.splitlines():
        if product := PRODUCT.search(line):
            columns, halves, first = product.groups()
            flying |= {*range(int(first), int(first) + int(columns) // (4 if halves else 2))}
        elif COMPLETE.search(line):
            flying.clear()
        elif (found := INSTRUCTION.search(line)) and flying & {int(n) for n in REGISTER.findall(found[1])}:
            yield found[1].strip()
