"""Asynchronous copies (cp.async): what one moves.

What a leaf moves was decided when it was judged (:mod:`~explorer.poly.mechanism`); the text follows, or there is none.
"""

from __future__ import annotations

from ..errors import ScheduleError
from ..poly.mechanism import Moved, Never, asynchronous
from .sites import Lowered, Site


def moved(low: Lowered, site: Site) -> Moved:
    """What one copy of the leaf moves.

    Raises
    ------
    ScheduleError
        If it cannot be asynchronous: the plan was not judged.
    """
    found = asynchronous(low.plan, site.leaf, site.loops)
    if isinstance(found, Never):
        raise ScheduleError(f"{site.leaf.id} is to copy asynchronously and cannot: {found.what}", why=found.why, hint=found.hint)
    return found
