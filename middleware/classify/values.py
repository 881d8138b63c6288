"""From a returned value to a ``ToolError``: by explicit shape only.

A value is a failure when it is a ``ToolError``, our envelope with its five keys, or an MCP result with ``isError``
true; everything else is a success unless the tool's owner says otherwise. ``{"error": null}`` is a success, and
``{"status": "failed"}`` may well be the right answer of a tool that was asked about a failed job. What merely looks
like a failure is reported by `looks_like_failure`, to be counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Final

import orjson

from changeover.contract import ContractError, ToolError

from .exceptions import Classified, own_error, settle

if TYPE_CHECKING:
    from collections.abc import Callable

    from .traits import Traits

MAX_PARSED_CHARACTERS: Final = 16_384
_ENVELOPE_KEYS: Final = {"code", "message", "retryable", "next_action", "context"}
_PILLARS: Final = ("attempted_query", "partial_results", "alternatives")
_NEVER_A_SHAPE: Final = frozenset({type(None), bool, int, float, bytes, list, tuple})
_ERROR_KEYS: Final = ("error", "errors", "Error")
_FAILED_WORDS: Final = frozenset({"failed", "failure", "error"})
_TELLTALES: Final = ('"error', '"Error', '"ok"', '"isError"', '"is_error"', '"success"', '"status"')


def classify_result(
    value: Any, traits: Traits, *, rule_failed: Callable[[], object] = lambda: None
) -> Classified | None:
    """Return what failure a returned *value* means, or ``None`` for a success; never raises.

    Args:
        value: what the tool returned.
        traits: what is known of the tool.
        rule_failed: called when the tool's own ``detect`` raised, and so was passed over.
    """
    if isinstance(value, ToolError):
        return own_error(value)
    if traits.detect is not None:
        try:
            answer = settle(traits.detect(value))
        except Exception:  # noqa: BLE001 - a user's function; the call itself went well
            answer = None
            rule_failed()
        if answer is not None:
            return Classified(answer)
    if type(value) in _NEVER_A_SHAPE:
        return None
    try:
        found = _explicit(value)
    except Exception:  # noqa: BLE001 - an object may raise from anything it is asked
        return None
    return Classified(found.error, unclassified=found.unclassified) if found else None


def is_empty(value: Any) -> bool:
    """Return whether a successful *value* says "found nothing": an empty collection or text, or our ``Empty`` shape.

    ``None`` is no such thing, since it is what a tool returns that was not asked for anything; neither are ``0`` and
    ``False``, which are answers.
    """
    try:
        if isinstance(value, Mapping):
            if value.get("isError") is False and value.get("empty") is True:
                return True
            if len(value) == 2 and value.get("ok") is True and "data" in value:  # noqa: PLR2004 - our success envelope
                return is_empty(value["data"])
        return isinstance(value, str | Mapping | Sequence | AbstractSet) and len(value) == 0
    except Exception:  # noqa: BLE001 - an object may raise from anything it is asked
        return False


def looks_like_failure(value: Any) -> bool:
    """Return whether a value that passed for a success looks like somebody's failure; never raises.

    Such a call stays a success, and is counted as unclassified, so that no error rate of 0 hides it.
    """
    try:
        parsed = _as_object(value)
        return parsed is not None and _suspicious(parsed)
    except Exception:  # noqa: BLE001 - an object may raise from anything it is asked
        return False


def _suspicious(value: Mapping[str, Any]) -> bool:
    if any(value.get(key) for key in _ERROR_KEYS):
        return True
    if value.get("ok") is False or value.get("success") is False:
        return True
    if value.get("isError") or value.get("is_error"):
        return True
    status = value.get("status")
    return isinstance(status, str) and status.lower() in _FAILED_WORDS


def _as_object(value: Any) -> Mapping[str, Any] | None:
    """Return *value* when it is a JSON object, or the text of one."""
    if isinstance(value, Mapping):
        return value
    if not isinstance(value, str) or len(value) > MAX_PARSED_CHARACTERS or value.lstrip()[:1] != "{":
        return None
    # Only whether parsing is worth while; what the text means is decided by the parsed shape.
    if not any(telltale in value for telltale in _TELLTALES):
        return None
    return _parsed(value)


def _parsed(text: Any) -> Mapping[str, Any] | None:
    try:
        parsed = orjson.loads(text)
    except (TypeError, ValueError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _explicit(value: Any) -> Classified | None:
    shape = _mcp_result(value) or _as_object(value)
    if shape is None:
        return None
    if shape.get("ok") is False and shape.keys() == {"ok", "error"}:
        return _from_envelope(shape["error"])
    if shape.get("isError") is True:
        return _from_mcp(shape)
    return None


def _from_envelope(error: Any) -> Classified | None:
    if not isinstance(error, Mapping) or error.keys() != _ENVELOPE_KEYS:
        return None
    return _built(error, {"next_action": error["next_action"], "context": error["context"]})


def _from_mcp(shape: Mapping[str, Any]) -> Classified:
    if "code" not in shape:
        try:
            inner = _inner(shape)
        except Exception:  # noqa: BLE001 - whatever its content does, it says that it is an error
            inner = None
        return inner or Classified(ToolError("internal_error"), unclassified=True)
    options = {name: shape[name] for name in _PILLARS if shape.get(name) is not None}
    for name, key in (("next_action", "next_action"), ("category", "errorCategory")):
        if key in shape:
            options[name] = shape[key]
    return _built(shape, options)


def _built(shape: Mapping[str, Any], options: dict[str, Any]) -> Classified:
    """Return the error that *shape* describes; one that breaks the contract is still a failure, of unknown kind."""
    try:
        return Classified(ToolError(shape["code"], shape.get("message"), **options))
    except ContractError:
        return Classified(ToolError("internal_error"), unclassified=True)


def _inner(shape: Mapping[str, Any]) -> Classified | None:
    """Return what the text content of an MCP result says, when that is one of our payloads."""
    content = shape.get("content")
    for block in content if isinstance(content, list | tuple) else ():
        text = block.get("text") if isinstance(block, Mapping) else getattr(block, "text", None)
        payload = _parsed(text)
        if payload is not None and ("code" in payload or "error" in payload):
            found = _explicit(payload)
            if found is not None and not found.unclassified:
                return found
    return None


def _mcp_result(value: Any) -> Mapping[str, Any] | None:
    """Return an MCP SDK's result object as a mapping; the class is asked, since a mock has every attribute."""
    if "isError" not in getattr(type(value), "__pydantic_fields__", ()):
        return None
    return {"isError": value.isError, "content": value.content}
