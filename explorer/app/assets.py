"""The front end's text: the modules of ``static/`` joined into the one ES module that anywidget wants, and the stylesheet.

The modules are ordinary ES modules (a browser loads them from disk as they are, which the front end's fast test does), with
two habits that make joining them a matter of lines: every import is one line ``import { a, b } from "./file.js";``, and
``export`` stands before a declaration.  Each becomes a function that is called once and returns what it exports.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

STATIC = Path(__file__).parent / "static"
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([a-z_]+)\.js";\n', re.M)
_EXPORT = re.compile(r"^export (?:async )?(?:const|function|class) (\w+)", re.M)

STATIC_RULES = """
.jp-OutputArea-child:has(.ex-static):has(+ .jp-OutputArea-child .ex-live){display:none}
.jp-OutputArea-child:has(.ex-static)+.jp-OutputArea-child:has(.jupyter-widgets):not(:has(.ex-live)){display:none}
"""
"""The static picture hides while the live widget follows it; a dead widget's line hides after the picture."""


def modules(entry: str = "widget.js") -> list[str]:
    """The names of the modules that `entry` needs, each after those it imports."""
    order: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise ValueError(f"{' → '.join((*above, name))} import each other")
        for _, other in _IMPORT.findall((STATIC / name).read_text(encoding="utf-8")):
            visit(f"{other}.js", (*above, name))
        if name not in order:
            order.append(name)

    visit(entry, ())
    return order


@lru_cache(maxsize=1)
def esm() -> str:
    """The front end as one ES module, with its default export."""
    return "\n".join(map(_closed, modules())) + "\nexport default from_widget.main;\n"


def _closed(name: str) -> str:
    """A module as ``const from_name = (() => { ...; return { exports }; })();``."""
    text = (STATIC / name).read_text(encoding="utf-8")
    exported = _EXPORT.findall(text) + ["main"] * text.count("\nexport default ")
    text = _IMPORT.sub(lambda m: f"const {{{m[1].replace(' as ', ': ')}}} = from_{m[2]};\n", text)
    text = re.sub(r"^export default ", "const main = ", text, flags=re.M)
    text = re.sub(r"^export ", "", text, flags=re.M)
    return f"const from_{name.removesuffix('.js')} = (() => {{\n{text}return {{ {', '.join(exported)} }};\n}})();"


@lru_cache(maxsize=1)
def css() -> str:
    """The stylesheet: every ``static/*.css`` in alphabetical order."""
    return "\n".join(p.read_text(encoding="utf-8") for p in sorted(STATIC.glob("*.css")))
