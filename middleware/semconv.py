"""Names of everything a record carries, and the words that may stand there.

The ``gen_ai.*`` names follow the OpenTelemetry semantic conventions for generative AI (development status), the
``feature_flag`` words those for feature flags; the conventions still move, so the constants live here and nowhere else.
Whoever writes a record (the middleware, a replay) and whoever reads it (the store) imports these names.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

# OpenTelemetry
OPERATION_NAME: Final = "gen_ai.operation.name"
EXECUTE_TOOL: Final = "execute_tool"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
AGENT_NAME: Final = "gen_ai.agent.name"
ERROR_TYPE: Final = "error.type"
SERVICE_NAME: Final = "service.name"

# ours
STAGE: Final = "changeover.stage"
ARM: Final = "changeover.arm"
FLAG_VERSION: Final = "changeover.flag.version"
FLAG_REASON: Final = "changeover.flag.reason"
PROMPT_VARIANT: Final = "changeover.prompt.variant"
CONTRACT_VERSION: Final = "changeover.contract.version"
DIALECT: Final = "changeover.dialect"
ARGS_DIGEST: Final = "changeover.args.digest"
ARGS_KIND: Final = "changeover.args.kind"
OUTCOME: Final = "changeover.outcome"
RETRYABLE: Final = "changeover.retryable"
NEXT_ACTION: Final = "changeover.next_action"
CATEGORY: Final = "changeover.category"
UNCLASSIFIED: Final = "changeover.unclassified"
LEGACY_KIND: Final = "changeover.legacy.kind"
LEGACY_PAYLOAD: Final = "changeover.legacy.payload"
LEGACY_DIGEST: Final = "changeover.legacy.digest"
LEGACY_BYTES: Final = "changeover.legacy.bytes"
STRUCTURED_PAYLOAD: Final = "changeover.structured.payload"
STRUCTURED_DIGEST: Final = "changeover.structured.digest"
STRUCTURED_BYTES: Final = "changeover.structured.bytes"
RESULT_DIGEST: Final = "changeover.result.digest"
SERVED: Final = "changeover.served"
ATTEMPTS: Final = "changeover.attempts"
TURN: Final = "changeover.turn"
USER_TURN: Final = "changeover.user_turn"
SEQUENCE: Final = "changeover.sequence"
SOURCE: Final = "changeover.source"

LIVE: Final = "live"
"""The value of ``changeover.source`` for a call that this library saw; a replay writes ``replay:<format>``."""


class Stage(StrEnum):
    """How far a tool's changeover has come."""

    LEGACY = "legacy"
    SHADOW = "shadow"
    DUAL = "dual"
    CUTOVER = "cutover"


class Arm(StrEnum):
    """What a session gets from a tool, pinned at its first contact."""

    LEGACY = "legacy"
    DUAL = "dual"
    STRUCTURED = "structured"


class Outcome(StrEnum):
    """How a call ended.

    ``unanswered`` exists in recorded sessions only: the recording holds no result, so the call is neither an error nor
    a success.
    """

    OK = "ok"
    EMPTY = "empty"
    ERROR = "error"
    CANCELLED = "cancelled"
    UNANSWERED = "unanswered"


class Reason(StrEnum):
    """Why an arm was chosen, in the words of OpenFeature (``feature_flag.result.reason``), lower case."""

    DEFAULT = "default"
    STATIC = "static"
    SPLIT = "split"
    CACHED = "cached"
    TARGETING_KEY_MISSING = "targeting_key_missing"
    STALE = "stale"
    DISABLED = "disabled"
    ERROR = "error"


class LegacyKind(StrEnum):
    """Whether the legacy side of an error was a raised exception or a returned value."""

    EXCEPTION = "exception"
    VALUE = "value"
