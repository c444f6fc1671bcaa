"""The CUDA text of a plan: its IR, proved to be the plan, and printed."""

from __future__ import annotations

from ..ir.plan import Plan
from .assemble import module_of
from .function import function_of
from .launches import Barriers, PlanIR, plan_ir
from .module import CudaModule
from .names import Names
from .stamped import Stamped
from .validate import require_proved


def emit(plan: Plan, *, arch: str = "sm_90", min_blocks: int = 0,
         barriers: Barriers | None = None, after: str = "", stamped: Stamped | None = None) -> CudaModule:
    """Write a legal plan as CUDA C++.

    Parameters
    ----------
    plan : Plan
    arch : str
        Compute capability the text may use (cp.async needs ``sm_80``; below it, copies are plain).
    min_blocks : int
        Blocks per multiprocessor to ask the compiler for (``__launch_bounds__``) where the schedule does not say
        (:mod:`~explorer.transforms.launch_bounds`); 0 leaves it free.
    barriers : callable, optional
        ``(plan, kernel)`` to an object whose ``before`` says where ``__syncthreads()`` stands.  Default: the exact
        analysis of :mod:`explorer.poly.barriers`; what comes out is then compared with the plan
        (:mod:`explorer.kernel.validate`).
    after : str
        The last pass of :mod:`explorer.kernel.passes` to run; by default all do.
    stamped : Stamped, optional
        Notes the time in an instrumented copy (:mod:`explorer.kernel.stamped`); none by default.

    Returns
    -------
    CudaModule
        The text, its buffers and launches, and the lines of every node.

    Raises
    ------
    IllegalSchedule, ScheduleError
        What no kernel can say; a kernel that is not what was proved (a fault of a pass).
    """
    ir = plan_ir(plan, arch=arch, barriers=barriers, after=after)
    if barriers is None and not after:
        for launch in ir.launches:
            require_proved(launch)
    return written(ir, min_blocks, stamped)


def written(ir: PlanIR, min_blocks: int = 0, stamped: Stamped | None = None) -> CudaModule:
    """The text of an IR as it is: nothing is judged."""
    names = Names()
    return module_of(ir.plan, [(launch, function_of(launch, names, stamped)) for launch in ir.launches], min_blocks)
