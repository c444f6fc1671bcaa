"""The kernel IR: what each thread of a kernel does, between the plan and its text.

A small tree of frozen values.  Indices and bounds are quasi-affine expressions over C variables
(:class:`~explorer.ir.expr.Expr`), conditions are :class:`~explorer.kernel.conditions.Condition`, and the arithmetic of a
statement is the statement's own :class:`~explorer.ir.scalar.Scalar`, whose reads are the node's operands.  Every node has the
ids of the plan's nodes that it came from.

:mod:`~explorer.kernel.lower` makes it, the passes of :mod:`explorer.kernel.passes` rewrite it one after the other, and
:mod:`~explorer.kernel.printer` writes it down.  Nothing decides anything after the last pass.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.expr import Expr
from ..ir.instructions import Instruction
from ..ir.tree import Loop
from ..poly.shared_tile import SharedTile
from .conditions import Condition
from .nodes_async import (
    Acquire,
    Arrive,
    Await,
    AwaitTurn,
    Begin,
    BulkCopy,
    BulkStore,
    Commit,
    Copy,
    Drain,
    Mates,
    Mbarriers,
    PassTurn,
    Release,
    TensorMap,
    Wait,
    WaitProducts,
    WaitStores,
)
from .nodes_stamps import CloseLog, OpenLog, Stamp
from .operands import AnyOf, Get, Held, Local, Number, Operand, Ref
from .sites import Site, Store

# -- control ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class For:
    """A loop of the text.

    Attributes
    ----------
    var : str
    start, extent : int
        Its box.
    body : tuple of Node
    role : str
        ``"seq"``, ``"unroll"``, or ``"vector"`` until its lanes are written.
    limits : tuple of Condition
        Conditions on `var` that its bounds keep.
    loop : Loop
        The plan's.
    settled : bool
        A pass has put the conditions inside where they belong.
    """

    var: str
    start: int
    extent: int
    body: tuple[Node, ...]
    role: str
    loop: Loop
    limits: tuple[Condition, ...] = ()
    settled: bool = False
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class If:
    """``if (all conditions) body else otherwise``.

    Arrays that are `packed` hold narrow values in registers: the compiler packs them at the end of the body, where it has just
    computed them, and not where they are used (:mod:`~explorer.kernel.passes.whole_tiles`).
    """

    conditions: tuple[Condition, ...]
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...] = ()
    settled: bool = False
    ids: tuple[str, ...] = ()
    edge: AnyOf = ()
    packed: tuple[Store, ...] = ()


# -- statements -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Declare:
    """A register array of the plan, or a local of a pass."""

    what: Store | Local
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Let:
    """``const int name = value``: a part of indices that occurs several times."""

    name: str
    value: Expr
    site: Site
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Do:
    """An instance of a statement: ``target = value`` or ``target (op)= value``.

    Attributes
    ----------
    site : Site
    target : Operand
    operands : tuple of Operand
        What the statement's reads are.
    inside : tuple of Condition
        Where the value is the statement's; elsewhere it is its fill.
    declares : bool
        Whether the target, a scalar, is declared here.
    atomic : bool
        Whether other threads update the element at the same time.
    """

    site: Site
    target: Operand
    operands: tuple[Operand, ...]
    inside: tuple[Condition, ...] = ()
    declares: bool = False
    atomic: bool = False
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Load:
    """A local becomes what a load gives, or another local unpacked; `declares` it where that is ``"const"`` or ``"mutable"``."""

    to: Held
    value: Get | Held
    site: Site
    declares: str = ""
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Put:
    """All lanes of a vector are stored at once: those of a local, what a load gives, or one number."""

    to: Ref
    value: Held | Get | Number
    site: Site
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mask:
    """Lanes of a local that do not lie between two places of the array become `outside`; asked where `edge` says."""

    local: Held
    first: Ref
    begin: Expr
    end: Expr
    outside: Number
    edge: AnyOf | None
    site: Site
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Multiply:
    """A tensor instruction; its operands are elements of fragments or shared arrays, over its `loops`: rows, columns, depth.

    `tiles` say how those factors lie that are in shared memory, the left one first.
    """

    site: Site
    instruction: Instruction
    target: Ref
    operands: tuple[Ref, ...]
    loops: tuple[Loop, Loop, Loop]
    tiles: tuple[SharedTile, ...] = ()
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class MoveMatrix:
    """Fragments of a warp from shared memory, or to it (`stores`): what its `loop` over the registers would copy one by one.

    It moves `count` matrices, `transposed` or not, from the `first` register on; each lane names the first element of a `row`.
    """

    site: Site
    target: Ref
    source: Ref
    first: Ref
    row: Ref
    count: int
    transposed: bool
    stores: bool
    loop: Loop
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Barrier:
    """All threads of the block meet; their memory is each other's.

    With `proxy` so are their writes to shared memory to instructions that read it by themselves, as a warpgroup's do (PTX ISA,
    "Async proxy"): a fence of each thread stands before.  With `cluster` the threads of all blocks of the cluster meet, where the
    kernel begins (``"begin"``) or ends (``"end"``).
    """

    comment: str = ""
    proxy: bool = False
    cluster: str = ""
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Way:
    """How values are combined: the device function, the box of threads, and the shared array that it works in.

    Attributes
    ----------
    function : str
        ``""`` where no threads combine.
    box : tuple of int
    axes : str
        Letters of the box's axes that are combined.
    scratch : str
    blocks : int
        Of a cluster, combined after the threads; 1 is none.
    slots : str
        The shared array in which they see each other's values.
    wanted : tuple of Condition
        Which threads of a block take part in that.
    """

    function: str = ""
    box: tuple[int, int, int] = (1, 1, 1)
    axes: str = ""
    scratch: str = ""
    blocks: int = 1
    slots: str = ""
    wanted: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Collect:
    """An update whose values threads (and blocks of a cluster) combine first; every thread of the block comes by.

    Attributes
    ----------
    site : Site
    target : Ref
    operands : tuple of Operand
    way : Way
    result : str
    first_waits : bool
        The scratch array has been used: a barrier stands before.
    guards : tuple of Condition
        Which threads have a value; the others give the identity.
    atomic : bool
        Whether other blocks update the target at the same time.
    of_cluster : bool
        Whether blocks of a cluster combine too: then all of them come by, and the conditions stay inside.
    """

    site: Site
    target: Ref
    operands: tuple[Operand, ...]
    way: Way
    result: str
    first_waits: bool
    guards: tuple[Condition, ...] = ()
    atomic: bool = False
    of_cluster: bool = False
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Contribute:
    """A thread's own value for a collective of several lanes, or the identity where `guards` do not hold."""

    to: Held
    site: Site
    operands: tuple[Operand, ...]
    guards: tuple[Condition, ...] = ()
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Combine:
    """The values of a local array are combined over threads, all at once."""

    local: Local
    count: int
    way: Way
    update: str
    first_waits: bool
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Apply:
    """The update of the target by a value that threads have combined."""

    site: Site
    target: Ref
    value: Held
    way: Way
    guards: tuple[Condition, ...] = ()
    atomic: bool = False
    ids: tuple[str, ...] = ()


Node = (For | If | Declare | Let | Do | Load | Put | Mask | Copy | BulkCopy | BulkStore | Multiply | MoveMatrix | Begin | Commit
        | Arrive | Acquire | Drain | Release | AwaitTurn | PassTurn | Wait | WaitProducts | WaitStores | Await | Barrier | Collect
        | Contribute | Combine | Apply | Stamp | OpenLog | CloseLog)

__all__ = ["Acquire", "AnyOf", "Apply", "Arrive", "Await", "AwaitTurn", "Barrier", "Begin", "BulkCopy", "BulkStore",
           "CloseLog", "Collect", "Combine", "Commit", "Contribute", "Copy", "Declare", "Do", "Drain", "For", "Get", "Held", "If",
           "Let", "Load", "Local", "Mask", "Mates", "Mbarriers", "Multiply", "Node", "Number", "OpenLog", "Operand",
           "PassTurn", "Put", "Ref", "Release", "Stamp", "TensorMap", "Wait", "WaitProducts", "WaitStores", "Way"]
