"""Refusals: one sentence, the place with a caret, the reason, and the nearest accepted form."""

from __future__ import annotations

import ast

from ..errors import ProgramError
from .source import Source

Words = tuple[str, str, str]
"""What is refused, why, and what to try."""


def refuse(source: Source, node: ast.AST, what: str, *, why: str = "", hint: str = "") -> ProgramError:
    """The error that refuses `node`: ``raise refuse(...)``."""
    where, line, column = source.place(node)
    return ProgramError(what, where=where, why=why, hint=hint, line=line, column=column)


_ORDER = "every instance of every statement must be known before the program runs"
_LET = "values are named on a line of their own"

STATEMENTS: dict[type[ast.AST], Words] = {
    ast.While: ("while loops are not accepted", _ORDER, "for i in range(N):"),
    ast.Break: ("break is not accepted", _ORDER, "an `if` on loop variables, or a tighter range(...)"),
    ast.Continue: ("continue is not accepted", _ORDER, "put the rest of the body under the opposite `if`"),
    ast.Return: (
        "return is not accepted",
        "results are what the program writes to its array parameters",
        "add a parameter for the result and write it: y[i] = …",
    ),
    ast.FunctionDef: (
        "a function inside a program is not accepted",
        "the body is loops, ifs and assignments",
        "write its expression where it is used, or as its own program",
    ),
    ast.AsyncFunctionDef: (
        "a function inside a program is not accepted",
        "the body is loops, ifs and assignments",
        "a plain loop",
    ),
    ast.ClassDef: ("a class inside a program is not accepted", "the body is loops, ifs and assignments", "move it out"),
    ast.AsyncFor: ("async for is not accepted", "loops are integer ranges", "for i in range(N):"),
    ast.With: ("with is not accepted", "the body is loops, ifs and assignments", "move it out of the program"),
    ast.AsyncWith: ("with is not accepted", "the body is loops, ifs and assignments", "move it out of the program"),
    ast.Try: ("try is not accepted", "nothing raises inside a program", "move it out of the program"),
    ast.Raise: ("raise is not accepted", "nothing raises inside a program", "check the arguments before the call"),
    ast.Assert: ("assert is not accepted", "nothing raises inside a program", "check the sizes before .at(...)"),
    ast.Delete: ("del is not accepted", "temporaries end with the loop that declares them", "leave it out"),
    ast.Import: ("an import inside a program is not accepted", "the function is never executed", "import above the function"),
    ast.ImportFrom: ("an import inside a program is not accepted", "the function is never executed", "import above the function"),
    ast.Global: ("global is not accepted", "results are what the program writes to its array parameters", "add a parameter"),
    ast.Nonlocal: ("nonlocal is not accepted", "results are what the program writes to its array parameters", "add a parameter"),
    ast.Match: ("match is not accepted", "conditions are affine comparisons", "if … == …:"),
    ast.AnnAssign: (
        "an annotated assignment is not accepted",
        "temporaries are declared on a line of their own",
        "t = ex.local(ex.f32), then t = …",
    ),
}
"""Statements that are never accepted."""

EXPRESSIONS: dict[type[ast.AST], Words] = {
    ast.Lambda: ("lambda is not accepted", "values are arithmetic on array elements", "write the expression itself"),
    ast.ListComp: ("a comprehension is not accepted", "loops are statements", "a `for` with += or max"),
    ast.SetComp: ("a comprehension is not accepted", "loops are statements", "a `for` with += or max"),
    ast.DictComp: ("a comprehension is not accepted", "loops are statements", "a `for` with += or max"),
    ast.GeneratorExp: ("a comprehension is not accepted", "loops are statements", "a `for` with += or max"),
    ast.List: ("a list is not accepted", "values are single numbers", "one assignment per element"),
    ast.Tuple: ("a tuple is not accepted", "values are single numbers", "one assignment per element"),
    ast.Set: ("a set is not accepted", "values are single numbers", "one assignment per element"),
    ast.Dict: ("a dict is not accepted", "values are single numbers", "one assignment per element"),
    ast.JoinedStr: ("text is not accepted", "values are numbers", "a number"),
    ast.NamedExpr: (":= is not accepted", _LET, "t = … on its own line, before this one"),
    ast.Starred: ("* unpacking is not accepted", "values are single numbers", "write the arguments out"),
    ast.Await: ("await is not accepted", "values are numbers", "leave it out"),
    ast.Yield: ("yield is not accepted", "results are what the program writes to its array parameters", "y[i] = …"),
    ast.YieldFrom: ("yield is not accepted", "results are what the program writes to its array parameters", "y[i] = …"),
    ast.Slice: ("a slice is not accepted", "statements work on single elements", "a loop: for j in range(N): … x[i, j]"),
}
"""Expressions that are never accepted."""

OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.MatMult: ("@", "a loop over k with +="),
    ast.LShift: ("<<", "* by a power of two"),
    ast.RShift: (">>", "// by a power of two"),
    ast.BitXor: ("^", "!= on truth values"),
    ast.FloorDiv: ("//", "integers, or ex.cast(a / b, ex.i32)"),
    ast.Mod: ("%", "integers: an i32 or i64 array, or loop variables"),
    ast.BitOr: ("|", "or"),
    ast.BitAnd: ("&", "and"),
    ast.Invert: ("~", "not"),
    ast.Is: ("is", "=="),
    ast.IsNot: ("is not", "!="),
    ast.In: ("in", "two comparisons"),
    ast.NotIn: ("not in", "two comparisons"),
    ast.Div: ("/", "* by its inverse"),
    ast.Pow: ("**", "* repeated"),
}
"""Operators with no meaning in some place: their spelling, and what to write."""


def refuse_statement(source: Source, node: ast.stmt) -> ProgramError:
    """The refusal of a statement that is never accepted."""
    what, why, hint = STATEMENTS.get(
        type(node), (f"{type(node).__name__} is not accepted", "the body is loops, ifs and assignments", "for, if, = or +=")
    )
    return refuse(source, node, what, why=why, hint=hint)


def refuse_expression(source: Source, node: ast.AST) -> ProgramError:
    """The refusal of an expression that is never accepted."""
    what, why, hint = EXPRESSIONS.get(
        type(node),
        (
            f"{type(node).__name__} is not accepted here",
            "values are arithmetic on array elements",
            "arithmetic on array elements",
        ),
    )
    return refuse(source, node, what, why=why, hint=hint)


def instead(node: ast.BinOp) -> str:
    """How an operator on whole numbers is written with those that there are."""
    single = (ast.Name, ast.Subscript, ast.Call, ast.Constant)
    left, right = (f"{ast.unparse(side)}" if isinstance(side, single) else f"({ast.unparse(side)})"
                   for side in (node.left, node.right))
    if isinstance(node.op, (ast.LShift, ast.RShift)):
        number = node.right.value if isinstance(node.right, ast.Constant) else None
        right = str(1 << number) if type(number) is int and 0 <= number < 31 else f"2 ** {right}"
    ratio = f"ex.cast({left} / {right}, ex.i32)"
    whole = {ast.FloorDiv: ratio, ast.Mod: f"{left} - {right} * {ratio}",
             ast.RShift: f"{left} // {right}", ast.LShift: f"{left} * {right}"}
    return whole.get(type(node.op), "")
