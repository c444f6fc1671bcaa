"""Which buffers of a loop can be pipelined, and what keeps the others from it.

ALCOP's rules (Huang et al., MLSys 2023, section 3): a buffer is pipelined where an asynchronous copy alone fills it, where its
loop fills and uses it in every iteration, one after the other, and where what synchronises it lies in its scope.  The last one is
a consequence here: a pipeline gets waits for its own groups, and the judge asks whether they suffice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..ir.finding import Verdict, no
from ..ir.plan import Plan
from ..ir.tree import Loop, leaves
from ..poly.sites import Site, sites
from .inline import Inline
from .pipeline import Pipeline, copy_nests

STAGES = 2
"""With which a pipeline is tried: the fewest that overlap."""


@dataclass(frozen=True)
class BufferVerdict:
    """Whether a buffer can be pipelined in a loop.

    Attributes
    ----------
    buffer, space : str
        Its name, and ``"shared"`` or ``"register"``.
    filled_by : str
        The statement that writes it in the loop; "" where none does.
    verdict : Verdict
        With the reason and the move that helps where it cannot be.
    """

    buffer: str
    space: str
    filled_by: str
    verdict: Verdict

    def __str__(self) -> str:
        if self.verdict:
            return f"{self.buffer} ({self.space}, filled by {self.filled_by}): can be pipelined"
        first, *rest = str(self.verdict).split("\n")
        return "\n".join((f"{self.buffer} ({self.space}): {first}", *(f"  {line}" for line in rest)))


class BufferVerdicts(tuple[BufferVerdict, ...]):
    """The verdicts of a loop's buffers, which print as paragraphs."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or "no buffer in shared memory or registers is read in this loop"


def buffer_verdicts(plan: Plan, loop: Loop) -> Iterator[BufferVerdict]:
    """A verdict for each buffer in shared memory or registers that statements below a loop read, in the order of the text."""
    below = {leaf.id for leaf, _ in leaves(loop.body)}
    kernel = plan.kernel_of(loop.id)
    assert kernel is not None, "every loop is of a kernel"
    here = [site for site in sites(plan)[kernel.id] if site.leaf.id in below and site.space != "global"]
    for name in dict.fromkeys(site.storage for site in here if site.reads and not _adds_to(site)):
        own = [site for site in here if site.storage == name]
        writers = list(dict.fromkeys(site.statement.name for site in own if site.writes))
        yield BufferVerdict(name, own[0].space, ", ".join(writers), _verdict(plan, loop, own, writers))


def _adds_to(site: Site) -> bool:
    """Whether a site reads only the element that it updates."""
    return site.slot == len(site.statement.reads)


def _verdict(plan: Plan, loop: Loop, own: list[Site], writers: list[str]) -> Verdict:
    name = own[0].storage
    copies = {c.name for c in plan.copies}
    if not writers:
        return no(f"nothing in {loop.id} fills it", "a pipeline overlaps the filling of one iteration with the use of another",
                  f"pipeline the loop that fills {name}")
    made = [site for site in own if site.writes]
    if any(_adds_to(site) and site.statement.update for site in made):
        return no(f"{writers[0]} adds to it in every iteration", "each iteration needs what the one before has left",
                  "contract it to registers: sums need no pipeline")
    if not set(writers) <= copies:
        computed = next(site for site in made if site.statement.name not in copies)
        return no(f"{computed.statement.name} computes it: {computed.statement.text}",
                  "a pipeline's buffer is filled by copies alone (ALCOP's first rule): they move bytes unchanged",
                  _apart(plan, computed))
    nests = [n for n in copy_nests(plan, loop) if any(leaf.statement == writers[0] for leaf, _ in leaves((n,)))]
    if not nests:
        array = made[0].statement.reads[0].array
        return no(f"{writers[0]} is not made for an iteration of {loop.id}",
                  "a pipeline needs another tile in each iteration, copied in the loop's own body",
                  f"stage('{array}', '{loop.id}')")
    step = Pipeline(loop.id, STAGES, (writers[0],), made[0].space == "shared")
    return step.check(plan)


def _apart(plan: Plan, site: Site) -> str:
    """The move that lets a copy fill what a statement computes from."""
    array = site.statement.target.array
    source = next((r.array for r in site.statement.reads), "")
    if Inline(array).check(plan):
        return f"inline('{array}'), so that its readers compute it" + f", and stage('{source}', …)" * bool(source)
    return f"stage('{source}', …): a copy of what it reads can run ahead" if source else ""
