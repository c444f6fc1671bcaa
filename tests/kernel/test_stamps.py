"""Stamps: an instrumented copy computes the same, and its logs say what each role did, in order and completely."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

import explorer as ex
from explorer import strategies, workloads
from explorer.errors import DeviceError
from explorer.ir.plan import Plan
from explorer.kernel.emit import emit
from explorer.kernel.launches import plan_ir
from explorer.kernel.module import CudaModule
from explorer.kernel.nodes import For, If, Node, Stamp
from explorer.kernel.passes.stamps import without
from explorer.kernel.roles import Roles, apart
from explorer.kernel.stamped import HEAD, MOST, Stamped, stamped
from explorer.kernel.traverse import walk
from explorer.run.cpu.device import CpuBuilt, CpuDevice
from explorer.run.cuda import device as cuda
from explorer.run.inputs.arguments import seeded_arrays
from explorer.run.nvrtc.compiler import compile_module
from explorer.run.stamps import Kept, stamps
from explorer.schedule import Schedule
from explorer.strategies.contraction.form import product_form
from explorer.strategies.contraction.moves import build
from explorer.strategies.contraction.shapes import Tiling
from tests.properties import trial
from tests.strategies.products import product as program

N = ex.sizes("N")


@cache
def made(kind: str, m: int = 200, n: int = 136, k: int = 264) -> Schedule:
    """Products: by warpgroups with a producer and resident blocks, by warpgroups, by warps; ragged."""
    tilings = {"roles": Tiling("warpgroup", 128, 64, 64, 2, 1, 2, through=True, persistent=3, producer=True),
               "groups": Tiling("warpgroup", 128, 64, 64, 2, 1, 3), "warps": Tiling("warp", 32, 32, 32, 2, 2, 3)}
    whole = program(ex.f16, ex.f32, "n", "n").schedule(M=m, N=n, K=k)
    form = product_form(whole, whole.plan.kernels[0].id)
    assert form is not None
    return build(whole, form, tilings[kind])


KINDS = ("roles", "groups", "warps")


def bodies(s: Schedule, where: Stamped) -> list[tuple[Node | Roles, ...]]:
    """What is printed of the one launch, without stamps and with them."""
    (launch,) = plan_ir(s.plan).launches
    before = [apart(c.low, b) for c, b in zip(launch.contexts, launch.bodies, strict=True)]
    after, _ = where.bodies(s.plan, launch.lows, before)
    return [*before, *after]


@pytest.mark.parametrize("kind", KINDS)
def test_without_its_stamps_the_text_is_the_one_that_was_proved(kind: str) -> None:
    s = made(kind)
    plain, text = emit(s.plan).text, emit(s.plan, stamped=stamped((0,))).text
    kernel = text[text.index('extern "C"'):]
    assert re.search(r"\bstamp_put\(log, 1, ", kernel)
    kernel = re.sub(r"^ *(?:stamp_put|stamp_end<\d+>|stamp_log log = stamp_begin<\d+>)\(.*\);\n", "", kernel, flags=re.M)
    kernel = kernel.replace("unsigned long long* __restrict__ stamps", "")
    assert re.sub(r"[\s,]+", "", kernel) == re.sub(r"[\s,]+", "", plain[plain.index('extern "C"'):])
    assert "stamp" not in plain


@pytest.mark.parametrize("kind", KINDS)
def test_the_nodes_without_stamps_are_the_nodes(kind: str) -> None:
    before, after = bodies(made(kind), stamped((0,)))
    assert any(isinstance(n, Stamp) for n in walk(_all(after)))
    assert without(_all(after))[1:-1] == _all(before) or kind == "roles"
    for old, new in zip(before, after, strict=False):
        if isinstance(old, Roles) and isinstance(new, Roles):
            assert without(new.producer)[1:-1] == old.producer
            assert without(new.consumers)[1:-1] == old.consumers


def _all(body: Sequence[Node | Roles]) -> tuple[Node, ...]:
    return tuple(n for part in body for n in ((*part.producer, *part.consumers) if isinstance(part, Roles) else (part,)))


@pytest.mark.parametrize("kind", KINDS)
def test_results_are_the_same_to_the_bit(kind: str) -> None:
    s = made(kind)
    device, arrays = CpuDevice(seeds=3), seeded_arrays(s.source, 4)
    plain, noted = device.build_many([emit(s.plan), emit(s.plan, stamped=stamped((0, 2)))])
    for before, after in zip(device.run_seeds(plain, arrays), device.run_seeds(noted, arrays), strict=True):
        assert before["z"].tobytes() == after["z"].tobytes()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", [0, 2])
def test_stamps_are_as_many_as_instances(kind: str, block: int) -> None:
    """Counted by going through every iteration of the text, for the thread and the block of each log."""
    s = made(kind)
    found, where = s.stamps(device="cpu", blocks=(block,)), stamped((block,))
    _, after = bodies(s, where)
    (launch,) = plan_ir(s.plan).launches
    low = launch.lows[0]
    assert found.correct
    assert len(found.kept) == {"roles": 3, "groups": 2, "warps": 1}[kind]
    for kept in found.kept:
        x, y, _ = low.grid
        at = {"block.x": block % x, "block.y": block // x % y, "block.z": block // x // y}
        thread = 0 if kept.log.role == "producer" else kept.log.thread
        at |= {"thread.x": thread % low.block[0], "thread.y": thread // low.block[0], "thread.z": 0}
        at |= {"warp": at["thread.x"] // 32, "lane": at["thread.x"] % 32}
        body = next((getattr(n, kept.log.role) for n in after if isinstance(n, Roles)), after)
        wanted = counted(body, {low.role_name[role]: value for role, value in at.items()})
        assert Counter(p.mark for p in kept.pieces) == wanted
        assert sum(wanted.values()) > 8


def counted(nodes: Sequence[Any], values: Mapping[str, int]) -> Counter[int]:
    """How often each mark is stamped."""
    total: Counter[int] = Counter()
    for node in nodes:
        if isinstance(node, Stamp):
            total[node.mark] += 1
        elif isinstance(node, For) and any(isinstance(n, Stamp) for n in walk(node.body)):
            for i in range(node.start, node.start + node.extent):
                inside = {**values, node.var: i}
                if all(_holds(c, inside) for c in node.limits):
                    total += counted(node.body, inside)
        elif isinstance(node, If) and any(isinstance(n, Stamp) for n in walk((node,))):
            total += counted(node.body if all(_holds(c, values) for c in node.conditions) else node.otherwise, values)
    return total


def _holds(c: Any, values: Mapping[str, int]) -> bool:
    value = c.expr.evaluate(values)
    return value == 0 if c.equality else value >= 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_log_is_complete_and_in_order(kind: str) -> None:
    for kept in made(kind).stamps(device="cpu", blocks=(0, 1)).kept:
        assert kept.lost == 0
        assert all(p.start < p.end for p in kept.pieces)
        assert all(a.end == b.start for a, b in pairwise(kept.pieces))
        loops = dict(max((p.iteration for p in kept.pieces), key=len))
        for mark in {p.mark for p in kept.pieces}:
            mine = [tuple(v for _, v in p.iteration) for p in kept.pieces if p.mark == mark]
            assert mine == sorted(set(mine)), "each iteration once, in their order"
        assert set(loops) == {"j", "k"} if kind == "roles" else {"k"}


def test_tiles_of_a_producer_and_its_consumers() -> None:
    """4 tiles of 5 steps for three blocks: block 0 takes two, and each role comes by as often."""
    s = made("roles")
    producer, *consumers = s.stamps(device="cpu").kept
    steps = list(product(range(2), range(5)))
    for kept, kind in ((producer, "acquire"), (producer, "issue"), *((c, "wait") for c in consumers)):
        assert [tuple(v for _, v in p.iteration) for p in kept.pieces if p.kind == kind] == steps
    assert [c.totals["product"][0] for c in consumers] == [10, 10]
    filled = {p.iteration: p.end for p in producer.pieces if p.kind == "issue"}
    for c in consumers:  # what a consumer has waited for has been asked for
        assert all(p.end > filled[p.iteration] for p in c.pieces if p.kind == "wait")
    released = sorted(p.end for c in consumers for p in c.pieces if p.kind == "release")
    waits = [p for p in producer.pieces if p.kind == "acquire" and p.end - p.start > 1]
    assert waits
    assert all(any(w.start < r <= w.end + 40 for r in released) for w in waits), "a slot is free behind a release"


def test_what_has_no_room_is_counted_and_not_kept() -> None:
    whole, few = (made("warps").stamps(device="cpu", most=most).kept[0] for most in (MOST, 5))
    assert (len(few.pieces), few.lost) == (4, len(whole.pieces) + 1 - 5)
    assert few.pieces == whole.pieces[:4]


def test_the_array_is_as_large_as_the_logs_can_be() -> None:
    where = stamped((0, 1))
    module = emit(made("roles").plan, stamped=where)
    (logs,) = where.launches
    most = max(sum(m.times for m in where.marks if m.role == role) for role in ("producer", "consumers"))
    assert logs.room == most + 1
    assert module.buffer("stamps").shape == (6, HEAD + logs.room, 2)
    longest = max(len(k.pieces) for k in stamps(made("roles"), device="cpu", blocks=(0, 1)).kept)
    assert longest <= most


def test_random_schedules_compute_the_same_with_stamps(monkeypatch: pytest.MonkeyPatch) -> None:
    noted = 0

    def with_stamps(plan: Plan) -> CudaModule:
        nonlocal noted
        where = stamped((0, 1, 3))
        module = emit(plan, stamped=where)
        noted += len(where.marks)
        return module

    monkeypatch.setattr(trial, "emit", with_stamps)
    tally = trial.Trial(shrinks=0).run(4140, range(24))
    assert not tally.found, "\n".join(map(str, tally.found))
    assert noted > 60


@pytest.mark.parametrize("name", ["softmax", "layernorm", "sum_all", "conv2d"])
def test_kernels_of_workloads_keep_logs(name: str) -> None:
    """Several launches, and phases of one, each with marks of its own."""
    workload = workloads.get(name)
    s = strategies.auto(workload.definition.schedule(**workload.tiny))
    found = s.stamps(device="cpu")
    assert found.correct
    assert {k.log.kernel for k in found.kept} == {k.id for k in s.plan.kernels}
    assert any(p.kind == "store" for k in found.kept for p in k.pieces)
    assert str(found).startswith(f"{name} on cpu, stamped: results right")


@ex.program
def taken(stamps: ex.f32[N], log: ex.f32[N], stamp_put: ex.f32[N]):
    for i in range(N):
        log[i] = stamps[i] + 1.0
    for i in range(N):
        stamp_put[i] = log[i] * 2.0


def test_names_of_the_user_stay_the_users() -> None:
    s = taken.schedule(N=40).bind("i", "thread.x").bind("i_2", "thread.x")
    found = s.stamps(device="cpu")
    assert found.correct
    assert {b.name for b in found.module.buffers} >= {"stamps", "stamps_2", "log"}


@pytest.mark.parametrize(("options", "words"), [
    ({"blocks": ()}, "by their numbers"), ({"blocks": (-1,)}, "by their numbers"), ({"blocks": tuple(range(9))}, "1 to 8"),
    ({"blocks": (10**6,)}, "No launch has a block 1000000"), ({"most": 0}, "keeps 1 to 32,768"), ({"most": MOST + 1}, "keeps 1"),
    ({"blocks": ("a",)}, "by their numbers"), ({"device": "tpu"}, "tpu"), ({"tiles": 3}, "no option 'tiles'")])
def test_what_cannot_be_asked_says_so(options: dict[str, Any], words: str) -> None:
    with pytest.raises(DeviceError, match=words):
        made("warps").stamps(**{"device": "cpu", **options})


def test_without_a_gpu_it_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "available", lambda: "this machine has no NVIDIA driver")
    with pytest.raises(DeviceError, match="no GPU to measure on") as refused:
        made("warps").stamps(device="cuda")
    assert refused.value.why == "this machine has no NVIDIA driver"
    assert made("warps").stamps().device == "cpu"


@pytest.mark.parametrize("kind", KINDS)
def test_stamps_compile_without_spills(kind: str) -> None:
    s = made(kind, 256, 256, 256)
    for text in (emit(s.plan), emit(s.plan, stamped=stamped((0, 1)))):
        (found,) = compile_module(text, "sm_90").kernels.values()
        assert found.spill_store_bytes == 0


def test_a_log_that_never_ran_is_empty() -> None:
    kept: Kept = made("warps").stamps(device="cpu", blocks=(1,)).kept[0]
    assert kept.pieces
    assert kept.log.block == 1


class OnTheCpu:
    """A GPU for the code that runs stamped kernels on one: the CPU device, whose turns become cycles and nanoseconds."""

    def __init__(self) -> None:
        self.launches = 0

    def installed(self) -> Any:
        return type("Installed", (), {"gpu": ex.gpu("H200")})()

    def build(self, module: CudaModule) -> CpuBuilt:
        return CpuDevice(checked=False).build(module)

    def run(self, built: CpuBuilt, arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
        self.launches = len(built.module.launches)
        found = CpuDevice(checked=False).run(built, arrays)
        words = found["stamps"]
        words[:, 0, 0], words[:, 1, 0] = words[:, 0, 1] * 1000, words[:, 1, 1] * 1000  # a turn is a microsecond
        for row in ((0, 1), (1, 1), (slice(HEAD, None), 0)):
            words[:, row[0], row[1]] = words[:, row[0], row[1]] * np.uint64(1980)
        return found

    def time_interleaved(self, work: Sequence[Any], repeats: int) -> tuple[tuple[float, ...], ...]:
        return (2.0, 4.0, 3.0), (3.5, 3.3, 3.1)


def test_times_are_microseconds_of_the_second_run(monkeypatch: pytest.MonkeyPatch) -> None:
    device = OnTheCpu()
    monkeypatch.setattr(cuda, "available", lambda: None)
    monkeypatch.setattr(cuda, "device", lambda: device)
    s = made("warps")
    arrays = {name: values for name, values in seeded_arrays(s.source, 3).items() if name != "z"}
    found, order = s.stamps(arrays), s.stamps(arrays, device="cpu")
    assert found.correct
    assert (found.device, found.measured, device.launches) == ("H200", True, 2)
    assert (found.plain_us, found.stamped_us) == (3.0, 3.3)
    assert "3 µs without stamps, 3.3 µs with them (+10.0%)" in str(found)
    for kept, turns in zip(found.kept, order.kept, strict=True):
        assert [(p.mark, p.iteration) for p in kept.pieces] == [(p.mark, p.iteration) for p in turns.pieces]
        assert [p.end - p.start for p in kept.pieces] == pytest.approx([p.end - p.start for p in turns.pieces], abs=0.01)
