"""The kernel IR, executed: launch after launch, all threads of a launch in an order that is asked for.

It runs what any pass leaves, or what somebody made of that, in the element types' own arithmetic, and sees what a GPU would not
tell: races, elements that nothing has written, accesses outside of an array, barriers that some threads do not reach.  It is for
small sizes: some thousand statements of one thread in a second, and as many of all threads where these run together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...ir.coding import coded, decoded, encoded
from ...ir.plan import Plan
from ...ir.program import Array
from ..launches import PlanIR, plan_ir
from .joins import Phases
from .lanes import Numbers
from .machine import Machine
from .memory import Cells
from .order import Order
from .watch import Hazard, Hazards


@dataclass(frozen=True)
class Execution:
    """What a run did.

    Attributes
    ----------
    outputs : dict of str to ndarray
        What the program's parameters hold that are no inputs: as a device gives them, or float64 where the run was exact.
    hazards : tuple of Hazard
        What went wrong, the first of each kind, nodes and array; after a barrier that is not met the launch ends.
    """

    outputs: dict[str, Numbers]
    hazards: tuple[Hazard, ...] = ()


def execute(ir: Plan | PlanIR, arrays: Mapping[str, Numbers], order: Order | None = None, *, exact: bool = False,
            watch: bool = True) -> Execution:
    """Run kernels.

    Parameters
    ----------
    ir : Plan or PlanIR
        As :func:`~explorer.kernel.launches.plan_ir` makes it; of a plan, its last IR.
    arrays : mapping of str to ndarray
        Every input, as a device takes it (bf16 and 8-bit floats as their bits).
    order : Order, optional
        By default all threads together.
    exact : bool
        Compute floats in float64 and do not round them.
    watch : bool
        Whether to look for hazards, accesses outside of an array apart, which are always seen.

    Returns
    -------
    Execution
    """
    ir = plan_ir(ir) if isinstance(ir, Plan) else ir
    plan, hazards, order = ir.plan, Hazards(), order or Order()
    held = {("array", a.name): Cells(a.name, a.dtype, a.stored, exact=exact) for a in plan.program.arrays}
    held |= {("buffer", b.name): Cells(b.name, b.dtype, b.padded_shape, exact=exact) for b in plan.buffers if b.space == "global"}
    for a in plan.program.parameters:
        if a.role != "out":
            cells = held["array", a.name]
            cells.data[...] = _values(a, arrays[a.name]).reshape(-1)
            cells.known[...] = True
    with np.errstate(all="ignore"):
        for launch in ir.launches:
            for scalars in launch.hosted:
                Phases(Machine(launch, order, held, hazards, exact, watch), scalars).run()
    outputs = {a.name: _native(a, held["array", a.name], exact) for a in plan.program.parameters if a.role != "in"}
    return Execution(outputs, tuple(hazards))


def _values(array: Array, given: Numbers) -> Numbers:
    bits = coded(array.dtype) and given.dtype == array.dtype.numpy
    return decoded(given, array.dtype) if bits else np.asarray(given)


def _native(array: Array, cells: Cells, exact: bool) -> Numbers:
    """The elements as a device gives them."""
    data = cells.data.reshape(array.shape)
    if exact and array.dtype.kind == "float":
        return data.copy()
    if array.dtype.kind == "bool":  # what nothing has written is no bool at all
        return np.where(cells.known, cells.data, 0xFF).astype(np.uint8).view(np.bool_).reshape(array.shape)
    return encoded(data, array.dtype, moved=True) if coded(array.dtype) else data.astype(array.dtype.numpy)


__all__ = ["Execution", "Hazard", "Order", "execute"]
