"""The explorer as one anywidget: moves messages between the notebook and a :class:`~explorer.app.dispatcher.Dispatcher`.

Panes travel as custom messages, which a notebook does not store; the synchronised state is the front end's own text alone.
What a notebook keeps is an output of its own beside the widget: a static picture with the script, renewed after changes.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import threading
import weakref
from typing import Any

import anywidget
import traitlets

from ..errors import ScheduleError, outspoken
from ..schedule import Schedule
from .assets import css, esm
from .dispatcher import Dispatcher
from .picture import caption, static_html, static_text
from .session import Session

log = logging.getLogger("explorer")

RENEW_S = 2.0
"""Seconds of quiet after a change before the picture in the notebook is renewed."""


@outspoken(ScheduleError)
class Explorer(anywidget.AnyWidget):
    """Shows and shapes one schedule; :func:`explorer.explore` makes it.

    Attributes
    ----------
    session : Session
        The history, the selection, the runs; every method of it is what a click does.
    schedule : Schedule
        The schedule that is shown now.
    script : str
        Python that makes it.
    adopted : bool
        Whether it stands in the output of an explorer whose kernel has gone: then the front end renews the picture there.
    """

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)

    def __init__(self, session: Session) -> None:
        super().__init__(_esm=esm(), _css=css())
        self.session = session
        self.adopted = False
        self._pictures: list[Any] = []
        self._timer: threading.Timer | None = None
        self._dispatcher = Dispatcher(session, self._post, self._changed, self.model_id or "")
        self.on_msg(self._receive)
        dispatcher = weakref.ref(self._dispatcher)
        atexit.register(lambda: (d := dispatcher()) and d.close())

    @property
    def schedule(self) -> Schedule:
        """The schedule that is shown now."""
        return self.session.schedule

    @property
    def script(self) -> str:
        """Python that makes the schedule that is shown, one line for each step."""
        return self.session.script

    def close(self) -> None:
        """Stop what runs, and take the widget out of the notebook."""
        self._dispatcher.close()
        super().close()

    def __repr__(self) -> str:
        schedule = self.session.schedule
        count = len(schedule.steps)
        return f"<Explorer of {schedule.source.name}, {count} step{'s' * (count != 1)}>"

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The live view with the static picture and the text in one bundle."""
        data, metadata = self._view(**kwargs)
        return {**data, "text/html": static_html(self.session), "text/plain": static_text(self.session)}, metadata

    def _ipython_display_(self, **kwargs: Any) -> None:
        """Two outputs: the static picture, renewed after changes, and the live view, which hides it."""
        from IPython.display import display

        self._pictures.append(display(self.still(), raw=True, display_id=True))
        display(self.view_bundle(**kwargs), metadata=self._view(**kwargs)[1], raw=True)

    def view_bundle(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """The live view, with one line in its place where it is not alive."""
        line = {"text/html": caption(self.session), "text/plain": repr(self)}
        return {**self._view(include=include, exclude=exclude)[0], **line}

    def _view(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        bundle = super()._repr_mimebundle_(**kwargs) or ({}, {})
        return bundle if isinstance(bundle, tuple) else (bundle, {})

    def still(self) -> dict[str, str]:
        """The static picture, and its text."""
        return {"text/html": static_html(self.session), "text/plain": static_text(self.session)}

    # ---- messages ----

    def _receive(self, _: Any, content: Any, __: Any) -> None:
        self._dispatcher.handle(content)

    def _post(self, message: dict[str, Any], buffers: list[bytes]) -> None:
        """To the front end; a notebook that has gone is no reason to stop."""
        try:
            self.send(message, buffers or None)
        except Exception:
            log.exception("a message could not be sent")

    def _changed(self) -> None:
        """Renew the picture in the notebook once there has been no change for a while."""
        if self._timer is not None:
            self._timer.cancel()
        if self._pictures or self.adopted:
            self._timer = threading.Timer(RENEW_S, self._renew)
            self._timer.daemon = True
            self._timer.start()

    def _renew(self) -> None:
        with contextlib.suppress(Exception):
            still = self.still()
            for picture in self._pictures:
                picture.update(still, raw=True)
            if self.adopted:
                self._post({"kind": "still", "data": still}, [])
