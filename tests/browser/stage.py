"""The front end on a plain page, without Jupyter; on the other side stands a real kernel side, or a test that plays it."""

from __future__ import annotations

import base64
import json
import queue
import time
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page

from explorer.app.assets import css, esm

PAGE = """<!doctype html><meta charset="utf-8"><title>stage</title><style>body { margin: 12px; font-family: system-ui }</style>
<div id="host"></div>
<script type="module">
const handlers = new Set();
const style = document.createElement("style");
style.textContent = STYLE;
document.head.append(style);
window.sent = [];
window.receive = (content, buffers) => handlers.forEach((run) => run(content, buffers.map((text) =>
    new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer))));
const send = (content) => {
    if (window.broken) throw new Error("cannot send");
    window.sent.push(content); window.post?.(JSON.stringify(content));
};
const others = new Set();
const set = (name) => (name === "msg:custom" ? handlers : others);
window.lose = () => others.forEach((run) => run());
const model = { send, on: (name, run) => set(name).add(run), off: (name, run) => set(name).delete(run), get: () => undefined };
const widget = (await import(URL.createObjectURL(new Blob([SOURCE], { type: "text/javascript" })))).default;
window.leave = widget.render({ model, el: document.getElementById("host") });
window.staged = true;
</script>"""


class Stage:
    """A page with the widget on it.

    Parameters
    ----------
    page : Page
    kernel : callable, optional
        Given a function that sends ``(message, buffers)`` to the page, returns the function that takes requests; without it
        the test reads ``window.sent`` and answers with :meth:`tell`.
    """

    def __init__(
        self, page: Page, kernel: Callable[[Callable[[Any, list[bytes]], None]], Callable[[Any], None]] | None = None
    ) -> None:
        self.page = page
        self.faults: list[str] = []
        self.requests: queue.Queue[Any] = queue.Queue()
        self.answers: queue.Queue[tuple[Any, list[bytes]]] = queue.Queue()
        self.handle = kernel(lambda message, buffers: self.answers.put((message, buffers))) if kernel else None
        page.on("pageerror", lambda error: self.faults.append(f"{error}\n{error.stack or ''}"))
        page.on("console", lambda message: message.type == "error" and self.faults.append(message.text))
        if self.handle:
            page.expose_function("post", lambda text: self.requests.put(json.loads(text)))
        script = PAGE.replace("STYLE", _literal(css())).replace("SOURCE", _literal(esm()))
        page.route("http://stage.test/", lambda route: route.fulfill(body=script, content_type="text/html"))
        page.goto("http://stage.test/")
        page.wait_for_function("window.staged")

    def tell(self, message: Any, buffers: list[bytes] | None = None) -> None:
        """Send one message to the page."""
        texts = [base64.b64encode(one).decode() for one in buffers or []]
        self.page.evaluate("([message, buffers]) => window.receive(message, buffers)", [json.loads(json.dumps(message)), texts])

    def settle(self, quiet_ms: int = 250, limit_s: float = 60) -> None:
        """Carry messages to and fro until both sides have been quiet for a while; a page that stays busy fails the test."""
        end = time.monotonic() + limit_s
        quiet = time.monotonic()
        while time.monotonic() - quiet < quiet_ms / 1000:
            assert time.monotonic() < end or not self.handle, f"the page is still busy after {limit_s} s"
            if time.monotonic() > end:
                return
            self.page.wait_for_timeout(10)
            while not self.requests.empty():
                self.handle(self.requests.get())  # type: ignore[misc]
                quiet = time.monotonic()
            while not self.answers.empty():
                self.tell(*self.answers.get())
                quiet = time.monotonic()
            if self.page.evaluate("() => Boolean(document.querySelector('.exw[aria-busy], .exw [aria-busy=true]'))"):
                quiet = time.monotonic()


def _literal(text: str) -> str:
    return json.dumps(text).replace("</", "<\\/")
