"""Loops: ``for i in range(...)`` as an integer box and the constraints that cut it to the user's bounds."""

from __future__ import annotations

import ast
import builtins

from ..ir.expr import const, var
from ..ir.program import Constraint
from ..ir.tree import Loop
from .parse_condition import bounds
from .parse_index import constant
from .scope import Scope, Surrounding


def range_of(node: ast.For, scope: Scope) -> ast.Call:
    """The call of ``range`` that a loop counts through; raises ProgramError for any other loop."""
    if node.orelse:
        raise scope.refuse(node, "for … else is not accepted", why="there is no break", hint="put the lines after the loop")
    if not isinstance(node.target, ast.Name):
        raise scope.refuse(node.target, "a loop has one variable", why="it counts through a range", hint="for i in range(N):")
    call = node.iter
    if not (isinstance(call, ast.Call) and scope.outside(call.func) is builtins.range):
        raise scope.refuse(call, f"{ast.unparse(call)} is not a range", why="loops are integer ranges", hint="for i in range(N):")
    if not 1 <= len(call.args) <= 3 or call.keywords:
        raise scope.refuse(
            call, "range takes one to three arguments", why="start, end and step", hint="range(N) or range(a, b, step)"
        )
    return call


def surrounding(call: ast.Call, name: str, identity: str, scope: Scope) -> Surrounding:
    """The loop of the user's variable `name`, whose dimension is `identity`."""
    return (_strided if len(call.args) == 3 else _plain)(call, name, identity, scope)


def _plain(call: ast.Call, name: str, identity: str, scope: Scope) -> Surrounding:
    """``range(a, b)``: the dimension is the value; the box is the widest interval over the loops around."""
    lower = bounds(call.args[0], scope, upper=False) if len(call.args) == 2 else [(const(0), "0")]
    upper = bounds(call.args[-1], scope, upper=True)
    start = max(e.interval(scope.ranges)[0] for e, _ in lower)
    stop = min(e.interval(scope.ranges)[1] for e, _ in upper)
    constraints = [Constraint(var(identity) - e, text=f"{name} >= {text}") for e, text in lower]
    constraints += [Constraint(e - var(identity) - 1, text=f"{name} < {text}") for e, text in upper]
    return Surrounding(Loop(identity, max(0, stop - start), (), start=start), tuple(constraints), name, var(identity))


def _strided(call: ast.Call, name: str, identity: str, scope: Scope) -> Surrounding:
    """``range(a, b, s)``: the dimension counts iterations from 0, and the user's variable is ``a + s*count``."""
    step = constant(call.args[2], scope, "the step of a range")
    if step == 0 and (not scope.trial or isinstance(call.args[2], ast.Constant)):
        raise scope.refuse(call.args[2], "the step of a range is 0", why="the loop would not advance", hint="1")
    step = step or 1
    if step == 1:
        return _plain(ast.Call(call.func, call.args[:2], []), name, identity, scope)
    first, last = bounds(call.args[0], scope, upper=step < 0), bounds(call.args[1], scope, upper=step > 0)
    if len(first) > 1:
        raise scope.refuse(
            call.args[0],
            "a strided range starts at one value",
            why="its remainder would depend on which bound holds",
            hint="step 1, or a start without min and max",
        )
    (start, start_text), sign = first[0], 1 if step > 0 else -1
    value = start + var(identity) * step
    spans = [((e - start) * sign, text) for e, text in last]
    count = min(-(-span.interval(scope.ranges)[1] // abs(step)) for span, _ in spans)
    order = (">=", "<") if step > 0 else ("<=", ">")
    constraints = [Constraint(var(identity), text=f"{name} {order[0]} {start_text}")]
    constraints += [Constraint(span - var(identity) * abs(step) - 1, text=f"{name} {order[1]} {text}") for span, text in spans]
    return Surrounding(Loop(identity, max(0, count), ()), tuple(constraints), name, value)
