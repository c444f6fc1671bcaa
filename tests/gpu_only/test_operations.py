"""Every row of the table of operations on a real GPU: the errors that the rows state, of the instructions themselves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from explorer.ir.dtype import DTYPES
from explorer.ir.operations import OPERATIONS
from explorer.run.cuda.device import CudaDevice, available
from tests.ir.test_operations import PAIRS, TYPES, results, wrong

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def device() -> Iterator[CudaDevice]:
    assert available() is None
    made = CudaDevice(limit_s=10)
    yield made
    made.close()


@pytest.mark.parametrize("kind", TYPES)
def test_rows_are_what_numpy_makes_of_them(device: CudaDevice, kind: str) -> None:
    rows = [OPERATIONS[op] for op, d in PAIRS if d == kind]
    found = results(rows, DTYPES[kind], device)
    assert not [said for row in rows if (said := wrong(row, DTYPES[kind], found))]
