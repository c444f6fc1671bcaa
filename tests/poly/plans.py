"""Plans written out by hand for tests of the analyses: staged and pipelined matrix products, row softmax, stencils."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from explorer.ir.dtype import DTYPES
from explorer.ir.expr import Expr, const, quotient, remainder, var
from explorer.ir.plan import Buffer, Plan
from explorer.ir.program import Access, Array, Constraint, Program, Statement
from explorer.ir.scalar import Call, Literal, Read, Scalar
from explorer.ir.tree import Kernel, Leaf, Loop, Node, Sync, View

F32 = DTYPES["f32"]
ZERO = Literal(0.0, F32)


def box(extents: Mapping[str, int]) -> tuple[Constraint, ...]:
    return tuple(c for d, n in extents.items() for c in (Constraint(var(d)), Constraint(const(n - 1) - var(d))))


def array(name: str, *shape: int, role: str = "temporary") -> Array:
    return Array(name, F32, shape, role, len(shape))


def read(name: str, *index: Expr | int) -> Access:
    return Access(name, tuple(const(e) if isinstance(e, int) else e for e in index))


def statement(name: str, extents: Mapping[str, int], target: Access, value: Scalar, reads: tuple[Access, ...] = (),
              update: str | None = None, where: tuple[Expr, ...] = (), inside: tuple[Expr, ...] = (),
              origin: str = "program") -> Statement:
    kind = "update" if update else "write"
    target = Access(target.array, target.index, kind)
    return Statement(name, tuple(extents), (*box(extents), *map(Constraint, where)), target, value, reads, update,
                     inside=tuple(map(Constraint, inside)), origin=origin)


def nest(loops: list[tuple[str, int, str]], *body: Node) -> Node:
    """Loops (id, extent, role), outermost first, around a body."""
    nodes: tuple[Node, ...] = body
    for name, extent, role in reversed(loops):
        nodes = (Loop(name, extent, nodes, role),)
    return nodes[0]


def own(s: Statement) -> Leaf:
    """The leaf of a statement under loops named like its dimensions."""
    same = tuple((d, var(d)) for d in s.dims)
    return Leaf(s.name, s.name, same, tuple(sorted(same)))


def matmul_program(m: int, n: int, k: int) -> Program:
    i, j, kk = var("i"), var("j"), var("k")
    product = Call("mul", (Read(0), Read(1)))
    s0 = statement("S0", {"i": m, "j": n}, read("acc", i, j), ZERO)
    s1 = statement("S1", {"i": m, "j": n, "k": k}, read("acc", i, j), product, (read("A", i, kk), read("B", kk, j)), "sum")
    s2 = statement("S2", {"i": m, "j": n}, read("C", i, j), Read(0), (read("acc", i, j),))
    arrays = (array("A", m, k, role="in"), array("B", k, n, role="in"), array("C", m, n, role="out"), array("acc", m, n))
    body = nest([("i", m, "seq"), ("j", n, "seq")], own(s0), nest([("k", k, "seq")], own(s1)), own(s2))
    return Program("matmul", arrays, (s0, s1, s2), (body,))


def matmul(m: int = 8, n: int = 8, k: int = 12, tile: tuple[int, int, int] = (4, 4, 4), threads: tuple[int, int] = (2, 2),
           ahead: int = 0, buffers: int = 1, mechanism: str = "plain", pending: int | None = None,
           wait_first: bool = True) -> Plan:
    """Tiles of A and B staged in shared memory, `ahead` tiles early into `buffers` buffers.

    With `mechanism` ``"async"`` every tile is a committed group and a wait leaves `pending` groups open (`ahead - 1`
    unless given) before the tile is used: at the top of the loop, or after the issue when not `wait_first`.
    """
    program = matmul_program(m, n, k)
    (tm, tn, tk), (ny, nx) = tile, threads
    gm, gn, gk = -(-m // tm), -(-n // tn), -(-k // tk)
    um, un = tm // ny, tn // nx
    v = var

    def tile_leaf(name: str, suffix: str, extra: dict[str, Expr] | None = None) -> tuple[Leaf, list[tuple[str, int, str]]]:
        """A leaf of the product, thread (ty, tx), element (ui, uj) of its patch, cyclic over threads."""
        ty, tx, ui, uj = (f"{x}.{suffix}" for x in ("ty", "tx", "ui", "uj"))
        at = {"i": v("bi") * tm + v(ui) * ny + v(ty), "j": v("bj") * tn + v(uj) * nx + v(tx)}
        i, j = v("i"), v("j")
        when = {"bi": quotient(i, tm), "bj": quotient(j, tn), ty: remainder(i, ny) if tm % ny == 0 else i,
                tx: remainder(j, nx), ui: quotient(remainder(i, tm), ny), uj: quotient(remainder(j, tn), nx)}
        if extra is not None:
            at["k"] = v("ko") * tk + v("ki")
            when |= {"ko": quotient(v("k"), tk), "ki": remainder(v("k"), tk)}
        views = [(program.statement_of[name].accesses.index(a), View("acc", (v(ui), v(uj))))
                 for a in program.statement_of[name].accesses if a.array == "acc"]
        leaf = Leaf(name, name, tuple(at.items()), tuple(sorted(when.items())), tuple(views))
        return leaf, [(ty, ny, "thread.y"), (tx, nx, "thread.x"), (ui, um, "seq"), (uj, un, "seq")]

    def copy(array_name: str, rows: int, cols: int, source: tuple[Expr, Expr], limit: tuple[int, int]) -> Statement:
        extents = {"bi": gm, "bj": gn, "ko": gk, "y": rows, "x": cols}
        name = f"{array_name}s"
        edges = (const(limit[0] - 1) - source[0], const(limit[1] - 1) - source[1])
        dims = tuple(v(d) for d in extents)
        return statement(name, extents, read(name, *dims), Read(0), (read(array_name, *source),), inside=edges, origin="copy")

    copy_a = copy("A", tm, tk, (v("bi") * tm + v("y"), v("ko") * tk + v("x")), (m, k))
    copy_b = copy("B", tk, tn, (v("ko") * tk + v("y"), v("bj") * tn + v("x")), (k, n))

    def copy_nest(s: Statement, rows: int, cols: int, suffix: str, loop: str, shift: int) -> Node:
        """The copy spread over all threads: f = (r * ny + ty) * nx + tx is its row-major element."""
        r, ty, tx = f"r.{suffix}", f"ty.{suffix}", f"tx.{suffix}"
        count = -(-rows * cols // (ny * nx))
        f = v(r) * (ny * nx) + v(ty) * nx + v(tx)
        scope = {r: (0, count - 1), ty: (0, ny - 1), tx: (0, nx - 1)}
        y, x = quotient(f, cols, scope), remainder(f, cols, scope)
        if count * ny * nx != rows * cols:
            raise ValueError("the tile must be a multiple of the threads")
        at = {"bi": v("bi"), "bj": v("bj"), "ko": v(loop) + shift, "y": y, "x": x}
        linear = v("y") * cols + v("x")
        when = {"bi": v("bi"), "bj": v("bj"), loop: v("ko") - shift, r: quotient(linear, ny * nx),
                ty: remainder(quotient(linear, nx), ny), tx: remainder(linear, nx)}
        cell = (*((remainder(v(loop) + shift, buffers),) if buffers > 1 else ()), y, x)
        view = View(s.name, cell, (v("bi"), v("bj"), v(loop) + shift, y, x))
        leaf = Leaf(f"{s.name}.{suffix}", s.name, tuple(at.items()), tuple(sorted(when.items())), ((1, view),), mechanism)
        return nest([(r, count, "seq"), (ty, ny, "thread.y"), (tx, nx, "thread.x")], leaf)

    def copies(suffix: str, loop: str, shift: int) -> tuple[Node, ...]:
        both = (copy_nest(copy_a, tm, tk, f"a{suffix}", loop, shift), copy_nest(copy_b, tk, tn, f"b{suffix}", loop, shift))
        return (*both, Sync(f"commit{suffix}", "commit")) if mechanism == "async" else both

    s0, loops0 = tile_leaf("S0", "0")
    s1, loops1 = tile_leaf("S1", "1", {})
    s2, loops2 = tile_leaf("S2", "2")
    stage = (remainder(v("ko"), buffers),) if buffers > 1 else ()
    y, x, ki = v("ui.1") * ny + v("ty.1"), v("uj.1") * nx + v("tx.1"), v("ki")
    staged = ((0, View("As", (*stage, y, ki), (v("bi"), v("bj"), v("ko"), y, ki))),
              (1, View("Bs", (*stage, ki, x), (v("bi"), v("bj"), v("ko"), ki, x))))
    s1 = replace(s1, views=(*staged, *s1.views))
    use = nest([*loops1[:2], ("ki", tk, "seq"), *loops1[2:]], s1)
    wait: tuple[Node, ...] = ()
    if mechanism == "async":
        default = ahead - 1 if wait_first and ahead else ahead
        wait = (Sync("wait", "wait", default if pending is None else pending),)
    steady = (*wait, *copies("", "ko", ahead), use) if wait_first and ahead else (*copies("", "ko", ahead), *wait, use)
    before = (Loop("p", ahead, copies(".pro", "p", 0)),) if ahead else ()
    tile_body = (nest(loops0, s0), *before, Loop("ko", gk, steady), nest(loops2, s2))
    tree = nest([("bi", gm, "block.y"), ("bj", gn, "block.x")], *tile_body)
    stages = (buffers,) if buffers > 1 else ()
    return Plan(
        program, (Kernel("matmul", (tree,)),), (copy_a, copy_b),
        (array("As", gm, gn, gk, tm, tk), array("Bs", gm, gn, gk, tk, tn)),
        (Buffer("acc", F32, (um, un), "register"), Buffer("As", F32, (*stages, tm, tk), "shared"),
         Buffer("Bs", F32, (*stages, tk, tn), "shared")),
    )


def softmax_program(m: int, k: int, again: bool = True) -> Program:
    """Row sums of exponentials, and (if `again`) the exponentials divided by them."""
    i, kk = var("i"), var("k")
    e, total = read("e", i, kk), read("s", i)
    s0 = statement("S0", {"i": m, "k": k}, e, Call("exp", (Read(0),)), (read("x", i, kk),))
    s1 = statement("S1", {"i": m}, total, ZERO)
    s2 = statement("S2", {"i": m, "k": k}, total, Read(0), (e,), "sum")
    if again:
        s3 = statement("S3", {"i": m, "k": k}, read("y", i, kk), Call("div", (Read(0), Read(1))), (e, total))
    else:
        s3 = statement("S3", {"i": m}, read("y", i), Read(0), (total,))
    inner = [nest([("k", k, "seq")], own(s)) if "k" in s.dims else own(s) for s in (s0, s1, s2, s3)]
    shape = (m, k) if again else (m,)
    arrays = (array("x", m, k, role="in"), array("y", *shape, role="out"), array("e", m, k), array("s", m))
    return Program("softmax", arrays, (s0, s1, s2, s3), (nest([("i", m, "seq")], *inner),))


def softmax(m: int = 2, k: int = 8, threads: int = 1, e: str = "", fused: bool = False, again: bool = True,
            collect: str = "shuffle", turned: bool = False, s: str = "register", rows: str = "block.x") -> Plan:
    """Rows over `rows`, columns ``k = threads * r + t`` over threads.

    `e` is the storage of the exponentials: ``""`` (global), ``"register"`` or ``"shared"`` with one cell per column,
    ``"register:"`` or ``"shared:"`` with a single one.  `fused` puts the exponential and its sum into one loop;
    `turned` gives the last statement's columns to the threads blockwise, ``k = (k / threads) * t + r``.
    """
    program = softmax_program(m, k, again)
    rounds = -(-k // threads)

    def place(name: str, suffix: str, turn: bool = False) -> Leaf:
        r, t = f"r.{suffix}", f"t.{suffix}"
        if "k" not in program.statement_of[name].dims:
            return Leaf(name, name, (("i", var("i")),), (("i", var("i")),), views(name, const(0), const(0)))
        column = var(t) * rounds + var(r) if turn else var(r) * threads + var(t)
        when = {"i": var("i"), r: quotient(var("k"), threads), t: remainder(var("k"), threads)}
        when = {"i": var("i"), r: remainder(var("k"), rounds), t: quotient(var("k"), rounds)} if turn else when
        how = ((t, collect),) if name == "S2" and collect and threads > 1 else ()
        at = (("i", var("i")), ("k", column))
        return Leaf(name, name, at, tuple(sorted(when.items())), views(name, var(r), column), collect=how)

    def views(name: str, own_round: Expr, column: Expr) -> tuple[tuple[int, View], ...]:
        out = []
        for slot, use in enumerate(program.statement_of[name].accesses):
            if use.array == "e" and e:
                cell = () if e.endswith(":") else (own_round,) if e == "register" else (column,)
                out.append((slot, View("e", cell)))
            if use.array == "s" and s:
                out.append((slot, View("s", ())))
        return tuple(out)

    def columns(suffix: str, *leaves: Leaf) -> Node:
        return nest([(f"r.{suffix}", rounds, "seq"), (f"t.{suffix}", threads, "thread.x" if threads > 1 else "seq")], *leaves)

    last = columns("c", place("S3", "c", turned)) if again else place("S3", "c")
    if fused:
        body = (place("S1", ""), columns("a", place("S0", "a"), place("S2", "a")), last)
    else:
        body = (columns("a", place("S0", "a")), place("S1", ""), columns("b", place("S2", "b")), last)
    space = e.rstrip(":")
    shape = () if e.endswith(":") else (rounds,) if space == "register" else (k,)
    buffers = ((Buffer("e", F32, shape, space),) if e else ()) + ((Buffer("s", F32, (), s),) if s else ())
    return Plan(program, (Kernel("softmax", (nest([("i", m, rows)], *body),)),), buffers=buffers)


def wavefront(steps: int = 3, n: int = 6) -> Plan:
    """A Gauss-Seidel stencil in place, skewed: time step t in thread t, point i at wave w = 2 t + i."""
    t, i = var("t"), var("i")
    third = Call("add", (Call("add", (Read(0), Read(1))), Read(2)))
    reads = (read("a", i), read("a", i + 1), read("a", i + 2))
    s0 = statement("S0", {"t": steps, "i": n}, read("a", i + 1), third, reads)
    program = Program("seidel", (array("a", n + 2, role="inout"),), (s0,),
                      (nest([("t", steps, "seq"), ("i", n, "seq")], own(s0)),))
    leaf = Leaf("S0", "S0", (("t", var("t")), ("i", var("w") - var("t") * 2)), (("t", t), ("w", t * 2 + i)))
    tree = nest([("w", n + 2 * steps - 2, "seq"), ("t", steps, "thread.x")], leaf)
    return Plan(program, (Kernel("seidel", (tree,)),))
