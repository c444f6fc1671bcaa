"""Words that GPU engineers use, with what they mean and the moves, figures and methods that belong to them: one row each.

Words that mean one move, or more, and need no sentence, are the moves' own ``aliases`` and ``elsewhere``; they join a row's list.
This tool's own words are in :mod:`~explorer.teach.words`; both are looked up here.
"""

from __future__ import annotations

import re
from functools import cache

from .words import OWN, Word


def key(word: str) -> str:
    """What two spellings of a word have in common: its letters and digits, in small letters, without a plural's s."""
    plain = re.sub(r"[\W_]+", "", word).casefold()
    return plain.removesuffix("s") if len(plain) > 3 and not plain.endswith("ss") else plain


def find(word: str, own: bool = True) -> Word | None:
    """The row of a word, or None; without `own` only of a word of the field."""
    row = _rows().get(key(word))
    return row if own or row not in OWN else None


def spellings(rows: tuple[Word, ...]) -> tuple[str, ...]:
    """The words of these rows, as they are written first."""
    return tuple(row.said[0] for row in rows)


@cache
def _rows() -> dict[str, Word]:
    return {key(said): row for row in WORDS for said in row.said}


FIELD = (
    # ---- tensor cores ----
    Word(("tensor core", "TensorCore", "tensor instruction", "MMA instruction", "HMMA", "WMMA"),
         "A unit that multiplies small matrices: `tensorize` makes one of its instructions of a product's three innermost loops.",
         ("tensorize", "load_matrix", "overlap", "plot.fragments", "auto")),
    Word(("mma", "mma.sync", "m16n8k16"),
         "The tensor instruction of a warp: both factors and the sum are in registers of its lanes. `stage(…, space='register')` "
         "fills them, by `load_matrix` where the tile is in shared memory.",
         ("tensorize", "load_matrix", "stage", "plot.fragments")),
    Word(("wgmma", "wgmma.mma_async", "warpgroup mma", "GMMA"),
         "Hopper's tensor instruction of a warpgroup: the second factor, and mostly the first, are swizzled tiles in shared "
         "memory, as `stage(…, engine='bulk', swizzle=128)` leaves them.",
         ("tensorize", "overlap", "take_turns", "specialise", "stage")),
    Word(("tf32", "tensor float"),
         "f32 with 10 bits behind the point, for tensor instructions: `approximate(…, factors='tf32')`.",
         ("approximate", "tensorize")),
    Word(("fragment",), "The part of a tensor instruction's matrices that each lane holds in its registers.",
         ("plot.fragments", "load_matrix", "store_matrix", "tensorize", "shuffle")),
    Word(("GEMM", "matmul", "matrix multiplication", "matrix product"),
         "A product of matrices: `auto` tiles it, copies its factors ahead, and uses tensor instructions where the types have "
         "them.",
         ("auto", "tile", "stage", "tensorize", "pipeline")),
    Word(("implicit GEMM", "im2col", "convolution"),
         "A convolution as a product of matrices whose rows are pixels; implicit where the matrix of windows is never in memory. "
         "`auto` does that, and `stage(…, loops=…)` makes rows and columns of what is no box of the array.",
         ("auto", "stage", "tensorize")),
    Word(("epilogue", "epilogue fusion"),
         "What a kernel does with a tile's sums before it stores them: bias, activation, cast. Statements behind the sum are one "
         "if the sum stays in registers; `outline` and a tile in shared memory (`contract(…, space='shared')`) make its stores "
         "whole rows.",
         ("contract", "outline", "store_matrix", "store_bulk", "vectorize", "auto")),
    # ---- copies ----
    Word(("TMA", "Tensor Memory Accelerator", "bulk copy", "cp.async.bulk", "cp.async.bulk.tensor", "tensor map"),
         "Hopper's engine that copies boxes of arrays: one thread asks for a box. `stage(…, engine='bulk')` loads with it, and "
         "`store_bulk` stores.",
         ("stage", "store_bulk", "multicast", "specialise", "pipeline")),
    Word(("cp.async", "async copy", "asynchronous copy", "LDGSTS"),
         "A copy from global to shared memory that a thread starts and waits for later: `stage(…, engine='async')`; `pipeline` "
         "starts it iterations ahead.",
         ("stage", "pipeline")),
    Word(("mbarrier", "async barrier", "transaction barrier"),
         "A barrier in shared memory that counts arrivals and bytes. No move places one alone: bulk copies end at one, and so "
         "do a producer's slots.",
         ("specialise", "pipeline", "stage", "plot.roles")),
    Word(("double buffering", "ping-pong buffer"),
         "Two slots for a tile: one is read while the other is filled, `pipeline(…, 2)`.",
         ("pipeline", "stage", "plot.pipeline")),
    Word(("multi-stage", "multistage pipeline", "multi-buffering", "software pipelining", "prefetching"),
         "Several slots for a tile, so that copies run ahead of their use: `pipeline(…, 4)`.",
         ("pipeline", "stage", "specialise", "plot.pipeline", "plot.ablation")),
    Word(("warp specialization", "warp specialisation", "producer-consumer", "producer warp"),
         "Warps of a block with different work: one copies ahead, the others compute.",
         ("specialise", "take_turns", "plot.roles")),
    # ---- places ----
    Word(("warp",), "32 threads that run an instruction together: `bind(…, 'warp')` and, for its threads, `bind(…, 'lane')`.",
         ("bind", "shuffle", "collect", "tensorize")),
    Word(("lane",),
         "One of the 32 threads of a warp: `bind(…, 'lane')`. The iterations of a vector loop are lanes of one wide access.",
         ("bind", "shuffle", "vectorize")),
    Word(("warpgroup", "warp group"), "Four warps, 128 threads, that issue a wgmma together.",
         ("tensorize", "overlap", "take_turns", "specialise")),
    Word(("warp shuffle", "__shfl_sync", "shfl"), "An exchange of registers among the lanes of a warp.", ("shuffle", "collect")),
    Word(("thread block", "CTA", "grid", "blockIdx", "threadIdx"),
         "Blocks run anywhere and have no order; the threads of one share memory and barriers: `bind(…, 'block.x')`, "
         "`bind(…, 'thread.x')`.",
         ("bind", "swap_axes", "persist", "launch")),
    Word(("persistent kernel", "persistent CTA", "persistent block", "tile scheduler"),
         "A grid of as many blocks as the GPU holds at a time, each of which takes several tiles; also a launch that goes on "
         "where a second one would begin.",
         ("persist", "join")),
    Word(("cluster", "thread block cluster", "CGA"),
         "Neighbouring blocks that reach each other's shared memory: they share copies (`multicast`), combine sums "
         "(`collect(…, 'cluster')`), or hand results to the next kernel (`join(…, 'cluster')`).",
         ("multicast", "collect", "join")),
    Word(("DSMEM", "distributed shared memory"),
         "The shared memory of all blocks of a cluster: `collect(…, 'cluster')` and `join(…, 'cluster')` use it.",
         ("collect", "join", "multicast")),
    Word(("split-K", "sliced K", "split reduction"),
         "The depth of a product in slices that run in different blocks: each has partial sums (`rfactor`), and `collect` or a "
         "second launch adds them. `auto` does it where tiles are few.",
         ("rfactor", "split", "collect", "auto")),
    Word(("stream-K",),
         "Blocks with equal shares of all tiles' steps, which may begin and end inside of tiles. There is no move for it; "
         "nearest are tiles dealt out to resident blocks, and the depth in slices.",
         ("persist", "rfactor", "collect")),
    Word(("pingpong schedule", "ping-pong kernel"), "Warpgroups that multiply in turn, one while the others do the rest.",
         ("take_turns", "specialise")),
    # ---- memory ----
    Word(("shared memory", "SMEM", "scratchpad"),
         "Memory of a block. `stage` copies what it reads there, and `contract(…, space='shared')` puts a temporary there.",
         ("stage", "contract", "swizzle", "pipeline", "plot.memory")),
    Word(("register", "register file"), "A thread's own storage: `stage(…, space='register')`, and `contract` for temporaries.",
         ("contract", "stage", "accumulate", "launch_bounds", "shuffle")),
    Word(("register tile", "register tiling", "register blocking", "thread tile", "micro tile"),
         "Several results for each thread, so that a value loaded once is used several times: loops inside of the thread's, with "
         "the sums in registers.",
         ("tile", "accumulate", "contract", "stage", "unroll")),
    Word(("register spill", "register spilling", "register pressure", "local memory"),
         "Registers that a thread lacks, so that values go to memory. `compile` says how many a thread takes.",
         ("launch_bounds", "compile", "kernel", "plot.occupancy")),
    Word(("bank conflict", "shared memory conflict"),
         "Lanes of a warp that want different words of one bank of shared memory, one after the other. A swizzle or `pad` "
         "spreads them.",
         ("swizzle", "stage", "contract", "plot.memory", "facts")),
    Word(("swizzling", "XOR swizzle"), "Places of a shared array exchanged so that a column lies in different banks.",
         ("swizzle", "stage", "plot.memory")),
    Word(("coalescing", "coalesced", "coalesced access", "memory coalescing", "uncoalesced"),
         "Neighbouring threads that read neighbouring elements, so that a warp's request moves few sectors of 32 bytes. The move "
         "`coalesce` is another thing: it makes two loops one.",
         ("bind", "swap_axes", "vectorize", "stage", "rearrange", "plot.memory", "facts")),
    Word(("vectorized load", "vectorised load", "vector load", "float4", "LDG.128", "wide load"),
         "A load of up to 16 bytes in one instruction.", ("vectorize", "stage", "align")),
    Word(("occupancy",), "How many warps a multiprocessor holds, of those that it has room for.",
         ("plot.occupancy", "launch_bounds", "kernel")),
    Word(("latency hiding", "instruction-level parallelism", "ILP"), "Work that goes on while loads are under way.",
         ("pipeline", "unroll", "launch_bounds", "vectorize", "plot.timeline")),
    Word(("L2 cache", "cache locality", "threadblock swizzle", "tile order"),
         "Blocks that run at the same time should use the same rows and columns: the order of the tiles says which do.",
         ("persist", "swap_axes", "tile", "facts")),
    Word(("arithmetic intensity", "memory-bound", "compute-bound", "speed of light"),
         "Operations for each byte moved: which of the two limits a kernel.", ("plot.roofline", "facts", "plot.price")),
    # ---- algorithms ----
    Word(("flash attention", "FlashAttention", "fused attention", "attention"),
         "Attention in one kernel: scores stay in registers, with the maximum and the sums taken part by part. `auto` "
         "recognises it.",
         ("running", "rescale", "replicate", "shuffle", "auto")),
    Word(("online softmax", "streaming softmax"),
         "A softmax in one pass: what was summed is scaled whenever the maximum grows (`running`), or parts are summed against "
         "maxima of their own (`rescale`).",
         ("running", "rescale")),
    Word(("kernel fusion", "operator fusion", "fusion"),
         "Several kernels as one, without a temporary in global memory between them.",
         ("stitch", "fuse", "compute_at", "inline", "contract", "join")),
    Word(("reduction", "tree reduction", "block reduction", "warp reduction"),
         "A sum or a maximum by many threads: each has a part (`rfactor`), and `collect` says how the parts are combined.",
         ("collect", "rfactor", "accumulate", "plot.partials")),
    Word(("atomics", "atomicAdd", "red.global"), "Updates that do not get lost, in no fixed order: `collect(…, 'atomic')`.",
         ("collect",)),
    Word(("tiling", "loop tiling", "cache blocking"), "Loops over tiles, and loops inside of a tile.",
         ("tile", "split", "reorder")),
    Word(("loop unrolling", "pragma unroll"), "All iterations of a loop written out.", ("unroll",)),
    Word(("autotuning", "auto-tuning", "autotuner"), "A search over schedules by measured times.", ("search", "auto")),
    Word(("profiling", "profiler", "Nsight"), "When the threads of a kernel do what.", ("stamps", "plot.roles", "facts")),
    Word(("PTX", "SASS", "cubin"), "What a compiler makes of the text.", ("compile", "cuda", "export")),
)  # fmt: skip
"""The words of the field."""
WORDS = (*FIELD, *OWN)
"""All rows; a spelling stands in one of them."""
