"""What the owner of a tool says about its failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from changeover.contract import CODES, ContractError, ToolError

Answer: TypeAlias = ToolError | str | None
"""What a rule's function may answer: an error, a code, or ``None`` for "not mine"."""

Target: TypeAlias = ToolError | str | Callable[[Any], Answer]
"""What a rule leads to: a code, a ready error, or a function that is given the exception."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a tool's own mapping: exceptions of this *kind* mean *target*.

    Raises:
        ContractError: for a kind that is no exception class, or a target that is no code, error or function.
    """

    kind: type[BaseException]
    target: Target

    def __post_init__(self) -> None:
        kind: Any = self.kind
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise ContractError(f"a rule needs an exception class, not {self.kind!r}")
        if isinstance(self.target, str):
            if self.target not in CODES:
                raise ContractError(f"unknown code {self.target!r} in a rule: use one of {', '.join(CODES)}")
        elif not isinstance(self.target, ToolError) and not callable(self.target):
            raise ContractError(
                f"the rule for {self.kind.__name__} must lead to a code, a ToolError or a function, not {self.target!r}"
            )


@dataclass(frozen=True, slots=True)
class Traits:
    """A tool, as far as its failures are concerned.

    Args:
        tool: the tool's name.
        idempotent: whether repeating a call does no harm: it reads, or it is safe to write twice. A tool that is not
            is never answered with ``retry`` after a timeout, since the first call may have taken effect.
        rules: see [`rules`][changeover.classify.traits.rules].
        detect: given a returned value, answers with an error or a code when the value means a failure. For foreign
            shapes such as ``{"ok": false, "error": "invalid_auth"}``, which mean what the tool's owner says.
    """

    tool: str
    idempotent: bool = False
    rules: tuple[Rule, ...] = ()
    detect: Callable[[Any], Answer] | None = None


def rules(mapping: Mapping[type[BaseException] | tuple[type[BaseException], ...], Target]) -> tuple[Rule, ...]:
    """Return the rules of a mapping such as ``{FileNotFoundError: "not_found"}``; keys may be tuples of classes.

    The most specific class wins, whatever the order.

    Raises:
        ContractError: for a key that is no exception class or an unknown code.
    """
    return tuple(
        Rule(kind, target) for key, target in mapping.items() for kind in (key if isinstance(key, tuple) else (key,))
    )
