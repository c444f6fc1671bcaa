"""The worker process: every way of going wrong becomes an exception, and the next call works."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from explorer.errors import CompilerMissing, DeviceError, KernelFault, KernelTimeout, OutOfMemory
from explorer.system.sharing import SharedBlock, attach
from explorer.system.worker import Worker

HERE = Path(__file__).parent


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    monkeypatch.syspath_prepend(str(HERE))
    made = Worker("fake_worker_backend:Backend", startup_s=60)
    yield made
    made.close()


def test_a_call_returns_what_the_backend_returned_and_the_process_stays(worker: Worker) -> None:
    value = {"text": "äöü", "array": np.arange(5), "nested": [(1, 2.5), None]}
    back = worker.call("echo", value, limit_s=60)
    assert back["text"] == value["text"]
    np.testing.assert_array_equal(back["array"], value["array"])
    worker.call("echo", b"x" * (8 << 20), limit_s=60)
    assert worker.call("count", limit_s=60) == 2
    assert worker.generation == 1


def test_it_is_another_process(worker: Worker) -> None:
    assert worker.call("pid", limit_s=60) != os.getpid()


def test_a_hang_is_stopped_and_says_where_it_was(worker: Worker) -> None:
    first = worker.call("pid", limit_s=60)
    with pytest.raises(KernelTimeout) as caught:
        worker.call("hang", "launch 2 of 3: softmax<<<(1, 1, 1), (32, 1, 1)>>>", limit_s=0.3)
    assert "launch 2 of 3: softmax" in caught.value.where
    assert caught.value.limit_s == 0.3
    assert worker.call("pid", limit_s=60) != first
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


def test_a_hang_outside_of_the_interpreter_is_stopped(worker: Worker) -> None:
    with pytest.raises(KernelTimeout):
        worker.call("hang_in_c", limit_s=0.3)
    assert worker.call("echo", 1, limit_s=60) == 1


def test_every_note_renews_the_limit(worker: Worker) -> None:
    assert worker.call("steps", 5, 0.3, limit_s=1.0) == "done"


def test_a_crash_names_the_signal_the_place_and_the_last_words(worker: Worker) -> None:
    with pytest.raises(KernelFault) as caught:
        worker.call("crash", limit_s=60)
    assert "SIGSEGV" in caught.value.what
    assert caught.value.where == "launch 1 of 1: bad"
    assert "last words" in caught.value.why
    assert worker.call("echo", 2, limit_s=60) == 2


def test_an_exit_is_a_fault(worker: Worker) -> None:
    with pytest.raises(KernelFault, match="exit status 3"):
        worker.call("leave", limit_s=60)


def test_being_killed_from_outside_reads_as_memory(worker: Worker) -> None:
    with pytest.raises(OutOfMemory):
        worker.call("killed", limit_s=60)
    assert worker.call("echo", 3, limit_s=60) == 3


@pytest.mark.parametrize(("method", "error"), [("fault", KernelFault), ("out_of_memory", OutOfMemory), ("exhaust", OutOfMemory)])
def test_faults_and_exhausted_memory_replace_the_process(worker: Worker, method: str, error: type[DeviceError]) -> None:
    first = worker.call("pid", limit_s=60)
    with pytest.raises(error) as caught:
        worker.call(method, limit_s=60)
    assert type(caught.value) is error
    assert worker.call("pid", limit_s=60) != first


def test_an_error_keeps_its_parts_and_details(worker: Worker) -> None:
    with pytest.raises(KernelFault) as caught:
        worker.call("fault", limit_s=60)
    assert (caught.value.why, caught.value.status) == ("illegal address", 700)


def test_a_refusal_keeps_the_process(worker: Worker) -> None:
    first = worker.call("pid", limit_s=60)
    with pytest.raises(DeviceError) as caught:
        worker.call("refuse", limit_s=60)
    assert caught.value.hint == "like that"
    assert worker.call("pid", limit_s=60) == first


def test_a_bug_in_the_backend_shows_its_traceback(worker: Worker) -> None:
    with pytest.raises(DeviceError) as caught:
        worker.call("bug", limit_s=60)
    assert "KeyError" in caught.value.what
    assert "fake_worker_backend.py" in caught.value.why


def test_what_the_child_prints_does_not_disturb_the_answers(worker: Worker) -> None:
    assert worker.call("chatter", limit_s=60) == "heard"
    assert worker.call("echo", 4, limit_s=60) == 4


def test_a_backend_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))
    missing = Worker("fake_worker_backend:no_start", startup_s=60)
    for _ in range(2):  # and again: a failed start leaves nothing behind
        with pytest.raises(CompilerMissing) as caught:
            missing.call("echo", 1, limit_s=60)
        assert caught.value.hint == "pip install cupy-cuda13x"
    with pytest.raises(KernelFault, match="exit status 7"):
        Worker("fake_worker_backend:dies_at_start", startup_s=60).call("echo", 1, limit_s=60)


def test_closing_twice_and_calling_again_works(worker: Worker) -> None:
    worker.call("echo", 1, limit_s=60)
    worker.close()
    worker.close()
    assert worker.call("count", limit_s=60) == 0
    assert worker.generation == 2


@pytest.mark.skipif(sys.platform == "win32", reason="signals and process lookup of POSIX")
def test_a_hung_worker_ends_with_its_parent(tmp_path: Path) -> None:
    script = textwrap.dedent(f"""
        import sys
        sys.path[:0] = [{str(HERE)!r}, {str(HERE.parents[1])!r}]
        from explorer.system.worker import Worker
        Worker("fake_worker_backend:Backend").call("grab", {str(tmp_path / "pid")!r}, limit_s=600)
    """)
    parent = subprocess.Popen([sys.executable, "-c", script])
    deadline = time.monotonic() + 60
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < deadline
        assert parent.poll() is None
        time.sleep(0.05)
    child = int((tmp_path / "pid").read_text())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    while _runs(child):
        assert time.monotonic() < deadline, "the worker outlived its parent"
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def test_a_shared_block_is_one_memory_under_two_maps() -> None:
    with SharedBlock(24) as block:
        mine = block.array(np.float64, (3,))
        other = attach(block.path, 24)
        other.view(np.float64)[:] = [1.0, 2.0, 3.0]
        assert mine.tolist() == [1.0, 2.0, 3.0]
    mine[0] = 7.0  # the memory outlives the name
    assert other.view(np.float64)[0] == 7.0
    with pytest.raises(OSError, match=r"."):
        attach(block.path, 24)


def test_an_empty_block_is_an_empty_array() -> None:
    with SharedBlock(0) as block:
        assert block.array(np.float32, (0, 4)).shape == (0, 4)
        assert attach(block.path, 0).size == 0
