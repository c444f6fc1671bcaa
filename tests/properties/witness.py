"""Is the witness of a refusal real?  Each finding is held against the enumerated instances of the refused plan."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

from explorer.ir.finding import Finding, Instance
from explorer.ir.plan import Plan
from explorer.ir.tree import MOST_CLUSTER

from .values import program_order, unordered_writes, wrong_reads
from .walk import (
    Execution,
    TooLarge,
    cell,
    copy_chain,
    copy_read,
    element,
    executions,
    holds_element,
    is_inside,
    read_through,
    target_space,
)
from .walk import Instance as Name

ENUMERATION = "too large to enumerate"
UNDECIDED = "undecided by its own words"


def doubt(plan: Plan, finding: Finding) -> str:
    """Why the witness does not hold, or nothing.

    Parameters
    ----------
    plan : Plan
        The plan that the finding speaks of.
    finding : Finding

    Returns
    -------
    str
        Empty when the enumeration confirms the finding; :data:`ENUMERATION` and :data:`UNDECIDED` where it cannot say.
    """
    if "could not be decided" in finding.what:
        return UNDECIDED
    try:
        runs = executions(plan)
    except TooLarge:
        return ENUMERATION
    questions = {"cover": _cover, "order": _order, "obligation": _obligation, "flow": _flow, "race": _race}
    return questions[finding.question](plan, finding, runs)


def _name(instance: Instance) -> Name:
    return instance.statement, tuple(instance.point)


def _cover(plan: Plan, finding: Finding, runs: list[Execution]) -> str:
    if finding.source is None:
        return "there is no instance"
    name = _name(finding.source)
    mine = [r for r in runs if r.instance == name]
    if len({(r.launch, tuple(sorted(r.values.items())), r.leaf.id if r.leaf else "") for r in mine}) != 1:
        return ""
    dims = dict(zip(plan.statement_of[name[0]].dims, name[1], strict=True))
    for leaf, above, _ in plan.leaves:
        if leaf.statement == name[0]:
            place = {loop: int(e.evaluate(dims)) for loop, e in leaf.when}
            named = all(x.start <= place[x.id] < x.start + x.extent for x in above)
            found = [r.values for r in mine if r.leaf is leaf]
            if bool(found) != named or any(values != place for values in found):
                return ""
    return f"{finding.source} runs once, where its leaf says"


# -- order -------------------------------------------------------------------------------------------------------


def _order(plan: Plan, finding: Finding, runs: list[Execution]) -> str:
    if finding.source is None or finding.sink is None:
        return "" if _cannot_share(plan, finding.nodes) else "there is no pair"
    source, sink = _name(finding.source), _name(finding.sink)
    before, after = [r for r in runs if r.instance == source], [r for r in runs if r.instance == sink]
    if not before or not after:
        return f"{source if not before else sink} never runs"
    touched = [_touched(plan, group, finding.array) for group in (before, after)]
    if not any((a[1] or b[1]) and _one_element(a[0], b[0]) for a in touched[0] for b in touched[1]):
        return f"{finding.source} and {finding.sink} do not touch one element of {finding.array}, one writing"
    if not _first_in_program(plan, source, sink, runs):
        return f"{finding.sink} does not follow {finding.source} in the program"
    local = _has_own(plan, before, finding.array) and _has_own(plan, after, finding.array)
    pairs = [(a, b) for a, b in product(before, after) if not local or a.launch != b.launch or a.block == b.block]
    if pairs and all(a.ordered_before(b) for a, b in pairs):
        return f"{finding.source} still runs before {finding.sink}"
    return ""


def _cannot_share(plan: Plan, nodes: tuple[str, ...]) -> bool:
    """Whether a kernel named among the nodes cannot be a phase of its launch, whatever it uses."""
    for kernel in plan.kernels:
        group = next(g for g in plan.launched if kernel in g)
        hosted = [x for k in group for x in plan.loops.values() if x.role == "launch" and plan.kernel_of(x.id) is k]
        before = group[group.index(kernel) - 1]
        spread = [a for a in range(3) if plan.extents[kernel.id][a] > 1 and plan.extents[before.id][a] == 1]
        cluster = [leaf for leaf, _, k in plan.leaves if k is kernel and "cluster" in dict(leaf.collect).values()]
        by_one = kernel.by_one and kernel is not group[0]
        if kernel.join == "handoff" and kernel.id in nodes:  # what no word carries is refused, whoever runs first
            return True
        if kernel.join == "cluster" and kernel.id in nodes and (len(group) > 2 or prod(plan.clusters[kernel.id]) > MOST_CLUSTER):
            return True
        combined = [leaf for leaf, _, k in plan.leaves if k in group and "cluster" in dict(leaf.collect).values()]
        if kernel.join == "cluster" and combined and {leaf.id for leaf in combined} & set(nodes):
            return True
        if kernel.id in nodes and len(group) > 1 and (hosted or (by_one and (spread or cluster))):
            return True
    return False


def _touched(plan: Plan, group: list[Execution], array: str) -> list[tuple[tuple, bool]]:
    """Elements of the array that an instance touches, and whether it writes them."""
    out = []
    for run in group[:1]:
        statement = plan.statement_of[run.instance[0]]
        for slot, access in enumerate(statement.accesses):
            if access.array == array:
                out.append((element(statement, slot, run.instance[1]), slot == len(statement.reads)))
            if (copy := copy_read(plan, run, slot)) and copy[0] == array:
                out.append((copy[1], False))
    return out


def _one_element(a: tuple, b: tuple) -> bool:
    return len(a) == len(b) and all(x is None or y is None or x == y for x, y in zip(a, b, strict=True))


def _first_in_program(plan: Plan, source: Name, sink: Name, runs: list[Execution]) -> bool:
    """Whether the program has source before sink; a copy stands where any of its readers stands."""
    place = {name: i for i, name in enumerate(program_order(plan.program))}
    copies = {c.name for c in plan.copies}
    served: dict[Name, set[Name]] = {}
    for run in runs:
        for slot, _ in run.leaf.views if run.leaf else ():
            if copy := copy_read(plan, run, slot):
                served.setdefault(copy, set()).add(run.instance)
    if source[0] in copies and sink in served.get(source, set()):
        return True

    def stands(name: Name, seen: frozenset[Name] = frozenset()) -> set[int]:
        if name in place:
            return {place[name]}
        return {p for user in served.get(name, set()) - seen if user != name for p in stands(user, seen | {name})}

    early, late = stands(source), stands(sink)
    return bool(early and late) and min(early) < max(late)


def _has_own(plan: Plan, group: list[Execution], array: str) -> bool:
    """Whether every access of the array goes to storage of the block or thread that runs it."""
    run = group[0]
    assert run.leaf is not None
    statement = plan.statement_of[run.instance[0]]
    slots = [s for s, a in enumerate(statement.accesses) if a.array == array]
    views = [run.leaf.view(s) for s in slots]
    return bool(views) and all(v is not None and plan.buffer_of[v.buffer].space != "global" for v in views)


# -- obligations -------------------------------------------------------------------------------------------------


def _obligation(plan: Plan, finding: Finding, runs: list[Execution]) -> str:
    """Two updates of one element at one time that differ in the loop; or, where these are combined, of two elements."""
    if finding.kind == "kernel":  # of extents, not of instances: the text asserts them again
        return ""
    name, loop = finding.nodes[:2]
    block = plan.loops[loop].is_block
    groups: dict[tuple, set[int]] = {}
    combined: dict[tuple, set[tuple]] = {}
    for run in runs:
        if run.leaf is not None and run.leaf.id == name:
            together = {x for x, how in run.leaf.collect if how in ("shuffle", "shared", "cluster")}
            statement = plan.statement_of[run.instance[0]]
            at = element(statement, len(statement.reads), run.instance[1])
            groups.setdefault((run.launch, () if block else run.time, at), set()).add(run.values[loop])
            if loop in together:
                rest = tuple(sorted((x, v) for x, v in run.values.items() if x not in together))
                combined.setdefault((run.launch, rest), set()).add(at)
    if any(len(elements) > 1 for elements in combined.values()):
        return ""
    if not combined and any(len(values) > 1 for values in groups.values()):
        return ""
    return f"no two updates of {finding.array} that differ in {loop} meet at one time"


# -- flow --------------------------------------------------------------------------------------------------------


def _flow(plan: Plan, finding: Finding, runs: list[Execution]) -> str:
    if finding.kind == "multicast":
        return _shared(plan, finding, runs)
    if finding.sink is None:
        if any(_keeps(plan, run, finding) for run in runs) or _meets_its_producer(plan, finding.nodes):
            return ""
        return "no result stays in a buffer"
    name = _name(finding.sink)
    through = read_through(plan, runs)
    if finding.source is None and name[0] in {c.name for c in plan.copies} and not _wanted(plan, name, runs, through):
        return ""
    if any(run.instance == name and _misplaced(plan, run) for run in runs):
        return ""
    if finding.kind == "output" and finding.source and (_name(finding.source), name) in unordered_writes(plan, runs):
        return ""  # undefined (PTX ISA, cp.async.commit_group), whoever reads the cell
    if finding.kind in ("output", "anti") and finding.source and _not_released(plan, finding, runs):
        return ""  # the producer may run ahead, which an order of the whole block does not show
    if finding.kind == "anti" and finding.source and _name(finding.source)[0] in {c.name for c in plan.copies} and not _wanted(
            plan, _name(finding.source), runs, through):
        return ""  # a race with a copy whose value nobody uses, beyond the last tile: it is one all the same
    wrong = wrong_reads(plan, runs) | wrong_reads(plan, runs, backwards=True)
    readers = [r for r in runs if r.instance in wrong]
    if name in wrong or _wanted(plan, name, readers, through):  # what a copy got is seen by its readers
        return ""
    return f"{finding.sink} reads what the program gives it"


def _not_released(plan: Plan, finding: Finding, runs: list[Execution]) -> bool:
    """Whether a producer writes a slot again though no release behind its last copy, or use, is surely waited for."""
    assert finding.source is not None
    assert finding.sink is not None
    first, again = ([r for r in runs if r.instance == _name(x) and r.leaf is not None] for x in (finding.source, finding.sink))
    for one, other in product(first, again):
        used, written = (len(plan.statement_of[x.instance[0]].reads) for x in (one, other))
        cells = {cell(plan, one, slot)[:3] for slot in range(used + 1)}
        if (one.block, one.launch) != (other.block, other.launch) or cell(plan, other, written)[:3] not in cells:
            continue
        here = [r for r in runs if r.sync and (r.launch, r.block) == (one.launch, one.block)]
        acquires = {r.time: r.sync.pending for r in here if r.sync and r.sync.kind == "acquire" and r.time < other.time}
        releases = {r.time for r in here if r.sync and r.sync.kind == "release"}
        if acquires:
            last = max(acquires)
            waited = sum(time < last for time in releases) - acquires[last]
            if sum(time < one.time for time in releases) >= waited:
                return True
    return False


def _keeps(plan: Plan, run: Execution, finding: Finding) -> bool:
    """A result that would stay in a buffer, or an asynchronous copy that is none."""
    if run.leaf is None or run.leaf.id not in finding.nodes:
        return False
    statement = plan.statement_of[run.instance[0]]
    role = plan.array_of[statement.target.array].role
    space = target_space(plan, run.leaf, statement)
    viewed = run.leaf.view(len(statement.reads)) is not None
    if viewed and role in ("out", "inout"):
        return True
    if run.leaf.mechanism == "bulk":
        return True  # what box it is, or which wait it has: no matter of instances
    source = run.leaf.view(0)
    come = plan.buffer_of[source.buffer].space if source else "global"
    size = plan.array_of[statement.target.array].dtype.bytes
    kernel = plan.kernel_of(run.leaf.id)
    handed = kernel is not None and kernel.join in ("handoff", "cluster")  # from block to block, not through global memory
    return run.leaf.mechanism == "async" and ((come, space) != ("global", "shared") or size < 4 or handed)


def _shared(plan: Plan, finding: Finding, runs: list[Execution]) -> str:
    """Two blocks of a cluster that copy other elements at one time; or, without a pair, a rule that a shared copy breaks."""
    leaf, above, kernel = next((leaf, above, k) for leaf, above, k in plan.leaves if leaf.id in finding.nodes)
    assert leaf.multicast is not None
    axis, count = ("block.x", "block.y", "block.z").index(leaf.multicast[0]), leaf.multicast[1]
    if finding.source is None or finding.sink is None:
        grid = plan.extents[kernel.id][:3]
        partly = any(x.role == leaf.multicast[0] and x.extent < grid[axis] for x in above)
        box = [x.extent for x in above if x.role == "tensor"]
        rows = next((n for n in box if n > 1), 1)
        small = prod(box) * plan.array_of[plan.statement_of[leaf.statement].reads[0].array].dtype.bytes // count % 128
        uneven = rows % count or small or not any(n > 1 for n in box[:-1]) or grid[axis] % count
        broken = uneven or not kernel.has_roles or partly or any(x.trimmed for x in above) or leaf.mechanism != "bulk"
        return "" if broken or prod(plan.clusters[kernel.id]) > 8 else "nothing keeps its blocks from sharing it"
    pair = [next((r for r in runs if r.instance == _name(i)), None) for i in (finding.source, finding.sink)]
    if None in pair:
        return "one of them never runs"
    a, b = (r for r in pair if r is not None)
    statement = plan.statement_of[leaf.statement]
    mates = a.block[axis] // count == b.block[axis] // count and a.block != b.block
    same = element(statement, 0, a.instance[1]) == element(statement, 0, b.instance[1])
    return "" if mates and a.time == b.time and not same else "they copy the same element, or are no neighbours"


def _meets_its_producer(plan: Plan, nodes: tuple[str, ...]) -> bool:
    """Whether a kernel named among the nodes has a producer and something in which its warps cannot be told apart."""
    for kernel in plan.kernels:
        if kernel.id in nodes and kernel.has_roles:
            mine = [leaf for leaf, _, k in plan.leaves if k is kernel]
            x, _, z = plan.extents[kernel.id][3:]
            together = any(how != "atomic" for leaf in mine for _, how in leaf.collect)
            shared = len(next(g for g in plan.launched if kernel in g)) > 1
            if together or shared or z > 1 or x % 32 or any(leaf.mechanism == "async" for leaf in mine):
                return True
    return False


def _misplaced(plan: Plan, run: Execution) -> bool:
    """Whether some access leaves its buffer or the loop in which that lives, or names an element that its copy does not hold."""
    assert run.leaf is not None
    statement = plan.statement_of[run.instance[0]]
    if not is_inside(statement, run.instance[1]):
        return False
    for slot, view in run.leaf.views:
        if (scope := plan.buffer_of[view.buffer].scope) and scope in plan.loops and scope not in run.values:
            return True
        at = cell(plan, run, slot)[2]
        if any(not 0 <= i < n for i, n in zip(at, plan.buffer_of[view.buffer].shape, strict=True)):
            return True
        if name := copy_read(plan, run, slot):
            copy = plan.statement_of[name[0]]
            made = all(c.holds(dict(zip(copy.dims, name[1], strict=True))) for c in copy.domain)
            if not made or not holds_element(plan, name, statement, slot, run.instance[1]):
                return True
    return False


def _wanted(plan: Plan, copy: Name, runs: list[Execution], through: dict[Name, Name]) -> bool:
    """Whether some instance of the program reads through this copy, perhaps by way of further copies."""
    copies = {c.name for c in plan.copies}
    for run in runs:
        for slot, _ in run.leaf.views if run.leaf and run.instance[0] not in copies else ():
            if (name := copy_read(plan, run, slot)) and copy in copy_chain(plan, name, through):
                return True
    return False


# -- races -------------------------------------------------------------------------------------------------------


def _race(plan: Plan, finding: Finding, runs: list[Execution]) -> str:
    """Two threads on one cell, one of them writing: in one iteration of every loop in order, or in two blocks."""
    if finding.source is None or finding.sink is None:
        return "there is no pair"
    first = [r for r in runs if r.instance == _name(finding.source)]
    second = [r for r in runs if r.instance == _name(finding.sink)]
    for a, b in product(first, second):
        if (a.launch, a.block) == (b.launch, b.block) and a.thread != b.thread and _clash(plan, a, b):
            return ""
        if a.launch == b.launch and a.block != b.block and _clash(plan, a, b):
            return ""
    return f"{finding.source} and {finding.sink} meet on no cell in two threads"


def _clash(plan: Plan, a: Execution, b: Execution) -> bool:
    """Whether both touch one cell, at least one of them writing."""
    def cells(run: Execution) -> Iterator[tuple[tuple, bool]]:
        statement = plan.statement_of[run.instance[0]]
        for slot in range(len(statement.accesses)):
            yield cell(plan, run, slot)[:3], slot == len(statement.reads)  # the next iteration's buffer is the same memory

    return any(x == y and (v or w) for (x, v), (y, w) in product(cells(a), cells(b)))
