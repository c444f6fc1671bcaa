"""CUDA text to machine code without a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from explorer.errors import CompileError, CompilerMissing, DeviceError
from explorer.gpu.spec import ARCHITECTURES
from explorer.ir.dtype import DTYPES
from explorer.kernel.module import Buffer, CudaModule, Launch
from explorer.run.inputs.seeded import CUDA_TEXT
from explorer.run.nvrtc import compiler as nvrtc
from explorer.run.nvrtc import cubin_cache
from explorer.run.nvrtc.compiler import compile_for, compile_module, compile_text, target, try_compile_for
from explorer.run.nvrtc.ptxas import diagnostics, resources

TEXT = """#include <cuda_fp16.h>
#include <cuda_bf16.h>

extern "C" __global__ void scale(__half* x, __nv_bfloat16* y) {
    __shared__ float tile[33];
    extern __shared__ float more[];
    // loop i
    tile[threadIdx.x % 33] = __half2float(x[threadIdx.x]);
    more[threadIdx.x] = 2.0f;
    __syncthreads();
    y[threadIdx.x] = __float2bfloat16(tile[threadIdx.x % 7] * more[3]);
}
"""
MODULE = CudaModule(
    "halves", TEXT, (Buffer("x", DTYPES["f16"], (256,), "in"), Buffer("y", DTYPES["bf16"], (256,), "out")),
    (Launch("scale", (1, 1, 1), (256, 1, 1), ("x", "y"), static_shared_bytes=132, dynamic_shared_bytes=1024),),
    {"kernel": ((4, 12),), "i": ((7, 9),), "copy": ((8, 8),)})


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "explorer" / "nvrtc"


def test_every_architecture_compiles_here_without_a_gpu() -> None:
    kernels = compile_for(MODULE)
    assert [k.arch for k in kernels] == list(ARCHITECTURES)
    for kernel in kernels:
        assert kernel.kernel == "scale"
        assert 8 <= kernel.resources.registers <= 64
        assert 132 <= kernel.resources.static_shared_bytes <= 144  # the dynamic part starts aligned
        assert kernel.resources.barriers == 1
        assert kernel.shared_bytes_per_block == kernel.resources.static_shared_bytes + 1024
        assert kernel.threads_per_block == 256
        assert kernel.occupancy
        assert all(o.blocks_per_sm > 0 for o in kernel.occupancy.values())


def test_machine_code_is_an_elf_file_and_ptx_is_beside_it() -> None:
    made = compile_module(MODULE, "sm_80")
    assert made.cubin[:4] == b"\x7fELF"
    assert ".target sm_80" in made.ptx
    assert ".entry scale" in made.ptx
    assert "Used" in made.log


def test_spills_and_stack_are_reported() -> None:
    text = """extern "C" __global__ void __launch_bounds__(1024, 2) k(const float* x, float* y, int n) {
        float a[96];
        for (int i = 0; i < 96; ++i) a[i] = x[threadIdx.x + 1024 * i];
        for (int r = 0; r < n; ++r) {
            #pragma unroll
            for (int i = 0; i < 96; ++i) a[i] = a[i] * a[(i * 7 + 1) % 96] + x[i + r];
        }
        for (int i = 0; i < 96; ++i) y[threadIdx.x + 1024 * i] = a[i];
    }"""
    kernel = compile_text(text, "sm_90").kernels["k"]
    assert kernel.registers <= 32
    assert kernel.spill_store_bytes > 0
    assert kernel.spill_load_bytes > 0
    assert kernel.stack_bytes > 0


def test_an_error_has_its_line_its_text_and_its_nodes() -> None:
    bad = replace(MODULE, text=TEXT.replace("= __half2float(x", "= __half2float(z"))
    with pytest.raises(CompileError) as caught:
        compile_module(bad)
    error = caught.value
    assert error.lines == (8,)
    assert error.line == 8
    assert error.nodes == ("copy", "i", "kernel")
    assert error.diagnostics[0].text.strip().startswith("tile[threadIdx.x % 33]")
    assert 'identifier "z" is undefined' in error.why
    assert error.arch == "sm_90"


def test_an_error_of_the_assembler_leads_back_to_the_text() -> None:
    bad = replace(MODULE, text=TEXT.replace("more[threadIdx.x] = 2.0f;", 'asm volatile("no.such.instruction;");'))
    with pytest.raises(CompileError) as caught:
        compile_module(bad)
    assert set(caught.value.lines) == {9}
    assert caught.value.nodes == ("i", "kernel")


def test_errors_without_a_line_are_still_told() -> None:
    big = """extern "C" __global__ void k(float* x) {
        __shared__ float s[20000];
        s[threadIdx.x] = x[0]; __syncthreads(); x[0] = s[3];
    }"""
    with pytest.raises(CompileError) as caught:
        compile_text(big)
    assert "too much shared data" in caught.value.why
    with pytest.raises(CompileError, match="unrecognized option"):
        compile_text(TEXT, options=["--no-such-option"])
    with pytest.raises(CompileError, match="gpu-architecture"):
        compile_text(TEXT, "sm_42")


def test_a_module_without_its_kernel_is_refused() -> None:
    with pytest.raises(CompileError, match="defines no kernel 'scale'"):
        compile_for(replace(MODULE, text=TEXT.replace("void scale", "void other")), ("sm_90",))


def test_machine_code_without_its_log_is_compiled_again(own_cache: Path) -> None:
    compile_module(MODULE)
    (path,) = own_cache.glob("*/outcome.z")
    accepted, cubin, ptx, _ = json.loads(zlib.decompress(path.read_bytes()))
    cubin_cache.CUBINS.keep(path.parent.name, {path.name: zlib.compress(json.dumps([accepted, cubin, ptx, ""]).encode())})
    assert compile_module(MODULE).kernels["scale"].registers >= 8
    assert json.loads(zlib.decompress(path.read_bytes()))[3]  # and kept with it


def test_a_compiler_that_says_nothing_of_the_kernels_is_reported_and_not_kept(own_cache: Path,
                                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    made = compile_module(MODULE)
    monkeypatch.setattr(nvrtc, "_run_compiler", lambda jobs, limit_s: [(True, made.cubin, made.ptx, "")] * len(jobs))
    with pytest.raises(DeviceError, match="did not say what the kernels need") as caught:
        compile_module(replace(MODULE, name="silent"))
    assert "CUDA_CACHE_DISABLE" in caught.value.hint
    assert len(list(own_cache.glob("*/outcome.z"))) == 1


def test_the_compiler_process_uses_no_cache_of_the_driver() -> None:
    """With one, equal PTX (``bool`` and ``signed char`` give it) would come back without registers and spills."""
    code = "import os, explorer.run.nvrtc.worker; print(os.environ['CUDA_CACHE_DISABLE'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"
    text = 'extern "C" __global__ void copy(const TYPE* a, TYPE* c) { c[threadIdx.x] = a[threadIdx.x]; }'
    made = [compile_text(text.replace("TYPE", kind), options=["-DTWIN"]) for kind in ("signed char", "bool")]
    assert made[0].ptx == made[1].ptx
    assert all(m.kernels["copy"].registers for m in made)


def test_what_one_architecture_lacks_is_an_error_there_alone() -> None:
    text = TEXT.replace("more[threadIdx.x] = 2.0f;", """
#if __CUDA_ARCH__ < 800
#error "needs Ampere"
#endif
        more[threadIdx.x] = 2.0f;""")
    module = replace(MODULE, text=text)
    done = try_compile_for(module, ("sm_75", "sm_90"))
    assert isinstance(done["sm_75"], CompileError)
    assert not isinstance(done["sm_90"], CompileError)
    assert done["sm_90"][0].kernel == "scale"
    with pytest.raises(CompileError, match="sm_75"):
        compile_for(module, ("sm_90", "sm_75"))


def test_a_targets_own_instructions_get_its_own_target() -> None:
    text = 'extern "C" __global__ void __launch_bounds__(128, 1) k() { asm volatile("setmaxnreg.inc.sync.aligned.u32 232;"); }'
    assert compile_text(text, "sm_90").arch == "sm_90a"
    assert target(text, "sm_80") == "sm_80"
    assert target(TEXT, "sm_90") == "sm_90"
    assert compile_text(TEXT, "sm_90a").arch == "sm_90a"


def test_the_second_time_comes_from_the_disk(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compile_module(MODULE)
    assert len(list(own_cache.glob("*/outcome.z"))) == 1

    def no_compiler() -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(nvrtc, "_compiler", no_compiler)
    assert compile_module(MODULE) == first
    with pytest.raises(AssertionError):
        compile_module(MODULE, options=["--use_fast_math"])
    with pytest.raises(AssertionError):
        compile_module(MODULE, "sm_80")


def test_errors_are_kept_too(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        with pytest.raises(CompileError, match="undefined"):
            compile_text("__global__ void k() { a = 1; }")
        monkeypatch.setattr(nvrtc, "_compiler", None)


def test_a_header_that_could_not_be_opened_is_looked_for_again(own_cache: Path) -> None:
    with pytest.raises(CompileError, match="no_such_header"):
        compile_text('#include "no_such_header.h"\n')
    assert not list(own_cache.glob("*/outcome.z"))


def test_a_damaged_cache_only_means_compiling_again(own_cache: Path) -> None:
    first = compile_module(MODULE)
    (path,) = own_cache.glob("*/outcome.z")
    path.write_bytes(b"garbage")
    assert compile_module(MODULE).cubin == first.cubin
    path.write_bytes(path.read_bytes()[:-20])
    assert compile_module(MODULE).cubin == first.cubin


def test_the_least_recently_used_goes_first(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blob = os.urandom(1000)
    for age, key in enumerate(("new", "middle", "old")):
        cubin_cache.store(key, (True, blob, "", ""))
        os.utime(own_cache / key, (1e9 - age, 1e9 - age))
    assert cubin_cache.load("old") == (True, blob, "", "")  # used now
    monkeypatch.setattr(cubin_cache, "CUBINS", replace(cubin_cache.CUBINS, limit_bytes=3000))
    cubin_cache.store("newest", (True, blob, "", ""))
    assert {p.parent.name for p in own_cache.glob("*/outcome.z")} == {"newest", "old"}


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert compile_module(MODULE).cubin


def test_a_missing_compiler_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    nvrtc.nvrtc_version.cache_clear()
    try:
        with monkeypatch.context() as patch:
            patch.setattr(nvrtc.importlib.util, "find_spec", lambda name: None)
            with pytest.raises(CompilerMissing, match="pip install cupy-cuda13x nvidia-cuda-nvrtc"):
                compile_text(TEXT)
        with monkeypatch.context() as patch:
            def fails() -> None:
                raise RuntimeError("CuPy failed to load libnvrtc.so.13")

            patch.setattr(nvrtc, "binding", fails)
            with pytest.raises(CompilerMissing) as caught:
                compile_text(TEXT)
            assert "libnvrtc" in caught.value.why
            assert "pip install" in caught.value.hint
    finally:
        nvrtc.nvrtc_version.cache_clear()


def test_a_missing_header_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "include_folders", lambda: ())
    with pytest.raises(CompilerMissing, match="nvidia-cuda-runtime"):
        compile_text(TEXT)
    with pytest.raises(CompileError, match="nothere"):
        compile_text("#include <nothere.h>\n")


def test_an_endless_compilation_is_a_compile_error() -> None:
    with pytest.raises(CompileError, match="did not finish"):
        compile_text(TEXT + "// another key\n", limit_s=0.0001)
    assert compile_text(TEXT + "// another key\n").cubin


def test_the_generator_of_inputs_compiles_everywhere() -> None:
    for arch in ARCHITECTURES:
        assert compile_text(CUDA_TEXT, arch).kernels["fill"].spill_store_bytes == 0


LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'one' for 'sm_90'
ptxas info    : Function properties for one
    160 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 32 registers, used 16 barriers, 4096 bytes smem, 400 bytes cmem[0]
ptxas info    : Function properties for helper
    16 bytes stack frame, 4 bytes spill stores, 2 bytes spill loads
ptxas info    : Compiling entry function 'two' for 'sm_90'
ptxas info    : Function properties for two
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 255 registers
"""


def test_the_assemblers_report_is_read_function_by_function() -> None:
    one, two = resources(LOG).values()
    assert (one.registers, one.barriers, one.static_shared_bytes, one.stack_bytes) == (32, 16, 4096, 160)
    assert (one.spill_store_bytes, one.spill_load_bytes) == (12, 14)
    assert (two.name, two.registers, two.barriers, two.spill_load_bytes) == ("two", 255, 0, 0)


def test_warnings_are_not_errors() -> None:
    log = 'k.cu(2): warning #177-D: variable "error" was declared but never referenced\nk.cu(3): error: bad\n'
    assert [(d.line, d.message, d.text) for d in diagnostics(log, "a\nb\nc")] == [(3, "bad", "c")]


def test_a_line_beyond_the_text_is_kept_without_text() -> None:
    (only,) = diagnostics("k.cu(30): error: bad\n", "a\nb\n")
    assert (only.line, only.text) == (30, "")
