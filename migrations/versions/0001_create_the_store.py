"""Create the tables of the store."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_STAGES = "('legacy', 'shadow', 'dual', 'cutover')"
_ARMS = "('legacy', 'dual', 'structured')"
_COUNTS = (
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
_TABLES = (
    "loss",
    "flag_change",
    "flag",
    "rollup_hour",
    "session_tool",
    "call",
    "payload",
    "setup",
    "session",
    "actor",
    "tool",
)


def upgrade() -> None:
    _create_names()
    _create_payload()
    _create_call()
    _create_figures()
    _create_flags()
    _create_loss()
    _forbid_rewriting_history()


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP TRIGGER flag_change_append_only ON flag_change")
        op.execute("DROP FUNCTION flag_change_append_only()")
    for table in _TABLES:
        op.drop_table(table)


def _id_type() -> sa.types.TypeEngine[int]:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _id() -> sa.Column[int]:
    return sa.Column("id", _id_type(), nullable=False)


def _reference(column: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(column, _id_type(), nullable=nullable, autoincrement=False)


def _word(column: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(column, sa.Text(), nullable=nullable)


def _number(column: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(column, sa.BigInteger(), nullable=nullable, autoincrement=False)


def _truth(column: str, *, nullable: bool = False, comment: str | None = None) -> sa.Column[bool]:
    return sa.Column(column, sa.Boolean(), nullable=nullable, comment=comment)


def _bytes(column: str, length: int, *, nullable: bool = False, comment: str | None = None) -> sa.Column[bytes]:
    return sa.Column(column, sa.LargeBinary(length), nullable=nullable, comment=comment)


def _counts() -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger(), nullable=False, server_default=sa.text("0")) for name in _COUNTS]


def _primary(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*columns, name=f"pk_{table}")


def _foreign(table: str, column: str, to: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{to}.id"], name=f"fk_{table}_{column}")


def _check(table: str, name: str, rule: str) -> sa.CheckConstraint:
    return sa.CheckConstraint(rule, name=op.f(f"ck_{table}_{name}"))


def _create_names() -> None:
    unnamed = "empty for a session's unnamed caller"
    op.create_table(
        "tool",
        _id(),
        _word("name"),
        _primary("tool", "id"),
        sa.UniqueConstraint("name", name="uq_tool_name"),
    )
    op.create_table(
        "actor",
        _id(),
        sa.Column("name", sa.Text(), nullable=False, comment=unnamed),
        _primary("actor", "id"),
        sa.UniqueConstraint("name", name="uq_actor_name"),
    )
    op.create_table(
        "session",
        _id(),
        _word("name"),
        _word("source"),
        _primary("session", "id"),
        sa.UniqueConstraint("name", "source", name="uq_session_name_source"),
        _check("session", "source", "source IN ('conversation', 'trace')"),
    )
    words = ("service", "source", "flag_version", "flag_reason", "prompt_variant", "contract_version", "dialect")
    numbers = ("flag_version", "contract_version")
    op.create_table(
        "setup",
        _id(),
        *(_number(word) if word in numbers else _word(word) for word in words),
        _primary("setup", "id"),
        sa.UniqueConstraint(*words, name="uq_setup_all"),
        comment="what thousands of calls have in common, stored once; an empty word or 0 stands for absent",
    )


def _create_payload() -> None:
    of_digest = "of the bytes as served, so that consumption can match"
    of_text = "after redaction and a visible cut, otherwise byte for byte"
    op.create_table(
        "payload",
        _id(),
        _bytes("digest", 16, comment=of_digest),
        sa.Column("size", sa.BigInteger(), nullable=False, comment="bytes as served"),
        sa.Column("text", sa.Text(), nullable=False, comment=of_text),
        _primary("payload", "id"),
        sa.UniqueConstraint("digest", name="uq_payload_digest"),
        _check("payload", "size", "size >= 0"),
    )


def _create_call() -> None:
    op.create_table(
        "call",
        _id(),
        _bytes("trace_id", 16),
        _bytes("span_id", 8),
        _bytes("parent_span_id", 8, nullable=True),
        _reference("session_id"),
        _reference("actor_id"),
        _reference("tool_id"),
        _reference("setup_id"),
        _number("sequence"),
        _number("turn", nullable=True),
        _number("user_turn", nullable=True),
        _number("started_at"),
        _number("ended_at"),
        _truth("replayed"),
        _word("stage"),
        _word("arm"),
        _word("served"),
        _word("outcome"),
        _word("code", nullable=True),
        _word("category", nullable=True),
        _word("next_action", nullable=True),
        _truth("retryable", nullable=True),
        _truth("unclassified"),
        _number("attempts"),
        _word("call_id", nullable=True),
        _bytes("args_digest", 16, nullable=True),
        _word("args_kind", nullable=True),
        _bytes("result_digest", 16, nullable=True),
        _word("legacy_kind", nullable=True),
        _reference("legacy_payload_id", nullable=True),
        _reference("structured_payload_id", nullable=True),
        _truth("sanitized", comment="some text held characters that no database takes"),
        _truth("loop"),
        _truth("loop_after_user"),
        _truth("runaway"),
        _truth("episode"),
        _truth("recovered", nullable=True),
        _primary("call", "id"),
        sa.UniqueConstraint("trace_id", "span_id", name="uq_call_trace_id_span_id"),
        _foreign("call", "session_id", "session"),
        _foreign("call", "actor_id", "actor"),
        _foreign("call", "tool_id", "tool"),
        _foreign("call", "setup_id", "setup"),
        _foreign("call", "legacy_payload_id", "payload"),
        _foreign("call", "structured_payload_id", "payload"),
        _check("call", "stage", f"stage IN {_STAGES}"),
        _check("call", "arm", f"arm IN {_ARMS}"),
        _check("call", "served", "served IN ('legacy', 'structured')"),
        _check("call", "outcome", "outcome IN ('ok', 'empty', 'error', 'cancelled', 'unanswered')"),
        _check("call", "legacy_kind", "legacy_kind IN ('exception', 'value')"),
    )
    op.create_index("ix_call_session_id_actor_id_sequence", "call", ["session_id", "actor_id", "sequence"])
    op.create_index("ix_call_tool_id_started_at", "call", ["tool_id", "started_at"])
    op.create_index(
        "ix_call_error",
        "call",
        ["tool_id", "started_at", "id"],
        sqlite_where=sa.text("outcome = 'error'"),
        postgresql_where=sa.text("outcome = 'error'"),
    )


def _create_figures() -> None:
    op.create_table(
        "session_tool",
        _reference("session_id"),
        _reference("actor_id"),
        _reference("tool_id"),
        _word("arm"),
        _number("first_at"),
        _number("last_at"),
        *_counts(),
        _primary("session_tool", "session_id", "actor_id", "tool_id", "arm"),
        _foreign("session_tool", "session_id", "session"),
        _foreign("session_tool", "actor_id", "actor"),
        _foreign("session_tool", "tool_id", "tool"),
        _check("session_tool", "arm", f"arm IN {_ARMS}"),
    )
    op.create_index("ix_session_tool_tool_id_session_id", "session_tool", ["tool_id", "session_id"])
    op.create_table(
        "rollup_hour",
        _reference("tool_id"),
        sa.Column("hour", sa.BigInteger(), nullable=False, autoincrement=False, comment="hours since 1970, UTC"),
        _word("arm"),
        *_counts(),
        _primary("rollup_hour", "tool_id", "hour", "arm"),
        _foreign("rollup_hour", "tool_id", "tool"),
        _check("rollup_hour", "arm", f"arm IN {_ARMS}"),
    )


def _create_flags() -> None:
    op.create_table(
        "flag",
        _reference("tool_id"),
        _word("stage"),
        sa.Column("rollout", sa.Float(), nullable=False, comment="percent of sessions"),
        _number("version"),
        _word("salt"),
        _primary("flag", "tool_id"),
        _foreign("flag", "tool_id", "tool"),
        _check("flag", "stage", f"stage IN {_STAGES}"),
        _check("flag", "rollout", "rollout >= 0 AND rollout <= 100"),
        _check("flag", "version", "version >= 1"),
    )
    op.create_table(
        "flag_change",
        _id(),
        _reference("tool_id"),
        _number("version"),
        _number("changed_at"),
        _word("who"),
        _word("reason"),
        _word("from_stage"),
        sa.Column("from_rollout", sa.Float(), nullable=False),
        _word("to_stage"),
        sa.Column("to_rollout", sa.Float(), nullable=False),
        _truth("forced"),
        _primary("flag_change", "id"),
        _foreign("flag_change", "tool_id", "tool"),
        sa.UniqueConstraint("tool_id", "version", name="uq_flag_change_tool_id_version"),
        _check("flag_change", "from_stage", f"from_stage IN {_STAGES}"),
        _check("flag_change", "to_stage", f"to_stage IN {_STAGES}"),
        comment="append-only: a trigger refuses to change or remove a row",
    )


def _create_loss() -> None:
    op.create_table(
        "loss",
        _id(),
        _word("process"),
        _word("reason"),
        _number("lost_at"),
        _number("count"),
        _primary("loss", "id"),
        sa.UniqueConstraint("process", "reason", "lost_at", name="uq_loss_process_reason_lost_at"),
        _check("loss", "count", "count >= 1"),
    )


def _forbid_rewriting_history() -> None:
    message = "flag_change is append-only"
    if op.get_bind().dialect.name == "sqlite":
        for verb in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER flag_change_no_{verb.lower()} BEFORE {verb} ON flag_change "
                f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
            )
        return
    op.execute(
        "CREATE FUNCTION flag_change_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{message}'; END $$"
    )
    op.execute(
        "CREATE TRIGGER flag_change_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON flag_change "
        "FOR EACH STATEMENT EXECUTE FUNCTION flag_change_append_only()"
    )
