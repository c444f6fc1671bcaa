"""The loop tree: loops are integer boxes, leaves say where each statement instance runs.  All values are frozen.

A loop stores only its start, extent and role.  Triangles, skews, remainders and prologues are not stored: they
follow from a statement's domain intersected with the boxes.  Every node has an id given at birth that survives
rewriting (splitting ``k`` keeps ``k`` for the outer loop and makes ``k.i``); a loop's id is also its variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from .expr import Expr, Places, Ranges, var
from .hashing import cached_hash

BLOCK_ROLES = ("block.x", "block.y", "block.z")
THREAD_ROLES = ("thread.x", "thread.y", "thread.z")
WARP_ROLES = ("warp", "lane")
PLACE_ROLES = (*BLOCK_ROLES, *THREAD_ROLES, *WARP_ROLES)
TIME_ROLES = ("seq", "unroll", "vector", "tensor", "launch")
"""``launch``: an outermost loop that the host runs, one launch of its kernel for each iteration.  ``tensor``: one of
three loops whose iterations are one tensor instruction."""
ROLES = (*TIME_ROLES, *PLACE_ROLES)
JOINS = ("", "last_block", "grid", "handoff", "cluster")
"""How a kernel can follow the one before it: see :class:`Kernel`."""
WARP_SIZE = 32
"""Threads in a warp on every CUDA GPU (CUDA C++ Programming Guide, "SIMT architecture")."""
MOST_CLUSTER, PORTABLE_CLUSTER = 16, 8
"""Blocks of a cluster at most, and where it has to run on every GPU with clusters (the same, "Thread Block Clusters")."""


@cached_hash
@dataclass(frozen=True)
class View:
    """The storage an access really uses: `buffer` at `index`, over the variables of the leaf's enclosing loops.

    `element` (staged copies only) is the logical element, one for every iteration of the scope the copy was made
    for: the copy statement's instance that supplies the value.  It stays when `index` is folded onto fewer cells.
    `lane` (reads of registers only) is the lane of the warp whose register it is, where that is not the reader's own.
    """

    buffer: str
    index: tuple[Expr, ...]
    element: tuple[Expr, ...] = ()
    lane: Expr | None = None

    def substitute(self, values: Mapping[str, Expr], scope: Ranges) -> View:
        """The same storage, over other loops: wherever a loop is named."""
        return View(self.buffer, tuple(e.substitute(values, scope) for e in self.index),
                    tuple(e.substitute(values, scope) for e in self.element),
                    self.lane.substitute(values, scope) if self.lane is not None else None)


@cached_hash
@dataclass(frozen=True)
class Leaf:
    """A statement in the tree.

    Attributes
    ----------
    id : str
        Unique; the statement's name, with a suffix where a statement has several leaves (``S1.pro``).
    statement : str
    at : tuple of (str, Expr)
        Every statement dimension as an expression of the enclosing loops' variables.
    when : tuple of (str, Expr)
        The inverse: every enclosing loop's variable as an expression of the statement's dimensions.  The leaf runs
        the instances of the domain whose loop values lie in the loops' boxes.
    views : tuple of (int, View)
        Access slot (as in ``statement.accesses``; the target is ``len(reads)``) to the storage it uses instead.
    mechanism : str
        ``"plain"`` or ``"async"`` (cp.async: the write is visible after the wait for its group); for the updates of a
        sum in registers also ``"kahan"`` or ``"pairwise"`` (see :mod:`~explorer.ir.rounding`); the name of a tensor
        instruction (:mod:`~explorer.ir.instructions`) where the three innermost loops, over rows, columns and depth, are one.
    collect : tuple of (str, str)
        Bound loop to the way updates of one cell that differ in it are combined: ``"shuffle"`` (warp shuffles,
        shared memory across warps), ``"shared"`` (tree in shared memory), both over threads, every thread of the
        group gets the result; ``"atomic"`` over threads or blocks; ``"cluster"`` over blocks that are a cluster
        (distributed shared memory), of which the first one updates the target.
    sums : tuple of (Expr, Expr)
        Sums of the statement's dimensions that were one loop once (`coalesce`), with their values over the loops'
        variables: what makes one flat offset of the indices of an array that the loop ran through.
    multicast : tuple of str and int, or None
        Of a bulk copy: the axis of the grid (``"block.x"``) of which so many neighbours bring a part of the box each, to all.
    """

    id: str
    statement: str
    at: tuple[tuple[str, Expr], ...]
    when: tuple[tuple[str, Expr], ...] = ()
    views: tuple[tuple[int, View], ...] = ()
    mechanism: str = "plain"
    collect: tuple[tuple[str, str], ...] = ()
    sums: tuple[tuple[Expr, Expr], ...] = ()
    multicast: tuple[str, int] | None = None

    @cached_property
    def places(self) -> Places:
        """`at` to substitute with; an expression that is a loop's value by `when` becomes the loop's variable."""
        return Places(dict(self.at), {e: var(loop) for loop, e in self.when if any(not isinstance(a, str) for a, _ in e.terms)})

    def view(self, slot: int) -> View | None:
        """The storage that access `slot` uses, or None for the array itself."""
        return next((v for s, v in self.views if s == slot), None)


@dataclass(frozen=True)
class Sync:
    """A synchronisation that a schedule states itself (barriers are derived, not stored).

    Attributes
    ----------
    kind : str
        ``"commit"`` closes a group of asynchronous copies; ``"wait"`` blocks until at most `pending` groups are open;
        ``"wait_products"`` until at most `pending` products of the warpgroup are in flight.  Where a kernel has roles,
        ``"release"`` says that the consumers have read what they waited for so far, and ``"acquire"`` lets the producer wait
        until all but the last `pending` releases before it have happened.  Its warpgroups may take turns: ``"turn"`` waits until
        the one before has passed, ``"pass"`` lets the next one go on, round and round; with `pending` of 1 the first one does
        not wait, or the last one does not pass.
    """

    id: str
    kind: str
    pending: int = 0


@cached_hash
@dataclass(frozen=True)
class Loop:
    """``for id in start … start + extent``, run in order, unrolled, as vector lanes, or spread over places.

    Attributes
    ----------
    id : str
        Name and variable.
    extent : int
    body : tuple of Node
    role : str
        One of :data:`ROLES`.
    start : int
        First value (0 for every loop that a transformation makes).
    trimmed : bool
        In each block it ends with the last iteration in which something below it runs: see :mod:`~explorer.poly.ends`.
    """

    id: str
    extent: int
    body: tuple[Node, ...]
    role: str = "seq"
    start: int = 0
    trimmed: bool = False

    def around(self, body: tuple[Node, ...]) -> Loop:
        """The loop with another body; itself where that is its own."""
        return self if body is self.body else Loop(self.id, self.extent, body, self.role, self.start, self.trimmed)

    @property
    def range(self) -> tuple[int, int]:
        """Inclusive interval of the variable (empty loops give ``(start, start)``)."""
        return self.start, self.start + max(self.extent, 1) - 1

    @property
    def is_place(self) -> bool:
        """Whether its iterations are spread over blocks, warps, lanes or threads."""
        return self.role in PLACE_ROLES

    @property
    def is_block(self) -> bool:
        """Whether its iterations are spread over blocks."""
        return self.role in BLOCK_ROLES

    @property
    def is_thread(self) -> bool:
        """Whether its iterations are spread over the threads of a block."""
        return self.role in THREAD_ROLES or self.role in WARP_ROLES


JOINED = {
    "": "in a launch of its own", "last_block": "by the block that finishes last",
    "handoff": "by the block that waits for each part", "cluster": "by one block of the cluster that has the parts",
    "grid": "behind a barrier of the grid",
}
"""How a kernel follows the one before it (:attr:`Kernel.join`), in words."""


@cached_hash
@dataclass(frozen=True)
class Kernel:
    """One launch, or one phase of a launch: everything in `body` runs after the kernels before it have finished.

    Attributes
    ----------
    id : str
    body : tuple of Node
    join : str
        How it follows the kernel before it.  ``""``: as a launch of its own.  ``"grid"``: in the same launch, behind a
        barrier of the whole grid (a cooperative launch).  ``"last_block"``: in the same launch, each of its blocks run by
        the block that finishes last among those with its coordinates, along the axes that it binds.  ``"handoff"``: the
        same, but by the last block in order, which waits for the values that the others hand it one by one.  ``"cluster"``:
        the same, but those blocks are a cluster, and its last one goes on behind the cluster's barrier.
    resident : int
        Blocks that a multiprocessor should hold at least, which bounds a thread's registers; 0 leaves them to the compiler.
    registers : int
        Of a consumer's thread, where a producer gives some of its own away; 0 where all threads have as many.
    """

    id: str
    body: tuple[Node, ...]
    join: str = ""
    resident: int = 0
    registers: int = 0

    @cached_property
    def has_roles(self) -> bool:
        """Whether a warp beside the block's threads issues the bulk copies: see :mod:`~explorer.poly.roles`."""
        return any(isinstance(n, Sync) and n.kind in ("acquire", "release") for n in walk(self.body))

    @property
    def by_one(self) -> bool:
        """Whether one block alone runs it for all blocks of its launch that agree along the axes that it binds."""
        return self.join in ("last_block", "handoff", "cluster")


Node = Loop | Leaf | Sync
Root = tuple[Kernel, ...]


def walk(nodes: tuple[Node, ...]) -> Iterator[Node]:
    """All nodes, parents before children, in execution order."""
    waiting = list(reversed(nodes))  # a stack: generators within generators take the square of the depth
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, Loop):
            waiting += reversed(node.body)


def leaves(nodes: tuple[Node, ...], above: tuple[Loop, ...] = ()) -> Iterator[tuple[Leaf, tuple[Loop, ...]]]:
    """Every leaf with its enclosing loops, outermost first."""
    for node in nodes:
        if isinstance(node, Leaf):
            yield node, above
        elif isinstance(node, Loop):
            yield from leaves(node.body, (*above, node))


def find(nodes: tuple[Node, ...], node_id: str, above: tuple[Loop, ...] = ()) -> tuple[Node, tuple[Loop, ...]] | None:
    """The node with this id and its enclosing loops, or None."""
    for node in nodes:
        if node.id == node_id:
            return node, above
        if isinstance(node, Loop) and (hit := find(node.body, node_id, (*above, node))):
            return hit
    return None


def rewrite(nodes: tuple[Node, ...], node_id: str, change: Callable[[Node], tuple[Node, ...]]) -> tuple[Node, ...]:
    """Replace the node with this id by the nodes that `change` returns; what does not hold it stays the same value."""
    out: list[Node] = []
    for node in nodes:
        if node.id == node_id:
            out += change(node)
        elif isinstance(node, Loop):
            out.append(node.around(rewrite(node.body, node_id, change)))
        else:
            out.append(node)
    return kept(nodes, out)


def kept(nodes: tuple[Node, ...], made: Sequence[Node]) -> tuple[Node, ...]:
    """Nodes that were made of others; these themselves where each is still there: equal values that are one are found fast."""
    return nodes if len(nodes) == len(made) and all(a is b for a, b in zip(nodes, made, strict=True)) else tuple(made)


def map_leaves(nodes: tuple[Node, ...], change: Callable[[Leaf], Leaf]) -> tuple[Node, ...]:
    """Apply `change` to every leaf."""
    return kept(nodes, [change(n) if isinstance(n, Leaf) else n.around(map_leaves(n.body, change)) if isinstance(n, Loop) else n
                        for n in nodes])


def ranges(loops: tuple[Loop, ...]) -> Ranges:
    """Intervals of the loops' variables."""
    return {loop.id: loop.range for loop in loops}


def retime(nodes: tuple[Node, ...], forward: Mapping[str, Expr], backward: Mapping[str, Expr], scope: Ranges) -> tuple[Node, ...]:
    """Replace loop variables in all leaves below, both ways.

    Parameters
    ----------
    nodes : tuple of Node
        The new subtree (its loops already carry the new variables).
    forward : mapping
        Old variable to an expression of new variables (used in places and views).
    backward : mapping
        New variable to an expression of old variables (used in `Leaf.when`).  Old variables that are no longer
        loops must be keys of `forward` and not of `backward`.
    scope : Ranges
        Intervals of the enclosing loops' variables, new ones included.

    Notes
    -----
    Splitting ``k`` by 4: ``forward = {k: 4*k + k.i}``, ``backward = {k: k // 4, k.i: k % 4}``.
    """
    out: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            out.append(node.around(retime(node.body, forward, backward, {**scope, node.id: node.range})))
        elif isinstance(node, Leaf):
            at = tuple((dim, e.substitute(forward, scope)) for dim, e in node.at)
            views = tuple((slot, v.substitute(forward, scope)) for slot, v in node.views)
            old = dict(node.when)
            kept = {name: e for name, e in old.items() if name not in forward}
            new = {name: e.substitute(old) for name, e in backward.items()}
            sums = tuple((e, value.substitute(forward, scope)) for e, value in node.sums)
            out.append(replace(node, at=at, views=views, when=tuple(sorted({**kept, **new}.items())), sums=sums))
        else:
            out.append(node)
    return tuple(out)
