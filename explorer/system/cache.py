"""A disk cache whose entries are written atomically and rebuilt when damaged.

An entry is a folder.  Beside its files stand their sums (SHA-256), and nothing is used whose sum is another: an entry that is
truncated, damaged, unreadable or no folder at all is made again, silently.  It appears under its name in one step, complete, so
concurrent processes never see half of it; of several that want the same one, the first makes it and the others wait.  Each kind
of thing that is kept is one :class:`Cache`: a name and a limit, beyond which the least recently used entries go.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from ..errors import DeviceError
from . import cancel
from .files import is_full, reason

_SUMS, _MAKING = "sums.json", ".making-"
_WAIT_S, _LOOK_S = 60.0, 0.01
"""How long one waits for what another makes, before it makes it too; and how often it looks."""
_LEFT_S = 3600.0
"""An unfinished entry of this age has been left by a process that ended."""

try:
    import fcntl
except ImportError:  # Windows: the last to rename wins there
    fcntl = None


def cache_folder() -> Path:
    """The folder of everything that is kept: ``EXPLORER_CACHE_DIR``, else where it already is, else the platform's."""
    if chosen := os.environ.get("EXPLORER_CACHE_DIR"):
        return Path(chosen)
    return earlier if (earlier := _earlier_folder()).is_dir() else platformdirs.user_cache_path("explorer", appauthor=False)


def _earlier_folder() -> Path:
    """Where version 0.1 kept things; the same as the platform's but on Windows, and on macOS with ``XDG_CACHE_HOME``."""
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "explorer"
    home = Path(os.path.expanduser("~"))
    return home / ("Library/Caches/explorer" if sys.platform == "darwin" else ".cache/explorer")


def key_of(*parts: object) -> str:
    """A name for the result that `parts` determine."""
    return hashlib.sha256(json.dumps([str(p) for p in parts]).encode()).hexdigest()[:40]


@dataclass(frozen=True)
class Cache:
    """One kind of thing that is kept.

    Attributes
    ----------
    name : str
        Of its folder in :func:`cache_folder`; empty for that folder itself.
    limit_bytes : int
        What :meth:`prune` leaves of it.
    spread : bool
        Whether entries stand in folders named by the first two letters of their keys.
    """

    name: str
    limit_bytes: int
    spread: bool = False

    @property
    def folder(self) -> Path:
        """Where its entries are."""
        return cache_folder() / self.name

    def entry(self, key: str) -> Path:
        """Where the entry of a key is, or would be."""
        return self.folder / key[:2] / key if self.spread else self.folder / key

    def made(self, key: str, make: Callable[[Path], None]) -> Path:
        """The folder that `make` filled for `key`, now or earlier; its files are as they were made.

        Raises
        ------
        DeviceError
            The folder cannot be written, or the disk is full.
        """
        final = self.entry(key)
        if _touched(final):
            return final
        try:
            work = _begin(final.parent)
        except OSError as error:
            raise _unwritable(final.parent, error) from error
        try:
            with _in_turn(final.parent):
                if _touched(final):  # made by another one meanwhile
                    return final
                make(work)
                _seal(work)
            return _place(work, final)
        except OSError as error:
            if isinstance(error, FileNotFoundError):  # what `make` runs is not there
                raise
            raise _unwritable(final.parent, error) from error
        finally:
            remove(work)

    def keep(self, key: str, files: Mapping[str, bytes]) -> None:
        """Keep an entry of these files in the place of an earlier one; where nothing can be written, nothing is kept."""
        final = self.entry(key)
        with contextlib.suppress(OSError):
            work = _begin(final.parent)
            try:
                for name, data in files.items():
                    (work / name).write_bytes(data)
                _seal(work)
                _place(work, final, renew=True)
            finally:
                remove(work)
        self.prune()

    def kept(self, key: str, name: str) -> bytes | None:
        """A file of an entry as it was kept; None if there is no such entry, or it is damaged."""
        final = self.entry(key)
        if not _touched(final):
            return None
        with contextlib.suppress(OSError):
            return (final / name).read_bytes()
        return None

    def forget(self, pattern: str = "*") -> int:
        """Remove the entries whose keys match a pattern (:mod:`fnmatch`); how many there were."""
        found = [path for path in self._entries(pattern) if not path.name.startswith(".")]
        for path in found:
            remove(path)
        return len(found)

    def prune(self) -> int:
        """Delete the least recently used entries beyond the limit, and what was never finished; bytes deleted."""
        found, deleted, now = [], 0, time.time()
        for path in self._entries("*"):
            with contextlib.suppress(OSError):
                used = path.stat().st_mtime
                if path.name.startswith(_MAKING):
                    if now - used > _LEFT_S:
                        remove(path)
                elif (path / _SUMS).is_file():
                    found.append((used, sum(f.stat().st_size for f in path.iterdir()), path))
        excess = sum(size for _, size, _ in found) - self.limit_bytes
        for _, size, path in sorted(found, key=lambda row: row[0]):
            if deleted >= excess:
                break
            remove(path)
            deleted += size
        return deleted

    def _entries(self, pattern: str) -> list[Path]:
        return list(self.folder.glob(f"??/{pattern}" if self.spread else pattern))


# ---- entries ----


def _sum(path: Path) -> list[object]:
    """What a file must still be: its content, and whether it can be run."""
    with path.open("rb") as file:
        return [hashlib.file_digest(file, "sha256").hexdigest(), os.access(path, os.X_OK)]


def _seal(folder: Path) -> None:
    """Write the sums of what is in the folder."""
    sums = {path.name: _sum(path) for path in sorted(folder.iterdir())}
    (folder / _SUMS).write_text(json.dumps(sums))


def _sound(folder: Path) -> bool:
    """Whether everything in an entry is as it was made."""
    try:
        sums = json.loads((folder / _SUMS).read_bytes())
        return all(_sum(folder / name) == was for name, was in sums.items())
    except (OSError, ValueError, AttributeError, RecursionError):
        return False


def _touched(folder: Path) -> bool:
    """Whether an entry is sound; then its use is noted, unless the cache is read-only."""
    if not _sound(folder):
        return False
    with contextlib.suppress(OSError):
        os.utime(folder)
    return True


def _begin(parent: Path) -> Path:
    """A new folder beside the entries; what stands in the place of their own folder goes."""
    if parent.is_dir():
        if not os.access(parent, os.R_OK | os.W_OK | os.X_OK):
            parent.chmod(0o700)
    elif parent.is_symlink() or (parent.exists() and not parent.is_dir()):  # another process may have made it just now
        parent.rename(parent.with_name(f"{parent.name}.aside-{os.urandom(6).hex()}"))
    parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=_MAKING, dir=parent))


def _place(work: Path, final: Path, renew: bool = False) -> Path:
    """Give a finished entry its name, unless (if it is not to `renew` one) another process has made the same meanwhile."""
    with _alone(final.parent):
        if renew or not _sound(final):
            remove(final)
            work.rename(final)
    return final


@contextlib.contextmanager
def _in_turn(parent: Path) -> Iterator[None]:
    """No other process or thread makes an entry here meanwhile, unless it has waited too long (or there are no locks)."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            folder = os.open(parent, os.O_RDONLY)
            stack.callback(os.close, folder)
            end = time.monotonic() + _WAIT_S
            while fcntl is not None and time.monotonic() < end:
                cancel.check()
                try:
                    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(_LOOK_S)
        yield


@contextlib.contextmanager
def _alone(parent: Path) -> Iterator[None]:
    """No other process places an entry here meanwhile (where the file system has locks)."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            file = stack.enter_context((parent / ".lock").open("ab"))
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def remove(path: Path) -> None:
    """Remove whatever stands there; at once for others, who see all of it or nothing."""
    with contextlib.suppress(OSError):
        if path.is_symlink() or not path.is_dir():
            path.unlink(missing_ok=True)
            return
        aside = path
        if not path.name.startswith(_MAKING):
            aside = path.with_name(f"{_MAKING}{os.urandom(6).hex()}")
            path.rename(aside)
        with contextlib.suppress(OSError):
            aside.chmod(0o700)
        shutil.rmtree(aside, ignore_errors=True)


def _unwritable(folder: Path, error: OSError) -> DeviceError:
    if is_full(error):
        return DeviceError(f"A kernel cannot be compiled: {reason(error)}.", where=str(folder),
                           hint="make room there, or set EXPLORER_CACHE_DIR to a folder on another disk")
    return DeviceError("The folder for compiled kernels cannot be written.", where=str(folder), why=reason(error),
                       hint="set EXPLORER_CACHE_DIR to a folder that can")
