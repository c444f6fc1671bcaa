"""Compute a value where it is used, instead of reading it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from ..ir.expr import Expr
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.program import Access, Array, Program, Statement
from ..ir.scalar import Cast, Read, Scalar, rebuild, type_of
from ..ir.tree import Leaf, Node, View
from ..poly.dependence import Flow, analyse
from ..poly.isl import Relation
from ._domain import program_leaf
from ._uses import array_verdict, no_temporary, uses, without_unused
from ._value_parts import in_slots, renumbered, without_returns
from .base import Transform
from .compute_at import without

ROLES = ("temporary", "out")
"""Arrays that only the program writes."""


@dataclass(frozen=True)
class Inline(Transform):
    """Substitute an array's definition for its reads; it is computed again wherever it is used.

    For ``T[p] = v(p)``, every read ``T[f(q)]`` becomes ``v(f(q))``.  Exact when each value that `v` reads is still
    the one it read before: the value flow into the new reads must be the old flow, composed.  A temporary is not stored any more;
    a result of the program still is, and its readers need not wait for it.

    Before::

        for k_2 in 0…N
            e[i, k_2] = exp(x[i, k_2] - peak)
        for k_3 in 0…N
            total += e[i, k_3]

    After ``inline('e')``::

        for k_3 in 0…N
            total += exp(x[i, k_3] - peak)
    """

    name = "inline"
    group = "Producers"
    aliases = ("compute_inline", "recompute", "inline_assign", "assignment_to_subst", "rematerialize")
    elsewhere = {"Halide": "compute_inline", "TVM": "compute_inline", "Exo": "inline_assign"}

    array: str = field(metadata={"kind": "array", "help": "the temporary, or a result that other statements read"})

    def check(self, plan: Plan) -> Verdict:
        if self.array not in plan.array_of or plan.array_of[self.array].role not in ROLES:
            refusal = array_verdict(plan, self.array, temporary=True)
            assert refusal is not None
            return refusal
        made = self._substituted(plan)
        if isinstance(made, Verdict):
            return made
        writer, changed, program = made
        if (refusal := _views_stay(plan, self.array, writer, changed)) is not None:
            return refusal
        return _flow_kept(plan.program, program, self.array, writer, changed)

    def rewrite(self, plan: Plan) -> Plan:
        made = self._substituted(plan)
        assert not isinstance(made, Verdict)
        writer, changed, program = made
        carried = dict(next(leaf for leaf, _, _ in plan.leaves if leaf.statement == writer.name).views)

        def moved(leaf: Leaf) -> Leaf:
            c = changed.get(leaf.statement)
            if c is None:
                return leaf
            views: dict[int, View] = {new: carried[old] for (_, old), new in c.from_writer.items() if old in carried}
            views |= {c.kept[s]: v for s, v in leaf.views if s in c.kept}
            return replace(leaf, views=tuple(sorted(views.items(), key=lambda t: t[0])))

        new = replace(plan, program=program).map_leaves(moved)
        if plan.array_of[self.array].role != "temporary":
            return new
        for leaf in [leaf.id for leaf, _, _ in plan.leaves if leaf.statement == writer.name]:
            new = new.map_bodies(lambda body, leaf=leaf: without(body, leaf))
        return without_unused(replace(new, kernels=tuple(k for k in new.kernels if k.body)))

    def _substituted(self, plan: Plan) -> tuple[Statement, dict[str, Changed], Program] | Verdict:
        """The statement that defines the temporary, the changed statements, and the new program."""
        program = plan.program
        writers = [s for s in program.statements if s.target.array == self.array]
        readers = [s for s in program.statements if any(r.array == self.array for r in s.reads)]
        if len(writers) != 1 or writers[0].update:
            names = " and ".join(s.name for s in writers)
            return no(f"{self.array} is not defined by one plain statement",
                      f"{names} write it" if len(writers) != 1 else f"{names} is a reduction",
                      f"compute_at('{names.split()[-1]}', '…') moves it instead" if writers else "")
        writer = writers[0]
        if not readers:
            return no(f"nothing reads {self.array}")
        if any(any(r.array == self.array for r in c.reads) for c in plan.copies):
            return no(f"{self.array} is staged", hint="inline it before staging it")
        dims = [e.terms[0][0] for e in writer.target.index if isinstance(e, Expr) and len(e.terms) == 1 and e.terms[0][1] == 1]
        if sorted(map(str, dims)) != sorted(writer.dims) or writer in readers:
            return no(f"{writer.name} does not define one element of {self.array} for each of its iterations",
                      f"its target is {self.array}[{', '.join(map(str, writer.target.index))}]")
        changed: dict[str, Changed] = {}
        for s in readers:
            if any(not r.affine for r in s.reads if r.array == self.array):
                return no(f"{s.name} reads {self.array} at a data-dependent element", "its definition cannot be written there")
            changed[s.name] = substituted(s, writer, self.array, program)
        if program.array_of[self.array].role != "temporary":
            every = tuple(changed[s.name].statement if s.name in changed else s for s in program.statements)
            return writer, changed, replace(program, statements=every)
        statements = tuple(changed[s.name].statement if s.name in changed else s for s in program.statements if s is not writer)
        new = replace(program, statements=statements, arrays=tuple(a for a in program.arrays if a.name != self.array),
                      body=_without_statement(program, writer.name))
        return writer, changed, new

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Inline]:
        for a in _defined(plan):
            here = a.name == node_id or any(u.leaf.id == node_id for u in uses(plan, a.name))
            if here and cls(a.name).check(plan):
                yield cls(a.name)

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        names = [a.name for a in _defined(plan) if a.name == node_id
                 or any(u.leaf.id == node_id for u in uses(plan, a.name))]
        refused = (cls(name).check(plan) for name in names if not next(cls.candidates(plan, node_id), None))
        return next(refused, YES) if names else no_temporary(plan, node_id)


def _defined(plan: Plan) -> list[Array]:
    """The temporaries, and the results that something reads."""
    read = {r.array for s in plan.program.statements for r in s.reads}
    return [a for a in plan.program.arrays if a.role == "temporary" or (a.role in ROLES and a.name in read)]


@dataclass(frozen=True)
class Changed:
    """A consumer with the definition written into it.

    Attributes
    ----------
    statement : Statement
    kept : mapping of int to int
        Its old access slots to its new ones (the target included).
    from_writer : mapping of (int, int) to int
        (slot that read the temporary, slot of the definition) to the new slot.
    """

    statement: Statement
    kept: Mapping[int, int]
    from_writer: Mapping[tuple[int, int], int]


def substituted(s: Statement, writer: Statement, array: str, program: Program) -> Changed:
    """The statement `s` with the definition by `writer` in place of its reads of `array`."""
    gone = [n for n, r in enumerate(s.reads) if r.array == array]
    kept = {n: place for place, n in enumerate(n for n in range(len(s.reads)) if n not in gone)}
    reads = [in_slots(s.reads[n], kept, {}) for n in kept]
    from_writer: dict[tuple[int, int], int] = {}
    values: dict[int, Scalar] = {}
    types = [program.array_of[r.array].dtype for r in writer.reads]
    narrow = program.array_of[array].dtype
    for slot in gone:
        dims = _definition_point(writer, s.reads[slot])
        start = len(reads)
        place = {n: start + n for n in range(len(writer.reads))}
        for n, r in enumerate(writer.reads):
            use = in_slots(r, place, dims)
            same = next((i for i, old in enumerate(reads[:start]) if old == use and use.affine), None)
            if same is not None:
                place[n] = same
            reads.append(use)
        from_writer |= {(slot, n): p for n, p in place.items()}
        value = renumbered(writer.value, place, dims)
        values[slot] = value if type_of(writer.value, types).name == narrow.name else Cast(narrow, value)

    def read(node: Scalar) -> Scalar | None:
        if isinstance(node, Read):
            return values[node.slot] if node.slot in values else Read(kept[node.slot])
        return None

    value = rebuild(s.value, read)
    used = sorted({*kept.values(), *from_writer.values()})
    final = {old: new for new, old in enumerate(used)}
    left = tuple(in_slots(reads[n], final, {}) for n in used)
    value = without_returns(renumbered(value, final, {}), [program.array_of[r.array].dtype for r in left])
    new = replace(s, reads=left, value=value)
    kept = {old: final[n] for old, n in kept.items()} | {len(s.reads): len(used)}
    return Changed(new, kept, {key: final[n] for key, n in from_writer.items()})


def _definition_point(writer: Statement, read: Access) -> dict[str, Expr]:
    """The writer's dimensions at the element that a read wants, over the reader's dimensions."""
    out: dict[str, Expr] = {}
    for own, wanted in zip(writer.target.index, read.index, strict=True):
        assert isinstance(own, Expr)
        assert isinstance(wanted, Expr)
        if own.terms:
            out[str(own.terms[0][0])] = wanted - own.const
    return out


def _without_statement(program: Program, name: str) -> tuple[Node, ...]:
    leaf, _ = program_leaf(program, name)
    return without(program.body, leaf.id)


def _views_stay(plan: Plan, array: str, writer: Statement, changed: Mapping[str, Changed]) -> Verdict | None:
    """A refusal where the definition reads storage that its readers cannot name."""
    places = [(leaf, above) for leaf, above, _ in plan.leaves if leaf.statement == writer.name]
    leaf, above = places[0]
    for slot, view in leaf.views:
        if slot == len(writer.reads):
            continue
        name = writer.reads[slot].array
        for other, around, _ in plan.leaves:
            if other.statement in changed and not (
                    {v for e in (*view.index, *view.element)
                     for v in e.variables()} <= {x.id for x in above} & {x.id for x in around}):
                return no(f"{leaf.id} reads {name} from {view.buffer}, in a cell that {other.id} cannot name",
                          hint=f"inline('{array}') before {name} is contracted or staged")
    return None


def _flow_kept(old: Program, new: Program, array: str, writer: Statement, changed: Mapping[str, Changed]) -> Verdict:
    """Whether every value that the definition reads is the same where it is used now."""
    before, after = analyse(old).flow, analyse(new).flow
    for name, c in changed.items():
        for (slot, own), place in c.from_writer.items():
            uses_of = [f.relation for f in before if (f.source, f.sink, f.slot, f.array) == (writer.name, name, slot, array)]
            wanted: dict[str, Relation] = {}
            for f in _into(before, writer.name, own):
                for use in uses_of:
                    part = f.relation.apply_range(use)
                    wanted[f.source] = wanted[f.source].union(part) if f.source in wanted else part
            found: dict[str, Relation] = {}
            for f in _into(after, name, place):
                found[f.source] = found[f.source].union(f.relation) if f.source in found else f.relation
            for source in wanted.keys() | found.keys():
                a, b = wanted.get(source), found.get(source)
                if a is None or b is None or not a.is_equal(b):
                    if (a is None or a.is_empty()) and (b is None or b.is_empty()):
                        continue
                    read = writer.reads[own].array
                    return no(f"{read} changes between {writer.name} and {name}",
                              f"{source} writes {read}, so {name} would compute {array} from other values",
                              f"compute_at('{writer.name}', '…') instead")
    return YES


def _into(flow: tuple[Flow, ...], sink: str, slot: int) -> list[Flow]:
    return [f for f in flow if f.sink == sink and f.slot == slot]
