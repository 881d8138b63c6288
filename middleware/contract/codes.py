"""The closed set of error codes, version 1, and what each one means to an agent.

This table is the single source of truth: the enumeration, the dialects, the command line's mapping table and the
documentation are all read from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTRACT_VERSION: Final = 1


class NextAction(StrEnum):
    """What the model should do about *the same call*; a corrected call is always allowed."""

    RETRY = "retry"
    ASK_USER = "ask_user"
    STOP = "stop"


class Category(StrEnum):
    """The coarse kind of a failure, the ``errorCategory`` of the ``mcp`` dialect."""

    VALIDATION = "validation"
    PERMISSION = "permission"
    BUSINESS = "business"
    TRANSIENT = "transient"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class CodeSpec:
    """One row of the contract.

    ``http`` holds the HTTP status codes and ``grpc`` the gRPC status names that map to this code. ``default_message``
    is what an agent reads when the tool's owner wrote no message: it never claims to know more than the code says.
    """

    code: str
    next_action: NextAction
    category: Category
    http: tuple[int, ...]
    grpc: tuple[str, ...]
    meaning: str
    default_message: str

    @property
    def retryable(self) -> bool:
        """Whether the same call may be repeated: true exactly when the next action is ``retry``."""
        return self.next_action is NextAction.RETRY


_V, _P, _B, _T, _O = Category.VALIDATION, Category.PERMISSION, Category.BUSINESS, Category.TRANSIENT, Category.OTHER
_RETRY, _ASK, _STOP = NextAction.RETRY, NextAction.ASK_USER, NextAction.STOP

_TABLE: tuple[CodeSpec, ...] = (
    CodeSpec(
        "validation_error", _ASK, _V, (400, 422), ("INVALID_ARGUMENT", "OUT_OF_RANGE"),
        "an argument is missing or wrong",
        "An argument of this call is missing or wrong. Correct the arguments before calling again.",
    ),
    CodeSpec(
        "unsupported_input", _ASK, _V, (406, 415), (),
        "a kind or format the tool cannot take",
        "This tool cannot take input of this kind or format. Send a supported format instead.",
    ),
    CodeSpec(
        "payload_too_large", _ASK, _V, (413, 414, 431), (),
        "body, URI or headers too large; context.part says which",
        "The request is too large for this tool. Send a smaller one.",
    ),
    CodeSpec(
        "not_found", _ASK, _V, (404, 410), ("NOT_FOUND",),
        "the thing named does not exist (an unknown tool too)",
        "The thing named in this call does not exist. Check the name or identifier.",
    ),
    CodeSpec(
        "unauthenticated", _ASK, _P, (401, 407), ("UNAUTHENTICATED",),
        "no or wrong credentials",
        "The tool has no valid credentials for this call. Ask for access before calling again.",
    ),
    CodeSpec(
        "permission_denied", _ASK, _P, (403, 451), ("PERMISSION_DENIED",),
        "known caller, not allowed; an approval may help",
        "This call is not allowed for the current caller. Ask the user for an approval.",
    ),
    CodeSpec(
        "business_rule", _ASK, _B, (), ("FAILED_PRECONDITION",),
        "a domain rule blocked it",
        "A rule of the business blocked this call. Ask the user how to go on.",
    ),
    CodeSpec(
        "conflict", _ASK, _B, (409, 412, 423, 428), ("ALREADY_EXISTS", "ABORTED"),
        "state differs from what the call assumed",
        "The current state differs from what this call assumed. Read the state again before deciding.",
    ),
    CodeSpec(
        "quota_exceeded", _STOP, _B, (402, 507), ("RESOURCE_EXHAUSTED",),
        "an allowance is used up",
        "An allowance for this tool is used up. Repeating the call cannot succeed.",
    ),
    CodeSpec(
        "rate_limited", _RETRY, _T, (429,), ("RESOURCE_EXHAUSTED",),
        "too many calls for now",
        "Too many calls for now. Wait, then repeat the same call.",
    ),
    CodeSpec(
        "upstream_timeout", _RETRY, _T, (408, 504), ("DEADLINE_EXCEEDED",),
        "no answer in time, safe to repeat",
        "The service gave no answer in time. The same call may be repeated safely.",
    ),
    CodeSpec(
        "upstream_unavailable", _RETRY, _T, (425, 502, 503, 529), ("UNAVAILABLE",),
        "connection refused or reset, overloaded",
        "The service cannot be reached right now. Wait, then repeat the same call.",
    ),
    CodeSpec(
        "upstream_error", _STOP, _O, (500, 505, 508, 511), ("INTERNAL", "UNKNOWN", "DATA_LOSS"),
        "the service failed for its own reasons",
        "The service failed for its own reasons. Repeating the same call is not expected to help.",
    ),
    CodeSpec(
        "outcome_unknown", _ASK, _O, (), (),
        "a write timed out or broke off: it may have happened",
        "This call broke off before its result was known: it may or may not have taken effect. "
        "Check the current state before calling again.",
    ),
    CodeSpec(
        "cancelled", _STOP, _O, (499,), ("CANCELLED",),
        "called off by user or host",
        "This call was called off. Do not repeat it unless you are asked to.",
    ),
    CodeSpec(
        "not_implemented", _STOP, _O, (405, 501), ("UNIMPLEMENTED",),
        "the operation does not exist",
        "This operation does not exist. Use another tool or stop.",
    ),
    CodeSpec(
        "internal_error", _STOP, _O, (), (),
        "anything we did not anticipate",
        "The tool failed in a way that was not anticipated. Repeating the same call is not expected to help.",
    ),
)  # fmt: skip

CODES: Final[Mapping[str, CodeSpec]] = MappingProxyType({spec.code: spec for spec in _TABLE})
"""Every code of this contract version, in the order in which the documentation lists them."""
