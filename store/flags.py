"""Read and set the flags of tools; every change is written to the audit trail in the same transaction."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import select

from changeover.rollout import Flag
from changeover.semconv import Stage

from .clock import moment
from .errors import FlagError
from .interning import tool_id
from .sql import insert, take_turns
from .tables import flag, flag_change, tool
from .text import clean, clean_name

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection, Row

    from .engine import Store

MAX_REASON_CHARACTERS: Final = 2_000
_FULL: Final = 100.0
_LISTED_TOOLS = 10


@dataclass(frozen=True, slots=True)
class FlagChange:
    """One line of the audit trail.

    Args:
        tool: whose flag was changed.
        at: when, UTC.
        who: the person or program that changed it.
        reason: why, in their words.
        from_stage: the stage before.
        from_rollout: the rollout before, in percent.
        to_stage: the stage since.
        to_rollout: the rollout since, in percent.
        version: of the flag since.
        forced: whether a refusal was overridden.
    """

    tool: str
    at: datetime
    who: str
    reason: str
    from_stage: Stage
    from_rollout: float
    to_stage: Stage
    to_rollout: float
    version: int
    forced: bool


def list_flags(store: Store) -> list[Flag]:
    """Return the flags that somebody has set, by tool; every other tool is in shadow.

    Raises:
        StoreError: when the database cannot be read.
    """
    query = select(tool.c.name, flag).join(flag, flag.c.tool_id == tool.c.id).order_by(tool.c.name)
    with store.read() as connection:
        return [_flag(row) for row in connection.execute(query)]


def set_flag(
    store: Store,
    tool: str,
    *,
    stage: Stage | str | None = None,
    rollout: float | None = None,
    who: str,
    reason: str,
    force: bool = False,
    clock: Any = time.time_ns,
) -> FlagChange:
    """Set the flag of *tool* and write down who did it and why.

    Args:
        store: where the flag is kept.
        tool: the tool's name; one that no call was recorded of needs *force*.
        stage: the new stage; the present one when left out.
        rollout: percent of sessions; the present one when left out, and 100 for a first ``dual`` or ``cutover``.
        who: the person or program that sets it.
        reason: why; not empty.
        force: set the flag of a tool that the store does not know.
        clock: unix nanoseconds.

    Raises:
        FlagError: for a stage, rollout, reason or tool that cannot be taken.
        StoreError: when the database cannot be written.
    """
    new_stage = None if stage is None else _checked_stage(stage)
    new_rollout = None if rollout is None else _checked_rollout(rollout)
    reason, who = _checked_words(reason, who)
    with store.write() as connection:
        take_turns(connection)
        name = _checked_tool(connection, tool, force=force)
        number = tool_id(connection, name)
        before = _current(connection, name)
        after = _after(before, new_stage, new_rollout)
        change = FlagChange(
            tool=name,
            at=moment(at := int(clock())),
            who=who,
            reason=reason,
            from_stage=before.stage,
            from_rollout=before.rollout,
            to_stage=after.stage,
            to_rollout=after.rollout,
            version=after.version,
            forced=force,
        )
        _write(connection, number, after, change, at)
    return change


def history(store: Store, tool: str | None = None, limit: int = 100) -> list[FlagChange]:
    """Return the newest *limit* changes, newest first, of *tool* or of all tools.

    Raises:
        StoreError: when the database cannot be read.
    """
    query = select(_tool.c.name, flag_change).join(_tool, _tool.c.id == flag_change.c.tool_id)
    if tool is not None:
        query = query.where(_tool.c.name == clean_name(tool))
    query = query.order_by(flag_change.c.id.desc()).limit(limit)
    with store.read() as connection:
        return [_change(row) for row in connection.execute(query)]


_tool = tool


def _checked_stage(stage: Stage | str) -> Stage:
    try:
        found = Stage(stage)
    except ValueError:
        words = ", ".join(word for word in Stage if word is not Stage.DUAL)
        raise FlagError(f"unknown stage {stage!r}; use one of {words}") from None
    if found is Stage.DUAL:
        raise FlagError("stage 'dual' needs a channel that carries two payloads, which a function is not; use cutover")
    return found


def _checked_rollout(rollout: object) -> float:
    if isinstance(rollout, bool) or not isinstance(rollout, int | float) or not 0 <= rollout <= _FULL:
        raise FlagError(f"rollout is a share of sessions in percent, 0 to 100, not {rollout!r}")
    return float(rollout)


def _checked_words(reason: str, who: str) -> tuple[str, str]:
    reason, who = clean(reason).strip(), clean_name(who).strip()
    if not reason:
        raise FlagError("say why: the reason is kept in the audit trail and must not be empty")
    if len(reason) > MAX_REASON_CHARACTERS:
        raise FlagError(f"the reason has {len(reason)} characters; keep it to {MAX_REASON_CHARACTERS}")
    if not who:
        raise FlagError("say who: the name is kept in the audit trail and must not be empty")
    return reason, who


def _checked_tool(connection: Connection, name: str, *, force: bool) -> str:
    name = clean_name(name)
    if not name.strip():
        raise FlagError("name the tool")
    if force or connection.execute(select(tool.c.id).where(tool.c.name == name)).first() is not None:
        return name
    raise FlagError(
        f"no call of a tool named {name!r} was recorded; known: {_known_tools(connection)}; "
        "use --force to set the flag beforehand"
    )


def _known_tools(connection: Connection) -> str:
    names = list(connection.scalars(select(tool.c.name).order_by(tool.c.name)))
    if not names:
        return "none yet"
    more = len(names) - _LISTED_TOOLS
    return ", ".join(names[:_LISTED_TOOLS]) + (f" and {more} more" if more > 0 else "")


def _current(connection: Connection, name: str) -> Flag:
    query = select(tool.c.name, flag).join(flag, flag.c.tool_id == tool.c.id).where(tool.c.name == name)
    row = connection.execute(query).first()
    return Flag(name) if row is None else _flag(row)


def _after(before: Flag, stage: Stage | None, rollout: float | None) -> Flag:
    stage = before.stage if stage is None else stage
    if rollout is None:
        # Nobody has chosen a share yet: a first cutover that names none means everyone.
        first = before.version == 0 or before.stage in (Stage.LEGACY, Stage.SHADOW)
        rollout = _FULL if first and stage in (Stage.DUAL, Stage.CUTOVER) else before.rollout
    return Flag(before.tool, stage, rollout, before.version + 1, before.salt or secrets.token_hex(8))


def _write(connection: Connection, number: int, after: Flag, change: FlagChange, at: int) -> None:
    values = {"stage": str(after.stage), "rollout": after.rollout, "version": after.version}
    statement = insert(connection, flag).values(tool_id=number, salt=after.salt, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=["tool_id"], set_=values))
    connection.execute(
        insert(connection, flag_change).values(
            tool_id=number,
            version=change.version,
            changed_at=at,
            who=change.who,
            reason=change.reason,
            from_stage=str(change.from_stage),
            from_rollout=change.from_rollout,
            to_stage=str(change.to_stage),
            to_rollout=change.to_rollout,
            forced=change.forced,
        )
    )


def _flag(row: Row[Any]) -> Flag:
    return Flag(row.name, Stage(row.stage), row.rollout, row.version, row.salt)


def _change(row: Row[Any]) -> FlagChange:
    return FlagChange(
        tool=row.name,
        at=moment(row.changed_at),
        who=row.who,
        reason=row.reason,
        from_stage=Stage(row.from_stage),
        from_rollout=row.from_rollout,
        to_stage=Stage(row.to_stage),
        to_rollout=row.to_rollout,
        version=row.version,
        forced=row.forced,
    )
