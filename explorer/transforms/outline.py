"""Give a statement's value a temporary of its own, from which another statement writes the result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.program import Access, Array, Program, Statement
from ..ir.scalar import Read
from ..ir.tree import Leaf
from ._domain import around, program_leaf, with_statements
from .base import Transform, no_leaf, unproposed


@dataclass(frozen=True)
class Outline(Transform):
    """Write a result in two steps: a statement writes a temporary, and a new one copies that into the array.

    ``y[f(p)] = v(p)`` becomes ``t[f(p)] = v(p)`` and ``y[f(p)] = t[f(p)]``, one behind the other at every point, so that each
    element gets the same value at the same time.  The copy then has loops of its own after `distribute`: with the temporary in
    shared memory (`contract`), threads that hold an element in their registers leave it there, and others write it to global
    memory, neighbours side by side.  `inline` is the way back.

    Before::

        for r in 0…32                                        # registers
            for t in 0…128                                   # thread.x
                S2: y[row(r, t), column(r, t)] = acc[r]

    After ``outline('S2')``::

        for r in 0…32
            for t in 0…128
                S2: y_t[row(r, t), column(r, t)] = acc[r]
                S2_store: y[row(r, t), column(r, t)] = y_t[row(r, t), column(r, t)]

    References
    ----------
    Chen et al., "TVM: An Automated End-to-End Optimizing Compiler for Deep Learning", OSDI 2018 (``cache_write``).
    """

    name = "outline"
    group = "Producers"
    aliases = ("cache_write", "buffer_result")
    elsewhere = {"TVM": "cache_write"}

    leaf: str = field(metadata={"kind": "leaf", "help": "the statement that writes the result"})

    def check(self, plan: Plan) -> Verdict:
        hit = plan.resolve(self.leaf)
        if hit is None:
            return no_leaf(plan, self.leaf)
        statement = plan.statement_of[hit[0].statement]
        if statement.name in {c.name for c in plan.copies}:
            return no(f"{statement.name} is a copy already", "a copy has no value of its own",
                      "outline the statement that it serves")
        if statement.update:
            return no(f"{statement.name} updates {statement.target.array}", "each of its terms would need a copy",
                      f"rfactor('{statement.name}', …) gives partial results a temporary")
        if not statement.target.affine:
            return no(f"{statement.name} writes {statement.target.array} at a data-dependent element")
        for leaf, _, _ in plan.leaves:
            if leaf.statement == statement.name and (leaf.view(len(statement.reads)) or leaf.mechanism != "plain"):
                return no(f"{leaf.id} does not write to global memory plainly", hint="do this before it is stored elsewhere")
        return YES

    def rewrite(self, plan: Plan) -> Plan:
        hit = plan.resolve(self.leaf)
        assert hit is not None
        statement = plan.statement_of[hit[0].statement]
        target = plan.array_of[statement.target.array]
        temporary = Array(plan.fresh(f"{target.name}_t"), target.dtype, target.shape, "temporary", target.given)
        index = statement.target.index
        copy = Statement(plan.fresh(f"{statement.name}_store"), statement.dims, statement.domain,
                         Access(target.name, index, "write"), Read(0), (Access(temporary.name, index),), origin="store",
                         line=statement.line)
        program = _with_copy(plan.program, statement, temporary, copy)

        def behind(leaf: Leaf) -> Leaf:
            name = leaf.id.replace(statement.name, copy.name, 1) if statement.name in leaf.id else f"{copy.name}.{leaf.id}"
            return Leaf(name, copy.name, leaf.at, leaf.when, sums=leaf.sums)

        new = replace(plan, program=program)
        for leaf, _, _ in plan.leaves:
            if leaf.statement == statement.name:
                new = new.replace_node(leaf.id, leaf, behind(leaf))
        return new

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Outline]:
        hit = plan.resolve(node_id)
        if hit is None or hit[0].id != node_id:
            return
        result = plan.array_of[plan.statement_of[hit[0].statement].target.array].role != "temporary"
        if result and (step := cls(node_id)).check(plan):
            yield step

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        hit = plan.resolve(node_id)
        if hit is None:
            return no_leaf(plan, node_id)
        target = plan.statement_of[hit[0].statement].target.array
        if (verdict := cls(node_id).check(plan)) and plan.array_of[target].role == "temporary":
            return unproposed(f"{hit[0].id} writes {target}, a temporary already",
                              "outline puts one between a statement and its result", f"contract('{target}', 'register')")
        return verdict


def _with_copy(program: Program, statement: Statement, temporary: Array, copy: Statement) -> Program:
    """The program in which a statement writes a temporary, and the copy stands right behind it."""
    leaf, _ = program_leaf(program, statement.name)
    listed = with_statements(program, statement.name, after=(copy,))
    retargeted = replace(statement, target=replace(statement.target, array=temporary.name))
    behind = Leaf(copy.name, copy.name, leaf.at, leaf.when)  # where the statement is: in parts of a loop, for one (running)
    return replace(listed, arrays=(*program.arrays, temporary), body=around(program.body, leaf.id, after=(behind,)),
                   statements=tuple(retargeted if s is statement else s for s in listed.statements))
