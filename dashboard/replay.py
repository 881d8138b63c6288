"""Feed recorded sessions through the same record path as live calls, and count what they hold."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from changeover.store.ingest import ingest
from changeover.store.replay.model import ReplayError
from changeover.store.replay.read import read

from .replay_counts import Counts, Tally, tally
from .replay_records import records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from changeover.config import Config
    from changeover.store.engine import Store

ENDINGS: Final = (".json", ".jsonl", ".traj")
"""Endings of the files that are tried in a folder, each also with ``.gz``; a file that is named is always tried."""


@dataclass(slots=True)
class Found:
    """What the given paths lead to.

    Args:
        files: to try, in order, each once.
        skipped: path and reason of each folder that holds nothing to try, or cannot be looked into.
    """

    files: list[Path] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Replayed:
    """What the given paths hold, and what could not be read.

    Args:
        held: of all files.
        files: path, format and counts of each file that was read.
        skipped: path and reason of each file that was not.
        stored: calls that the store did not have yet.
    """

    held: Tally = field(default_factory=Tally)
    files: list[tuple[str, str, Counts]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    stored: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON that ``changeover replay --json`` prints."""
        return {
            **self.held.total.as_dict(),
            "tools": {name: _tool_figures(counts) for name, counts in sorted(self.held.tools.items())},
            "files": [{"path": path, "format": form, **counts.as_dict()} for path, form, counts in self.files],
            "skipped": [{"path": path, "reason": reason} for path, reason in self.skipped],
        }


def find(paths: Iterable[Path]) -> Found:
    """Return the files to try: those that are named, and those of known endings in folders.

    Raises:
        ReplayError: for a path that does not exist.
    """
    found = Found()
    for path in dict.fromkeys(paths):
        try:
            folder = stat.S_ISDIR(path.stat().st_mode)
        except (FileNotFoundError, NotADirectoryError):
            raise ReplayError(path, "does not exist: name a recorded session, or a folder of them") from None
        except OSError as error:
            found.skipped.append((str(path), _reason(error)))
        else:
            if folder:
                _look_into(path, found)
            else:
                found.files.append(path)
    found.files = list(dict.fromkeys(found.files))
    return found


def replay(
    found: Found,
    store: Store,
    config: Config,
    *,
    key: bytes,
    form: str | None = None,
    done: Callable[[Path], object] = lambda _: None,
) -> Replayed:
    """Read the files and take every recorded call into *store*, each file whole or not at all.

    Args:
        found: what [`find`][changeover.dashboard.replay.find] returned.
        store: where the calls go; calls that it has already stay as they are.
        config: the service's name and the limit of a payload's text.
        key: for the digests, the same as live calls use.
        form: name of the format; recognised by content when left out.
        done: called with each file when it is finished.

    Raises:
        StoreError: when the store refuses; files that were finished before stay stored.
    """
    replayed = Replayed(skipped=list(found.skipped))
    contents: dict[str, Path] = {}
    for path in found.files:
        try:
            recording = read(path, form)
        except ReplayError as error:
            replayed.skipped.append((str(path), error.reason))
        else:
            first = contents.setdefault(recording.digest, path)
            if first is path:
                held = tally(recording)
                replayed.stored += ingest(store, records(recording, config, key)).stored
                replayed.held.add(held)
                replayed.files.append((str(path), recording.format, held.total))
            else:
                replayed.skipped.append((str(path), f"same content as {first}"))
        done(path)
    return replayed


def _look_into(folder: Path, found: Found) -> None:
    before = len(found.files) + len(found.skipped)

    def unreadable(error: OSError) -> None:
        found.skipped.append((str(error.filename or folder), _reason(error)))

    for place, folders, names in os.walk(folder, onerror=unreadable):
        folders.sort()
        found.files += [Path(place, name) for name in sorted(names) if _is_tried(name)]
    if len(found.files) + len(found.skipped) == before:
        found.skipped.append((str(folder), f"holds no file that ends in {', '.join(ENDINGS)} (or .gz of these)"))


def _is_tried(name: str) -> bool:
    return name.lower().removesuffix(".gz").endswith(ENDINGS)


def _tool_figures(counts: Counts) -> dict[str, Any]:
    figures = counts.as_dict()
    return {name: figures[name] for name in ("calls", "errors", "loops", "runaways", "loop_rate")}


def _reason(error: OSError) -> str:
    return f"cannot be looked into: {error.strerror or error}"
