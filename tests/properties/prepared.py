"""Programs for transformations that random ones hardly ever have work for."""

from __future__ import annotations

from .programs import (
    boxes_of_arrays,
    boxes_of_clusters,
    fragments_of_shared_tiles,
    maxima_in_parts,
    producers_apart,
    products_in_tiles,
    products_of_warpgroups,
    results_of_instructions,
    roles_of_warpgroups,
    scaled_sums,
    tiles_in_shared_memory,
    triangles_in_tiles,
)
from .running import products_in_turn, sums_against_maxima, values_of_quads
from .stored import tiles_of_results

PREPARED = {"compute_at": producers_apart, "factor_out": scaled_sums, "load_matrix": fragments_of_shared_tiles,
            "multicast": boxes_of_clusters, "pipeline": boxes_of_arrays, "rescale": maxima_in_parts,
            "overlap": products_of_warpgroups, "specialise": roles_of_warpgroups,
            "stage": boxes_of_arrays, "store_matrix": results_of_instructions, "swizzle": tiles_in_shared_memory,
            "store_bulk": tiles_of_results, "running": sums_against_maxima, "shuffle": values_of_quads,
            "take_turns": products_in_turn,
            "tensorize": products_in_tiles, "trim": triangles_in_tiles}
"""Programs for transformations that random ones hardly ever have work for."""
