"""The definition of a loop, to the letter."""

from __future__ import annotations

import re
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changeover.store.loops import Call, Marks, mark, turns


def a_call(
    sequence: int,
    outcome: str = "error",
    *,
    tool: str = "find",
    args: str | None = "x",
    turn: int | None = None,
    user_turn: int | None = None,
    started: int | None = None,
    ended: int | None = None,
    result: str | None = None,
) -> Call:
    started = sequence * 10 if started is None else started
    return Call(
        identity=sequence.to_bytes(8, "big"),
        sequence=sequence,
        tool=tool,
        args=None if args is None else args.encode(),
        outcome=outcome,
        turn=turn,
        user_turn=user_turn,
        started=started,
        ended=started + 1 if ended is None else ended,
        result=None if result is None else result.encode(),
    )


def count(calls: list[Call], name: str) -> int:
    return sum(getattr(marks, name) is True for marks in mark(calls))


def test_the_error_is_marked_and_not_its_repeat():
    marks = mark([a_call(1), a_call(2, "ok")])

    assert marks == [Marks(loop=True, episode=True, recovered=True), Marks()]


def test_other_arguments_are_no_loop():
    assert count([a_call(1), a_call(2, args="y")], "loop") == 0


def test_another_tool_is_no_loop():
    assert count([a_call(1), a_call(2, tool="search")], "loop") == 0


def test_unknown_arguments_are_like_no_other_call():
    assert count([a_call(1, args=None), a_call(2, args=None)], "loop") == 0


def test_a_turn_between_ends_the_chance_of_a_loop():
    assert count([a_call(1), a_call(2, "ok", args="y"), a_call(3)], "loop") == 0


def test_the_repeat_may_stand_anywhere_in_the_next_turn():
    calls = [a_call(1, turn=1), a_call(2, "ok", args="y", turn=2), a_call(3, "ok", turn=2)]

    assert count(calls, "loop") == 1


def test_a_repeat_begun_before_the_error_was_known_is_no_loop():
    calls = [a_call(1, turn=1, started=0, ended=100), a_call(2, turn=2, started=50, ended=120)]

    assert count(calls, "loop") == 0
    assert count(calls, "episode") == 2


def test_a_user_message_between_is_counted_apart():
    marks = mark([a_call(1, user_turn=1), a_call(2, user_turn=2)])

    assert (marks[0].loop, marks[0].loop_after_user) == (False, True)
    assert marks[1].episode


def test_an_unknown_user_turn_is_no_user_message():
    assert count([a_call(1, user_turn=1), a_call(2, user_turn=None)], "loop") == 1


def test_an_error_at_the_end_has_no_loop_and_no_recovery():
    assert mark([a_call(1)]) == [Marks(episode=True)]


def test_a_chain_of_equal_errors_is_one_episode():
    calls = [a_call(number) for number in range(1, 6)]

    assert count(calls, "loop") == 4
    assert [marks.episode for marks in mark(calls)] == [True, False, False, False, False]


def test_recovery_is_what_the_next_call_of_the_tool_says():
    calls = [a_call(1), a_call(2, "ok", tool="search"), a_call(3, "empty", args="y"), a_call(4), a_call(5, "cancelled")]

    assert [marks.recovered for marks in mark(calls)] == [True, None, None, False, None]


def test_a_call_of_the_same_turn_is_no_recovery():
    assert mark([a_call(1, turn=1), a_call(2, "ok", turn=1)])[0].recovered is None


def test_a_runaway_repeats_a_success_with_an_equal_result():
    calls = [a_call(1, "ok", result="r"), a_call(2, "ok", result="r"), a_call(3, "ok", result="other")]

    assert [marks.runaway for marks in mark(calls)] == [False, True, False]


def test_a_success_among_other_calls_of_a_turn_is_no_runaway():
    calls = [a_call(1, "ok", turn=1, result="r")]
    calls += [a_call(2, "ok", turn=2, result="o", args="y"), a_call(3, "ok", turn=2, result="r")]

    assert count(calls, "runaway") == 0


@pytest.mark.parametrize(
    "second",
    [
        a_call(2, "error", result="r"),
        a_call(2, "ok", result=None),
        a_call(2, "ok", result="r", args="y"),
        a_call(2, "ok", result="r", user_turn=2),
    ],
)
def test_what_is_no_runaway(second):
    assert count([a_call(1, "ok", result="r", user_turn=1), second], "runaway") == 0


def test_calls_that_overlap_are_one_derived_turn():
    calls = [a_call(1, started=0, ended=50), a_call(2, started=10, ended=20), a_call(3, started=50, ended=60)]

    assert turns(calls) == [[0, 1], [2]]


def test_br_01_01_repeats_after_empty_results_do_not_count():
    calls = [a_call(number, "empty", result="[]") for number in (1, 2, 3)]
    calls += [a_call(number, args="y") for number in (4, 5, 6)]

    assert count(calls, "loop") == 2
    assert count(calls, "runaway") == 2


def test_br_01_03_eighty_five_equal_calls_are_eighty_four_loops():
    assert count([a_call(number) for number in range(1, 86)], "loop") == 84


def test_br_01_09_reshuffled_argument_names_are_no_loop():
    assert count([a_call(1, args="a"), a_call(2, args="b"), a_call(3, args="c")], "loop") == 0


def test_br_01_11_polling_with_new_results_is_neither_loop_nor_runaway():
    calls = [a_call(number, "ok", result=str(number)) for number in range(1, 5)]

    assert (count(calls, "loop"), count(calls, "runaway")) == (0, 0)


def test_br_01_11_a_cycle_of_three_calls_is_no_loop():
    cycle = [("read", "ok"), ("edit", "error"), ("test", "error")] * 4
    calls = [a_call(number, outcome, tool=tool) for number, (tool, outcome) in enumerate(cycle)]

    assert count(calls, "loop") == 0


def test_br_01_13_a_new_user_message_breaks_the_streak():
    assert count([a_call(1, tool="weather", user_turn=1), a_call(2, tool="weather", user_turn=2)], "loop") == 0


def test_br_01_17_an_odd_call_breaks_the_streak():
    calls = [a_call(number, args="odd" if number == 5 else "x") for number in range(1, 10)]

    assert count(calls, "loop") == 6


@pytest.mark.parametrize(("fails", "loops"), [(6, 5), (5, 4), (4, 3)])
def test_br_01_27_repeats_after_errors(fails, loops):
    calls = [a_call(number) for number in range(fails)]

    assert count(calls, "loop") == loops


def test_br_01_33_the_order_comes_from_the_sequence_when_times_are_equal():
    calls = [a_call(number, started=7, ended=7) for number in (1, 2, 3)] + [
        a_call(4, "ok", args="y", started=7, ended=7)
    ]

    assert {count(list(order), "loop") for order in permutations(calls)} == {2}


@pytest.mark.parametrize("ends", [(20, 30), (30, 20)])
def test_br_01_35_parallel_calls_count_alike_in_either_order_of_completion(ends):
    first = [a_call(1, started=10, ended=ends[0]), a_call(2, "ok", tool="b", started=11, ended=ends[1])]
    again = [a_call(3, started=40, ended=60), a_call(4, "ok", tool="b", started=41, ended=50)]

    assert count(first + again, "loop") == 1


def test_br_05_09_equal_calls_in_parallel_are_no_loop():
    calls = [a_call(number, args=str(number), started=number, ended=100 + number) for number in range(6)]
    calls += [a_call(6, started=6, ended=90), a_call(7, started=7, ended=95)]

    assert count(calls, "loop") == 0


def test_br_05_11_cancelled_calls_begin_no_streak():
    calls = [a_call(1, "cancelled"), a_call(2), a_call(3, "cancelled"), a_call(4)]

    assert count(calls, "loop") == 1  # the error that was followed by the same call, cancelled or not
    assert [marks.episode for marks in mark(calls)] == [False, True, False, True]


outcomes = st.sampled_from(["ok", "empty", "error", "error", "cancelled", "unanswered"])
some_calls = st.lists(
    st.builds(
        lambda outcome, tool, args, turn, user_turn, started, length, result: (
            outcome,
            tool,
            args,
            turn,
            user_turn,
            started,
            length,
            result,
        ),
        outcomes,
        st.sampled_from(["a", "b"]),
        st.sampled_from(["x", "y", None]),
        st.one_of(st.none(), st.integers(0, 6)),
        st.one_of(st.none(), st.integers(0, 1)),
        st.integers(0, 30),
        st.integers(0, 8),
        st.sampled_from(["r", "s", None]),
    ),
    max_size=14,
).map(
    lambda rows: [
        a_call(
            number,
            outcome,
            tool=tool,
            args=args,
            turn=turn,
            user_turn=user_turn,
            started=started,
            ended=started + length,
            result=result,
        )
        for number, (outcome, tool, args, turn, user_turn, started, length, result) in enumerate(rows)
    ]
)


def spelled_out(calls: list[Call]) -> list[Marks]:
    """The definitions word by word, slowly."""
    grouped = [[calls[place] for place in places] for places in turns(calls)]
    found: dict[bytes, Marks] = {}
    for index, turn in enumerate(grouped):
        before = grouped[index - 1] if index else []
        after = grouped[index + 1] if index + 1 < len(grouped) else []
        later = [call for following in grouped[index + 1 :] for call in following]
        for call in turn:
            if call.outcome == "error":
                repeats = [other for other in after if same(call, other) and other.started >= call.ended]
                loop = any(not user_between(call, other) for other in repeats)
                answers = [
                    other
                    for other in before
                    if same(call, other) and other.outcome == "error" and call.started >= other.ended
                ]
                following = [other.outcome for other in later if other.tool == call.tool]
                found[call.identity] = Marks(
                    loop=loop,
                    loop_after_user=bool(repeats) and not loop,
                    episode=not any(not user_between(call, other) for other in answers),
                    recovered=following[0] in ("ok", "empty") if following else None,
                )
            elif before and call is turn[0] and call.outcome in ("ok", "empty") and call.result is not None:
                other = before[-1]
                found[call.identity] = Marks(
                    runaway=same(call, other)
                    and other.outcome in ("ok", "empty")
                    and other.result == call.result
                    and not user_between(call, other)
                )
    return [found.get(call.identity, Marks()) for call in calls]


def same(one: Call, other: Call) -> bool:
    return one.args is not None and (one.tool, one.args) == (other.tool, other.args)


def user_between(one: Call, other: Call) -> bool:
    return None not in (one.user_turn, other.user_turn) and one.user_turn != other.user_turn


@given(some_calls)
def test_marks_are_what_the_definitions_say(calls):
    assert mark(calls) == spelled_out(calls)


@given(some_calls, st.randoms(use_true_random=False))
def test_marks_do_not_depend_on_the_order_in_which_calls_are_given(calls, random):
    expected = dict(zip([call.identity for call in calls], mark(calls), strict=True))
    shuffled = list(calls)
    random.shuffle(shuffled)

    assert dict(zip([call.identity for call in shuffled], mark(shuffled), strict=True)) == expected


@given(some_calls)
def test_every_call_is_in_exactly_one_turn(calls):
    assert sorted(place for places in turns(calls) for place in places) == list(range(len(calls)))


def test_a_hundred_thousand_calls_of_one_turn_need_no_comparison_of_each_with_each():
    calls = [a_call(number, turn=1 if number < 20_000 else 2) for number in range(40_000)]

    assert count(calls, "loop") == 20_000


def documented_examples() -> list[tuple[str, int, int, int, int]]:
    page = (Path(__file__).resolve().parents[2] / "docs" / "loops.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(.+?)` \| (\d+) \| (\d+) \| (\d+)(?: \((\d+)\))? \|", page, re.MULTILINE)
    return [
        (session, int(errors), int(loops), int(all_), int(looped or 0)) for session, errors, loops, all_, looped in rows
    ]


@pytest.mark.parametrize(("session", "errors", "loops", "episodes", "looped"), documented_examples())
def test_the_documented_examples_are_true(session, errors, loops, episodes, looped):
    outcomes_of_sign = {"X": "error", "ok": "ok", "[]": "empty", "cancelled": "cancelled"}
    calls: list[Call] = []
    user_turn = 1
    for turn, asked in enumerate(session.split(r" \| ")):
        if asked == "(user)":
            user_turn += 1
            continue
        for word in asked.split():
            args, sign = word.split(":")
            place = len(calls)
            calls.append(
                a_call(
                    place,
                    outcomes_of_sign[sign],
                    args=args,
                    turn=turn,
                    user_turn=user_turn,
                    started=turn,
                    ended=turn,
                    result="r",
                )
            )

    found = mark(calls)
    assert sum(call.outcome == "error" for call in calls) == errors
    assert count(calls, "loop") == loops
    assert (count(calls, "episode"), sum(marks.episode and marks.loop for marks in found)) == (episodes, looped)


def test_there_are_documented_examples():
    assert len(documented_examples()) >= 8
