"""Move a producer into the loop of its consumers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..ir.expr import Expr, var
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.program import Indirect
from ..ir.tree import Leaf, Loop, Node, leaves, ranges
from ._domain import wrapped
from ._nest import move_scopes
from ._uses import Use, common_loops, indirect_use, uses
from .base import Transform, get_leaf, get_loop


@dataclass(frozen=True)
class ComputeAt(Transform):
    """Let each iteration of a loop first compute what it reads of a temporary.

    The producer ``P[p]: T[p + c] = …`` leaves its nest.  Where a consumer in the loop reads ``T[f(q)]``, the axes of
    ``f`` that the new outer loops move take over the consumer's inner loops (names end in ``.p``), roles included;
    for the other axes, and for the producer's own reduced dimensions, its own loops come along.  Each element must
    be needed in one iteration only; otherwise it would have to be computed again, which is `inline`.

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
    aliases = ("fuse_at", "compute_with", "move_to", "reverse_compute_at")

    statement: str = field(metadata={"kind": "leaf", "help": "the producer: its statement, or the array it writes"})
    loop: str = field(metadata={"kind": "loop", "help": "the consumers' loop that it moves into"})

    def check(self, plan: Plan) -> Verdict:
        move = self._move(plan)
        return move if isinstance(move, Verdict) else YES

    def rewrite(self, plan: Plan) -> Plan:
        move = self._move(plan)
        assert not isinstance(move, Verdict)
        leaf, loops, used, dropped = move
        names = {x.id for x in loops}
        new = plan.map_bodies(lambda body: without(body, leaf.id))
        target = new.loops[self.loop]
        first = next(n for n, node in enumerate(target.body) if any(x.id in used for x, _ in leaves((node,))))
        body = (*target.body[:first], wrapped(loops, leaf), *target.body[first:])
        new = new.replace_node(target.id, replace(target, body=body))
        new = replace(new, kernels=tuple(k for k in new.kernels if k.body))
        return move_scopes(new, {x: self.loop for x in dropped if x not in names and x not in new.loops})

    def _move(self, plan: Plan) -> tuple[Leaf, tuple[Loop, ...], set[str], set[str]] | Verdict:
        """The moved leaf, the loops it needs inside, the leaves that use it, and the loops it leaves behind."""
        found, loop = get_leaf(plan, self.statement), get_loop(plan, self.loop)
        if isinstance(found, Verdict):
            return found
        if isinstance(loop, Verdict):
            return loop
        writers = [x for x in plan.leaves if plan.statement_of[x[0].statement].target.array == self.statement]
        leaf, above, _ = next(x for x in plan.leaves if x[0].id == found.id) if len(writers) != 1 else writers[0]
        hit = plan.find(loop.id)
        assert hit is not None
        path = (*hit[1], loop)
        statement = plan.statement_of[leaf.statement]
        array = statement.target.array
        if any(x.id == loop.id for x in above):
            return no(f"{leaf.id} already runs inside of {loop.id}")
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
        return leaf if isinstance(leaf, Verdict) else YES


def _hint(others: tuple[Use, ...]) -> str:
    loops = [x.id for x in common_loops([u.above for u in others])] if others else []
    return f"one of {', '.join(loops)}" if loops else ""


def _moved(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], path: tuple[Loop, ...],
           others: tuple[Use, ...]) -> tuple[Leaf, tuple[Loop, ...], set[str], set[str]] | Verdict:
    statement = plan.statement_of[leaf.statement]
    shared = common_loops([above, path])
    fresh_outer = path[len(shared):]
    own = above[len(shared):]
    axes = {}
    for axis, e in enumerate(statement.target.index):
        assert isinstance(e, Expr)
        if len(e.terms) == 1 and isinstance(e.terms[0][0], str) and e.terms[0][1] == 1:
            axes[axis] = (e.terms[0][0], e.const)
    outer: dict[str, Expr] = {}
    for u in others:
        known = _consumer_dims(u, axes)
        for x in fresh_outer:
            value = dict(u.leaf.when)[x.id]
            if not value.variables() <= known.keys():
                return _again(statement.target.array, u, x)
            mine = value.substitute(known)
            if outer.setdefault(x.id, mine) != mine:
                return _again(statement.target.array, u, x)
    first = others[0]
    known, index = _consumer_dims(first, axes), first.index()
    moving = {x.id for x in fresh_outer}
    tiled = {axes[axis][0]: index[axis] - axes[axis][1] for axis in axes if index[axis].variables() & moving}
    inner = tuple(x for x in first.above[len(path):] if any(x.id in e.variables() for e in tiled.values()))
    when_consumer, when_own, at_own = dict(first.leaf.when), dict(leaf.when), dict(leaf.at)
    if odd := next((x for x in inner if not when_consumer[x.id].variables() <= known.keys()), None):
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
    names = {x.id: plan.fresh(f"{x.id}.p") for x in inner}
    mine = {x.id: plan.fresh(f"{x.id}.p", frozenset(names.values())) if x.id in busy else x.id for x in kept}
    clones = tuple(replace(x, id=names[x.id], body=(), role="seq" if x.role == "vector" else x.role) for x in inner)
    loops = (*clones, *(replace(x, id=mine[x.id]) for x in kept))
    if (pair := _bound_twice((*path, *loops))) is not None:
        return no(f"{pair[0].id} and {pair[1].id} would be nested, and both are bound to {pair[1].role}",
                  hint=f"bind('{pair[1].id}', 'seq') first")
    scope = ranges((*path, *loops))
    values = {old: var(new) for old, new in names.items()}
    moved = {old: var(new) for old, new in mine.items() if old in busy}
    at = {d: tiled[d].substitute(values, scope) if d in tiled else at_own[d].substitute(moved, scope) for d in statement.dims}
    when = {x.id: when_own[x.id] for x in shared} | {mine[x.id]: when_own[x.id] for x in kept} | outer
    when |= {names[x.id]: when_consumer[x.id].substitute(known) for x in inner}
    old = {x: when_own[x].substitute(at, scope) for x in dropped} | moved
    views = tuple((s, replace(v, index=tuple(e.substitute(old, scope) for e in v.index),
                              element=tuple(e.substitute(old, scope) for e in v.element)))
                  for s, v in leaf.views)
    collect = tuple((mine.get(x, x), how) for x, how in leaf.collect)
    sums = tuple((e, v) for e, v in leaf.sums if not v.variables() & old.keys())
    new = replace(leaf, at=tuple(at.items()), when=tuple(sorted(when.items())), views=views, collect=collect, sums=sums)
    return new, loops, {u.leaf.id for u in others}, dropped


def _bound_twice(loops: tuple[Loop, ...]) -> tuple[Loop, Loop] | None:
    """Two nested loops that name one coordinate of a place."""
    for n, inner in enumerate(loops):
        taken = {"thread.x": ("thread.x", "warp", "lane"), "warp": ("warp", "thread.x"),
                 "lane": ("lane", "thread.x")}.get(inner.role, (inner.role,))
        outer = next((x for x in loops[:n] if inner.is_place and x.role in taken), None)
        if outer:
            return outer, inner
    return None


def _consumer_dims(u: Use, axes: dict[int, tuple[str, int]]) -> dict[str, Expr]:
    """Dimensions of a consumer that the element it uses determines, over the producer's dimensions."""
    out = {}
    for axis, e in enumerate(u.access.index):
        assert not isinstance(e, Indirect)
        if axis in axes and len(e.terms) == 1 and isinstance(e.terms[0][0], str) and e.terms[0][1] == 1:
            dim, shift = axes[axis]
            out[e.terms[0][0]] = var(dim) + (shift - e.const)
    return out


def _again(array: str, u: Use, x: Loop) -> Verdict:
    return no(f"elements of {array} are needed in more than one iteration of {x.id}",
              f"{u.leaf.id} uses {array}[{', '.join(map(str, u.index()))}]: they would have to be computed again",
              f"inline('{array}') computes it where it is used, or choose a loop outside of {x.id}")


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
