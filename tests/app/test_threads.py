"""The analysis under several threads: one at a time, in order of asking, and budgets that do not leak."""

from __future__ import annotations

import threading
import time

import pytest

from explorer.app.judging import MoveJudge
from explorer.app.protocol_moves import MovesPane
from explorer.gpu.spec import default_gpu
from explorer.poly.isl import alone
from explorer.poly.judge import judge

from .front import schedule


def test_one_thread_at_a_time() -> None:
    inside, most = [0], [0]

    @alone
    def work() -> None:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.002)
        inside[0] -= 1

    threads = [threading.Thread(target=lambda: [work() for _ in range(10)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_the_same_thread_may_enter_again_and_an_error_lets_go() -> None:
    @alone
    def inner() -> int:
        return 3

    @alone
    def outer(fail: bool) -> int:
        if fail:
            raise ValueError("no luck")
        return inner()

    assert outer(False) == 3
    with pytest.raises(ValueError, match="no luck"):
        outer(True)
    other: list[int] = []
    thread = threading.Thread(target=lambda: other.append(inner()))
    thread.start()
    thread.join(5)
    assert other == [3]


def test_who_waits_goes_before_who_comes_again() -> None:
    order: list[str] = []

    @alone
    def work(name: str) -> None:
        order.append(name)
        time.sleep(0.01)

    stop = threading.Event()

    def again_and_again() -> None:
        while not stop.is_set():
            work("hog")

    hog = threading.Thread(target=again_and_again)
    hog.start()
    time.sleep(0.05)
    before = len(order)
    work("guest")
    stop.set()
    hog.join()
    assert order[before:].index("guest") <= 3


def test_judgements_from_several_threads_are_those_of_one() -> None:
    plans = [schedule(name, *steps).plan for name, steps in (
        ("softmax", ["bind('i', 'block.x')"]), ("matmul", ["split('k', 4)", "stage('a', 'k')"]), ("sum_rows", ["split('k', 4)"]),
        ("layernorm", ["split('i', 2)"]))]
    alone_answers = [judge.__wrapped__(plan) for plan in plans]
    found: dict[int, list[object]] = {}

    def work(number: int) -> None:
        found[number] = [judge.__wrapped__(plan) for plan in plans]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(answers == alone_answers for answers in found.values())
    assert len(found) == 3


def test_judging_rests_while_a_request_is_answered() -> None:
    told: list[MovesPane] = []
    judge_moves = MoveJudge(lambda serial: told.append(judge_moves.pane))
    start = schedule("softmax", M=6, N=12)
    with judge_moves.paused():
        judge_moves.ask(1, start, "k", default_gpu())
        assert judge_moves.pane["pending"]
        time.sleep(0.3)
        assert told == []
    assert judge_moves.wait()
    assert [pane["node"] for pane in told if not pane["pending"]] == ["k"]
    judge_moves.close()


def test_a_judgement_that_fails_is_said_and_the_thread_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[MovesPane] = []
    judge_moves = MoveJudge(lambda serial: told.append(judge_moves.pane))
    start = schedule("softmax", M=6, N=12)

    def broken(*_: object) -> None:
        raise ZeroDivisionError("oops")

    with monkeypatch.context() as patched:
        patched.setattr("explorer.app.judging.judged", broken)
        judge_moves.ask(1, start, "k", default_gpu())
        assert judge_moves.wait()
    assert "could not be judged: ZeroDivisionError: oops" in told[-1]["title"]
    assert not told[-1]["pending"]
    judge_moves.ask(2, start, "k_2", default_gpu())
    assert judge_moves.wait()
    assert told[-1]["moves"]
    judge_moves.close()
