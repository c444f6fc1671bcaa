"""Mutants of the emitted text: one small, plausible error in one place of a kernel, for every place there is.

A mutant is made from the text alone, by rules that know CUDA's spelling and nothing of schedules.  The device library that stands
before the kernels is left alone: ``mutants.py`` breaks that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from explorer.kernel.module import CudaModule


@dataclass(frozen=True)
class TextMutant:
    """One error.

    Attributes
    ----------
    kind : str
        The name of the rule.
    line : int
        1-based, of the text without the mutant.
    was, now : str
        The line without and with it.
    text : str
        The whole text with it.
    """

    kind: str
    line: int
    was: str
    now: str
    text: str


Rule = Callable[[str], Iterator[str]]
"""From the code of a line to every version of it with the error."""

_INDEX = re.compile(r"(?<=[\w\]])\[([^][]+)\]")
_INTEGER = re.compile(r"(?<![\w.\]])(\d+)(?![\w.]|LL)")
_FLOAT = re.compile(r"(?<![\w.])(\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+)(f?)(?!\w)")
_NAME = re.compile(r"\b[a-z]\w*\b(?!\()")
_DECLARED = re.compile(r"^\s*(?:__shared__\s+|extern\s|static\s|const\s+)*[\w:<>, ]+ \w+(?:\[[^]]*\])+;")
_TYPES = "float|double|int|long long|bool|__half|__nv_bfloat16"
_SKIPPED = re.compile(r"__restrict__|__global__|__launch_bounds__|__cluster_dims__|__builtin_assume")
"""Parameters and attributes, and what only tells the compiler what is true anyway."""


_SMALLEST = "-9223372036854775807LL - 1"
"""How C spells the smallest integer of 64 bits: one number, and no difference."""


def text_mutants(module: CudaModule) -> list[TextMutant]:
    """Every mutant of the module's kernels, in the order of the lines."""
    lines = module.text.split("\n")
    start = next(n for n, line in enumerate(lines) if 'extern "C"' in line)
    found: list[TextMutant] = []
    for n in range(start, len(lines)):
        code, mark, comment = lines[n].partition("//")
        if not code.strip() or code.lstrip().startswith("#") or _SKIPPED.search(code):
            continue
        for kind, rule in RULES.items():
            for now in rule(code):
                if now.split() == code.split():
                    continue
                changed = [*lines[:n], f"{now}{mark}{comment}", *lines[n + 1 :]]
                head = ["#include <cuda_fp16.h>"] if "half" in now and "<cuda_fp16.h>" not in module.text else []
                found.append(TextMutant(kind, n + 1, code.strip(), now.strip(), "\n".join([*head, *changed])))
    return found


# ---- what is left out ----


def _dropped(code: str) -> Iterator[str]:
    """A statement that is not a declaration."""
    plain = code.strip()
    if not plain.endswith(";") or plain.startswith(("for", "if", "return", "}")) or "sync" in plain:
        return
    if not _declares(plain):
        yield code.replace(plain, ";")


def _unsynchronised(code: str) -> Iterator[str]:
    if re.search(r"\b(?:__sync\w+|\w*barrier\w*|\w*wait\w*|\w*commit\w*|__threadfence\w*)\([^;]*\);", code) and "=" not in code:
        yield ";"


def _uninitialised(code: str) -> Iterator[str]:
    """A variable without its first value; a constant must have one."""
    made = re.match(rf"^(\s*)(?!const\b)((?:{_TYPES}) \w+) = [^;]+;(\s*)$", code)
    if made:
        yield f"{made[1]}{made[2]};{made[3]}"


def _unguarded(code: str) -> Iterator[str]:
    for condition in _conditions(code):
        yield code.replace(f"if ({condition})", "if (true)", 1)


# ---- what is off by one ----


def _bounds(code: str) -> Iterator[str]:
    """A loop that begins one late, or ends one early or late."""
    loop = re.match(r"^(\s*)for \((\w+ \w+ = )([^;]+); (\w+) (<=?) ([^;]+); (.*)$", code)
    if loop:
        pad, declared, first, name, less, last, rest = loop.groups()
        yield f"{pad}for ({declared}{first} + 1; {name} {less} {last}; {rest}"
        yield f"{pad}for ({declared}{first}; {name} {less} ({last}) - 1; {rest}"
        yield f"{pad}for ({declared}{first}; {name} {less} ({last}) + 1; {rest}"


def _indices(code: str) -> Iterator[str]:
    """An index of the neighbour."""
    if _declares(code):
        code_of = code.partition("=")
        if not code_of[1]:
            return
    for hit in _INDEX.finditer(code):
        if _declared_there(code, hit.start()):
            continue
        for by in ("+ 1", "- 1"):
            yield f"{code[: hit.start()]}[{hit[1]} {by}]{code[hit.end() :]}"


def _guards(code: str) -> Iterator[str]:
    """A comparison of a condition or before a question mark, or the way two are joined."""
    if code.lstrip().startswith("for") or not ("if (" in code or " ? " in code):
        return
    for hit in re.finditer(r" (?:<|<=|>|>=|==|&&) ", code):
        new = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "&&": "||"}[hit[0].strip()]
        yield f"{code[: hit.start()]} {new} {code[hit.end() :]}"


# ---- what is another thing ----


def _constants(code: str) -> Iterator[str]:
    """A number that is another one: a size, a stride, an epsilon, the count that a mean divides by."""
    if _declares(code) and "=" not in code:
        return
    for hit in _INTEGER.finditer(code):
        if not _declared_there(code, code.rfind("[", 0, hit.start())) or "=" in code[: hit.start()]:
            yield f"{code[: hit.start()]}{int(hit[1]) + 1}{code[hit.end() :]}"
    for hit in _FLOAT.finditer(code):
        value = float(hit[1])
        yield f"{code[: hit.start()]}{_another(value)!r}{hit[2]}{code[hit.end() :]}"
    for hit in re.finditer(r"-INFINITY|(?<!-)\bINFINITY|\(-\d+LL - 1\)", code):
        yield f"{code[: hit.start()]}0{code[hit.end() :]}"


def _another(value: float) -> float:
    """One less of a count, a tenth of an epsilon, one more of 0 and 1, an eighth more of the rest."""
    if value in (0.0, 1.0):
        return value + 1
    if value < 0.01:
        return value / 10
    return value - 1 if value.is_integer() else value * 1.125


_OTHER = {" += ": (" -= ", " = "), " *= ": (" += ",), " + ": (" - ",), " - ": (" + ",), " * ": (" + ",), " / ": (" * ",),
          " % ": (" / ",), "max_nan(": ("min_nan(",), "min_nan(": ("max_nan(",), " max(": (" min(",), " min(": (" max(",),
          "reduce_sum": ("reduce_max",), "reduce_max": ("reduce_min",), "reduce_min": ("reduce_max",),
          " expf(": (" exp2f(",), "__expf(": ("__logf(",),
          "argmax_key(": ("argmin_key(",), "argmin_key(": ("argmax_key(",), "rsqrtf(": ("sqrtf(",), "sqrtf(": ("fabsf(",),
          "atomicAdd(": ("atomicMax(",)}  # fmt: skip
_OPERATORS = re.compile("|".join(re.escape(o) for o in sorted(_OTHER, key=len, reverse=True)))


def _operators(code: str) -> Iterator[str]:
    for hit in _OPERATORS.finditer(code.replace(_SMALLEST, "#" * len(_SMALLEST))):
        if hit[0] == "sqrtf(" and code[max(hit.start() - 1, 0)] == "r":
            continue
        for other in _OTHER[hit[0]]:
            yield code[: hit.start()] + other + code[hit.end() :]


def _swapped(code: str) -> Iterator[str]:
    """Operands of a difference, a quotient or a call; the names in an index."""
    part = r"(?:__half2float\([^()]*\)|__bfloat162float\([^()]*\)|[\w.]+(?:\[[^][]*\])?)"
    plain = code.replace(_SMALLEST, "#" * len(_SMALLEST))
    for hit in re.finditer(rf"({part}) ([-/]) ({part})", plain):
        yield code[: hit.start()] + f"{hit[3]} {hit[2]} {hit[1]}" + code[hit.end() :]
    argument = r"([^(),]+|[^(),]*\([^()]*\))"
    for hit in re.finditer(rf"(__fdividef|argmax_key|argmin_key)\({argument}, {argument}\)", code):
        yield code[: hit.start()] + f"{hit[1]}({hit[3]}, {hit[2]})" + code[hit.end() :]
    for hit in _INDEX.finditer(code):
        names = list(dict.fromkeys(_NAME.findall(hit[1])))
        if len(names) > 1 and not _declared_there(code, hit.start()):
            first, second = names[:2]
            swapped = re.sub(rf"\b{first}\b", "#", hit[1])
            swapped = re.sub("#", second, re.sub(rf"\b{second}\b", first, swapped))
            yield f"{code[: hit.start()]}[{swapped}]{code[hit.end() :]}"


def _narrower(code: str) -> Iterator[str]:
    """A sum whose partial results have the digits of f16."""
    sum_ = re.match(r"^(.*?)([\w.]+(?:\[[^]]*\])?) \+= (.*);(\s*)$", code)
    if sum_:
        yield f"{sum_[1]}{sum_[2]} = __half2float(__float2half({sum_[2]} + ({sum_[3]})));{sum_[4]}"


def _truncated(code: str) -> Iterator[str]:
    """Digits that are cut off where the value should be rounded; a constant has none."""
    for hit in re.finditer(r"(__float2half|__float2bfloat16)\((?!\d+\.0f\))", code):
        yield f"{code[: hit.start()]}{hit[1]}_rz({code[hit.end() :]}"


RULES: dict[str, Rule] = {
    "a statement is dropped": _dropped, "a barrier, a wait or a fence is dropped": _unsynchronised,
    "a variable has no first value": _uninitialised, "a guard is dropped": _unguarded, "a loop's bound is off by one": _bounds,
    "an index is off by one": _indices, "a guard compares wrongly": _guards, "a constant is another one": _constants,
    "an operator is another one": _operators, "operands or indices are swapped": _swapped,
    "an accumulator is narrower": _narrower, "rounding is truncation": _truncated}
"""By name."""


def _declares(code: str) -> bool:
    """Whether the line makes a variable."""
    plain = rf"^\s*(?:__shared__ |const |unsigned |extern )*(?:{_TYPES}|vec<[^>]*>|char)\b"
    return bool(_DECLARED.match(code)) or bool(re.match(plain, code))


def _declared_there(code: str, at: int) -> bool:
    """Whether the bracket at a position belongs to the declaration of an array."""
    return at >= 0 and _declares(code) and "=" not in code[:at]


def _conditions(code: str) -> Iterator[str]:
    """The conditions of the line's ifs."""
    for hit in re.finditer(r"\bif \(", code):
        depth, at = 1, hit.end()
        while at < len(code) and depth:
            depth += {"(": 1, ")": -1}.get(code[at], 0)
            at += 1
        yield code[hit.end() : at - 1]
