"""Compiled kernels kept between sessions: one entry each under the user's cache folder, oldest thrown away first.

Nothing depends on it: a folder that cannot be written, or a damaged entry, only means compiling again.
"""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path

from ...system.cache import cache_folder, keep, kept, prune

LIMIT_BYTES = 256 << 20
_NAME = "outcome.z"
Outcome = tuple[bool, bytes, str, str]  # accepted, cubin, PTX, log


def folder() -> Path:
    """Where they are: ``nvrtc`` in the folder of everything that is kept."""
    return cache_folder() / "nvrtc"


def load(key: str) -> Outcome | None:
    """What was stored under a key; None if there is nothing whole."""
    try:
        accepted, cubin, ptx, log = json.loads(zlib.decompress(kept(folder() / key, _NAME) or b""))
        return bool(accepted), base64.b64decode(cubin, validate=True), str(ptx), str(log)
    except (ValueError, TypeError, zlib.error):
        return None


def store(key: str, outcome: Outcome) -> None:
    """Keep an outcome."""
    accepted, cubin, ptx, log = outcome
    data = zlib.compress(json.dumps([accepted, base64.b64encode(cubin).decode(), ptx, log]).encode(), 1)
    keep(folder() / key, {_NAME: data})
    prune(folder().glob("*"), LIMIT_BYTES)
