"""`benchmarks/sass.py`: the reading of a dump, and what the comparison notices."""

from __future__ import annotations

import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.sass import ARCH, counted, sass, whole
from benchmarks.sass_table import Case, Comparison, Counts, Measured, geometric_mean

ROOT = Path(__file__).resolve().parent.parent
DUMP = """\t.target\tsm_90

//--------------------- .text.fill                --------------------------
\t.section\t.text.fill,"ax",@progbits
        .size           fill,(.L_x_6 - fill)
fill:
.text.fill:
        /*0000*/                   LDC R1, c[0x0][0x28] ;               /* 0x00000a00ff017b82 */
                                                                        /* 0x000fe20000000800 */
        /*0010*/                   HFMA2.MMA R7, -RZ, RZ, 1.875, 0 ;    /* 0x3f800000ff077435 */
                                                                        /* 0x000fe200000001ff */
.L_x_4:
        /*0020*/              @!P0 EXIT ;                               /* 0x000000000000894d */
                                                                        /* 0x000fea0003800000 */
        /*0030*/             @!UP2 UIADD3 UR4, UR4, 0x1, URZ ;          /* 0x000000010404a890 */
                                                                        /* 0x000fe2000fffe03f */
.L_x_1:
        /*0040*/                   BRA `(.L_x_1);                       /* 0xfffffffc00fc7947 */
                                                                        /* 0x000fc0000383ffff */
        /*0050*/                   NOP;                                 /* 0x0000000000007918 */
                                                                        /* 0x000fc00000000000 */
        /*0060*/                   NOP;                                 /* 0x0000000000007918 */
                                                                        /* 0x000fc00000000000 */
.L_x_6:


//--------------------- .text.nothing             --------------------------
.text.nothing:
        /*0000*/               @P1 EXIT ;                               /* 0x000000000000194d */
                                                                        /* 0x000fea0003800000 */


//--------------------- SYMBOLS --------------------------

\t.type\t\t.nv.reservedSmem.offset0,@object
"""
KERNEL = Counts(instructions=100, registers=32, spilled=0, static_shared=1024, dynamic_shared=0, code="a")
TOOLS = {"arch": ARCH, "nvrtc": "1.0", "nvdisasm": "1.0.0"}


def version(*kernels: Counts, text: str = "t") -> Measured:
    """One case, another that never changes."""
    return Measured(TOOLS, {"softmax, auto": Case(text, {f"softmax_{i}": k for i, k in enumerate(kernels)}),
                            "matmul, auto": Case("m", {"matmul": KERNEL})})


def test_a_dump_is_read() -> None:
    found = sass(DUMP)
    assert {name: instructions for name, (instructions, _) in found.items()} == {"fill": 5, "nothing": 1}
    moved = sass(DUMP.replace("0x000fea0003800000", "0x000fea0003800001", 1))  # another stall count, the same instructions
    assert moved["fill"] != found["fill"]
    assert moved["nothing"] == found["nothing"]


def test_an_instruction_that_is_not_understood_is_not_passed_over() -> None:
    with pytest.raises(AssertionError, match="fill: 14 words for 6 instructions"):
        sass(DUMP.replace("HFMA2.MMA R7", "{HFMA2.MMA R7"))


@pytest.mark.parametrize("what", ["registers", "spilled"])
def test_one_more_is_worse(what: str) -> None:
    more = replace(KERNEL, code="b", **{what: getattr(KERNEL, what) + 1})
    for now, worse in ((more, True), (KERNEL, False)):
        compared = Comparison(version(KERNEL, KERNEL), version(KERNEL, now))
        assert bool(compared) is not worse
        assert any(compared.worse.values()) is worse
    page = Comparison(version(KERNEL, KERNEL), version(KERNEL, more)).page("v1", "v2")
    assert f"more {'registers' if what == 'registers' else 'spills'}: 1 (softmax, auto)" in page
    assert f"softmax_1 {getattr(KERNEL, what)} → {getattr(more, what)}" in page
    assert page.count("| softmax, auto |") == 1
    assert "matmul, auto" not in page


def test_fewer_registers_of_one_kernel_do_not_hide_more_of_another() -> None:
    now = version(replace(KERNEL, registers=20), replace(KERNEL, registers=33))
    assert Comparison(version(KERNEL, KERNEL), now).worse["with more registers"] == ["softmax, auto"]


def test_renamed_kernels_are_the_same_and_fused_ones_are_judged_by_the_largest() -> None:
    renamed = Measured(TOOLS, {**version().cases, "softmax, auto": Case("u", {"rows": KERNEL})})
    page = Comparison(version(KERNEL), renamed).page("a", "b")
    assert "identical in 2 and different in 0; the CUDA text different in 1" in page
    for registers, good in ((32, True), (33, False)):
        fused = Measured(TOOLS, {**version().cases, "softmax, auto": Case("u", {"all": replace(KERNEL, registers=registers)})})
        assert bool(Comparison(version(KERNEL, KERNEL), fused)) is good


def test_instructions_are_judged_in_their_mean() -> None:
    was, more, fewer = (version(replace(KERNEL, instructions=n)) for n in (100, 121, 81))
    assert not Comparison(was, more)
    assert Comparison(was, fewer)
    assert "geometric mean: 1.1000; of the different ones 1.2100" in Comparison(was, more).page("a", "b")
    assert "more instructions: 1 (softmax, auto)" in Comparison(was, more).page("a", "b")
    assert geometric_mean([0.5, 2.0]) == 1.0


def test_what_is_refused_or_gone_is_worse_and_what_is_new_is_said() -> None:
    was = version(KERNEL)
    one = Measured(TOOLS, {"matmul, auto": was.cases["matmul, auto"]})
    assert Comparison(was, version()).worse["refused, and not before"] == ["softmax, auto"]
    assert Comparison(was, one).worse["no longer there"] == ["softmax, auto"]
    assert not Comparison(was, version())
    assert not Comparison(was, one)
    assert Comparison(one, was)
    assert "New cases, not compared: 1 (softmax, auto)" in Comparison(one, was).page("a", "b")


def test_what_is_written_is_read(tmp_path: Path) -> None:
    version(KERNEL, KERNEL).save(tmp_path / "v.json")
    assert Measured.load(tmp_path / "v.json") == version(KERNEL, KERNEL)
    assert len((tmp_path / "v.json").read_text().splitlines()) == 4  # one case a line


def test_only_a_cut_cubin_gets_its_last_byte() -> None:
    file = bytearray(64 + 56 + 64)  # header, one segment, one section
    struct.pack_into("<QQ", file, 0x20, 120, 64)
    struct.pack_into("<HHHH", file, 0x36, 56, 1, 56, 1)
    full = bytes(file[:176])
    assert whole(full[:-1]) == full
    assert whole(full) == full


def test_a_text_is_counted_by_the_real_tools() -> None:
    text = """extern "C" __global__ void mask(const int* x, int* y) {
        __shared__ int kept[33];
        kept[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        if (kept[32 - threadIdx.x] > 3) y[threadIdx.x] = 7;
    }"""
    (found,) = counted(text).values()
    (longer,) = counted(text.replace("= 7", "+= kept[threadIdx.x]")).values()
    assert found.static_shared == 132
    assert 10 < found.instructions < longer.instructions < 60
    assert counted(text.replace("kept[33]", "")) == {}


def test_schedules_can_be_listed_without_cupy() -> None:
    code = ("import sys; sys.modules['cupy'] = None; sys.path.insert(0, 'benchmarks'); "
            "import sanitize; print(next(iter(sanitize.schedules()))[0])")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "adam, default", done.stderr
