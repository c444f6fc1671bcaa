"""Atomic writing of files: a temporary file and a rename, never over a foreign file, each failure reported."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ..errors import ExportError
from ..errors import shown as named

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def is_full(error: OSError) -> bool:
    """Whether a write failed for lack of room: the disk's, the user's share of it, or the largest size of a file."""
    return error.errno in _FULL


def reason(error: OSError | ValueError) -> str:
    """Why a file cannot be written, in words."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return "the disk is full"
    if isinstance(error, OSError) and error.errno == errno.EDQUOT:
        return "your share of the disk is full"
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        return "the file would be larger than the system allows"
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return "the name is too long for this file system"
    return str(error.strerror if isinstance(error, OSError) and error.strerror else error)


def write_beside(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Put `data` at `path` in one step: whoever looks sees what stood there before, or all of the new.

    The data go to a new file in the same folder, to the disk, and then under the name; a failure on the way leaves what stood
    there as it was, and nothing beside it.

    Raises
    ------
    OSError
    """
    beside = path.with_name(f".{secrets.token_hex(8)}.part")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise


def place_for(path: str | os.PathLike[str], example: str, *, suffix: str = "", parents: bool = False) -> Path:
    """Where a file of the user's is to stand, before the work of making it: refused where it cannot.

    Parameters
    ----------
    path : str or path
    example : str
        A name that such a file could have.
    suffix : str
        Appended if the path has none.
    parents : bool
        Make the folder if it is not there, and those above it.

    Raises
    ------
    ExportError
        The path is a folder, or no path at all; its folder is not there or cannot be made; what stands there is no ordinary file.
    """
    if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
        raise ExportError(f"a file is given by its path, not by {named(path)}", hint=f"a path such as {example!r}")
    text = os.fspath(path)
    shown = _short(text)
    try:
        if text.endswith(("/", os.sep)) or Path(text).is_dir():
            raise ExportError(f"{shown} is a folder.", hint=f"give the path of a file: {_short(str(Path(text) / example))}")
        file = Path(text) if Path(text).suffix else Path(text).with_suffix(suffix)
        file = Path(os.path.realpath(file)) if file.is_symlink() else file
        if parents:
            file.parent.mkdir(parents=True, exist_ok=True)
        if not file.parent.is_dir():
            here = file.parent.exists()
            raise ExportError(f"The folder {_short(str(file.parent))} {'is a file' if here else 'is not there'}.",
                              where=shown, hint="another path" if here else "parents=True makes it")
        if any(p.exists() and not p.is_file() for p in (file, Path(text))):
            raise ExportError(f"{shown} is no ordinary file.", hint=f"give another path, such as {example!r}")
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        raise _failed(text, error) from error
    return file


def write_file(file: Path, text: str, *, overwrite: bool, ours: Callable[[str], str]) -> None:
    """Write a file of the user's at a :func:`place_for` it.

    Parameters
    ----------
    file : Path
    text : str
    overwrite : bool
        Whatever stands there may go.
    ours : callable
        The text that stands there to why it must stay; empty if the new text replaces it without a loss.

    Raises
    ------
    ExportError
        It cannot be written, or something stands there that was not to be overwritten.  Then it stands there still.
    """
    try:
        old = file.stat() if file.exists() else None
        if old is not None and not old.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
            raise ExportError(f"{_short(str(file))} is write-protected.", hint="another path, or lift its protection")
        if old is not None and old.st_size and not overwrite and (why := ours(_text(file))):
            raise ExportError(f"{_short(str(file))} stands there already, and was not overwritten.", why=why,
                              hint="overwrite=True replaces it; or give another path")
        write_beside(file, text.encode(), 0o666 if old is None else stat.S_IMODE(old.st_mode))
    except (OSError, ValueError) as error:
        raise _failed(str(file), error) from error


def _text(file: Path) -> str:
    """What a file holds as text; what is no text is nobody's."""
    try:
        return file.read_text(encoding="utf-8")
    except (PermissionError, UnicodeDecodeError):
        return ""


def _failed(path: str, error: OSError | ValueError) -> ExportError:
    there = "what stood there is as it was; make room, or give another path"
    hint = there if isinstance(error, OSError) and is_full(error) else "give the path of a file in a folder that you may write"
    return ExportError(f"{_short(path)} cannot be written.", why=reason(error), hint=hint)


def _short(path: str) -> str:
    """A path as messages show it: a long one without its middle."""
    return path if len(path) <= 120 else f"{path[:60]}…{path[-50:]}"
