"""``%load_ext explorer`` and ``%%explore``: write a program in a cell and see it in the explorer at once."""

from __future__ import annotations

import ast
import re
from typing import Any

from ..errors import ExplorerError, ProgramError, spoken
from ..frontend.definition import Definition
from .explore import explore

_USAGE = "%%explore M=64 N=64"
_EXAMPLE = """%%explore M=64 N=64
@ex.program
def row_sum(x: ex.f32[M, N], y: ex.f32[M]):
    for i in range(M):
        ..."""


@spoken()
def load_ipython_extension(ipython: Any) -> None:
    """Register the cell magic ``%%explore``."""
    ipython.register_magic_function(lambda line, cell=None: explore_cell(ipython, line, cell), "cell", "explore")


def unload_ipython_extension(ipython: Any) -> None:
    """Take the cell magic away again."""
    ipython.magics_manager.magics["cell"].pop("explore", None)


def explore_cell(ipython: Any, line: str, cell: str | None) -> Any:
    """Run a cell that defines one program, and open the explorer on it.

    Parameters
    ----------
    ipython : InteractiveShell
    line : str
        Sizes, such as ``M=64 N=64``; names without a value here are looked up among the notebook's integers.
    cell : str
        The program; ``ex`` and the sizes need not be defined before.

    Returns
    -------
    Explorer or None
        None where the cell itself has raised an error, which IPython has shown.

    Raises
    ------
    ProgramError
        For a line that is not sizes, a cell without a program or with several, or a size without a value.
    """
    sizes = read_sizes(line)
    if not cell or not cell.strip():
        raise ProgramError("%%explore needs a program below it", hint=_EXAMPLE)
    _prepare(ipython.user_ns, sizes)
    result = ipython.run_cell(cell)
    if not result.success:
        return None
    definition = _defined(ipython.user_ns, cell)
    return explore(definition, **_complete(definition, sizes, ipython.user_ns))


def read_sizes(line: str) -> dict[str, int]:
    """The sizes of the magic's line.

    Raises
    ------
    ProgramError
        For anything else than names and integers.
    """
    sizes: dict[str, int] = {}
    for part in re.split(r"[\s,]+", line.strip()):
        if not part:
            continue
        name, _, value = part.partition("=")
        if not name.isidentifier() or not re.fullmatch(r"\d{1,12}", value):
            raise ProgramError(f"{part!r} is not a size", where=f"%%explore {line.strip()}",
                               why="sizes are a name, =, and an integer", hint=_USAGE)
        sizes[name] = int(value)
    return sizes


def _prepare(names: dict[str, Any], sizes: dict[str, int]) -> None:
    """Let the cell use ``ex`` and its sizes without saying so."""
    import explorer
    from explorer.frontend.size import SizeValue

    names.setdefault("ex", explorer)
    for name in sizes:
        if not isinstance(names.get(name), SizeValue):
            names[name] = explorer.sizes(name)


def _defined(names: dict[str, Any], cell: str) -> Definition:
    """The one program that the cell defines."""
    functions = [n.name for n in ast.parse(cell).body if isinstance(n, ast.FunctionDef)]
    found = [names[n] for n in functions if isinstance(names.get(n), Definition)]
    if len(found) == 1:
        return found[0]
    if not found and functions:
        raise ProgramError(f"{functions[-1]} is not a program", why="it has no decorator", hint="put @ex.program above its def")
    what = f"the cell defines {len(found)} programs" if found else "the cell defines no program"
    raise ProgramError(what, why="%%explore shows one", hint=_EXAMPLE)


def _complete(definition: Definition, sizes: dict[str, int], names: dict[str, Any]) -> dict[str, int]:
    """The sizes of the line, others from the notebook's integers; refuses what is missing or unknown."""
    example = f"%%explore {' '.join(f'{n}=64' for n in definition.sizes)}"
    if unknown := sorted(sizes.keys() - set(definition.sizes)):
        raise ProgramError(f"{definition.name} has no size {', '.join(unknown)}", hint=example)
    full = {n: sizes.get(n, names.get(n)) for n in definition.sizes}
    if missing := [n for n, v in full.items() if isinstance(v, bool) or not isinstance(v, int)]:
        raise ProgramError(f"the size {', '.join(missing)} has no value", why=f"{definition.name} has the sizes "
                           f"{', '.join(definition.sizes)}", hint=example)
    return {n: int(v) for n, v in full.items() if v is not None}


__all__ = ["ExplorerError", "explore_cell", "load_ipython_extension", "read_sizes", "unload_ipython_extension"]
