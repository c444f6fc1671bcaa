"""Move a producer into the loop of its consumers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..ir.expr import Expr, var
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import Leaf, Loop, Node, leaves, ranges
from ._domain import wrapped
from ._needed import axes_of, names_of, value_of
from ._nest import move_scopes
from ._uses import Use, common_loops, indirect_use, uses
from .base import Transform, get_leaf, get_loop


@dataclass(frozen=True)
class Moved:
    """A leaf as it stands in its consumers' loop.

    Attributes
    ----------
    leaf : Leaf
    loops : tuple of Loop
        Those that it needs inside.
    users : frozenset of str
        The leaves that use what it writes.
    dropped : frozenset of str
        Loops that it leaves behind.
    """

    leaf: Leaf
    loops: tuple[Loop, ...]
    users: frozenset[str]
    dropped: frozenset[str]


@dataclass(frozen=True)
class ComputeAt(Transform):
    """Let each iteration of a loop first compute what it reads of a temporary.

    The producer ``P[p]: T[p + c] = …`` leaves its nest.  Where a consumer in the loop reads ``T[f(q)]``, each axis of ``T``
    whose index depends on a loop inside of the target loop gets a copy of that loop (its name ends in ``.p``), with the same
    role; for the other axes, and for the producer's own reduced dimensions, its own loops come along.  Of consumers that step
    over elements (``T[2*c]``), each iteration computes all elements up to the next.  Each element must be needed in one
    iteration only; otherwise it would have to be computed again, which is `inline`.  Named by its array, everything that writes
    it moves: a reduction with its start.  Named by its statement, that statement alone.

    Before::

        for i in 0…M
            for j in 0…N
                t[i, j] = 2*x[i, j]
        for i_2 in 0…M
            for j_2 in 0…N
                y[i_2, j_2] = t[i_2, j_2] + 1

    After ``compute_at('t', 'i_2')``::

        for i_2 in 0…M
            for j_2.p in 0…N
                t[i_2, j_2.p] = 2*x[i_2, j_2.p]
            for j_2 in 0…N
                y[i_2, j_2] = t[i_2, j_2] + 1
    """

    name = "compute_at"
    group = "Producers"
    aliases = ("fuse_at", "move_to")
    elsewhere = {"Halide": "compute_at", "TVM": "compute_at"}
    beware = ("compute_at moves the *producer* into its consumers' loop (as in Halide, and TVM's compute_at); TVM's "
              "reverse_compute_at moves the consumer into the producer's loop: that is fuse, once sequence has put the "
              "two loops side by side.")

    statement: str = field(metadata={"kind": "leaf", "help": "the producer: a statement, or an array for all that writes it"})
    loop: str = field(metadata={"kind": "loop", "help": "the consumers' loop that it moves into"})

    def check(self, plan: Plan) -> Verdict:
        moved = self._moves(plan)
        return moved if isinstance(moved, Verdict) else YES

    def rewrite(self, plan: Plan) -> Plan:
        moved = self._moves(plan)
        assert not isinstance(moved, Verdict)
        return moved

    def _moves(self, plan: Plan) -> Plan | Verdict:
        """The plan after moving the statement, or, for an array, everything that writes it: the last first, so that each
        finds its user in the loop.
        """
        found = get_leaf(plan, self.statement)
        if isinstance(found, Verdict):
            return found
        if isinstance(loop := get_loop(plan, self.loop), Verdict):
            return loop
        waiting = writers(plan, self.statement) or (found.id,)
        outside = [x for x in waiting if all(around.id != self.loop for around in _around(plan, x))]
        if not outside:
            return no(f"{waiting[-1]} already runs inside of {self.loop}",
                      "compute_at moves a statement into a loop around those that read its result")
        for leaf in reversed(outside):
            move = self._move(plan, leaf)
            if isinstance(move, Verdict):
                return move
            plan = self._placed(plan, leaf, move)
        return plan

    def _placed(self, plan: Plan, leaf: str, move: Moved) -> Plan:
        names = {x.id for x in move.loops}
        new = plan.map_bodies(lambda body: without(body, leaf))
        target = new.loops[self.loop]
        first = next(n for n, node in enumerate(target.body) if any(x.id in move.users for x, _ in leaves((node,))))
        body = (*target.body[:first], wrapped(move.loops, move.leaf), *target.body[first:])
        new = new.replace_node(target.id, replace(target, body=body))
        new = replace(new, kernels=tuple(k for k in new.kernels if k.body))
        return move_scopes(new, {x: self.loop for x in move.dropped if x not in names and x not in new.loops})

    def _move(self, plan: Plan, name: str) -> Moved | Verdict:
        leaf, above, _ = next(x for x in plan.leaves if x[0].id == name)
        loop = plan.loops[self.loop]
        path = (*_around(plan, loop.id), loop)
        statement = plan.statement_of[leaf.statement]
        array = statement.target.array
        if sum(1 for x, _, _ in plan.leaves if x.statement == leaf.statement) > 1:
            return no(f"{leaf.statement} stands in several places of the tree", hint="do this before cut or pipeline")
        others = tuple(u for u in uses(plan, array) if u.leaf.id != leaf.id and not (u.view and u.view.element)
                       and (not u.writes or (u.statement.update and not statement.update)))
        inside = {x.id for x, _ in leaves((loop,))}
        if not any(u.leaf.id in inside for u in others):
            return no(f"nothing in {loop.id} uses {array}", hint=_hint(others))
        if odd := next((u for u in others if u.leaf.id not in inside), None):
            return no(f"{odd.leaf.id} uses {array} outside of {loop.id}", "there it would not be computed yet",
                      "a loop that holds all of its consumers")
        if odd := indirect_use(others):
            return no(f"{odd.leaf.id} reads {array} at a data-dependent element",
                      "which iteration needs which element is not known before")
        return _moved(plan, leaf, above, path, others)

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[ComputeAt]:
        leaf = get_leaf(plan, node_id)
        if isinstance(leaf, Verdict):
            return
        array = plan.statement_of[leaf.statement].target.array
        paths = [u.above for u in uses(plan, array) if u.leaf.id != leaf.id and not u.writes]
        count = 0
        for x in common_loops(paths) if paths else ():
            step = cls(leaf.id, x.id)
            if count < 8 and step.check(plan):
                count += 1
                yield step

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        leaf = get_leaf(plan, node_id)
        if isinstance(leaf, Verdict) or next(cls.candidates(plan, node_id), None):
            return leaf if isinstance(leaf, Verdict) else YES
        array = plan.statement_of[leaf.statement].target.array
        readers = [u for u in uses(plan, array) if u.leaf.id != leaf.id and not u.writes]
        if not readers:
            return no(f"nothing reads {array}, which {leaf.id} writes",
                      "compute_at moves a statement to those that read its result", "select a statement that writes a temporary")
        common = common_loops([u.above for u in readers])
        if not common:
            return no(f"no loop holds all statements that read {array}", f"{', '.join(u.leaf.id for u in readers)} read it",
                      "fuse the loops around them first")
        verdict = cls(leaf.id, common[-1].id).check(plan)
        return no(f"{leaf.id} is proposed no loop", hint=f"compute_at('{leaf.id}', '{common[-1].id}')") if verdict else verdict


def writers(plan: Plan, array: str) -> tuple[str, ...]:
    """The leaves that write an array, in order; none where a leaf or a statement has that name."""
    if any(array in (leaf.id, leaf.statement) for leaf, _, _ in plan.leaves):
        return ()
    return tuple(leaf.id for leaf, _, _ in plan.leaves if plan.statement_of[leaf.statement].target.array == array)


def _around(plan: Plan, node: str) -> tuple[Loop, ...]:
    hit = plan.find(node)
    assert hit is not None
    return hit[1]


def _hint(others: tuple[Use, ...]) -> str:
    loops = [x.id for x in common_loops([u.above for u in others])] if others else []
    return f"one of {', '.join(loops)}" if loops else ""


def _moved(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], path: tuple[Loop, ...],
           others: tuple[Use, ...]) -> Moved | Verdict:
    statement = plan.statement_of[leaf.statement]
    shared = common_loops([above, path])
    fresh_outer = path[len(shared):]
    own = above[len(shared):]
    axes = axes_of(statement, others)
    outer: dict[str, Expr] = {}
    for u in others:
        known = names_of(u, axes)
        for x in fresh_outer:
            mine = value_of(x, u, known, statement)
            if mine is None or outer.setdefault(x.id, mine) != mine:
                return _again(statement.target.array, u, x)
    first = others[0]
    known, index = names_of(first, axes), first.index()
    moving = {x.id for x in fresh_outer}
    took = {n for n in axes if index[n].variables() & moving}
    inside = first.above[len(path):]
    while mixed := {n for n, axis in axes.items() if n not in took and any(  # a loop that is taken over decides of it, too
            axis.dim in e.variables() and any(x.id in index[m].variables() for m in took)
            for x in inside if (e := value_of(x, first, known, statement)) is not None)}:
        took |= mixed
    tiled, digits = dict[str, Expr](), dict[str, Loop]()
    for n in sorted(took):
        axis = axes[n]
        e, step = first.access.index[n], abs(axis.step)
        assert isinstance(e, Expr)
        if step > 1:
            assert axis.base is not None
            digits[axis.dim] = Loop(plan.fresh(f"{axis.dim}.p", frozenset(x.id for x in digits.values())), step, ())
            within = var(digits[axis.dim].id) * (1 if axis.step > 0 else -1)
            tiled[axis.dim] = index[n] + (axis.base - e.const) + within - axis.shift
        else:
            tiled[axis.dim] = index[n] - axis.shift
    inner = tuple(x for x in inside if any(x.id in e.variables() for e in tiled.values()))
    when_own, at_own = dict(leaf.when), dict(leaf.at)
    when_inner = {x.id: value_of(x, first, known, statement) for x in inner}
    if odd := next((x for x in inner if when_inner[x.id] is None), None):
        return no(f"{odd.id} mixes elements of {statement.target.array} with other dimensions of {first.leaf.id}",
                  hint="undo the skew or coalesce of that loop")
    kept = tuple(x for x in own if not when_own[x.id].variables() & tiled.keys())
    if odd := next((x for x in own if x not in kept and not when_own[x.id].variables() <= tiled.keys()), None):
        return no(f"{odd.id} mixes dimensions of {leaf.id} that move with dimensions that stay",
                  hint="undo the skew or coalesce of that loop")
    dropped = {x.id for x in own if x not in kept}
    if odd := next((d for d in statement.dims if d not in tiled and at_own[d].variables() & dropped), None):
        return no(f"{odd} of {leaf.id} depends on loops that {', '.join(sorted(dropped))} would leave behind")
    if odd := next((x for x, _ in leaf.collect if x in dropped), ""):
        return no(f"{leaf.id} is combined over {odd}, which it would leave", hint="collect again after moving")
    busy = {x.id for x in kept if any(other.id != leaf.id for other, _ in leaves((x,)))}
    taken = frozenset(x.id for x in digits.values())
    names = {x.id: plan.fresh(f"{x.id}.p", taken) for x in inner}
    mine = {x.id: plan.fresh(f"{x.id}.p", taken | frozenset(names.values())) if x.id in busy else x.id for x in kept}
    clones = tuple(replace(x, id=names[x.id], body=(), role="seq" if x.role in ("vector", "tensor") else x.role) for x in inner)
    loops = (*clones, *digits.values(), *(replace(x, id=mine[x.id]) for x in kept))
    if (pair := _bound_twice((*path, *loops))) is not None:
        return no(f"{pair[0].id} and {pair[1].id} would be nested, and both are bound to {pair[1].role}",
                  hint=f"bind('{pair[1].id}', 'seq') first")
    scope = ranges((*path, *loops))
    values = {old: var(new) for old, new in names.items()}
    moved = {old: var(new) for old, new in mine.items() if old in busy}
    at = {d: tiled[d].substitute(values, scope) if d in tiled else at_own[d].substitute(moved, scope) for d in statement.dims}
    when = {x.id: when_own[x.id] for x in shared} | {mine[x.id]: when_own[x.id] for x in kept} | outer
    when |= {names[x]: value for x, value in when_inner.items() if value is not None}
    when |= {digits[a.dim].id: a.place(0) % abs(a.step) for a in axes.values() if a.dim in digits}
    old = {x: when_own[x].substitute(at, scope) for x in dropped} | moved
    views = tuple((s, v.substitute(old, scope)) for s, v in leaf.views)
    collect = tuple((mine.get(x, x), how) for x, how in leaf.collect)
    sums = tuple((e, v) for e, v in leaf.sums if not v.variables() & old.keys())
    new = replace(leaf, at=tuple(at.items()), when=tuple(sorted(when.items())), views=views, collect=collect, sums=sums)
    return Moved(new, loops, frozenset(u.leaf.id for u in others), frozenset(dropped))


def _bound_twice(loops: tuple[Loop, ...]) -> tuple[Loop, Loop] | None:
    """Two nested loops that name one coordinate of a place."""
    for n, inner in enumerate(loops):
        taken = {"thread.x": ("thread.x", "warp", "lane"), "warp": ("warp", "thread.x"),
                 "lane": ("lane", "thread.x")}.get(inner.role, (inner.role,))
        outer = next((x for x in loops[:n] if inner.is_place and x.role in taken), None)
        if outer:
            return outer, inner
    return None


def _again(array: str, u: Use, x: Loop) -> Verdict:
    read = f"{array}[{', '.join(map(str, u.index()))}]"
    hint = f"inline('{array}') instead computes it where it is used; or a loop outside of {x.id}"
    if dict(u.leaf.when)[x.id].variables() & {d for e in u.access.index if isinstance(e, Expr) for d in e.variables()}:
        return no(f"elements of {array} may be needed in more than one iteration of {x.id}",
                  f"{u.leaf.id} uses {read}, which does not tell for all uses alike which iteration needs an element", hint)
    return no(f"elements of {array} are needed in more than one iteration of {x.id}",
              f"{u.leaf.id} uses {read}: they would have to be computed again", hint)


def without(nodes: tuple[Node, ...], leaf_id: str) -> tuple[Node, ...]:
    """The tree without a leaf, and without loops that hold no statement any more."""
    out: list[Node] = []
    for n in nodes:
        if n.id == leaf_id:
            continue
        if isinstance(n, Loop) and any(x.id == leaf_id for x, _ in leaves((n,))):
            n = replace(n, body=without(n.body, leaf_id))
            if not any(True for _ in leaves(n.body)):
                continue
        out.append(n)
    return tuple(out)
