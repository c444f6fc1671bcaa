"""What is remembered with a program: found again by its equals, bounded, and gone when the program is gone."""

from __future__ import annotations

import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor

from explorer.ir.memo import per_program
from explorer.ir.plan import Plan, initial
from explorer.ir.program import Program
from explorer.poly.dependence import analyse
from explorer.poly.distances import distances
from explorer.poly.judge import judge
from tests.programs import row_sum


def program(rows: int = 3) -> Program:
    """A new object each time."""
    return pickle.loads(pickle.dumps(row_sum.schedule(M=rows, N=7).source))


def test_equal_programs_share_their_answers() -> None:
    asked: list[tuple[Plan, int]] = []

    @per_program(2)
    def answer(plan: Plan, number: int) -> object:
        asked.append((plan, number))
        return object()

    first, equal, other = (initial(program(n)) for n in (3, 3, 4))
    assert first.program is not equal.program
    assert answer(first, 1) is answer(equal, 1) is answer(equal, 1)
    assert answer(first, 1) is not answer(other, 1)
    assert len(asked) == 2
    answer(first, 2)
    answer(first, 3)
    assert len(asked) == 4
    answer(first, 1)  # the least recently asked for went
    assert len(asked) == 5
    answer.cache_clear()
    answer(first, 1)
    answer(other, 1)
    assert len(asked) == 7


def test_what_is_known_goes_with_the_program() -> None:
    found = program(5)
    facts = weakref.ref(analyse(found))
    judge(initial(found))
    distances(initial(found))
    pickle.loads(pickle.dumps(found))  # without what is known of it, some of which no pickle can hold
    assert facts() is not None
    gone = weakref.ref(found)
    del found
    gc.collect()
    assert gone() is None
    assert facts() is None


def test_a_table_outlives_the_program_that_had_it_first() -> None:
    count = []
    answer = per_program(1)(lambda about: count.append(about) or len(count))
    first = program(6)
    answer(first)
    equal = program(6)
    assert answer(equal) == 1
    count.clear()
    del first
    gc.collect()
    assert answer(equal) == 1
    assert not count


def test_threads_share_one_table() -> None:
    answer = per_program(64)(lambda about, number: object())
    programs = [program(7) for _ in range(32)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda p: answer(p, 1), programs))
    assert len({id(p.__dict__["_memo"]) for p in programs}) == 1
