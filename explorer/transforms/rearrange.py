"""Arrays with their axes in another order: a temporary itself, or a copy of an input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..ir.expr import var
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan, map_when
from ..ir.program import Access, Array, Statement
from ..ir.scalar import Read
from ..ir.tree import Kernel, Loop, Node, leaves, walk
from ._domain import all_dims, bounds, identity_leaf, wrapped
from ._uses import uses
from .base import Transform

MOST_PAD = 128
"""Elements behind a row: more than a line of the cache serves no copy."""


@dataclass(frozen=True)
class Rearrange(Transform):
    """Give a temporary another order of axes, or read a copy of an input: ``x_a[i[p(0)], i[p(1)], …] = x[i[0], i[1], …]``.

    With `pad` the copy has so many unused elements behind each row, so that rows begin at multiples of 16 bytes: a tensor map
    describes no others (CUDA Driver API, ``cuTensorMapEncodeTiled``).  Then the axes may stay in their order.

    The copy is a nest in front of the kernel that first reads the array; every reader reads the copy.  `launch` makes it a
    kernel of its own.  What it costs is one read and one write of the array; what it brings is that elements which are used
    together lie together: channels side by side, so that a bulk copy or wide accesses take them.

    A temporary is only laid out in another way: all accesses name its axes in the new order, and nothing is copied.

    Before::

        for n in 0…N
            for h in 0…H
                for c in 0…C
                    total[n, h] += x[n, c, h] * f[c]

    After ``rearrange('x', (0, 2, 1))``::

        for x_a.0 in 0…N
            for x_a.1 in 0…H
                for x_a.2 in 0…C
                    x_a[x_a.0, x_a.1, x_a.2] = x[x_a.0, x_a.2, x_a.1]
        for n in 0…N
            for h in 0…H
                for c in 0…C
                    total[n, h] += x_a[n, h, c] * f[c]
    """

    name = "rearrange"
    group = "Storage"
    aliases = ("transform_layout", "change_layout", "permute_axes", "transpose")
    elsewhere = {"TVM": "transform_layout"}

    array: str = field(metadata={"kind": "array", "help": "an input that is only read, or a temporary"})
    axes: tuple[int, ...] = field(metadata={"kind": "ints", "help": "its axes in the new order"})
    pad: int = field(default=0, metadata={"kind": "int", "min": 0, "help": "unused elements behind each row of the copy"})

    def check(self, plan: Plan) -> Verdict:
        array = plan.program.array_of.get(self.array)
        if array is None:
            return no(f"there is no array {self.array!r}", hint=f"one of {', '.join(plan.program.array_of)}")
        if array.role not in ("in", "temporary"):
            return no(f"{self.array} is written, too", why="the copy is made once, before all readers",
                      hint="an input that is only read, or a temporary")
        rank = len(array.shape)
        if sorted(self.axes) != list(range(rank)):
            return no(f"axes={self.axes!r} are not the {rank} axes of {self.array} in another order",
                      hint=f"each of 0 to {rank - 1} once" if rank else "an array with axes")
        if not 0 <= self.pad <= MOST_PAD:
            return no(f"pad={self.pad} is no padding of a row", hint=f"0 to {MOST_PAD} elements")
        if self.axes == tuple(range(rank)) and not (self.pad and rank) and not array.pitch:
            return no(f"{self.array} has its axes in this order already", hint="another order, or a pad" if rank else "")
        if not any(r.array == self.array for s in plan.program.statements for r in s.reads):
            return no(f"nothing reads {self.array}")
        if any(r.array == self.array for copy in plan.copies for r in copy.reads):
            return no(f"a copy of {self.array} is staged already", hint="rearrange before it is staged")
        if array.role == "temporary":
            own = next((x for x in uses(plan, self.array) if x.view), None)
            return YES if own is None else no(f"{self.array} has storage of its own, which loops index",
                                              hint=f"contract('{self.array}', 'global') first")
        first = self._reader(plan)
        if hosted := next((n.id for n in walk(first.body) if isinstance(n, Loop) and n.role == "launch"), ""):
            return no(f"the host runs {hosted} of {first.id}, before which the copy would be made",
                      why="each of its iterations is a launch of the whole kernel",
                      hint=f"rearrange before bind('{hosted}', 'launch')")
        return YES

    def rewrite(self, plan: Plan) -> Plan:
        array = plan.program.array_of[self.array]
        shape = tuple(array.shape[n] for n in self.axes)
        if array.role == "temporary":
            return self._laid_out(plan, replace(array, shape=shape, given=-1, pitch=shape[-1] + self.pad if self.pad else 0))
        made = Array(plan.fresh(f"{self.array}_a"), array.dtype, shape, "temporary",
                     pitch=shape[-1] + self.pad if self.pad else 0)
        taken = all_dims(plan.program) | plan.ids
        dims = tuple(_unused(f"{made.name}.{n}", taken) for n in range(len(shape)))
        source = tuple(var(dims[self.axes.index(n)]) for n in range(len(shape)))
        copy = Statement(plan.fresh(f"{made.name}_S"), dims, tuple(c for d, n in zip(dims, shape, strict=True)
                                                                  for c in bounds(d, 0, n)),
                         Access(made.name, tuple(map(var, dims)), "write"), Read(0), (Access(self.array, source),),
                         origin="store")
        loops = tuple(Loop(d, n, ()) for d, n in zip(dims, shape, strict=True))
        nest = map_when((wrapped(loops, identity_leaf(copy)),))

        def redirected(s: Statement) -> Statement:
            return replace(s, reads=tuple(self._moved(r, made.name) for r in s.reads))

        program = replace(plan.program, arrays=(*plan.program.arrays, made), body=(wrapped(loops, identity_leaf(copy)),
                          *plan.program.body), statements=(copy, *map(redirected, plan.program.statements)))
        return replace(plan, program=program, kernels=tuple(self._kernels(plan, nest)))

    def _laid_out(self, plan: Plan, new: Array) -> Plan:
        """The plan with a temporary's axes in the new order, in its shape and in all accesses."""
        def accessed(s: Statement) -> Statement:
            return replace(s, target=self._moved(s.target, new.name), reads=tuple(self._moved(r, new.name) for r in s.reads))

        program = plan.program
        arrays = tuple(new if a.name == new.name else a for a in program.arrays)
        return replace(plan, program=replace(program, arrays=arrays, statements=tuple(map(accessed, program.statements))))

    def _moved(self, read: Access, name: str) -> Access:
        """A read of the copy in place of one of the array."""
        return replace(read, array=name, index=tuple(read.index[n] for n in self.axes)) if read.array == self.array else read

    def _kernels(self, plan: Plan, nest: tuple[Node, ...]) -> Iterator[Kernel]:
        """The kernels, the first that reads the array with the copy in front."""
        first = self._reader(plan)
        for kernel in plan.kernels:
            yield replace(kernel, body=(*nest, *kernel.body)) if kernel is first else kernel

    def _reader(self, plan: Plan) -> Kernel:
        """The first kernel that reads the array."""
        return next(kernel for leaf, _, kernel in plan.leaves
                    if any(r.array == self.array for r in plan.statement_of[leaf.statement].reads))

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        if next(cls.candidates(plan, node_id), None):
            return YES
        if any(k.id == node_id for k in plan.kernels):
            return no(f"{node_id} is a kernel, not a loop or a statement", hint=f"select one of {', '.join(plan.loops)}")
        others = [a.name for a in plan.program.arrays if a.role in ("in", "temporary") and len(a.shape) > 1]
        return no(f"{node_id} uses no input or temporary with several axes",
                  "rearrange gives a temporary, or a copy of an array that the program only reads, another order of axes",
                  f"select what uses {' or '.join(others)}" if others else "")

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Rearrange]:
        hit = plan.find(node_id)
        if hit is None:
            return
        names = dict.fromkeys(r.array for leaf, _ in leaves((hit[0],)) for r in plan.statement_of[leaf.statement].accesses)
        for name in names:
            array = plan.program.array_of.get(name)
            if array is not None and array.role in ("in", "temporary") and len(array.shape) > 1:
                rank = len(array.shape)
                for axis in range(rank - 1):  # one of the others comes to lie along memory
                    yield cls(name, (*(n for n in range(rank) if n != axis), axis))


def _unused(name: str, taken: frozenset[str]) -> str:
    return name if name not in taken else next(n for i in range(2, 10**9) if (n := f"{name}_{i}") not in taken)
