"""The CUDA pane: what is folded is the device library, all of it and nothing else."""

from __future__ import annotations

from tests.browser.shown import Open
from tests.transforms.multiblock import spread


def test_the_device_library_is_folded_from_its_first_line_to_its_last(opened: Open) -> None:
    stage = opened(spread("peaks").collect("y", "handoff"))
    stage.calm()
    page = stage.page
    text = str(stage.session.schedule.cuda).rstrip("\n").split("\n")
    kernel = next(n for n, line in enumerate(text) if line.startswith('extern "C"'))
    first = text.index("") + 1
    counters = next(n for n, line in enumerate(text) if line.startswith("__device__ unsigned int"))
    assert text[first].startswith("// The larger"), "the library begins with a comment"
    assert counters < kernel

    def lines() -> list[int]:
        return page.locator(".cl").evaluate_all("all => all.flatMap((one, n) => one.hidden || !one.offsetHeight ? [] : [n])")

    assert lines() == [*range(first), *range(counters, len(text))]
    fold = page.get_by_role("button", name="device library")
    assert fold.inner_text() == f"▸ device library, {counters - first} lines"
    fold.click()
    stage.calm()
    assert lines() == [*range(len(text))]
