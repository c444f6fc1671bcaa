"""GPUs as data: what a product and its architecture fix, each number with its unit and source in ``catalogue.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

from ..errors import ExplorerError, ResourceError, outspoken, shown

DEFAULT = "H200"
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
"""Those that texts are compiled for, oldest first."""


@dataclass(frozen=True)
class Breach:
    """One limit that a launch exceeds.

    Attributes
    ----------
    what : str
        The quantity, as a phrase: ``"threads per block"``.
    asked, limit : int
        What the launch asks for and what the GPU gives, in `unit`.
    unit : str
    shrink : str
        What to make smaller.
    """

    what: str
    asked: int
    limit: int
    unit: str
    shrink: str

    def __str__(self) -> str:
        return f"{self.what}: {self.asked:,} {self.unit}, limit {self.limit:,}"


@outspoken(ExplorerError, 'ex.gpu("H200")')
@dataclass(frozen=True)
class Gpu:
    """What a kernel has to fit in, and how fast it could go at best.

    Attributes
    ----------
    name, arch : str
        Product (``"H200"``) and compiler target (``"sm_90"``).
    aliases : tuple of str
        Further names, among them the ones that the driver reports.
    compute_capability : tuple of int
        Major and minor.
    multiprocessors, warp_size : int
    registers_per_sm, registers_per_block, max_registers_per_thread : int
        32-bit registers.
    register_allocation_unit : int
        Registers are given to a warp in multiples of this many.
    warp_allocation_granularity : int
        Sub-partitions of a multiprocessor; each warp lives in one of them.
    shared_bytes_per_sm, shared_bytes_per_block_optin, static_shared_bytes_per_block : int
        Bytes of shared memory: in all, for a block that asks (dynamic), for a block that does not (static, 48 KiB).
    shared_allocation_unit, reserved_shared_bytes_per_block : int
        Bytes: granularity, and what the driver takes from each block's share.
    max_threads_per_block, max_threads_per_sm, max_blocks_per_sm : int
    max_grid, max_block_dim : tuple of int
        Extents (x, y, z).
    memory_bytes, memory_bandwidth_bytes_per_s : float
        As the datasheet has them.
    f32_flops_per_s, f64_flops_per_s, f16_tensor_flops_per_s : float
        Peaks, a fused multiply-add counted as two; tensor cores dense, f32 accumulation.
    clock_hz, l2_bytes : float or None
        Boost clock and L2 size; None where no source at hand gives it.
    barriers_per_sm : int or None
        Named barriers of all resident blocks; None where they do not limit (before 9.0).
    measured_bandwidth_bytes_per_s, measured_f16_tensor_flops_per_s : float or None
        What a plain copy and a large library matrix product reach on the part itself.
    facts : mapping of str to mapping
        For each number: ``value``, ``unit`` and ``source`` (spelled out), or ``missing``.
    """

    name: str
    arch: str
    aliases: tuple[str, ...]
    compute_capability: tuple[int, int]
    multiprocessors: int
    warp_size: int
    registers_per_sm: int
    registers_per_block: int
    max_registers_per_thread: int
    register_allocation_unit: int
    warp_allocation_granularity: int
    shared_bytes_per_sm: int
    shared_bytes_per_block_optin: int
    static_shared_bytes_per_block: int
    shared_allocation_unit: int
    reserved_shared_bytes_per_block: int
    max_threads_per_block: int
    max_threads_per_sm: int
    max_blocks_per_sm: int
    max_grid: tuple[int, int, int]
    max_block_dim: tuple[int, int, int]
    memory_bytes: float
    memory_bandwidth_bytes_per_s: float
    f32_flops_per_s: float
    f64_flops_per_s: float
    f16_tensor_flops_per_s: float
    clock_hz: float | None = None
    l2_bytes: int | None = None
    barriers_per_sm: int | None = None
    measured_bandwidth_bytes_per_s: float | None = None
    measured_f16_tensor_flops_per_s: float | None = None
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.name} ({self.arch})"

    @property
    def max_cluster_blocks(self) -> int:
        """Blocks of a cluster at most, 1 where there are none.

        8 from compute capability 9.0 on; 9.0 and 10.0 take 16 where a kernel asks (CUDA C++ Programming Guide, "Thread Block
        Clusters").
        """
        return 1 if self.compute_capability < (9, 0) else 16 if self.compute_capability in ((9, 0), (10, 0)) else 8

    @property
    def max_warps_per_sm(self) -> int:
        """Warps that can be resident on one multiprocessor."""
        return self.max_threads_per_sm // self.warp_size

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """The bandwidth to reason with: measured where known, else the datasheet's."""
        return self.measured_bandwidth_bytes_per_s or self.memory_bandwidth_bytes_per_s

    def limits_check(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        *,
        static_shared_bytes: int = 0,
        dynamic_shared_bytes: int = 0,
        registers_per_thread: int | None = None,
    ) -> tuple[Breach, ...]:
        """Every limit that a launch of this shape exceeds; empty when it fits.

        Parameters
        ----------
        grid, block : tuple of int
            Extents (x, y, z).
        static_shared_bytes, dynamic_shared_bytes : int
            Shared memory declared in the text, and asked for at launch.
        registers_per_thread : int, optional
            As the compiler reports; None leaves registers out.
        """
        threads = prod(block)
        shared = static_shared_bytes + dynamic_shared_bytes
        rows = [
            *((f"grid {axis}", n, limit, "blocks", "bind fewer iterations to the grid, or split that loop and bind the outer "
               "part to block.x") for axis, n, limit in zip("xyz", grid, self.max_grid, strict=True)),
            *((f"block {axis}", n, limit, "threads", "bind another loop to this thread dimension, or split it")
              for axis, n, limit in zip("xyz", block, self.max_block_dim, strict=True)),
            ("threads per block", threads, self.max_threads_per_block, "threads", "split the loops bound to threads"),
            ("static shared memory per block", static_shared_bytes, self.static_shared_bytes_per_block, "bytes",
             "stage a smaller tile, fewer stages, or use dynamic shared memory"),
            ("shared memory per block", shared, self.shared_bytes_per_block_optin, "bytes",
             "stage a smaller tile or use fewer pipeline stages"),
        ]
        if registers_per_thread is not None:
            rows += [
                ("registers per thread", registers_per_thread, self.max_registers_per_thread, "registers",
                 "keep less per thread: smaller register tile, less unrolling"),
                ("registers per block", self.registers_of_block(threads, registers_per_thread), self.registers_per_block,
                 "registers", "use fewer threads per block or a smaller register tile"),
            ]
        return tuple(Breach(what, asked, limit, unit, shrink) for what, asked, limit, unit, shrink in rows if asked > limit)

    def registers_of_block(self, threads: int, registers_per_thread: int) -> int:
        """Registers that a block is charged when it is launched.

        Each warp gets its registers in multiples of `register_allocation_unit`, and the launch check counts as many warps
        as fill whole rounds over the sub-partitions (``cudaOccMaxBlocksPerSMRegsLimit`` in ``cuda_occupancy.h``).
        """
        warps = round_up(-(-threads // self.warp_size), self.warp_allocation_granularity)
        return warps * round_up(registers_per_thread * self.warp_size, self.register_allocation_unit)


def round_up(value: int, unit: int) -> int:
    """The least multiple of `unit` that is at least `value`."""
    return -(-value // unit) * unit


@cache
def catalogue() -> Mapping[str, Gpu]:
    """All known GPUs by name, oldest architecture first."""
    raw = tomllib.loads(Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8"))
    return {name: _gpu(name, row, raw) for name, row in raw["gpu"].items()}


def gpu(name: str) -> Gpu:
    """The GPU of that name or alias; case, spaces and punctuation do not matter.

    Raises
    ------
    ResourceError
        If there is none; the hint names the nearest ones.
    """
    if not isinstance(name, str):
        raise ResourceError(f"a GPU is asked for by its name, not by {shown(name)}", hint=f'gpu("{DEFAULT}")')
    found = _by_key().get(_key(name))
    if found is not None:
        return found
    near = get_close_matches(_key(name), list(_by_key()), n=6, cutoff=0.4)
    names = list(dict.fromkeys(_by_key()[k].name for k in near))[:3] or list(catalogue())
    raise ResourceError(f"No GPU called {shown(name)} is in the catalogue.", why=f"known: {', '.join(catalogue())}",
                        hint=" or ".join(f'gpu("{n}")' for n in names), suggestions=tuple(names))


def architecture(name: str) -> str:
    """``"sm_90"`` from itself or from the name of a GPU.

    Raises
    ------
    ResourceError
        If no GPU has the name.
    """
    if isinstance(name, str) and name.startswith("sm_"):
        known = {g.arch for g in catalogue().values()} | set(ARCHITECTURES)
        if name.rstrip("af") in known:
            return name
        raise ResourceError(f"no architecture is called {shown(name)}", hint=", ".join(sorted(known, key=lambda a: int(a[3:]))))
    return gpu(name).arch


def default_gpu(installed: str | None = None) -> Gpu:
    """The GPU to plan for: the installed one where it is known, else the H200.

    Parameters
    ----------
    installed : str, optional
        The name the driver reports, such as ``"NVIDIA H200"``; None when there is no GPU.
    """
    known = _by_key().get(_key(installed)) if installed else None
    return known or catalogue()[DEFAULT]


def target_gpu(asked: Gpu | str | None) -> Gpu:
    """The GPU that a caller means: itself, the one of that name, or by default the H200.

    Raises
    ------
    ResourceError
        If there is none of that name.
    """
    return default_gpu() if asked is None else asked if isinstance(asked, Gpu) else gpu(asked)


@cache
def _by_key() -> dict[str, Gpu]:
    """Every name and alias, normalised, to its GPU."""
    return {_key(name): g for g in catalogue().values() for name in (g.name, *g.aliases)}


def _key(name: str) -> str:
    """Letters and digits only, lower case, without the maker's name."""
    return re.sub(r"[^a-z0-9]", "", name.lower().replace("nvidia", "").replace("geforce", ""))


def _gpu(name: str, row: Mapping[str, Any], raw: Mapping[str, Any]) -> Gpu:
    """One row of the file, with what its architecture and all architectures add."""
    numbers = {**raw["common"], **raw["architecture"][row["arch"]], **{k: v for k, v in row.items() if isinstance(v, dict)}}
    facts = {k: {**v, "source": raw["sources"][v["source"]]} if "source" in v else v for k, v in numbers.items()}
    whole = {f.name for f in fields(Gpu) if str(f.type).startswith("int")}
    values = {k: _plain(v.get("value"), k in whole) for k, v in numbers.items()}
    return Gpu(name=name, arch=row["arch"], aliases=tuple(row["aliases"]), facts=facts, **values)


def _plain(value: Any, whole: bool) -> Any:
    """A TOML value as the field holds it: lists as tuples, whole numbers as int."""
    if isinstance(value, list):
        return tuple(value)
    return int(value) if whole and value is not None else value
