"""Store fragments to shared memory by one instruction."""

from __future__ import annotations

from dataclasses import dataclass

from ..poly.matrix_move import STORE
from ._matrix import MatrixStep


@dataclass(frozen=True)
class StoreMatrix(MatrixStep):
    """Leave fragments in shared memory by ``stmatrix`` instead of by single stores.

    The results of a tensor instruction lie in its lanes as pairs of neighbours.  On their way out through shared memory, each
    lane stores 4 bytes at a time.  One instruction stores up to four of these registers of all lanes: each lane names one row
    of 16 bytes, of which four lanes have the parts.  A row that runs across the fragment is transposed on the way, which
    elements of 16 bits can be.  The fragment has the type of the array: `outline` the result twice, and `contract` the first
    temporary to registers, the second to shared memory.

    Before::

        for r in 0…8                                  # registers
            for t in 0…32  lane
                S2_store: z_t[8*((r // 2) % 2) + t // 4, 8*(r // 4) + 2*(t % 4) + r % 2] = z_r[r]

    After ``store_matrix('S2_store')``::

        stmatrix x4: z_t = z_r                        # in all lanes at once

    References
    ----------
    NVIDIA, PTX ISA, "Warp-level matrix store instruction: stmatrix" (sm_90 and newer).
    """

    name = "store_matrix"
    group = "Hardware"
    aliases = ("stmatrix",)
    elsewhere = {"TVM": "tensorize"}
    mechanism = STORE
    wanted = ("copies no fragment to shared memory", "outline the result of a tensor instruction twice")
