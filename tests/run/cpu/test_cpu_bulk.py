"""Bulk copies on the CPU device: every mistake in a text is found in some order, and said in words with its mbarrier."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.product_programs import product_nn
from explorer.errors import KernelFault
from explorer.kernel.emit import emit
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from explorer.schedule import Schedule
from explorer.strategies.contraction.form import product_form
from explorer.strategies.contraction.moves import build
from explorer.strategies.contraction.shapes import Tiling
from tests.kernel.bulk_schedules import SCHEDULES, several_tiles, tiled_product, tiles, vector

DEVICE = CpuDevice(seeds=5)


def fault(make: Callable[[], Schedule], old: str, new: str) -> KernelFault:
    """What a run of the text says in which `old` has become `new`."""
    s = make()
    module = emit(s.plan)
    library, mark, kernel = module.text.partition('extern "C"')
    assert old in kernel
    text = library + mark + kernel.replace(old, new)
    with pytest.raises(KernelFault) as caught:
        DEVICE.run(DEVICE.build(replace(module, text=text)), seeded_arrays(s.source, 1))
    return caught.value


def steady() -> Schedule:
    return tiled_product(3)


EARLY = ("bulk-pending", "uninitialised")
"""A thread that does not wait reads before the copy has landed, or before anybody has asked for it."""
WAIT, ARRIVE = "mbarrier_wait(arrived[0], 0);", "mbarrier_arrive(arrived[0]);"
EMPTY = "mbarrier_arrive(arrived[2]);"
STEADY_WAIT = "mbarrier_wait(arrived[k % 3], k / 3)"
MISTAKES: dict[str, tuple[Callable[[], Schedule], tuple[str, str], tuple[str, ...]]] = {
    "no wait": (vector, (WAIT, ";"), EARLY),
    "the parity of another phase": (vector, (WAIT, "mbarrier_wait(arrived[0], 1);"), EARLY),
    "always parity 0": (steady, (STEADY_WAIT, "mbarrier_wait(arrived[k % 3], 0)"), ("mbarrier", "bulk-pending")),
    "the next mbarrier": (steady, (STEADY_WAIT, "mbarrier_wait(arrived[(k + 1) % 3], k / 3)"), ("bulk-pending", "mbarrier")),
    "an arrival is missing": (vector, (ARRIVE, ";"), ("mbarrier",)),
    "an arrival too many": (steady, ("mbarrier_arrive(arrived[k_pro]);", "mbarrier_arrive(arrived[k_pro]); " * 2),
                            ("mbarrier-again", "bulk-pending")),
    "more bytes expected than come": (vector, (ARRIVE, f"mbarrier_expect(arrived[0], 4); {ARRIVE}"), ("mbarrier",)),
    "a copy beyond the last one": (steady, ("&& k < 3)", "&& k < 4)"), ("bulk-unfinished",)),
    "a group that nobody waits for": (steady, (STEADY_WAIT, "if (!i_i && !j_i && k == 4) { mbarrier_expect(arrived[2], 0); "
                                               f"{EMPTY} {EMPTY} }} {STEADY_WAIT}"), ("mbarrier-unwaited",)),
    "every thread arrives": (vector, (f"  {WAIT}", f"  {ARRIVE}\n  {WAIT}"), ("mbarrier-again", *EARLY)),
    "not ready": (vector, ("    mbarrier_begin(arrived);", "    ;"), ("mbarrier-not-ready",)),
    "no barrier before a slot is filled again": (steady, (f"    __syncthreads();\n    {STEADY_WAIT}", f"    {STEADY_WAIT}"),
                                                 ("race", "bulk-pending")),
    "a place of 64 bytes": (tiles, ("&x_s[0][0]", "&x_s[0][32]"), ("bulk-alignment",)),
    "a place between 16 bytes": (several_tiles, ("x_map, 16 * k_pro", "x_map, 16 * k_pro + 1"), ("bulk-column",)),
    "a box too far": (several_tiles, ("&x_s[128 * k_pro]", "&x_s[128 * k_pro + 256]"), ("out-of-bounds",)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_every_mistake_is_found(name: str) -> None:
    make, change, kinds = MISTAKES[name]
    assert fault(make, *change).kind in kinds


def test_it_says_who_waits_for_what() -> None:
    error = fault(vector, ARRIVE, ";")
    assert error.what == "64 threads of a block of line wait for a phase of arrived[0] that never ends."
    assert error.why == "they wait for parity 0; it is in phase 0, which lacks 1 arrival"
    assert "x_s.wait" in error.nodes
    assert "somebody arrives in this phase" in error.hint
    too_many = fault(vector, ARRIVE, f"mbarrier_expect(arrived[0], 4); {ARRIVE}")
    assert too_many.why == "they wait for parity 0; it is in phase 0, which lacks 4 bytes"


def test_it_says_what_the_others_wait_for() -> None:
    """A producer and its consumers wait for each other: two slots, and a release two steps behind."""
    written = product_nn.schedule(M=64, N=64, K=256)
    form = product_form(written, written.plan.kernels[0].id)
    assert form is not None
    s = build(written, form, Tiling("warpgroup", 64, 64, 64, 1, 1, 3, producer=True))
    told = " ".join(str(s.pipeline_conditions("k").counterexample(2, 2)).split())
    assert "128 threads of a block of product_nn wait for a phase" in told
    place = r"line \d+: mbarrier_wait\(released\[0\], 0\); // k.acquire \[k.acquire, "
    assert re.search("1 other thread of the block waits at " + place, told)


def test_an_early_read_names_the_element_and_its_statement() -> None:
    error = fault(steady, STEADY_WAIT, "mbarrier_wait(arrived[(k + 1) % 3], k / 3)")
    assert "before this thread has waited for the bulk copy to it" in error.what
    assert error.array == "x_s"
    assert "S1" in error.nodes


def test_a_thread_that_has_not_waited_itself_is_behind_after_a_barrier_alone() -> None:
    """One thread waits and all meet: that is enough.  Without the barrier it is not."""
    wait = "  mbarrier_wait(arrived[0], 0);  // x_s.wait\n"
    s = vector()
    module, arrays = emit(s.plan), seeded_arrays(s.source, 1)
    alone = module.text.replace(wait, "  if (e_i == 0) mbarrier_wait(arrived[0], 0);\n  __syncthreads();\n")
    got = DEVICE.run(DEVICE.build(replace(module, text=alone)), arrays)["y"]
    np.testing.assert_array_equal(got, DEVICE.run(DEVICE.build(module), arrays)["y"])
    assert fault(vector, wait, "  if (e_i == 0) mbarrier_wait(arrived[0], 0);\n").kind in EARLY


def test_all_orders_and_the_fast_build_give_the_same_bits() -> None:
    for name in ("halo", "i8 128", "three stages"):
        s = SCHEDULES[name]()
        module, arrays = emit(s.plan), seeded_arrays(s.source, 2)
        first, *others = DEVICE.run_seeds(DEVICE.build(module), arrays)
        fast = CpuDevice(checked=False)
        for other in (*others, fast.run(fast.build(module), arrays)):
            for key, value in first.items():
                np.testing.assert_array_equal(value, other[key])
