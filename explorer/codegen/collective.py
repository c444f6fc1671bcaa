"""Updates of one cell by many threads or blocks: reductions by shuffles and shared memory, and atomics."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.dtype import DType
from ..ir.expr import Expr
from ..ir.scalar import REDUCTIONS
from ..ir.scalar import type_of as scalar_type
from .access import access_text, value_of
from .guards import Condition, condition, guard_text
from .lower import Lowered, Site
from .scalar import CONDITIONAL, PRIMARY, cast, enclose, literal, update_text


@dataclass(frozen=True)
class Collected:
    """The text of a collective update.

    Attributes
    ----------
    lines : tuple of str
    guards : tuple of Condition
        Conditions that the text takes care of itself.
    barrier : bool
        Every thread of the block must reach it.
    """

    lines: tuple[str, ...]
    guards: tuple[Condition, ...]
    barrier: bool


def lines(low: Lowered, site: Site, library: set[str], scratch: dict[tuple[str, int], str]) -> Collected:
    """The text of an update whose values are combined across places."""
    loops = {loop.id: loop for loop in site.loops}
    ways = {loop_id: how for loop_id, how in site.leaf.collect if loop_id in loops}
    threads = {loop_id: how for loop_id, how in ways.items() if loops[loop_id].is_thread and how != "atomic"}
    atomic = any(how == "atomic" for how in ways.values())
    statement = site.statement
    target_slot = len(statement.reads)
    target = low.store(site.leaf, target_slot)
    value = value_of(low, site, statement.value)
    kind = scalar_type(statement.value, low.dtypes(site)).wide
    update = statement.update or "sum"
    wide = target.dtype.wide
    if kind.name != wide.name:
        value = cast(value, wide, kind)
    lvalue = access_text(low, site, target_slot)
    if not threads:
        text = atomic_text(low, site, update, lvalue, value[0], library) if atomic else update_text(update, lvalue, value, target.dtype, wide)
        return Collected((f"{text}  // {site.leaf.id}",), (), False)
    return _across_threads(low, site, {loops[i].role for i in threads}, set(threads.values()), atomic, library, scratch, lvalue, value, wide)


def atomic_text(low: Lowered, site: Site, update: str, lvalue: str, value: str, library: set[str]) -> str:
    """``atomic_add(&y[i], v);``."""
    library.add("atomic")
    return f"atomic_{ATOMIC[update]}(&{lvalue}, {value});"


ATOMIC = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "and": "and", "or": "or"}


def _across_threads(low: Lowered, site: Site, roles: set[str], hows: set[str], atomic: bool, library: set[str],
                    scratch: dict[tuple[str, int], str], lvalue: str, value: tuple[str, int], wide: DType) -> Collected:
    library.add("reduce")
    statement = site.statement
    target = low.store(site.leaf, len(statement.reads))
    update = statement.update or "sum"
    thread_guards = tuple(c for c in site.conditions if c.variables() & low.thread_variables)
    if thread_guards:
        identity = literal(REDUCTIONS[update].identity(wide), wide)
        value = f"{guard_text(thread_guards, site.ranges)} ? {enclose(value, CONDITIONAL + 1)} : {enclose(identity, CONDITIONAL)}", CONDITIONAL
    result = low.taken.take(f"{target.name}_{ATOMIC[update]}")
    call = reduce_call(low, roles, hows, update, value[0], wide, scratch)
    out = [f"const {wide.cuda} {result} = {call};  // {site.leaf.id}"]
    if atomic:
        text = atomic_text(low, site, update, lvalue, result, library)
    else:
        text = update_text(update, lvalue, (result, PRIMARY), target.dtype, wide)
    if target.space != "register":
        guard = writer_guards(low, site, roles, thread_guards)
        text = f"if ({guard_text(guard, site.ranges)}) {text}" if guard else text
    return Collected((*out, text), thread_guards, True)


def writer_guards(low: Lowered, site: Site, roles: set[str], thread_guards: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """Which thread of a group writes: the first one, where the group's own conditions hold and the cell exists.

    Conditions on the collected places only say who contributes, so they are left out; what they proved about the
    target's index is tested again.
    """
    names = {low.role_name[role] for role in roles}
    guard = [Condition(Expr(((name, 1),)), True) for name in sorted(names)]
    guard += [c for c in thread_guards if not (c.variables() & names)]
    if len(guard) - len(names) < len(thread_guards):
        store = low.store(site.leaf, len(site.statement.reads))
        extents = store.buffer.shape if store.buffer else store.shape
        for e, extent in zip(low.index(site, len(site.statement.reads)), extents, strict=True):
            if isinstance(e, Expr):
                guard += [c for c in (condition(e, False, site.ranges), condition(-e + (extent - 1), False, site.ranges)) if c]
    return tuple(dict.fromkeys(guard))


def reduce_call(low: Lowered, roles: set[str], hows: set[str], update: str, value: str, wide: DType, scratch: dict[tuple[str, int], str]) -> str:
    """The call of the device library that combines `value` over the collected places of a block."""
    raise NotImplementedError
