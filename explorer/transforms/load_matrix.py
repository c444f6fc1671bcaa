"""Load fragments from shared memory by one instruction."""

from __future__ import annotations

from dataclasses import dataclass

from ..poly.matrix_move import LOAD
from ._matrix import MatrixStep


@dataclass(frozen=True)
class LoadMatrix(MatrixStep):
    """Fill the fragments of a tensor instruction by ``ldmatrix`` instead of by single loads.

    A copy from shared memory into a warp's fragments, as `tensorize` leaves it, fills registers of 4 bytes in each lane.  One
    instruction fills up to four of these registers in all lanes: each lane gives the address of one row of 16 bytes, and
    receives its part of other lanes' rows.  Which lane holds which element stays as it is.  Where the array's rows run along
    the fragment's columns (the right factor of a product, whose array has the depth along its rows), the instruction transposes
    them, which it can for elements of 16 bits.

    Before::

        for a_r.i in 0…8                              # registers
            for a_r.1 in 0…32  lane
                a_r[a_r.i] = a_s[8*((a_r.i // 2) % 2) + a_r.1 // 4, 8*(a_r.i // 4) + 2*(a_r.1 % 4) + a_r.i % 2]

    After ``load_matrix('a_r')``::

        ldmatrix x4: a_r = a_s                        # in all lanes at once

    References
    ----------
    NVIDIA, PTX ISA, "Warp-level matrix load instruction: ldmatrix" (sm_75 and newer).
    """

    name = "load_matrix"
    group = "Hardware"
    aliases = ("ldmatrix",)
    elsewhere = {"TVM": "tensorize"}
    mechanism = LOAD
    wanted = ("copies no fragment from shared memory", "tensorize the product first")
