"""Other systems' words for our moves: ``ex.help("Exo: mult_loops")``.

Sources: the documentation of Halide, TVM (TensorIR), Exo, loopy, isl and Clay, as of 2025.
"""

from __future__ import annotations

import difflib

from ..transforms.base import catalogue

_ROWS: dict[str, dict[str, str]] = {
    "split": {"Halide": "split", "TVM": "split", "Exo": "divide_loop", "loopy": "split_iname", "isl": "band_tile",
              "Clay": "stripmine"},
    "tile": {"Halide": "tile", "TVM": "split, reorder", "Exo": "divide_loop, reorder_loops", "isl": "band_tile", "Clay": "tile"},
    "coalesce": {"Halide": "fuse", "TVM": "fuse", "Exo": "mult_loops", "loopy": "join_inames", "OpenMP": "collapse"},
    "fuse": {"Halide": "compute_with", "TVM": "merge, reverse_compute_at", "Exo": "fuse",
             "loopy": "rename_inames_in_batch", "Clay": "fuse"},
    "distribute": {"Exo": "fission", "loopy": "duplicate_inames", "isl": "order_before", "Clay": "split"},
    "interchange": {"Halide": "reorder", "TVM": "reorder", "Exo": "reorder_loops", "loopy": "prioritize_loops",
                    "Clay": "interchange"},
    "reorder": {"Halide": "reorder", "TVM": "reorder", "Exo": "reorder_loops", "loopy": "prioritize_loops"},
    "bind": {"Halide": "gpu_blocks, gpu_threads", "TVM": "bind", "loopy": "tag_inames", "isl": "mark"},
    "skew": {"loopy": "map_domain", "Clay": "skew"},
    "shift": {"Exo": "shift_loop", "loopy": "map_domain", "isl": "band_shift", "Clay": "shift"},
    "reverse": {"loopy": "map_domain", "isl": "band_scale", "Clay": "reverse"},
    "cut": {"Halide": "specialize", "TVM": "loop_partition", "Exo": "cut_loop", "loopy": "chunk_iname", "isl": "isolate",
            "Clay": "iss, peel"},
    "stage": {"Halide": "compute_at, store_in", "TVM": "cache_read, cache_write", "Exo": "stage_mem", "loopy": "add_prefetch"},
    "contract": {"Halide": "store_at", "TVM": "set_scope", "Exo": "set_memory", "loopy": "privatize_temporaries_with_inames"},
    "compute_at": {"Halide": "compute_at", "TVM": "compute_at"},
    "inline": {"Halide": "compute_inline", "TVM": "compute_inline", "Exo": "inline_assign"},
    "rfactor": {"Halide": "rfactor", "TVM": "rfactor", "loopy": "split_reduction_inward"},
    "pipeline": {"Halide": "async, fold_storage", "TVM": "software_pipeline_stage", "isl": "band_shift"},
    "vectorize": {"Halide": "vectorize", "TVM": "vectorize", "loopy": "tag_inames vec"},
    "occupy": {"CUDA": "__launch_bounds__"},
    "unroll": {"Halide": "unroll", "TVM": "unroll", "Exo": "unroll_loop", "loopy": "tag_inames unr"},
}

_TRAPS = {
    "fuse": "fuse joins *adjacent sibling* loops here (as in Exo, Clay and textbooks); "
            "for nested loops (Halide's and TVM's fuse) use coalesce. TVM's reverse_compute_at is a fuse for each loop that the "
            "consumer moves into.",
    "compute_at": "compute_at moves the *producer* into its consumers' loop (as in Halide, and TVM's compute_at); TVM's "
                  "reverse_compute_at moves the consumer into the producer's loop: that is fuse, once sequence has put the two "
                  "loops side by side.",
    "coalesce": "coalesce makes nested loops one; it is not isl's set simplification, "
                "nor contiguous access by a warp (see sectors).",
    "join": "join lets a kernel run in the launch before it, behind a ticket, signals, the barrier of a cluster or of the grid; "
            "loopy's join_inames is coalesce.",
    "split": "split makes one loop two; Clay's split is distribute here.",
}


def elsewhere(name: str) -> dict[str, str]:
    """What other systems call a move: system to their words, separated by commas."""
    return dict(_ROWS.get(name, {}))


def lookup(words: str = "") -> str:
    """What a move, or another system's word for it, means here.

    Parameters
    ----------
    words : str
        ``"coalesce"``, ``"Exo: mult_loops"``, ``"Halide: fuse"``; without any, all moves are listed.

    Returns
    -------
    str
        The move's documentation, with what other systems call it.
    """
    words = str(words)
    if not words.strip():
        return "moves, each a method of a schedule (help(\"split\") says what one does):\n" + "\n".join(map(_line, catalogue()))
    system, _, word = words.rpartition(":")
    system, word = system.strip().lower(), word.strip()
    hits = [ours for ours, row in _ROWS.items() for theirs, names in row.items()
            if (not system or theirs.lower() == system) and word in [n.strip() for n in names.split(",")]]
    if not system and word in catalogue():
        hits = [word]
    hits = list(dict.fromkeys(hits)) or [k.name for k in catalogue().values() if word in k.aliases]
    if not hits:
        known = [*catalogue(), *(f"{t}: {n.strip()}" for r in _ROWS.values() for t, names in r.items() for n in names.split(","))]
        near = difflib.get_close_matches(words.strip(), known, 4, 0.4)
        return f"no move is called {words!r}; did you mean {', '.join(near) or 'one of ' + ', '.join(catalogue())}?"
    return "\n\n".join(_entry(name) for name in hits)


def _line(name: str) -> str:
    """A move and the first sentence of its documentation."""
    return f"  {name:<12s} {(catalogue()[name].__doc__ or '').strip().splitlines()[0]}"


def _entry(name: str) -> str:
    kind = catalogue().get(name)
    called = ", ".join(f"{system}: {words}" for system, words in elsewhere(name).items())
    lines = [f"{name} — {(kind.__doc__ or '').strip()}" if kind else name]
    lines += [f"Called elsewhere: {called}."] if called else []
    lines += [f"Beware: {_TRAPS[name]}"] if name in _TRAPS else []
    return "\n\n".join(lines)
