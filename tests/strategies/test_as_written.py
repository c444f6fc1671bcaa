"""`auto` on random programs, however they are written: right, every kernel spread, as few launches as the values allow."""

from __future__ import annotations

import linecache
import random

import pytest

import explorer as ex
from explorer.errors import TransformError
from explorer.frontend.definition import Definition
from explorer.gpu.spec import gpu
from explorer.ir.tree import Loop, walk
from explorer.schedule import Schedule
from explorer.strategies import auto
from explorer.strategies.auto import by_rules
from explorer.strategies.price import price
from explorer.strategies.stitch import stitching
from tests.properties.programs import random_case

from .as_written import chain, reductions

H200 = gpu("H200")
MOST = 64
"""Elements of a temporary that a thread may have in registers, and what one thread may do alone."""


def schedule(text: str, sizes: dict[str, int]) -> Schedule:
    """A program of a text, at some sizes."""
    name = f"<{hash(text):x}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, object] = {"ex": ex, "__name__": "user", **{n: ex.sizes(n) for n in "KLMN"}}
    exec(compile(text, name, "exec"), space)
    return next(v for v in space.values() if isinstance(v, Definition)).schedule(**sizes)


def sound(made: Schedule, text: str) -> None:
    """No kernel with much to do has one thread, and no thread a matrix of its own."""
    for kernel in made.plan.kernels:
        loops = [n for n in walk(kernel.body) if isinstance(n, Loop)]
        assert any(x.is_place for x in loops) or all(x.extent <= MOST for x in loops), text
    for buffer in made.plan.buffers:
        assert buffer.space != "register" or buffer.size <= MOST, (buffer.name, text)


@pytest.mark.parametrize("seed", range(24))
def test_chains(seed: int) -> None:
    text = chain(seed)
    made = auto(schedule(text, {"M": 37, "N": (24, 33)[seed % 2]}), "H200")
    sound(made, text)
    run = made.run(device="cpu", seeds=1, time=False, ragged=False)
    assert run.correct, (text, str(run))


@pytest.mark.parametrize("seed", range(24))
def test_chains_over_large_matrices(seed: int) -> None:
    text = chain(seed)
    made = auto(schedule(text, {"M": 4096, "N": (1536, 777)[seed % 2]}), "H200")
    sound(made, text)
    launches = sum(not k.join for k in made.plan.kernels)
    columns = text.count("[k] = 0.0") + text.count("[k] = -ex.inf")
    by_rule = by_rules(schedule(text, {"M": 4096, "N": (1536, 777)[seed % 2]}), H200)
    dearer = price(by_rule.plan, H200).total_us > price(made.plan, H200).total_us  # taken apart by the guard
    assert launches <= 2 + 2 * columns or dearer, text


@pytest.mark.parametrize("seed", range(24))
def test_reductions(seed: int) -> None:
    text, sizes = reductions(seed)
    made = auto(schedule(text, sizes), "H200")
    sound(made, text)
    assert sum(not k.join for k in made.plan.kernels) <= 2, (text, sizes)
    run = made.run(device="cpu", seeds=1, time=False, ragged=False)
    assert run.correct, (text, sizes, str(run))


@pytest.mark.parametrize("seed", range(24))
def test_large_reductions_read_their_array_once(seed: int) -> None:
    text, sizes = reductions(seed)
    large = {n: extent if extent == 1 else 8 * extent for n, extent in sizes.items()}
    made = auto(schedule(text, large), "H200")
    sound(made, text)
    assert sum(not k.join for k in made.plan.kernels) <= 2, (text, large)
    read = {tuple(x.id for x in above) for leaf, above, _ in made.plan.leaves
            for r in made.plan.statement_of[leaf.statement].reads if r.array == "x"}
    assert len(read) <= 1 or any(b.name.startswith("x") for b in made.plan.buffers), (text, large)


@pytest.mark.parametrize("seed", [*range(24), 412, 486])
def test_any_program_gets_a_schedule(seed: int) -> None:
    """Wavefronts, triangles, sizes of 0: what `auto` does not know it leaves to the default.  The last two are empty."""
    case = random_case(random.Random(seed), f"any {seed}")
    made = auto(case.schedule, "H200")
    assert made.judgement.emittable
    assert made.run(device="cpu", seeds=1, time=False, ragged=False).correct, str(case.schedule.source)


def test_stitching_says_that_there_is_nothing_to_choose() -> None:
    with pytest.raises(TransformError, match="i has no iterations"):
        stitching(schedule(chain(3), {"M": 0, "N": 8}))
