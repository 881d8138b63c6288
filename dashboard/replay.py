"""Feed recorded sessions through the same record path as live calls, and count what they hold."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from changeover import semconv
from changeover.arguments import canonical_recorded, digest
from changeover.classify import Classified, Traits, classify_result
from changeover.contract import CONTRACT_VERSION, Dialect, ToolError
from changeover.payloads import payload_attributes, recorded_json, recorded_text, structured_json
from changeover.semconv import Arm, LegacyKind, Outcome, Reason, Stage
from changeover.spans import build_record
from changeover.store.ingest import ingest
from changeover.store.loops import Call, mark
from changeover.store.replay.model import ReplayError
from changeover.store.replay.read import read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from changeover.config import Config
    from changeover.store.engine import Store
    from changeover.store.replay.model import RecordedCall, RecordedSession, Recording

ENDINGS: Final = (".json", ".jsonl", ".traj")
"""Endings of the files that are tried in a folder, each also with ``.gz``; a file that is named is always tried."""

COUNTED: Final = ("calls", "errors", "loops", "loops_after_user", "runaways")


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
        for name in ("sessions", *COUNTED):
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(slots=True)
class Replayed:
    """What the given paths hold, and which files could not be read.

    Args:
        total: of all files.
        tools: by the tool's name; ``sessions`` counts those that call it.
        files: path, format and counts of each file that was read.
        skipped: path and reason of each file that was not.
        stored: calls that the store did not have yet.
    """

    total: Counts = field(default_factory=Counts)
    tools: dict[str, Counts] = field(default_factory=dict)
    files: list[tuple[str, str, Counts]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    stored: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON that ``changeover replay --json`` prints."""
        tools = {name: _tool_figures(self.tools[name]) for name in sorted(self.tools)}
        return {
            **_figures(self.total),
            "tools": tools,
            "files": [{"path": path, "format": form, **_figures(counts)} for path, form, counts in self.files],
            "skipped": [{"path": path, "reason": reason} for path, reason in self.skipped],
        }


def find(paths: Iterable[Path]) -> list[Path]:
    """Return the files to try: those that are named, and those of known endings in folders, each once.

    Raises:
        ReplayError: for a path that does not exist.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            found.update(dict.fromkeys(_in_folder(path)))
        elif path.exists():
            found[path] = None
        else:
            raise ReplayError(path, "does not exist: name a recorded session, or a folder of them")
    return list(found)


def replay(
    files: Sequence[Path],
    store: Store,
    config: Config,
    *,
    key: bytes,
    form: str | None = None,
    done: Callable[[Path], object] = lambda _: None,
) -> Replayed:
    """Read *files* and take every recorded call into *store*, each file whole or not at all.

    Args:
        files: what [`find`][changeover.dashboard.replay.find] returned.
        store: where the calls go; calls that it has already stay as they are.
        config: the service's name and the limit of a payload's text.
        key: for the digests, the same as live calls use.
        form: name of the format; recognised by content when left out.
        done: called with each file when it is finished.

    Raises:
        StoreError: when the store refuses; files that were finished before stay stored.
    """
    replayed = Replayed()
    contents: dict[str, Path] = {}
    for path in files:
        try:
            recording = read(path, form)
        except ReplayError as error:
            replayed.skipped.append((str(path), error.reason))
        else:
            first = contents.setdefault(recording.digest, path)
            if first is path:
                replayed.stored += ingest(store, _records(recording, config, key)).stored
                _count(recording, replayed)
            else:
                replayed.skipped.append((str(path), f"same content as {first}"))
        done(path)
    return replayed


def _in_folder(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.removesuffix(".gz").endswith(ENDINGS):
                yield Path(place, name)


def _records(recording: Recording, config: Config, key: bytes) -> Iterator[dict[str, Any]]:
    for index, session in enumerate(recording.sessions):
        place = f"{recording.digest}#{index}"
        name = session.key or f"{recording.path.name}#{index + 1}@{recording.digest[:8]}"
        trace_id = _hash(16, recording.format, session.key or place)
        sequence, now = 0, recording.modified_ns
        for ordinal, call in enumerate(session.calls):
            now = now if call.started_ns is None else call.started_ns
            sequence = max(sequence + 1, now)
            failure = _failure(call)
            yield build_record(
                tool=call.tool,
                trace_id=trace_id.hex(),
                span_id=_hash(8, trace_id.hex(), call.key or f"{place}#{ordinal}").hex(),
                start_ns=now,
                end_ns=max(now, call.ended_ns or now),
                status="unset" if call.is_error is None else "error" if call.is_error else "ok",
                attributes={
                    semconv.CONVERSATION_ID: name,
                    semconv.SEQUENCE: sequence,
                    semconv.SOURCE: f"replay:{recording.format}",
                    **_call_attributes(call, key),
                    **(_error_attributes(call, failure, key, config.payload_bytes) if failure else {}),
                },
                service=config.service,
            )


def _call_attributes(call: RecordedCall, key: bytes) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        semconv.STAGE: Stage.SHADOW,
        semconv.ARM: Arm.LEGACY,
        semconv.SERVED: Arm.LEGACY,
        semconv.FLAG_VERSION: 0,
        semconv.FLAG_REASON: Reason.DEFAULT,
        semconv.CONTRACT_VERSION: CONTRACT_VERSION,
        semconv.DIALECT: Dialect.ENVELOPE,
        semconv.OUTCOME: _outcome(call),
        semconv.TURN: call.turn,
        semconv.USER_TURN: call.user_turn,
        semconv.ARGS_DIGEST: digest(canonical_recorded(call.arguments), key).hex(),
        semconv.ARGS_KIND: "raw",
    }
    if call.actor:
        attributes[semconv.AGENT_NAME] = call.actor
    if call.call_id is not None:
        attributes[semconv.TOOL_CALL_ID] = call.call_id
    if call.is_error is False:
        attributes[semconv.RESULT_DIGEST] = digest(_result_bytes(call), key).hex()
    return attributes


def _error_attributes(call: RecordedCall, found: Classified, key: bytes, limit: int) -> dict[str, Any]:
    error = found.error
    return {
        semconv.ERROR_TYPE: error.code,
        semconv.RETRYABLE: error.retryable,
        semconv.NEXT_ACTION: error.next_action.value,
        semconv.CATEGORY: error.category.value,
        semconv.UNCLASSIFIED: found.unclassified,
        semconv.LEGACY_KIND: LegacyKind.VALUE,
        **payload_attributes(
            recorded_text(call.result or "", key, limit),
            recorded_json(structured_json(error, Dialect.ENVELOPE), key, limit),
        ),
    }


def _failure(call: RecordedCall) -> Classified | None:
    if not call.is_error:
        return None
    # A recorded text has no exception behind it: what is no explicit shape stays unclassified.
    found = classify_result(call.result, Traits(tool=call.tool))
    return found or Classified(ToolError("internal_error"), unclassified=True)


def _outcome(call: RecordedCall) -> Outcome:
    if call.is_error is None:
        return Outcome.UNANSWERED
    return Outcome.ERROR if call.is_error else Outcome.OK


def _result_bytes(call: RecordedCall) -> bytes:
    return (call.result or "").strip().encode("utf-8", "surrogatepass")


def _count(recording: Recording, replayed: Replayed) -> None:
    counts = Counts()
    for session in recording.sessions:
        by_tool = _session_counts(session)
        for name, tool_counts in by_tool.items():
            replayed.tools.setdefault(name, Counts()).add(tool_counts)
            tool_counts.sessions = 0
            counts.add(tool_counts)
        counts.sessions += 1
    replayed.total.add(counts)
    replayed.files.append((str(recording.path), recording.format, counts))


def _session_counts(session: RecordedSession) -> dict[str, Counts]:
    by_actor: dict[str, list[Call]] = {}
    for ordinal, recorded in enumerate(session.calls):
        by_actor.setdefault(recorded.actor, []).append(_as_call(ordinal, recorded))
    by_tool: dict[str, Counts] = {}
    for calls in by_actor.values():
        for call, marks in zip(calls, mark(calls), strict=True):
            counts = by_tool.setdefault(str(call.tool), Counts(sessions=1))
            counts.calls += 1
            counts.errors += call.outcome == Outcome.ERROR
            counts.loops += marks.loop
            counts.loops_after_user += marks.loop_after_user
            counts.runaways += marks.runaway
    return by_tool


def _as_call(ordinal: int, call: RecordedCall) -> Call:
    return Call(
        identity=ordinal.to_bytes(8, "big"),
        sequence=ordinal,
        tool=call.tool,
        args=canonical_recorded(call.arguments),
        outcome=_outcome(call).value,
        turn=call.turn,
        user_turn=call.user_turn,
        started=ordinal,
        ended=ordinal,
        result=_result_bytes(call) if call.is_error is False else None,
    )


def _figures(counts: Counts) -> dict[str, Any]:
    return {
        "sessions": counts.sessions,
        **{name: getattr(counts, name) for name in COUNTED},
        "loop_rate": counts.loop_rate,
    }


def _tool_figures(counts: Counts) -> dict[str, Any]:
    figures = _figures(counts)
    return {name: figures[name] for name in ("calls", "errors", "loops", "runaways", "loop_rate")}


def _hash(size: int, *parts: str) -> bytes:
    text = "\x00".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=size).digest()
