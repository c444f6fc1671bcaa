"""The sentences of question flow: which value is lost, where it went, and what to try."""

from __future__ import annotations

from ..ir.finding import Finding, Instance
from ..ir.plan import Plan
from .plan_facts import plan_copy
from .sites import Place, Site

Point = tuple[int, ...]


def instance(site: Site, point: Point) -> Instance:
    """An instance with the values of its loops."""
    values, when = dict(zip(site.statement.dims, point, strict=True)), dict(site.leaf.when)
    at = [(x, int(when[x.id].evaluate(values))) for x in site.above]
    place = tuple((x.role, v) for x, v in at if x.is_place)
    return Instance(site.statement.name, point, place, tuple(v for x, v in at if not x.is_place))


def cell_text(site: Site, point: Point) -> str:
    """The physical cell that an instance uses: ``As[1, 3, 0]``."""
    values, when = dict(zip(site.statement.dims, point, strict=True)), dict(site.leaf.when)
    loops = {x.id: int(when[x.id].evaluate(values)) for x in site.above}
    index = ["*" if e is None else str(e.evaluate(loops)) for e in site.cell]
    return f"{site.storage}[{', '.join(index)}]" if index else site.storage


def element(site: Site, point: Point) -> Point:
    """The array element of the program that the access stands for."""
    values = dict(zip(site.statement.dims, point, strict=True))
    index = site.statement.accesses[site.slot].index
    return tuple(int(e.evaluate(values)) if hasattr(e, "evaluate") else 0 for e in index)  # type: ignore[union-attr]


def _lines(*sites: Site) -> tuple[int, ...]:
    return tuple(sorted({s.statement.line for s in sites if s.statement.line}))


def _nodes(*sites: Site) -> tuple[str, ...]:
    return tuple(dict.fromkeys(s.leaf.id for s in sites))


def _finding(why: str, sites: tuple[Site, ...], first: Point, last: Point, hints: tuple[str, ...]) -> Finding:
    """A value that the last of the sites does not get from the first."""
    a, b = sites[0], sites[-1]
    source, sink = instance(a, first), instance(b, last)
    return Finding("flow", f"{sink} would not get the value that {source} writes for it", why, b.statement.accesses[b.slot].array,
                   element(b, last), "flow", source, sink, _nodes(*sites), _lines(*sites), hints)


def kept(site: Site) -> Finding:
    """A result that stays in a buffer."""
    name = site.statement.target.array
    return Finding("flow", f"{site.leaf.id} would leave its result in {site.storage} instead of {name}", array=name,
                   nodes=(site.leaf.id,), lines=_lines(site), hints=(f"leave {name} in global memory, or write the buffer back",))


def undecided(site: Site) -> Finding:
    """A question that was too hard."""
    array = site.statement.accesses[site.slot].array
    return Finding("flow", f"whether {site.leaf.id} gets its values of {array} through {site.storage} could not be decided",
                   "the analysis reached its limit of operations", array, nodes=(site.leaf.id,), lines=_lines(site),
                   hints=("simpler indices: split by divisors, coalesce fewer loops",))


def _scope(plan: Plan, a: Site) -> str:
    return plan.buffer_of[a.storage].scope if a.storage in plan.buffer_of else ""


def lost(plan: Plan, a: Site, b: Site, first: Point, last: Point, reason: str) -> Finding:
    """The value is not in the cell that is read: other storage, another launch, another cell, or a later time."""
    array = b.statement.accesses[b.slot].array
    source, sink = instance(a, first), instance(b, last)
    cells = f"{source} writes {cell_text(a, first)}, {sink} reads {cell_text(b, last)}"
    ends = f"{a.storage} is {_space_text(a)}, which ends with the launch of {source}"
    why, hints = {
        "storage": (cells, (f"contract('{array}', '{a.space}')",)),
        "launch": (ends, (f"contract('{array}', 'global')",)),
        "cell": (cells, (f"contract('{array}', '{a.space}') anew after changing the loops",)),
        "life": (f"{a.storage} lives for one iteration of {_scope(plan, a)}: {source} writes it in one, {sink} reads in another",
                 (f"stage or contract {array} at a loop outside of {_scope(plan, a)}",)),
        "time": (f"{source} would run after {sink}, or in another thread at the same time", _time_hints(plan, a)),
    }[reason]
    return _finding(why, (a, b), first, last, hints)


def _space_text(site: Site) -> str:
    return "in registers" if site.space == "register" else f"in {site.space} memory"


def _time_hints(plan: Plan, a: Site) -> tuple[str, ...]:
    if plan_copy(plan, a.storage):
        return ("begin the copies early enough: one iteration of the prologue for each iteration of lead",)
    return ("run the writer before the reader: distribute or shift the loop that carries it",)


def hidden(plan: Plan, a: Site, b: Site, first: Point, last: Point) -> Finding:
    """The value is in another thread's registers, or in another block's shared memory."""
    array = b.statement.accesses[b.slot].array
    source, sink = instance(a, first), instance(b, last)
    owner, wider = ("thread", "shared") if a.space == "register" else ("block", "global")

    def where(x: Instance, place: Place) -> str:
        relevant = [(role, v) for role, v in x.place if owner == "thread" or role.startswith("block")]
        everywhere = None in (place if owner == "thread" else place[:3])
        return ", ".join(f"{role} {v}" for role, v in relevant) or (f"every {owner}" if everywhere else f"{owner} 0")

    runs = f"{source} runs in {where(source, a.place)}, {sink} in {where(sink, b.reads_at)}"
    why = f"{cell_text(a, first)} is private to a {owner}: {runs}"
    hints = (f"contract('{array}', '{wider}')", "bind the loops of both alike")
    if a.statement.update:
        hints = (*hints, f"collect('{array}', 'shuffle')") if owner == "thread" else hints
    return _finding(why, (a, b), first, last, hints)


def clobbered(plan: Plan, a: Site, c: Site, b: Site, first: Point, middle: Point, last: Point) -> Finding:
    """Another write of the cell comes between."""
    source, other, sink = instance(a, first), instance(c, middle), instance(b, last)
    cell = cell_text(b, last)
    why = f"{source} writes {cell}, {other} overwrites it, then {sink} reads it"
    array = b.statement.accesses[b.slot].array
    if copy := plan_copy(plan, a.storage):
        count = (*plan.buffer_of[a.storage].shape, 1)[0]
        slots = [str(e) for site in (a, c, b) for e in site.cell[:1]]
        pipelined = len(a.cell) == len(plan.array_of[copy].shape) or any("%" in e for e in slots)
        hints = (f"{count + 1} buffers instead of {count}",) if pipelined else ("two buffers instead of one",)
    else:
        wider = "shared" if a.space == "register" else "global"
        hints = (f"fuse the loops of writer and reader, then contract('{array}', '{a.space}')", f"contract('{array}', '{wider}')")
    return _finding(why, (a, c, b), first, last, hints)
