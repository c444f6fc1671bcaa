"""The values of a program as a graph, and which of them a scheme for each edge puts into one kernel.

A *group* is what non-cut edges connect: one kernel.  Groups are packed with others that do not depend on them and read the same
arrays over the same loops (horizontal fusion); the graph of groups must have an order, since launches have one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from ...errors import TransformError
from ...ir.plan import Plan
from ...ir.program import Statement
from ...ir.tree import Leaf, Loop
from ...poly.producer_consumer import ValueEdge, value_edges
from .same_axes import Walk, same_axes, walk_of

SCHEMES = ("register", "shuffle", "shared", "global", "grid", "recompute", "cut")
"""How a value gets from the threads that make it to those that use it: it stays in the thread, shuffles within a warp (and a word
of shared memory for each further warp), shared memory, global memory behind the end of a launch (of a reduction: its parts),
global memory behind a barrier of all blocks in one launch, it is computed again, or a kernel of its own."""
APART = ("global", "grid", "cut")
"""The schemes that end a kernel; behind `grid` the next one is a phase of the same launch."""
PARTS = "parts"
"""What `grid` is at a reduction whose parts are joined behind the barrier, by the kernel that uses it."""


@dataclass(frozen=True)
class Graph:
    """Values (arrays that the program computes) and edges.

    Attributes
    ----------
    plan : Plan
        Loops in time only.
    kernel : str
        The kernel whose values these are.
    edges : tuple of ValueEdge
        Between values of the kernel.
    """

    plan: Plan
    kernel: str
    edges: tuple[ValueEdge, ...]

    @classmethod
    def of(cls, plan: Plan, kernel: str = "") -> Graph:
        """The graph of a kernel (default: the first)."""
        kernel = kernel or plan.kernels[0].id
        here = {leaf.statement for leaf, _, k in plan.leaves if k.id == kernel}
        return cls(plan, kernel, tuple(e for e in value_edges(plan.program) if e.producer in here and e.consumer in here))

    @cached_property
    def leaves(self) -> tuple[tuple[Leaf, Statement, tuple[Loop, ...]], ...]:
        """The kernel's leaves with their statements and the loops around them."""
        statement = self.plan.statement_of
        return tuple((leaf, statement[leaf.statement], above) for leaf, above, k in self.plan.leaves if k.id == self.kernel)

    @cached_property
    def values(self) -> tuple[str, ...]:
        """Arrays that the kernel computes, in order of their first statement."""
        return tuple(dict.fromkeys(s.target.array for _, s, _ in self.leaves))

    @cached_property
    def kept(self) -> frozenset[str]:
        """Values that outlive the kernel: results of the program, and what other kernels use."""
        elsewhere = {a.array for leaf, _, k in self.plan.leaves if k.id != self.kernel
                     for a in self.plan.statement_of[leaf.statement].accesses}
        return frozenset(v for v in self.values if self.plan.array_of[v].role != "temporary" or v in elsewhere)

    @cached_property
    def reductions(self) -> frozenset[str]:
        """Values that updates make."""
        return frozenset(s.target.array for _, s, _ in self.leaves if s.update)

    @cached_property
    def nest(self) -> dict[str, str]:
        """The node at the top of the tree that holds the last statement of each value."""
        return {s.target.array: (above[0].id if above else leaf.id) for leaf, s, above in self.leaves}

    @cached_property
    def nests(self) -> dict[str, frozenset[str]]:
        """The nodes at the top of the tree that hold statements of each value."""
        out: dict[str, frozenset[str]] = dict.fromkeys(self.values, frozenset())
        for leaf, s, above in self.leaves:
            out[s.target.array] |= {above[0].id if above else leaf.id}
        return out

    @cached_property
    def inputs(self) -> dict[str, frozenset[str]]:
        """Parameters that the statements of a value read."""
        out: dict[str, frozenset[str]] = dict.fromkeys(self.values, frozenset())
        for _, s, _ in self.leaves:
            out[s.target.array] |= {r.array for r in s.reads if r.array not in self.values}
        return out

    @cached_property
    def space(self) -> dict[str, tuple[int, ...]]:
        """Extents of the loops around the last statement of each value, outermost first."""
        return {s.target.array: tuple(x.extent for x in above) for _, s, above in self.leaves}

    @cached_property
    def _walks(self) -> dict[str, tuple[Walk, ...]]:
        """What each of these loops walks."""
        return {s.target.array: tuple(walk_of(x.id, [(leaf, s)]) for x in above) for leaf, s, above in self.leaves}

    def same_axes(self, a: str, b: str) -> bool:
        """Whether the loops around the last statements of two values are over the same."""
        return self.space[a] == self.space[b] and all(map(same_axes, self._walks[a], self._walks[b]))

    @cached_property
    def _passes(self) -> dict[str, tuple[tuple[int, ...], tuple[Walk, ...]]]:
        """Extents of the most loops around a statement of each value, and what each of them walks."""
        out: dict[str, tuple[tuple[int, ...], tuple[Walk, ...]]] = {}
        for leaf, s, above in self.leaves:
            if len(above) > len(out.get(s.target.array, ((),))[0]):
                out[s.target.array] = tuple(x.extent for x in above), tuple(walk_of(x.id, [(leaf, s)]) for x in above)
        return out

    def in_one_pass(self, a: str, b: str) -> bool:
        """Whether two values are made of something that both read, by loops over the same."""
        (space, walks), (other, others) = (self._passes.get(v, ((), ())) for v in (a, b))
        return bool(self.inputs[a] & self.inputs[b]) and space == other and all(map(same_axes, walks, others))

    @property
    def shared(self) -> bool:
        """Whether values of different nests could be made in one pass."""
        return any(self.in_one_pass(a, b) and not self.nests[a] & self.nests[b] for a, b in combinations(self.values, 2))

    def edge(self, name: str) -> ValueEdge | None:
        """The edge with this id."""
        return next((e for e in self.edges if name_of(e) == name), None)

    def below(self, value: str) -> frozenset[str]:
        """A value and everything that is made from it."""
        found, todo = {value}, [value]
        while todo:
            here = todo.pop()
            fresh = {e.into for e in self.edges if e.array == here} - found
            found |= fresh
            todo += fresh
        return frozenset(found)

    def scalar(self, value: str) -> bool:
        """Whether a value is made once for each result of the reductions, outside of their loops."""
        return value not in self.reductions and len(self.space[value]) < max(len(s) for s in self.space.values())

    def joins(self, e: ValueEdge) -> bool:
        """Whether parts of a reduction can be joined where the value is used: in one statement for each result."""
        return e.array in self.reductions and e.into not in self.reductions and e.kind == "1:1"

    def apart(self, e: ValueEdge, scheme: str) -> bool:
        """Whether an edge ends a kernel between its statements (joined parts end one within the reduction)."""
        return scheme in APART and not (scheme == "global" and self.joins(e))

    def boundary(self, e: ValueEdge, scheme: str) -> str:
        """The scheme with which an edge ends a kernel: `scheme`, but no parts that would be joined on the other side."""
        return scheme if self.apart(e, scheme) else "cut"

    def complete(self, fixed: Mapping[str, str], loose: Iterable[str] = ()) -> dict[str, str]:
        """A scheme for every edge that agrees with the fixed ones as far as that is possible.

        Parameters
        ----------
        fixed : mapping of str to str
            Edge to scheme.
        loose : iterable of str
            Edges that no fusion can bring into one kernel.

        Returns
        -------
        dict
            What is not fixed: cut where a fixed cut separates, else registers, or shuffles behind a reduction.
        """
        schemes = dict(fixed)
        for e, scheme in [(e, s) for n, s in fixed.items() if s in ("global", PARTS) and (e := self.edge(n)) and self.joins(e)]:
            for other in self.edges:  # parts of one nest are joined together; what is spread again runs behind them
                same = self.joins(other) and self.same_axes(other.array, e.array)
                again = other.array in self.below(e.into) and self.space[other.into] != self.space[other.array]
                if same or again or other.into == e.array:
                    schemes.setdefault(name_of(other), "grid" if scheme == PARTS and not same else scheme)
        for scheme, e in [(s, e) for name, s in [*schemes.items()] if (e := self.edge(name)) and self.apart(e, s)]:
            behind = self.below(e.into)
            for other in self.edges:
                if other.array not in behind and other.into in behind:
                    schemes.setdefault(name_of(other), self.boundary(other, scheme))
        stored = {e.array: s for n, s in fixed.items() if (e := self.edge(n)) and s not in (*APART, PARTS)}
        alone = any(s == "register" and a in self.reductions for a, s in stored.items())
        for e in self.edges:
            plain = "register" if alone or e.array not in self.reductions else "shuffle"
            schemes.setdefault(name_of(e), "cut" if name_of(e) in loose else stored.get(e.array, plain))
        return {name_of(e): schemes[name_of(e)] for e in self.edges}

    def groups(self, schemes: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
        """Values that share a kernel, in an order in which the kernels can run.

        Raises
        ------
        TransformError
            If an edge ends a kernel whose sides another way connects.
        """
        group = {v: {v} for v in self.values}
        for e in self.edges:
            if not self.apart(e, schemes[name_of(e)]):
                _unite(group, e.array, e.into)
        for e in self.edges:
            if self.apart(e, schemes[name_of(e)]) and group[e.array] is group[e.into]:
                way = next((name_of(o) for o in self.edges if not self.apart(o, schemes[name_of(o)])
                            and o.into == e.into and group[o.array] is group[e.into]), "other edges")
                raise TransformError(f"{name_of(e)} cannot be {schemes[name_of(e)]}",
                                     why=f"{way} keeps {e.array} and {e.into} in one kernel",
                                     hint=f"{{'{way}': '{schemes[name_of(e)]}'}} too")
        self._pack(group)
        return self._ordered(group, schemes)

    def barriers(self, schemes: Mapping[str, str], groups: Sequence[Sequence[str]], fixed: Iterable[str]) -> frozenset[int]:
        """Groups that are a phase of the launch before them, behind a barrier of its grid.

        Parameters
        ----------
        schemes : mapping of str to str
            Edge to scheme.
        groups : sequence of sequence of str
            In launch order.
        fixed : iterable of str
            Edges that have to keep their scheme.

        Raises
        ------
        TransformError
            If one of these ends a launch between two phases of one.
        """
        number = {v: n for n, group in enumerate(groups) for v in group}
        span = {name_of(e): range(number[e.array] + 1, number[e.into] + 1) for e in self.edges}
        joined = {n: name for name, where in span.items() if schemes[name] == "grid" for n in where}
        for name in fixed:
            e = self.edge(name)
            if e and schemes[name] != "grid" and self.apart(e, schemes[name]) and set(span[name]) <= set(joined):
                other = joined[span[name][0]]
                apart = len(span[other]) > 1
                between = "; ".join(", ".join(groups[n]) for n in span[other][:-1])
                array, _, into = other.partition("->")
                why = (f"{array} and {into} do not stand next to each other: {between}, a launch of its own, is between" if apart
                       else f"{', '.join(groups[span[name][-1]])} is a phase of the launch before it, or a launch of its own")
                raise TransformError(f"{other} cannot be grid while {name} is {schemes[name]}", why=why,
                                     hint=f"{{'{name}': 'grid'}} too")
        return frozenset(joined)

    def whole(self, group: Sequence[str], schemes: Mapping[str, str], asked: Set[str], several: bool) -> bool:
        """Whether parts of a group are joined in their launch: as asked at an edge, else where that has `several` phases."""
        here = {name_of(e): schemes[name_of(e)] for e in self.edges if e.array in group and self.joins(e)}
        return PARTS in here.values() or (several and not any(s == "global" for n, s in here.items() if n in asked))

    def told(self, schemes: Mapping[str, str], groups: Sequence[Sequence[str]], barriers: Set[int]) -> dict[str, str]:
        """The schemes, with `grid` for what happens to cross barriers only."""
        number = {v: n for n, group in enumerate(groups) for v in group}
        inside = {name_of(e) for e in self.edges if self.apart(e, schemes[name_of(e)])
                  and set(range(number[e.array] + 1, number[e.into] + 1)) <= barriers}
        return {name: "grid" if name in inside else scheme for name, scheme in schemes.items()}

    def heirs(self, e: ValueEdge, later: Graph) -> list[ValueEdge]:
        """The edges that took an edge's place in the graph that is left when values are written into those that use them."""
        into = self.left(e.into, later)
        return [o for o in later.edges if o.array == e.array and o.into in into]

    def left(self, value: str, later: Graph) -> set[str]:
        """A value in the graph that is left, or those that it was written into."""
        found, todo = set[str](), [value]
        while todo:
            here = todo.pop()
            if here in later.values:
                found.add(here)
            else:
                todo += [o.into for o in self.edges if o.array == here]
        return found

    def _pack(self, group: dict[str, set[str]]) -> None:
        """Unite groups that are independent of each other, where they stand in one nest or read one array over equal loops."""
        for a in self.values:
            for b in self.values:
                if group[a] is group[b]:
                    continue
                near = self.nests[a] & self.nests[b] or self.in_one_pass(a, b)
                if near and not self._between(group, a, b) and not self._between(group, b, a):
                    _unite(group, a, b)

    def _between(self, group: dict[str, set[str]], a: str, b: str) -> bool:
        """Whether the group of `b` needs, over any groups, the group of `a`."""
        reached, todo = set(group[a]), list(group[a])
        while todo:
            here = todo.pop()
            fresh = {v for e in self.edges if e.array == here for v in group[e.into]} - reached
            reached |= fresh
            todo += fresh
        return bool(reached & group[b])

    def _ordered(self, group: dict[str, set[str]], schemes: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
        """An order of the groups; phases of one launch next to each other where that is possible."""
        left, out = list({id(g): g for g in (group[v] for v in self.values)}.values()), []
        grid = [e for e in self.edges if schemes[name_of(e)] == "grid"]
        while left:
            free = [g for g in left if not any(e.into in g and e.array not in g and any(e.array in o for o in left)
                                               for e in self.edges)]
            done = {v for g in out for v in g}
            phases = [g for g in free if any(e.into in g and e.array in done for e in grid)]
            ready = next(iter(phases or free), None)
            if ready is None:
                names = ", ".join(sorted(v for g in left for v in g))
                raise TransformError("these kernels would need each other's results", why=f"among {names}",
                                     hint="cut all edges of one of them, or none")
            left.remove(ready)
            out.append(tuple(v for v in self.values if v in ready))
        return tuple(out)


def name_of(e: ValueEdge) -> str:
    """``total->y``."""
    return f"{e.array}->{e.into}"


def _unite(group: dict[str, set[str]], a: str, b: str) -> None:
    if group[a] is not group[b]:
        joined = group[a] | group[b]
        for v in joined:
            group[v] = joined
