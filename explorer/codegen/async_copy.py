"""Asynchronous copies (cp.async): the text of a copy leaf, and of commit and wait."""

from __future__ import annotations

from ..ir.expr import Expr
from ..ir.tree import Sync
from .access import access_text, inside_conditions, is_move
from .guards import NEVER, guard_text
from .lower import Lowered, Site

SIZES = (4, 8, 16)
"""Bytes that one cp.async moves (PTX ISA, "cp.async")."""


def sync_text(node: Sync, library: set[str]) -> str:
    """``async_commit();`` or ``async_wait<1>();``."""
    library.add("async_copy")
    return "async_commit();" if node.kind == "commit" else f"async_wait<{node.pending}>();"


def possible(low: Lowered, site: Site, lanes: int = 1) -> bool:
    """Whether the leaf, taken `lanes` elements at a time, is one cp.async: an unchanged move of 4, 8 or 16 bytes, zero-filled."""
    target = low.store(site.leaf, len(site.statement.reads))
    if not is_move(low, site) or target.space != "shared" or lanes * target.dtype.bytes not in SIZES:
        return False
    source = low.store(site.leaf, site.statement.value.slot)  # type: ignore[union-attr]
    return source.space == "global" and (not site.statement.inside or site.statement.fill == 0)


def lines(low: Lowered, site: Site, lanes: int, library: set[str], lane: dict[str, Expr] | None = None) -> list[str]:
    """``async_copy<16>(&As[…], &A[…], inside ? 16 : 0);``: where `inside` fails nothing is read and zeros are written."""
    library.add("async_copy")
    statement = site.statement
    size = lanes * low.store(site.leaf, len(statement.reads)).dtype.bytes
    target = access_text(low, site, len(statement.reads), lane=lane)
    source = access_text(low, site, statement.value.slot, lane=lane)  # type: ignore[union-attr]
    inside = inside_conditions(site, lane)
    if inside == (NEVER,):
        amount = ", 0"
    else:
        amount = f", {guard_text(inside, site.around, enclosed=True)} ? {size} : 0" if inside else ""
    return [f"async_copy<{size}>(&{target}, &{source}{amount});  // {site.leaf.id}"]
