"""tau-bench and tau2-bench result files: an agent, a simulated user who may call tools too, and an environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .fields import a_list, an_object
from .messages import read_messages
from .text_rules import starts_with_error

if TYPE_CHECKING:
    from .model import RecordedSession
    from .source import Source

NAME = "tau-bench"
NAME_2 = "tau2-bench"


def recognise(source: Source) -> bool:
    """Return whether the file is a list of tau-bench runs, each with its trajectory ``traj``."""
    entries = _runs(source)
    return bool(entries) and all(isinstance(entry, dict) and "traj" in entry for entry in entries)


def read(source: Source) -> list[RecordedSession]:
    """Read each run as one session.

    Raises:
        StructureError: naming the run and message that break.
    """
    return [
        read_messages(a_list(entry["traj"], f"[{index}].traj"), f"[{index}].traj", failed=starts_with_error)
        for index, entry in enumerate(_runs(source))
    ]


def recognise_2(source: Source) -> bool:
    """Return whether the file is a tau2-bench result file with ``simulations``."""
    value = source.values[0]
    return len(source.values) == 1 and isinstance(value, dict) and isinstance(value.get("simulations"), list)


def read_2(source: Source) -> list[RecordedSession]:
    """Read each simulation as one session; calls that the simulated user made are the actor ``user``.

    Raises:
        StructureError: naming the simulation and message that break.
    """
    sessions = []
    for index, entry in enumerate(source.values[0]["simulations"]):
        place = f"simulations[{index}]"
        messages = a_list(an_object(entry, place).get("messages"), f"{place}.messages")
        sessions.append(read_messages(messages, f"{place}.messages", failed=starts_with_error))
    return sessions


def _runs(source: Source) -> list[Any]:
    first = source.values[0]
    return first if len(source.values) == 1 and isinstance(first, list) else source.values
