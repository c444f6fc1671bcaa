"""GPUs as data, and what follows from them: launch limits, occupancy, and the roofline.

The package is also the function that finds a GPU: ``explorer.gpu("H200")`` is :func:`explorer.gpu.spec.gpu`.
"""

from __future__ import annotations

import sys
from types import ModuleType

from ..errors import spoken
from .spec import Gpu
from .spec import gpu as _find

__all__ = ["Gpu"]


class _Package(ModuleType):
    """One public name for both: as a function alone it would hide the package that holds its definition."""

    @spoken(hint='ex.gpu("H200")', name="gpu")
    def __call__(self, name: str) -> Gpu:
        return _find(name)


sys.modules[__name__].__class__ = _Package
