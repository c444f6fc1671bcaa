"""Tensor maps as the driver is asked for them: dimensions innermost first, and what is said where it refuses."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import pytest

from explorer.errors import DeviceError
from explorer.ir.dtype import DTYPES
from explorer.kernel.module import Buffer, TensorMap
from explorer.run.cuda import tensor_maps
from explorer.run.cuda.tensor_maps import conditions_unmet, encoded

X = Buffer("x", DTYPES["f16"], (3, 20, 72), "in")
MAP = TensorMap("k.x_map", "x", (3, 20, 72), (1, 8, 64), (1, 1, 1), 128, 72)


class Driver:
    """Notes what it is asked, and answers with a status."""

    def __init__(self, status: int) -> None:
        self.status, self.asked = status, ()

    def cuTensorMapEncodeTiled(self, at: Any, *asked: Any) -> int:
        ctypes.memset(at, 0x5A, 128)
        self.asked = tuple(list(a) if isinstance(a, ctypes.Array) else getattr(a, "value", a) for a in asked)
        return self.status


def test_what_the_driver_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(0)
    monkeypatch.setattr(tensor_maps, "_driver", lambda: driver)
    made = encoded(MAP, X, 4096)
    assert made.tobytes() == b"\x5a" * 128
    assert made.shape == (1,)
    dtype, rank, address, extents, strides, box, steps, interleave, swizzle, l2, fill = driver.asked
    assert (dtype, rank, address, extents, strides) == (6, 3, 4096, [72, 20, 3], [144, 2880])
    assert (box, steps, interleave, swizzle, l2, fill) == ([64, 8, 1], [1, 1, 1], 0, 3, 3, 0)
    encoded(replace(MAP, shape=(60, 72), box=(8, 64), steps=(2, 1)), X, 4096)  # every other row, of all planes as one
    _, rank, _, extents, strides, box, steps, *_ = driver.asked
    assert (rank, extents, strides, box, steps) == (2, [72, 60], [144], [64, 16], [1, 2])


@pytest.mark.parametrize(("m", "buffer", "address", "words"), [
    (MAP, X, 4104, "x begins 8 bytes behind a multiple of 16"),
    (replace(MAP, box=(1, 300, 64)), X, 0, "a box of [1, 300, 64] has not 1 to 256 elements along each dimension"),
    (replace(MAP, box=(1, 8, 66)), X, 0, "a row of the box has 132 bytes, not a multiple of 16"),
    (replace(MAP, swizzle=64), X, 0, "a row of the box has 128 bytes, more than the swizzle's 64"),
    (replace(MAP, steps=(1, 9, 1)), X, 0, "its steps [1, 9, 1] are not at most 8, and 1 within rows"),
    (replace(MAP, steps=(1, 1, 2), box=(1, 8, 32)), X, 0, "its steps [1, 1, 2] are not at most 8, and 1 within rows"),
    (replace(MAP, shape=(3, 20, 70), pitch=70), X, 0, "its rows are 140 bytes apart, not a multiple of 16 below 2**40"),
    (replace(MAP, shape=(3, 0, 72)), X, 0, "its extents [3, 0, 72] are not all between 1 and 2**32"),
    (replace(MAP, box=(1,) * 6, steps=(1,) * 6, shape=(1,) * 5 + (8,)), X, 0, "it has 6 dimensions, not 1 to 5"),
])
def test_the_condition_that_failed_is_named(m: TensorMap, buffer: Buffer, address: int, words: str,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    assert not list(conditions_unmet(MAP, X, 4096))
    assert words in list(conditions_unmet(m, buffer, address))
    monkeypatch.setattr(tensor_maps, "_driver", lambda: Driver(1))
    with pytest.raises(DeviceError, match="The driver makes no tensor map of x") as refused:
        encoded(m, buffer, address)
    assert words in refused.value.what
