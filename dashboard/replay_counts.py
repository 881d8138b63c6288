"""What recorded sessions hold: the figures that ``changeover replay`` prints, by the same rules as the store's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from changeover.arguments import canonical_recorded
from changeover.semconv import Outcome
from changeover.store.loops import Call, mark
from changeover.store.text import clean_name

if TYPE_CHECKING:
    from changeover.store.replay.model import RecordedCall, RecordedSession, Recording

COUNTED: Final = ("sessions", "calls", "errors", "loops", "loops_after_user", "runaways")


@dataclass(slots=True)
class Counts:
    """What some recorded sessions hold."""

    sessions: int = 0
    calls: int = 0
    errors: int = 0
    loops: int = 0
    loops_after_user: int = 0
    runaways: int = 0

    @property
    def loop_rate(self) -> float | None:
        """Loops per error, to four digits; ``None`` without errors, where there is no rate."""
        return round(self.loops / self.errors, 4) if self.errors else None

    def add(self, other: Counts) -> None:
        """Add the counts of *other*."""
        for name in COUNTED:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def as_dict(self) -> dict[str, Any]:
        """Return the counts by name, with the loop rate."""
        return {**{name: getattr(self, name) for name in COUNTED}, "loop_rate": self.loop_rate}


@dataclass(slots=True)
class Tally:
    """What one or more recordings hold.

    Args:
        total: of all sessions.
        tools: by the tool's name; ``sessions`` are those that call it.
    """

    total: Counts = field(default_factory=Counts)
    tools: dict[str, Counts] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        """Add what *other* holds."""
        self.total.add(other.total)
        for name, counts in other.tools.items():
            self.tools.setdefault(name, Counts()).add(counts)


def tally(recording: Recording) -> Tally:
    """Return what *recording* holds."""
    held = Tally()
    for session in recording.sessions:
        _add_session(held, session)
    return held


def outcome(call: RecordedCall) -> Outcome:
    """Return how *call* ended, as far as figures go; without a result it is neither an error nor a success."""
    if call.is_error is None:
        return Outcome.UNANSWERED
    return Outcome.ERROR if call.is_error else Outcome.OK


def result_bytes(call: RecordedCall) -> bytes | None:
    """Return what makes two successes the same success: the text without outer white space; ``None`` for no success."""
    if call.is_error is not False:
        return None
    return (call.result or "").strip().encode("utf-8", "surrogatepass")


def _add_session(held: Tally, session: RecordedSession) -> None:
    by_actor: dict[str, list[Call]] = {}
    for ordinal, recorded in enumerate(session.calls):
        by_actor.setdefault(clean_name(recorded.actor), []).append(_as_call(ordinal, recorded))
    held.total.sessions += 1
    for name in {str(call.tool) for calls in by_actor.values() for call in calls}:
        held.tools.setdefault(name, Counts()).sessions += 1
    for calls in by_actor.values():
        for call, marks in zip(calls, mark(calls), strict=True):
            for counts in (held.total, held.tools[str(call.tool)]):
                counts.calls += 1
                counts.errors += call.outcome == Outcome.ERROR
                counts.loops += marks.loop
                counts.loops_after_user += marks.loop_after_user
                counts.runaways += marks.runaway


def _as_call(ordinal: int, call: RecordedCall) -> Call:
    return Call(
        identity=ordinal.to_bytes(8, "big"),
        sequence=ordinal,
        # As the store writes it, so that two tools are two here when they are two there.
        tool=clean_name(call.tool),
        args=canonical_recorded(call.arguments),
        outcome=outcome(call).value,
        turn=call.turn,
        user_turn=call.user_turn,
        started=ordinal,
        ended=ordinal,
        result=result_bytes(call),
    )
