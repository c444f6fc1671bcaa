"""Makes the README's picture from real values: the notebook pictures of a schedule, a refusal, the CUDA and a run.

``python docs/make_picture.py`` writes ``overview-light.png`` and ``overview-dark.png`` into ``docs/pictures/``.  It needs the
extra ``docs`` (Playwright and Pillow) and Chromium; without them it leaves the page, ``overview.html``.
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
LINES = 30
"""Of the CUDA text, from the kernel's head on."""
COLOURS = 250
"""Of the PNG files: text in a few hues with smooth edges."""
SIZE = {"width": 1400, "height": 400}


def overview() -> str:
    """The page: loops and refusal on the left, CUDA and run on the right."""
    s = schedule(M=64, N=1000, threads=128, vector=1)
    try:
        softmax.schedule(M=64, N=1000).fuse("k", "j")
    except ex.IllegalSchedule as error:
        refusal = error_html(error)
    else:
        raise AssertionError("the refusal is part of the picture")
    text = s.kernel("H200").text
    kernel = text[text.index('extern "C"') :]
    shown = kernel.splitlines()[:LINES]
    first = text[: text.index('extern "C"')].count("\n") + 1
    cuda = page("softmax", "CUDA for H200", code_html("\n".join(shown), first=first))
    run = run_html(s.run(device="cpu", time=False, archs=["sm_90"]))
    return ("<!doctype html><meta charset=utf-8><title>overview</title><style>:root{color-scheme:light dark}"
            "body{margin:12px;background:light-dark(#fff,#0d1117);display:grid;gap:4px 12px;align-items:start;"
            "grid-template-columns:minmax(0,1fr) minmax(0,1fr)}"
            f"</style><div>{schedule_html(s)}{refusal}</div><div>{cuda}{run}</div>")


def main() -> None:
    """Write the page, and the pictures if a browser is there."""
    PICTURES.mkdir(exist_ok=True)
    page_file = PICTURES / "overview.html"
    page_file.write_text(overview(), encoding="utf-8")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None or not all(importlib.util.find_spec(name) for name in ("playwright", "PIL")):
        print("wrote overview.html; for the PNG files install Chromium and pip install -e '.[docs]'")
        return
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            view = chromium.new_page(viewport=SIZE, color_scheme=scheme)
            view.goto(page_file.as_uri())
            picture = PICTURES / f"overview-{scheme}.png"
            view.screenshot(path=picture, full_page=True)
            Image.open(picture).convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(picture, optimize=True)
        chromium.close()
    page_file.unlink()


if __name__ == "__main__":
    main()
