"""The exported file as a compiler and a leak checker see it."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer import strategies, workloads
from explorer.run import export as exporting
from explorer.run.export import exported
from tests.kernel.host_run import host_run, host_warnings
from tests.kernel.test_export import every_type, matmul, restored

LEAKS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")


@pytest.mark.parametrize("name", workloads.names())
def test_no_warnings(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default at sizes for a test, and automatic at sizes as the field has them."""
    monkeypatch.setattr(exporting, "_allowances", lambda program, chosen, seed, kind: {
        a.name: exporting._a_priori(program, a) for a in program.parameters if a.role != "in"})  # the running bounds take a while
    definition = workloads.get(name).definition
    tiny, typical = definition.schedule(**workloads.get(name).tiny), definition.schedule(**workloads.get(name).typical)
    for schedule in (strategies.default(tiny), strategies.auto(typical)):
        assert host_warnings(exported(schedule, budget=10**5), tmp_path) == ""


@pytest.mark.parametrize("sizes", [{"M": 0, "N": 3}, {"M": 3, "N": 0}])
def test_nothing_is_made_of_arrays_without_elements(sizes: dict[str, int], tmp_path: Path) -> None:
    """``i < 0ULL`` is a warning, and never true."""
    text = exported(workloads.get("sum_rows").definition.schedule(**sizes))
    assert host_warnings(text, tmp_path) == ""
    assert "i < 0ULL" not in text


@pytest.mark.parametrize(("make", "budget"), [
    (lambda: matmul(), 10**9), (lambda: matmul(M=16, N=16, K=8), 500),
    (lambda: every_type.schedule(N=40), 10**9), (lambda: restored.schedule(N=40), 10**9),
    (lambda: workloads.get("sum_all").definition.schedule(**workloads.get("sum_all").tiny), 10**9),
    (lambda: workloads.get("softmax").definition.schedule(**workloads.get("softmax").tiny), 10**9),
], ids=["matrix", "sampled", "types", "inout", "scalar", "temporaries"])
def test_everything_allocated_is_freed(make, budget: int, tmp_path: Path) -> None:
    """On the host and on the GPU (whose memory is the host's here)."""
    text = exported(make(), budget=budget)
    done = host_run(text, tmp_path, more=LEAKS)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_what_is_wrong_frees_too_and_a_leak_is_noticed(tmp_path: Path) -> None:
    text = exported(matmul())
    failing = text.replace("right = !reference_faults;", "reference_faults = 1; right = false;")
    leaking = text.replace("    free(host_", "    (void)(host_", 1)
    for changed, status in ((text.replace("right &= compare(", "right &= !compare("), 1), (failing, 2), (leaking, 1)):
        assert changed != text
        done = host_run(changed, tmp_path, more=LEAKS)
        assert done.returncode == status, done.stdout
        assert ("LeakSanitizer" in done.stderr) == (changed is leaking)
