"""Rules that every format shares: which result belongs to which call, what a turn is, what a user message is."""

from __future__ import annotations

from collections import deque
from typing import Any

from .model import RecordedCall, RecordedSession


class Conversation:
    """Collects the calls of one session in the order in which the recording tells them.

    A result belongs to the oldest unanswered call with its id (ids can be reused); a result without an id to the oldest
    unanswered call. Orphan and second results are dropped.
    """

    def __init__(self) -> None:
        self._calls: list[RecordedCall] = []
        self._unanswered: deque[RecordedCall] = deque()
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
        self._calls.append(call)
        self._unanswered.append(call)

    def result(self, text: str, *, is_error: bool, call_id: str | None = None, at_ns: int | None = None) -> None:
        """Give a result to the call it belongs to."""
        call = self.awaiting(call_id)
        if call is None:
            return
        self._unanswered.remove(call)
        call.result = text
        call.is_error = is_error
        call.ended_ns = at_ns

    def awaiting(self, call_id: str | None) -> RecordedCall | None:
        """Return the call that a result with *call_id* would belong to."""
        for call in self._unanswered:
            if call_id is None or call.call_id == call_id:
                return call
        return None

    def session(self, key: str | None = None) -> RecordedSession:
        """Return what was collected."""
        return RecordedSession(key, tuple(self._calls))
