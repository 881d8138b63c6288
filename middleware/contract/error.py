"""``ToolError``: the one value from which every structured payload is rendered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

import orjson

from .codes import CODES, Category, NextAction

if TYPE_CHECKING:
    from .codes import CodeSpec

MAX_MESSAGE_CHARACTERS = 400
MAX_CONTEXT_BYTES = 2048

_E = TypeVar("_E", NextAction, Category)


class ContractError(ValueError):
    """A structured error was built in a way the contract forbids; the message says what to change."""


class ToolError(Exception):
    """A failure of a tool in the words of the contract: raised, returned, or built from another exception.

    Args:
        code: one of the codes in [`CODES`][changeover.contract.codes.CODES].
        message: 1 to 400 characters for the model, carrying the remedy; the code's default message when left out.
        next_action: what to do about the same call; the code's default when left out.
        category: the coarse kind; the code's default when left out.
        context: a small JSON object (at most 2 KiB serialized) with facts a model can act on, or ``None``.
        attempted_query: what was looked for, when that helps the model to reword it.
        partial_results: what was found before the failure.
        alternatives: other ways to reach the goal, as short texts.

    Raises:
        ContractError: for an unknown code, an empty or overlong message, a context that is no small JSON object, or a
            ``retry`` on a permanent error: that would invite the very loop the contract exists to end.
    """

    def __init__(
        self,
        code: str,
        message: str | None = None,
        *,
        next_action: NextAction | str | None = None,
        category: Category | str | None = None,
        context: Mapping[str, Any] | None = None,
        attempted_query: Any = None,
        partial_results: Sequence[Any] | None = None,
        alternatives: Sequence[Any] | None = None,
    ) -> None:
        spec = _spec(code)
        self.code: str = spec.code
        self.message: str = _checked_message(spec.default_message if message is None else message)
        self.next_action: NextAction = _checked_next_action(spec, next_action)
        self.category: Category = spec.category if category is None else _member(Category, category, "category")
        self.context: dict[str, Any] | None = _checked_context(context)
        self.attempted_query = attempted_query
        self.partial_results: list[Any] | None = _listed(partial_results, "partial_results")
        self.alternatives: list[Any] | None = _listed(alternatives, "alternatives")
        super().__init__(f"{self.code}: {self.message}")

    @property
    def retryable(self) -> bool:
        """Whether the same call may be repeated: true exactly when ``next_action`` is ``retry``."""
        return self.next_action is NextAction.RETRY

    def envelope(self) -> dict[str, Any]:
        """Return the failure in the ``envelope`` dialect: exactly five keys, in the contract's order."""
        from .dialects import envelope

        return envelope(self)

    def mcp(self) -> dict[str, Any]:
        """Return the failure in the ``mcp`` dialect: optional pillars are absent when there is nothing to say."""
        from .dialects import mcp

        return mcp(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are pickled by re-calling the class with ``args``, which hold the display text, not our arguments;
        # a subclass may take other arguments altogether, so its constructor is not called either.
        state = self._state()
        others = {name: value for name, value in vars(self).items() if name not in state}
        return (_rebuild, (type(self), state), others or None)

    def _state(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "message": self.message,
            "next_action": self.next_action,
            "category": self.category,
            "context": self.context,
            "attempted_query": self.attempted_query,
            "partial_results": self.partial_results,
            "alternatives": self.alternatives,
        }

    @classmethod
    def _from_state(cls, state: Mapping[str, Any]) -> Self:
        error = cls.__new__(cls)
        ToolError.__init__(error, **state)
        return error


def _rebuild(cls: type[ToolError], state: Mapping[str, Any]) -> ToolError:
    return cls._from_state(state)


def _spec(code: str) -> CodeSpec:
    try:
        return CODES[code]
    except (KeyError, TypeError):
        raise ContractError(f"unknown code {code!r}: use one of {', '.join(CODES)}") from None


def _checked_message(message: str) -> str:
    if not isinstance(message, str):
        raise ContractError(f"message must be a string, not {type(message).__name__}")
    if not message.strip():
        raise ContractError("message must not be empty: say in one or two sentences what the model should change")
    if len(message) > MAX_MESSAGE_CHARACTERS:
        raise ContractError(
            f"message has {len(message)} characters, at most {MAX_MESSAGE_CHARACTERS} are allowed: "
            "move details to context"
        )
    return _encodable(message)


def _encodable(message: str) -> str:
    """Replace half a surrogate pair, which came with the tool's data and must not keep the error from being sent."""
    if message.isascii():
        return message
    return message.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _checked_next_action(spec: CodeSpec, value: NextAction | str | None) -> NextAction:
    if value is None:
        return spec.next_action
    action = _member(NextAction, value, "next_action")
    if action is NextAction.RETRY and not spec.retryable:
        raise ContractError(
            f"next_action 'retry' contradicts {spec.code!r}, a permanent error: repeating the same call cannot help. "
            "Use a transient code such as 'upstream_unavailable', or another next_action"
        )
    return action


def _member(kind: type[_E], value: _E | str, name: str) -> _E:
    try:
        return kind(value)
    except ValueError:
        raise ContractError(f"unknown {name} {value!r}: use one of {', '.join(kind)}") from None


def _checked_context(context: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if context is None:
        return None
    if not isinstance(context, Mapping):
        raise ContractError(f"context must be a mapping or None, not {type(context).__name__}")
    try:
        encoded = orjson.dumps(dict(context))
    except (TypeError, ValueError) as fault:
        raise ContractError(
            f"context must be plain JSON (strings, numbers, booleans, lists, objects): {fault}"
        ) from None
    if len(encoded) > MAX_CONTEXT_BYTES:
        raise ContractError(
            f"context takes {len(encoded)} bytes as JSON, at most {MAX_CONTEXT_BYTES} are allowed: keep the facts only"
        )
    # Read back, so that what was checked is what is sent, whatever happens to the caller's objects meanwhile.
    copied: dict[str, Any] = orjson.loads(encoded)
    return copied


def _listed(values: Sequence[Any] | None, name: str) -> list[Any] | None:
    if values is None:
        return None
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise ContractError(f"{name} must be a list, not {type(values).__name__}")
    return list(values)
