"""Calls that part loops, as proposals have them: behind which node the loops around it are distributed, from the inside out."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.tree import Kernel, Leaf, Loop, Node


def parted_behind(above: Sequence[Loop], node_id: str) -> list[str]:
    """The calls of ``distribute`` that bring the end of a node to the top of its kernel.

    Loops in which nothing stands behind it end with it already, as long as none inside of them is distributed.

    Parameters
    ----------
    above : sequence of Loop
        The loops around it, outermost first.
    node_id : str
    """
    calls: list[str] = []
    for loop in reversed(above):
        if calls or loop.body[-1].id != node_id:
            calls.append(f"distribute('{loop.id}', after='{node_id}')")
        node_id = loop.id
    return calls


def cut_between(kernel: Kernel, first: tuple[Sequence[Loop], Leaf], second: tuple[Sequence[Loop], Leaf]) -> tuple[str, ...]:
    """The calls that put a leaf into a later launch than another one before it: distributions and ``launch``; none where it does
    not stand behind the other one.

    Parameters
    ----------
    kernel : Kernel
        Of both.
    first, second : (sequence of Loop, Leaf)
        Each leaf with the loops around it, outermost first.
    """
    (above, _), (others, _) = first, second
    depth = next((n for n, (x, y) in enumerate(zip(above, others, strict=False)) if x.id != y.id), min(len(above), len(others)))
    body: tuple[Node, ...] = others[depth - 1].body if depth else kernel.body
    ids = [n.id for n in body]
    here, there = ((*(x.id for x in loops[depth:]), leaf.id)[0] for loops, leaf in (first, second))
    if not {here, there} <= set(ids) or ids.index(here) >= (place := ids.index(there)):
        return ()
    top = others[0].id if depth else ids[place - 1]
    return (*parted_behind(others[:depth], ids[place - 1]), f"launch('{kernel.id}', after='{top}')")
