"""Writes what the catalogue of transformations says into the documentation.

``python docs/make_reference.py`` writes ``docs/transformations.md`` from the docstrings and fields in
``explorer/transforms/``, ``docs/glossary.md`` from the rows in ``explorer/teach/``, and between markers the tables of
transformations and of measured times in ``README.md``, the table of passes in ``docs/concepts.md`` and the table of operations
in ``docs/language.md``.  A test fails while one of them differs from what this script makes.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from pathlib import Path
from statistics import geometric_mean
from textwrap import dedent

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from explorer import strategies, workloads  # noqa: E402
from explorer.ir.operation import COMPUTED, Operation  # noqa: E402
from explorer.ir.operations import OPERATIONS  # noqa: E402
from explorer.kernel.stages import sentences  # noqa: E402
from explorer.teach.field import FIELD, key  # noqa: E402
from explorer.teach.words import OWN, Word  # noqa: E402
from explorer.transforms.base import Transform, catalogue  # noqa: E402

REFERENCE, README, CONCEPTS = ROOT / "docs" / "transformations.md", ROOT / "README.md", ROOT / "docs" / "concepts.md"
LANGUAGE, GLOSSARY = ROOT / "docs" / "language.md", ROOT / "docs" / "glossary.md"
BEGIN, END = "<!-- transformations: written by docs/make_reference.py -->", "<!-- end of transformations -->"
OPERATIONS_BEGIN, OPERATIONS_END = "<!-- operations: written by docs/make_reference.py -->", "<!-- end of operations -->"
MEASURED, MEASURED_END = "<!-- measured: written by docs/make_reference.py -->", "<!-- end of measured -->"
RESULTS = ROOT / "benchmarks" / "results"
SUITES = {
    "gpu": {"reductions": "reductions that papers and libraries name", "fused": "fused chains: softmax, normalisations, losses",
            "random": "reductions of random shapes", "random_4242": "reductions, sizes for which no rule was made",
            "chains": "chains of random, odd sizes", "chains_4242": "chains, sizes for which no rule was made"},
    "products": {"matmul": "products in f16", "random_products": "products in f16 of random shapes", "f32": "products in f32",
                 "epilogue": "product, then bias, GELU, residual or normalisation", "conv": "convolutions, channels first",
                 "conv_nhwc": "convolutions, channels last", "conv_transposed": "transposed convolutions",
                 "conv_weights": "gradients of convolutions' weights", "attention": "attention, causal and not"},
}
"""Suites that the README tells, of the files of results, and what they are."""
PASSES, PASSES_END = "<!-- passes: written by docs/make_reference.py -->", "<!-- end of passes -->"

GROUPS = ("Loops", "Places", "Reductions", "Storage", "Producers", "Arithmetic")
"""Headings in order; a transformation names its own (`group`), and other headings stand behind these."""

PREAMBLE = """# Transformations

<!-- written by docs/make_reference.py from explorer/transforms/; do not edit -->

Each is a method of a schedule and returns a new schedule: `s = s.split("k", 256)`. Each checks its own preconditions; then
the [four questions](concepts.md#the-four-questions) judge the result, so none can drop or repeat an instance, reverse a
dependence, or change which value a read gets; the order of independent instances may change. A few also rewrite arithmetic, by
an identity that their entry states (`factor_out`, `rescale`, `running`, `commute`; sums are reassociated); `approximate` and
`precompute` with a narrower type change the rounding, and a run's tolerance accounts for that. *Always legal* means that no
dependence can forbid the step; its preconditions still can. Most moves of loops want loops in time: split before `bind`.
`s.moves(node)` lists what applies at a node, with arguments, and says why the rest does not. Other systems' names work
too: `s.fission("i", after="S0")`; `ex.help("Halide: fuse")` translates.

In *Before* and *After*, `for i in 0…64` counts from 0 to 63, and `S(i)` is any statement.
"""

WORDS = """# Glossary

<!-- written by docs/make_reference.py from explorer/teach/words.py and explorer/teach/field.py; do not edit -->

`print(ex.help("witness"))` says in Python what stands here, with a line for each move, method and figure behind the word;
case, dashes and a plural's s do not matter. What other systems call a move is in its entry in
[transformations](transformations.md). The ideas behind the words are explained in [concepts](concepts.md).
"""


def grouped() -> Iterator[tuple[str, tuple[type[Transform], ...]]]:
    """Every transformation of the catalogue once, under its heading."""
    kinds = tuple(catalogue().values())
    for heading in dict.fromkeys((*GROUPS, *(kind.group for kind in kinds))):
        yield heading, tuple(kind for kind in kinds if kind.group == heading)


def summary(kind: type[Transform]) -> str:
    """The docstring's first sentence, as Markdown."""
    first = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0]
    return markdown(" ".join(first.split()))


def markdown(text: str) -> str:
    """Inline markup of a docstring as Markdown."""
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", text)
    return re.sub(r"``(.+?)``", r"`\1`", text)


def body(docstring: str) -> str:
    """A whole docstring as Markdown: literal blocks become fences, what leads to one a short line of its own."""
    out: list[str] = []
    for paragraph in inspect.cleandoc(docstring).split("\n\n"):
        if paragraph.startswith("    "):
            if out and out[-1].endswith("\n```"):
                out[-1] = out[-1].removesuffix("```") + "\n" + dedent(paragraph) + "\n```"
            else:
                out.append(f"```text\n{dedent(paragraph)}\n```")
        elif paragraph.endswith("::"):
            lead = markdown(paragraph.removesuffix("::"))
            out.append(re.sub(r"^(Before|After)\b", r"*\1*", lead) + ":")
        else:
            out.append(markdown(paragraph))
    return "\n\n".join(out)


def argument(field: Field) -> str:
    """One line of the list of arguments."""
    meta = field.metadata
    default = "" if field.default is MISSING or field.default == "" else f", by default `{field.default!r}`"
    choices = f" ({', '.join(f'`{c}`' for c in meta['choices'])})" if meta.get("choices") else ""
    described = f": {markdown(meta['help'])}" if meta.get("help") else ""
    return f"- `{field.name}`{described}{choices}{default}"


def entry(kind: type[Transform]) -> str:
    """One transformation: its docstring, its arguments, its other names."""
    declared = fields(kind)  # type: ignore[arg-type]
    call = ", ".join(f.name if f.default is MISSING else f"{f.name}={f.default!r}" for f in declared)
    parts = [f"### {kind.name}", f"`{kind.name}({call})`", body(kind.__doc__ or ""), "\n".join(argument(f) for f in declared)]
    names = [f"`{a}`" for a in kind.aliases]
    theirs = [f"{system}: `{words.replace(', ', '`, `')}`" for system, words in kind.elsewhere.items()]
    parts += [f"Also accepted: {', '.join(names)}."] if names else []
    parts += [f"Elsewhere: {'; '.join(theirs)}."] if theirs else []
    return "\n\n".join(part for part in parts if part)


def reference() -> str:
    """The text of ``docs/transformations.md``."""
    parts = [PREAMBLE.rstrip()]
    for heading, kinds in grouped():
        parts += [f"## {heading}", *(entry(kind) for kind in kinds)]
    return "\n\n".join(parts) + "\n"


def overview() -> str:
    """The README's table, with its markers."""
    rows = [f"| {heading if n == 0 else ''} | [`{kind.name}`](docs/transformations.md#{kind.name}) | {summary(kind)} |"
            for heading, kinds in grouped() for n, kind in enumerate(kinds)]
    return "\n".join([BEGIN, "| | transformation | meaning |", "|---|---|---|", *rows, END])


def readme(text: str) -> str:
    """The README with its tables as the catalogue and the results have them now, and the number of workloads."""
    text = re.sub(r"\b\d+ ready programs", f"{len(workloads.names())} ready programs", text)
    return between(between(text, BEGIN, END, overview()), MEASURED, MEASURED_END, measured())


def measured() -> str:
    """The table of measured times, with its markers: the fastest peer's time over ours."""
    rows = []
    for file, suites in SUITES.items():
        cases = json.loads((RESULTS / f"{file}_h200.json").read_text(encoding="utf-8"))["rows"]
        for suite, words in suites.items():
            found = [case["ratio"] for case in cases if case["suite"] == suite and case["ratio"]]
            rows.append(f"| {words} | {len(found)} | {geometric_mean(found):.2f} | {min(found):.2f} |")
    head = ["| the fastest peer's time over ours | cases | geometric mean | slowest |", "|---|--:|--:|--:|"]
    return "\n".join([MEASURED, *head, *rows, MEASURED_END])


def operations() -> str:
    """The table of operations, with its markers."""
    rows = [f"| `{call(row)}` | {markdown(row.help.partition(chr(10))[0])} | {types(row)} | {ulp(row)} |"
            for row in OPERATIONS.values() if row.help and not row.name.startswith("arg")]
    head = ("An error is the largest on a GPU, in units in the last place, as the CUDA C++ Programming Guide states it; "
            "`exact` is 0, and 0.5 is correctly rounded.")
    return "\n".join([OPERATIONS_BEGIN, head, "", "| operation | meaning | types | error (ulp) |", "|---|---|---|---|", *rows,
                      OPERATIONS_END])


def call(row: Operation) -> str:
    """How a program calls an operation."""
    return f"{row.name}({', '.join(row.arguments.split())}{', …' * row.many})"


def types(row: Operation) -> str:
    """What an operation takes."""
    if row.result == "float":
        return "floats; integers become f32"
    kinds = {"float": "floats", "int": "integers", "bool": "bool_"}
    return ", ".join(word for kind, word in kinds.items() if any(row.accepts(d) for d in COMPUTED if d.kind == kind))


def ulp(row: Operation) -> str:
    """Its largest error."""
    return "exact" if row.ulp == 0.0 or row.result == "bool" else f"{row.ulp:g}"


def language(text: str) -> str:
    """The page on the language with its table as the rows have it now."""
    return between(text, OPERATIONS_BEGIN, OPERATIONS_END, operations())


def passes() -> str:
    """The table of the code generator's passes, with its markers."""
    rows = [f"| {n} | `{name}` | {markdown(what)} |" for n, (name, what) in enumerate(sentences().items(), 1)]
    return "\n".join([PASSES, "| | pass | does |", "|---|---|---|", *rows, PASSES_END])


def concepts(text: str) -> str:
    """The page of concepts with its table as the passes are now."""
    return between(text, PASSES, PASSES_END, passes())


def glossary() -> str:
    """The text of ``docs/glossary.md``."""
    parts = [WORDS.rstrip()]
    for heading, rows in (("Words of this tool", OWN), ("Words of the field", FIELD)):
        lines = [word(row) for row in sorted(rows, key=lambda row: row.said[0].casefold())]
        parts += [f"## {heading}", "\n".join(["| word | meaning | see |", "|---|---|---|", *lines])]
    return "\n\n".join(parts) + "\n"


def word(row: Word) -> str:
    """A row of the glossary: the word with its other spellings, what it means, and what belongs to it."""
    said: dict[str, str] = {}
    for spelling in row.said:
        said.setdefault(key(spelling), spelling)
    first, *others = said.values()
    also = f" ({', '.join(others)})".replace("_", r"\_") if others else ""
    return f"| **{first}**{also} | {row.means} | {', '.join(map(place, row.see))} |"


def place(name: str) -> str:
    """How a move, a strategy, a figure or a method is written; a move with a link to its entry."""
    if name in catalogue():
        return f"[`{name}`](transformations.md#{name})"
    if name in strategies.__all__:
        return f"[`ex.strategies.{name}`](strategies.md)"
    return f"`s.{name}{'()' * name.startswith('plot.')}`"


def between(text: str, begin: str, end: str, new: str) -> str:
    """The text with what stands between two markers, and the markers, replaced.

    Raises
    ------
    ValueError
        If the markers are not there.
    """
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"the page needs the lines {begin!r} and {end!r}")
    return before + new + after


if __name__ == "__main__":
    REFERENCE.write_text(reference(), encoding="utf-8")
    GLOSSARY.write_text(glossary(), encoding="utf-8")
    LANGUAGE.write_text(language(LANGUAGE.read_text(encoding="utf-8")), encoding="utf-8")
    README.write_text(readme(README.read_text(encoding="utf-8")), encoding="utf-8")
    CONCEPTS.write_text(concepts(CONCEPTS.read_text(encoding="utf-8")), encoding="utf-8")
