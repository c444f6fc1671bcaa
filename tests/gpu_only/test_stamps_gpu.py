"""Stamps on a real GPU: the results are right, each role's log is complete and in order, and its times add up to the run's."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.kernel.test_stamps import KINDS, made

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("kind", KINDS)
def test_a_log_is_complete_and_in_time(kind: str) -> None:
    s = made(kind)
    found, order = s.stamps(device="cuda", blocks=(0, 2)), s.stamps(device="cpu", blocks=(0, 2))
    assert found.correct
    assert found.measured
    assert [k.log for k in found.kept] == [k.log for k in order.kept]
    for kept, wanted in zip(found.kept, order.kept, strict=True):
        assert [(p.mark, p.iteration) for p in kept.pieces] == [(p.mark, p.iteration) for p in wanted.pieces]
        assert all(a.end == b.start >= a.start for a, b in pairwise(kept.pieces))
        assert 0 < kept.pieces[-1].end < 1000


def test_the_time_of_a_block_is_within_that_of_the_run() -> None:
    found = made("warps", 1024, 1024, 1024).stamps(device="cuda", blocks=(0, 1000))
    assert found.plain_us is not None
    assert found.stamped_us is not None
    assert all(k.pieces[-1].end < 1.5 * found.stamped_us for k in found.kept)
    assert found.plain_us < 1.1 * found.stamped_us
