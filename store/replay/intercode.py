"""InterCode result files: one entry a task, with parallel lists of actions, observations and their validity.

The entries stand in the file as they are, or under ``logs``. What people did by hand is one list of steps instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .conversation import Conversation
from .fields import a_list, an_object, as_text
from .messages import numbered
from .model import StructureError
from .text_rules import shell_failed

if TYPE_CHECKING:
    from pathlib import Path

    from .model import RecordedSession
    from .source import Source

NAME = "intercode"
_PREFIX = "ic_"
_ABSENT = object()


class _Step(NamedTuple):
    place: str
    action: Any
    observation: Any = _ABSENT
    valid: Any = None


def recognise(source: Source) -> bool:
    """Return whether some entry is a task that was acted on."""
    return any(isinstance(entry, dict) and _is_task(entry) for _, entry in _entries(source))


def read(source: Source) -> list[RecordedSession]:
    """Read each task as one session; an action is one turn.

    Raises:
        StructureError: naming the task that breaks.
    """
    folder = _folder_after_results(source.path)
    return [_session(an_object(entry, place), place, folder) for place, entry in _entries(source)]


def _is_task(entry: dict[str, Any]) -> bool:
    return "turn_history" in entry or ("trajectory" in entry and str(entry.get("environment")).startswith(_PREFIX))


def _entries(source: Source) -> list[tuple[str, Any]]:
    if source.lines:
        return source.placed()
    value = source.values[0]
    if isinstance(value, dict) and isinstance(value.get("logs"), dict | list):
        value = value["logs"]
    if isinstance(value, list):
        return numbered(value, "")
    if isinstance(value, dict) and not _is_task(value):
        return list(value.items())
    return [("the task", value)]


def _session(entry: dict[str, Any], place: str, folder: str | None) -> RecordedSession:
    tool = folder or _environment(entry)
    conversation = Conversation()
    for step in _history(entry, place) if "turn_history" in entry else _trajectory(entry, place):
        if not isinstance(step.action, str):
            raise StructureError(f"{step.place} must be a text")
        conversation.call(conversation.begin_turn(), tool, {"action": step.action.strip()})
        if step.observation is not _ABSENT:
            text = as_text(step.observation)
            conversation.result(text, is_error=not step.valid if isinstance(step.valid, bool) else shell_failed(text))
    return conversation.session()


def _history(entry: dict[str, Any], place: str) -> list[_Step]:
    inside = f"{place}.turn_history"
    history = an_object(entry["turn_history"], inside)
    actions, observations, valid = (
        a_list(history.get(name), f"{inside}.{name}") for name in ("actions", "observations", "valid_action")
    )
    return [
        _Step(
            here,
            action,
            observations[index] if index < len(observations) else _ABSENT,
            valid[index] if index < len(valid) else None,
        )
        for index, (here, action) in enumerate(numbered(actions, f"{inside}.actions"))
    ]


def _trajectory(entry: dict[str, Any], place: str) -> list[_Step]:
    inside = f"{place}.trajectory"
    steps = []
    for here, step in numbered(a_list(entry.get("trajectory"), inside), inside):
        told = an_object(step, here)
        steps.append(_Step(f"{here}.action", told.get("action"), told.get("observation", _ABSENT)))
    return steps


def _folder_after_results(path: Path) -> str | None:
    folders = path.absolute().parts[:-1]
    for before, after in zip(reversed(folders[:-1]), reversed(folders[1:]), strict=True):
        if before == "results":
            return after
    return None


def _environment(entry: dict[str, Any]) -> str:
    environment = entry.get("environment")
    return environment.removeprefix(_PREFIX) if isinstance(environment, str) and environment else "intercode"
