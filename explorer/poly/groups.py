"""Groups of asynchronous copies: how many are committed before a point of the text, and how many have landed there.

A commit closes the group of the copies issued since the last one; ``wait(pending=n)`` returns when all but the `n`
youngest committed groups have landed (CUDA C++ Programming Guide, "Asynchronous Data Copies", and PTX
``cp.async.wait_group``).  Commits and waits run unconditionally in loops with integer boxes, so

- the number of commits before a point of the text is an *affine* function of the loops around it: a loop contributes
  its variable times the commits in one of its iterations;
- the last run of a wait before a point is at the same iterations, or one back in one loop and at the end of the inner
  ones: a few alternatives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..ir.expr import ZERO, Expr, const, var
from ..ir.tree import Kernel, Loop, Node, Sync, walk


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


