"""The schedule of sums over windows by moves: threads with several results, windows and weights in registers."""

from __future__ import annotations

from ...errors import TransformError
from ...schedule import Schedule
from .._steps import Builder, nest_apart, own_temporaries
from ..contraction.copies import Laid, copied_first
from .form import WindowForm, window_form
from .shapes import THREADS, Shape

WIDTHS = (8, 4, 2, 1)
"""Elements of one access that are tried."""


def build(schedule: Schedule, form: WindowForm, s: Shape) -> Schedule:
    """The schedule of a shape.

    Parameters
    ----------
    schedule : Schedule
        With the kernel as :func:`~explorer.strategies.windows.form.window_form` found it.
    form : WindowForm
    s : Shape

    Returns
    -------
    Schedule
        Not judged yet.

    Raises
    ------
    TransformError, IllegalSchedule
        If the kernel does not allow it.
    """
    b = Builder(schedule, judged=False)
    if s.last:
        kernel = copied_first(b, form.kernel, {form.weights: Laid(form.weights_last)})
        found = window_form(b.schedule, kernel)
        if found is None:
            raise TransformError(f"with {form.weights} copied, {form.kernel} has no windows")
        form = found
    tile = _tiled(b, form, s)
    outer = [x for x in form.around if x not in tile]
    update = _apart(b, form, tile)
    around = [x for x in form.sums if x not in s.inside]
    b.do("reorder", (*around, *s.inside, *update))
    if len(outer) > 1:
        b.do("coalesce", tuple(outer))
    lane = b.plan.fresh(f"{outer[0]}.t")
    b.do("split", outer[0], THREADS, inner=lane).do("bind", outer[0], "block.x").do("bind", lane, "thread.x")
    for temporary in own_temporaries(b.plan, form.kernel):
        if temporary not in b.plan.buffer_of:
            b.do("contract", temporary, "register")
    at = around[-1] if around else lane
    for array in (form.data, form.weights):
        if not any(b.attempt("stage", array, at, space="register", vector=width) for width in WIDTHS):
            raise TransformError(f"{array} does not fit into registers")
    _unrolled(b, form, s)
    return b.schedule


def _tiled(b: Builder, form: WindowForm, s: Shape) -> list[str]:
    """The loops over a thread's results, innermost; around them the others."""
    inside = list[str]()
    if 1 < s.tile < b.extent(s.loop):
        inside.append(b.plan.fresh(f"{s.loop}.i"))
        b.do("split", s.loop, s.tile, inner=inside[0])
    elif s.tile > 1:
        inside.append(s.loop)
    inside += form.sharing
    last = form.around[-1]
    if s.vector > 1 and last not in form.sharing:
        inside.append(b.plan.fresh(f"{last}.v"))
        b.do("split", last, s.vector, inner=inside[-1])
    if not inside:
        raise TransformError(f"a thread of {s} has one result", hint="a tile of several")
    outer = [x for x in form.around if x not in inside]
    if not outer:
        raise TransformError("no loop is left for threads", hint="smaller tiles")
    b.attempt("reorder", (*outer, *inside))
    return inside


def _apart(b: Builder, form: WindowForm, tile: list[str]) -> list[str]:
    """The sums in a nest of their own; the loops over a thread's results there."""
    above = nest_apart(b, tile, form.update)
    nest = [x for x in above if x not in form.sums]
    return nest[len(nest) - len(tile):]


def _unrolled(b: Builder, form: WindowForm, s: Shape) -> None:
    """Loops over registers unrolled; results in wide accesses."""
    for leaf, above, owner in b.plan.leaves:
        if owner.id != form.kernel or leaf.statement in {c.name for c in b.plan.copies}:
            continue
        here = [x for x in above if x.role == "seq" and (x.id in s.inside or x.id not in form.sums)]
        if here and leaf.id != form.update:
            b.attempt("vectorize", here[-1].id)
        for loop in here:
            if b.plan.loops[loop.id].role == "seq":
                b.attempt("unroll", loop.id)
