"""A hundred random clicks and keys (benchmarks/browser.py does a thousand)."""

from __future__ import annotations

from collections.abc import Callable

from tests.browser.lab import Notebook
from tests.browser.monkey import play
from tests.browser.test_session import CELL

LOG = """
import logging
problems = []
class Keep(logging.Handler):
    def emit(self, record):
        problems.append(self.format(record))
logging.getLogger("explorer").addHandler(Keep(logging.WARNING))
logging.getLogger("ipykernel").addHandler(Keep(logging.WARNING))
"""


def test_random_clicks_break_nothing(notebook: Callable[..., Notebook]) -> None:
    book = notebook(LOG, CELL)
    play(book, seed=7, count=100)
    assert book.python("print(problems)").strip() == "[]"
