"""Finding the compiler, what is said where there is none, and the cache of what it made."""

from __future__ import annotations

import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from explorer.errors import CompilerMissing, DeviceError
from explorer.run.cpu import compiler as compilers
from explorer.run.cpu.compiler import BUILDS, Compiler, find_compiler
from explorer.run.cpu.device import CpuDevice
from explorer.run.cpu.elf import symbols_in_section
from explorer.run.cpu.glue import is_dynamic_symbol, module_of_symbol, variable_of_symbol
from explorer.system.cache import key_of
from explorer.system.cancel import Cancel, Cancelled, cancellable
from tests.run.cpu.cpu_kernels import row_sum


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EXPLORER_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize(
    ("facts", "advice"),
    [
        ({"ID": "ubuntu", "ID_LIKE": "debian"}, "sudo apt-get install g++"),
        ({"ID": "debian"}, "sudo apt-get install g++"),
        ({"ID": "fedora"}, "sudo dnf install gcc-c++"),
        ({"ID": "rocky", "ID_LIKE": "rhel centos fedora"}, "sudo dnf install gcc-c++"),
        ({"ID": "unheard"}, "sudo apt-get install g++ on Debian"),
    ],
)
def test_no_compiler_says_what_to_install(facts: dict, advice: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(compilers.platform, "freedesktop_os_release", lambda: facts)
    monkeypatch.setattr(sys, "platform", "linux")
    compilers._find.cache_clear()
    with pytest.raises(CompilerMissing, match="No C\\+\\+ compiler was found") as caught:
        CpuDevice().build(row_sum())
    assert caught.value.hint.startswith(advice)
    assert "conda install -c conda-forge gxx" in caught.value.hint


@pytest.mark.parametrize(("system", "advice"), [("darwin", "xcode-select --install"), ("win32", "use WSL")])
def test_other_systems(system: str, advice: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(sys, "platform", system)
    compilers._find.cache_clear()
    with pytest.raises(CompilerMissing) as caught:
        find_compiler()
    compilers._find.cache_clear()
    assert caught.value.hint.startswith(advice)


def test_cxx_chooses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "mine"
    fake.write_text("#!/bin/sh\necho 'Some clang version 77'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("CXX", f"{fake} -O0")
    found = find_compiler()
    assert (found.path, found.kind, found.version) == (str(fake), "clang", "Some clang version 77")
    assert "-fsanitize=thread,array-bounds" in " ".join(found.flags(checked=True))


def test_a_compiler_that_is_too_old_is_named(own_cache: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text("#!/bin/sh\necho 'error: unrecognized option -std=c++17' >&2\nexit 1\n")
    old.chmod(0o755)
    with pytest.raises(CompilerMissing, match="cannot compile the runtime"):
        CpuDevice(compiler=Compiler(str(old), "gcc", "old 1.0")).build(row_sum())


def test_a_kernel_is_compiled_once(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device, x = CpuDevice(seeds=1), {"x": np.ones((5, 1000), np.float16)}
    first = device.build(row_sum())
    monkeypatch.setattr("explorer.run.cpu.device.run_compiler", lambda *a: pytest.fail("compiled again"))
    assert device.build(row_sum()).program == first.program
    np.testing.assert_array_equal(device.run(first, x)["y"], 1000)


def test_concurrent_builds_agree(own_cache: Path) -> None:
    device = CpuDevice(seeds=1)
    with ThreadPoolExecutor(4) as pool:
        built = list(pool.map(lambda _: device.build(row_sum()), range(4)))
    assert len({b.program for b in built}) == 1
    assert not list(own_cache.glob("*/.making-*"))


def test_of_several_that_want_the_same_one_makes_it(own_cache: Path) -> None:
    made: list[str] = []

    def make(folder: Path) -> None:
        made.append(folder.name)
        time.sleep(0.2)
        (folder / "f").write_text("x")

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: BUILDS.made(key_of("a"), make), range(4)))
    assert len(set(found)) == 1
    assert (found[0] / "f").read_text() == "x"
    assert len(made) == 1


def test_who_waits_can_be_stopped_and_does_not_wait_for_ever(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, end = threading.Event(), threading.Event()

    def slow(folder: Path) -> None:
        begun.set()
        end.wait()

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(BUILDS.made, key_of("a"), slow)
        begun.wait()
        stop = Cancel()
        stop.ask()
        with cancellable(stop), pytest.raises(Cancelled):
            BUILDS.made(key_of("a"), lambda folder: pytest.fail("made too"))
        monkeypatch.setattr("explorer.system.cache._WAIT_S", 0.05)
        assert BUILDS.made(key_of("a"), lambda folder: None).is_dir()
        end.set()
        assert first.result().is_dir()


def test_a_failed_make_leaves_nothing(own_cache: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("x")
        raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        BUILDS.made(key_of("a"), fail)
    assert not [p for p in own_cache.rglob("*") if p.is_file()]


def test_pruning_keeps_the_most_recently_used(own_cache: Path) -> None:
    folders = [BUILDS.made(key_of(k), lambda folder: (folder / "f").write_bytes(b"x" * 1000)) for k in range(5)]
    for age, folder in enumerate(folders):
        os.utime(folder, (1000 + age, 1000 + age))
    size = sum(f.stat().st_size for f in folders[0].iterdir())
    BUILDS.made(key_of(0), lambda folder: None)  # used now
    assert replace(BUILDS, limit_bytes=int(2.5 * size)).prune() == 3 * size
    assert [f.exists() for f in folders] == [True, False, False, False, True]


def test_a_cache_that_cannot_be_made_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EXPLORER_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(DeviceError, match="cannot be written"):
        BUILDS.made(key_of("a"), lambda folder: None)



@pytest.mark.parametrize(
    ("symbol", "module", "variable"),
    [
        ("_ZZ10m3_row_sumE3red", 3, ("red", "row_sum")),
        ("_ZZ6m12_abE5tile0_0", 12, ("tile0", "ab")),
        ("m0_shared_memory", 0, ("shared_memory", "*")),
        ("_ZN3m0_16m0_shared_memoryE", 0, ("shared_memory", "*")),
        ("_ZZN3m1_L6helperEPfE5stage", 1, ("stage", "*")),
    ],
)
def test_symbols(symbol: str, module: int, variable: tuple[str, str]) -> None:
    assert module_of_symbol(symbol) == module
    assert variable_of_symbol(symbol) == variable
    assert is_dynamic_symbol(symbol) == (variable[0] == "shared_memory")


def test_no_elf_no_symbols(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xcf\xfa\xed\xfe" + bytes(100))
    assert symbols_in_section(tmp_path / "f", "simt_shared") == ()
