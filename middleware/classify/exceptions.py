"""From a raised exception to a ``ToolError``: by type and by fact, never by the text of a message."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from changeover.contract import ContractError, ToolError
from changeover.redact import redact_text

if TYPE_CHECKING:
    from changeover.arguments import BindingFault

    from .traits import Answer, Target, Traits

MAX_NAMES: Final = 10
MAX_NAMES_IN_MESSAGE: Final = 5
MAX_NAME_CHARACTERS: Final = 48
_CALLED_OFF: Final = (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit)


@dataclass(frozen=True, slots=True)
class Classified:
    """A failure in the words of the contract.

    Args:
        error: what it is.
        unclassified: nobody knew this failure; counted and shown, so that a gap in the rules is seen.
        rule_failed: a rule of the tool raised or answered nonsense, and was passed over.
    """

    error: ToolError
    unclassified: bool = False
    rule_failed: bool = False


def classify_exception(exc: BaseException, traits: Traits, *, fault: BindingFault | None = None) -> Classified:
    """Return what *exc* means for a tool; never raises.

    Args:
        exc: what the call raised.
        traits: what the tool's owner said.
        fault: why the call's arguments do not fit the tool's signature, if they do not. It tells a wrong call from a
            ``TypeError`` inside the tool.
    """
    if isinstance(exc, ToolError):
        return own_error(exc)
    answer, failed = _by_rules(exc, traits)
    if answer is None and isinstance(exc, TypeError) and fault is not None:
        answer = binding_error(fault)
    if answer is None:
        answer = _by_type(exc, traits)
    if answer is None:
        return Classified(ToolError("internal_error"), unclassified=True, rule_failed=failed)
    return Classified(answer, rule_failed=failed)


def settle(answer: Answer | Any) -> ToolError | None:
    """Return a rule's answer as an error.

    Raises:
        ContractError: for an answer that is neither an error, nor a code, nor ``None``.
    """
    if answer is None or isinstance(answer, ToolError):
        return answer
    if isinstance(answer, str):
        return ToolError(answer)
    raise ContractError(f"a rule must answer with a ToolError, a code or None, not {type(answer).__name__}")


def binding_error(fault: BindingFault) -> ToolError:
    """Return the error of a call that does not fit the tool's signature; it names parameters, never values."""
    facts: dict[str, Any] = {}
    for name in ("missing", "unexpected", "repeated", "accepted"):
        names = getattr(fault, name)
        if names:
            facts[name] = [_shown(text) for text in names[:MAX_NAMES]]
    if fault.too_many_positional:
        facts["too_many_positional"] = True
    message = _binding_message(fault)
    for left_out in ((), ("accepted",), ("accepted", "unexpected"), tuple(facts)):
        try:
            context = {name: fact for name, fact in facts.items() if name not in left_out}
            return ToolError("validation_error", message, context=context or None)
        except ContractError:  # long names in a script of many bytes a character
            continue
    return ToolError("validation_error")


def _binding_message(fault: BindingFault) -> str:
    if fault.missing:
        names = ", ".join(repr(_shown(name)) for name in fault.missing[:MAX_NAMES_IN_MESSAGE])
        return f"Required arguments are missing: {names}. Add them, then call again."
    return "The call has arguments that this tool does not take. Correct the names listed in context, then call again."


def own_error(exc: ToolError) -> Classified:
    """Return a ``ToolError`` that was raised or returned, as it stands."""
    try:
        exc.envelope()
    except Exception:  # noqa: BLE001 - a subclass that never called our constructor has none of the values
        return Classified(ToolError("internal_error"), unclassified=True)
    return Classified(exc)


def _by_rules(exc: BaseException, traits: Traits) -> tuple[ToolError | None, bool]:
    """Return the answer of the most specific rule that has one, and whether any rule failed on the way."""
    if not traits.rules:
        return None, False
    failed = False
    for kind in type(exc).__mro__:
        for rule in traits.rules:
            if rule.kind is not kind:
                continue
            try:
                answer = settle(_asked(rule.target, exc))
            except Exception:  # noqa: BLE001 - a user's function; the failure being classified must not be lost to it
                failed = True
                continue
            if answer is not None:
                return answer, failed
    return None, failed


def _asked(target: Target, exc: BaseException) -> Answer:
    return target if isinstance(target, ToolError | str) else target(exc)


def _by_type(exc: BaseException, traits: Traits) -> ToolError | None:
    """Return what the standard library's own types say for certain.

    ``asyncio``, ``socket`` and ``concurrent.futures`` raise the built-in ``TimeoutError`` since Python 3.11.
    """
    code: str | None = None
    if isinstance(exc, TimeoutError):
        code = "upstream_timeout" if traits.idempotent else "outcome_unknown"
    elif isinstance(exc, ConnectionRefusedError):
        code = "upstream_unavailable"
    elif isinstance(exc, ConnectionError):
        code = "upstream_unavailable" if traits.idempotent else "outcome_unknown"
    elif isinstance(exc, PermissionError):
        code = "permission_denied"
    elif isinstance(exc, _CALLED_OFF):
        code = "cancelled"
    return None if code is None else ToolError(code)


def _shown(name: str) -> str:
    """Return a name fit for a payload: a model may send anything as a name, a secret too."""
    return redact_text(name, MAX_NAME_CHARACTERS)
