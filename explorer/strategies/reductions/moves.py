"""What the moves of reductions are made of: loops taken together and apart, temporaries put where they belong."""

from __future__ import annotations

from ...ir.tree import Leaf, Loop, Node, walk
from .._steps import Builder
from .form import ReductionForm


def flat(b: Builder, loops: tuple[str, ...]) -> str:
    """One loop of several; "" of none."""
    if len(loops) > 1:
        b.do("coalesce", loops)
    return loops[0] if loops else ""


def split(b: Builder, loop: str, size: int, suffix: str) -> str:
    """An inner loop of so many iterations; "" where it would be one."""
    if size <= 1 or not loop:
        return ""
    name = b.plan.fresh(f"{loop}.{suffix}")
    b.do("split", loop, size, inner=name)
    return name


def in_order(b: Builder, loops: list[str]) -> None:
    """Reorder a perfect nest, unless it stands in that order."""
    wanted = tuple(x for x in loops if x)
    if len(wanted) > 1:
        b.attempt("reorder", wanted)


def innermost(b: Builder, lanes: str, walk: list[str]) -> str:
    """The lanes of a vector inside of the loops that walk the reduced axes, apart from what starts and ends there; their loop."""
    if not lanes:
        return ""
    r = walk[0]
    b.do("distribute", lanes, after=_before(b, r))
    lanes = b.parent(r)
    if b.plan.loops[lanes].body[-1].id != r:
        b.do("distribute", lanes, after=r)
    in_order(b, [*walk, lanes])
    return lanes


def _before(b: Builder, loop: str) -> str:
    """The node that stands before a loop in its body: the last of the starts."""
    body = b.plan.loops[b.parent(loop)].body
    return body[next(n for n, node in enumerate(body) if node.id == loop) - 1].id


def apart(b: Builder, form: ReductionForm, part: str, around: list[str], first: bool) -> None:
    """Parts, each of some iterations of a loop, in a launch of their own and each accumulated on its own.

    They are the first axis of the partial results, so that neighbouring results stay neighbours, or the last.
    """
    known = {a.name for a in b.plan.program.arrays}
    for update in form.updates:
        b.do("rfactor", update, part, axes=(0,) if first else ())
    for start in form.starts:
        b.do("sequence", start, after=part)
    partial = [a.name for a in b.plan.program.arrays if a.name not in known]
    for loop in around:
        b.do("distribute", loop, after=part)
    b.do("launch", form.kernel, after=around[-1] if around else part)
    for array in partial:
        b.do("accumulate", array)


def finish(b: Builder, kernel: str, lanes: str, *written: str) -> None:
    """Temporaries into registers, wide accesses, loads written out."""
    contract(b, kernel)
    if lanes:
        b.attempt("vectorize", lanes)
        write_wide(b, kernel, b.extent(lanes))
    for loop in written:
        if loop:
            b.do("unroll", loop)


def write_wide(b: Builder, kernel: str, width: int) -> None:
    """As many results at once, in the innermost loops of a kernel that run so often and only write memory."""

    def writes(node: Node) -> bool:
        return isinstance(node, Leaf) and not node.collect and not node.view(len(b.plan.statement_of[node.statement].reads))

    loops = [n for n in walk(next(k.body for k in b.plan.kernels if k.id == kernel)) if isinstance(n, Loop)]
    for loop in [n.id for n in loops if n.role == "seq" and n.extent == width and all(map(writes, n.body))]:
        b.attempt("vectorize", loop)


def contract(b: Builder, kernel: str) -> None:
    """The temporaries of a kernel that have no storage yet into registers, where that is legal."""
    used: dict[str, set[str]] = {}
    for leaf, _, owner in b.plan.leaves:
        for access in b.plan.statement_of[leaf.statement].accesses:
            used.setdefault(access.array, set()).add(owner.id)
    for temporary in list(b.plan.program.temporaries):
        if temporary.name not in b.plan.buffer_of and used.get(temporary.name) == {kernel}:
            b.attempt("contract", temporary.name, "register")
