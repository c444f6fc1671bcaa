"""Compiled kernels kept between sessions: one file each under the user's cache directory, oldest thrown away first.

Nothing depends on it: a folder that cannot be written, or a damaged file, only means compiling again.
"""

from __future__ import annotations

import base64
import json
import os
import tempfile
import zlib
from contextlib import suppress
from pathlib import Path

LIMIT_BYTES = 256 << 20
Outcome = tuple[bool, bytes, str, str]  # accepted, cubin, PTX, log


def folder() -> Path:
    """``$XDG_CACHE_HOME/explorer/nvrtc``, by default under ``~/.cache`` (XDG Base Directory Specification)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "explorer" / "nvrtc"


def load(key: str) -> Outcome | None:
    """What was stored under a key; None if there is nothing readable."""
    path = folder() / f"{key}.z"
    try:
        accepted, cubin, ptx, log = json.loads(zlib.decompress(path.read_bytes()))
        os.utime(path)  # used now: the last to be thrown away
        return bool(accepted), base64.b64decode(cubin, validate=True), str(ptx), str(log)
    except (OSError, ValueError, TypeError, zlib.error):
        return None


def store(key: str, outcome: Outcome) -> None:
    """Keep an outcome; a reader never sees half of it."""
    accepted, cubin, ptx, log = outcome
    data = zlib.compress(json.dumps([accepted, base64.b64encode(cubin).decode(), ptx, log]).encode(), 1)
    with suppress(OSError):
        folder().mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder(), delete=False) as file:
            file.write(data)
        os.replace(file.name, folder() / f"{key}.z")
        _prune()


def _prune() -> None:
    """Delete the least recently used files beyond the limit."""
    files = sorted(((p.stat(), p) for p in folder().glob("*.z")), key=lambda row: row[0].st_mtime, reverse=True)
    total = 0
    for stat, path in files:
        total += stat.st_size
        if total > LIMIT_BYTES:
            with suppress(OSError):
                path.unlink()
