"""The session: a tree of schedules, undo and redo, branches, sizes, the selection, and observers."""

from __future__ import annotations

import pytest

from explorer.app.explore import session_of
from explorer.app.session import Session
from explorer.errors import ExplorerError, IllegalSchedule, ProgramError, ReplayError, ScheduleError

from .front import schedule


def session() -> Session:
    return Session(schedule("softmax", M=6, N=12))


def test_steps_of_the_given_schedule_are_its_first_states() -> None:
    found = Session(schedule("softmax", "split('k', 4)", "reverse('i')", M=6, N=12))
    assert [s.title for s in found.history.line()] == ["softmax  M=6, N=12", "split k 4", "reverse i"]
    assert found.schedule.steps == schedule("softmax", "split('k', 4)", "reverse('i')", M=6, N=12).steps


def test_undo_and_redo_walk_the_line_and_keep_it() -> None:
    s = session()
    s.apply("split('k', 4)")
    s.apply("reverse('i')")
    whole = s.history.path()
    s.undo()
    s.undo()
    assert not s.schedule.steps
    assert s.history.path() == whole
    s.redo()
    s.redo()
    assert [str(x) for x in s.schedule.steps] == ["split('k', 4)", "reverse('i')"]
    with pytest.raises(ScheduleError, match="nothing to redo"):
        s.redo()


def test_undo_at_the_root_is_refused() -> None:
    with pytest.raises(ScheduleError, match="nothing to undo"):
        session().undo()


def test_a_step_after_undo_is_a_branch_and_nothing_is_lost() -> None:
    s = session()
    first = s.apply("split('k', 4)")
    s.undo()
    second = s.apply("split('k', 2)")
    assert first.parent == second.parent == "h0"
    assert set(s.history.states) == {"h0", first.id, second.id}
    s.goto(first.id)
    assert str(s.schedule.steps[0]) == "split('k', 4)"
    s.undo()
    assert s.redo().id == first.id, "redo leads to the branch shown last"


def test_the_same_step_leads_to_the_same_state() -> None:
    s = session()
    first = s.apply("split('k', 4)")
    s.undo()
    assert s.apply("split('k', 4)").id == first.id
    assert len(s.history.states) == 2


def test_a_refused_step_changes_nothing() -> None:
    s = session()
    before = dict(s.history.states)
    with pytest.raises(IllegalSchedule):
        s.apply("fuse('k_2', 'k_3')")
    assert s.history.states == before
    assert s.history.current == "h0"


def test_titles_and_runs_belong_to_their_state() -> None:
    s = session()
    state = s.apply("split('k', 4)")
    s.rename(state.id, "  my   own\nname ")
    assert s.history.state.title == "my own name"
    s.rename(state.id, "")
    assert s.history.state.title == "split('k', 4)"
    with pytest.raises(ScheduleError, match="no state 'h9'"):
        s.rename("h9", "x")


def test_sizes_are_a_line_of_their_own() -> None:
    s = session()
    s.apply("split('k', 4)")
    s.resize({"M": 3, "N": 9})
    assert dict(s.schedule.source.sizes) == {"M": 3, "N": 9}
    assert [str(x) for x in s.schedule.steps] == ["split('k', 4)"]
    assert s.history.line()[0].origin == "h1"
    s.undo()
    s.undo()
    assert dict(s.schedule.source.sizes) == {"M": 6, "N": 12}
    s.redo()
    assert dict(s.schedule.source.sizes) == {"M": 3, "N": 9}
    s.resize({"M": 6, "N": 12})
    assert s.history.line()[0].id == "h0", "the same sizes are the same root"


@pytest.mark.parametrize(("sizes", "error"), [({"M": -1}, ProgramError), ({"M": "x"}, ProgramError), ({"Q": 3}, ProgramError),
                                              ({"N": 1}, ReplayError)])
def test_sizes_that_do_not_work_change_nothing(sizes: dict, error: type[ExplorerError]) -> None:
    s = session()
    s.apply("cut('k', 5)")
    with pytest.raises(error):
        s.resize(sizes)
    assert s.history.current == "h1"
    assert len(s.history.states) == 2


def test_the_selection_survives_steps_as_long_as_its_node() -> None:
    s = session()
    s.select("k_2")
    s.apply("split('k_2', 4)")
    assert s.selected == "k_2"
    s.select("k_2.i")
    s.undo()
    assert s.selected == "k_2"
    with pytest.raises(ScheduleError, match="no node 'zz'"):
        s.select("zz")


def test_observers_hear_of_every_change_and_of_no_refusal() -> None:
    s, heard = session(), []
    s.observers.append(lambda: heard.append(s.history.current))
    s.apply("split('k', 4)")
    s.undo()
    s.redo()
    s.select("i")
    with pytest.raises(IllegalSchedule):
        s.apply("fuse('k_2', 'k_3')")
    assert heard == ["h1", "h0", "h1", "h1"]


def test_what_explore_is_given() -> None:
    made = schedule("softmax", "split('k', 4)", M=6, N=12)
    program = made.definition
    for text in (made.share(), made.to_json(), made.script(), session_of(made).script):
        assert session_of(program, text).schedule.plan == made.plan
    assert session_of(program, M=6, N=12).schedule.steps == ()
    with pytest.raises(ScheduleError, match="not int"):
        session_of(3)
    with pytest.raises(ProgramError, match="missing size"):
        session_of(program)
    with pytest.raises(ScheduleError, match="sizes already"):
        session_of(program, made.share(), M=3)
    with pytest.raises(ReplayError, match="damaged"):
        session_of(program, "ex1:zzzz")
