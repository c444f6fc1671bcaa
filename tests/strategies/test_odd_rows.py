"""Results whose rows begin at no multiples of 16 bytes: through shared memory, lanes side by side store neighbours of a row."""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod

import pytest

from benchmarks import product_programs
from explorer.errors import TransformError
from explorer.gpu.spec import gpu
from explorer.poly.traffic import AccessFacts, traffic
from explorer.schedule import Schedule
from explorer.strategies.choices import decisions
from explorer.strategies.contraction import ranked
from explorer.strategies.contraction.arrange import COMMUTED, COPIED, PADDED, ways
from explorer.strategies.contraction.form import ProductForm, product_form
from explorer.strategies.contraction.model import product_time
from explorer.strategies.contraction.moves import build
from explorer.strategies.contraction.shapes import Tiling
from tests.strategies.test_convolution import written

H200, A100 = gpu("H200"), gpu("A100")
WARPS = Tiling("warp", 64, 64, 32, 2, 2, 2, 16, through=True)
GROUP = Tiling("warpgroup", 64, 128, 64, 1, 1, 2, through=True)


def allowed(n: int) -> int:
    """Bytes of an access that begins where any row of so many f16 does."""
    return min(16, 2 * n & -2 * n)


def form_of(start: Schedule) -> ProductForm:
    form = product_form(start, start.plan.kernels[0].id)
    assert form is not None
    return form


def warps(orders: str, n: int, t: Tiling = WARPS, aligned: int | None = None) -> Schedule:
    start = getattr(product_programs, f"product_{orders}").schedule(M=70, N=n, K=48)
    form = form_of(start)
    return build(start, form if aligned is None else replace(form, aligned=aligned), t, A100)


def groups(orders: str, n: int, t: Tiling = GROUP) -> Schedule:
    start = getattr(product_programs, f"product_{orders}").schedule(M=70, N=n, K=48)
    found = {w.label: w for w in ways(start, start.plan.kernels[0].id, H200)}
    way = found.get(PADDED, found[""])
    return build(way.schedule, way.form, t, H200)


def stores(s: Schedule) -> tuple[int, dict[str, AccessFacts]]:
    """Bytes that a lane stores at once; the store's accesses by their memory."""
    leaf, above, _ = s.plan.resolve("S2_store")  # type: ignore[misc]
    width = prod(x.extent for x in above if x.role == "vector") * 2
    return width, {a.space: a for a in traffic(s.plan, leaf=leaf.id)}


@pytest.mark.parametrize(("n", "nbytes"), [(72, 16), (80, 16), (76, 8), (74, 4), (75, 2)])
def test_what_is_known_of_the_rows(n: int, nbytes: int) -> None:
    assert form_of(product_programs.product_nn.schedule(M=70, N=n, K=48)).aligned == nbytes


@pytest.mark.parametrize("orders", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("n", [74, 75, 76])
def test_warps_store_neighbours_of_odd_rows(orders: str, n: int) -> None:
    made = warps(orders, n)
    width, found = stores(made)
    assert width == allowed(n)
    assert found["shared"].conflicts == 1
    assert made.judgement.emittable
    assert made.run(device="cpu", time=False).correct


@pytest.mark.parametrize(("orders", "n", "columns"), [
    ("nn", 74, 128), ("nt", 75, 96), ("tn", 76, 64), ("tt", 77, 128), ("nt", 330, 192), ("nt", 299, 256), ("nt", 330, 112)])
def test_warpgroups_store_neighbours_of_odd_rows(orders: str, n: int, columns: int) -> None:
    made = groups(orders, n, replace(GROUP, columns=columns))
    width, _ = stores(made)
    assert width == allowed(n)
    assert "wgmma_" in made.cuda
    assert made.judgement.emittable
    assert made.run(device="cpu", time=False).correct


@pytest.mark.parametrize("n", [74, 75])
def test_tiles_in_turn_store_odd_rows(n: int) -> None:
    made = groups("nn", n, Tiling("warpgroup", 64, 64, 64, 1, 1, 2, through=True, persistent=3, producer=True))
    assert stores(made)[0] == allowed(n)
    assert made.judgement.emittable
    assert made.run(device="cpu", time=False).correct


@pytest.mark.parametrize(("n", "columns"), [
    (1544, 192), (1540, 192), (1538, 192), (1537, 192), (1544, 96), (1538, 96), (1537, 256)])
def test_no_lane_divides_for_its_place(n: int, columns: int) -> None:
    """Rows of 12 to 192 accesses: lanes side by side still write 64 bytes of a row at least.

    Twelve turns or fewer are written out, more are loops without conditions.
    """
    start = product_programs.product_nt.schedule(M=1000, N=n, K=64)
    way = [*ways(start, start.plan.kernels[0].id, H200)][-1]
    made = build(way.schedule, way.form, replace(GROUP, columns=columns), H200)
    text = made.cuda[made.cuda.rindex("__syncthreads"):]
    assert not re.search(r"[/%] (12|24|48|96|192)\b", text)
    few = n == 1544
    assert ("#pragma unroll" in text) == few
    assert few or "if (" not in text
    assert not few or "min(" not in text
    _, found = stores(made)
    assert found["shared"].conflicts == 1
    assert found["global"].efficiency >= 0.65


def test_a_wider_access_than_rows_allow_is_not_taken() -> None:
    """A form that says more of the rows than holds is not believed; neither is who vectorises by hand."""
    believed = warps("nn", 74, aligned=16)
    assert stores(believed)[0] == 4
    assert believed.run(device="cpu", time=False).correct
    narrow = warps("nn", 76, aligned=2)
    assert stores(narrow)[0] == 2
    odd = warps("nn", 75)
    above = odd.plan.resolve("S2_store")[1]  # type: ignore[index]
    lane = above[-1].id
    split = odd.bind(lane, "seq").split(lane, 2, inner="pair").bind(lane, "lane")
    with pytest.raises(TransformError, match="pair"):
        split.vectorize("pair")


def test_the_model_counts_sectors() -> None:
    """The fewer bytes every row allows, the longer the store takes; through shared memory it is shorter than from fragments."""
    form = replace(form_of(product_programs.product_nn.schedule(M=4096, N=4096, K=64)), aligned=16)
    t = replace(GROUP, rows=128, down=2)
    found = []
    for nbytes in (16, 8, 4, 2):
        us = [product_time(replace(form, aligned=nbytes), replace(t, through=through), H200) for through in (True, False)]
        assert us[0] is not None
        assert us[1] is not None
        assert us[0].store_us < us[1].store_us
        found.append(us[0].store_us)
    assert found == sorted(found)
    assert found[-1] < 2 * found[0]


@pytest.mark.parametrize("target", [H200, A100])
def test_a_search_sees_them(target: object) -> None:
    written = product_programs.product_nn.schedule(M=1040, N=1778, K=48)
    first, _ = next(iter(ranked(form_of(written), target)))  # type: ignore[arg-type]
    assert first.through
    (decision,) = decisions(written, target)  # type: ignore[arg-type]
    labels = [c.label for c in decision.choices[:64]]
    assert sum("through shared memory" in label for label in labels) >= 10
    assert any("through shared memory" not in label for label in labels)


@pytest.mark.parametrize(("t", "width"), [
    (replace(WARPS, rows=16, columns=8, down=1, across=1), 8), (replace(WARPS, rows=16, columns=16, down=1, across=1), 16)])
def test_small_tiles_keep_all_lanes_busy(t: Tiling, width: int) -> None:
    """16 rows of 8 results are 16 accesses of 16 bytes: half of them for each lane."""
    made = warps("nn", 80, t)
    assert stores(made)[0] == width
    assert made.run(device="cpu", time=False).correct


@pytest.mark.parametrize(("width", "filter_width", "nbytes"), [(6, 3, 4), (7, 3, 2), (6, 1, 8)])
def test_pixels_of_odd_rows(width: int, filter_width: int, nbytes: int) -> None:
    """Rows of 6 pixels are 12 bytes; the 36 pixels of an image are one row of 72 where a filter has one."""
    sizes = {"B": 2, "H": 6, "W": width, "C": 64, "K": 72, "R": filter_width, "S": filter_width, "A": filter_width // 2}
    start = written(program=product_programs.conv, **sizes)
    found = {w.label: w for w in ways(start, start.plan.kernels[0].id, H200)}
    way = found[f"{COPIED}, {COMMUTED}"] if filter_width > 1 else found[COMMUTED]
    assert way.form.aligned == nbytes
    t = replace(GROUP, columns=64) if filter_width > 1 else replace(WARPS, rows=32, columns=32)
    made = build(way.schedule, way.form, t, H200)
    assert made.judgement.emittable
    assert made.run(device="cpu", time=False).correct
