"""The common part of rfactor, collect and accumulate: what surrounds the updates of a reduction.

An update statement ``S: T[e(d)] op= value(d)`` runs in loops of two kinds.  A loop is *parallel* when its value
follows from the element ``e(d)``; every other loop *carries* the reduction: it takes several updates of one element
apart.  Whatever prepares all updates of an element, or uses their result, has to stand outside of the carrying
loops; there it needs loops of its own for the dimensions that are left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import gcd

from ..ir.digits import digits, told
from ..ir.expr import Atom, Expr, var
from ..ir.finding import Verdict, no
from ..ir.plan import Plan
from ..ir.program import Constraint, Indirect, Statement
from ..ir.tree import Leaf, Loop, Node, ranges
from ._domain import all_dims, below, bounds, dim_ranges, program_leaf, project, renamed, wrapped
from .base import no_leaf


@dataclass(frozen=True)
class Updates:
    """The updates of one statement, and where the loops that carry its reduction begin.

    Attributes
    ----------
    plan : Plan
    statement : Statement
    leaf : Leaf
    above : tuple of Loop
        Loops around the leaf, outermost first.
    factored : tuple of Loop
        Those whose iterations get partial results of their own.
    dims : frozenset of str
        Dimensions of the statement that the element determines.
    within : int or None
        The side nests stay inside of at most so many loops.
    """

    plan: Plan
    statement: Statement
    leaf: Leaf
    above: tuple[Loop, ...]
    factored: tuple[Loop, ...]
    dims: frozenset[str]
    within: int | None = None

    @cached_property
    def when(self) -> dict[str, Expr]:
        """Loop to its value, over the statement's dimensions."""
        return dict(self.leaf.when)

    def parallel(self, loop: Loop) -> bool:
        """Whether the element determines the loop's value."""
        return (self.alone(loop) or loop.id in self.tied.values() or loop.id in self.read_off
                or told(self.when[loop.id], self.names) is not None)

    def alone(self, loop: Loop) -> bool:
        """Whether the dimensions that the element determines do."""
        return self.when[loop.id].variables() <= self.dims

    @cached_property
    def tied(self) -> dict[int, str]:
        """Axis of the target whose index is a loop's value, up to a constant: the partial results of an earlier rfactor."""
        when, out = self.when, dict[int, str]()
        for axis, e in enumerate(self.statement.target.index):
            assert isinstance(e, Expr)
            free = [x for x in self.above if not self.alone(x) and x.id not in out.values()]
            loop = next((x for x in free if (when[x.id] - e).is_constant), None)
            if loop and not e.variables() <= self.dims:
                out[axis] = loop.id
        return out

    @cached_property
    def digits(self) -> dict[int, dict[Atom, Expr]]:
        """For each axis whose index is a mixed-radix sum of other values: each of these as a digit of the index.

        ``t = 8*((e // 32) % 3) + e % 8`` has the digits ``t // 8`` and ``t % 8``: what rfactor over a coalesced loop has left.
        """
        out: dict[int, dict[Atom, Expr]] = {}
        known = dim_ranges(self.statement)
        for axis, e in enumerate(self.statement.target.index):
            own = isinstance(e, Expr) and (axis in self.tied or e.variables() <= self.dims)
            if isinstance(e, Expr) and not own and (found := digits(e, var(axis_name(axis)), known)):
                out[axis] = found
        return out

    @cached_property
    def names(self) -> dict[Atom, Expr]:
        """What the element determines, in names of its axes: dimensions, and the digits of its other indices."""
        return {**{d: var(d) for d in self.dims}, **{atom: e for found in self.digits.values() for atom, e in found.items()}}

    @cached_property
    def loop_digits(self) -> dict[int, dict[Atom, Expr]]:
        """The same with loops in place of dimensions, for axes whose dimensions overlap.

        ``y[2*i + k]`` with ``k`` up to 3 has no digits; in loops ``q = i + k // 2`` and ``r = k % 2`` it is ``y[2*q + r]``.
        """
        out: dict[int, dict[Atom, Expr]] = {}
        at, scope = dict(self.leaf.at), ranges(self.above)
        for axis, e in enumerate(self.statement.target.index):
            if isinstance(e, Expr) and axis not in self.tied and axis not in self.digits and not e.variables() <= self.dims:
                found = digits(e.substitute(at, scope), var(axis_name(axis)), scope)
                if found and all(isinstance(atom, str) for atom in found):
                    out[axis] = found
        return out

    @cached_property
    def read_off(self) -> dict[Atom, Expr]:
        """Loops whose value is a digit of an axis' index, as that digit."""
        return {loop: e for found in self.loop_digits.values() for loop, e in found.items()}

    @cached_property
    def divided(self) -> frozenset[int]:
        """Axes whose index has digits, of dimensions or of loops."""
        return frozenset([*self.digits, *self.loop_digits])

    @property
    def carrying(self) -> tuple[Loop, ...]:
        return tuple(x for x in self.above if not self.parallel(x))

    def outside(self, early: bool = False) -> int:
        """How many loops stay around a side nest: all before the first carrying one.

        Factored places may stay around both side nests, other factored loops around the `early` one (each iteration
        starts its own partial result, but the results are joined after all of them).
        """
        most = len(self.above) if self.within is None else self.within
        stays = [self.parallel(x) or (x in self.factored and (early or x.is_place)) for x in self.above[:most]]
        return stays.index(False) if False in stays else most

    def anchor(self, early: bool = False) -> str:
        """The node that a side nest stands next to."""
        outside = self.outside(early)
        return self.above[outside].id if outside < len(self.above) else self.leaf.id

    @property
    def program_anchor(self) -> tuple[str, tuple[Loop, ...]]:
        """The node of the program as written that they stand next to, and the loops around it."""
        leaf, above = program_leaf(self.plan.program, self.statement.name)
        depth = next((n for n, x in enumerate(above) if x.id not in self.dims), len(above))
        return (above[depth].id if depth < len(above) else leaf.id), above[:depth]

    def part(self) -> tuple[Expr, ...]:
        """Which partial result an instance contributes to, over the statement's dimensions, from 0."""
        return tuple(self.when[x.id] - x.start for x in self.factored)


def updates(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], factored: tuple[Loop, ...] = ()) -> Updates:
    """The updates of an update leaf."""
    statement = plan.statement_of[leaf.statement]
    return Updates(plan, statement, leaf, above, factored, element_dims(statement))


def element_dims(statement: Statement) -> frozenset[str]:
    """Dimensions that follow from the target's element, because they alone make up one of its indices."""
    single = [e for e in statement.target.index if isinstance(e, Expr) and len(e.terms) == 1 and isinstance(e.terms[0][0], str)]
    return frozenset(name for e in single for name in e.variables())


def axis_name(axis: int) -> str:
    """What stands for the index of an axis; no program has such a name."""
    return f"#{axis}"


@dataclass(frozen=True)
class Side:
    """A statement beside a reduction that visits each (element, part) once, and its two nests.

    Attributes
    ----------
    dims, domain
        Of the new statement.
    index, part : tuple of Expr
        The element of the reduction's target and the partial result, over the new dimensions.
    program_loops, loops : tuple of Loop
        The loops it needs inside those that stay around it, in the program as written and in the plan.
    at, when
        Of its leaf.
    names : mapping of str to str
        Loop of the update's leaf to the loop that takes its place here.
    to_new : mapping of str to Expr
        Dimension of the update that its element determines to that of the new statement.
    """

    dims: tuple[str, ...]
    domain: tuple[Constraint, ...]
    index: tuple[Expr, ...]
    part: tuple[Expr, ...]
    program_loops: tuple[Loop, ...]
    loops: tuple[Loop, ...]
    at: tuple[tuple[str, Expr], ...]
    when: tuple[tuple[str, Expr], ...]
    names: Mapping[str, str]
    to_new: Mapping[str, Expr]

    def leaf(self, name: str) -> Leaf:
        return Leaf(name, name, self.at, self.when)

    def nest(self, leaf: Leaf) -> Node:
        return wrapped(self.loops, leaf)


def side(u: Updates, suffix: str, apart: bool = False, early: bool = False) -> Side | Verdict:
    """The dimensions and loops of a statement beside the updates `u`.

    Parameters
    ----------
    u : Updates
    suffix : str
        Ends the names of new loops and dimensions: ``k.c``.
    early : bool
        It stands before the updates: see :meth:`Updates.outside`.
    apart : bool
        For a launch of its own: no loop stays around it, and factored loops are sequential.
    """
    plan, s = u.plan, u.statement
    at, when, scope = dict(u.leaf.at), dict(u.leaf.when), ranges(u.above)
    _, program_above = u.program_anchor
    taken = set(all_dims(plan.program))

    def fresh(name: str) -> str:
        new = plan.fresh(name, frozenset(taken))
        taken.add(new)
        return new

    shared = {x.id for x in program_above}
    known = dim_ranges(s)
    # An earlier rfactor starts every part, and every part is joined later: also one without updates.
    parted = any(x.origin == "init" and x.target.array == s.target.array for x in plan.program.statements)
    plain = [d for d in s.dims if d in u.dims]
    names = {d: d if d in shared else fresh(f"{d}.{suffix}") for d in plain}
    box = {names[d]: known[d] for d in plain}
    index, extra = list[Expr](), list[str]()
    tie: dict[str, tuple[str, int]] = {}
    made_of: dict[str, tuple[int, Expr, int]] = {}
    for axis, e in enumerate(s.target.index):
        assert not isinstance(e, Indirect)
        if e.variables() <= u.dims:
            index.append(e.substitute({d: var(n) for d, n in names.items()}))
            continue
        last = plan.array_of[s.target.array].shape[axis] - 1
        step = 1 if axis in u.tied else gcd(*(c for _, c in e.terms))
        low, high = Expr(tuple((a, c // step) for a, c in e.terms)).interval(known)
        if (axis in u.tied or axis in u.divided) and parted:
            low, high = -(e.const // step) if step > 1 else 0, (last - e.const) // step if step > 1 else last
        else:  # the domain says no more of an index that several dimensions share
            low, high = max(low, -(e.const // step)), min(high, (last - e.const) // step)
        new = fresh(f"{s.name}.{axis}.{suffix}")
        box[new] = (low, high)
        extra.append(new)
        index.append(var(new) * step + e.const)
        if axis in u.tied:
            tie[new] = u.tied[axis], (when[u.tied[axis]] - e).const + e.const
        elif axis in u.divided:
            made_of[new] = axis, e, step
    parts = tuple(fresh(f"{x.id}.{suffix}") for x in u.factored)
    dims = (*(names[d] for d in plain), *extra, *parts)
    domain = (
        *renamed(project(s.domain, [d for d in s.dims if d not in u.dims]), {d: var(n) for d, n in names.items()}),
        *(c for d in (*names.values(), *extra) for c in bounds(d, box[d][0], box[d][1] - box[d][0] + 1)),
        *(c for d, x in zip(parts, u.factored, strict=True) for c in bounds(d, 0, x.extent)),
    )
    program_loops = tuple(
        [Loop(d, box[d][1] - box[d][0] + 1, (), start=box[d][0]) for d in (*names.values(), *extra) if d not in shared]
        + [Loop(d, x.extent, ()) for d, x in zip(parts, u.factored, strict=True)])

    stay = () if apart else u.above[: u.outside(early)]
    clones: dict[str, Loop] = {}
    made: set[str] = set()
    for x in u.above[len(stay):]:
        if u.parallel(x) or x in u.factored:
            name, role = fresh_loop(plan, f"{x.id}.{suffix}", taken, made), _side_role(x, x in u.factored, apart)
            clones[x.id] = Loop(name, x.extent, (), role, x.start)
    here = {x.id: x.id for x in stay} | {old: x.id for old, x in clones.items()}
    parting = {x.id for x in u.factored if not u.parallel(x)}
    usable = here.keys() - parting
    lost = {d for d in plain if not at[d].variables() <= usable}
    over = {d: Expr(tuple((a, c // step) for a, c in e.terms)).substitute(at, scope) for d, (_, e, step) in made_of.items()}
    if mixed := next((d for d, e in over.items() if not e.variables() <= usable), None):
        return no(f"the loops of {u.leaf.id} mix the elements of {s.target.array} with the reduction",
                  f"axis {made_of[mixed][0]} is not told by the loops outside of {u.anchor(early)}",
                  "undo the skew or coalesce that mixes them")
    if bad := next((x for x in stay if u.parallel(x) and when[x.id].variables() & lost), None):
        return no(f"the loops of {u.leaf.id} mix the elements of {s.target.array} with the reduction",
                  f"{', '.join(sorted(lost))} cannot be told from the loops outside of {u.anchor(early)}, "
                  f"but {bad.id} depends on it",
                  "undo the skew or coalesce that mixes them")
    gone = {old for old in clones if old not in parting and when[old].variables() & lost}
    if mixed := next((d for d in extra if (d in tie and tie[d][0] in gone) or (d in over and over[d].variables() & gone)), None):
        return no(f"the loops of {u.leaf.id} mix the elements of {s.target.array} with the reduction",
                  f"{mixed} cannot be told without {', '.join(sorted(gone))}", "undo the skew or coalesce that mixes them")
    clones = {old: x for old, x in clones.items() if old not in gone}
    alone = [names[d] for d in plain if d in lost] + [d for d in extra if d not in tie and d not in made_of]
    own_of = {n: fresh_loop(plan, f"{n}.{suffix}" if n in shared else n, taken, made) for n in alone}
    own = [Loop(own_of[n], box[n][1] - box[n][0] + 1, (), start=box[n][0]) for n in alone]
    values = {old: var(new) for old, new in here.items()}
    inside = {**scope, **{x.id: x.range for x in (*clones.values(), *own)}}
    place = [(names[d], var(own_of[names[d]]) if d in lost else at[d].substitute(values, inside)) for d in plain]
    place += [(d, over[d].substitute(values, inside) if d in made_of else
               var(here[tie[d][0]]) - tie[d][1] if d in tie else var(own_of[d])) for d in extra]
    place += [(d, var(here[x.id]) - x.start) for d, x in zip(parts, u.factored, strict=True)]
    to_new = {d: var(n) for d, n in names.items()}
    part_of = {x.id: var(d) + x.start for d, x in zip(parts, u.factored, strict=True)}
    part_of |= {loop: var(d) + shift for d, (loop, shift) in tie.items()}
    axes = {axis_name(axis): var(d) * step + e.const for d, (axis, e, step) in made_of.items()}
    boxed = {d: box[d] for d in (*names.values(), *extra)}

    def value(x: Loop) -> Expr:
        """The loop's value, over the new dimensions."""
        e = when[x.id]
        if x.id in u.read_off and not e.variables() <= u.dims:
            return u.read_off[x.id].substitute(axes, boxed)
        if not e.variables() <= u.dims and (found := told(e, u.names)) is not None:
            return found.substitute({**to_new, **axes}, boxed)
        return e.substitute(to_new)

    inverse = {here[x.id]: part_of[x.id] if x.id in part_of else value(x)
               for x in (*stay, *(x for x in u.above if x.id in clones))}
    inverse |= {loop: var(n) for n, loop in own_of.items()}
    late = [x.id for x in u.factored if apart or not x.is_place]
    loops = (*own, *(x for old, x in clones.items() if old not in late), *(x for old, x in clones.items() if old in late))
    return Side(dims, domain, tuple(index), tuple(var(d) for d in parts), program_loops, loops, tuple(place),
                tuple(sorted(inverse.items())), here, to_new)


def fresh_loop(plan: Plan, name: str, taken: set[str], made: set[str]) -> str:
    """A loop name that no node and none of the loops made before has; it may be the name of the dimension it runs through."""
    new = name if name not in plan.ids | made else plan.fresh(name, frozenset(taken))
    taken.add(new)
    made.add(new)
    return new


def _side_role(loop: Loop, factored: bool, apart: bool) -> str:
    if factored and (apart or not loop.is_place):
        return "seq"
    return "unroll" if loop.role == "vector" else loop.role


def update_verdict(plan: Plan, name: str) -> Updates | Verdict:
    """The updates that a name stands for, or why there are none that may be taken apart."""
    hit = plan.resolve(name)
    if hit is None:
        return no_leaf(plan, name)
    leaf, above, _ = hit
    s = plan.statement_of[leaf.statement]
    if not s.update:
        found = ", ".join(x.id for x, _, _ in plan.leaves if plan.statement_of[x.statement].update)
        return no(f"{leaf.id} is not a reduction: it writes {s.target.array} instead of updating it",
                  hint=f"one of {found}" if found else "this program has no reductions")
    return updates(plan, leaf, above)


def separable(u: Updates) -> Verdict | None:
    """Why the updates of a statement may not be gathered elsewhere and added later; None if they may."""
    s, target = u.statement, u.statement.target.array
    if sum(1 for leaf, _, _ in u.plan.leaves if leaf.statement == s.name) > 1:
        return no(f"{s.name} stands in several places of the tree", hint="do this before cut or pipeline")
    if any(r.array == target for r in s.reads):
        return no(f"{s.name} also reads {target}", "its updates are not a plain reduction of values that do not depend on it")
    anchor, _ = u.program_anchor
    for name in below(u.plan.program, anchor):
        other = u.plan.statement_of[name]
        if name == s.name or all(a.array != target for a in other.accesses):
            continue
        same = other.update == s.update and all(r.array != target for r in other.reads)
        if not same:
            return no(f"{name} uses {target} between its updates by {s.name}",
                      f"both stand inside {anchor} of the program, so {name} needs the partial result of every iteration",
                      "split the two statements into loops of their own in the program")
    return None


def view_here(view_index: tuple[Expr, ...], names: Mapping[str, str], above: tuple[Loop, ...]) -> tuple[Expr, ...] | None:
    """A cell of the update's target over the loops of a side nest; None where it depends on a loop that is not there."""
    if any(not e.variables() <= names.keys() for e in view_index):
        return None
    return tuple(e.substitute({old: var(new) for old, new in names.items()}, ranges(above)) for e in view_index)


