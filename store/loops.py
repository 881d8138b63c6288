"""Loops, runaways, episodes and recoveries: what the order of calls says, as pure functions.

``docs/loops.md`` gives the definitions with examples and says what they cannot see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from changeover.semconv import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

_ERROR = Outcome.ERROR.value
_SUCCESSES = frozenset({Outcome.OK.value, Outcome.EMPTY.value})


class Call(NamedTuple):
    """What is known of one call; a tuple rather than a dataclass, since ingest makes one for every stored call.

    Args:
        identity: tells calls of equal *sequence* apart, always in the same order.
        sequence: the order of calls in a session.
        tool: which tool, by name or number.
        args: digest of the canonical arguments; ``None`` is like no other call.
        outcome: a word of ``changeover.semconv.Outcome``.
        turn: grows with every model response; ``None`` when nobody said, then turns are derived from times.
        user_turn: grows with every user message; ``None`` when nobody said.
        started: when the call began, in the same unit as *ended*.
        ended: when its answer was known.
        result: digest of a success's result text.
    """

    identity: bytes
    sequence: int
    tool: int | str
    args: bytes | None
    outcome: str
    turn: int | None
    user_turn: int | None
    started: int
    ended: int
    result: bytes | None


class Marks(NamedTuple):
    """What the order of calls says about one call.

    Args:
        loop: an error whose very next turn, issued after the error was known, holds the same call again.
        loop_after_user: the same, but a user message stands between.
        runaway: a success that repeats the success right before it, in an earlier turn, with an equal result.
        episode: an error that does not itself answer an error of the same call.
        recovered: whether the actor's next call of that tool succeeds; ``None`` without one, and for what is no error.
    """

    loop: bool = False
    loop_after_user: bool = False
    runaway: bool = False
    episode: bool = False
    recovered: bool | None = None


NOTHING = Marks()
_ANY: int = -(2**63)
_Key = tuple[int | str, bytes | None]


class _Bounds:
    """The greatest value seen per user turn: answers "is there one at least this great, no user message between?"."""

    __slots__ = ("all", "by_user_turn")

    def __init__(self) -> None:
        self.all = _ANY
        self.by_user_turn: dict[int | None, int] = {}

    def add(self, user_turn: int | None, value: int) -> None:
        self.all = max(self.all, value)
        self.by_user_turn[user_turn] = max(self.by_user_turn.get(user_turn, _ANY), value)

    def greatest(self, user_turn: int | None) -> int:
        if user_turn is None:
            return self.all
        return max(self.by_user_turn.get(user_turn, _ANY), self.by_user_turn.get(None, _ANY))


def turns(calls: Sequence[Call]) -> list[list[int]]:
    """Return the turns of one actor in one session, each as places in *calls*, in order.

    Calls of an equal ``turn`` are one turn. Calls without one are one turn when they overlap in time; a call that
    starts after all earlier ones ended begins a new turn.
    """
    order = sorted(range(len(calls)), key=lambda place: (calls[place].sequence, calls[place].identity))
    told: dict[int, list[int]] = {}
    derived: list[tuple[int, int, list[int]]] = []
    known = _ANY
    for place in order:
        call = calls[place]
        if call.turn is not None:
            told.setdefault(call.turn, []).append(place)
            continue
        if call.started >= known:
            derived.append((call.sequence, 1, []))
        derived[-1][2].append(place)
        known = max(known, call.ended)
    positions = [(turn, 0, places) for turn, places in told.items()] + derived
    positions.sort(key=lambda entry: entry[:2])
    return [places for _, _, places in positions]


def mark(calls: Sequence[Call]) -> list[Marks]:
    """Return the marks of the calls of one actor in one session, in the order of *calls*, which may be any order."""
    if len(calls) == 1:
        return [Marks(episode=True) if calls[0].outcome == _ERROR else NOTHING]
    marks = [NOTHING] * len(calls)
    next_outcome: dict[int | str, str] = {}
    later: list[int] = []
    grouped = turns(calls)
    for index in range(len(grouped) - 1, -1, -1):
        places, earlier = grouped[index], grouped[index - 1] if index else []
        failed = any(calls[place].outcome == _ERROR for place in places)
        repeats, failures = (_starts(calls, later), _failures(calls, earlier)) if failed else ({}, {})
        for place in places:
            if calls[place].outcome == _ERROR:
                marks[place] = _mark_error(calls[place], repeats, failures, next_outcome)
        if earlier and _repeats_success(calls[earlier[-1]], calls[places[0]]):
            marks[places[0]] = Marks(runaway=True)
        for place in reversed(places):
            next_outcome[calls[place].tool] = calls[place].outcome
        later = places
    return marks


def _repeats_success(before: Call, call: Call) -> bool:
    if before.outcome not in _SUCCESSES or call.outcome not in _SUCCESSES:
        return False
    if call.args is None or call.result is None:
        return False
    if (before.tool, before.args, before.result) != (call.tool, call.args, call.result):
        return False
    return before.user_turn == call.user_turn or before.user_turn is None or call.user_turn is None


def _mark_error(
    call: Call,
    repeats: dict[_Key, _Bounds],
    failures: dict[_Key, _Bounds],
    next_outcome: dict[int | str, str],
) -> Marks:
    key = (call.tool, call.args)
    again = repeats.get(key)
    loop = again is not None and again.greatest(call.user_turn) >= call.ended
    answered = failures.get(key)
    following = next_outcome.get(call.tool)
    return Marks(
        loop=loop,
        loop_after_user=again is not None and not loop and again.all >= call.ended,
        # Ends are kept negated, so the greatest is the earliest end.
        episode=answered is None or not -call.started <= answered.greatest(call.user_turn),
        recovered=None if following is None else following in _SUCCESSES,
    )


def _starts(calls: Sequence[Call], places: list[int]) -> dict[_Key, _Bounds]:
    found: dict[_Key, _Bounds] = {}
    for place in places:
        call = calls[place]
        if call.args is not None:
            found.setdefault((call.tool, call.args), _Bounds()).add(call.user_turn, call.started)
    return found


def _failures(calls: Sequence[Call], places: list[int]) -> dict[_Key, _Bounds]:
    found: dict[_Key, _Bounds] = {}
    for place in places:
        call = calls[place]
        if call.args is not None and call.outcome == _ERROR:
            found.setdefault((call.tool, call.args), _Bounds()).add(call.user_turn, -call.ended)
    return found
