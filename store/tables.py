"""The tables of the store. Times are unix nanoseconds, UTC, in ``BIGINT`` columns; digests and ids are bytes.

Enumerated words are short ``TEXT`` with a ``CHECK``; ``changeover.semconv`` is where the words are defined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from changeover.semconv import Arm, LegacyKind, Outcome, Stage

if TYPE_CHECKING:
    from enum import StrEnum

metadata: Final = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    },
)

# SQLite numbers rows by itself only in a column declared INTEGER.
_ID = BigInteger().with_variant(Integer, "sqlite")

SESSION_SOURCES: Final = ("conversation", "trace")
"""Where a session's name comes from: a real conversation id, or the trace id that stands in for one."""

COUNTS: Final = (
    "calls",
    "empties",
    "errors",
    "cancelled",
    "unanswered",
    "unclassified",
    "loops",
    "futile_loops",
    "loops_after_user",
    "runaways",
    "episodes",
    "looped_episodes",
    "recovered",
    "unrecovered",
)
"""What is counted of a set of calls, in ``session_tool`` and in ``rollup_hour`` alike."""


def one_of(column: str, words: type[StrEnum] | tuple[str, ...]) -> CheckConstraint:
    """Return the check that *column* holds one of *words* (or nothing, where it may be null)."""
    listed = ", ".join(f"'{word!s}'" for word in words)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


def _counts() -> list[Column[int]]:
    return [Column(name, BigInteger, nullable=False, server_default=text("0")) for name in COUNTS]


tool: Final = Table(
    "tool",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("name", Text, nullable=False),
    UniqueConstraint("name"),
)

actor: Final = Table(
    "actor",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("name", Text, nullable=False, comment="empty for a session's unnamed caller"),
    UniqueConstraint("name"),
)

session: Final = Table(
    "session",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("name", Text, nullable=False),
    Column("source", Text, nullable=False),
    UniqueConstraint("name", "source"),
    one_of("source", SESSION_SOURCES),
)

setup: Final = Table(
    "setup",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("service", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("flag_version", BigInteger, nullable=False),
    Column("flag_reason", Text, nullable=False),
    Column("prompt_variant", Text, nullable=False),
    Column("contract_version", BigInteger, nullable=False),
    Column("dialect", Text, nullable=False),
    UniqueConstraint(
        "service",
        "source",
        "flag_version",
        "flag_reason",
        "prompt_variant",
        "contract_version",
        "dialect",
        name="uq_setup_all",
    ),
    comment="what thousands of calls have in common, stored once; an empty word or 0 stands for absent",
)

payload: Final = Table(
    "payload",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("digest", LargeBinary(16), nullable=False, comment="of the bytes as served, so that consumption can match"),
    Column("size", BigInteger, nullable=False, comment="bytes as served"),
    Column("text", Text, nullable=False, comment="after redaction and a visible cut, otherwise byte for byte"),
    UniqueConstraint("digest"),
    CheckConstraint("size >= 0", name="size"),
)

call: Final = Table(
    "call",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("trace_id", LargeBinary(16), nullable=False),
    Column("span_id", LargeBinary(8), nullable=False),
    Column("parent_span_id", LargeBinary(8)),
    Column("session_id", _ID, ForeignKey("session.id"), nullable=False),
    Column("actor_id", _ID, ForeignKey("actor.id"), nullable=False),
    Column("tool_id", _ID, ForeignKey("tool.id"), nullable=False),
    Column("setup_id", _ID, ForeignKey("setup.id"), nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("turn", BigInteger),
    Column("user_turn", BigInteger),
    Column("started_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger, nullable=False),
    Column("replayed", Boolean, nullable=False),
    Column("stage", Text, nullable=False),
    Column("arm", Text, nullable=False),
    Column("served", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("code", Text),
    Column("category", Text),
    Column("next_action", Text),
    Column("retryable", Boolean),
    Column("unclassified", Boolean, nullable=False),
    Column("attempts", BigInteger, nullable=False),
    Column("call_id", Text),
    Column("args_digest", LargeBinary(16)),
    Column("args_kind", Text),
    Column("result_digest", LargeBinary(16)),
    Column("legacy_kind", Text),
    Column("legacy_payload_id", _ID, ForeignKey("payload.id")),
    Column("structured_payload_id", _ID, ForeignKey("payload.id")),
    Column("sanitized", Boolean, nullable=False, comment="some text held characters that no database takes"),
    Column("loop", Boolean, nullable=False),
    Column("loop_after_user", Boolean, nullable=False),
    Column("runaway", Boolean, nullable=False),
    Column("episode", Boolean, nullable=False),
    Column("recovered", Boolean),
    UniqueConstraint("trace_id", "span_id"),
    one_of("stage", Stage),
    one_of("arm", Arm),
    one_of("served", ("legacy", "structured")),
    one_of("outcome", Outcome),
    one_of("legacy_kind", LegacyKind),
    Index("ix_call_session_id_actor_id_sequence", "session_id", "actor_id", "sequence"),
    Index("ix_call_tool_id_started_at", "tool_id", "started_at"),
    Index(
        "ix_call_error",
        "tool_id",
        "started_at",
        "id",
        sqlite_where=text("outcome = 'error'"),
        postgresql_where=text("outcome = 'error'"),
    ),
)

session_tool: Final = Table(
    "session_tool",
    metadata,
    Column("session_id", _ID, ForeignKey("session.id"), primary_key=True),
    Column("actor_id", _ID, ForeignKey("actor.id"), primary_key=True),
    Column("tool_id", _ID, ForeignKey("tool.id"), primary_key=True),
    Column("arm", Text, primary_key=True),
    Column("first_at", BigInteger, nullable=False),
    Column("last_at", BigInteger, nullable=False),
    *_counts(),
    one_of("arm", Arm),
    Index("ix_session_tool_tool_id_session_id", "tool_id", "session_id"),
)

rollup_hour: Final = Table(
    "rollup_hour",
    metadata,
    Column("tool_id", _ID, ForeignKey("tool.id"), primary_key=True),
    Column("hour", BigInteger, primary_key=True, autoincrement=False, comment="hours since 1970, UTC"),
    Column("arm", Text, primary_key=True),
    *_counts(),
    one_of("arm", Arm),
)

flag: Final = Table(
    "flag",
    metadata,
    Column("tool_id", _ID, ForeignKey("tool.id"), primary_key=True, autoincrement=False),
    Column("stage", Text, nullable=False),
    Column("rollout", Float, nullable=False, comment="percent of sessions"),
    Column("version", BigInteger, nullable=False),
    Column("salt", Text, nullable=False),
    one_of("stage", Stage),
    CheckConstraint("rollout >= 0 AND rollout <= 100", name="rollout"),
    CheckConstraint("version >= 1", name="version"),
)

flag_change: Final = Table(
    "flag_change",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("tool_id", _ID, ForeignKey("tool.id"), nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    Column("who", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("from_stage", Text, nullable=False),
    Column("from_rollout", Float, nullable=False),
    Column("to_stage", Text, nullable=False),
    Column("to_rollout", Float, nullable=False),
    Column("forced", Boolean, nullable=False),
    UniqueConstraint("tool_id", "version"),
    one_of("from_stage", Stage),
    one_of("to_stage", Stage),
    comment="append-only: a trigger refuses to change or remove a row",
)

loss: Final = Table(
    "loss",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("process", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("lost_at", BigInteger, nullable=False),
    Column("count", BigInteger, nullable=False),
    UniqueConstraint("process", "reason", "lost_at"),
    CheckConstraint("count >= 1", name="count"),
)
