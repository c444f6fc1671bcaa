"""Names that already mean something: every keyword, macro, function and helper, as an array, a loop, a temporary and a program.

What the names are is asked of the compiler that is there: its preprocessor says which macros the text's headers define.
"""

from __future__ import annotations

import builtins
import keyword
import re
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import explorer.run.cpu
from explorer.frontend.definition import Definition
from explorer.kernel.device import defined_names
from explorer.kernel.emit import emit
from explorer.kernel.names import Names, free, identifier, is_free, kernel_identifier, reserved
from explorer.kernel.reference.c_text import c_name
from explorer.run.cpu.compiler import find_compiler
from explorer.run.cpu.device import CpuDevice
from explorer.run.export import exported
from explorer.run.inputs.arguments import seeded_arrays
from explorer.run.nvrtc.compiler import compile_module
from explorer.run.verify.reference import compiled
from explorer.strategies import default
from tests.frontend.support import define
from tests.kernel.host_run import host_run

SIMT = Path(explorer.run.cpu.__file__).parent / "simt"
KERNEL_HEADERS = '#include "simt.h"\n#include "cuda_fp16.h"\n#include "cuda_bf16.h"\n'
HOST_HEADERS = "".join(f"#include <{name}.h>\n" for name in ("math", "stdio", "stdlib", "string", "time", "limits", "float"))
"""Of an exported file, and what CUDA's own headers include for the host."""
MORE_HEADERS = "".join(f"#include <{name}.h>\n" for name in ("stdint", "ctype", "wchar", "signal", "unistd", "pthread",
                                                              "sys/stat", "fcntl"))
_OWN = """
tx ty tz bx by bz scratch slots result value index block_reduce block_reduce_first self_check reference launch_f compare
distance choose splitmix normal CHECK Timer Choice WARMUP REPEATS at order error stream pick_0 count_0 at_i host_x wide_x
device_x first_x x_bound x_squares y_bound on_host to_device m0_ m0_f entry_0_f simt_kernels SimtKernel cudaError_t
cudaStream_t cudaSuccess cudaMalloc CUDART_VERSION __CUDA_ARCH__ __half _Complex _Bool _x __x __ _ ___ _1 __1 x_ x__ x__y EOF
INT_MAX M_PI SIMT_CHECKED NULL NAN INFINITY HUGE_VAL RAND_MAX errno stdin expf powf fabsf float4 make_float4 uint2 int4 half
nv_bfloat16 dim3 threadIdx warpSize shared_memory x_s f g h M N sum len list input id print dict type object open file int
int_ int__ arguments_f nullptr run taken max_nan min_nan warp_reduce grid_barrier memcpy malloc free printf exit std main
entry argc argv size repeat timer right full
"""
OWN = _OWN.split()


@cache
def macros() -> frozenset[str]:
    """Every macro that is defined where a kernel, its reference or an exported file is compiled."""
    compiler, found = find_compiler(), set[str]()
    for text in (KERNEL_HEADERS, HOST_HEADERS, "#include <cmath>\n#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"):
        for std in ("-std=c++17", "-std=gnu++17"):
            command = [compiler.path, std, f"-I{SIMT}", "-DSIMT_CHECKED=1", "-dM", "-E", "-x", "c++", "-"]
            done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
            found |= {line.split()[1] for line in done.stdout.splitlines()}
    assert len(found) > 1000
    return frozenset(found)


def test_no_macro_replaces_a_name() -> None:
    """Those with arguments only replace what stands before a parenthesis, as no array and no loop does."""
    plain = {m for m in macros() if "(" not in m} - {"stdin", "stdout", "stderr"}
    for name in plain:
        assert not is_free(name), name
        assert free(name) not in macros()
        assert c_name(name) not in macros()
    for name in (m.partition("(")[0] for m in macros()):
        assert kernel_identifier(Names(), name) != name, name


def test_what_is_declared_is_known() -> None:
    """Functions, variables and types in the global namespace: kernels keep away from them."""
    done = subprocess.run([find_compiler().path, "-std=gnu++17", "-E", "-x", "c", "-"], text=True, check=True,
                          input=HOST_HEADERS + MORE_HEADERS, capture_output=True)
    text = re.sub(r"^#.*$", "", done.stdout, flags=re.MULTILINE)
    found = {*re.findall(r"\bextern\b[^;{}]*?\b([a-zA-Z]\w*)\s*\(", text), *re.findall(r"\btypedef\b[^;{}]*?\b(\w+)\s*;", text)}
    assert len(found) > 1000
    assert {name for name in found if kernel_identifier(Names(), name) == name} == set()


def test_ordinary_names_stay() -> None:
    for name in ("x", "A", "x_s", "A_s", "k_i", "row_max", "W1", "KV", "softmax", "x2", "alpha", "A_1", "out", "acc", "Wq"):
        assert identifier(name) == free(name) == c_name(name) == kernel_identifier(Names(), name) == name


def test_each_name_has_its_own_in_c() -> None:
    names = {*OWN, *reserved(), *defined_names(), *(f"{n}_" for n in OWN), *(f"{n}__" for n in OWN), "k.i", "k_i", "x.buffer",
             "x_buffer"}
    assert len({c_name(n) for n in names}) == len(names)
    taken = Names()
    assert len({taken.take(n) for n in names}) == len(names)
    assert all(re.fullmatch(r"[A-Za-z_]\w*", c_name(n), re.ASCII) for n in names)


def words(rest: list[str], at_once: int = 48) -> list[list[str]]:
    """Names that Python takes, several to a program."""
    every = [n for n in dict.fromkeys(rest) if n.isidentifier() and n.isascii() and not keyword.iskeyword(n)
             and n not in ("range", "min", "max", "abs", "pow", "ex", "M", "N", "K", "T", "__debug__")]
    return [every[i : i + at_once] for i in range(0, len(every), at_once)]


def program(names: list[str], called: str) -> Definition:
    """A program of this name whose arrays, temporaries and loops have these names: sums, calls, and what a reduction keeps."""
    body: list[str] = []
    arrays: list[str] = []
    for n in range(0, len(names), 5):
        source, out, i, k, t = [*names[n : n + 5], *(f"spare_{m}" for m in range(5))][:5]
        arrays += [source, out]
        body += [f"for {i} in range(M):", f"    {t} = ex.local(ex.f32)", f"    {t} = 0.0", f"    for {k} in range(M):",
                 f"        {t} += ex.exp({source}[{k}] * 0.01) if {source}[{i}] > 0 else max(abs({source}[{k}]), 0.5)",
                 f"    {out}[{i}] = ex.tanh({t}) + {arrays[max(n // 5 - 1, 0)]}[{i}]"]
    signature = ", ".join(f"{a}: ex.f32[M]" for a in arrays)
    lines = [f"@ex.program\ndef {called}({signature}):", *(f"    {line}" for line in body), ""]
    return define("\n".join(lines))


WORDS = [*OWN, *sorted(reserved() | defined_names() | {b for b in dir(builtins) if b.islower()})]


@pytest.mark.parametrize("names", words(WORDS), ids=lambda names: names[0])
def test_every_name_runs_on_the_cpu_compiles_for_a_gpu_and_exports(names: list[str], tmp_path: Path) -> None:
    made = program(names, names[-1])
    written = made.schedule(M=3)
    s = default(written)
    arrays = seeded_arrays(s.source)
    module = emit(s.plan)
    device = CpuDevice(seeds=1)
    found = device.run(device.build(module), {n: a for n, a in arrays.items() if s.source.array_of[n].role != "out"})
    truth = compiled(s.source, arrays).values
    for name, values in found.items():
        np.testing.assert_allclose(values, truth[name], rtol=1e-4, err_msg=name)
    assert compile_module(module).kernels
    done = host_run(exported(written), tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


CALLED = ["x", "y", "z", "value", "m0_", "simt_kernels", "threadIdx", "EOF", "int", "__x", "x__y", "self_check", "launch_x",
          "norm", "clock", "std", "entry", "run", "n", "main", "vec", "max_nan", "dim3", "x_", "cudaMalloc"]


def test_a_program_may_have_any_name(tmp_path: Path) -> None:
    made = []
    for called in CALLED:
        text = f"def {called}(x: ex.f32[M], y: ex.f32[M]):\n    for n in range(M):\n        y[n] = max(x[n], 0.0)\n"
        made.append(define(f"@ex.program\n{text}").schedule(M=40).bind("n", "thread.x"))
    device, x = CpuDevice(seeds=1), np.linspace(-1, 1, 40, dtype=np.float32)
    modules = [emit(s.plan) for s in made]
    for built in device.build_many(modules):
        np.testing.assert_array_equal(device.run(built, {"x": x})["y"], np.maximum(x, 0))
    for module, s in zip(modules, made, strict=True):
        assert compile_module(module).kernels
        if module.name in ("x", "EOF", "self_check", "norm", "std", "run"):
            done = host_run(exported(s), tmp_path)
            assert (done.returncode, done.stderr) == (0, ""), done.stdout
