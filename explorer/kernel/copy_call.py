"""The call by which a thread asks for an asynchronous copy of a vector, or of a part of one."""

from __future__ import annotations

from ..ir.expr import Expr
from .conditions import NEVER
from .nodes import Copy
from .spelling import Speller


def copy_call(spell: Speller, node: Copy) -> str:
    """``async_copy<16>(&a_s[8 * tx], &a[8 * tx + 64 * k])``, with the bytes that are read where these are not all of them."""
    spell.library.add("async_copy")
    to, source = (f"&{spell.element(place, node.site)}" for place in (node.to, node.source))
    whole = not node.ends or node.source.store.shape[-1] % node.lanes == 0  # whether whole vectors lie in the array
    if node.begins and node.inside != (NEVER,):
        spell.library.add("async_copy_between")
        begin, end = _extreme(spell, node, "max", node.begins), _extreme(spell, node, "min", node.ends) or str(node.lanes)
        return f"async_copy_between<{node.lanes}, {str(whole).lower()}>({to}, {source}, {begin}, {_if_inside(spell, node, end)})"
    each = f"first_elements<{node.nbytes}, {node.nbytes // node.lanes}>"
    amount = _if_inside(spell, node, _extreme(spell, node, "min", node.ends, each) or (str(node.nbytes) if node.inside else ""))
    return f"async_copy{'' if whole else '_part'}<{node.nbytes}>({to}, {source}{amount and f', {amount}'})"


def _if_inside(spell: Speller, node: Copy, amount: str) -> str:
    """The amount where the copy's conditions hold, else 0."""
    if node.inside == (NEVER,):
        return "0"
    return f"{spell.conditions(node.inside, node.site.around, enclosed=True)} ? {amount} : 0" if node.inside else amount


def _extreme(spell: Speller, node: Copy, function: str, bounds: tuple[Expr, ...], each: str = "") -> str:
    """The least or the greatest of bounds, each as what the function `each` makes of it; nothing of none."""
    out = ""
    for e in bounds:
        text = spell.expr(e, node.site.ranges)[0]
        text = f"{each}({text})" if each else text
        out = f"{function}({out}, {text})" if out else text
    return out
