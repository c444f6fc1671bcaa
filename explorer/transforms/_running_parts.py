"""The statements of running maxima and sums: what carries them from part to part, and where these statements stand."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..ir.expr import Expr, Quotient, quotient, remainder, var
from ..ir.finding import Verdict, no
from ..ir.plan import Plan
from ..ir.program import Access, Array, Constraint, Program, Statement
from ..ir.scalar import Call, Literal, Read, walk
from ..ir.tree import Leaf, Loop, Node, find, leaves, ranges, retime
from ..poly.relations import same_elements
from ._domain import around, bounds, dim_ranges, program_leaf, project
from ._weights import EXPONENTIALS, Weights, axes


@dataclass(frozen=True)
class Part:
    """Parts of one update.

    Attributes
    ----------
    statement : Statement
    leaf : Leaf
    above : tuple of Loop
    loop : Loop
        The one of these whose iterations are the parts.
    dim : str
        The dimension that the parts are of.
    size : int
        How many of its values are one.
    last : Expr or None
        ``last // Chain.size`` is an element's last part, over its dimensions; None where all elements have all parts.
    element : tuple of Expr
        The element of the maximum, over this statement's dimensions.
    """

    statement: Statement
    leaf: Leaf
    above: tuple[Loop, ...]
    loop: Loop
    dim: str
    size: int
    last: Expr | None
    element: tuple[Expr, ...]

    @property
    def dims(self) -> tuple[str, ...]:
        """The dimensions that are indices of the target."""
        plain = axes(self.statement.target)
        return tuple(d for d in self.statement.dims if d in plain)


@dataclass(frozen=True)
class Chain:
    """A maximum and its sums in parts.

    Attributes
    ----------
    weights : Weights
    maximum : Part
    sums : tuple of Part
    size : int
        How many values of those that the maximum is taken of are one part.
    count : int
        The most parts of an element.
    """

    weights: Weights
    maximum: Part
    sums: tuple[Part, ...]
    size: int
    count: int


def parts_of(plan: Plan, weights: Weights, loop: Loop, dim: str, size: int) -> Chain | Verdict:
    """The parts of a maximum, and of all sums that hang on it, or why they cannot be carried from one to the next.

    Parameters
    ----------
    plan : Plan
    weights : Weights
    loop : Loop
        Around the maximum; its iterations are parts of `size` values of the dimension `dim`.
    """
    m = weights.maximum
    stored = {v.buffer for leaf, _, _ in plan.leaves for slot, v in leaf.views
              if plan.statement_of[leaf.statement].accesses[slot].array in {m.target.array, *weights.starts}}
    if stored:
        return no(f"{', '.join(sorted(stored))} has storage already", "each part gets an element of its own",
                  "contract arrays after this, with fold")
    above = next(above for leaf, above, _ in plan.leaves if leaf.statement == m.name)
    values = _parts(weights.base.at[dim], size)
    if values is None:
        return no(f"{weights.base.at[dim]} is not one loop in parts")
    last = _last(plan, weights, above[: above.index(loop)], values[0], loop.extent * values[1])
    found = list[Part]()
    for s in (m, *weights.sums):
        part = _part(plan, weights, s, dim, size, last)
        if isinstance(part, Verdict):
            return part
        found.append(part)
    return Chain(weights, found[0], tuple(found[1:]), values[1], loop.extent)


def _parts(e: Expr, size: int) -> tuple[str, int] | None:
    """The variable and the number of its values in a part, if an expression is a variable, or parts of one."""
    if len(e.terms) != 1 or e.const or e.terms[0][1] != 1:
        return None
    atom = e.terms[0][0]
    if isinstance(atom, str):
        return atom, size
    plain = isinstance(atom, Quotient) and len(atom.expr.terms) == 1 and atom.expr == var(str(atom.expr.terms[0][0]))
    return (str(atom.expr.terms[0][0]), atom.by * size) if plain else None


def _last(plan: Plan, weights: Weights, outside: tuple[Loop, ...], dim: str, end: int) -> Expr | None:
    """The last value that any element has in an iteration of the loops outside, over the maximum's dimensions.

    None where no element ends before another one, or where that value would be of a part that there is not, behind the `end`:
    then every element has all parts, of which some add nothing.
    """
    base = weights.base.statement
    leaf, above = next((leaf, above) for leaf, above, _ in plan.leaves if leaf.statement == base.name)
    kept = {x.id for x in outside if x.is_block or not x.is_place} & {x.id for x in above}
    scope, when = ranges(above), dict(leaf.when)
    back = {e.terms[0][0]: var(d) for d, e in weights.base.at.items() if len(e.terms) == 1 and e == var(str(e.terms[0][0]))}
    names = {str(old): new for old, new in back.items()}
    for c in base.domain:
        e = c.expr + var(dim)
        if c.equality or c.expr.coefficient(dim) != -1 or dim in e.variables() or not e.variables() or (
                not e.variables() <= names.keys()):
            continue
        here = e.substitute(dict(leaf.at), scope)
        fixed = Expr(tuple((a, n) for a, n in here.terms if Expr(((a, 1),)).variables() <= kept))
        rest = Expr(tuple(t for t in here.terms if t not in fixed.terms), here.const)
        high = fixed + rest.interval(scope)[1]
        if high.interval(scope)[1] >= end:
            return None
        return high.substitute({x: when[x] for x in kept}).substitute(names)
    return None


def _part(plan: Plan, weights: Weights, s: Statement, dim: str, size: int, last: Expr | None) -> Part | Verdict:
    where = weights.where.get(s.name) or {d: var(d) for d in s.dims}
    values, found = _parts(where[dim], size), [(leaf, above) for leaf, above, _ in plan.leaves if leaf.statement == s.name]
    if values is None or len(found) != 1:
        return no(f"{s.name} does not go through the values of {weights.maximum.target.array} in one loop",
                  f"it takes value {where[dim]}", "do this before cut or pipeline")
    (mine, size), (leaf, above) = values, found[0]
    wanted = quotient(var(mine), size)
    loop = next((x for x in above if dict(leaf.when)[x.id] == wanted and not x.start), None)
    if loop is None or loop.role not in ("seq", "unroll"):
        return no(f"no loop of {s.name} runs through parts of {size} values of {mine} one after the other",
                  f"its loops are {', '.join(x.id for x in above)}", f"split('{mine}', {size})")
    element = tuple(x.substitute(where) for x in weights.maximum.target.index if isinstance(x, Expr))
    part = Part(s, leaf, above, loop, mine, size, last.substitute(where) if last is not None else None, element)
    free = set(part.dims)
    _, around_it = program_leaf(plan.program, s.name)
    outer = [x.id for x in around_it]
    if mine not in outer or {*outer[: outer.index(mine)]} != free:
        return no(f"{mine} is not the outermost of the loops that sum one element of {s.target.array} in the program",
                  f"{s.name} stands in {', '.join(outer)}", f"write the loop over {mine} inside of those over the elements")
    hidden = [x.id for x in above[: above.index(loop)] if not dict(leaf.when)[x.id].variables() <= free]
    if hidden or not frozenset[str]().union(*(x.variables() for x in element)) <= free:
        return no(f"{hidden[0] if hidden else mine} carries {s.name}, too, outside of {loop.id}",
                  "the sum so far is scaled once for each part", f"reorder so that {loop.id} is the outermost of these")
    return part


def chained(plan: Plan, chain: Chain) -> Plan:
    """The plan that takes the maximum and its sums part by part."""
    return _Rewrite(plan, chain).plan


def carried_on(plan: Plan, chain: Chain) -> Verdict | None:
    """A refusal where an element that is started has no part: nothing would carry its start to where it is read."""
    program = chained(plan, chain).program
    starts = {chain.weights.maximum.target.array: chain.weights.start.name, **chain.weights.starts}
    for part in (chain.maximum, *chain.sums):
        start = program.statement_of[starts[part.statement.target.array]]
        carry = next(s for s in program.statements if s.origin == "carry" and s.target.array == start.target.array)
        at, *element = carry.target.index
        assert isinstance(at, Expr)
        first = replace(carry, domain=(*carry.domain, Constraint(at - 1, True)), target=Access(carry.target.array, (
            Expr(), *element), "write"))
        if not same_elements(start, first, program.array_of[start.target.array]):
            return no(f"not every element that {start.name} starts has values in {part.statement.name}",
                      f"what it starts in {part.statement.target.array} would not be carried to the end",
                      "start the elements that are summed")
    return None


class _Rewrite:
    """The rewriting of one chain; `plan` is the result."""

    def __init__(self, plan: Plan, chain: Chain) -> None:
        self.chain, self.plan = chain, plan
        self.split: set[str] = set()
        weights, peak = chain.weights, chain.weights.maximum.target.array
        updated = [p.statement.target.array for p in (chain.maximum, *chain.sums)]
        self.run = {name: self._array(name, "run", 1) for name in updated}
        self.before, self.scale = self._array(peak, "before"), self._array(peak, "scale")
        for part in (chain.maximum, *chain.sums):
            self._carry(part)
        dtype = plan.array_of[peak].dtype
        lowest = Literal(float(np.finfo(dtype.numpy).min), dtype)
        starts = {weights.start.name, *weights.starts.values()}
        changed = {s.name: self._changed(s, starts, lowest) for s in plan.program.statements}
        program = self.plan.program
        statements = tuple(changed.get(s.name, s) for s in program.statements)
        arrays = tuple(a for a in program.arrays if a.name not in self.run)
        self.plan = replace(self.plan, program=replace(program, statements=statements, arrays=arrays))

    def _array(self, like: str, suffix: str, more: int = 0) -> str:
        """A temporary with an axis for the parts."""
        old = self.plan.array_of[like]
        name = self.plan.fresh(f"{like}_{suffix}")
        new = Array(name, old.dtype, (self.chain.count + more, *old.shape), "temporary")
        self.plan = replace(self.plan, program=replace(self.plan.program, arrays=(*self.plan.program.arrays, new)))
        return name

    def _changed(self, s: Statement, starts: set[str], lowest: Literal) -> Statement:
        """A statement of before with its accesses of the arrays that have parts now."""
        chain, weights = self.chain, self.chain.weights
        peak = weights.maximum.target.array
        if s.name in starts:
            value = lowest if s.name == weights.start.name else s.value
            target = replace(s.target, array=self.run[s.target.array], index=(Expr(), *s.target.index))
            return replace(s, value=value, target=target)
        mine = next((p for p in (chain.maximum, *chain.sums) if p.statement.name == s.name), None)
        reads = list(s.reads)
        for slot, r in enumerate(s.reads):
            if r.array == peak:
                dim = weights.where[s.name][chain.maximum.dim]
                reads[slot] = Access(self.run[peak], (quotient(dim, chain.maximum.size) + 1, *r.index), r.kind)
            elif r.array in self.run:
                reads[slot] = Access(self.run[r.array], (self._count(r), *r.index), r.kind)
        target = s.target
        if mine is not None:
            target = replace(target, array=self.run[target.array], index=(quotient(var(mine.dim), mine.size) + 1, *target.index))
        domain = s.domain
        if mine is not None and mine is chain.maximum and mine.last is not None and weights.base.statement is not weights.maximum:
            domain = (*domain, Constraint(mine.last - var(mine.dim) * chain.size))  # further parts have no values
        return replace(s, reads=tuple(reads), target=target, domain=domain)

    def _count(self, read: Access) -> Expr:
        """How many parts the element has that something reads."""
        part = next(p for p in self.chain.sums if p.statement.target.array == read.array)
        if part.last is None:
            return Expr((), self.chain.count)
        at: dict[str, Expr] = {}
        for d, (axis, offset) in axes(part.statement.target).items():
            e = read.index[axis]
            assert isinstance(e, Expr)
            at[d] = e - offset
        return quotient(part.last.substitute(at), self.chain.size) + 1

    def _carry(self, part: Part) -> None:
        """The statements that begin a part with what the parts before it have left, and for the maximum how far it has grown."""
        s, chain = part.statement, self.chain
        t = self.plan.fresh(f"{part.dim}.t", frozenset(d for x in self.plan.program.statements for d in x.dims))
        name, now = self.run[s.target.array], var(t)
        known, extra, index = dim_ranges(s), dict[str, int](), list[Expr]()
        for axis, e in enumerate(s.target.index):
            assert isinstance(e, Expr)
            if e.variables() <= set(part.dims):
                index.append(e)
                continue
            low, high = e.interval(known)
            z = self.plan.fresh(f"{s.target.array}.{axis}")
            extra[z] = high - low + 1
            index.append(var(z) + low)
        domain = [*project(s.domain, [d for d in s.dims if d not in part.dims]), *bounds(t, 0, chain.count)]
        if part.last is not None:
            domain.append(Constraint(part.last - now * chain.size))
        domain += [c for z, n in extra.items() for c in bounds(z, 0, n)]
        dims = (*part.dims, t, *extra)

        def made(tag: str, array: str, at: Expr, value: Call | Read, *reads: Access) -> Statement:
            return Statement(self.plan.fresh(f"{s.name}_{tag}"), dims, tuple(domain), Access(array, (at, *index), "write"), value,
                             reads, origin="carry", line=s.line)

        so_far = Access(name, (now, *index))
        if part is chain.maximum:
            op = next(n.op for x in chain.weights.shifted for n in walk(self.plan.statement_of[x].value)
                      if isinstance(n, Call) and n.op in EXPONENTIALS)
            grown = Call(op, (Call("sub", (Read(0), Read(1))),))
            first = (made("before", self.before, now, Read(0), so_far), made("start", name, now + 1, Read(0), so_far))
            last = (made("scale", self.scale, now, grown, Access(self.before, (now, *index)), Access(name, (now + 1, *index))),)
        else:
            scale = Access(self.scale, (now, *part.element))
            first, last = (made("start", name, now + 1, Call("mul", (Read(0), Read(1))), so_far, scale),), ()
        self._placed(part, t, extra, first, last)

    def _placed(self, part: Part, t: str, extra: dict[str, int], first: tuple[Statement, ...],
                last: tuple[Statement, ...]) -> None:
        """The statements in the program, and in the plan: at the begin and the end of the loop over the parts."""
        s, program = part.statement, self.plan.program
        at = {**{d: var(d) for d in part.dims}, t: var(part.dim)}
        body = _split(program, part, self.chain.count) if part.dim not in self.split else program.body
        self.split.add(part.dim)
        loops = tuple(Loop(z, n, ()) for z, n in extra.items())
        same = {z: var(z) for z in extra}
        own = Leaf("", "", tuple({**at, **same}.items()), ((part.dim, var(t)), *same.items()))
        hit = find(body, part.dim)
        assert hit is not None
        assert isinstance(hit[0], Loop)
        body = around(body, _child(hit[0], s.name), _nest(loops, own, first), _nest(loops, own, last))
        n = next(n for n, x in enumerate(program.statements) if x.name == s.name)
        listed = (*program.statements[:n], *first, program.statements[n], *last, *program.statements[n + 1:])
        plan = replace(self.plan, program=replace(program, statements=listed, body=body))

        hit = plan.find(part.loop.id)
        assert hit is not None
        assert isinstance(hit[0], Loop)
        child = _child(hit[0], s.name)
        self.plan = plan.replace_node(part.loop.id, replace(hit[0], extent=self.chain.count))
        for before, statements in ((True, first), (False, last)):
            nest = self._nest(part, t, extra, statements)
            self.plan = self.plan.map_bodies(lambda nodes, at=before, new=nest: (  # type: ignore[misc]
                around(nodes, child, new if at else (), () if at else new)))

    def _nest(self, part: Part, t: str, extra: dict[str, int], statements: tuple[Statement, ...]) -> tuple[Node, ...]:
        """A nest of the plan for statements that run once for each element and part."""
        plan, when, depth = self.plan, dict(part.leaf.when), part.above.index(part.loop)
        names: dict[str, str] = {}
        inner = list[Loop]()
        for x in part.above[depth + 1:]:
            if when[x.id].variables() <= set(part.dims):
                names[x.id] = plan.fresh(f"{x.id}.t", frozenset(names.values()))
                inner.append(replace(x, id=names[x.id], body=(), role="unroll" if x.role == "vector" else x.role))
        new = {old: var(name) for old, name in names.items()}
        places = {d: dict(part.leaf.at)[d].substitute(new, ranges(part.above)) for d in part.dims}
        values = {names.get(x.id, x.id): when[x.id] for x in (*part.above[:depth], *(x for x in part.above if x.id in names))}
        zs = {z: plan.fresh(f"{z}.l") for z in extra}
        leaf = Leaf("", "", tuple({**places, t: var(part.loop.id), **{z: var(name) for z, name in zs.items()}}.items()),
                    tuple(sorted({**values, part.loop.id: var(t), **{name: var(z) for z, name in zs.items()}}.items())))
        return _nest((*inner, *(Loop(zs[z], n, ()) for z, n in extra.items())), leaf, statements)


def _split(program: Program, part: Part, count: int) -> tuple[Node, ...]:
    """The program as written with its loop over a dimension in parts."""
    hit, dim = find(program.body, part.dim), part.dim
    assert hit is not None
    loop, above = hit
    assert isinstance(loop, Loop)
    if part.size == 1:
        return _replaced(program.body, replace(loop, extent=count))
    inner = f"{dim}.i"
    scope = {**ranges(above), dim: (0, count - 1), inner: (0, part.size - 1)}
    body = retime(loop.body, {dim: var(dim) * part.size + var(inner)},
                  {dim: quotient(var(dim), part.size), inner: remainder(var(dim), part.size)}, scope)
    return _replaced(program.body, replace(loop, extent=count, body=(Loop(inner, part.size, body),)))


def _replaced(nodes: tuple[Node, ...], loop: Loop) -> tuple[Node, ...]:
    out: list[Node] = []
    for n in nodes:
        out.append(loop if n.id == loop.id else replace(n, body=_replaced(n.body, loop)) if isinstance(n, Loop) else n)
    return tuple(out)


def _child(loop: Loop, statement: str) -> str:
    """The node in a loop's body that holds a statement."""
    return next(n.id for n in loop.body if any(leaf.statement == statement for leaf, _ in leaves((n,))))


def _nest(loops: tuple[Loop, ...], leaf: Leaf, statements: tuple[Statement, ...]) -> tuple[Node, ...]:
    """One nest of these loops around all of these statements; nothing where there are none."""
    nodes: tuple[Node, ...] = tuple(replace(leaf, id=x.name, statement=x.name) for x in statements)
    for loop in reversed(loops if nodes else ()):
        nodes = (replace(loop, body=nodes),)
    return nodes
