"""Does the program itself make sense: every access inside its array, every value written before it is read."""

from __future__ import annotations

from ..errors import ProgramError
from ..ir.expr import Expr
from ..ir.program import Program, Statement
from .dependence import out_of_bounds
from .initial import uninitialised
from .isl import alone


@alone
def require_wellformed(program: Program) -> None:
    """Refuse a program that reads or writes outside an array, or reads what nothing wrote.

    Parameters
    ----------
    program : Program

    Raises
    ------
    ProgramError
        With the statement's line and the smallest instance that shows it.
    """
    if (bad := out_of_bounds(program)) is not None:
        name, slot, point = bad
        statement = program.statement_of[name]
        use = statement.accesses[slot]
        array = program.array_of[use.array]
        element = _element(statement, slot, point)
        verb = "writes" if slot == len(statement.reads) else "reads"
        raise ProgramError(
            f"{statement.text or name} {verb} {array.name}{list(element)}, outside its shape {list(array.shape)}",
            where=_where(program, statement), why=f"at {_at(statement, point)}",
            hint="change the loop's range, or put the statement under an if", line=statement.line, instance=point)
    if (bad := uninitialised(program)) is not None:
        name, slot, point = bad
        statement = program.statement_of[name]
        array = program.array_of[statement.accesses[slot].array]
        element = list(_element(statement, slot, point))
        what = f"{statement.text or name} reads {array.name}{element if element else ''} before anything is written there"
        raise ProgramError(
            what, where=_where(program, statement), why=f"at {_at(statement, point)}; {array.name} is {_role(array.role)}",
            hint=f"give {array.name} a first value before this line, for every iteration that reads it",
            line=statement.line, instance=point)


def _role(role: str) -> str:
    return "a temporary" if role == "temporary" else "an output: its contents are undefined at the start"


def _where(program: Program, statement: Statement) -> str:
    if not statement.line:
        return f"statement {statement.name}"
    return f"{program.file or program.name}:{statement.line}\n    {statement.text}"


def _at(statement: Statement, point: tuple[int, ...]) -> str:
    return ", ".join(f"{d} = {v}" for d, v in zip(statement.dims, point, strict=True)) or "its only instance"


def _element(statement: Statement, slot: int, point: tuple[int, ...]) -> tuple[int | str, ...]:
    values = dict(zip(statement.dims, point, strict=True))
    return tuple(int(e.evaluate(values)) if isinstance(e, Expr) else "…" for e in statement.accesses[slot].index)
