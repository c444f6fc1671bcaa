"""The exported file: it compiles, checks itself, and notices a changed operator.

Where there is no GPU, the file's own ``main`` runs on the host: ``host_cuda/`` stands in for CUDA's headers.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.product_programs import product_nn
from explorer import workloads
from explorer.errors import ExportError, IllegalSchedule, ResourceError
from explorer.frontend import bf16, bool_, f16, f32, f64, i8, i32, program, sizes, where
from explorer.gpu.spec import default_gpu
from explorer.kernel.emit import emit
from explorer.kernel.export.text import Allowance, Sample, Trial, export_text
from explorer.kernel.module import Launch
from explorer.kernel.reference.c_text import c_name
from explorer.run.export import export, exported
from explorer.run.inputs.arguments import recipes, seeded_arrays
from explorer.schedule import Schedule
from explorer.strategies.auto import auto

from .host_run import host_build, host_run

N = sizes("N")


@program
def every_type(a: f16[N], b: bf16[N], c: f64[N], k: i8[N], m: bool_[N], at: i32[N], y: f16[N], z: f64[N], n: i32[N], t: bool_[N]):
    for i in range(N):
        y[i] = a[i] * b[i]
        z[i] = where(m[i], c[i], c[at[i]])
        n[i] = k[i] * 3 - 1
        t[i] = k[i] > 2


@program
def restored(x: f32[N], y: f32[N]):
    for i in range(N):
        y[i] = y[i] * 0.5 + x[i]


def matmul(**given: int) -> Schedule:
    definition = workloads.get("matmul").definition
    s = definition.schedule(**{"M": 16, "N": 6, "K": 12, **given})
    return s.split("i", 8).bind("i", "block.x").bind("i.i", "thread.y").bind("j", "thread.x")


def test_right_file_exits_0_and_says_what_it_checked(tmp_path: Path) -> None:
    answer = host_run(exported(matmul()), tmp_path)
    assert answer.returncode == 0, answer.stdout
    assert "c: 96 of 96 cells checked, 0 wrong" in answer.stdout
    assert re.search(r"median \d+\.\d+ us, quartiles", answer.stdout)
    assert answer.stdout.endswith("all right\n")


@pytest.mark.parametrize(("old", "new"), [("+= a[", "-= a["), ("] * b[", "] + b["), ("= 0.0f;", "= 1.0f;"), ("c[(", "c[1 + (")])
def test_one_changed_operator_exits_1(tmp_path: Path, old: str, new: str) -> None:
    text = exported(matmul())
    before, mark, rest = text.partition("// ---- The kernels")
    kernels, end, after = rest.partition("// ---- The launcher")
    assert old in kernels
    answer = host_run(before + mark + kernels.replace(old, new, 1) + end + after, tmp_path)
    assert answer.returncode == 1, answer.stdout
    assert "first wrong: c[" in answer.stdout
    assert answer.stdout.endswith("WRONG\n")


def test_unwritten_output_exits_1(tmp_path: Path) -> None:
    text = exported(matmul())
    assert host_run(re.sub(r"(?m)^.*\bc\[.*// S2.*$", "", text, count=1), tmp_path).returncode == 1


@pytest.mark.parametrize("name", ["softmax", "cross_entropy", "adam", "jacobi2d", "layernorm_backward"])
def test_workloads_check_themselves(tmp_path: Path, name: str) -> None:
    w = workloads.get(name)
    answer = host_run(exported(w.definition.schedule(**w.tiny)), tmp_path)
    assert answer.returncode == 0, answer.stdout


@pytest.mark.parametrize("definition", [every_type, restored], ids=lambda d: d.name)
def test_every_type_and_inout(tmp_path: Path, definition) -> None:
    text = exported(Schedule.of(definition.at(N=40)))
    answer = host_run(text, tmp_path)
    assert answer.returncode == 0, answer.stdout
    outputs = 4 if definition is every_type else 1
    assert answer.stdout.count("40 of 40 cells checked, 0 wrong") == outputs * 2, "on two kinds of inputs"


def test_inputs_are_those_of_a_run(tmp_path: Path) -> None:
    p = every_type.at(N=1000)
    text = exported(Schedule.of(p), seed=5)
    dump = "".join(f'fwrite(host_{c_name(a.name)}, 1, {a.nbytes}, stdout);' for a in p.parameters if a.role != "out")
    first, launched, second, *rest = re.split(r"(\n        CHECK\(launch_)", text)  # on small integers, then on these
    text = "".join([first, launched, second, f"\n    {dump} fflush(stdout); exit(0);", *rest])
    raw = subprocess.run([str(host_build(text, tmp_path))], capture_output=True, check=True).stdout
    raw = raw[-sum(a.nbytes for a in p.parameters if a.role != "out") :]
    expected = b"".join(seeded_arrays(p, 5)[a.name].tobytes() for a in p.parameters if a.role != "out")
    assert raw == expected


def test_large_sizes_check_a_sample_and_full_checks_all(tmp_path: Path) -> None:
    text = exported(Schedule.of(workloads.get("matmul").definition.at(M=256, N=128, K=32)), budget=200_000)
    some, everything = host_run(text, tmp_path), host_run(text, tmp_path, "--full")
    assert some.returncode == everything.returncode == 0
    assert "32768 of 32768 cells" in everything.stdout
    checked = int(re.search(r"c: (\d+) of 32768", some.stdout)[1])
    assert 0 < checked < 4000


@program
def neighbours(x: f32[N], y: f32[N], z: f32[N]):
    for i in range(N):
        y[i] = 2 * x[i]
    for j in range(N):
        z[j] = y[(j + 1) % N] + x[j]


def two_phases(how: str) -> Schedule:
    s = neighbours.schedule(N=9)
    return s.launch("neighbours", after="i").bind("i", "block.x").bind("j", "thread.x").join("neighbours.2", how)


def test_counters_of_blocks_are_exported_and_every_launch_finds_them_reset(tmp_path: Path) -> None:
    text = exported(two_phases("last_block"))
    assert text.count("<<<") == 1
    answer = host_run(text, tmp_path)
    assert answer.returncode == 0, answer.stdout
    assert "(21 runs" in answer.stdout
    forgets = text.replace("atomicInc(finished, parts - 1)", "atomicAdd(finished, 1u)")
    forgets = forgets.replace("Timer timer;", "memset(host_z, 0, 36); to_device(device_z, host_z, 9ULL); Timer timer;")
    forgets = forgets.replace("timer.print();", "to_host(host_z, device_z, 9ULL); if (host_z[0] == 0.0f) return 1;")
    answer = host_run(forgets, tmp_path)
    assert answer.returncode == 1, "a counter that is not reset makes no difference"


def test_a_barrier_of_the_grid_is_launched_cooperatively(tmp_path: Path) -> None:
    text = exported(two_phases("grid"))
    assert "<<<" not in text
    assert "void* arguments_neighbours[] = {&x, &y, &z};" in text
    call = "cudaLaunchCooperativeKernel((const void*)neighbours, dim3(9, 1, 1), dim3(9, 1, 1), arguments_neighbours, 0, stream)"
    assert call in text
    answer = host_run(text, tmp_path)
    assert answer.returncode == 2, "what CUDA refuses is an error of the program"


def test_header_has_schedule_script_target_and_the_hash_of_the_rest() -> None:
    s = matmul()
    text = exported(s)
    head = [line.removeprefix("//").removeprefix(" ") for line in text.split("\n") if line.startswith("//")]
    assert "Made for H200 (sm_90)." in head
    assert all(f"    {line}".rstrip() in head for line in s.script().splitlines())
    assert all(f"    {line}".rstrip() in head for line in str(s).splitlines())
    body = text[text.index("#include <cuda_runtime.h>") :]
    assert f"SHA-256 of everything below this comment: {hashlib.sha256(body.encode()).hexdigest()}" in text


def test_same_schedule_same_file() -> None:
    assert exported(matmul()) == exported(matmul())
    assert exported(matmul(), seed=1) != exported(matmul())


def test_many_launches_become_a_table(tmp_path: Path) -> None:
    p = workloads.get("matmul").definition.at(M=40, N=2, K=2)
    text = """extern "C" __global__ void row(const float* a, const float* b, float* c, int i) {
    for (int j = 0; j < 2; ++j) c[i * 2 + j] = a[i * 2] * b[j] + a[i * 2 + 1] * b[2 + j];
}
"""
    launches = tuple(Launch("row", (1, 1, 1), (1, 1, 1), ("a", "b", "c"), scalars=(i,)) for i in range(40))
    built = emit(Schedule.of(p).plan)
    module = replace(built, text=text, launches=launches, buffers=tuple(b for b in built.buffers if b.kind != "workspace"))
    common = {"trials": [Trial(recipes(p), {"c": Allowance(1e-6, 1e-6, 0.0, "rounding")})], "loops": "loops",
              "script": "script", "target": "H200", "arch": "sm_90"}  # fmt: skip
    whole = export_text(module, p, sample=None, **common)
    assert whole.count("<<<") == 1
    assert host_run(whole, tmp_path).returncode == 0
    assert host_run(whole.replace("{0, 17}", "{0, 16}"), tmp_path).returncode == 1
    few = export_text(replace(module, launches=launches[:3]), p, sample=Sample((2, 2), 0), **common)
    assert few.count("<<<") == 3


def test_nvcc_compiles_every_type(tmp_path: Path) -> None:
    """With nvcc where there is one; the host's compiler has compiled the same file in the tests above."""
    source = export(Schedule.of(every_type.at(N=40)), tmp_path / "every_type")
    assert source.suffix == ".cu"
    nvcc = shutil.which("nvcc")
    command = [nvcc, "-arch=sm_90", "-std=c++17", "-Werror", "all-warnings", "-c", "-o", str(tmp_path / "out.o"), str(source)]
    if nvcc:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    else:
        answer = host_run(source.read_text(), tmp_path)
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.parametrize(("gpu", "flags"), [("H200", "-gencode arch=compute_90a,code=sm_90a"), ("A100", "-arch=sm_80")])
def test_the_command_in_the_header_compiles_tensor_instructions(gpu: str, flags: str, tmp_path: Path) -> None:
    """By nvcc where there is one, to machine code of that architecture alone."""
    source = export(auto(product_nn.schedule(M=1024, N=1024, K=256), gpu=gpu), tmp_path / "product_nn.cu", gpu=gpu)
    said = re.search(r"^//     nvcc (.*) && ", source.read_text(), re.M)
    assert said
    assert flags in said[1]
    if nvcc := shutil.which("nvcc"):
        answer = subprocess.run([nvcc, *said[1].split()], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.parametrize(("name", "command"), [
    ("x.cu", "x.cu -o x && ./x"), ("x", "x.cu -o x && ./x"), ("a b.cu", "'a b.cu' -o 'a b' && './a b'"),
    ("x.cpp", "-x cu x.cpp -o x.cpp.out && ./x.cpp.out"), ("-x.cu", "./-x.cu -o ./-x && ./-x"),
    ("a\nb.cu", "matmul.cu -o matmul && ./matmul"), ("a\\b.cu", "matmul.cu -o matmul && ./matmul")])  # fmt: skip
def test_the_command_in_the_header_names_the_file(name: str, command: str, tmp_path: Path) -> None:
    text = export(matmul(), tmp_path / name).read_text()
    said = re.search(r"^//     nvcc -std=c\+\+17 -O3 -arch=sm_90 (.*)$", text, re.M)
    assert said
    assert said[1] == command


def test_what_cannot_be_exported_says_why(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="is not there"):
        export(matmul(), tmp_path / "missing" / "x.cu")
    definition = workloads.get("sum_rows").definition
    s = definition.schedule(M=4, N=64)
    loop = next(name for name, node in s.plan.loops.items() if node.extent == 64)
    with pytest.raises(IllegalSchedule):
        export(s.bind(loop, "thread.x"), tmp_path / "x.cu")
    with pytest.raises(ResourceError):
        export(matmul(), tmp_path / "x.cu", gpu=replace(default_gpu(), max_threads_per_block=16))
    assert not (tmp_path / "x.cu").exists()


def test_on_small_integers_the_outputs_must_be_equal(tmp_path: Path) -> None:
    text = exported(matmul())
    assert re.search(r'compare\("c", host_c, wide_c, 2, shape, picks, 0.0, 0.0, 0.0\)', text)
    run = host_run(text, tmp_path)
    assert run.returncode == 0
    said = "c: 96 of 96 cells checked, 0 wrong; largest error of the others 0, allowed 0"
    assert run.stdout.startswith(f"on small integers:\n{said}")


def test_tolerances_come_from_the_bounds() -> None:
    _, call = re.findall(r'compare\("c", host_c, wide_c, 2, shape, picks, (.*), (.*), (.*)\)', exported(matmul()))
    found = [float(x) for x in call]
    assert found[0] == pytest.approx(2.0**-24)
    assert 1e-7 < found[1] < 1e-4
    assert found[2] == 0.0
    assert np.isfinite(found).all()
