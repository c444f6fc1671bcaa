"""The fourth question, flow: with the storage really used, does each read still get the value it got in the program?

A cell is (replica, buffer, physical index): one replica per thread for registers, per block for shared memory, one
for global memory; registers and shared memory end with a launch.  For a supplier W and a reader R of a value:

- *visibility*: W writes the cell that R reads, in R's replica, earlier, and while the buffer lives (in one iteration of the
  loop in whose body it is declared, and of the loops around that); a collect writes the registers of all threads that it
  serves, but an instance of it reads in its own thread alone (who reads the result has all that it is made of as W, too);
- *no clobber*: no other write of that cell, not itself a supplier of R, runs after W and before R (an asynchronous
  copy counts from its issue on; an equal time in another thread counts as between);
- *footprint* (footprint.py): every cell lies inside its buffer, and a copy holds the element that its consumer wants.

All are emptiness questions on relations between loop variables, one for each pair or triple of accesses, and answers
are kept for each.  It is the exact value flow of Feautrier, "Dataflow analysis of array and scalar references" (IJPP
1991), asked of physical cells under the new order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile

import islpy as isl

from ..ir.expr import Expr, var
from ..ir.finding import Finding
from ..ir.plan import Plan
from ..ir.tree import Loop, ranges
from .decide import decide
from .dependence import Flow, are_peers
from .events import Event, common_loops, earlier, either, events, same_cell, same_replica, same_time, witness
from .flow_text import clobbered, hidden, kept, lost, undecided
from .footprint import check_footprints
from .isl import Undecided, budget
from .last_writer import Always, Link, Never, link
from .linear import Case, Cases, Condition, differ, equal
from .mechanism import ASYNCHRONOUS
from .overapproximated import check_overapproximated
from .overwritten import overwritten
from .plan_facts import facts, plan_copy
from .sites import Site, launch_extents

BUDGET = 20_000_000
"""Operations of isl for the last writers and clobbers of one read (some seconds); beyond, the plan is refused as undecided."""


@dataclass(frozen=True, eq=False)
class LastWriter:
    """A write that a read gets its value from; `link` relates the loops of the two."""

    writer: Event
    reader: Event
    link: Link

    @property
    def pairs(self) -> isl.Map:
        """``{ A[writer's loops] -> B[reader's loops] }``."""
        return self.link.pairs


def check_flow(plan: Plan, buffer: str = "") -> tuple[Finding, ...]:
    """Whether every read that goes through a buffer still gets its value.

    Parameters
    ----------
    plan : Plan
        A plan that passes *cover*.
    buffer : str
        The only buffer whose reads are asked about; "" for all.

    Returns
    -------
    tuple of Finding
        Empty when every value arrives; otherwise findings with a minimal witness, at most one for each read access.
    """
    if not plan.buffers:
        return ()
    everything = events(plan)
    if found := (*_kept_outputs(plan, everything), *check_footprints(plan, everything), *check_overapproximated(plan)):
        return found
    out = []
    flows = facts(plan).flow
    for reader in everything:
        if not reader.site.reads or (buffer and reader.site.cells != (buffer, True)):
            continue
        try:
            with budget(BUDGET):
                finding = _check_read(plan, everything, flows, reader)
        except Undecided:
            finding = undecided(reader.site)
        if finding:
            out.append(finding)
    return tuple(out)


def _check_read(plan: Plan, everything: tuple[Event, ...], flows: tuple[Flow, ...], reader: Event) -> Finding | None:
    found = tuple(last_writers(plan, everything, flows, reader))
    if not any(e.site.leaf.view(e.site.slot) for s in found for e in (s.writer, s.reader)):
        return None
    for s in found:
        if finding := _visible(plan, s):
            return finding
    return _clobber(plan, everything, found, reader)


def _kept_outputs(plan: Plan, everything: tuple[Event, ...]) -> Iterator[Finding]:
    """Results that a view would keep in a buffer instead of the array."""
    for site in (e.site for e in everything):
        if site.writes and site.leaf.view(site.slot) and plan.array_of[site.statement.target.array].role in ("out", "inout"):
            yield kept(site)


# -- who supplies whom -------------------------------------------------------------------------------------------


def last_writers(plan: Plan, everything: tuple[Event, ...], flows: tuple[Flow, ...], reader: Event) -> Iterator[LastWriter]:
    """The last writers of one read: the copy that its view names, or the program's value flow."""
    site = reader.site
    view = site.leaf.view(site.slot)
    if view and view.element and not site.writes and (copy := plan_copy(plan, view.buffer)):
        for w in everything:
            if w.site.writes and w.site.statement.name == copy and (found := link(None, w.site, site)):
                yield LastWriter(w, reader, found)
        return
    array = site.statement.accesses[site.slot].array
    for flow in flows:
        if (flow.sink, flow.slot, flow.array) != (site.statement.name, site.slot, array):
            continue
        if site.writes and are_peers(plan.statement_of[flow.source], site.statement):
            continue  # either may come first
        for w in everything:
            if w.site.writes and w.site.statement.name == flow.source and (found := link(flow, w.site, site)):
                yield LastWriter(w, reader, found)


# -- visibility --------------------------------------------------------------------------------------------------


def _visible(plan: Plan, s: LastWriter) -> Finding | None:
    a, b = s.writer.site, s.reader.site
    if a.cells != b.cells:
        return lost(plan, a, b, *witness(s.pairs, a, b), "storage")
    if a.space != "global":
        if s.writer.launch != s.reader.launch:
            return lost(plan, a, b, *witness(s.pairs, a, b), "launch")
        extents = launch_extents(plan, plan.kernels[s.reader.launch])
        axes = range(7) if a.space == "register" else range(3)
        if any(extents[i] > 1 and b.reads_at[i] is None and a.place[i] is not None for i in axes):
            return hidden(plan, a, b, *witness(s.pairs, a, b))
    wrong = _pair_failure(s.link, _late(s.writer, s.reader, "a", "b"), _lifetime(plan, a.storage) if a.space != "global" else ())
    if wrong is None:
        return None
    reason, first, last = wrong
    return hidden(plan, a, b, first, last) if reason == "place" else lost(plan, a, b, first, last, reason)


Failure = tuple[str, tuple[int, ...], tuple[int, ...]]


def _lifetime(plan: Plan, buffer: str) -> tuple[str, ...]:
    """Loops of whose iterations each has a buffer of its own: the one in whose body it lives, and those around that."""
    hit = plan.find(plan.buffer_of[buffer].scope)
    return tuple(x.id for x in (*hit[1], hit[0]) if isinstance(x, Loop) and not x.is_place) if hit else ()


def _late(first: Event, second: Event, p: str, q: str, agreed: int = 0) -> Cases:
    """Cases in which `first` does not run before `second`; see :func:`~explorer.poly.events.earlier`."""
    return (*earlier(second, first, q, p, agreed), *same_time(first, second, p, q))


@lru_cache(maxsize=4096)
def _pair_failure(by: Link, late: Cases, lifetime: tuple[str, ...]) -> Failure | None:
    """The first way in which some pair fails, with the smallest pair that fails so."""
    a, b = by.writer, by.reader
    if (failed := _unequal(by, "place", same_replica(a, b))) or (failed := _outlived(by, lifetime)):
        return failed
    if failed := _unequal(by, "cell", same_cell(a, b)):
        return failed
    if not all(decide(Never(by.of, case)) for case in late):
        return "time", *witness(by.pairs.intersect(either(a, b, late)), a, b)
    return None


def _outlived(by: Link, lifetime: tuple[str, ...]) -> Failure | None:
    """A pair that does not run in one iteration of the loops whose iterations have a buffer each."""
    a, b = by.writer, by.reader
    if not {x.id for x in a.above} & {x.id for x in b.above} >= set(lifetime):
        return "life", *witness(by.pairs, a, b)
    return _unequal(by, "life", [(var(x), var(x)) for x in lifetime])


def _unequal(by: Link, reason: str, pairs: Sequence[tuple[Expr, Expr]]) -> Failure | None:
    """The smallest pair, the writer on side ``a``, in which these expressions are not equal."""
    a, b = by.writer, by.reader
    alike = tuple(equal(e, "a", f, "b") for e, f in pairs)
    if decide(Always(by.of, alike)):
        return None
    cases = tuple(case for e, f in pairs for case in differ(e, "a", f, "b"))
    return reason, *witness(by.pairs.intersect(either(a, b, cases)), a, b)


# -- clobbering --------------------------------------------------------------------------------------------------


def _clobber(plan: Plan, everything: tuple[Event, ...], last_writers: tuple[LastWriter, ...], reader: Event) -> Finding | None:
    """The first other write of the cell between a supplier and the reader."""
    for other in everything:
        c = other.site
        if not c.writes or c.cells != reader.site.cells or (c.space != "global" and other.launch != reader.launch):
            continue
        supplied = tuple(s.link for s in last_writers if s.writer == other)
        for s in last_writers:
            agreed = _agreed(s.link, c)
            early, late = earlier(other, reader, "c", "b", agreed), _late(other, s.writer, "c", "a", agreed)
            if points := overwritten(s.link, c, early, late, supplied, c.leaf.id == reader.site.leaf.id, _copied(plan, s, c)):
                return clobbered(plan, s.writer.site, c, reader.site, *points)
    return None


def _copied(plan: Plan, s: LastWriter, c: Site) -> Case:
    """What is equal where another copy writes just the element that the reader wants, of an array that nothing changes; empty
    where that cannot be.  Then the value that was there is there again.
    """
    b, copies = s.reader.site, {x.name for x in plan.copies}
    if b.writes or not {s.writer.site.statement.name, c.statement.name} <= copies or (
            {s.writer.site.leaf.mechanism, c.leaf.mechanism} & {*ASYNCHRONOUS}):
        return ()
    source, wanted = c.statement.reads[0], b.statement.accesses[b.slot]
    known = plan.array_of.get(source.array)
    if known is None or known.role != "in" or wanted.array != source.array or not (wanted.affine and source.affine):
        return ()
    ours, theirs = c.leaf.places, b.leaf.places
    index = zip(source.index, wanted.index, strict=True)
    read = (Condition(((x.expr.substitute(ours, ranges(c.above)), "c", 1),), 0, x.equality) for x in c.statement.inside)
    return (*(equal(e.substitute(ours, ranges(c.above)), "c", f.substitute(theirs, ranges(b.above)), "b")
              for e, f in index if isinstance(e, Expr) and isinstance(f, Expr)), *read)


@lru_cache(maxsize=4096)
def _agreed(by: Link, c: Site) -> int:
    """How many outermost time loops all three share and writer and reader run in one iteration: so does what comes between."""
    shared = {x.id for x in common_loops(by.writer, by.reader)}
    both = [x for x, y in zip(common_loops(c, by.reader), common_loops(c, by.writer), strict=False) if x.id == y.id]
    agree = takewhile(lambda x: x.id in shared and by.facts.holds(equal(var(x.id), "a", var(x.id), "b")), both)
    return len(list(agree))
