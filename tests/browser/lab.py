"""A real JupyterLab server in a folder of its own, and a notebook in it, driven through a browser."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parent.parent.parent
EXPLORER = ".exw.ex-live"
OURS = ("exw", "blob:", "explorer", "anywidget")
"""Words of an exception of ours: the front end is loaded from a Blob."""


@dataclass
class Lab:
    """A running server: its address and its folders."""

    url: str
    token: str
    folder: Path
    log: Path
    process: subprocess.Popen[bytes]

    @classmethod
    def start(cls, base: Path) -> Lab:
        """Start it on a free port; returns when it answers."""
        folder, settings = base / "notebooks", base / "settings"
        for one in (folder, settings, base / "config" / "labconfig", base / "data", base / "runtime", base / "ipython"):
            one.mkdir(parents=True)
        disabled = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
        (base / "config" / "labconfig" / "page_config.json").write_text(json.dumps(disabled))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        token = secrets.token_hex(16)
        env = {
            **os.environ,
            "JUPYTER_CONFIG_DIR": str(base / "config"),
            "JUPYTER_RUNTIME_DIR": str(base / "runtime"),
            "JUPYTER_DATA_DIR": str(base / "data"),
            "IPYTHONDIR": str(base / "ipython"),
            "JUPYTERLAB_SETTINGS_DIR": str(settings),
            "JUPYTERLAB_WORKSPACES_DIR": str(base / "workspaces"),
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
        }
        log = base / "server.log"
        command = [
            sys.executable,
            "-m",
            "jupyterlab",
            "--no-browser",
            "--allow-root",
            f"--port={port}",
            "--ServerApp.port_retries=0",
            "--ip=127.0.0.1",
            f"--IdentityProvider.token={token}",
            f"--ServerApp.root_dir={folder}",
            "--LabApp.expose_app_in_browser=True",
            "--JupyterNotebookApp.expose_app_in_browser=True",
        ]
        process = subprocess.Popen(command, env=env, cwd=folder, stdout=log.open("wb"), stderr=subprocess.STDOUT)
        lab = cls(f"http://127.0.0.1:{port}", token, folder, log, process)
        deadline = time.monotonic() + 90
        while not lab._answers():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()}")
            time.sleep(0.2)
        return lab

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/api/status?token={self.token}", timeout=2) as reply:
                return reply.status == 200
        except OSError:
            return False

    def stop(self) -> None:
        """End the server and its kernels."""
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def write(self, name: str, *cells: str) -> Path:
        """A notebook of code cells."""
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        path = self.folder / f"{name}.ipynb"
        nbformat.write(book, path)
        return path


@dataclass
class Notebook:
    """A notebook open in a page; `faults` collects exceptions of the browser that are ours."""

    lab: Lab
    page: Page
    name: str
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("pageerror", lambda error: self._fault(f"{error}\n{error.stack or ''}"))
        self.page.on(
            "console", lambda message: message.type == "error" and self._console(message.text, message.location.get("url", ""))
        )

    def _fault(self, text: str) -> None:
        """An exception; the host's own are not ours to judge."""
        if any(word in text for word in OURS):
            self.faults.append(text)

    def _console(self, text: str, url: str) -> None:
        if any(word in text or word in url for word in OURS) and "favicon" not in url:
            self.faults.append(text)

    def open(self, run: bool = True) -> Notebook:
        """Open it in JupyterLab, and run all cells."""
        for choice in self.lab.folder.parent.glob("settings/**/themes.jupyterlab-settings"):
            choice.unlink()
        self.page.goto(f"{self.lab.url}/lab/tree/{self.name}.ipynb?token={self.lab.token}&reset")
        self.page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=60_000)
        self.page.wait_for_function(
            """() => {
            const kernel = window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel;
            return kernel?.connectionStatus === 'connected' && kernel.status === 'idle';
        }""",
            timeout=60_000,
        )
        if run:
            self.run_all()
        return self

    def command(self, name: str, **arguments: object) -> None:
        """Run a command of JupyterLab."""
        self.page.evaluate("([name, args]) => { window.jupyterapp.commands.execute(name, args); }", [name, arguments])

    def run_all(self) -> None:
        """Run all cells and wait for the explorer."""
        self.command("notebook:run-all-cells")
        self.page.wait_for_selector(f"{EXPLORER} .row", timeout=60_000)
        self.settle()

    def settle(self) -> None:
        """Wait until nothing is under way: no request unanswered, no move unjudged."""
        self.page.wait_for_function(
            """() => [...document.querySelectorAll('.exw.ex-live')].every((one) =>
            !one.hasAttribute('aria-busy') && !one.querySelector('.movepane[aria-busy]'))""",
            timeout=60_000,
        )

    def python(self, code: str) -> str:
        """Run code in the notebook's kernel and return what it prints."""
        return self.page.evaluate(
            """async (code) => {
            const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
            const future = kernel.requestExecute({ code, store_history: false });
            let text = '';
            future.onIOPub = (message) => {
                if (message.header.msg_type === 'stream') text += message.content.text;
                if (message.header.msg_type === 'error') text += message.content.traceback.join('\\n');
            };
            await future.done;
            return text;
        }""",
            code,
        )

    def dark(self) -> None:
        """Change to JupyterLab's dark theme."""
        self.command("apputils:change-theme", theme="JupyterLab Dark")
        self.page.wait_for_selector("body[data-jp-theme-light=false]", state="attached")
        self.page.wait_for_selector(".exw[data-theme=dark]")

    def save(self) -> Path:
        """Save the notebook and return its file."""
        path = self.lab.folder / f"{self.name}.ipynb"
        before = path.stat().st_mtime_ns
        self.command("docmanager:save")
        deadline = time.monotonic() + 30
        while path.stat().st_mtime_ns == before and time.monotonic() < deadline:
            self.page.wait_for_timeout(100)
        self.page.wait_for_timeout(300)
        return path
