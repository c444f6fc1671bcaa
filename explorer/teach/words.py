"""The words that this tool and its pages use of programs, proofs, memory and cost, each with what it means: one row each.

Words of the field are in :mod:`~explorer.teach.field`, which looks both up; ``docs/glossary.md`` lists all of them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Word:
    """A word, of the field or of this tool.

    Attributes
    ----------
    said : tuple of str
        The word first as it is written, then other spellings and words for the same; what does not matter is said by
        :func:`~explorer.teach.field.key`.  A word of this tool may be a move's name: it then follows the move's documentation.
    means : str
        What it is, and how it is done here.
    see : tuple of str
        Moves, methods of a schedule, strategies, and figures as ``plot.memory``, the nearest first.
    """

    said: tuple[str, ...]
    means: str
    see: tuple[str, ...]


OWN = (
    # ---- programs and schedules ----
    Word(("statement",),
         "A statement is one assignment, or one update of a reduction, in the program; statements are called S0, S1, … in the "
         "order of the text. A move may add statements of its own, as copies and partial sums.",
         ("dependences", "moves")),
    Word(("instance", "statement instance"),
         "An instance is one execution of a statement, with a value for each loop around it in the program: S1[3, 448]. A "
         "schedule gives every instance a time and a place.",
         ("plot.domain", "judgement", "dependences")),
    Word(("plan",),
         "A plan is the loop tree with the role of every loop and the storage of every array. It says which instance runs "
         "where, when, and in which memory; the judge judges plans.",
         ("judgement", "try_step", "moves")),
    Word(("schedule",),
         "A schedule is a plan with the steps that made it from the program. It never changes: a move gives a new schedule.",
         ("moves", "apply", "replay", "undo")),
    Word(("move", "transformation"),
         "A move, or transformation, is a rewriting of the plan that is called as a method of a schedule, as `split(…)`. The "
         "judge then says whether the result is legal; if it is not, the move is refused.",
         ("moves", "apply", "try_step")),
    Word(("step",),
         "A step is one move with its arguments, as a schedule records it; steps that are replayed are judged again. The "
         "price of a pipelined loop also calls one iteration a step: the products of one tile with their waits.",
         ("apply", "replay", "undo", "pipeline", "plot.price")),
    Word(("node",),
         "A node is a loop, a leaf, or a synchronisation, as a wait for copies, in the loop tree. Every node has an id, as "
         "every kernel has; moves take these ids as arguments.",
         ("moves", "plot.domain")),
    Word(("leaf", "leaves"),
         "A leaf is a node that runs instances of one statement, at its place in the loop tree. Where instances of a "
         "statement run at several places, as after `cut`, it has several leaves.",
         ("moves", "cut", "pipeline")),
    Word(("kernel",),
         "A kernel is the code that all blocks of a grid run; a plan is a list of kernels. It has a launch of its own, or is "
         "one phase of a launch that it shares with the kernel before it.",
         ("kernel", "launch", "join", "distribute")),
    Word(("launch", "launches"),
         "A launch is one start of a grid by the host. Launches of a program run one after the other: all blocks of one "
         "finish before any block of the next begins.",
         ("launch", "join", "bind", "distribute")),
    Word(("phase",),
         "A phase is one of the kernels that share a launch: each one after the first follows the one before it in one of the "
         "ways of `join`. A phase of an mbarrier lasts until all arrivals and bytes that it expects have come; a wait names "
         "it by its parity.",
         ("join", "stage", "specialise", "plot.roles")),
    # ---- proofs ----
    Word(("judge", "judgement", "four questions"),
         "The judge is the part that asks the four questions of a plan after every step: cover, order, obligations, flow. It "
         "answers each for all instances at the given sizes, by exact integer arithmetic.",
         ("judgement", "try_step", "counterexample")),
    Word(("cover",), "Cover is the first question: does every instance of every statement run exactly once?",
         ("judgement", "plot.domain")),
    Word(("order",),
         "Order is the second question: does the source of every dependence run before its sink? Before means in an earlier "
         "launch, or at an earlier time in the same block.",
         ("judgement", "dependences", "plot.dependences")),
    Word(("obligation",),
         "An obligation is a loop bound to blocks or threads in which two updates of one element of a reduction differ, so "
         "that they would race. It is open until `collect` says how the updates are combined; no kernel is emitted while one "
         "is open.",
         ("obligations", "collect", "rfactor")),
    Word(("flow",),
         "Flow is the fourth question: does every read get the value that it gets in the program, with the storage that is "
         "really used (registers, shared tiles, slots of a pipeline)? A flow dependence is a write, then a read of what it "
         "wrote.",
         ("judgement", "contract", "stage", "pipeline")),
    Word(("dependence", "dependency", "dependencies", "data dependence"),
         "A dependence is a pair of instances that access one element, at least one of them writing it, and have to keep "
         "their order: flow (written, then read), anti (read, then overwritten), output (written twice). Updates of one "
         "reduction depend on each other, too, but may run in any order among themselves.",
         ("dependences", "plot.dependences", "skew", "interchange")),
    Word(("race", "data race", "race condition"),
         "A race is two accesses of one cell by different threads, at least one of them a write, that nothing orders. A "
         "schedule with a race that no barrier can order is refused; updates of a reduction that would race are an "
         "obligation.",
         ("judgement", "obligations", "collect", "counterexample")),
    Word(("legal", "illegal"),
         "A schedule is legal if it computes what the program says: every instance runs once, every dependence keeps its "
         "order, every read gets its value, and barriers can order what threads share. A legal schedule can have an open "
         "obligation; no kernel is emitted from it then.",
         ("judgement", "try_step", "moves", "counterexample")),
    Word(("witness", "witnesses"),
         "A witness is the pair of instances that shows why a step is refused: the lexicographically smallest pair that "
         "violates the condition, with the element that both access and both orders.",
         ("try_step", "counterexample", "judgement")),
    Word(("counterexample",),
         "A counterexample is a run of the order that a refused step would make, at the smallest sizes that show a wrong "
         "output cell.",
         ("counterexample", "try_step", "pipeline_conditions")),
    Word(("proved",),
         "Proved is the tick of a run's badge which says that the schedule is legal without an open obligation, for all "
         "instances at these sizes, and that the kernel, after the last pass, does what the schedule says.",
         ("judgement", "run", "ir")),
    Word(("emulated",),
         "Emulated is the tick of a run's badge which says that the kernel's text gave right values on the CPU device, with "
         "every access checked, in several adversarial thread orders.",
         ("run", "counterexample")),
    # ---- memory ----
    Word(("tile",),
         "A tile is one of the equal boxes that loops or an array are cut into, and that a block, a warp or a thread works on "
         "at a time. Tiles at an edge may be partial.",
         ("tile", "split", "stage", "persist")),
    Word(("box", "boxes", "TMA box", "TMA tile"),
         "A box is the product of one range of integers for each axis: the rectangular part of an array that `stage` copies, "
         "or the values of nested loops. TMA copies a box, there also called its tile, in one instruction: `stage(…, "
         "engine='bulk')`.",
         ("stage", "store_bulk", "multicast")),
    Word(("sector",),
         "A sector is 32 aligned bytes of global memory, the least that a request moves: a warp's request costs as many "
         "sectors as its lanes touch.",
         ("plot.memory", "facts", "vectorize", "swap_axes")),
    Word(("bank",),
         "A bank is one of the 32 parts of shared memory that serve a request at the same time; consecutive words of four "
         "bytes are in consecutive banks. Lanes that want different words of one bank are served one after the other.",
         ("swizzle", "stage", "plot.memory", "plot.fragments", "facts")),
    Word(("quad",),
         "A quad is four neighbouring lanes of a warp, the first a multiple of four. In the sum of a tensor instruction the "
         "four lanes of a quad have the same rows, and each of them two neighbours of every eight columns.",
         ("shuffle", "replicate", "collect", "plot.fragments")),
    Word(("handoff",),
         "A handoff brings a kernel values of other blocks within one launch: each value is stored with a flag in one word of "
         "64 bits, and the block that needs it polls that word until the flag is set. `join(…, 'handoff')` and `collect(…, "
         "'handoff')` use it.",
         ("join", "collect")),
    # ---- pipelines ----
    Word(("stage", "pipeline stage", "stage of a pipeline"),
         "A stage of a pipeline is one of the iterations that are under way at a time: with n stages, copies run n - 1 "
         "iterations ahead of the computation that reads them. Each buffer then has n slots, unless `pipeline` is told "
         "another number.",
         ("stage", "pipeline", "specialise", "pipeline_conditions")),
    Word(("slot",),
         "A slot is the part of a pipeline's buffer that holds one tile. With S slots tile k is in slot k % S, where it "
         "overwrites tile k - S.",
         ("pipeline", "specialise", "pipeline_conditions", "plot.legality")),
    Word(("release distance",),
         "The release distance R of a pipeline says whose slot a copy overwrites: the copy that is issued in iteration k "
         "overwrites the slot of tile k - R. With R = 1 that is the tile which the iteration before has read.",
         ("pipeline_conditions", "plot.legality", "pipeline", "overlap")),
    Word(("in flight",),
         "In flight is what has been issued and may still be pending at a wait: groups of copies, or steps whose products a "
         "warpgroup has not finished.",
         ("pipeline", "overlap", "pipeline_conditions", "plot.legality")),
    Word(("wavefront",),
         "A wavefront is the set of iterations of a nest that can run at the same time because all that they depend on has "
         "run: a diagonal, of which `skew` and `interchange` make a loop. In NVIDIA's profilers a wavefront is one pass of a "
         "request through the memory's hardware; the figures here count passes over the banks.",
         ("skew", "interchange", "plot.domain", "plot.memory")),
    # ---- cost ----
    Word(("roofline", "roofline model"),
         "The roofline is a bound on the time of a computation: it takes at least the time of its bytes at the memory "
         "bandwidth, and at least that of its operations at the peak rate.",
         ("plot.roofline", "facts", "plot.price")),
    Word(("floor",),
         "The floor is the least time of a program on a GPU by the roofline: the longer of the times of its operations and of "
         "its compulsory bytes, without the launch. Compulsory bytes, the floor of traffic, are each input element read once "
         "and each result written once.",
         ("facts", "plot.roofline", "run")),
    Word(("price",),
         "The price of a plan is an estimate of its time on a GPU, from counts, by one rule for all plans, without a run. A "
         "kernel is priced at its launches and the longest of several times, as those of memory, of issue, and of tensor "
         "instructions.",
         ("plot.price", "auto", "search")),
    Word(("variant",),
         "A variant is a schedule that decides something differently from `auto`: another tile, one stage more, another way "
         "to combine parts. Variants are what a measured search times.",
         ("search", "auto")),
    Word(("trial",),
         "A trial is a variant in a measured search: its steps, its price, and its measured time or the reason why it does "
         "not count.",
         ("search", "auto")),
    Word(("stitching", "stitch"),
         "Stitching fuses the statements of a program into few kernels, by a scheme for each value between them: it stays in "
         "a register, is combined by shuffles, lies in shared or in global memory, or is computed again.",
         ("stitch", "stitching", "edges", "join")),
)  # fmt: skip
"""The tool's own words; a spelling stands in one row, here or in :mod:`~explorer.teach.field`."""
