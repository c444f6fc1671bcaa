"""A front end for tests: sends requests, keeps the panes, and holds every answer against the protocol's types."""

from __future__ import annotations

import json
import re
import types
from html import unescape
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

import explorer as ex
from explorer import workloads
from explorer.app import protocol
from explorer.app.dispatcher import Dispatcher
from explorer.app.protocol_messages import Answers, Panes
from explorer.app.session import Session

PANES: dict[str, Any] = get_type_hints(Panes)
ANSWERS: dict[str, Any] = get_type_hints(Answers)


def misfit(value: Any, wanted: Any, path: str = "") -> str:
    """Where a value differs from a type of the protocol; empty where it fits.  JSON has lists for tuples."""
    if wanted is Any:
        return ""
    if is_typeddict(wanted):
        if not isinstance(value, dict):
            return f"{path}: {type(value).__name__} is no {wanted.__name__}"
        hints = get_type_hints(wanted, include_extras=True)
        needed = {k for k, t in hints.items() if get_origin(t) is not NotRequired}
        if (missing := needed - value.keys()) or (extra := value.keys() - hints.keys()):
            return f"{path}: missing {sorted(missing)}" if missing else f"{path}: unknown {sorted(extra)}"
        return next(filter(None, (misfit(v, hints[k], f"{path}.{k}") for k, v in value.items())), "")
    origin, args = get_origin(wanted), get_args(wanted)
    if origin is NotRequired:
        return misfit(value, args[0], path)
    if origin in (Union, types.UnionType):
        found = [misfit(value, a, path) for a in args]
        return "" if "" in found else found[0]
    if origin is Literal:
        return "" if value in args else f"{path}: {value!r} is not one of {args}"
    if origin is list:
        if not isinstance(value, list):
            return f"{path}: no list"
        return next(filter(None, (misfit(v, args[0], f"{path}[{n}]") for n, v in enumerate(value))), "")
    if origin is tuple:
        if not isinstance(value, list) or len(value) != len(args):
            return f"{path}: no {len(args)}-tuple"
        return next(filter(None, (misfit(v, a, f"{path}[{n}]") for n, (v, a) in enumerate(zip(value, args, strict=True)))), "")
    if origin is dict:
        if not isinstance(value, dict):
            return f"{path}: no dict"
        return next(filter(None, (misfit(v, args[1], f"{path}[{k}]") for k, v in value.items())), "")
    if wanted is None or wanted is type(None):
        return "" if value is None else f"{path}: {value!r} is not None"
    kinds = (int, float) if wanted is float else wanted
    return "" if isinstance(value, kinds) else f"{path}: {value!r} is no {wanted.__name__}"


def text_of(html: str) -> str:
    """What a reader sees of a fragment."""
    return unescape(re.sub(r"<[^>]*>", "", html))


def shown_code(row: str) -> str:
    """The code of a row, without its sign and its chips."""
    return text_of(row.partition('<span class="code">')[2].partition('<span class="chip')[0]).strip()


class Front:
    """Panes as the front end would show them, and what was answered to the last request."""

    def __init__(self, session: Session) -> None:
        self.session, self.panes, self.serial = session, dict[str, Any](), 0
        self.messages: list[dict[str, Any]] = []
        self.buffers: list[bytes] = []
        self.wrong: list[str] = []
        self.dispatcher = Dispatcher(session, self.take)

    def take(self, message: dict[str, Any], buffers: list[bytes]) -> None:
        """From any thread; what is wrong with a message is kept for :meth:`ask` to raise."""
        json.dumps(message, allow_nan=False)
        if message["kind"] == "panes":
            self.wrong += [misfit(data, PANES[name], name) for name, data in message["panes"].items()]
            self.panes.update(message["panes"])
        elif message["kind"] == "answer":
            self.wrong.append(misfit(message["data"], ANSWERS.get(message["to"], Any), message["to"]))
        else:
            self.wrong.append(misfit(message["problem"], protocol.Problem, "problem"))
        self.messages.append(message)
        self.buffers += buffers

    def ask(self, kind: str, wait: bool = False, **fields: Any) -> list[dict[str, Any]]:
        """What is answered to one request; with `wait`, also by the threads."""
        self.serial += 1
        self.messages.clear()
        self.buffers.clear()
        self.dispatcher.handle({"kind": kind, "serial": self.serial, **fields})
        if wait:
            assert self.dispatcher.wait()
        assert not any(self.wrong), next(filter(None, self.wrong))
        assert any(m["serial"] == self.serial for m in self.messages), f"{kind} was not answered"
        return list(self.messages)

    def problem(self, kind: str, **fields: Any) -> dict[str, Any]:
        """The problem that a request must lead to."""
        found = [m["problem"] for m in self.ask(kind, wait=True, **fields) if m["kind"] == "problem"]
        assert len(found) == 1, f"{kind} {fields}: {self.messages}"
        return found[0]

    def data(self, kind: str, **fields: Any) -> Any:
        """The answer that a request must lead to."""
        found = [m["data"] for m in self.ask(kind, wait=True, **fields) if m["kind"] == "answer"]
        assert len(found) == 1, f"{kind} {fields}: {self.messages}"
        return found[0]

    def moves(self, node: str) -> list[dict[str, Any]]:
        """All moves at a node, judged."""
        self.ask("select", wait=True, node=node)
        pane = self.panes["moves"]
        assert pane["node"] == node
        assert not pane["pending"]
        return pane["moves"]


def schedule(name: str, *steps: str, **sizes: int) -> ex.Schedule:
    """A workload at some sizes (by default tiny), after some steps."""
    workload = workloads.get(name)
    found = workload.definition.schedule(**(sizes or workload.tiny))
    session = Session(found)
    for step in steps:
        session.apply(step)
    return session.schedule


def front(name: str, *steps: str, **sizes: int) -> Front:
    """A front end on a workload."""
    return Front(Session(schedule(name, *steps, **sizes)))
