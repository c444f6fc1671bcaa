"""Plans, statements and conditions as text a person reads: the ``repr`` of a schedule, goldens, messages and panes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isinf

from .expr import Expr, Ranges, const
from .inequality import cases
from .operations import OPERATIONS
from .plan import Buffer, Plan
from .program import Access, Array, Constraint, Indirect, Statement
from .scalar import REDUCTIONS, Call, Cast, IndexValue, Literal, Read, Scalar
from .tree import JOINED, Kernel, Leaf, Loop, Node, Sync, View, ranges

_COMPARISON = 7
"""Python's precedence of comparisons, which chain: neither operand may be one."""


def loops_text(plan: Plan) -> str:
    """The loop nests of all kernels: roles, extents, statements with their guards, buffers, views and waits.

    ``0…64`` are the values 0 to 63.  A statement stands behind its name, by which moves address it; its indices are written over
    the loops' variables; behind ``#`` stands where it runs (unless everywhere in its loops) and how its updates are combined.
    """
    lines: list[str] = []
    for kernel in plan.kernels:
        note = kernel_note(kernel)
        lines += [f"kernel {kernel.id}{note and f'  # {note}'}", *_buffers(plan, kernel.id, "    ")]
        for node in kernel.body:
            lines += _node_lines(plan, node, (), "    ")
    return "\n".join(lines)


def kernel_note(kernel: Kernel) -> str:
    """How a kernel joins the launch before it (``in the same launch, behind a barrier of the grid``), or how many blocks a
    multiprocessor should hold; empty where it is a launch of its own and nothing is asked.
    """
    if not kernel.join:
        blocks = f"{kernel.resident} block{'s' * (kernel.resident > 1)}"
        return f"a multiprocessor holds at least {blocks}" if kernel.resident else ""
    words = JOINED[kernel.join]
    return f"in the same launch, {words}" + ("" if kernel.join in words else f" ({kernel.join})")


def loop_text(loop: Loop) -> str:
    """The head of a loop: ``for i in 0…64  thread.x``."""
    role = "" if loop.role == "seq" else f"  {loop.role}"
    return f"for {loop.id} in {loop.start}…{loop.start + loop.extent}{role}{'  trimmed' * loop.trimmed}"


_ENGINES = {"async": "async ", "bulk": "bulk ", "bulk_store": "bulk "}
"""What stands before a statement that an engine moves."""


def leaf_text(plan: Plan, leaf: Leaf, above: tuple[Loop, ...]) -> str:
    """The line of a statement in the tree: ``S0: y[4*i + i.i] = x[4*i + i.i]  # where 4*i + i.i < 10``."""
    statement, at, scope = plan.statement_of[leaf.statement], dict(by_one(leaf, above).at), ranges(above)
    notes = [guard] if (guard := guard_text(statement.domain, at, scope)) else []
    notes = [f"where {guard}" for guard in notes] + [f"{name} combined by {how}" for name, how in leaf.collect]
    notes += [note] if (note := sum_note(leaf)) else []
    notes += ["by one thread"] if leaf.mechanism == "bulk" and any(x.is_thread for x in above) else []
    notes += [note] if (note := mates_note(leaf)) else []
    text = statement_text(plan, leaf)
    text = f"{leaf.id}: {_ENGINES.get(leaf.mechanism, '')}{text}"
    return f"{text}  # {'; '.join(notes)}" if notes else text


def by_one(leaf: Leaf, above: tuple[Loop, ...]) -> Leaf:
    """A bulk copy as the one thread runs it that makes it, the first of each thread loop around; any other leaf as it is."""
    first = {x.id: const(x.start) for x in above if x.is_thread} if leaf.mechanism == "bulk" else {}
    if not first:
        return leaf
    scope = ranges(above)
    views = tuple((slot, v.substitute(first, scope)) for slot, v in leaf.views)
    return replace(leaf, at=tuple((d, e.substitute(first, scope)) for d, e in leaf.at), views=views)


def sum_note(leaf: Leaf) -> str:
    """How one thread adds a statement's terms, where it is not one after the other: ``compensated (Kahan)``."""
    return {"kahan": "compensated (Kahan)", "pairwise": "in pairs"}.get(leaf.mechanism, "")


def mates_note(leaf: Leaf) -> str:
    """Who brings a box, where several blocks do: ``2 neighbours along block.x bring a part each``."""
    return f"{leaf.multicast[1]} neighbours along {leaf.multicast[0]} bring a part each, for all" if leaf.multicast else ""


def sync_text(sync: Sync) -> str:
    """The line of a synchronisation that the schedule states: ``wait until 1 group of copies is open``."""
    if sync.kind in ("commit", "release"):
        return sync.kind
    if sync.kind in ("turn", "pass"):
        return {"turn": "wait for one's turn", "pass": "pass the turn"}[sync.kind]
    if sync.kind == "acquire":
        return f"acquire {sync.pending}"
    return f"wait {'for products ' if sync.kind == 'wait_products' else ''}{sync.pending}"


def buffer_text(buffer: Buffer) -> str:
    """The declaration of a buffer: ``shared As: f32[64, 16 + 4]``, with the padding behind the plus; behind it how it lies."""
    sizes = [str(n) for n in buffer.shape]
    if buffer.pad and sizes:
        sizes[-1] += f" + {buffer.pad}"
    lies = f"  {text}" if (text := layout_text(buffer)) else ""
    return f"{buffer.space} {buffer.name}: {buffer.dtype}" + (f"[{', '.join(sizes)}]" if sizes else "") + lies


def layout_text(buffer: Buffer) -> str:
    """How a shared buffer lies that is not row after row: ``panel 64, swizzle 128``; empty for the others."""
    words = {"panel": buffer.panel, "swizzle": buffer.swizzle}
    return ", ".join(f"{word} {n}" for word, n in words.items() if n)


def statement_text(plan: Plan, leaf: Leaf) -> str:
    """A leaf's statement in Python's notation, over the loops around it and the storage it uses.

    ``acc[8*i + i.i, j] += As[i.i, k] * B[k, j]``
    """
    statement = plan.statement_of[leaf.statement]
    if leaf.mechanism == "bulk":
        leaf = by_one(leaf, next(above for x, above, _ in plan.leaves if x.id == leaf.id))
    return _statement(_Writer(statement, leaf.places, dict(leaf.views), {}))


def written_text(statement: Statement, arrays: Mapping[str, Array], own: bool = False) -> str:
    """A statement over its own dimensions: ``acc[i, j] += A[i, k] * B[k, j]``.

    With `own`, temporaries stand without the dimensions that they have only because they were declared inside
    loops, as the user wrote them: ``acc += A[i, k] * B[k, j]``.
    """
    return _statement(_Writer(statement, {}, {}, arrays if own else {}))


def access_text(plan: Plan, leaf: Leaf, slot: int) -> str:
    """One access of a leaf, over the variables of its loops: ``A[8*i + i.i, k]``."""
    statement = plan.statement_of[leaf.statement]
    return _Writer(statement, leaf.places, dict(leaf.views), {}).access(slot)


def index_text(expr: Expr) -> str:
    """An index expression, without a leading minus sign where the constant can stand first: ``63 - i``."""
    text = str(expr)
    if expr.const > 0 and expr.terms and all(c < 0 for _, c in expr.terms):
        return f"{expr.const} - {str(expr - expr.const)[1:]}"
    return text


def guard_text(constraints: tuple[Constraint, ...], at: Mapping[str, Expr], scope: Ranges) -> str:
    """The conditions that the loops' boxes do not imply, joined by ``and``; empty if there are none."""
    texts: list[str] = []
    for constraint in constraints:
        low, high = constraint.expr.substitute(at, scope).interval(scope)
        if not (low >= 0 if not constraint.equality else low == high == 0):
            texts.append(condition_text(constraint, at, scope))
    return " and ".join(dict.fromkeys(texts))


def condition_text(constraint: Constraint, at: Mapping[str, Expr], scope: Ranges) -> str:
    """``expr >= 0`` or ``expr == 0`` as a comparison without minus signs: ``4*i + i.i < 10``."""
    expr = constraint.expr.substitute(at, scope)
    if not constraint.equality and (either := cases(expr, scope)):
        return f"({' or '.join(condition_text(Constraint(e), {}, scope) for e in either)})"
    left = Expr(tuple((a, -c) for a, c in expr.terms if c < 0))
    right = Expr(tuple((a, c) for a, c in expr.terms if c > 0))
    if constraint.equality:
        return f"{left - expr.const} == {right}" if expr.const < 0 or not left.terms else f"{left} == {right + expr.const}"
    if not left.terms:
        return f"{right} >= {-expr.const}"
    if not right.terms or expr.const == -1:
        return f"{left} < {right + expr.const + 1}"
    return f"{left} <= {right + expr.const}" if expr.const >= 0 else f"{right} >= {left - expr.const}"


def _node_lines(plan: Plan, node: Node, above: tuple[Loop, ...], indent: str) -> list[str]:
    if isinstance(node, Leaf):
        return [indent + leaf_text(plan, node, above)]
    if isinstance(node, Sync):
        return [indent + sync_text(node)]
    lines = [indent + loop_text(node), *_buffers(plan, node.id, indent + "    ")]
    for child in node.body:
        lines += _node_lines(plan, child, (*above, node), indent + "    ")
    return lines


def _buffers(plan: Plan, place: str, indent: str) -> list[str]:
    """Declarations of the buffers of a loop's body; those of a whole kernel stand in each kernel that uses them."""
    here = [b for b in plan.buffers if b.scope == place]
    if any(k.id == place for k in plan.kernels):
        used = {v.buffer for leaf, _, k in plan.leaves if k.id == place for _, v in leaf.views}
        here += [b for b in plan.buffers if not b.scope and b.name in used]
    return [indent + buffer_text(b) for b in here]


def _statement(show: _Writer) -> str:
    statement = show.statement
    symbol = REDUCTIONS[statement.update].symbol if statement.update else "="
    value = show.scalar(statement.value)
    if statement.inside:
        value = f"{value} if {guard_text(statement.inside, show.at, {})} else {_number(statement.fill)}"
    return f"{show.access(len(statement.reads))} {symbol} {value}"


def _number(value: float | int | bool) -> str:
    return ("-inf" if value < 0 else "inf") if isinstance(value, float) and isinf(value) else repr(value)


class _Writer:
    """Writes the scalars and accesses of one statement, with its dimensions replaced by expressions of loops."""

    def __init__(self, statement: Statement, at: Mapping[str, Expr], views: Mapping[int, View], own: Mapping[str, Array]) -> None:
        self.statement, self.at, self.views, self.own = statement, at, views, own

    def access(self, slot: int) -> str:
        access = self.statement.accesses[slot]
        if view := self.views.get(slot):
            element = self._element(view.buffer, [index_text(e) for e in view.index])
            return element if view.lane is None else f"{element}@lane({index_text(view.lane)})"
        return self._element(access.array, [self.index(e) for e in self._own(access)])

    def _own(self, access: Access) -> tuple[Expr | Indirect, ...]:
        """The indices, without those of the loops around a temporary's declaration where that is asked for."""
        array = self.own.get(access.array)
        implied = len(access.index) - array.given if array and array.role == "temporary" and array.given >= 0 else 0
        return access.index[implied:]

    def index(self, index: Expr | Indirect) -> str:
        return index_text(index.substitute(self.at)) if isinstance(index, Expr) else self.scalar(index.value)

    def _element(self, name: str, index: list[str]) -> str:
        return f"{name}[{', '.join(_bare(e) for e in index)}]" if index else name

    def scalar(self, scalar: Scalar, least: int = 0) -> str:
        """The text, in parentheses where it binds less tightly than `least`."""
        text, precedence = self._scalar(scalar)
        return f"({text})" if precedence < least else text

    def _scalar(self, scalar: Scalar) -> tuple[str, int]:
        if isinstance(scalar, Literal):
            text = _number(scalar.value)
            return text, 14 if text.startswith("-") else 100
        if isinstance(scalar, IndexValue):
            expr = scalar.expr.substitute(self.at)
            plain = len(expr.terms) + bool(expr.const) == 1 and (not expr.terms or expr.terms[0][1] == 1) and expr.const >= 0
            return index_text(expr), 100 if plain or not expr.terms else 12
        if isinstance(scalar, Read):
            return self.access(scalar.slot), 100
        if isinstance(scalar, Cast):
            return f"{scalar.dtype}({self.scalar(scalar.arg)})", 100
        return self._call(scalar)

    def _call(self, call: Call) -> tuple[str, int]:
        operation = OPERATIONS[call.op]
        if not operation.python:
            return f"{call.op}({', '.join(self.scalar(a) for a in call.args)})", 100
        own = operation.binds or operation.precedence
        if operation.arity == 1:
            return operation.python.format(self.scalar(call.args[0], own)), own
        strict = own + 1 if own == _COMPARISON else own
        return operation.python.format(self.scalar(call.args[0], strict), self.scalar(call.args[1], own + 1)), own


def _bare(text: str) -> str:
    """A lone quotient or remainder needs no parentheses between commas."""
    inner = text[1:-1]
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for letter in inner:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth < 0:
            return text
    return inner
