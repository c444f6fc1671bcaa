"""The script pane, both ways: states to Python, and Python back to steps.  Text is parsed and never evaluated.

What is accepted: ``s = name.schedule(M=64)``, ``s = s.move(arguments)``, chains of them, and comments.  A whole script as
:meth:`explorer.Schedule.script` writes it is accepted too: its import, its sizes and the program's text are compared, not run.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import ExplorerError, ReplayError
from ..schedule import Schedule
from ..steps.calls import literal, step_of
from ..transforms.base import Transform
from .history import Notes, State

LONGEST, MOST_STEPS = 200_000, 2000
"""Characters and steps of a script that are read at all."""


class ScriptProblem(ReplayError):
    """A script is not accepted; `line` (1-based, of the text) says where, `error` why."""

    def __init__(self, line: int, error: ExplorerError) -> None:
        super().__init__(error.what, where=f"line {line}", why=error.why, hint=error.hint, **error.details)
        self.line, self.error = line, error


@dataclass(frozen=True)
class Line:
    """One step of a script, the line it stands on, and the comments there."""

    step: Transform
    line: int
    notes: Notes


@dataclass(frozen=True)
class Script:
    """What a script says: the sizes (at `line`) and the steps."""

    sizes: dict[str, int]
    line: int
    steps: tuple[Line, ...]
    notes: Notes


@dataclass(frozen=True)
class Written:
    """A script as text, with the 1-based line of each state."""

    text: str
    lines: tuple[tuple[str, int], ...]


def write_script(states: Sequence[State]) -> Written:
    """The script of a line of states, the program as written first."""
    rows: list[str] = []
    places: list[tuple[str, int]] = []
    for state in states:
        rows += state.notes.above
        target = state.schedule.source.name if state.step is None else "s"
        rows.append(f"s = {target}.{state.call}" + (f"  {state.notes.beside}" if state.notes.beside else ""))
        places.append((state.id, len(rows)))
        rows += state.notes.below
    return Written("\n".join(rows) + "\n", tuple(places))


@dataclass(frozen=True)
class Subject:
    """The program that a script is about: its name, its text, and sizes for examples."""

    name: str
    source: str
    sizes: tuple[tuple[str, int], ...]

    @property
    def first(self) -> str:
        """How the first line of a script reads."""
        return f"s = {self.name}.schedule({', '.join(f'{n}={v}' for n, v in self.sizes)})"


def subject_of(schedule: Schedule) -> Subject:
    """The program of a schedule."""
    program = schedule.source
    return Subject(program.name, f"{program.helpers}\n{program.source}", program.sizes)


def read_script(text: str, subject: Subject) -> Script:
    """The sizes and steps of a script for a program.

    Raises
    ------
    ScriptProblem
        At the first line that is not accepted.
    """
    if len(text) > LONGEST:
        raise _refused(1, f"the script has more than {LONGEST} characters")
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        line = min(max(error.lineno or 1, 1), text.count("\n") + 1)
        column = f", column {error.offset}" if error.offset else ""
        raise _refused(line, "this is not Python", f"{error.msg or ''}{column}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise _refused(1, "this is not Python", str(error)) from None
    reader = _Reader(subject)
    for node in tree.body:
        reader.statement(node)
    if reader.sizes is None:
        raise _refused(1, "the script does not begin with a schedule", hint=subject.first)
    return _with_notes(reader.sizes, reader.line, reader.steps, text)


class _Reader:
    """Walks the statements of a script."""

    def __init__(self, subject: Subject) -> None:
        self.subject, self.name = subject, subject.name
        self.variable: str | None = None
        self.sizes: dict[str, int] | None = None
        self.line = 1
        self.steps: list[tuple[Transform, int]] = []

    def statement(self, node: ast.stmt) -> None:
        if self.sizes is None and self._preamble(node):
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Name) and node.value.id == self.variable:
            return
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
            raise _refused(node.lineno, "only schedule steps stand here", f"found {_shown(node)}",
                           self.subject.first if self.sizes is None else f"{self.variable} = {self.variable}.split('k', 32)")
        target = node.targets[0].id
        if self.variable is not None and target != self.variable:
            raise _refused(node.lineno, f"the schedule is called {self.variable}, not {target}",
                           hint=f"{self.variable} = {self.variable}.…")
        self.chain(node.value, target)

    def chain(self, node: ast.expr, target: str) -> None:
        """``name.schedule(…).move(…)`` or ``s.move(…).move(…)``, from the inside out."""
        calls: list[ast.Call] = []
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            calls.append(node)
            node = node.func.value
            if len(calls) > MOST_STEPS:
                raise _refused(node.lineno, f"the script has more than {MOST_STEPS} steps")
        if not isinstance(node, ast.Name) or not calls:
            raise _refused(node.lineno, "this is not a chain of steps", f"found {_shown(node)}", self.subject.first)
        calls.reverse()
        if self.sizes is None:
            self.start(node, calls.pop(0))
            self.variable = target
        elif node.id != self.variable:
            raise _refused(node.lineno, f"the step is taken on {node.id}, but the schedule is called {self.variable}",
                           hint=f"{self.variable} = {self.variable}.…")
        for call in calls:
            assert isinstance(call.func, ast.Attribute)
            place = call.func.end_lineno or call.lineno
            if len(self.steps) >= MOST_STEPS:
                raise _refused(place, f"the script has more than {MOST_STEPS} steps")
            try:
                self.steps.append((step_of(call.func.attr, call), place))
            except ExplorerError as error:
                raise ScriptProblem(place, error) from error

    def start(self, name: ast.Name, call: ast.Call) -> None:
        """``name.schedule(M=64, N=64)``."""
        assert isinstance(call.func, ast.Attribute)
        place = call.func.end_lineno or call.lineno
        if name.id != self.name or call.func.attr != "schedule":
            raise _refused(place, f"the script begins with {name.id}.{call.func.attr}(…)", f"the program is called {self.name}",
                           self.subject.first)
        if call.args or any(k.arg is None for k in call.keywords):
            raise _refused(place, "sizes are given by name", hint=self.subject.first)
        sizes: dict[str, int] = {}
        for keyword in call.keywords:
            try:
                value = literal(keyword.value)
            except ExplorerError as error:
                raise ScriptProblem(keyword.value.lineno, error) from error
            if isinstance(value, bool) or not isinstance(value, int):
                raise _refused(keyword.value.lineno, f"the size {keyword.arg} must be an integer", hint=self.subject.first)
            sizes[str(keyword.arg)] = value
        self.sizes, self.line = sizes, place

    def _preamble(self, node: ast.stmt) -> bool:
        """The lines of a whole script before its schedule; the program's text must be the one that is explored."""
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            if all(n.split(".")[0] == "explorer" for n in names):
                return True
            raise _refused(node.lineno, "only explorer is imported here", f"found {_shown(node)}", "nothing in a script is run")
        if isinstance(node, ast.FunctionDef):
            if not self._same_program(node):
                raise _refused(node.lineno, f"the text of {node.name} is not the program that is explored",
                               hint="run the new program in a cell and explore it there")
            return True
        value = node.value if isinstance(node, ast.Assign) else None
        if value is not None and not any(isinstance(n, ast.Call) for n in ast.walk(value)):
            return True  # a constant that the program's text mentions
        called = value.func if isinstance(value, ast.Call) else None
        name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
        return name == "sizes" and isinstance(value, ast.Call) and all(isinstance(a, ast.Constant) for a in value.args)

    def _same_program(self, node: ast.FunctionDef) -> bool:
        try:
            known = ast.parse(self.subject.source).body
        except SyntaxError:
            return False
        return any(isinstance(k, ast.FunctionDef) and ast.dump(k) == ast.dump(node) for k in known)


def _with_notes(sizes: dict[str, int], line: int, steps: list[tuple[Transform, int]], text: str) -> Script:
    """The script with each comment at the next step, or beside the step on its own line."""
    places = [line, *(place for _, place in steps)]
    above: dict[int, list[str]] = {}
    beside: dict[int, str] = {}
    below: list[str] = []
    rows = text.splitlines()
    for row, comment in _comments(text):
        owner = next((n for n, place in enumerate(places) if place >= row), None)
        if owner is None:
            below.append(comment)
        elif places[owner] == row and not rows[row - 1].lstrip().startswith("#"):
            beside[owner] = comment
        else:
            above.setdefault(owner, []).append(comment)
    last = len(places) - 1
    notes = [Notes(tuple(above.get(n, ())), beside.get(n, ""), tuple(below) if n == last else ()) for n in range(len(places))]
    lines = tuple(Line(step, place, note) for (step, place), note in zip(steps, notes[1:], strict=True))
    return Script(sizes, line, lines, notes[0])


def _comments(text: str) -> list[tuple[int, str]]:
    """(line, comment) of every comment."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return []
    return [(t.start[0], t.string) for t in tokens if t.type == tokenize.COMMENT]


def _refused(line: int, what: str, why: str = "", hint: str = "") -> ScriptProblem:
    return ScriptProblem(line, ReplayError(what, why=why, hint=hint))


def _shown(node: ast.AST) -> str:
    text = ast.unparse(node).splitlines()[0]
    return text if len(text) <= 60 else text[:57] + "…"
