"""Asynchronous copies: is every cell that is read covered by a wait, group by group?

A commit closes the group of the copies issued since the last one; ``wait(pending=n)`` returns when all but the `n`
youngest committed groups have landed (CUDA C++ Programming Guide, "Asynchronous Data Copies", and PTX
``cp.async.wait_group``).  Commits and waits run unconditionally in loops with integer boxes, so

- the number of commits before a point of the text is an *affine* function of the loops around it: a loop contributes
  its variable times the commits in one of its iterations;
- the last run of a wait before a point is at the same iterations, or one back in one loop and at the end of the inner
  ones: a few alternatives.

Whether some read comes before its copy has landed is thus an exact question, without enumeration: is there a pair
(copy, reader) whose group is younger than what every wait before the reader has let through?
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ..ir.expr import ZERO, Expr, const, var
from ..ir.finding import Finding
from ..ir.plan import Plan
from ..ir.tree import Kernel, Loop, Node, Sync, walk
from .events import Event, either, events, witness
from .flow_text import cell_text, element, instance
from .linear import at_most, less
from .plan_facts import plan_copy
from .sites import Site
from .supply import Link, link


@dataclass(frozen=True)
class Landing:
    """One alternative for the last run of a wait before a read.

    Attributes
    ----------
    when : tuple of Expr
        The alternative exists where all of these are at least 0 (over the reader's loops).
    landed : Expr
        How many groups, the oldest ones, have landed.
    """

    when: tuple[Expr, ...]
    landed: Expr


def check_async(plan: Plan) -> tuple[Finding, ...]:
    """Whether every read of an asynchronously copied cell comes after a wait that covers the copy's group.

    Parameters
    ----------
    plan : Plan
        A plan that passes *cover* and *flow*.

    Returns
    -------
    tuple of Finding
        One for each pair of copy leaf and reading access that fails, with the smallest pair of instances.
    """
    everything = events(plan)
    copies = [e for e in everything if e.site.writes and e.site.leaf.mechanism == "async"]
    if not copies:
        return ()
    out = []
    for c in copies:
        if c.site.space != "shared":
            out.append(_not_shared(c.site))
        for reader in everything:
            site = reader.site
            view = site.leaf.view(site.slot)
            if site.writes or view is None or not view.element or plan_copy(plan, view.buffer) != c.site.statement.name:
                continue
            if finding := _check_pair(plan.kernels[reader.launch], c, reader):
                out.append(finding)
    return tuple(out)


def _not_shared(site: Site) -> Finding:
    return Finding("flow", f"{site.leaf.id} copies asynchronously into {site.storage}, which is not in shared memory",
                   "cp.async writes shared memory only", site.statement.reads[0].array if site.statement.reads else "",
                   nodes=(site.leaf.id,), hints=("copy plainly, or stage in shared memory",))


def _check_pair(kernel: Kernel, copy: Event, reader: Event) -> Finding | None:
    a, b = copy.site, reader.site
    if copy.launch != reader.launch:
        return None
    by = link(None, a, b)
    if by is None:
        return None
    path = path_to(kernel, a.leaf.id)
    group = commits_before(kernel, path)
    early = _not_landed(by, group, tuple(landings(kernel, b.leaf.id)))
    return _finding(kernel, a, b, *early) if early else None


@lru_cache(maxsize=2048)
def _not_landed(by: Link, group: Expr, alternatives: tuple[Landing, ...]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The smallest pair whose group no wait has let through: group number at or beyond what has landed."""
    a, b, failing = by.writer, by.reader, by.pairs
    for w in alternatives:
        absent = [(at_most(e, "b", -1),) for e in w.when]
        failing = failing.intersect(either(a, b, (*absent, (less(w.landed, "b", group, "a", 0),))))
    return None if failing.is_empty() else witness(failing, a, b)


def _finding(kernel: Kernel, a: Site, b: Site, first: tuple[int, ...], last: tuple[int, ...]) -> Finding:
    source, sink = instance(a, first), instance(b, last)
    waits = [n for n in walk(kernel.body) if isinstance(n, Sync) and n.kind == "wait"]
    why = f"{source} copies {cell_text(b, last)} asynchronously, and no wait before {sink} covers its group"
    hints: tuple[str, ...] = ("a commit after the copies and a wait before the reads",)
    if waits and (fewer := [w for w in waits if w.pending > 0]):
        hints = tuple(f"{w.id} with at most {w.pending - 1} pending groups instead of {w.pending}" for w in fewer)
    array, lines = b.statement.accesses[b.slot].array, tuple(sorted({s.statement.line for s in (a, b) if s.statement.line}))
    return Finding("flow", f"{sink} may read {cell_text(b, last)} before it has landed", why, array, element(b, last), "flow",
                   source, sink, (a.leaf.id, b.leaf.id, *(w.id for w in waits)), lines, hints)


# -- counting commits and waits ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """A level of the way from a kernel to a node: the loop whose body it is (None: the kernel), and the child taken."""

    loop: Loop | None
    body: tuple[Node, ...]
    index: int


def path_to(kernel: Kernel, node_id: str) -> tuple[Step, ...]:
    """The bodies from the kernel down to the node."""
    def search(loop: Loop | None, body: tuple[Node, ...]) -> tuple[Step, ...] | None:
        for index, node in enumerate(body):
            if node.id == node_id:
                return (Step(loop, body, index),)
            if isinstance(node, Loop) and (below := search(node, node.body)) is not None:
                return (Step(loop, body, index), *below)
        return None

    found = search(None, kernel.body)
    assert found is not None, node_id
    return found


def commits_in(nodes: tuple[Node, ...]) -> int:
    """Commits that one thread runs in these nodes; a place loop is one iteration for each thread."""
    total = 0
    for node in nodes:
        if isinstance(node, Sync) and node.kind == "commit":
            total += 1
        elif isinstance(node, Loop):
            total += (1 if node.is_place else node.extent) * commits_in(node.body)
    return total


def commits_before(kernel: Kernel, path: tuple[Step, ...]) -> Expr:
    """How many commits run before the node at the end of the path, over the variables of the loops on it."""
    total = ZERO
    for step in path:
        loop = step.loop
        if loop is not None and not loop.is_place and loop.role != "launch":
            total = total + (var(loop.id) - loop.start) * commits_in(loop.body)
        total = total + commits_in(step.body[: step.index])
    return total


def landings(kernel: Kernel, reader: str) -> Iterator[Landing]:
    """All alternatives for the last run of each wait before a leaf."""
    path = path_to(kernel, reader)
    for node in walk(kernel.body):
        if isinstance(node, Sync) and node.kind == "wait":
            yield from _last_runs(kernel, path, path_to(kernel, node.id), node.pending)


def _last_runs(kernel: Kernel, reader: tuple[Step, ...], wait: tuple[Step, ...], pending: int) -> Iterator[Landing]:
    """The wait's runs: earlier in the same iterations, or one back in each common loop."""
    if any(s.loop is not None and s.loop.extent < 1 for s in wait):
        return
    common = 0
    while common < min(len(reader), len(wait)) - 1 and reader[common].index == wait[common].index:
        common += 1
    total = commits_before(kernel, wait) - pending
    inner = {s.loop.id: const(s.loop.start + s.loop.extent - 1) for s in wait[common + 1:] if s.loop}
    if reader[common].index > wait[common].index:
        yield Landing((), total.substitute(inner))
    for depth in range(common, 0, -1):
        loop = wait[depth].loop
        assert loop is not None
        if loop.is_place or loop.role == "launch" or loop.extent < 2:
            continue
        ends = {s.loop.id: const(s.loop.start + s.loop.extent - 1) for s in wait[depth + 1:] if s.loop}
        landed = total.substitute({**ends, loop.id: var(loop.id) - 1})
        yield Landing((var(loop.id) - loop.start - 1,), landed)


