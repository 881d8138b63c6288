"""tau-bench and tau2-bench result files: an agent, a simulated user who may call tools too, and an environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .fields import a_list, an_object
from .messages import by_text, numbered, read_messages
from .text_rules import starts_with_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .messages import Failed
    from .model import RecordedSession
    from .source import Source

NAME = "tau-bench"
NAME_2 = "tau2-bench"


def recognise(source: Source) -> bool:
    """Return whether the file holds tau-bench runs, each with its trajectory ``traj``."""
    return any(isinstance(entry, dict) and "traj" in entry for _, entry in _runs(source))


def read(source: Source) -> list[RecordedSession]:
    """Read each run as one session.

    Raises:
        StructureError: naming the run and message that break.
    """
    return [_session(entry, place, "traj", by_text(starts_with_error)) for place, entry in _runs(source)]


def recognise_2(source: Source) -> bool:
    """Return whether the file is a tau2-bench result file with ``simulations``."""
    value = source.values[0]
    return not source.lines and isinstance(value, dict) and isinstance(value.get("simulations"), list)


def read_2(source: Source) -> list[RecordedSession]:
    """Read each simulation as one session; calls that the simulated user made are the actor ``user``.

    Raises:
        StructureError: naming the simulation and message that break.
    """
    simulations = numbered(source.values[0]["simulations"], "simulations")
    return [_session(entry, place, "messages", _failed_2) for place, entry in simulations]


def _failed_2(message: Mapping[str, Any], text: str) -> bool:
    flag = message.get("error")
    return flag if isinstance(flag, bool) else starts_with_error(text)


def _session(entry: Any, place: str, name: str, failed: Failed) -> RecordedSession:
    # A run that broke off has no messages.
    inside = f"{place}.{name}"
    messages = a_list(an_object(entry, place).get(name), inside)
    return read_messages(numbered(messages, inside), failed=failed)


def _runs(source: Source) -> list[tuple[str, Any]]:
    first = source.values[0]
    return numbered(first, "") if not source.lines and isinstance(first, list) else source.placed()
