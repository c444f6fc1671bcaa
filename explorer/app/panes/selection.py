"""The selection pane: facts of the selected node, as rows of text."""

from __future__ import annotations

from ...ir.text import access_text, buffer_text, layout_text, loop_text, statement_text
from ...ir.tree import Kernel, Leaf, Loop, Sync, walk
from ...poly.traffic import bank_passes
from ...run.facts import scaled
from ..protocol import Selection
from ..session import Session


def selection(session: Session) -> Selection:
    """The selected node: its kind, its text, facts, and the nodes around and below it."""
    node, plan = session.selected, session.schedule.plan
    nothing: Selection = {"node": None, "kind": "", "title": "", "facts": [], "related": []}
    if node is None:
        return nothing
    kernel = next((k for k in plan.kernels if k.id == node), None)
    if kernel is not None:
        return {"node": node, "kind": "kernel", "title": f"kernel {node}", "facts": _kernel(kernel),
                "related": _below(kernel.body)}
    hit = plan.find(node)
    if hit is None:
        buffer = plan.buffer_of.get(node)
        if buffer is None:
            return nothing
        users = [leaf.id for leaf, _, _ in plan.leaves if any(v.buffer == node for _, v in leaf.views)]
        facts = [("memory", buffer.space), ("bytes", f"{buffer.nbytes:,}"), ("used by", ", ".join(users))]
        facts += [("layout", layout_text(buffer))] if buffer.is_placed else []
        if buffer.space == "shared":
            passes, fewest = bank_passes(plan, node)
            facts.append(("passes over the banks", f"{scaled(passes)}, {scaled(fewest)} at best"))
        return {"node": node, "kind": "buffer", "title": buffer_text(buffer), "facts": facts, "related": users}
    found, above = hit
    around = [x.id for x in above]
    if isinstance(found, Loop):
        facts = [("role", found.role), ("iterations", f"{found.extent:,}"), ("inside of", ", ".join(around) or "nothing"),
                 ("statements", ", ".join(n for n in _below(found.body) if n in {leaf.id for leaf, _, _ in plan.leaves}))]
        return {"node": node, "kind": "loop", "title": loop_text(found), "facts": facts,
                "related": [*around, *_below(found.body)]}
    if isinstance(found, Sync):
        return {"node": node, "kind": "sync", "title": found.kind, "facts": [], "related": around}
    assert isinstance(found, Leaf)
    statement = plan.statement_of[found.statement]
    reads = [access_text(plan, found, slot) for slot in range(len(statement.reads))]
    facts = [("writes", access_text(plan, found, len(reads))), ("reads", ", ".join(dict.fromkeys(reads)) or "nothing"),
             ("as written", statement.text), ("source line", str(statement.line or "none")),
             ("inside of", ", ".join(around) or "nothing")]
    buffers = [v.buffer for _, v in found.views]
    return {"node": node, "kind": "statement", "title": statement_text(plan, found), "facts": [f for f in facts if f[1]],
            "related": [*around, *dict.fromkeys(buffers)]}


def _kernel(kernel: Kernel) -> list[tuple[str, str]]:
    loops = [n.id for n in walk(kernel.body) if isinstance(n, Loop)]
    return [("loops", ", ".join(loops)), ("statements", ", ".join(n.id for n in walk(kernel.body) if isinstance(n, Leaf)))]


def _below(body: tuple) -> list[str]:
    return [n.id for n in walk(body)]
