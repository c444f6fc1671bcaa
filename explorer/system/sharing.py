"""Arrays between two processes without a copy through a pipe: a block of memory that both map."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Sequence
from math import prod

import numpy as np


class SharedBlock:
    """Memory that another process of this user can map by `path`.

    An anonymous memory file where the system has them (no size limit but the memory itself, unlike ``/dev/shm`` in a
    container, and gone with its last user), else a temporary file.
    """

    def __init__(self, nbytes: int) -> None:
        self.nbytes, self._unlink = nbytes, False
        if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
            self._descriptor = os.memfd_create("explorer")
            self.path = f"/proc/{os.getpid()}/fd/{self._descriptor}"
        else:
            self._descriptor, self.path = tempfile.mkstemp(prefix="explorer-")
            self._unlink = True
        os.ftruncate(self._descriptor, max(nbytes, 1))
        self._map = mmap.mmap(self._descriptor, max(nbytes, 1))

    def array(self, dtype: np.dtype | type, shape: Sequence[int]) -> np.ndarray:
        """The memory as an array; it stays valid after `close`."""
        return np.frombuffer(self._map, dtype=dtype, count=prod(shape)).reshape(shape)

    def close(self) -> None:
        """Give up the name: no other process can map it any more.  Arrays already made keep the memory."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            if self._unlink:
                os.unlink(self.path)

    def __enter__(self) -> SharedBlock:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def attach(path: str, nbytes: int) -> np.ndarray:
    """The bytes of another process's block, as a writable ``uint8`` array."""
    with open(path, "r+b") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), max(nbytes, 1)), dtype=np.uint8, count=nbytes)
