"""Panes as a kernel would send them, small and made by hand: what the front end's own tests show."""

from __future__ import annotations

from typing import Any

from explorer.app.panes.problems import witness
from explorer.ir.finding import Finding, Instance
from explorer.views.findings import Refusal, refusal_box
from explorer.views.highlight import highlight_line
from explorer.views.rows import Row, code

HOSTILE = '<img src=x onerror="window.harmed = true">'
"""A text that would run as a program if it were ever taken for markup."""


def row(node: str | None, depth: int, text: str, kind: str = "loop") -> dict[str, Any]:
    key = node or text
    html = Row(key, node, kind, depth, "↻", "time", code(text), text).html(live=True)
    return {"key": key, "node": node, "kind": kind, "depth": depth, "label": text, "html": html}


def problem(what: str, hints: tuple[tuple[str, str | None], ...] = (), finding: Finding | None = None) -> dict[str, Any]:
    box = refusal_box(Refusal(what, hints=hints, finding=finding))
    told = [{"text": text, "call": call} for text, call in hints]
    return {"what": what, "where": "", "why": "", "hints": told, "finding": witness(finding) if finding else None, "html": box}


def move(name: str, call: str | None, applies: bool = True, **more: Any) -> dict[str, Any]:
    return {
        "key": call or name,
        "name": name,
        "title": f"{name} title",
        "help": f"what {name} does",
        "applies": applies,
        "call": call,
        "form": [],
        "problem": None if applies else problem(f"{name} is not legal"),
        **more,
    }


FINDING = Finding("order", HOSTILE, "", "y", (0,), "flow", Instance("S0", (0,)), Instance("S1", (0, 1)), ("i", "S1"), (3,))

FORM = [
    {"name": "loop", "kind": "loop", "help": "which", "required": True, "value": "k", "choices": ["i", "k"]},
    {"name": "factor", "kind": "int", "help": "how many", "required": True, "value": 4, "min": 2, "max": 64},
]

LINES = [
    "// program",
    'extern "C" __global__ void f() {',
    "for (int i = 0; i < 4; ++i)",
    "for (int k = 0; k < 8; ++k)",
    "y[i] += x[i];",
    "}",
]


def state(name: str, parent: str | None, **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "parent": parent,
        "title": f"step {name}",
        "call": f"step('{name}')",
        "legal": True,
        "obligations": 0,
        "correct": None,
        "time_us": None,
        "share": None,
        "device": "",
        **more,
    }


def history(*states: dict[str, Any], current: str, path: list[str]) -> dict[str, Any]:
    return {"states": list(states), "current": current, "path": path}


RUN: dict[str, Any] = {
    "status": "idle",
    "doing": "",
    "fraction": None,
    "device": "cpu",
    "sizes": {"M": 4, "N": 8},
    "correct": None,
    "verdict": "",
    "html": "",
    "gpu": "H200",
    "priced_us": None,
    "devices": [
        {"name": "cpu", "label": "CPU", "available": True, "why": ""},
        {"name": "cuda", "label": "GPU", "available": False, "why": "no driver"},
    ],
    "samples": {},
    "problem": None,
}


def everything() -> dict[str, Any]:
    """Every pane, for the answer to ``ready``."""
    return {
        "head": {
            "program": "f",
            "signature": HOSTILE,
            "undo": "split k",
            "redo": None,
            "obligations": [],
            "busy": "",
            "large": "",
            "badges": [
                {"name": "proved", "state": "earned", "detail": "all four questions"},
                {"name": "timed", "state": "open", "detail": ""},
            ],
        },
        "loops": [
            row("f", 0, "kernel f", "kernel"),
            row("i", 1, "for i"),
            row("k", 2, "for k"),
            row("S0", 3, HOSTILE, "statement"),
            row("n", 1, "for n"),
        ],
        "tree": [row("i", 0, "band i", "band")],
        "selection": {"node": "k"},
        "moves": {
            "node": "k",
            "title": "2 apply · 1 do not",
            "pending": False,
            "moves": [
                move("split", "split('k', 4)", form=FORM),
                move("split", "split('k', 8)"),
                move("reverse", "reverse('k')"),
                move(
                    "fuse",
                    "fuse('k', 'n')",
                    False,
                    problem=problem(HOSTILE, (("cut first", "cut('k', 1)"),), FINDING),
                ),
            ],
        },
        "cuda": {
            "lines": [highlight_line(text) for text in LINES],
            "nodes": {"i": [3, 4, 5], "k": [4, 5], "S0": [5]},
            "arch": "sm_90",
            "problem": None,
            "truncated": "",
        },
        "history": history(
            state("a", None), state("b", "a"), state("c", "b"), state("d", "a"), current="b", path=["a", "b", "c"]
        ),
        "run": RUN,
        "resume": {"widget": "w", "text": "import explorer as ex", "target": "", "steps": 1, "program": "f"},
        "script": {"text": "s = f.schedule(M=4)\ns = s.split('k', 4)", "steps": [["a", 1], ["b", 2]], "error": None},
    }


def figure(name: str = "domain") -> dict[str, Any]:
    return {
        "name": name,
        "title": "Instances",
        "spec": {},
        "note": "nothing to draw",
        "options": [],
        "header": ["node", "points"],
        "table": [["i", "i", "4"], ["k", "k", "32"]],
        "svg": "",
    }
