"""From the text of modules to one C++ source: namespaces, line numbers, entry points.

The text itself is compiled as it is, but for a few tokens: ``extern __shared__`` (no C++ for a host compiler) becomes
``extern __dynamic_shared__``, and ``__device__`` before the counters of a module ``__counter__``, so that a checked run
knows them.  A thread's own arrays become ``simt_array``, which looks at each index (the compiler's check lets the address one
past the end pass, and assigns elements of class type through it), and what is declared without a value is poisoned; a function
of the library that takes an array gets its elements.  Lines keep their numbers through ``#line``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...kernel.module import CudaModule

_DYNAMIC = re.compile(r"\bextern\s+__dynamic_shared__\s+(?:__align__\s*\(\s*\d+\s*\)\s*)?([\w\s]+?)\s*\b(\w+)\s*\[\s*\]\s*;")
_LOCAL = re.compile(
    r"^([ \t]+)((?:float|double|int|unsigned|long long|bool|signed char|__half|__nv_bfloat16|__nv_fp8_e[45]m[23]|"
    r"vec<[^;\[\]]*>) )(\w+)((?:\[\w+\])*);", re.MULTILINE)  # fmt: skip
_LANES = re.compile(r"^([ \t]+)T at\[N\];", re.MULTILINE)
_COMBINED = re.compile(r"(\bblock_reduce_lanes\w*<[^;]*?>\()(\w+)(?=,)")
_FRAGMENTS = re.compile(r"^([ \t]+mma_\w+\()([^;]*)(\);)", re.MULTILINE)
_GROUP_FRAGMENT = re.compile(r"^([ \t]+(?:wgmma_\w+|load_matrix)<[\w, ]+>\()([^,;]*)(,)", re.MULTILINE)
_LEFT_FRAGMENT = re.compile(r"^([ \t]+wgmma_\w+_rs(?:_async)?<\d+>\([^,;]*, )([^,;]*)(,)", re.MULTILINE)
_SYMBOL_MODULE = re.compile(r"(?:_ZZ?N?\d+)?m(\d+)_")


def source_of(modules: Sequence[CudaModule]) -> str:
    """The C++ source of a program that holds every kernel of `modules`; the kernel `f` of module `k` is called ``"k:f"``."""
    headers = [h for h in ("cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h") if any(f"<{h}>" in m.text for m in modules)]
    parts = ['#include "simt.h"\n', *(f'#include "{h}"\n' for h in headers)]
    table = []
    for k, module in enumerate(modules):
        kernels = tuple(dict.fromkeys(launch.kernel for launch in module.launches))
        parts.append(_namespace(k, module, kernels))
        table += [f'{{"{k}:{f}", entry_{k}_{f}, simt_parameters(&m{k}_::m{k}_{f})}},' for f in kernels]
    parts.append('extern "C" const SimtKernel simt_kernels[] = {\n' + "\n".join(table) + "\n};\n")
    parts.append(f'extern "C" const int simt_kernel_count = {len(table)};\n')
    return "".join(parts)


def _namespace(k: int, module: CudaModule, kernels: Sequence[str]) -> str:
    """Module `k` in its namespace, its kernels and dynamic shared arrays renamed, each kernel with an entry point."""
    text = re.sub(r"^([ \t]*extern[ \t]+)__shared__\b", r"\1__dynamic_shared__", module.text, flags=re.MULTILINE)
    text = re.sub(r"^__device__( unsigned (?:int|long long) \w+\[\d+\];)", r"__counter__\1", text, flags=re.MULTILINE)
    text = _LANES.sub(r"\1simt_array<T, N> at;", text)
    start = max(text.find('extern "C"'), 0)  # the library before the kernels has members too
    text = text[:start] + _COMBINED.sub(
        r"\1simt_elements(\2)", _FRAGMENTS.sub(_elements, _LOCAL.sub(_local, text[start:])))
    for fragment in (_LEFT_FRAGMENT, _GROUP_FRAGMENT):
        text = text[:start] + fragment.sub(r"\1simt_elements(\2)\3", text[start:])
    size = max((launch.dynamic_shared_bytes for launch in module.launches), default=0)
    dynamic = dict.fromkeys((" ".join(kind.split()), name) for kind, name in _DYNAMIC.findall(text))
    for name in kernels:  # what has C linkage is one thing in all namespaces
        text = re.sub(rf"(__global__[^;{{}}]*?)\b{name}(?=\s*\()", rf"\g<1>m{k}_{name}", text)
    renamed = tuple(dict.fromkeys(name for _, name in dynamic))
    lines = [f"#define {name} m{k}_{name}" for name in renamed]
    lines += [f"namespace m{k}_ {{", f'#line 1 "{file_of(k)}"', text.rstrip("\n"), '#line 1 "entry.cpp"']
    for kind, name in dynamic:
        extent = f"{max(size, 1)} / sizeof({kind}) + 1"
        lines.append(f"SIMT_DYNAMIC_DEFINITION {kind} __attribute__((aligned(1024))) {name}[{extent}];")
    lines += [f"}}  // namespace m{k}_", *(f"#undef {name}" for name in renamed)]
    lines += [f"SIMT_UNCHECKED static void entry_{k}_{f}(void** a) {{ simt_call(&m{k}_::m{k}_{f}, a); }}" for f in kernels]
    return "\n".join(lines) + "\n"


def _local(found: re.Match[str]) -> str:
    """A variable of a thread's own: its indices looked at, its contents poisoned."""
    pad, kind, name, extents = found.groups()
    sizes = re.findall(r"\w+", extents)
    declared = f"simt_array<{', '.join([kind.strip(), *sizes])}> {name};" if sizes else f"{kind}{name};"
    return f"{pad}{declared} simt_poison({name});"


def _elements(found: re.Match[str]) -> str:
    """A call of a tensor instruction on the elements of its three arrays."""
    before, arguments, behind = found.groups()
    return before + ", ".join(f"simt_elements({argument})" for argument in arguments.split(", ")) + behind


def file_of(k: int) -> str:
    """The file name that diagnostics and line tables give to module `k`."""
    return f"m{k}.cu"


def module_of_symbol(symbol: str) -> int | None:
    """Which module a mangled name of :func:`source_of`'s program belongs to."""
    found = _SYMBOL_MODULE.match(symbol)
    return int(found.group(1)) if found else None


def variable_of_symbol(symbol: str) -> tuple[str, str]:
    """The variable and the kernel (``"*"`` when it is no kernel's own) of a shared array's symbol, mangled (Itanium ABI) or not.

    Examples
    --------
    >>> variable_of_symbol("_ZZ10m0_row_sumE3red")
    ('red', 'row_sum')
    >>> variable_of_symbol("m0_shared_memory")
    ('shared_memory', '*')
    """
    owner, rest = "*", symbol
    if local := re.match(r"_ZZ(\d+)(?=m\d+_)", symbol):
        end = local.end() + int(local.group(1))
        owner, rest = symbol[local.end() : end].split("_", 1)[1], symbol[end:]
    names, at = [], 0
    while at < len(rest):  # lengths stand before names, so names are skipped whole
        length = re.match(r"\d+", rest[at:])
        end = at + len(length.group()) if length else at + 1
        if length:
            names.append(rest[end : end + int(length.group())])
            end += len(names[-1])
        at = end
    return re.sub(r"^m\d+_", "", next(filter(None, reversed(names))) if rest.startswith(("_Z", "E")) else symbol), owner


def is_dynamic_symbol(symbol: str) -> bool:
    """Whether the array is the ``extern __shared__`` one, whose size the launch gives: the only one outside a function."""
    return not symbol.startswith("_ZZ")
