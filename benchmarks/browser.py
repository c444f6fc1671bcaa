"""The explorer in a real browser: how long a click takes, how soon the first picture stands, and a thousand random clicks.

    python benchmarks/browser.py [latency] [monkey] [--clicks 1000] [--seed 1]

Latency is measured in the page, from the click to the first frame painted after the kernel's panes are drawn, on the tour's
schedules; first paint is from the call of ``explore`` in the kernel to the first painted row.  Needs JupyterLab, Playwright
and a Chromium.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from playwright.sync_api import Browser, sync_playwright

from tests.browser.lab import Lab, Notebook
from tests.browser.monkey import play
from tests.browser.test_monkey import LOG
from tests.browser.test_session import CELL

TOUR = {
    "softmax, as written": "from examples.softmax import softmax\ns = softmax.schedule(M=64, N=1000)",
    "softmax, scheduled": "from examples.softmax import schedule\ns = schedule(M=64, N=1000, threads=128)",
    "matmul, as written": "from examples.matmul import matmul\ns = matmul.schedule(M=64, N=64, K=64)",
    "matmul, scheduled": "from examples.matmul import schedule\ns = schedule()",
}
"""The schedules of the tour, as written and as they end."""
SHOWN = "import time\nstart = time.time()\ne = ex.explore(s)\ne"
WATCH = """() => {
    const paint = () => requestAnimationFrame(() => { window.painted ??= Date.now(); });
    const look = () => document.querySelector('.exw .row') ? paint() : requestAnimationFrame(look);
    requestAnimationFrame(look);
}"""
CLICK = """async (selector) => {
    const one = document.querySelector(selector);
    if (!one || one.disabled) return null;
    const root = one.closest('.exw');
    const start = performance.now();
    one.click();
    if (root.hasAttribute('aria-busy')) {
        await new Promise((done) => new MutationObserver((_, watch) => {
            if (!root.hasAttribute('aria-busy')) { watch.disconnect(); done(); }
        }).observe(root, { attributes: true, attributeFilter: ['aria-busy'] }));
    }
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    return performance.now() - start;
}"""


def clicks(book: Notebook) -> dict[str, list[float]]:
    """Milliseconds of every kind of click."""
    page = book.page
    found: dict[str, list[float]] = {}

    def click(kind: str, selector: str) -> None:
        book.settle()
        page.wait_for_timeout(150)
        if (took := page.evaluate(CLICK, selector)) is not None:
            found.setdefault(kind, []).append(took)

    nodes = page.locator(".exw [role=tree][aria-label=loops] .row").evaluate_all(
        "rows => rows.map((row) => row.dataset.node).filter(Boolean)"
    )
    for node in [*nodes, *reversed(nodes)]:
        click("select", f".exw [role=tree][aria-label=loops] .row[data-node='{node}']")
    for _ in range(8):
        click("undo", ".exw .undo")
    for _ in range(8):
        click("redo", ".exw .redo")
    for _ in range(4):
        click("go to", ".exw .state:not([aria-current])")
        click("apply", ".exw li.move.ok .quick")
    return found


def latency(lab: Lab, browser: Browser) -> None:
    """A line for each schedule, and one for all."""
    together: list[float] = []
    print(f"{'schedule':24}{'first paint':>14}  {'p50':>7}{'p95':>8}{'most':>8}  clicks")
    for title, make in TOUR.items():
        page = browser.new_context(viewport={"width": 1440, "height": 1000}).new_page()
        name = title.replace(", ", "_").replace(" ", "_")
        lab.write(name, f"import explorer as ex\n{make}", SHOWN)
        page.add_init_script(f"({WATCH})()")
        book = Notebook(lab, page, name).open()
        first = page.evaluate("() => window.painted") / 1000 - float(book.python("print(start)"))
        found = clicks(book)
        times = np.array([one for kind in found.values() for one in kind])
        together += times.tolist()
        kinds = ", ".join(f"{kind} {np.percentile(values, 95):.0f}" for kind, values in found.items())
        print(f"{title:24}{first:12.2f} s  {figures(times)}  {len(times)} (p95: {kinds})", flush=True)
        book.command("notebook:shutdown-kernel")
        page.context.close()
    print(f"{'all':24}{'':14}  {figures(np.array(together))}  {len(together)}")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


def figures(times: np.ndarray) -> str:
    """Median, p95 and most, in milliseconds."""
    return f"{np.percentile(times, 50):6.0f} {np.percentile(times, 95):6.0f} ms{times.max():6.0f}"


def monkey(lab: Lab, browser: Browser, seed: int, count: int) -> None:
    """Random clicks; an exception or a script that does not rebuild the schedule ends the program."""
    page = browser.new_context(viewport={"width": 1440, "height": 1000}, accept_downloads=True).new_page()
    lab.write("monkey", LOG, CELL)
    book = Notebook(lab, page, "monkey").open()
    play(book, seed, count, check_every=50)
    problems = book.python("print(problems)").strip()
    states = page.locator(".exw .state").count()
    assert problems == "[]", problems
    print(f"{count} random clicks, seed {seed}: {states} schedules, no exception, the script rebuilds what is shown")


def main() -> None:
    """Run what is named, or both."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", nargs="*", default=["latency", "monkey"], choices=["latency", "monkey"])
    options.add_argument("--clicks", type=int, default=1000)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play_:
        lab = Lab.start(Path(folder) / "lab")
        try:
            browser = play_.chromium.launch(
                executable_path=shutil.which("chromium") or shutil.which("google-chrome"), args=["--no-sandbox"]
            )
            if "latency" in chosen.what:
                latency(lab, browser)
            if "monkey" in chosen.what:
                monkey(lab, browser, chosen.seed, chosen.clicks)
        finally:
            lab.stop()


if __name__ == "__main__":
    main()
