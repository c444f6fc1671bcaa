"""Give each part of a sum of exponentials a shift of its own: the running (max, sum) form of softmax."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ..ir.expr import Expr, var
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.program import Access, Program, Statement
from ..ir.scalar import Call, IndexValue, Literal, Read, Scalar, rebuild, walk
from ..ir.tree import Leaf
from ..poly.dependence import analyse
from ..poly.isl import Relation
from ..poly.relations import access
from ._reduction import Updates
from ._weights import EXPONENTIALS
from .base import Transform
from .rfactor import Rfactor, factor_verdict, factored


@dataclass(frozen=True)
class Rescale(Transform):
    """Sum ``exp(a - m)`` in parts that do not wait for the maximum ``m``: each is shifted by the maximum of its own part.

    For a sum ``s = Σ_k exp(a_k - m)`` and parts ``p`` of its loops, with ``m_p`` the maximum of part ``p`` (from `rfactor`
    of the maximum over parts that are the same) and ``c_p = max(m_p, lowest)``:

        s = Σ_p s_p · exp(c_p - m),    s_p = Σ_(k in p) exp(a_k - c_p)

    *Obligation.*  ``exp(a - c) · exp(c - m) = exp(a - m)`` holds for all real numbers; what has to be shown is that it does
    for what floats hold.  The lowest finite number keeps ``c_p`` finite where a part is -inf throughout or empty: its terms
    are exp(-inf) = 0, as before.  A NaN, or +inf, among the ``a`` makes the sum NaN, before and after; so does -inf
    throughout (before: exp(-inf - -inf); after: 0 · exp(lowest - -inf) = 0 · inf).  Neither exponential exceeds 1, since
    ``a_k <= c_p``, which is why the maximum must be of the same values over the same parts, and ``c_p <= m``; so nothing
    overflows.  Rounding: one product and one exponential more for each part; terms below the smallest normal number times
    the part's sum may be lost.

    This is the algebra of the online softmax (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018): one
    pass over the data once the loops over the parts are fused.

    Before::

        for i in 0…M
            for k in 0…N / 64
                for k.i in 0…64
                    peak_p[i, k] max= x[i, 64*k + k.i]
            for k.c in 0…N / 64
                peak[i] max= peak_p[i, k.c]
            for k_2 in 0…N / 64
                for k_2.i in 0…64
                    total[i] += exp(x[i, 64*k_2 + k_2.i] - peak[i])

    After ``rescale('total', 'k_2')``::

        for i in 0…M
            …
            for k_2 in 0…N / 64
                for k_2.i in 0…64
                    total_p[i, k_2] += exp(x[i, 64*k_2 + k_2.i] - max(peak_p[i, k_2], lowest))
            for k_2.c in 0…N / 64
                total[i] += total_p[i, k_2.c] * exp(max(peak_p[i, k_2.c], lowest) - peak[i])
    """

    name = "rescale"
    group = "Reductions"
    aliases = ("online_softmax", "running_max", "online_normalizer")

    statement: str = field(metadata={"kind": "leaf", "help": "the sum of exponentials: its statement, or the array it updates"})
    loop: str | tuple[str, ...] = field(metadata={"kind": "loops", "help": "loops whose iterations are the parts"})

    def check(self, plan: Plan) -> Verdict:
        found = self._pattern(plan)
        if isinstance(found, Verdict):
            return found
        new = self._rescaled(plan, *found)
        return _same_peak(plan.program, new.program, *found)

    def rewrite(self, plan: Plan) -> Plan:
        found = self._pattern(plan)
        assert not isinstance(found, Verdict)
        return self._rescaled(plan, *found)

    def _pattern(self, plan: Plan) -> tuple[Updates, int, str] | Verdict:
        """The sum with its parts, the slot that reads the maximum, and the array of the parts' maxima."""
        u = Rfactor(self.statement, self.loop).updates(plan)
        if isinstance(u, Verdict):
            return u
        if not (verdict := factor_verdict(u)):
            return verdict
        s = u.statement
        shifted = exponential(s)
        if s.update != "sum" or shifted is None:
            return no(f"{s.name} is no sum of exponentials", f"{s.text or s.name}: its value is not exp(a - m), with m read once",
                      "write the exponent as a difference, total += exp(x[i, k] - peak)")
        a, slot = shifted
        peak = s.reads[slot]
        if not all(isinstance(e, Expr) and e.variables() <= u.dims for e in peak.index):
            return no(f"{peak.array} is not one value for each element of {s.target.array}",
                      f"{s.name} reads {peak.array}[{', '.join(map(str, peak.index))}]")
        if u.leaf.view(slot):
            return no(f"{peak.array} has storage already", hint=f"rescale before {peak.array} is contracted")
        parts = _parts_of(plan, peak.array)
        if isinstance(parts, Verdict):
            return replace(parts, hint=parts.hint or f"rfactor('{peak.array}', '…') first, over the loop that is like "
                           f"{u.factored[-1].id}")
        refusal = _other_parts(u, a, peak, parts)
        return refusal if refusal is not None else (u, slot, parts.target.array)

    def _rescaled(self, plan: Plan, u: Updates, slot: int, parts: str) -> Plan:
        made = factored(u)
        new, s = made.plan, made.plan.program.statement_of[u.statement.name]
        last = new.program.statement_of[made.combine]
        peak = s.reads[slot]
        shared = Access(parts, (*peak.index, *u.part()))
        lowest = Literal(float(np.finfo(new.program.array_of[parts].dtype.numpy).min), new.program.array_of[parts].dtype)

        def shifted(node: Scalar) -> Scalar | None:
            return Call("max", (node, lowest)) if node == Read(slot) else None

        changed = replace(s, reads=(*s.reads[:slot], shared, *s.reads[slot + 1 :]), value=rebuild(s.value, shifted))
        where = _element(s, last)
        here = tuple(e.substitute(where) for e in peak.index if isinstance(e, Expr))
        op = next(n.op for n in walk(s.value) if isinstance(n, Call) and n.op in EXPONENTIALS)
        z = last.reads[0].index[len(last.target.index) :]
        factor = Call(op, (Call("sub", (Call("max", (Read(1), lowest)), Read(2))),))
        joined = replace(last, reads=(last.reads[0], Access(parts, (*here, *z)), Access(peak.array, here)),
                         value=Call("mul", (Read(0), factor)))
        changes = {s.name: changed, last.name: joined}
        program = replace(new.program, statements=tuple(changes.get(x.name, x) for x in new.program.statements))

        def moved(leaf: Leaf) -> Leaf:
            views = tuple((3 if n == 1 else n, v) for n, v in leaf.views) if leaf.statement == last.name else leaf.views
            return replace(leaf, views=views)

        return replace(new, program=program).map_leaves(moved)

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Rescale]:
        hit = plan.resolve(node_id)
        names = [x.id for x in hit[1]] if hit else []
        for name in names:
            step = cls(node_id, name)
            if step.check(plan):
                yield step

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        hit = plan.resolve(node_id)
        s = plan.statement_of[hit[0].statement] if hit else None
        if s is None or s.update != "sum" or exponential(s) is None:
            found = [leaf.id for leaf, _, _ in plan.leaves if (e := plan.statement_of[leaf.statement]).update == "sum"
                     and exponential(e) is not None]
            return no(f"{node_id} is no sum of exponentials of a difference",
                      "rescale takes t += exp(a - m), with m the maximum of its row",
                      f"select {' or '.join(found)}" if found else "")
        if hit and hit[1] and not next(cls.candidates(plan, node_id), None):
            return cls(node_id, hit[1][-1].id).check(plan)
        return YES


def exponential(s: Statement) -> tuple[Scalar, int] | None:
    """``a`` and the slot of ``m`` where the value is exp(a - m), or a product with it whose other factors do not read m."""
    found = [n for n in walk(s.value) if isinstance(n, Call) and n.op in EXPONENTIALS]
    node = s.value
    while isinstance(node, Call) and node.op == "mul" and len(found) == 1:
        node = next((x for x in node.args if any(n is found[0] for n in walk(x))), node.args[0])
    if len(found) != 1 or node is not found[0]:
        return None
    (difference,) = found[0].args
    if not isinstance(difference, Call) or difference.op != "sub" or not isinstance(difference.args[1], Read):
        return None
    slot = difference.args[1].slot
    once = sum(isinstance(n, Read) and n.slot == slot for n in walk(s.value)) == 1
    return (difference.args[0], slot) if once else None


def _parts_of(plan: Plan, peak: str) -> Statement | Verdict:
    """The statement that makes the partial maxima of an array, which another joins."""
    updates = [s for s in plan.program.statements if s.target.array == peak and s.update]
    if len(updates) != 1 or updates[0].update != "max":
        return no(f"{peak} is not the maximum that one statement makes")
    if updates[0].origin != "combine" or updates[0].value != Read(0):
        return no(f"{peak} is taken over all of its row at once", "the parts of the sum need maxima of their own")
    made = [s for s in plan.program.statements if s.target.array == updates[0].reads[0].array and s.update == "max"]
    return made[0] if len(made) == 1 else no(f"the partial maxima of {peak} are not made by one statement")


def _other_parts(u: Updates, a: Scalar, peak: Access, m: Statement) -> Verdict | None:
    """A refusal where the maxima are not of the exponents of the same parts."""
    s = u.statement
    if len(m.dims) != len(s.dims):
        return no(f"{m.name} does not run over the loops of {s.name}", "maxima of other values could let sums overflow")
    names = {d: var(e) for d, e in zip(s.dims, m.dims, strict=True)}
    if value_text(a, s, names) != value_text(m.value, m, {}):
        return no(f"{m.name} is not the maximum of what {s.name} raises e to",
                  f"{s.name}: exp({value_text(a, s, {})} - …), {m.name}: max of {value_text(m.value, m, {})}",
                  "a part's sum could overflow")
    here = {(c.expr.substitute(names), c.equality) for c in s.domain}
    if here != {(c.expr, c.equality) for c in m.domain}:
        return no(f"{m.name} and {s.name} do not run over the same domain")
    part = tuple(e.substitute(names) for e in u.part())
    if m.target.index[len(m.target.index) - len(part) :] != part:
        return no(f"the parts of {m.name} are not those of {s.name}",
                  f"{s.name} is in part {', '.join(map(str, part))}, {m.name} in {', '.join(map(str, m.target.index))}",
                  "split the loops of both alike")
    if m.target.index != (*(e.substitute(names) for e in peak.index if isinstance(e, Expr)), *part):
        return no(f"{s.name} reads {peak.array}[{', '.join(map(str, peak.index))}], and {m.name} makes parts of other elements",
                  f"{m.name} writes {m.target.array}[{', '.join(map(str, m.target.index))}]",
                  f"rescale before {peak.array} is replicated or rearranged")
    return None


def value_text(value: Scalar, s: Statement, names: Mapping[str, Expr]) -> str:
    """A value with its reads written out, dimensions renamed."""
    def named(node: Scalar) -> str:
        if isinstance(node, Read):
            r = s.reads[node.slot]
            index = ", ".join(str(e.substitute(names)) if isinstance(e, Expr) else "?" for e in r.index)
            return f"{r.array}[{index}]"
        if isinstance(node, IndexValue):
            return str(node.expr.substitute(names))
        if isinstance(node, Call):
            return f"{node.op}({', '.join(map(named, node.args))})"
        return str(node.value) if isinstance(node, Literal) else f"{node.dtype.name}({named(node.arg)})"

    return named(value)


def _element(s: Statement, last: Statement) -> dict[str, Expr]:
    """The sum's dimensions that its element determines, over the dimensions of the statement that joins the parts."""
    out: dict[str, Expr] = {}
    for mine, there in zip(s.target.index, last.target.index, strict=False):
        if isinstance(mine, Expr) and isinstance(there, Expr) and len(mine.terms) == 1 and mine.terms[0][1] == 1:
            out[str(mine.terms[0][0])] = there - mine.const
    return out


def _same_peak(old: Program, new: Program, u: Updates, slot: int, parts: str) -> Verdict:
    """Whether the joining statement reads the maximum that every term was shifted by: element by element, one supplier."""
    s = u.statement
    last = next(x for x in new.statements if x.origin == "combine" and x.target.array == s.target.array
                and any(r.array == parts for r in x.reads))
    peak = s.reads[slot].array

    def suppliers(program: Program, reader: Statement, place: int) -> dict[str, Relation]:
        target = access(reader, len(reader.reads), program.array_of[reader.target.array])
        return {f.source: f.relation.apply_range(target) for f in analyse(program).flow
                if (f.sink, f.slot) == (reader.name, place)}

    before, after = suppliers(old, s, slot), suppliers(new, last, 2)
    if before.keys() != after.keys() or not all(before[k].is_equal(after[k]) for k in before):
        return no(f"{peak} changes between {s.name} and where the parts are joined",
                  "the parts would be scaled to another maximum than the terms were")
    return YES
