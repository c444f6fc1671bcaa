"""What a transformation is, and how the folder's transformations are found."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, replace
from functools import lru_cache
from math import nan
from numbers import Real
from types import MappingProxyType
from typing import Any, ClassVar, cast

from ..errors import TransformError, shown
from ..ir.finding import YES, Finding, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import Leaf, Loop

KINDS = frozenset(("loop", "loops", "leaf", "node", "kernel", "array", "arrays", "name", "int", "ints", "choice", "bool"))
"""What a field can hold: something there is, by its id; a new name; numbers; one of some words; True or False."""


@dataclass(frozen=True)
class Transform:
    """A schedule transformation: a frozen dataclass whose fields are its arguments.

    A subclass lives in a file of its own, has a docstring with the mathematics, *Before* and *After*, and defines

    - ``name`` (class variable): the word users write; others that mean it here are its ``aliases``, and names that it had in
      the version before, in scripts and saved files, ``formerly``,
    - ``group``: the heading it stands under in the reference,
    - ``elsewhere``: system to its words for this, separated by commas, as its documentation had them in 2025 (Halide,
      TVM's TensorIR, Exo, loopy, isl, Clay), and ``beware``: which of these words mean something else here,
    - ``check(plan)``: its own preconditions, as a :class:`~explorer.ir.finding.Verdict` with a reason in words,
    - ``rewrite(plan)``: the new plan; it only touches the tree, the four questions judge the result,
    - ``candidates(plan, node_id)``: concrete instances worth offering at a node (they may still be refused).

    Fields carry ``metadata={"kind": ..., "help": ...}`` with one of the :data:`KINDS`; ``int`` may have ``min`` and ``max``,
    ``choice`` has ``choices``, other words for them in ``also``, and words of the version before in ``formerly``.  The form in
    the explorer, the validation of saved schedules and the documentation are made from it.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    formerly: ClassVar[tuple[str, ...]] = ()
    group: ClassVar[str] = "More"
    elsewhere: ClassVar[Mapping[str, str]] = MappingProxyType({})
    beware: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Put other spellings of an argument into the one that is recorded: one name or number for a list of one, and the
        words under ``also`` and ``formerly`` in a field's metadata.
        """
        for f in fields(self):
            value = getattr(self, f.name)
            plain = canonical(f, value)
            if plain is not value:
                object.__setattr__(self, f.name, plain)

    def check(self, plan: Plan) -> Verdict:
        return YES

    def rewrite(self, plan: Plan) -> Plan:
        raise TypeError(f"{type(self).__name__} defines no rewrite")

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Transform]:
        return iter(())

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        """Whether this kind of move can stand at the node at all; a refusal says why."""
        return YES

    @classmethod
    def meant(cls, args: tuple[Any, ...]) -> str:
        """Calls for what other systems mean by these arguments by position, which this move does not take; or nothing."""
        return ""

    def mends(self, plan: Plan, earlier: Transform) -> Iterator[Transform]:
        """What the step that made one of this one's loops, or its like, could have been so that this one applies; the best first:
        see :mod:`explorer.steps.hints`.
        """
        return iter(())

    def eases(self, plan: Plan, finding: Finding) -> Iterator[str]:
        """Proposals that this step has for a result that is not legal, beside the finding's: see :mod:`explorer.steps.hints`."""
        return iter(())

    def arguments(self) -> dict[str, Any]:
        """The fields that differ from their defaults, first the required ones."""
        out: dict[str, Any] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if f.default is MISSING or value != f.default:
                out[f.name] = value
        return out

    def __str__(self) -> str:
        """The Python call that makes this step: ``split('k', 4)``."""
        parts: list[str] = []
        for f in fields(self):
            value = getattr(self, f.name)
            if f.default is MISSING:
                parts.append(repr(value))
            elif value != f.default:
                parts.append(f"{f.name}={value!r}")
        return f"{self.name}({', '.join(parts)})"


_SEVERAL = {"loops": str, "arrays": str, "ints": int}
"""Kinds of field that hold several values, and of which type."""


def canonical(declared: Field[Any], value: Any) -> Any:
    """The value of a field as it is recorded: see :meth:`Transform.__post_init__`."""
    if isinstance(value, str) and (plain := spelled(declared.metadata, value)) != value:
        return plain
    several = _SEVERAL.get(declared.metadata.get("kind", ""))
    only_lists = several is not None and str(declared.type).startswith("tuple")
    return (value,) if only_lists and several is not None and type(value) is several else value


def spelled(metadata: Mapping[str, Any], word: str) -> str:
    """A word as the field records it: itself, or what it stands for under ``also`` or ``formerly``."""
    return metadata.get("also", {}).get(word) or metadata.get("formerly", {}).get(word, word)


def gathered(kind: type[Transform], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments by position with neighbours joined where a field holds several: ``reorder('k', 'i')``."""
    out, rest = list[Any](), list(args)
    for f in fields(kind):
        several = _SEVERAL.get(f.metadata.get("kind", ""))
        count = next((n for n, value in enumerate(rest) if type(value) is not several), len(rest))
        out += [tuple(rest[:count])] if count > 1 else rest[:1]
        rest = rest[max(count, 1):]
    return (*out, *rest)


NEW_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
LONGEST_NAME = 1000
"""Characters of a name in an argument: no loop that there is has more."""


def misfit(declared: Field[Any], value: Any) -> str:
    """What a value for a field of a transformation should be instead (``"an integer"``), or nothing if it fits the kind.

    Whether there is such a loop, and whether the number makes sense for it, is for the transformation to say.
    """
    kind = declared.metadata.get("kind", "")
    if type(value) is type(declared.default) and value == declared.default:
        return ""
    if kind in ("int", "ints"):
        several = kind == "ints"
        numbers = _listed(value) if several else (value,)
        if (several and not isinstance(value, tuple)) or not all(type(n) is int and abs(n) < 2**31 for n in numbers):
            return "integers of at most 31 bits" if several else "an integer of at most 31 bits"
        return ""
    if kind == "bool":
        return "" if isinstance(value, bool) else "True or False"
    if kind in ("loops", "arrays"):
        return "" if all(isinstance(n, str) and 0 < len(n) <= LONGEST_NAME for n in _listed(value)) else "names"
    if not isinstance(value, str) or len(value) > LONGEST_NAME:
        return "a name"
    return "" if kind != "name" or NEW_NAME.fullmatch(value) else "a name of letters, digits, _ and ."


def nearest(value: object, low: int | None = None, high: int | None = None) -> int | None:
    """The integer within these limits that is next to what was given for one; None where that is no number, or of more bits.

    Where a number may be negative, 0 mostly means that nothing happens: then what is not 0 does not become 0.
    """
    try:
        number = float(value) if isinstance(value, (str, Real)) and value is not True and value is not False else nan
    except (ValueError, OverflowError):
        return None
    if not abs(number) < 2**31 - 1:
        return None
    whole = round(number)
    if not whole and number and low is None:
        whole = 1 if number > 0 else -1
    whole = whole if low is None else max(whole, low)
    return whole if high is None else min(whole, high)


def mended(step: Transform, wrong: Collection[str] = ()) -> str:
    """The call of a step with the nearest numbers that fit in its `wrong` fields, and in those that hold none; nothing where
    more is wrong.
    """
    near: dict[str, Any] = {}
    for f in fields(step):
        value, limits = getattr(step, f.name), (f.metadata.get("min"), f.metadata.get("max"))
        if f.metadata.get("kind") in ("int", "ints") and (f.name in wrong or misfit(f, value)):
            whole = tuple(nearest(n, *limits) for n in _listed(value))
            near[f.name] = whole if isinstance(value, tuple) else whole[0]
    made = replace(step, **near)
    return str(made) if near and not any(misfit(f, getattr(made, f.name)) for f in fields(made)) else ""


def _listed(value: Any) -> tuple[Any, ...]:
    """The values of a list, or the one that stands for a list of one."""
    return cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,)


def is_whole(value: object) -> bool:
    """Whether an argument is an integer, whatever the user has given."""
    return isinstance(value, int)


def is_several(value: object) -> bool:
    """Whether an argument is a tuple, whatever the user has given."""
    return isinstance(value, tuple)


def unproposed(what: str, why: str = "", hint: str = "") -> Verdict:
    """The answer of `offers` where a move could be made, and mostly is not worth it: the palette says so, and no refusal."""
    return no(f"not proposed: {what}", why, hint)


def get_loop(plan: Plan, name: str) -> Loop | Verdict:
    """The loop with this id, or a refusal that lists the loops there are."""
    hit = plan.find(name)
    if hit and isinstance(hit[0], Loop):
        return hit[0]
    if hit:
        return no(f"{name} is a statement, not a loop", hint=f"one of the loops {', '.join(plan.loops)}")
    if any(k.id == name for k in plan.kernels):
        return no(f"{name} is a kernel, not a loop", hint=f"one of the loops {', '.join(plan.loops)}")
    return no(f"there is no loop {name!r}", hint=f"one of {', '.join(plan.loops)}")


def get_leaf(plan: Plan, name: str) -> Leaf | Verdict:
    """The leaf with this id, statement name or target array, or a refusal that lists the statements."""
    hit = plan.resolve(name)
    return hit[0] if hit else no_leaf(plan, name)


def no_leaf(plan: Plan, name: str) -> Verdict:
    """The refusal of a name that stands for no statement."""
    hint = f"one of {', '.join(leaf.id for leaf, _, _ in plan.leaves)}"
    if name in plan.loops:
        return no(f"{name} is a loop, not a statement", hint=hint)
    if any(k.id == name for k in plan.kernels):
        return no(f"{name} is a kernel, not a statement", hint=hint)
    return no(f"there is no statement {name!r}", hint=hint)


def no_kernel(plan: Plan, name: str) -> Verdict:
    """The refusal of a name that stands for no kernel."""
    around = plan.kernel_of(name)
    kind = "loop" if name in plan.loops else "statement"
    what = f"{name} is a {kind}, not a kernel" if around else f"there is no kernel {name!r}"
    return no(what, hint=f"select the kernel {around.id}" if around else f"one of {', '.join(k.id for k in plan.kernels)}")


def by_factor(name: str, args: tuple[Any, ...]) -> str:
    """The calls for a move of whole loops that was given a factor: ``unroll('k', 4)``."""
    match args:
        case (str(loop), int(factor)) if not isinstance(factor, bool):
            return f"{name} takes the whole loop: split({loop!r}, {factor}).{name}({loop + '.i'!r})"
        case _:
            return ""


def siblings(plan: Plan, node_id: str) -> tuple[Any, ...]:
    """The nodes of the body that holds this node, in order (itself included)."""
    for kernel in plan.kernels:
        bodies = [kernel.body] + [loop.body for loop in plan.loops.values()]
        for body in bodies:
            if any(n.id == node_id for n in body):
                return body
    return ()


@lru_cache(maxsize=1)
def catalogue() -> dict[str, type[Transform]]:
    """Every transformation of this folder, by name and in alphabetical order of the files."""
    package = importlib.import_module(__name__.rpartition(".")[0])
    found: dict[str, type[Transform]] = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
        if module == "base" or module.startswith("_"):
            continue
        namespace = vars(importlib.import_module(f"{package.__name__}.{module}"))
        for value in namespace.values():
            if isinstance(value, type) and issubclass(value, Transform) and value.__module__ == f"{package.__name__}.{module}":
                if odd := [f.name for f in fields(value) if f.metadata.get("kind") not in KINDS]:
                    raise TypeError(f"{value.__name__}: the field {odd[0]} needs a kind, one of {', '.join(sorted(KINDS))}")
                found[value.name] = value
    return found


def expect(step: object) -> Transform:
    """The step itself, if it is a transformation.

    Raises
    ------
    TransformError
        If it is something else.
    """
    if not isinstance(step, Transform):
        raise TransformError(f"{shown(step)} is no transformation", hint='schedule.split("k", 4), or one of other.steps')
    return step
