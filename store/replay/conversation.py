"""Rules that every format shares: which result belongs to which call, what a turn is, what a user message is."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from typing import Any

from .model import RecordedCall, RecordedSession


class Conversation:
    """Collects the calls of one session in the order in which the recording tells them.

    A result belongs to the oldest unanswered call with its id (ids can be reused); a result without an id to the oldest
    unanswered call. Orphan and second results are dropped.
    """

    def __init__(self) -> None:
        self._calls: list[RecordedCall] = []
        self._unanswered: OrderedDict[int, RecordedCall] = OrderedDict()
        self._places: defaultdict[str, deque[int]] = defaultdict(deque)
        self._turns = 0
        self._user_turns = 0
        self._own_user_turns: dict[str, int] = {}

    def begin_turn(self) -> int:
        """Count one more model response and return its ordinal."""
        self._turns += 1
        return self._turns

    def user_message(self, actor: str | None = None) -> None:
        """Count one more message of a person, or one that only *actor* was sent."""
        if actor is None:
            self._user_turns += 1
        else:
            self._own_user_turns[actor] = self._own_user_turns.get(actor, 0) + 1

    def call(
        self,
        turn: int,
        tool: str,
        arguments: Any,
        *,
        call_id: str | None = None,
        actor: str = "",
        at_ns: int | None = None,
        key: str | None = None,
    ) -> None:
        """Add a call that the model response *turn* asked for."""
        user_turn = self._user_turns + self._own_user_turns.get(actor, 0)
        call = RecordedCall(actor, turn, user_turn, call_id, tool, arguments, started_ns=at_ns, key=key)
        self._unanswered[len(self._calls)] = call
        if call_id is not None:
            self._places[call_id].append(len(self._calls))
        self._calls.append(call)

    def result(self, text: str, *, is_error: bool, call_id: str | None = None, at_ns: int | None = None) -> None:
        """Give a result to the call it belongs to."""
        place = self._awaiting(call_id)
        if place is None:
            return
        call = self._unanswered.pop(place)
        call.result = text
        call.is_error = is_error
        call.ended_ns = at_ns

    def _awaiting(self, call_id: str | None) -> int | None:
        if call_id is None:
            return next(iter(self._unanswered), None)
        places = self._places.get(call_id, deque())
        # A result without an id may have answered some of them.
        while places and places[0] not in self._unanswered:
            places.popleft()
        return places.popleft() if places else None

    def session(self, key: str | None = None) -> RecordedSession:
        """Return what was collected."""
        return RecordedSession(key, tuple(self._calls))
