"""Every tensor instruction on a real GPU: the fragments lie where its row says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from explorer.ir.instructions import INSTRUCTIONS, Mma
from explorer.run.cuda.device import CudaDevice, available
from tests.kernel.test_instructions import product

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def device() -> Iterator[CudaDevice]:
    assert available() is None
    made = CudaDevice(limit_s=10)
    yield made
    made.close()


@pytest.mark.parametrize("row", INSTRUCTIONS.values(), ids=lambda row: row.name)
def test_a_product_of_fragments(device: CudaDevice, row: Mma) -> None:
    found, expected = product(row, device)
    assert (found == expected).all()
