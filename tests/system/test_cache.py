"""What is kept between sessions: damaged in every way, it is made again; many processes at once do not disturb each other."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import platformdirs
import pytest

from explorer.errors import DeviceError
from explorer.run.cpu import compiler
from explorer.run.cpu.compiler import BUILDS, find_compiler, run_compiler
from explorer.system import cache
from explorer.system.cache import Cache, cache_folder, key_of

SMALL = Cache("small", 1 << 20)
ROOT = Path(__file__).resolve().parents[2]
USE = """
import numpy as np
from explorer.run.nvrtc import cubin_cache
from explorer.run.verify import reference
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from tests.programs import row_sum as summed
from tests.run.cpu.cpu_kernels import row_sum

x = {"x": np.ones((5, 1000), np.float16)}
device = CpuDevice(seeds=1)
assert (device.run(device.build(row_sum()), x)["y"] == 1000).all()

program = summed.schedule(M=3, N=7).source
arrays = seeded_arrays(program)
assert np.allclose(reference.compiled(program, arrays).values["y"], arrays["x"].sum(1, dtype=float))

made = (True, b"code", "ptx", "log")
assert cubin_cache.load("k") in (None, made)
cubin_cache.store("k", made)
assert cubin_cache.load("k") == made
print("right")
"""


def use(folder: Path) -> None:
    """Build, run, load and look up in a process of its own, since what is loaded may end it."""
    (folder.parent / "use.py").write_text(USE)
    environment = {**os.environ, "EXPLORER_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(folder.parent / "use.py")], env=environment, capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "right\n", "")


def files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and p.name != ".lock")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with an entry of every kind."""
    folder = tmp_path_factory.mktemp("whole") / "cache"
    use(folder)
    assert {p.name for p in files(folder)} > {"program", "shared.json", "runtime.o", "reference.so", "outcome.z", "sums.json"}
    return folder


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size * 2 // 3)


def replace_by_folder(path: Path) -> None:
    path.unlink()
    (path / "inside").mkdir(parents=True)


def entries_as_files(folder: Path) -> None:
    for path in folder.glob("*/*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        path.write_text("no folder")


def groups_as_files(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path)
        path.write_text("no folder")


def every(change: Callable[[Path], object], *, but: str = "", only: str = "") -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        chosen = [p for p in files(folder) if p.name != but and only in ("", p.name)]
        assert chosen
        for path in chosen:
            change(path)

    return damage


WAYS = {
    "truncated": every(truncate, but="sums.json"),
    "empty": every(lambda p: p.write_bytes(b""), but="sums.json"),
    "zeroed": every(lambda p: p.write_bytes(bytes(p.stat().st_size)), but="sums.json"),
    "garbage": every(lambda p: p.write_bytes(os.urandom(5000)), but="sums.json"),
    "one bit": every(lambda p: p.write_bytes(p.read_bytes()[:-1] + bytes([p.read_bytes()[-1] ^ 1])), but="sums.json"),
    "gone": every(Path.unlink, but="sums.json"),
    "sums gone": every(Path.unlink, only="sums.json"),
    "sums of something else": every(lambda p: p.write_text("[1, null]"), only="sums.json"),
    "permissions": every(lambda p: p.chmod(0)),
    "folders for files": every(replace_by_folder),
    "files for entries": entries_as_files,
    "files for folders of entries": groups_as_files,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_damaged_cache_is_made_again(way: str, whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "cache")
    WAYS[way](tmp_path / "cache")
    use(tmp_path / "cache")
    damaged = {p.relative_to(tmp_path) for p in files(tmp_path / "cache")}
    assert {p.relative_to(whole.parent) for p in files(whole)} <= damaged  # whole again
    assert not list((tmp_path / "cache").glob("*/.making-*"))


def test_an_entry_that_may_not_be_read_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As any user sees it: the tests may run as root, who may read everything."""
    monkeypatch.setenv("EXPLORER_CACHE_DIR", str(tmp_path))
    SMALL.keep("a", {"f": b"1"})
    with monkeypatch.context() as patch:
        patch.setattr(cache, "_sum", lambda path: (_ for _ in ()).throw(PermissionError(errno.EACCES, "denied")))
        assert SMALL.kept("a", "f") is None
    SMALL.keep("a", {"f": b"2"})
    assert SMALL.kept("a", "f") == b"2"


def test_processes_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Eight processes make, damage and read the same entries; everyone reads what was made, always."""
    code = """
import random, sys
from explorer.system.cache import Cache
spread, small = Cache("", 1 << 30, spread=True), Cache("kept", 1 << 30)
random.seed(int(sys.argv[1]))
for n in range(60):
    key = "ab%038d" % random.randrange(3)
    folder = spread.made(key, lambda f: (f / "data").write_bytes(key.encode() * 2000))
    try:
        data = (folder / "data").read_bytes()
        assert data in (key.encode() * 2000, b"damaged", b""), data[:99]  # damaged meanwhile
    except FileNotFoundError:
        pass  # another process found it damaged, and replaces it
    if random.random() < 0.3:
        try:
            (folder / "data").write_bytes(b"damaged")
        except OSError:
            pass
    small.keep(str(n % 3), {"f": b"x" * 10000})
    assert small.kept(str(n % 3), "f") in (None, b"x" * 10000)
"""
    environment = {**os.environ, "EXPLORER_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}

    def run(seed: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", code, str(seed)], env=environment, capture_output=True, text=True,
                              check=False)

    with ThreadPoolExecutor(8) as pool:
        for done in pool.map(run, range(8)):
            assert (done.returncode, done.stderr) == (0, "")
    assert not list(tmp_path.rglob(".making-*"))


def no_room(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_CACHE_DIR", str(tmp_path))
    with pytest.raises(DeviceError, match="the disk is full") as caught:
        BUILDS.made(key_of("a"), no_room)
    assert "EXPLORER_CACHE_DIR" in caught.value.hint
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]
    monkeypatch.setattr(cache.tempfile, "mkdtemp", no_room)
    with pytest.raises(DeviceError, match="the disk is full"):
        BUILDS.made(key_of("a"), lambda folder: None)
    SMALL.keep("a", {"f": b"1"})  # only means that nothing is kept
    assert SMALL.kept("a", "f") is None


def test_a_compiler_without_room_is_no_fault_of_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "run_process", lambda *a, **k: subprocess.CompletedProcess(
        [], 1, "", "/tmp/cc.s: Assembler messages:\nfatal error: can't write 9 bytes to section: 'No space left on device'"))
    with pytest.raises(DeviceError, match="cannot be compiled: no space left") as caught:
        run_compiler(find_compiler(), ("-c", "x.cpp"), tmp_path)
    assert "TMPDIR" in caught.value.hint


def test_what_stands_in_the_folder_and_is_not_ours_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody names a folder of theirs as the cache."""
    monkeypatch.setenv("EXPLORER_CACHE_DIR", str(tmp_path))
    (tmp_path / "ab").mkdir()
    mine = [tmp_path / "notes", tmp_path / "ab" / "mine", tmp_path / key_of("a")[:2]]
    for path in mine:
        path.write_text("mine")
    BUILDS.made(key_of("a"), lambda folder: None)
    replace(BUILDS, limit_bytes=0).prune()
    assert sorted(p.read_text() for p in tmp_path.rglob("*") if p.is_file() and p.name != ".lock") == ["mine"] * 3


def test_the_folder_is_the_one_asked_for_or_that_of_the_platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_CACHE_DIR", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("EXPLORER_CACHE_DIR")
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x/y")
    assert cache_folder() == Path("/x/y/explorer")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == platformdirs.user_cache_path("explorer", appauthor=False)
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name, appauthor: Path("C:/Local") / name / "Cache")
    assert cache_folder() == Path("C:/Local/explorer/Cache")


@pytest.mark.parametrize(("system", "earlier"), [("win32", ".cache/explorer"), ("darwin", "Library/Caches/explorer")])
def test_what_earlier_versions_kept_is_found(system: str, earlier: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It followed no rule of the platform; what it kept stays in use."""
    monkeypatch.delenv("EXPLORER_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name, appauthor: tmp_path / "of the platform" / name)
    (tmp_path / earlier / "small").mkdir(parents=True)
    SMALL.keep("a", {"f": b"1"})
    assert (tmp_path / earlier / "small" / "a" / "f").read_bytes() == b"1"
    shutil.rmtree(tmp_path / earlier)
    SMALL.keep("a", {"f": b"2"})
    assert (tmp_path / "of the platform" / "explorer" / "small" / "a" / "f").read_bytes() == b"2"


def test_caches_forget_and_prune_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_CACHE_DIR", str(tmp_path))
    built = BUILDS.made(key_of("a"), lambda folder: None)
    for key in ("one-1", "one-2", "two-1"):
        SMALL.keep(key, {"f": b"1"})
    assert SMALL.forget("one-*") == 2
    assert [SMALL.kept(key, "f") for key in ("one-1", "two-1")] == [None, b"1"]
    replace(SMALL, limit_bytes=0).prune()
    assert SMALL.kept("two-1", "f") is None
    assert built.is_dir()
    assert BUILDS.forget() == 1
    assert not built.exists()


def test_a_folder_that_another_process_makes_just_now_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is missing when one process looks, and there, with an entry being made, when it looks again."""
    parent, is_dir = tmp_path / "cache" / "ab", Path.is_dir
    (tmp_path / "cache").mkdir()

    def late(path: Path) -> bool:
        found = is_dir(path)
        if path == parent and not found:
            (parent / "entry").mkdir(parents=True)
        return found

    monkeypatch.setattr(Path, "is_dir", late)
    work = cache._begin(parent)
    assert (parent / "entry").is_dir()
    assert work.parent == parent
