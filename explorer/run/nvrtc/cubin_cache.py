"""Compiled kernels kept between sessions, and what the compiler said of them.

Nothing depends on it: a folder that cannot be written, or a damaged entry, only means compiling again.
"""

from __future__ import annotations

import base64
import json
import zlib

from ...system.cache import Cache

CUBINS = Cache("nvrtc", 256 << 20)
_NAME = "outcome.z"
Outcome = tuple[bool, bytes, str, str]  # accepted, cubin, PTX, log


def load(key: str) -> Outcome | None:
    """What was stored under a key; None if there is nothing whole."""
    try:
        accepted, cubin, ptx, log = json.loads(zlib.decompress(CUBINS.kept(key, _NAME) or b""))
        return bool(accepted), base64.b64decode(cubin, validate=True), str(ptx), str(log)
    except (ValueError, TypeError, zlib.error):
        return None


def store(key: str, outcome: Outcome) -> None:
    """Keep an outcome."""
    accepted, cubin, ptx, log = outcome
    data = zlib.compress(json.dumps([accepted, base64.b64encode(cubin).decode(), ptx, log]).encode(), 1)
    CUBINS.keep(key, {_NAME: data})
