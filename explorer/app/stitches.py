"""The statement graph with every scheme tried on every edge."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import TransformError
from ..gpu.spec import Gpu
from ..poly.producer_consumer import value_edges
from ..schedule import Schedule
from ..strategies.stitch import Edge, Stitching, each_edge, stitching
from ..strategies.stitching.graph import SCHEMES
from .tasks import Tell

WORDS = {
    "register": "the value stays in the thread that made it",
    "shuffle": "lanes of a warp exchange it, warps meet in shared memory",
    "shared": "it lies in shared memory",
    "global": "it lies in global memory, behind the end of a launch; of a reduction, parts that several blocks make",
    "grid": "it lies in global memory, behind a barrier of all blocks of one launch",
    "recompute": "it is computed again wherever it is used",
    "cut": "the consumer is a kernel of its own",
}
"""Each scheme in one sentence."""


@dataclass(frozen=True)
class Tried:
    """What is known of a program's edges.

    Attributes
    ----------
    start : Schedule
        The program as written.
    model : Stitching
        What the model chooses for all edges.
    edges : tuple of Edge
        With every scheme tried; so far.
    number : int
        Of all edges.
    """

    start: Schedule
    model: Stitching
    edges: tuple[Edge, ...]
    number: int


def tried(start: Schedule, gpu: Gpu, tell: Tell) -> Tried:
    """Try every scheme on every edge, for a GPU; what is known so far is told.

    Raises
    ------
    TransformError
        If the program has no edges.
    """
    if not value_edges(start.source):
        raise TransformError(f"{start.source.name} has nothing to stitch: no value is made from another one",
                             hint="a program with several results, such as softmax, has edges")
    tell("the model's choice")
    model = stitching(start, gpu=gpu)
    found = Tried(start, model, (), len(model.edges))
    todo = each_edge(start, gpu)
    for number, edge in enumerate(model.edges):
        tell(f"{edge.id.replace('->', ' → ')}: trying {len(SCHEMES)} schemes", number / found.number, found)
        found = Tried(start, model, (*found.edges, next(todo)), found.number)
    return found
