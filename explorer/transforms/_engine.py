"""What moves a staged copy: the threads of a block, each of them by ``cp.async``, or the engine for bulk copies."""

from __future__ import annotations

from typing import Protocol

from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.swizzle import MODES
from ..poly.mechanism import ASYNCHRONOUS, moved_by
from ..poly.pure_load import Never

ENGINES = ("thread", *ASYNCHRONOUS)


class Wanted(Protocol):
    """What is asked of a copy (:class:`~explorer.transforms.stage.Stage`)."""

    @property
    def space(self) -> str: ...
    @property
    def vector(self) -> int: ...
    @property
    def pad(self) -> int: ...
    @property
    def threads(self) -> bool: ...
    @property
    def engine(self) -> str: ...
    @property
    def swizzle(self) -> int: ...
    @property
    def loops(self) -> tuple[str, ...]: ...
    @property
    def axes(self) -> tuple[int, ...]: ...
    @property
    def masked(self) -> bool: ...


def misfit(copy: Wanted) -> Verdict | None:
    """Why these arguments do not go together, or None."""
    if copy.engine not in ENGINES:
        return no(f"no engine is called {copy.engine!r}", hint=f"one of {', '.join(map(repr, ENGINES))}")
    if copy.swizzle not in (0, *MODES):
        return no(f"a row of a swizzle has 32, 64 or 128 bytes, not {copy.swizzle}", hint="swizzle=128, or 0 for none")
    if copy.space == "register" and (copy.engine != "thread" or copy.swizzle):
        return no("a copy in registers is made by its own thread and has no swizzle",
                  "asynchronous copies go to shared memory, and a swizzle is against its bank conflicts",
                  "space='shared', or engine='thread' and swizzle=0")
    if copy.swizzle and copy.pad:
        return no("a swizzled array has no padding", "the patterns are those of whole rows", "pad=0")
    if copy.engine == "bulk" and copy.masked:
        return no("a bulk copy brings what a reader's condition leaves out, too", "it moves a box of the array",
                  "engine='thread' or 'async'; or a masked copy in registers of the bulk copy")
    if copy.engine == "bulk" and copy.loops:
        return no("a bulk copy has no cell for each iteration", "it moves a box of the array",
                  "leave `loops` out, or engine='thread'")
    if copy.axes and (copy.space == "register" or copy.engine == "bulk"):
        return no("only what threads copy to shared memory has an order of axes",
                  "a bulk copy keeps a box as the array has it, and registers have no order",
                  "leave `axes` out, or space='shared' and engine='thread' or 'async'")
    if copy.engine == "bulk" and (copy.vector != 1 or copy.pad or not copy.threads):
        return no("a bulk copy has no vectors, no padding and no threads to choose",
                  "it moves a whole box, which one thread asks for", "vector=1, pad=0 and threads=True, or engine='async'")
    return None


def not_moved(copy: Wanted, plan: Plan) -> Verdict:
    """Whether the last copy of a plan can be moved by the engine that is asked for."""
    name = plan.copies[-1].name
    leaf, above = next((leaf, above) for leaf, above, _ in plan.leaves if leaf.statement == name)
    if copy.engine == "thread" or not isinstance(found := moved_by(plan, leaf, above), Never):
        return YES
    return no(found.what, found.why, "engine='thread', or leave `axes` out" if copy.axes else found.hint)
