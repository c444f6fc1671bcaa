"""Makes the README's picture from real values: the notebook pictures of a schedule, a refusal, the CUDA and a run.

``python docs/make_picture.py`` writes ``docs/pictures/overview.html``; with Playwright and Chromium installed also
``overview-light.png`` and ``overview-dark.png``.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import explorer as ex  # noqa: E402
from examples.softmax import schedule, softmax  # noqa: E402
from explorer.views.code import code_html  # noqa: E402
from explorer.views.findings import error_html  # noqa: E402
from explorer.views.runs import run_html  # noqa: E402
from explorer.views.schedules import schedule_html  # noqa: E402
from explorer.views.style import page  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
SIZE = {"width": 1320, "height": 400}


def overview() -> str:
    """The page: loops and refusal on the left, CUDA and run on the right."""
    s = schedule(M=64, N=1000, threads=128)
    try:
        softmax.schedule(M=64, N=1000).fuse("k", "j")
    except ex.IllegalSchedule as error:
        refusal = error_html(error)
    else:
        raise AssertionError("the refusal is part of the picture")
    text = s.kernel("H200").text
    kernel = text[text.index('extern "C"') :]
    shown = kernel.splitlines()[:30]
    cuda = page("softmax", "CUDA for H200", code_html("\n".join(shown), first=text[: text.index('extern "C"')].count("\n") + 1))
    run = run_html(s.run(device="cpu", ragged_sizes=[{"M": 5, "N": 132}]))
    return ("<!doctype html><meta charset=utf-8><title>overview</title><style>:root{color-scheme:light dark}"
            "body{margin:12px;background:light-dark(#fff,#0d1117);display:grid;grid-template-columns:11fr 13fr;gap:12px;align-items:start}"
            f"</style><div>{schedule_html(s)}{refusal}</div><div>{cuda}{run}</div>")


def main() -> None:
    """Write the page, and the pictures if a browser is there."""
    PICTURES.mkdir(exist_ok=True)
    page_file = PICTURES / "overview.html"
    page_file.write_text(overview(), encoding="utf-8")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None or importlib.util.find_spec("playwright") is None:
        print("wrote overview.html; install Playwright and Chromium for the PNG files")
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            view = chromium.new_page(viewport=SIZE, color_scheme=scheme)
            view.goto(page_file.as_uri())
            view.screenshot(path=PICTURES / f"overview-{scheme}.png", full_page=True)
        chromium.close()
    page_file.unlink()


if __name__ == "__main__":
    main()
