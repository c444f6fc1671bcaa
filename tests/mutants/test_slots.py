"""Every error in the roles of warps is noticed by the judge of the IR, and by running the text on the CPU device."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from explorer.errors import KernelFault
from explorer.kernel.emit import emit
from explorer.kernel.interpreter import execute
from explorer.kernel.launches import plan_ir
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from explorer.run.verify.outputs import check_outputs
from explorer.run.verify.reference import references
from explorer.strategies.attention import attention
from explorer.transforms.approximate import as_computed
from tests.strategies.test_attention_groups import TURNS, plain
from tests.transforms.test_specialise import SHAPES, made
from tests.transforms.test_take_turns import made as in_turns

from .ir import ir_mutants
from .ir_bulk import BULK
from .ir_products import PRODUCTS
from .ir_slots import SLOTS
from .printed import printed
from .test_ir_judged import faults
from .test_ir_mutants import ORDERS

NOT_HERE = {"threads wait for their products behind their meeting", "threads do not meet behind the wait"}
"""Errors of products where threads meet: consumers release, and do not."""


@pytest.mark.parametrize("name", ["tiles in turn", "two groups, results through shared memory"])
def test_the_judge_notices_them(name: str) -> None:
    ir = plan_ir(made(SHAPES[name]).plan)
    assert faults(ir) == []
    kinds = Counter[str]()
    for mutant in ir_mutants(ir, SLOTS | PRODUCTS | BULK):
        kinds[mutant.kind] += 1
        assert faults(mutant.ir), (mutant.kind, mutant.at)
    assert kinds.keys() >= SLOTS.keys()


def test_the_judge_notices_them_where_queries_are_copied_in_front() -> None:
    ir, kinds = plan_ir(attention(plain.schedule(B=1, H=1, L=192, D=32), tiling=TURNS).plan), Counter[str]()
    assert faults(ir) == []
    for mutant in ir_mutants(ir, SLOTS | BULK):
        kinds[mutant.kind] += 1
        assert kinds[mutant.kind] > 3 or faults(mutant.ir), (mutant.kind, mutant.at)
    assert kinds.keys() >= SLOTS.keys()


def test_the_cpu_device_notices_them_where_queries_are_copied_in_front() -> None:
    s = attention(plain.schedule(B=1, H=1, L=256, D=32), tiling=replace(TURNS, persistent=1))
    module, arrays, device = emit(s.plan), seeded_arrays(s.source, 1), CpuDevice(seeds=(0, 1), time_limit_s=20.0)
    text = module.text
    mutants = {
        "one slot": "\n".join(x.replace("(b % 2)", "(b % 1)") if "q_s" in x else x for x in text.splitlines()),
        "no wait": text.replace("mbarrier_wait(arrived[0],", "// mbarrier_wait(arrived[0],"),
        "another phase": text.replace("mbarrier_wait(arrived[0], b % 2)", "mbarrier_wait(arrived[0], 1 - b % 2)"),
        "no commit": text.replace("mbarrier_arrive(arrived[0])", "// mbarrier_arrive(arrived[0])"),
    }  # fmt: skip
    device.run_seeds(device.build(module), arrays)
    for kind, mutant in mutants.items():
        assert mutant != text, kind
        with pytest.raises(KernelFault):
            device.run_seeds(device.build(replace(module, text=mutant)), arrays)


def test_an_ir_without_an_error_is_printed_as_it_is() -> None:
    for s in (made(SHAPES["tiles in turn"]), in_turns()):
        assert printed(plan_ir(s.plan)).text == emit(s.plan).text


def test_the_interpreter_copies_queries_ahead() -> None:
    s = attention(plain.schedule(B=1, H=1, L=256, D=32), tiling=TURNS)
    arrays = seeded_arrays(s.source, 1)
    run = execute(s.plan, arrays, ORDERS[0])
    assert not run.hazards, str(run.hazards[0])
    expected, _ = references(s.source, arrays)
    checks = check_outputs(as_computed(s.source, s.plan), run.outputs, *expected)
    assert checks
    assert all(checks)


def test_the_interpreter_does_what_the_text_does() -> None:
    s = made(SHAPES["tiles in turn"], M=72, N=136, K=136)
    arrays = seeded_arrays(s.source, 1)
    wanted = np.asarray(arrays["x"], float) @ np.asarray(arrays["y"], float)
    for order in ORDERS:
        run = execute(s.plan, arrays, order)
        assert not run.hazards, (str(order), str(run.hazards[0]))
        assert np.allclose(np.asarray(run.outputs["z"], float), wanted, 4e-3, 0.05)


TEXTS = {
    "nothing": ("", ""),
    "the producer waits for no slot": ("mbarrier_wait(released[", "// mbarrier_wait(released["),
    "the producer waits for the other phase": ("+ 1) % 2);  // k.acquire", "+ 0) % 2);  // k.acquire"),
    "the producer waits for one slot alone": ("mbarrier_wait(released[", "mbarrier_wait(released[0 * "),
    "no slot is released": ("mbarrier_release(released[", "// mbarrier_release(released["),
    "one warp too few is counted": ("mbarrier_begin(released, 8)", "mbarrier_begin(released, 7)"),
    "one warp too many is counted": ("mbarrier_begin(released, 8)", "mbarrier_begin(released, 9)"),
    "a slot is released before its product is complete": ("wgmma_wait<1>(s);", "wgmma_wait<2>(s);"),
    "consumers wait for no copies": ("mbarrier_wait(arrived[", "// mbarrier_wait(arrived["),
    "consumers wait for the other phase": ("mbarrier_wait(arrived[k % 2], ", "mbarrier_wait(arrived[k % 2], 1 - "),
    "copies are not committed": ("mbarrier_arrive(arrived[", "// mbarrier_arrive(arrived["),
    "all threads meet where the producer does not": ("barrier_of<1, 256>()", "__syncthreads()"),
    "consumers do not meet": ("barrier_of<1, 256>();", ""),
    "too many consumers meet": ("barrier_of<1, 256>()", "barrier_of<1, 288>()"),
    "a warp arrives by all lanes": ("if (threadIdx.x % 32 == 0) mbarrier_arrive", "mbarrier_arrive"),
    "the lanes of a warp do not meet": ("__syncwarp();\n", "\n"),
    "mbarriers are used before they are ready": ("__syncthreads();\n  if (threadIdx.y", "\n  if (threadIdx.y"),
}
"""What is replaced in the text, everywhere."""


def noticed() -> dict[str, str]:
    """What notices each of the errors in the text; "" where nothing does."""
    s = made(replace(SHAPES["two groups, results through shared memory"], stages=3), M=250, N=160, K=328)
    module, arrays = emit(s.plan), seeded_arrays(s.source, 1)
    wanted = np.asarray(arrays["x"], float) @ np.asarray(arrays["y"], float)
    device, found = CpuDevice(seeds=(0, 1, 2, 3), time_limit_s=20.0), dict[str, str]()
    for kind, (was, now) in TEXTS.items():
        assert was in module.text, (kind, module.text)
        built = device.build(replace(module, text=module.text.replace(was, now) if was else module.text))
        try:
            runs = device.run_seeds(built, arrays)
        except KernelFault as fault:
            found[kind] = fault.kind
        else:
            right = all(np.allclose(np.asarray(r["z"], float), wanted, 4e-3, 0.05) for r in runs)
            found[kind] = "" if right else "the result"
    return found


def test_the_cpu_device_notices_them() -> None:
    found = noticed()
    assert not found.pop("nothing")
    assert all(found.values()), found
