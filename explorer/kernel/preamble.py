"""What stands above the kernels: headers, constants and the parts of the device library that the text uses."""

from __future__ import annotations

import re
from collections.abc import Collection

from ..ir.plan import Plan
from .device import library_text, parts_of_operations

_MACROS = {
    "INFINITY": "#define INFINITY __int_as_float(0x7f800000)",
    "NAN": "#define NAN __int_as_float(0x7fffffff)",
}
_HEADERS = {"half": "#include <cuda_fp16.h>", "bfloat16": "#include <cuda_bf16.h>", "fp8": "#include <cuda_fp8.h>"}
"""What defines an element type that C++ lacks, and its conversions: names that begin with two underscores and hold the word."""


def headers(words: Collection[str]) -> list[str]:
    """The lines that include what the words of a text need."""
    return [header for name, header in _HEADERS.items() if any(w.startswith("__") and name in w for w in words)]


def preamble(plan: Plan, code: str, library: frozenset[str]) -> list[str]:
    """The lines above the first kernel.

    Parameters
    ----------
    plan : Plan
    code : str
        All kernels' code, without comments.
    library : frozenset of str
        Parts of the device library that collectives and copies use; those of scalar operations are found in the code.
    """
    words = set(re.findall(r"\w+", code))
    library = library | {part for name, part in parts_of_operations().items() if name in words}
    lines = [f"// {plan.program.name}: {', '.join(f'{name} = {size}' for name, size in plan.program.sizes)}".rstrip(": ")]
    lines += headers(words)
    for name, definition in _MACROS.items():
        if name in words:
            lines += [f"#ifndef {name}", definition, "#endif"]
    if library:
        lines += ["", *library_text(tuple(sorted(library)), code).rstrip("\n").split("\n")]
    return lines
