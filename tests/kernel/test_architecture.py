"""Instructions that an architecture does not have: their nodes, the moves that wrote them, what to take instead."""

from __future__ import annotations

import pytest

from explorer.errors import CompileError, ResourceError
from explorer.schedule import Schedule
from tests.kernel.bulk_schedules import SCHEDULES
from tests.transforms.test_specialise import ONE, made
from tests.transforms.test_store_matrix import COPY, left
from tests.transforms.test_tensorize import HALVES, ready


def refused(s: Schedule, gpu: str) -> ResourceError:
    with pytest.raises(ResourceError) as caught:
        s.kernel(gpu)
    return caught.value


def test_every_instruction_is_named_with_its_nodes_and_loops() -> None:
    error = refused(made(ONE), "T4")
    assert error.what == "sm_75 has no bulk copies, which x_s and y_s need; no m64n64k64 for f16 into f32, which S1 needs."
    assert set(error.nodes) >= {"x_s", "y_s", "S1"}
    assert "S1 in k" in error.where
    assert "stage(…, engine='bulk') wrote them" in error.why
    assert "exist on sm_90 alone: tensorize wrote them" in error.why
    assert "engine='thread'" in error.hint
    assert "16 x 8 x 8 (m16n8k8)" in error.hint


def test_the_nearest_instruction_is_one_that_the_architecture_has() -> None:
    assert "engine='async'" in refused(made(ONE), "A100").hint
    assert "m16n8k16" in refused(made(ONE), "A100").hint
    assert "m16n8k8" in refused(ready(HALVES).tensorize("S1"), "T4").hint
    assert "tensorize tiles of a warp" in refused(made(ONE), "B200").hint
    assert "as single stores" in refused(left().store_matrix(COPY), "A100").hint


@pytest.mark.parametrize("name", ["vector", "swizzled tiles"])
def test_an_architecture_that_lacks_one_is_not_asked_to_compile(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.run.kernel.try_compile_for", lambda *_: {})
    found = SCHEDULES[name]().compile(["T4", "A100"])
    assert set(found.refused) == {"sm_75", "sm_80"}
    assert "has no bulk copies" in str(found)
    assert "try: stage with engine='async'" in str(found)
    with pytest.raises(CompileError, match="sm_80 has no bulk copies") as caught:
        _ = found["sm_80"]
    assert caught.value.nodes
