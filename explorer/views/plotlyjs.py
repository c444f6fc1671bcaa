"""Plotly's JavaScript from the installed package, so that a notebook needs no network."""

from __future__ import annotations

from functools import cache

from ..errors import ScheduleError


@cache
def plotly_source() -> bytes:
    """The library's text, some megabytes.

    Raises
    ------
    ScheduleError
        If Plotly is not installed, with the line that installs it.
    """
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise ScheduleError("Plotly is not installed, so there are no interactive figures",
                            hint='pip install "schedule-explorer[lab]"') from error
    return get_plotlyjs().encode()
