"""Parameters of a product's schedule: tiles of a block and of its warps, depth of a step, stages; which there are for a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import prod

from ...errors import TransformError, shown
from ...gpu.spec import Gpu
from ...ir.instructions import INSTRUCTIONS, STEP_BYTES, Mma, wgmma
from ...ir.layout import GROUP
from ...ir.swizzle import MODES
from ...ir.tree import WARP_SIZE
from ...poly.roles import UNIT, shares
from ..pipelines.rates import of_lines, of_sectors
from .epilogue_facts import sums_fit
from .form import Factor, ProductForm

GROUP_ROWS = 64
"""Rows of a warpgroup's instruction."""
ROW_BYTES = 128
"""Bytes of a swizzled row in shared memory: the longest that a tensor map writes and a descriptor reads."""
COLUMNS, STAGES = (8, 16, 32, 64, 96, 112, 128, 160, 192, 224, 256), (2, 3, 4, 5, 6, 7, 8, 10, 12)
"""Columns of a warpgroup's tile, and stages of its pipeline, that are tried."""
FEW, LEAST_STEPS = 2, 4
"""Blocks for each multiprocessor up to which slices of the depth are looked at, and steps that a slice has at least."""
GIVEN, SHORT = 32, 64
"""Registers that a producer's thread keeps at least, and what a thread that computes uses beside its sums (texts for an H200)."""
DOWN, ACROSS = 8, (8, 16, 32)
"""Threads of a block of plain arithmetic along rows, and along columns.  With 16 along rows, tiles of 8 x 8 and 4 x 8 results
took 1.02 to 1.1 times as long; with steps of 32, 1.05 to 1.15 times (products of f32, H200)."""
FREED, FEW_COPIES = 8, {False: 4, True: 36}
"""Registers that few copies of a thread in a step save, and how many are few, where all of the step is written out, or a part:
texts of 8 x 8 results a thread within 128 registers spilled 4 to 28 bytes with more, none with fewer (NVRTC 13, sm_90)."""
DEEP_COLUMNS, DEEP_STEPS = (64, 128), 8
"""Columns of one warpgroup's tile whose steps may have two rows of the swizzle, and how many of these steps there are at least.

512 x 1024 x 4096 took 11.7 µs so and 15.0 otherwise in tiles of 64 x 64, and 10.5 with a warp that copies (f16, H100): half as
many waits and barriers.  Factors beyond the second-level cache gain nothing: 128 x 7448 x 4768 took 36 µs so, and 27 in tiles of
128 x 64 x 64."""
MATES = ((2, 1), (1, 2), (2, 2), (4, 1), (1, 4), (4, 2), (2, 4))
"""Clusters that are tried, in tiles along rows and along columns."""
PARTS = {"warpgroup": GROUP, "warp": WARP_SIZE, "plain": 1}
"""Engines, and threads of each of a block's parts."""
MOST_REGISTERS = 168
"""32-bit registers of a thread that an accumulator and fragments may take, of 255: addresses and loads take others."""


@dataclass(frozen=True)
class Tiling:
    """How a product is laid out.

    Attributes
    ----------
    engine : str
        ``"warpgroup"`` (factors in shared memory, filled by bulk copies), ``"warp"`` (fragments loaded from shared memory), or
        ``"plain"`` (arithmetic of threads, each with a tile of results).
    rows, columns, depth : int
        Tile of a block, and of one step of its pipeline.
    down, across : int
        Warps, warpgroups, or threads, along rows and columns.
    stages : int
        Steps in flight, the computing one included.
    step : int
        Depth of one instruction of a warp, 0 for the largest there is; in plain arithmetic, how much of a step is written out,
        0 for all.
    slices : int
        Parts of the depth, each of which has blocks of its own; a second launch adds their sums up.
    through : bool
        Whether results go through shared memory on their way out.
    persistent : int
        Blocks that take tiles one after the other; 0 for a block for each tile.
    producer : bool
        Whether a warp beside the others issues the bulk copies, ahead of tiles too.
    matrix : bool
        Whether results go to shared memory by ``stmatrix``, with `through`.
    bulk_stores : bool
        Whether an engine stores results from shared memory (TMA), with `through` and warpgroups, where it can.
    mates : tuple of int
        Tiles along rows, and along columns, whose blocks are a cluster, with a producer: those in one column share the boxes of
        the right factor, those in one row the left one's.
    transposed : bool
        Whether shared copies of factors that lie along the depth are stored transposed: threads then read several rows at once.
    """

    engine: str
    rows: int
    columns: int
    depth: int
    down: int
    across: int
    stages: int
    step: int = 0
    slices: int = 1
    through: bool = False
    persistent: int = 0
    producer: bool = False
    matrix: bool = False
    bulk_stores: bool = False
    mates: tuple[int, int] = (1, 1)
    transposed: bool = False

    def sides(self, form: ProductForm) -> tuple[tuple[Factor, int], tuple[Factor, int]]:
        """The factors as their copies lie in shared memory, each with its part of the tile."""
        left, right = (replace(f, transposed=True, vector=1) if self.transposed and f.along == form.depth else f
                       for f in (form.left, form.right))
        return (left, self.rows), (right, self.columns)

    @property
    def threads(self) -> int:
        """Of a block, those that compute."""
        return self.down * self.across * PARTS[self.engine]

    @property
    def launched(self) -> int:
        """Threads of a block, a producer's included."""
        return self.threads + GROUP * self.producer

    def taken(self, form: ProductForm) -> int:
        """Registers that a thread takes of a producer's, where its own share is short of them; 0 where it is not."""
        rows = self.threads // GROUP
        if not self.producer or self.registers(form) + SHORT <= shares(rows, 0)[0]:
            return 0
        return (shares(rows, 0)[0] * (rows + 1) - GIVEN) // rows // UNIT * UNIT

    def turns(self, form: ProductForm) -> int:
        """Tiles that a block takes one after the other."""
        return -(-self.blocks(form) // self.persistent) if self.persistent else 1

    def row(self, form: ProductForm) -> int:
        """How much of the depth is a row of the swizzle, at most: so deep is an instruction text of a warpgroup."""
        return min(self.depth, ROW_BYTES // form.left.dtype.bytes)

    def chunk(self, form: ProductForm) -> int:
        """Depth of a slice: whole steps, but for the last one."""
        return -(-form.extents[2] // (self.depth * self.slices)) * self.depth

    def blocks(self, form: ProductForm) -> int:
        """Of the grid."""
        across, down = boxes(form, self)
        return number_of(form.row_extents, across) * number_of(form.column_extents, down) * form.batches * self.slices

    def shared_bytes(self, form: ProductForm) -> int:
        """What its slots take, and results on their way."""
        plain = self.engine == "plain"
        slots = self.stages * sum((n * self.depth + plain * f.padding * (self.depth if f.transposed else n)) * f.dtype.bytes
                                  for f, n in self.sides(form))
        return slots + self.through * self.rows * self.columns * form.left.dtype.bytes

    def registers(self, form: ProductForm) -> int:
        """32-bit registers of a thread for accumulators and, where there are, fragments."""
        words = self.rows * self.columns * form.accumulator.bytes // (4 * self.threads)
        if self.engine == "plain":
            (left, rows), (right, columns) = self.sides(form)
            each = ((left, rows // self.down), (right, columns // self.across))
            fragments = sum(n * max(f.dtype.bytes * (1 if f.together > 1 else f.padding), 4) // 4 for f, n in each)
            copies = self.depth * (rows / left.vector + columns / right.vector) / self.threads
            return words + fragments - FREED * (copies <= FEW_COPIES[self.step > 0])
        if self.engine != "warp":
            return words
        row = warp_instruction(form, self.step)
        step = row.k if row else 1
        left = self.rows // self.down * step * form.left.dtype.bytes
        return words + (left + self.columns // self.across * step * form.right.dtype.bytes) // (4 * 32)

    def __str__(self) -> str:
        kind = {"warpgroup": "wgmma", "warp": "mma.sync", "plain": "fma"}[self.engine]
        who = {"warpgroup": "warpgroups", "warp": "warps", "plain": "threads"}[self.engine]
        return (f"{kind}, {self.rows} x {self.columns} x {self.depth} a block, {self.down} x {self.across} {who}, "
                f"{self.stages} stages" + f", depth in {self.slices} slices" * (self.slices > 1)
                + ", results through shared memory" * self.through + " by stmatrix" * self.matrix
                + ", stored by bulk stores" * self.bulk_stores
                + f", {self.persistent} blocks take tiles in turn" * (self.persistent > 0)
                + ", a warp that copies" * self.producer
                + ", copies transposed" * self.transposed
                + f", clusters of {self.mates[0]} x {self.mates[1]}" * (self.mates != (1, 1)))


def require_tiling(t: object, form: ProductForm) -> None:
    """Refuse what is no tiling: before its parameters are divided by, or an instruction is looked for.

    Raises
    ------
    TransformError
        With the parameter, and what it may be.
    """
    if not isinstance(t, Tiling):
        raise TransformError(f"a tiling is a Tiling, not {shown(t)}", hint="Tiling('warp', 64, 64, 32, 2, 2, 3)")
    if t.engine not in PARTS:
        raise TransformError(f"no engine of a tiling is called {t.engine!r}", hint=f"one of {', '.join(map(repr, PARTS))}")
    counts = {name: getattr(t, name) for name in ("rows", "columns", "depth", "down", "across", "stages", "slices")}
    least = [(name, 1, n) for name, n in counts.items()] + [(name, 0, getattr(t, name)) for name in ("step", "persistent")]
    mates = t.mates if isinstance(t.mates, tuple) and len(t.mates) == 2 else (0, 0)
    for name, low, n in (*least, *(("mates", 1, n) for n in mates)):
        if type(n) is not int or n < low:
            wanted = "two integers" if name == "mates" else "an integer"
            raise TransformError(f"{name} of a tiling is {wanted} of at least {low}, not {shown(getattr(t, name))}")
    if t.engine == "warp" and warp_instruction(form, t.step) is None:
        kinds = sorted({r.k for r in INSTRUCTIONS.values() if warp_instruction(form, r.k)})
        raise TransformError(f"no instruction of a warp multiplies these types{f' with a depth of {t.step}' * (t.step > 0)}",
                             hint=f"step={' or '.join(map(str, kinds))}" if kinds else "the engine 'plain'")


def warp_instruction(form: ProductForm, step: int = 0, arch: int = 0) -> Mma | None:
    """The largest instruction of a warp for the types of a product, of this depth and architecture if they are said.

    Where only the depth is, it is one that the first architecture has: what a GPU takes has no other of its depth (``m8n8k16`` of
    integers on sm_75, ``m16n8k32`` from sm_80 on).
    """
    rows = [r for r in INSTRUCTIONS.values() if (not step or r.k == step) and (not arch or r.runs_on(arch))
            and (r.significand, r.a, r.b, r.c) == (form.significand, form.left.dtype, form.right.dtype, form.accumulator)]
    return max(rows, key=lambda r: (-r.arch if step and not arch else 0, r.m * r.n * r.k), default=None)


def tilings(form: ProductForm, gpu: Gpu) -> Iterator[Tiling]:
    """The tilings that fit a GPU and this product."""
    for find in (_of_groups, _of_warps, _of_threads):
        for t in find(form, gpu):
            if (form.grouped and form.extents[1] % t.columns) or (form.sums and not sums_fit(t.engine, t.columns // t.across)):
                continue
            yield t
            if form.sums and not form.aligned:
                continue
            through = replace(t, through=True)
            out = t.engine != "plain" and form.aligned and _fits(through, form, gpu, MOST_REGISTERS)
            yield from (through,) if out else ()
            for u in () if any(form.cut) else (t, through) if out else (t,):  # else tiles have different depths
                yield from _in_turn(u, form, gpu)
                yield from _in_clusters(u, form, gpu)


def _in_turn(t: Tiling, form: ProductForm, gpu: Gpu) -> Iterator[Tiling]:
    """The same tiling with a block for a multiprocessor, whose producer goes on with the next tile while others store.

    There are no more blocks than take equally long: 512 tiles are four for each of 128, and where all have as many, nothing asks
    whether there is a tile.  4096 x 4096 x 1024 with ReLU took 51.3 µs so and 56.6 in 132 blocks, 16384 x 768 x 3072 107.8 and
    112.7, 8192 x 8192 x 8192 1401 and 1421 (H200).

    Results leave by bulk stores then, which go on beside the next tile: ReLU 49.4 and 51.1 µs, GELU 68.5 and 73.8 (one tile for
    each block: 75.8), a residual 64.7 and 69.5 (4096 x 4096 x 1024).  Where some blocks have a tile less, an exact GELU or a
    residual took 1.2 to 1.7 times as long as with one tile for each block, and bulk stores gain for bare results alone.
    """
    if t.depth > t.row(form):
        return
    tiles = t.blocks(form)
    turns = -(-tiles // gpu.multiprocessors)
    grid = -(-tiles // turns)
    whole = grid * turns == tiles
    if form.long and not whole:
        return
    if t.engine == "warpgroup" and tiles > gpu.multiprocessors and t.threads + GROUP <= gpu.max_threads_per_block:
        yield replace(t, persistent=grid, producer=True, bulk_stores=t.through and not form.spaced and (whole or not form.work))


def _in_clusters(t: Tiling, form: ProductForm, gpu: Gpu) -> Iterator[Tiling]:
    """The same tiling in clusters whose blocks bring each other's boxes, where these lie in more lines of the cache than need be.

    1000 x 1504 x 776 took 7.7 µs so and 9.8 otherwise (rows of 1,552 bytes, tiles of 128 x 128); whole lines gain nothing: 512 x
    2304 x 768 7.1 to 7.3 and 7.1, 1024 x 1024 x 1024 6.9 and 6.3, 2048 x 2048 x 2048 25.9 and 25.8.  Nor does a multiprocessor
    with several blocks: 9.0 µs in tiles of 64 x 112, two at a time, and 7.5 in tiles of 128 x 112 (1000 x 1504 x 776; f16, H100).
    """
    if t.engine != "warpgroup" or t.producer or t.depth > t.row(form) or form.batches > 1 or form.gathered:
        return
    if len(form.row_extents) > 1 or len(form.column_extents) > 1 or form.left.array == form.right.array:
        return
    small = 2 * t.shared_bytes(form) <= gpu.shared_bytes_per_sm or t.stages > -(-form.extents[2] // t.depth)
    if small or max(lines_of(form, f, t, False) for f in (form.left, form.right)) <= 1:
        return
    down, across = -(-form.extents[0] // t.rows), -(-form.extents[1] // t.columns)
    for mates in MATES:
        if down % mates[0] == 0 and across % mates[1] == 0:
            yield replace(t, producer=True, mates=mates)


def lines_of(form: ProductForm, f: Factor, t: Tiling, beyond: bool = True) -> float:
    """How much longer a factor's boxes take than whole lines (what lies beyond it included), copies of threads than sectors."""
    if t.engine == "warpgroup":
        there = (t.rows, form.extents[0]) if f is form.left else (t.columns, form.extents[1])
        return of_lines(t.depth * f.dtype.bytes if f.along == form.depth else ROW_BYTES, f.pitch, *there if beyond else ())
    row = t.depth if f.along == form.depth else t.rows if f is form.left else t.columns
    return of_sectors(row * f.dtype.bytes, f.pitch) if t.engine == "warp" else 1.0


def sliced(t: Tiling, form: ProductForm, gpu: Gpu) -> Iterator[Tiling]:
    """The same tiling with the depth in slices, where the blocks of a grid without do not go round the GPU a few times."""
    if t.through or t.producer or form.sums or any(form.cut):
        return  # sums of slices are f32: the pairs that lanes hold are whole sectors
    blocks, steps, others = t.blocks(form), -(-form.extents[2] // t.depth), prod(form.outer_extents)
    if form.gathered or blocks > FEW * gpu.multiprocessors:
        return
    wanted = (2, 3, 4, 6, 8, *(n * gpu.multiprocessors // blocks for n in (1, 2, 3, 4, 6, 8)))
    lengths = {-(-steps // n) for n in wanted if 1 < n <= steps}
    for length in sorted(lengths):
        if length < steps and length * others >= max(LEAST_STEPS, t.stages - 1):
            yield replace(t, slices=-(-steps // length))


def _of_groups(form: ProductForm, gpu: Gpu) -> Iterator[Tiling]:
    """Those of warpgroups: on Hopper, where rows in global memory are multiples of 16 bytes (tensor maps)."""
    size, factors = form.left.dtype.bytes, (form.left, form.right)
    depth = ROW_BYTES // size
    if len({f.along == form.depth for f in factors}) == 1:  # it sets rows of both, or of none
        depth = next((n // size for n in MODES if form.extents[2] * size <= n), depth)
    if gpu.arch != "sm_90" or any(f.pitch % 16 or not f.along or not f.even for f in factors):
        return
    if size != 2 and any(f.along in f.free for f in factors):
        return
    cached = form.left.nbytes + form.right.nbytes <= (gpu.l2_bytes or 0)
    for groups, columns, stages in product((1, 2, 3), COLUMNS, STAGES):
        if groups > 2 and columns > 192:
            continue  # 384 threads with 128 registers of sums each leave few for addresses
        t = Tiling("warpgroup", GROUP_ROWS * groups, columns, depth, groups, 1, stages)
        if wgmma(GROUP_ROWS, columns, depth, *form.types) is None:
            continue
        tiles = zip(factors, boxes(form, t), strict=True)
        if any(f.along in f.free and (box[-1] * size % ROW_BYTES or prod(box[:-1]) > 1) for f, box in tiles):
            continue  # whole rows of the swizzle
        if _fits(t, form, gpu, MOST_REGISTERS):
            yield t
        deep = replace(t, depth=2 * depth)
        whole = not any(form.cut) and deep.row(form) == depth and not form.gathered and not form.outer_depth and cached
        if groups == 1 and columns in DEEP_COLUMNS and whole and form.extents[2] >= DEEP_STEPS * deep.depth and _fits(
                deep, form, gpu, MOST_REGISTERS):
            yield deep
            yield replace(deep, producer=True)


def _of_warps(form: ProductForm, gpu: Gpu) -> Iterator[Tiling]:
    """Those of warps: two stages where copies are not asynchronous, and so go through registers."""
    row = warp_instruction(form, arch=_number(gpu))
    if row is None:
        return
    depths = tuple(n * STEP_BYTES // form.left.dtype.bytes for n in (2, 4))
    layouts = ((1, 1), (1, 2), (2, 1), (1, 4), (2, 2), (4, 1), (2, 4), (4, 2))
    ahead = (2, 3, 4) if all(f.vector * f.dtype.bytes >= 4 for f in (form.left, form.right)) else (2,)
    for (down, across), m, n, depth, stages in product(layouts, (16, 32, 64), (8, 16, 32, 64), depths, ahead):
        if m % row.m or n % row.n or depth % row.k:
            continue
        t = Tiling("warp", m * down, n * across, depth, down, across, stages, row.k)
        if _fits(t, form, gpu, MOST_REGISTERS):
            yield t


def _of_threads(form: ProductForm, gpu: Gpu) -> Iterator[Tiling]:
    """Those of plain arithmetic, where no instruction has the types (its exact ones: tf32 drops bits)."""
    if warp_instruction(form, arch=_number(gpu)) is not None:
        return
    matrices = not form.outer_depth and len(form.left.free) == len(form.right.free) == 1  # whose copies have two axes
    orders = (False, True) if matrices and form.depth in (form.left.along, form.right.along) else (False,)
    for across, m, n, depth, stages, transposed in product(ACROSS, (1, 2, 4, 8), (1, 2, 4, 8), (8, 16), (1, 2, 3, 4), orders):
        t = Tiling("plain", m * DOWN, n * across, depth, DOWN, across, stages, transposed=transposed)
        if _fits(t, form, gpu, MOST_REGISTERS):
            yield t


def boxes(form: ProductForm, t: Tiling) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How many iterations of each loop over rows, and over columns, a tile of a block takes.

    Where a warpgroup reads rows of memory across the depth, they are whole rows of the swizzle: all along one loop.
    """
    sides = ((form.left, form.row_extents, t.rows), (form.right, form.column_extents, t.columns))
    rows, columns = (
        (*(1 for _ in extents[1:]), size) if t.engine == "warpgroup" and f.along == f.free[-1] else
        box_of(extents, size, f.beside) for f, extents, size in sides)
    return rows, columns


@lru_cache(maxsize=4096)
def box_of(extents: tuple[int, ...], size: int, may: tuple[bool, ...] = ()) -> tuple[int, ...]:
    """The box of so many iterations that covers loops of these extents with least waste; of such the longest along the last ones.

    Eight of 56 rows and eight of 56 columns leave nothing over, where 64 of 56 columns would leave 8 of 64.  With `may`, only
    these of the loops are in a box.
    """
    if not all(may):
        chosen = iter(box_of(tuple(n for n, ok in zip(extents, may, strict=True) if ok), size))
        return tuple(next(chosen) if ok else 1 for ok in may)
    if len(extents) == 1:
        return (size,)
    found = [(*box_of(extents[:-1], size // last), last) for last in range(1, size + 1) if size % last == 0]
    return min(found, key=lambda box: (number_of(extents, box), *(-n for n in reversed(box))))


def number_of(extents: tuple[int, ...], box: tuple[int, ...]) -> int:
    """Boxes that cover loops of these extents."""
    return prod(-(-n // size) for n, size in zip(extents, box, strict=True))


def _number(gpu: Gpu) -> int:
    """90 of ``sm_90``."""
    return int("".join(filter(str.isdigit, gpu.arch)))


def _fits(t: Tiling, form: ProductForm, gpu: Gpu, most: int) -> bool:
    """Whether a block has the shared memory and a thread the registers."""
    return t.shared_bytes(form) + 1024 <= gpu.shared_bytes_per_block_optin and t.registers(form) <= most and t.stages - 1 <= -(
        -form.extents[2] // t.depth) * prod(form.outer_extents)
