"""Take a maximum, and the sums of exponentials against it, as they run: one pass over parts (flash attention)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..ir.expr import Expr, Quotient, var
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.program import Statement
from ..ir.scalar import Scalar
from ..ir.tree import Loop
from ._running_parts import Chain, carried_on, chained, parts_of
from ._weights import Base, Weights, base_of, weights_of
from .base import Transform, no_leaf
from .rescale import exponential, value_text


@dataclass(frozen=True)
class Running(Transform):
    """Take a maximum part by part, and scale what was summed against it so far whenever it grows.

    Where ``m = max_k a_k``, values ``w_k`` are linear in ``exp(a_k - m)``, and sums ``s = Σ_k w_k``, and ``t`` are the iterations
    of a loop over parts of ``k``:

        m[0] = lowest,  m[t+1] = max(m[t], max_(k in t) a_k),  w_k = … exp(a_k - m[t+1])
        s[0] = 0,       s[t+1] = s[t] · exp(m[t] - m[t+1]) + Σ_(k in t) w_k,         s = s[T]

    Every array has one element for each part and one before the first; `contract` with ``fold`` keeps the last.  Once the loops
    over the parts are fused, the scores, the weights and the sums of one part are all that there is at a time: the online softmax
    of Milakov and Gimelshein (2018), and for two products around it the flash attention of Dao et al. (2022).

    *Obligation.*  By induction, ``s[t+1] = Σ_(k up to t) w_k · exp(m - m[t+1])``, with the ``w_k`` of before, for all real
    numbers; what has to be shown is that it holds for what floats hold.  The lowest finite number keeps ``m[t]`` finite where all
    values so far are -inf, whose weights are exp(-inf) = 0.  A NaN, or +inf, among the ``a`` makes the sums NaN, before and
    after.  -inf throughout makes them NaN before and 0 after; so where nothing but a quotient of two such sums is used, it is
    NaN both times.
    No exponential exceeds 1: the values of a part are among those of its maximum, which is why the maximum must be of the same
    values, and ``m`` only grows.  Rounding: one product for each part and sum.  Weights that are stored in a narrower type are
    rounded against the maximum so far, which is nearer to them than the last one.

    Where an element has no values beyond some part, a triangle's row for example, its parts end there: with the last part that
    any element has in the same iteration of the loops around it.

    Before::

        for i in 0…M
            for k in 0…N / 64
                for k.i in 0…64
                    peak[i] max= x[i, 64*k + k.i]
            for k_2 in 0…N / 64
                for k_2.i in 0…64
                    total[i] += exp(x[i, 64*k_2 + k_2.i] - peak[i])

    After ``running('peak', 'k')``::

        for i in 0…M
            for k in 0…N / 64
                peak_before[k, i] = peak_run[k, i]
                peak_run[k + 1, i] = peak_run[k, i]
                for k.i in 0…64
                    peak_run[k + 1, i] max= x[i, 64*k + k.i]
                peak_scale[k, i] = exp(peak_before[k, i] - peak_run[k + 1, i])
            for k_2 in 0…N / 64
                total_run[k_2 + 1, i] = total_run[k_2, i] * peak_scale[k_2, i]
                for k_2.i in 0…64
                    total_run[k_2 + 1, i] += exp(x[i, 64*k_2 + k_2.i] - peak_run[k_2 + 1, i])

    References
    ----------
    Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.
    Dao, Fu, Ermon, Rudra and Ré, "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness", NeurIPS 2022.
    """

    name = "running"
    group = "Reductions"
    aliases = ("flash_attention", "online", "streaming_softmax")

    statement: str = field(metadata={"kind": "leaf", "help": "the maximum: its statement, or the array it updates"})
    loop: str = field(metadata={"kind": "loop", "help": "loop around it whose iterations are the parts"})

    def check(self, plan: Plan) -> Verdict:
        chain = self._chain(plan)
        if isinstance(chain, Verdict):
            return chain
        refusal = carried_on(plan, chain)
        return YES if refusal is None else refusal

    def rewrite(self, plan: Plan) -> Plan:
        chain = self._chain(plan)
        assert isinstance(chain, Chain)
        return chained(plan, chain)

    def _chain(self, plan: Plan) -> Chain | Verdict:
        found = _found(plan, self.statement)
        if isinstance(found, Verdict):
            return found
        maximum = found.maximum
        leaf, above, _ = next(x for x in plan.leaves if x[0].statement == maximum.name)
        loop = next((x for x in above if x.id == self.loop), None)
        if loop is None:
            return no(f"{self.loop} is not a loop around {leaf.id}", hint=f"one of {', '.join(x.id for x in above)}")
        part = _part(dict(leaf.when)[loop.id], loop, maximum)
        if part is None:
            return no(f"the iterations of {loop.id} are not parts of one loop that carries {maximum.name}",
                      f"it is {dict(leaf.when)[loop.id]} there", "split such a loop, and take the outer one of both")
        return parts_of(plan, found, loop, *part)

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Running]:
        hit = plan.resolve(node_id)
        for loop in hit[1] if hit else ():
            step = cls(node_id, loop.id)
            if step.check(plan):
                yield step

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        found = _found(plan, node_id)
        return found if isinstance(found, Verdict) else YES


def _found(plan: Plan, name: str) -> Weights | Verdict:
    """What hangs on the maximum of this name."""
    hit = plan.resolve(name)
    if hit is None:
        return no_leaf(plan, name)
    m = plan.statement_of[hit[0].statement]
    if m.update != "max" or m.name not in plan.program.statement_of:
        return no(f"{name} is no maximum that one statement takes", "its sums are scaled by how far it has grown",
                  "rfactor for sums that hang on nothing")
    base = base_of(plan, m)
    shifted = {s.name: e for s in plan.program.statements if (e := exponential(s)) is not None}
    mine = {n: e for n, e in shifted.items() if plan.statement_of[n].reads[e[1]].array == m.target.array}
    for n, (a, slot) in mine.items():
        if (refusal := _other_values(m, base, plan.statement_of[n], a, slot)) is not None:
            return refusal
    return weights_of(plan, m, base, mine)


def _other_values(m: Statement, base: Base, s: Statement, a: Scalar, slot: int) -> Verdict | None:
    """A refusal where a statement does not raise e to the values of the maximum."""
    b = base.statement
    names = {d: var(e) for d, e in zip(b.dims, s.dims, strict=False)}
    index = tuple(e.substitute(base.at).substitute(names) if isinstance(e, Expr) else e for e in m.target.index)
    same = len(b.dims) == len(s.dims) and index == s.reads[slot].index and value_text(a, s, {}) == value_text(b.value, b, names)
    here = {(c.expr.substitute(names), c.equality) for c in b.domain}
    if not same or here != {(c.expr, c.equality) for c in s.domain}:
        return no(f"{b.name} is not the maximum of what {s.name} raises e to",
                  f"{s.name}: exp({value_text(a, s, {})} - …), {b.name}: max of {value_text(b.value, b, {})}",
                  "a sum could overflow")
    return None


def _part(when: Expr, loop: Loop, maximum: Statement) -> tuple[str, int] | None:
    """The dimension that a loop over parts runs through, and how many of its values are one part."""
    if loop.start or len(when.terms) != 1 or when.const or when.terms[0][1] != 1:
        return None
    atom = when.terms[0][0]
    e, by = (var(atom), 1) if isinstance(atom, str) else (atom.expr, atom.by) if isinstance(atom, Quotient) else (None, 0)
    fixed = {d for x in maximum.target.index if isinstance(x, Expr) for d in x.variables()}
    dim = next((d for d in maximum.dims if e == var(d) and d not in fixed), None)
    return (dim, by) if dim else None
