"""Asynchronous copies: is every cell that is read covered by a wait, group by group?

Groups and waits are affine in the loops (:mod:`~explorer.poly.groups`), so this is an exact question: is there a pair
(copy, reader) whose group is younger than what every wait before the reader has let through?  The same is asked of every
later write of a cell that a copy writes or reads: until its group has landed it may still do either.

What a copy reads for nobody may be any value.  Two writes of one cell are refused whoever reads it: copies have no order among
each other, and two into one place are undefined behaviour (PTX ISA, ``cp.async.commit_group``), as any race of two writes is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

import islpy as isl

from ..ir.expr import Expr, var
from ..ir.finding import Finding
from ..ir.plan import Plan
from ..ir.tree import Kernel, Leaf, Sync, walk
from .decide import OPEN, Maybe, Question, decide
from .deduce import Facts, deduce
from .events import Event, common_loops, earlier, either, events, same_cell, witness
from .feasible import feasible
from .flow_text import cell_text, element, instance
from .groups import Landing, closed_before, landings, path_to
from .last_writer import Link, link, loop_ranges
from .linear import Case, Cases, at_least, at_most, equal, less
from .mechanism import ASYNCHRONOUS, misjudged
from .plan_facts import plan_copy
from .pure_load import Never
from .sites import Site


def check_async(plan: Plan) -> tuple[Finding, ...]:
    """Whether every asynchronous copy can be one, and has landed before its cells are read, or written again.

    Parameters
    ----------
    plan : Plan
        A plan that passes *cover* and *flow*.

    Returns
    -------
    tuple of Finding
        One for each leaf that cannot copy asynchronously; else one for each pair of copy leaf and later access that fails, with
        the smallest pair of instances.
    """
    everything = events(plan)
    copies = [e for e in everything if e.site.leaf.mechanism in ASYNCHRONOUS]
    if not copies:
        return ()
    if ahead := tuple(_for_ever(n) for k in plan.kernels for n in walk(k.body) if isinstance(n, Sync) and n.pending < 0):
        return ahead
    if plain := tuple(_plain(plan, leaf, why) for leaf, why in misjudged(plan)):
        return plain
    pairs = [(c, other) for c in copies for other in everything if c.launch == other.launch]
    kernels = plan.kernels
    reads = (_check_pair(kernels[c.launch], c, o) for c, o in pairs if c.site.writes and _reads_copy(plan, c, o))
    if early := tuple(filter(None, reads)):
        return early
    again = (_check_rewrite(plan, everything, c, o) for c, o in pairs if o.site.writes and c.site.cells == o.site.cells
             and not (o.site.leaf.mechanism == "bulk" and kernels[o.launch].has_roles))  # the producer waits for nothing: `roles`
    return tuple(filter(None, again))


def _plain(plan: Plan, leaf: Leaf, why: Never) -> Finding:
    array = plan.statement_of[leaf.statement].reads
    how, other = ("in bulk", "") if leaf.mechanism == "bulk" else ("asynchronously", "pipeline with asynchronous=False")
    return Finding("flow", f"{leaf.id} copies {how} and cannot: {why.what}", why.why, array[0].array if array else "",
                   nodes=(leaf.id,), hints=tuple(filter(None, (why.hint, other))))


def _for_ever(wait: Sync) -> Finding:
    """A wait for a group, or a release, that only comes behind it: nobody would go on."""
    what = "release" if wait.kind == "acquire" else "group"
    return Finding("flow", f"{wait.id} waits for a {what} that comes {-wait.pending} behind it: it would wait for ever",
                   "whoever waits goes on when the work before the wait is done, and not otherwise", nodes=(wait.id,),
                   hints=("copies that are further ahead, or a smaller release distance",))


def _reads_copy(plan: Plan, copy: Event, other: Event) -> bool:
    """Whether the access reads what the copy has brought."""
    view = other.site.leaf.view(other.site.slot)
    if other.site.writes or view is None or not view.element:
        return False
    return plan_copy(plan, view.buffer) == copy.site.statement.name


def _check_pair(kernel: Kernel, copy: Event, reader: Event) -> Finding | None:
    a, b = copy.site, reader.site
    by = link(None, a, b)
    if by is None:
        return None
    path = path_to(kernel, a.leaf.id)
    group = closed_before(path)
    early = decide(_NotLanded(by, group, landings(kernel, b.leaf.id)))
    return _finding(kernel, a, b, *early) if early else None


def _check_rewrite(plan: Plan, everything: tuple[Event, ...], copy: Event, other: Event) -> Finding | None:
    """A later write of a cell that the copy may not have read, or written, yet; of those that read, where the value is used."""
    kernel, a, b = plan.kernels[copy.launch], copy.site, other.site
    group, after = closed_before(path_to(kernel, a.leaf.id)), earlier(copy, other, "a", "b")
    question = StillOpen(a, b, after, group, landings(kernel, b.leaf.id))
    early = decide(question)
    if early and not a.writes:
        early = decide(replace(question, used=_used(plan, everything, copy.site.leaf.id)))
    if not early:
        return None
    what = "writes" if a.writes else "reads"
    source, sink = instance(a, early[0]), instance(b, early[1])
    return _late(kernel, a, b, *early, f"{sink} may write {cell_text(b, early[1])} before {source} has landed",
                 f"{source} {what} that cell asynchronously, and no wait before {sink} covers its group")


Points = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Use:
    """Readers of a copy; where they are copies themselves, what those supply (None: they are statements of the program)."""

    link: Link
    onwards: tuple[Use, ...] | None = None

    def copies(self) -> isl.Set:
        """The instances of the copy whose values reach a statement of the program."""
        pairs = self.link.pairs
        if self.onwards is None:
            return pairs.domain()
        reached = _reaching(self.onwards, pairs.range().subtract(pairs.range()))
        return pairs.intersect_range(reached.set_tuple_name(pairs.get_tuple_name(isl.dim_type.out))).domain()


def _reaching(uses: tuple[Use, ...], nobody: isl.Set) -> isl.Set:
    """Instances of a copy that one of these uses reads."""
    name = nobody.get_tuple_name()
    return reduce(isl.Set.union, (use.copies().set_tuple_name(name) for use in uses), nobody)


def _used(plan: Plan, everything: tuple[Event, ...], copy: str) -> tuple[Use, ...]:
    """What a leaf that copies supplies, to a statement of the program or to a copy that itself supplies one."""
    own = next(e for e in everything if e.site.leaf.id == copy and e.site.writes)
    copies = {x.name for x in plan.copies}
    found: list[Use] = []
    for reader in everything:
        if reader.launch != own.launch or not _reads_copy(plan, own, reader):
            continue
        by, copied = link(None, own.site, reader.site), reader.site.statement.name in copies
        if by is not None:
            found.append(Use(by, _used(plan, everything, reader.site.leaf.id) if copied else None))
    return tuple(found)


@dataclass(frozen=True)
class _NotLanded(Question["Points | None"]):
    """The smallest pair of a supply by a copy of a group that no wait has let through, or None."""

    by: Link
    group: Expr
    alternatives: tuple[Landing, ...]

    def by_intervals(self) -> Maybe[Points | None]:
        return None if _let_through(self.by.facts, self.group, self.alternatives) else OPEN

    def by_isl(self) -> Points | None:
        return _open_pair(self.by.writer, self.by.reader, self.by.pairs, self.group, self.alternatives)


@dataclass(frozen=True)
class StillOpen(Question["Points | None"]):
    """The smallest pair of a copy and a later access of one of its cells, in one block, whose group no wait has let through.

    Where it is said what is `used`, of copies that supply somebody.
    """

    a: Site
    b: Site
    after: Cases
    group: Expr
    alternatives: tuple[Landing, ...]
    used: tuple[Use, ...] | None = None

    @property
    def _same(self) -> Case:
        a, b = self.a, self.b
        blocks = [(e, f) for e, f in zip(a.place[:3], b.place[:3], strict=True) if e is not None and f is not None]
        launches = [(var(x.id), var(x.id)) for x in common_loops(a, b) if x.role == "launch"]  # all have landed where one ends
        alike = [(e, f) for e, f in (*same_cell(a, b), *blocks) if not (e == f and e.is_constant)]
        return tuple(equal(e, "a", f, "b") for e, f in (*alike, *launches))

    def by_intervals(self) -> Maybe[Points | None]:  # noqa: D102
        facts = deduce(self._same, loop_ranges(self.a, "a") | loop_ranges(self.b, "b"))
        ways = [facts and facts.given(case) for case in self.after]
        return None if all(way is None or _let_through(way, self.group, self.alternatives) for way in ways) else OPEN

    def by_isl(self) -> Points | None:  # noqa: D102
        a, b = self.a, self.b
        held = (*a.conditions("a"), *b.conditions("b"), *self._same)
        if not (cases := tuple((*held, *case) for case in self.after if feasible((a.names("a"), b.names("b")), (*held, *case)))):
            return None
        pairs = either(a, b, cases)
        if self.used is not None:
            pairs = pairs.intersect_domain(_reaching(self.used, pairs.domain().subtract(pairs.domain())))
        return _open_pair(a, b, pairs, self.group, self.alternatives)


def _let_through(facts: Facts, group: Expr, alternatives: tuple[Landing, ...]) -> bool:
    """Whether one wait surely has run, and let the group through."""
    return any(facts.holds(less(group, "a", w.landed, "b")) and all(facts.holds(at_least(e, "b", 0)) for e in w.when)
               for w in alternatives)


def _open_pair(a: Site, b: Site, failing: isl.Map, group: Expr, alternatives: tuple[Landing, ...]) -> Points | None:
    """The smallest of these pairs with a group number at or beyond what has landed."""
    for w in alternatives:
        absent = [(at_most(e, "b", -1),) for e in w.when]
        failing = failing.intersect(either(a, b, (*absent, (less(w.landed, "b", group, "a", 0),))))
    return None if failing.is_empty() else witness(failing, a, b)


def _finding(kernel: Kernel, a: Site, b: Site, first: tuple[int, ...], last: tuple[int, ...]) -> Finding:
    source, sink = instance(a, first), instance(b, last)
    return _late(kernel, a, b, first, last, f"{sink} may read {cell_text(b, last)} before it has landed",
                 f"{source} copies {cell_text(b, last)} asynchronously, and no wait before {sink} covers its group")


def _late(kernel: Kernel, a: Site, b: Site, first: tuple[int, ...], last: tuple[int, ...], what: str, why: str) -> Finding:
    source, sink = instance(a, first), instance(b, last)
    waits = [n for n in walk(kernel.body) if isinstance(n, Sync) and n.kind == "wait"]
    hints: tuple[str, ...] = ("a commit after the copies and a wait before the reads",)
    if waits and (fewer := [w for w in waits if w.pending > 0]):
        hints = tuple(f"{w.id} with at most {w.pending - 1} pending groups instead of {w.pending}" for w in fewer)
    array, lines = b.statement.accesses[b.slot].array, tuple(sorted({s.statement.line for s in (a, b) if s.statement.line}))
    kind = "output" if a.writes and b.writes else "flow" if a.writes else "anti"
    nodes = (a.leaf.id, b.leaf.id, *(w.id for w in waits))
    return Finding("flow", what, why, array, element(b, last), kind, source, sink, nodes, lines, hints)
