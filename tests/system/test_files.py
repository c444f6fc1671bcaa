"""Saving and exporting: what stands there is never lost, and every failure is named."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import explorer as ex
from tests.programs import row_sum, two_sums

ROOT = Path(__file__).resolve().parents[2]
S = row_sum.schedule(M=4, N=8)
WRITERS = [pytest.param(S.save, "s.json", id="save"), pytest.param(S.export, "s.cu", id="export")]
writers = pytest.mark.parametrize(("write", "name"), WRITERS)


def refused(call: Callable[[], object], *words: str) -> ex.errors.ExportError:
    with pytest.raises(ex.errors.ExportError) as caught:
        call()
    for word in words:
        assert word in caught.value.message()
    return caught.value


@writers
def test_one_s_own_file_is_replaced(write: Callable[..., Path], name: str, tmp_path: Path) -> None:
    first = write(tmp_path / name).read_text()
    assert getattr(S.split("k", 4), write.__name__)(tmp_path / name).read_text() != first
    assert write(tmp_path / name).read_text() == first
    (tmp_path / name).write_text("")  # as tempfile makes it
    assert write(tmp_path / name).read_text() == first
    assert os.listdir(tmp_path) == [name]


@writers
@pytest.mark.parametrize(("there", "why"), [
    (b"my notes\n", "it "), (b"\xff\xfe\x00", "it "), (b"{}", "it "), (b"// a comment\nint main() {}\n", "it ")])
def test_another_s_file_stays_unless_it_may_go(write: Callable[..., Path], name: str, there: bytes, why: str,
                                               tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(there)
    refused(lambda: write(tmp_path / name), "stands there already", "overwrite=True", why)
    assert (tmp_path / name).read_bytes() == there
    assert write(tmp_path / name, overwrite=True).read_text()[:2] in ('{\n', "//")
    assert os.listdir(tmp_path) == [name]


def test_another_program_s_file_and_a_changed_one_stay(tmp_path: Path) -> None:
    other = two_sums.schedule(M=4, N=8)
    other.save(tmp_path / "s.json")
    refused(lambda: S.save(tmp_path / "s.json"), "it is a schedule of two_sums")
    other.export(tmp_path / "s.cu")
    refused(lambda: S.export(tmp_path / "s.cu"), "it is the export of two_sums")
    path = S.export(tmp_path / "t.cu")
    path.write_text(path.read_text() + "// mine\n")
    refused(lambda: S.export(path), "it has been changed since it was exported")
    assert path.read_text().endswith("// mine\n")


@writers
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_is_named_and_nothing_is_lost(write: Callable[..., Path], name: str, code: int, tmp_path: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    before = write(tmp_path / name).read_bytes()

    def full(_: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", full)
    said = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "your share of the disk is full", errno.EIO: "Input/output error"}
    error = refused(lambda: write(tmp_path / name), "cannot be written", said[code])
    assert ("make room" in error.hint) == (code != errno.EIO)
    assert (tmp_path / name).read_bytes() == before
    assert os.listdir(tmp_path) == [name]


def test_a_write_that_the_system_cuts_short_loses_nothing(tmp_path: Path) -> None:
    """As on a full disk: the system takes the first bytes and refuses the rest."""
    before = {path: path.read_bytes() for path in (S.save(tmp_path / "s.json"), S.export(tmp_path / "s.cu"))}
    code = f"""
import resource
import explorer as ex
from tests.programs import row_sum
s = row_sum.schedule(M=4, N=8)
text = s.cuda  # before the limit, which holds for compilers too
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
import explorer.run.export as made
made.exported = lambda *a, **k: text
for write, path in ((s.save, {str(tmp_path / 's.json')!r}), (s.export, {str(tmp_path / 's.cu')!r})):
    try:
        write(path)
    except ex.errors.ExportError as error:
        print(error.why)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("the file would be larger than the system allows\n" * 2, "")
    assert {path: path.read_bytes() for path in before} == before
    assert len(os.listdir(tmp_path)) == 2


@writers
def test_a_folder_is_made_when_asked(write: Callable[..., Path], name: str, tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / name
    error = refused(lambda: write(path), "is not there")
    assert "parents=True" in error.hint
    assert not path.parent.parent.exists()
    assert write(path, parents=True).is_file()
    assert write(path, parents=True).is_file()
    refused(lambda: write(path / name), "is a file")
    refused(lambda: write(path / name, parents=True), "cannot be written")


@writers
def test_a_link_stays_a_link_and_permissions_stay(write: Callable[..., Path], name: str, tmp_path: Path) -> None:
    write(tmp_path / name).chmod(0o640)
    (tmp_path / "link").symlink_to(name)
    (tmp_path / f"link{Path(name).suffix}").symlink_to(name)
    write(tmp_path / f"link{Path(name).suffix}")
    assert (tmp_path / f"link{Path(name).suffix}").is_symlink()
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o640
    (tmp_path / name).chmod(0o444)
    refused(lambda: write(tmp_path / name, overwrite=True), "write-protected")


@writers
def test_paths_that_cannot_be(write: Callable[..., Path], name: str, tmp_path: Path) -> None:
    for path in ("x" * 5000, tmp_path / ("x" * 300 + ".cu"), "a\0b", str(tmp_path / "x") * 2000):
        error = refused(lambda path=path: write(path), "cannot be written")
        assert len(error.message()) < 600
    for path in (tmp_path, str(tmp_path / "new") + "/", "", ".", "/"):
        refused(lambda path=path: write(path), "is a folder")
    for path in (3, None, b"x", ["x"], 1.5):
        refused(lambda path=path: write(path), "given by its path")
    refused(lambda: write("/dev/full"), "no ordinary file")
    refused(lambda: write("/dev/null", overwrite=True), "no ordinary file")
    os.mkfifo(tmp_path / name)
    refused(lambda: write(tmp_path / name, overwrite=True), "no ordinary file")
