"""The nests that random programs are made of: each function adds one to a program under construction."""

from __future__ import annotations

from collections.abc import Callable

from .writer import Writer


def pointwise(w: Writer) -> None:
    """One store for each element, of one or two operands."""
    m, n = w.sizes(2)
    x, y = w.old_or_new("x", m, n, halo=2), w.array("y", m, n)
    w.add(0, f"for i in {w.span(m)}:")
    w.add(1, f"for j in {w.span(n, ('i',))}:")
    at = w.pick.choice((f"{x}[i, j + 1]", f"{x}[i + 1, j]", f"{x}[i + 1, j + 2]"))
    w.add(w.guard(2, ("i", "j")), f"{y}[i, j] = {w.map(f'{x}[i, j]', at)}")


def deep(w: Writer) -> None:
    """Four loops, one store; the index may be transposed or folded."""
    m, n, k = w.sizes(3)
    x, y = w.array("x", m, n, k), w.array("y", k, m, n, "2")
    w.add(0, f"for i in {w.span(m)}:")
    w.add(1, f"for j in {w.span(n, ('i',))}:")
    w.add(2, f"for k in {w.span(k)}:")
    w.add(3, "for l in range(2):")
    other = w.pick.choice((f"{x}[i, j, (k + l) % {k}]", "l"))
    w.add(w.guard(4, ("i", "j", "k", "l")), f"{y}[k, i, j, l] = {w.map(f'{x}[i, j, k]', other)}")


def chain(w: Writer) -> None:
    """Producer and consumer with a temporary of full shape between them."""
    m, n = w.sizes(2)
    x, y = w.old_or_new("x", m, n, halo=2), w.array("y", m, n)
    t = w.local(0, f"{m} + 2", n, dtype=w.dtype)
    w.add(0, f"for i in range({m} + 2):", f"    for j in {w.span(n, full=True)}:",
          f"        {t}[i, j] = {w.map(f'{x}[i, j]', f'{x}[i, j + 1]')}")
    w.add(0, f"for i in {w.span(m)}:")
    w.add(1, f"for j in {w.span(n, ('i',))}:")
    other = w.pick.choice((f"{t}[i + 1, j]", f"{t}[i + 2, j]", f"{x}[i, j]"))
    w.add(w.guard(2, ("i", "j")), f"{y}[i, j] = {w.map(f'{t}[i, j]', other)}")


def same_nest(w: Writer) -> None:
    """Producer and consumer of a temporary, loop for loop alike: what fusion wants."""
    m, n = w.sizes(2)
    x, y = w.old_or_new("x", m, n, halo=2), w.array("y", m, n)
    t = w.local(0, m, n, dtype=w.dtype)
    w.add(0, f"for i in range({m}):", f"    for j in range({n}):", f"        {t}[i, j] = {w.map(f'{x}[i, j]', f'{x}[i + 1, j]')}")
    at = w.pick.choice(("i, j", "i, j", f"i, {n} - 1 - j"))
    w.add(0, f"for i in range({m}):", f"    for j in range({n}):", f"        {y}[i, j] = {w.map(f'{t}[{at}]', f'{x}[i, j]')}")


def local_value(w: Writer) -> None:
    """A scalar temporary of the inner loop."""
    m, n = w.sizes(2)
    x, y = w.old_or_new("x", m, n, halo=2), w.array("y", m, n)
    w.add(0, f"for i in {w.span(m)}:")
    w.add(1, f"for j in {w.span(n, ('i',))}:")
    depth = w.guard(2, ("i", "j"))
    t = w.local(depth)
    w.add(depth, f"{t} = {w.map(f'{x}[i, j]', f'{x}[i + 1, j]')}", f"{y}[i, j] = {w.map(t, f'{x}[i, j + 1]')}")


def cube(w: Writer) -> None:
    """A temporary of rank three, written in one order and read in another."""
    m, n, k = w.sizes(3)
    x, y = w.old_or_new("x", m, n), w.array("y", k, m, n)
    t = w.local(0, m, n, k, dtype=w.dtype)
    w.add(0, f"for i in range({m}):", f"    for j in range({n}):", f"        for k in range({k}):",
          f"            {t}[i, j, k] = {w.map(f'{x}[i, j]', 'k')}")
    w.add(0, f"for k in range({k}):", f"    for i in {w.span(m, ('k',))}:", f"        for j in {w.span(n)}:",
          f"            {y}[k, i, j] = {w.map(f'{t}[i, j, k]', f'{x}[i, j]')}")


def row_reduction(w: Writer) -> None:
    """One temporary per row, used after the reduction, perhaps by a second pass."""
    m, n = w.sizes(2)
    x = w.old_or_new("x", m, n, halo=2)
    update, start = w.reduction()
    w.add(0, f"for i in {w.span(m)}:")
    t = w.local(1)
    w.add(1, f"{t} = {start}", f"for k in {w.span(n, ('i',))}:")
    value = w.pick.choice((f"{x}[i, k]", f"{x}[i + 1, k]", f"abs({x}[i, k])"))
    w.add(w.guard(2, ("i", "k")), update.format(t=t, v=value))
    if w.pick.random() < 0.5:
        y = w.array("y", m)
        w.add(1, f"{y}[i] = {w.map(t, t)}")
    else:
        y = w.array("y", m, n)
        w.add(1, f"for j in {w.span(n)}:", f"    {y}[i, j] = {w.map(f'{x}[i, j]', t)}")


def vector_reduction(w: Writer) -> None:
    """Sums of all rows in a temporary of rank one, then a nest that uses them."""
    m, n = w.sizes(2)
    x, y = w.old_or_new("x", m, n, halo=2), w.array("y", m, n)
    update, start = w.reduction()
    t = w.local(0, m)
    w.add(0, f"for i in range({m}):", f"    {t}[i] = {start}")
    w.add(0, f"for k in {w.span(n)}:", f"    for i in range({m}):", "        " + update.format(t=f"{t}[i]", v=f"{x}[i, k + 1]"))
    w.add(0, f"for i in {w.span(m)}:", f"    for j in {w.span(n)}:", f"        {y}[i, j] = {w.map(f'{x}[i, j]', f'{t}[i]')}")


def direct_reduction(w: Writer) -> None:
    """Updates of an output; the reduced loop inside or outside, the start there or in the input."""
    m, n = w.sizes(2)
    x, y = w.old_or_new("x", m, n, halo=2), w.array("y", m)
    update, start = w.reduction()
    if w.pick.random() < 0.7:
        w.add(0, f"for i in range({m}):", f"    {y}[i] = {start}")
    inner = [f"for i in {w.span(m)}:", f"for k in {w.span(n, ('i',))}:"]
    if w.pick.random() < 0.5:
        inner = [f"for k in {w.span(n)}:", f"for i in {w.span(m, ('k',))}:"]
    w.add(0, inner[0])
    w.add(1, inner[1])
    w.add(w.guard(2, ("i", "k")), update.format(t=f"{y}[i]", v=f"{x}[i, k]"))


def bins(w: Writer) -> None:
    """Updates of a folded index: several rows share a bin."""
    m, n = w.sizes(2)
    x, y = w.old_or_new("x", m, n), w.array("y", "3")
    update, start = w.reduction()
    w.add(0, "for b in range(3):", f"    {y}[b] = {start}", f"for i in {w.span(m)}:", f"    for k in {w.span(n, ('i',))}:")
    w.add(2, update.format(t=w.pick.choice((f"{y}[(i + k) % 3]", f"{y}[i % 3]")), v=f"{x}[i, k]"))


def total(w: Writer) -> None:
    """Everything into one number."""
    m, n = w.sizes(2)
    x, y = w.old_or_new("x", m, n, halo=2), w.array("y", "1")
    update, start = w.reduction(("sum", "max", "min"))
    w.add(0, f"{y}[0] = {start}", f"for i in {w.span(m)}:")
    w.add(1, f"for k in {w.span(n, ('i',))}:")
    w.add(w.guard(2, ("i", "k")), update.format(t=f"{y}[0]", v=f"{x}[i, k]"))


def logical(w: Writer) -> None:
    """``and``, ``or`` and ``^`` of comparisons."""
    m, n = w.sizes(2)
    x, y = w.old_or_new("x", m, n, halo=2), w.array("y", m, dtype="bool_")
    word, start = w.pick.choice((("and", "True"), ("or", "False"), ("^", "False")))
    w.add(0, f"for i in {w.span(m)}:")
    t = w.local(1, dtype="bool_")
    other = w.pick.choice(("0", f"{x}[i, k + 1]"))
    test = f"{x}[i, k] {w.pick.choice('<>')} {other}"
    w.add(1, f"{t} = {start}", f"for k in {w.span(n, ('i',))}:", f"    {t} = {t} {word} ({test})", f"{y}[i] = {t}")


def product(w: Writer) -> None:
    """A matrix product, perhaps triangular, with or without a temporary."""
    a, b, c = w.array("x", "M", "K"), w.old_or_new("x", "K", "N"), w.array("y", "M", "N")
    k = w.span("K", ("i",)) if w.pick.random() < 0.4 else "range(K)"
    w.add(0, "for i in range(M):", "    for j in range(N):")
    if w.pick.random() < 0.5:
        t = w.local(2)
        w.add(2, f"{t} = 0", f"for k in {k}:", f"    {t} += {a}[i, k] * {b}[k, j]", f"{c}[i, j] = {t}")
    else:
        w.add(2, f"{c}[i, j] = 0", f"for k in {k}:", f"    {c}[i, j] += {a}[i, k] * {b}[k, j]")


def window(w: Writer) -> None:
    """A strided convolution along one axis."""
    m, n = w.sizes(2)
    x, weight, y = w.array("x", m, f"2 * {n} + 3"), w.array("w", "3"), w.array("y", m, n)
    w.add(0, f"for i in {w.span(m)}:", f"    for j in range({n}):", f"        {y}[i, j] = 0", "        for k in range(3):",
          f"            {y}[i, j] += {x}[i, 2 * j + k] * {weight}[k]")


def stencil(w: Writer) -> None:
    """A stencil over time: in place, or between two planes by the parity of time."""
    n = w.pick.choice(w.sizes(3))
    half = "0.25 * " if w.real else ""
    if w.pick.random() < 0.5:
        u = w.array("u", n, halo=2)
        w.add(0, "for t in range(3):", f"    for i in {w.span(n)}:",
              f"        {u}[i + 1] = {half}({u}[i] + {u}[i + 2] + {u}[i + 1])")
    else:
        u = w.array("u", "2", n, halo=2)
        w.add(0, "for t in range(3):", f"    for i in range(1, {n} + 1):",
              f"        {u}[(t + 1) % 2, i] = {half}({u}[t % 2, i - 1] + {u}[t % 2, i] + {u}[t % 2, i + 1])")


def plane_stencil(w: Writer) -> None:
    """In place in two dimensions, with a chosen set of neighbours."""
    m, n = w.sizes(2)
    u = w.array("u", m, n, halo=2)
    near = w.pick.sample([f"{u}[i, j + 1]", f"{u}[i + 1, j]", f"{u}[i + 2, j + 1]", f"{u}[i + 1, j + 2]", f"{u}[i, j + 2]"], 2)
    half = "0.5 * " if w.real else ""
    w.add(0, f"for i in {w.span(m)}:", f"    for j in {w.span(n)}:", f"        {u}[i + 1, j + 1] = {half}({near[0]} - {near[1]})")


def scan(w: Writer) -> None:
    """A prefix along one loop, independent along another."""
    m, n = w.sizes(2)
    x, y = w.old_or_new("x", m, n, halo=2), w.array("y", m, n)
    step = w.pick.choice((f"{y}[i, j - 1] + {x}[i, j]", f"max({y}[i, j - 1], {x}[i, j])"))
    w.add(0, f"for i in {w.span(m)}:")
    w.add(1, f"{y}[i, 0] = {x}[i, 0]", f"for j in range(1, {n}):", f"    {y}[i, j] = {step}")


def overwritten(w: Writer) -> None:
    """Several iterations write one element: the last one counts."""
    m, n = w.sizes(2)
    x, y = w.old_or_new("x", m, n), w.array("y", m)
    w.add(0, f"for i in {w.span(m)}:", f"    for j in {w.span(n, ('i',))}:")
    w.add(w.guard(2, ("i", "j")), f"{y}[{w.pick.choice(('i', 'i // 2'))}] = {w.map(f'{x}[i, j]', 'j')}")


def moved(w: Writer) -> None:
    """Each element takes its neighbour's old value: nothing but antidependences."""
    m, n = w.sizes(2)
    u = w.array("u", m, n, halo=1)
    at = w.pick.choice(("i + 1, j", "i, j + 1", "i + 1, j + 1"))
    w.add(0, f"for i in {w.span(m)}:", f"    for j in {w.span(n)}:", f"        {u}[i, j] = {w.map(f'{u}[{at}]', f'{u}[{at}]')}")


def two_reductions(w: Writer) -> None:
    """The second reduction reads the result of the first, as in softmax."""
    m, n = w.sizes(2)
    x, y = w.old_or_new("x", m, n, halo=2), w.array("y", m, n)
    w.add(0, f"for i in {w.span(m)}:")
    t = w.local(1)
    value = f"ex.exp({x}[i, k] - {t})" if w.real else f"{x}[i, k] - {t}"
    w.add(1, f"{t} = {'-ex.inf' if w.real else '-100'}", f"for k in range({n}):", f"    {t} = max({t}, {x}[i, k])")
    s = w.local(1)
    w.add(1, f"{s} = 0", f"for k in range({n}):", f"    {s} += {value}", f"for k in {w.span(n)}:",
          f"    {y}[i, k] = {value} + {s}")


def statements(w: Writer) -> None:
    """Two or three statements in one nest, each with a guard of its own; later ones read what earlier ones wrote."""
    m, n = w.sizes(2)
    x, y, z = w.old_or_new("x", m, n, halo=2), w.array("y", m, n), w.array("z", m, n)
    w.add(0, f"for i in range({m}):", f"    for j in range({n}):", f"        {y}[i, j] = {w.map(f'{x}[i, j]', f'{x}[i, j + 1]')}")
    w.add(w.guard(2, ("i", "j"), 0.4), f"{z}[i, j] = {w.map(f'{y}[i, j]', f'{x}[i + 1, j]')}")
    if w.pick.random() < 0.6:
        w.add(w.guard(2, ("i", "j"), 0.6), f"{y}[i, j] = {w.map(f'{x}[i + 2, j]', f'{y}[i, j]')}")


def strided(w: Writer) -> None:
    """A store or an update of every second or third row or column, the others from another statement or the caller."""
    m, n = w.sizes(2)
    x, y = w.old_or_new("x", m, n, halo=2), w.array("y", m, n)
    by = w.pick.choice((2, 3, 4))
    name = w.pick.choice(("i", "j"))
    w.add(0, f"for i in {w.span(m, full=True)}:", f"    for j in {w.span(n, full=True)}:",
          f"        if {name} % {by} == {w.pick.randrange(by)}:",
          f"            {y}[i, j] = {w.map(f'{x}[i, j]', f'{x}[i + 1, j]')}")
    if w.pick.random() < 0.5:
        w.add(2, "else:", f"    {y}[i, j] = {w.map(f'{x}[i, j + 2]', f'{x}[i, j]')}")


def constant(w: Writer) -> None:
    """A temporary that holds a constant of a narrow type, perhaps one that no array has: what inlining writes into the text."""
    m, n = w.sizes(2)
    x, y = w.old_or_new("x", m, n, halo=2), w.array("y", m, n)
    real = ("f16", "0.1"), ("bf16", "0.3"), ("f32", "0.1"), ("f16", "-2.5")
    dtype, value = w.pick.choice(real if w.real else (("i8", "3"), ("i32", "-5")))
    t = w.local(0, n, dtype=dtype)
    w.add(0, f"for j in range({n}):", f"    {t}[j] = {w.pick.choice((value, f'{value} * j'))}")
    w.add(0, f"for i in {w.span(m)}:", f"    for j in {w.span(n, ('i',))}:")
    w.add(w.guard(2, ("i", "j")), f"{y}[i, j] = {w.map(f'{x}[i, j]', f'{t}[j]')}")


def narrow(w: Writer) -> None:
    """A vector of a narrow type read along its only axis, with a halo: copies of it end in the midst of a run of bytes."""
    n = w.pick.choice(w.sizes(3))
    dtype = w.pick.choice(("f16", "bf16", "f32")) if w.real else "i8"
    x, y = w.array("x", n, dtype=dtype, halo=w.pick.choice((0, 1, 3))), w.array("y", n)
    w.add(0, f"for j in {w.span(n)}:", f"    {y}[j] = {w.map(f'{x}[j]', f'{x}[{n} - 1 - j]')}")


def rows(w: Writer) -> None:
    """Rows that are read many times: what shared memory, copies of copies and pipelines are for."""
    m, n, k = w.sizes(3)
    x, y = w.array("x", m, k, dtype=w.pick.choice(("f16", "bf16", "f32")) if w.real else "i8"), w.array("y", m, n)
    at = w.pick.choice((f"{x}[i, k]", f"{x}[i, {k} - 1 - k]"))
    w.add(0, f"for i in {w.span(m)}:", f"    for j in range({n}):", f"        {y}[i, j] = 0", f"        for k in {w.span(k)}:",
          f"            {y}[i, j] += {at}")


def tangle(w: Writer) -> None:
    """Several statements on one array at strided, folded and shared elements: who wrote last differs from read to read."""
    pick, (m, n) = w.pick, w.sizes(2)
    u = w.array("u", "26", "13")
    x = w.array("x", m) if pick.random() < 0.6 else ""

    def place(j: str) -> str:
        rows = ("i", "i + 2", f"i + {j}", "2 * i + 1", f"(i + 2 * {j}) // 3", f"{j} // 2", f"{j} % 3")
        columns = (j, f"{j} % 3", "i // 2", "i % 4", f"({j} + 2 * i) // 5", "i", "2")
        return f"{u}[{pick.choice(rows)}, {pick.choice(columns)}]"

    def store(depth: int, j: str) -> None:
        at, other = place(j), place(j)
        half = "0.5 * " if w.real else ""
        forms = [f"{half}({at} - {other})", f"min({at}, {other})", f"{half}{other}"]
        forms += [f"{x}[i]", f"{half}({other} - {x}[i])", f"max({other}, {x}[i])"] if x else ["3"]
        w.add(w.guard(depth, ("i", j), 0.3), f"{at} = {pick.choice(forms)}")

    if pick.random() < 0.5:
        w.add(0, "for a in range(26):", "    for b in range(13):", f"        {u}[a, b] = 2")
    w.add(0, f"for i in {w.span(m)}:")
    if x:
        w.add(1, f"{u}[i, 1] = {x}[i]")
    for _ in range(pick.choice((1, 2, 2))):
        if pick.random() < 0.4:
            store(1, "i")
        j = w.name("j")
        spans = w.span(n, ("i",)), f"range(i % 3, {n}, {pick.choice((2, 3))})", "range(i, i + 2)"
        w.add(1, f"for {j} in {pick.choice(spans)}:")
        for _ in range(pick.choice((1, 2))):
            store(2, j)


def gather(w: Writer) -> None:
    """A read at a data-dependent index."""
    m, n = w.sizes(2)
    x, y, at = w.array("x", n, halo=1), w.array("y", m), w.array("n", m, dtype="i32")
    w.add(0, f"for i in {w.span(m)}:", f"    {y}[i] = {w.map(f'{x}[{at}[i]]', f'{x}[{at}[i]]')}")


def folded(w: Writer) -> None:
    """Quotients and remainders in an index."""
    n = w.pick.choice(w.sizes(3))
    x, y = w.array("x", n, "3"), w.array("y", f"3 * {n}")
    w.add(0, f"for i in range(3 * {n}):", f"    {y}[i] = {w.map(f'{x}[i // 3, i % 3]', f'{x}[i // 3, 0]')}")


SHAPES: tuple[Callable[[Writer], None], ...] = (
    pointwise, deep, chain, same_nest, local_value, cube, row_reduction, row_reduction, vector_reduction, direct_reduction,
    direct_reduction, bins, total, logical, product, product, window, stencil, plane_stencil, scan, overwritten, moved,
    two_reductions, gather, folded, tangle, statements, statements, strided, strided, constant, constant, narrow, rows, rows,
    )
