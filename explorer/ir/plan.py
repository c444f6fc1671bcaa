"""A plan: which instance of which statement runs where, when, and in which storage.  A schedule is a plan and its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import prod

from .dtype import DType
from .expr import var
from .hashing import cached_hash
from .program import Array, Program, Statement
from .tree import (
    BLOCK_ROLES,
    PLACE_ROLES,
    WARP_ROLES,
    WARP_SIZE,
    Kernel,
    Leaf,
    Loop,
    Node,
    find,
    leaves,
    map_leaves,
    rewrite,
    walk,
)


@dataclass(frozen=True)
class Buffer:
    """Storage that a schedule gives to an array or to a staged copy.

    Attributes
    ----------
    name : str
    dtype : DType
    shape : tuple of int
        Extents in elements, without padding.
    space : str
        ``"register"`` (per thread), ``"shared"`` (per block) or ``"global"`` (one, a workspace).
    pad : int
        Unused elements after each row (the last dimension), against bank conflicts.
    scope : str
        Id of the loop in whose body it lives, ``""`` for the whole kernel.
    panel : int
        Columns of a panel: panels of all rows follow each other, and a panel's rows are contiguous; 0 for one panel.  It
        divides the last extent.  Shared memory alone.
    swizzle : int
        Bytes of a row of the swizzle pattern, 32, 64 or 128: units of 16 bytes change places within such a row, so that a column
        of them lies in different banks (:mod:`~explorer.ir.swizzle`); 0 for none.  Shared memory alone.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    space: str
    pad: int = 0
    scope: str = ""
    panel: int = 0
    swizzle: int = 0

    @property
    def padded_shape(self) -> tuple[int, ...]:
        """Extents in elements, with padding."""
        return (*self.shape[:-1], self.shape[-1] + self.pad) if self.shape else ()

    @property
    def size(self) -> int:
        """Elements, padding included."""
        return prod(self.padded_shape)

    @property
    def nbytes(self) -> int:
        """Bytes, padding included."""
        return self.size * self.dtype.bytes

    @property
    def is_placed(self) -> bool:
        """Whether its elements lie in panels or swizzled, not row after row."""
        return self.space == "shared" and bool(self.panel or self.swizzle)


@cached_hash
@dataclass(frozen=True)
class Plan:
    """Everything a schedule decided, without its history.

    Attributes
    ----------
    program : Program
        The algorithm that runs: the user's, or one that `rfactor` rewrote by associativity.
    kernels : tuple of Kernel
        The launches, in order.
    copies : tuple of Statement
        Statements that staging added.  Copy ``C[z]`` writes the logical element ``z`` of an array of the same
        name: one for every iteration of its scope, so copies depend on each other through storage only.
    copied : tuple of Array
        The logical arrays of the copies.
    buffers : tuple of Buffer
        Storage of contracted temporaries and of copies, found by the views of the leaves.  An array without a view
        uses its own global memory (a temporary: a workspace of its full shape).
    """

    program: Program
    kernels: tuple[Kernel, ...]
    copies: tuple[Statement, ...] = ()
    copied: tuple[Array, ...] = ()
    buffers: tuple[Buffer, ...] = ()

    @cached_property
    def statement_of(self) -> dict[str, Statement]:
        """Every statement by name: the program's and the copies."""
        return {s.name: s for s in (*self.program.statements, *self.copies)}

    @cached_property
    def array_of(self) -> dict[str, Array]:
        """Every array by name: the program's and the logical arrays of copies."""
        return {a.name: a for a in (*self.program.arrays, *self.copied)}

    @cached_property
    def buffer_of(self) -> dict[str, Buffer]:
        """Every buffer by name."""
        return {b.name: b for b in self.buffers}

    @cached_property
    def leaves(self) -> tuple[tuple[Leaf, tuple[Loop, ...], Kernel], ...]:
        """Every leaf with its enclosing loops (outermost first) and its kernel, in order."""
        return tuple((leaf, above, k) for k in self.kernels for leaf, above in leaves(k.body))

    @cached_property
    def loops(self) -> dict[str, Loop]:
        """Every loop by id."""
        return {n.id: n for k in self.kernels for n in walk(k.body) if isinstance(n, Loop)}

    @cached_property
    def ids(self) -> frozenset[str]:
        """Ids of all kernels and nodes."""
        return frozenset([k.id for k in self.kernels] + [n.id for k in self.kernels for n in walk(k.body)])

    @cached_property
    def launched(self) -> tuple[tuple[Kernel, ...], ...]:
        """The kernels by launch: one that is joined runs in the launch of the kernel before it."""
        groups: list[list[Kernel]] = []
        for kernel in self.kernels:
            if groups and kernel.join:
                groups[-1].append(kernel)
            else:
                groups.append([kernel])
        return tuple(tuple(g) for g in groups)

    @cached_property
    def extents(self) -> dict[str, tuple[int, int, int, int, int, int]]:
        """For each kernel by id, how many blocks (x, y, z) and threads (x, y, z) run it.

        Those of its launch, the largest of its phases' (whole warps, where one of them binds warps or lanes); but a kernel
        joined by ``last_block``, ``handoff`` or ``cluster`` has one block along each axis of the grid that it is not spread over.
        """
        out: dict[str, tuple[int, int, int, int, int, int]] = {}
        for group in self.launched:
            grid = tuple(map(max, zip(*map(grid_extents, group), strict=True)))
            x, y, z = map(max, zip(*map(block_extents, group), strict=True))
            block = _whole_warps(x) if any(map(_binds_lanes, group)) else x, y, z
            for position, kernel in enumerate(group):
                alone = kernel.by_one and position > 0
                across, down, deep = (n if own > 1 or not alone else 1 for n, own in zip(grid, grid_extents(kernel), strict=True))
                out[kernel.id] = (across, down, deep, *block)
        return out

    def joined_axes(self, kernel: Kernel) -> tuple[int, ...]:
        """Axes of the grid (0, 1, 2) along which a kernel that joins another has several blocks, each for parts of its own."""
        return tuple(axis for axis in range(3) if self.extents[kernel.id][axis] > 1)

    @cached_property
    def handed_off(self) -> dict[tuple[str, str], str]:
        """What a kernel joined by ``handoff`` reads of the kernel before it: ``("array" or "buffer", name)`` to that kernel."""
        out: dict[tuple[str, str], str] = {}
        for group in self.launched:
            for before, kernel in pairwise(group):
                if kernel.join == "handoff":
                    written = {key for key, slot, n in self._used(before) if slot == n}
                    out |= dict.fromkeys((key for key, slot, n in self._used(kernel) if slot < n and key in written), kernel.id)
        return out

    def _used(self, kernel: Kernel) -> Iterator[tuple[tuple[str, str], int, int]]:
        """Global storage that a kernel's leaves use, with the access's slot and how many reads its statement has."""
        for leaf, _ in leaves(kernel.body):
            statement = self.statement_of[leaf.statement]
            for slot, access in enumerate(statement.accesses):
                view = leaf.view(slot)
                if view is None or self.buffer_of[view.buffer].space == "global":
                    yield ("buffer", view.buffer) if view else ("array", access.array), slot, len(statement.reads)

    @cached_property
    def clusters(self) -> dict[str, tuple[int, int, int]]:
        """For each kernel by id, the blocks (x, y, z) of a cluster: as many as share copies along an axis of the grid, and all of
        them along the axes that are combined or joined so.
        """
        out: dict[str, tuple[int, int, int]] = {}
        for group in self.launched:
            mates = dict(sorted(leaf.multicast for leaf, _, k in self.leaves if k in group and leaf.multicast))
            roles = {loop.role for leaf, above, k in self.leaves if k in group
                     for loop in above if dict(leaf.collect).get(loop.id) == "cluster"}
            for kernel in group[1:]:
                if kernel.join == "cluster":
                    roles |= {role for axis, role in enumerate(BLOCK_ROLES) if axis not in self.joined_axes(kernel)}
            for kernel in group:
                grid = self.extents[group[0].id][:3]
                x, y, z = (n if role in roles else mates.get(role, 1) for n, role in zip(grid, BLOCK_ROLES, strict=True))
                out[kernel.id] = x, y, z
        return out

    def kernel_of(self, node_id: str) -> Kernel | None:
        """The kernel with this id, or the one that holds the node."""
        return next((k for k in self.kernels if k.id == node_id or find(k.body, node_id)), None)

    def find(self, node_id: str) -> tuple[Node, tuple[Loop, ...]] | None:
        """The node with this id and its enclosing loops, outermost first, or None."""
        return next((hit for k in self.kernels if (hit := find(k.body, node_id))), None)

    def replace_node(self, node_id: str, *nodes: Node) -> Plan:
        """The plan with one node replaced by others (none: removed)."""
        return self.map_bodies(lambda body: rewrite(body, node_id, lambda _: nodes))

    def map_bodies(self, change: Callable[[tuple[Node, ...]], tuple[Node, ...]]) -> Plan:
        """Apply `change` to the body of every kernel."""
        made = ((k, change(k.body)) for k in self.kernels)
        return replace(self, kernels=tuple(k if body is k.body else replace(k, body=body) for k, body in made))

    def map_leaves(self, change: Callable[[Leaf], Leaf]) -> Plan:
        """Apply `change` to every leaf."""
        return self.map_bodies(lambda body: map_leaves(body, change))

    def fresh(self, name: str, taken: frozenset[str] = frozenset()) -> str:
        """`name`, or the first of ``name_2``, ``name_3`` … that no node, statement, array or buffer has."""
        used = self.ids | taken | self.statement_of.keys() | self.array_of.keys() | self.buffer_of.keys()
        return name if name not in used else next(n for i in range(2, 10**9) if (n := f"{name}_{i}") not in used)

    def resolve(self, name: str) -> tuple[Leaf, tuple[Loop, ...], Kernel] | None:
        """The leaf named by its id or statement, or the one that updates (else writes) an array of that name."""
        for said in ([e[0].id for e in self.leaves], [e[0].statement for e in self.leaves]):
            if name in said:
                return self.leaves[said.index(name)]
        writers = [e for e in self.leaves if self.statement_of[e[0].statement].target.array == name]
        updates = [e for e in writers if self.statement_of[e[0].statement].update]
        return next(iter(updates or writers), None)


def block_extents(kernel: Kernel) -> tuple[int, int, int]:
    """Threads per block (x, y, z): the largest extent bound to each; ``warp`` and ``lane`` make up x, in whole warps.

    Lanes are combined by shuffles and in scratch arrays of whole warps: a warp that lacks some has nobody to bring their parts.
    """
    size = {role: 1 for role in PLACE_ROLES}
    for node in walk(kernel.body):
        if isinstance(node, Loop) and node.role in size:
            size[node.role] = max(size[node.role], node.start + node.extent)
    x = _whole_warps(max(size["thread.x"], WARP_SIZE * size["warp"])) if _binds_lanes(kernel) else size["thread.x"]
    return x, size["thread.y"], size["thread.z"]


def _binds_lanes(kernel: Kernel) -> bool:
    """Whether a loop of the kernel runs over warps or lanes."""
    return any(isinstance(n, Loop) and n.role in WARP_ROLES for n in walk(kernel.body))


def _whole_warps(threads: int) -> int:
    return -(-threads // WARP_SIZE) * WARP_SIZE


def grid_extents(kernel: Kernel) -> tuple[int, int, int]:
    """Blocks in the grid (x, y, z): the largest extent bound to each."""
    size = {"block.x": 1, "block.y": 1, "block.z": 1}
    for node in walk(kernel.body):
        if isinstance(node, Loop) and node.role in size:
            size[node.role] = max(size[node.role], node.start + node.extent)
    return size["block.x"], size["block.y"], size["block.z"]


def initial(program: Program) -> Plan:
    """The plan that runs the program as written: one kernel, one thread."""
    identity = map_when(program.body)
    return Plan(program, (Kernel(program.name, identity),))


def map_when(nodes: tuple[Node, ...], above: tuple[Loop, ...] = ()) -> tuple[Node, ...]:
    """Fill `Leaf.when` of a program's own tree, whose loops are the statements' dimensions."""
    def visit() -> Iterator[Node]:
        for node in nodes:
            if isinstance(node, Loop):
                yield replace(node, body=map_when(node.body, (*above, node)))
            elif isinstance(node, Leaf):
                yield replace(node, when=tuple(sorted((loop.id, var(loop.id)) for loop in above)))
            else:
                yield node

    return tuple(visit())
