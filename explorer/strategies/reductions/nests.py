"""The moves that give reductions under parallel loops a shape: rows along lanes, columns across them, or flat over threads."""

from __future__ import annotations

from ...schedule import Schedule
from .._steps import Builder
from .form import ReductionForm
from .joins import columns_joined, rows_joined
from .moves import apart, finish, flat, in_order, innermost, split, write_wide
from .shapes import Shape
from .two_stage import two_stage


def shaped(b: Builder, form: ReductionForm, shape: Shape) -> Schedule:
    """Give the reductions of a form a shape; the targets are temporaries of their own by now."""
    if shape.two_stage:
        return two_stage(b, form, shape)
    if shape.staged:
        return _staged_rows(b, form, shape)
    if form.rows and shape.flat and shape.vector > 1:
        return _whole_rows(b, form, shape)
    return (_rows if form.rows and not shape.flat else _columns)(b, form, shape)


def _rows(b: Builder, form: ReductionForm, shape: Shape) -> Schedule:
    outer, inner = form.nested if shape.nested else ((), form.reduced)
    p, far, r = flat(b, form.parallel), flat(b, outer), flat(b, inner)
    if b.extent(r) % shape.vector:
        b.attempt("align", r, form.array, shape.vector)
    lanes = split(b, r, shape.vector, "v")
    thread = split(b, r, shape.x, "t")
    part = split(b, far or r, shape.parts, "s")
    if far and b.extent(r) <= shape.unroll:
        written = [split(b, far, shape.unroll // b.extent(r), "u"), r if b.extent(r) > 1 else ""]
    else:
        written = [split(b, r, shape.unroll, "u")]
    in_order(b, [part, far, *([r] if r not in written else []), thread, *written, lanes])
    if part:
        apart(b, form, part, [p] if p else [], first=False)
    if p:
        row = split(b, p, min(shape.y, b.extent(p)), "r")
        b.do("bind", p, "block.x")
        if row:
            b.do("bind", row, "thread.y")
    if part:
        b.do("bind", part, "block.y")
    if thread:
        b.do("bind", thread, "thread.x")
        for update in form.updates:
            b.do("collect", update, "shuffle")
    finish(b, form.kernel, lanes, *written)
    if part:
        rows_joined(b, form, shape)
    return b.schedule


def _columns(b: Builder, form: ReductionForm, shape: Shape) -> Schedule:
    outer, inner = ((), form.in_order) if shape.flat else form.batches
    if form.parallel != (*outer, *inner):
        b.do("reorder", (*outer, *inner))
    reduced, run = form.reduced, form.short_run(b.plan.loops) if shape.flat else ""
    if run and any(b.extent(n) > 1 for n in reduced if n != run):
        reduced = tuple(n for n in reduced if n != run)
        b.attempt("reorder", (*reduced, run))
    else:
        run = ""
    r, batch, p = flat(b, reduced), flat(b, outer), flat(b, inner)
    row = split(b, r, shape.y, "y")
    part = split(b, r, shape.parts, "s")
    several = run or split(b, r, shape.unroll, "u")
    walk = [r, row, several]
    in_order(b, [part, *walk])
    if part:
        apart(b, form, part, [x for x in (p, batch) if x], first=not form.rows)
    lanes = split(b, p, shape.vector, "v") if not form.rows else ""
    column = split(b, p, shape.x, "x")
    in_order(b, [part, batch, p, column, lanes])
    lanes = innermost(b, lanes, walk)
    for loop, place in ((batch, "block.z"), (p, "block.x"), (column, "thread.x"), (part, "block.y"), (row, "thread.y")):
        if loop:
            b.do("bind", loop, place)
    if row:
        for update in form.updates:
            b.do("collect", update, "shuffle")
    finish(b, form.kernel, lanes, several)
    if part:
        columns_joined(b, form, shape, batch)
    return b.schedule


def _whole_rows(b: Builder, form: ReductionForm, shape: Shape) -> Schedule:
    outer, inner = form.nested
    if form.parallel != form.in_order:
        b.do("reorder", form.in_order)
    in_order(b, [*outer, *inner])
    p, far, r = flat(b, form.in_order), flat(b, outer), flat(b, inner)
    row = split(b, far, shape.y, "y")
    several = split(b, far, shape.unroll * shape.vector // (shape.each * b.extent(r)), "u")
    walk = [x for x in (far, row, several) if x]
    in_order(b, [*walk, r])
    results = split(b, p, shape.each, "e")
    if results:
        results = innermost(b, results, [*walk, r])
        in_order(b, [*walk, results, r])
    if row:  # while the results' loop still is one
        b.do("bind", row, "thread.y")
        for update in form.updates:
            b.do("collect", update, "shuffle")
    thread = split(b, p, shape.x, "x")
    run = flat(b, (results, r)) if results else r
    lanes = split(b, run, shape.vector, "v")
    b.do("bind", p, "block.x").do("bind", thread, "thread.x")
    finish(b, form.kernel, lanes, several, run if b.extent(run) > 1 else "")
    write_wide(b, form.kernel, shape.each)
    return b.schedule


def _staged_rows(b: Builder, form: ReductionForm, shape: Shape) -> Schedule:
    if form.parallel != form.in_order:
        b.do("reorder", form.in_order)
    p, r = flat(b, form.in_order), flat(b, form.reduced)
    thread = split(b, p, shape.x, "x")
    written = r if b.extent(r) <= shape.unroll else split(b, r, shape.unroll, "u")
    b.do("bind", p, "block.x").do("bind", thread, "thread.x").do("stage", form.array, p, vector=shape.vector)
    finish(b, form.kernel, "", written)
    return b.schedule
