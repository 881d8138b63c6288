"""InterCode result files: one entry a task, with parallel lists of actions, observations and their validity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .conversation import Conversation
from .fields import a_list, an_object, as_text
from .model import StructureError
from .text_rules import shell_failed

if TYPE_CHECKING:
    from pathlib import Path

    from .model import RecordedSession
    from .source import Source

NAME = "intercode"


def recognise(source: Source) -> bool:
    """Return whether every document is a task with a ``turn_history``, or an object of such tasks."""
    entries = _entries(source.values)
    return bool(entries) and all(isinstance(entry, dict) and "turn_history" in entry for _, entry in entries)


def read(source: Source) -> list[RecordedSession]:
    """Read each task as one session; an action is one turn.

    Raises:
        StructureError: naming the task that breaks.
    """
    folder = _folder_after_results(source.path)
    return [_session(entry, place, folder) for place, entry in _entries(source.values)]


def _entries(values: list[Any]) -> list[tuple[str, Any]]:
    if len(values) != 1:
        return [(f"line {number}", value) for number, value in enumerate(values, 1)]
    value = values[0]
    if isinstance(value, list):
        return [(f"[{index}]", entry) for index, entry in enumerate(value)]
    if isinstance(value, dict) and "turn_history" not in value:
        return list(value.items())
    return [("the task", value)]


def _session(entry: dict[str, Any], place: str, folder: str | None) -> RecordedSession:
    history = an_object(entry["turn_history"], f"{place}.turn_history")
    actions = a_list(history.get("actions"), f"{place}.turn_history.actions")
    observations = a_list(history.get("observations"), f"{place}.turn_history.observations")
    valid = a_list(history.get("valid_action"), f"{place}.turn_history.valid_action")
    tool = folder or _environment(entry)
    conversation = Conversation()
    for index, action in enumerate(actions):
        if not isinstance(action, str):
            raise StructureError(f"{place}.turn_history.actions[{index}] must be a text")
        conversation.call(conversation.begin_turn(), tool, {"action": action.strip()})
        if index < len(observations):
            text = as_text(observations[index])
            said = valid[index] if index < len(valid) else None
            conversation.result(text, is_error=not said if isinstance(said, bool) else shell_failed(text))
    return conversation.session()


def _folder_after_results(path: Path) -> str | None:
    folders = path.absolute().parts[:-1]
    for before, after in zip(reversed(folders[:-1]), reversed(folders[1:]), strict=True):
        if before == "results":
            return after
    return None


def _environment(entry: dict[str, Any]) -> str:
    environment = entry.get("environment")
    return environment.removeprefix("ic_") if isinstance(environment, str) and environment else "intercode"
