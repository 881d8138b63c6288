"""What a tool's owner can say about it, checked once, when the tool is wrapped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from .classify import Rule
from .classify import rules as checked_rules
from .contract import ContractError, Dialect

if TYPE_CHECKING:
    from collections.abc import Callable

    from .classify.traits import Answer, Target

MAX_NAME_CHARACTERS: Final = 256


class OptionError(ValueError):
    """An option of ``tool`` or ``wrap`` cannot be used; the message names it and says what to pass."""


@dataclass(frozen=True, slots=True)
class Options:
    """How one tool is wrapped.

    Args:
        name: the tool's name for flags and records; the function's own when ``None``.
        dialect: shape of the structured payload.
        idempotent: whether repeating a call that broke off is safe, as for anything that only reads.
        ignore: parameters that do not make two calls different, such as a nonce.
        rules: exception types of this tool and what each one means.
        detect: tells a returned value that means a failure, for shapes of the owner's own.
        wrap_success: whether a success is wrapped too when the structured payload is served; by default in the
            ``envelope`` dialect only.
    """

    name: str | None = None
    dialect: Dialect = Dialect.ENVELOPE
    idempotent: bool = False
    ignore: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    detect: Callable[[Any], Answer] | None = None
    wrap_success: bool = True

    @classmethod
    def checked(
        cls,
        *,
        name: str | None = None,
        dialect: str = Dialect.ENVELOPE,
        idempotent: bool = False,
        ignore: Iterable[str] = (),
        rules: Mapping[Any, Target] | None = None,
        detect: Callable[[Any], Answer] | None = None,
        wrap_success: bool | None = None,
    ) -> Self:
        """Return the options, or say what is wrong with them.

        Raises:
            OptionError: for an option that cannot be used.
        """
        shape = _dialect(dialect)
        return cls(
            name=None if name is None else checked_name(name),
            dialect=shape,
            idempotent=_boolean("idempotent", idempotent),
            ignore=_names(ignore),
            rules=_rules(rules),
            detect=_function("detect", detect),
            wrap_success=shape is Dialect.ENVELOPE if wrap_success is None else _boolean("wrap_success", wrap_success),
        )


def checked_name(name: object) -> str:
    """Return *name* if it can be the name of a tool.

    Raises:
        OptionError: when it cannot.
    """
    if not isinstance(name, str) or not name.strip():
        raise OptionError(f"name must be the tool's name as the agent knows it, not {name!r}")
    if len(name) > MAX_NAME_CHARACTERS:
        raise OptionError(f"name has {len(name)} characters, at most {MAX_NAME_CHARACTERS} are allowed")
    if "\x00" in name or any("\ud800" <= character <= "\udfff" for character in name):
        raise OptionError(f"name {name!r} holds characters that no database stores")
    return name


def name_of(tool: Callable[..., Any]) -> str:
    """Return the name under which *tool* is known when its owner gives none.

    Raises:
        OptionError: when it has none that can be used.
    """
    for candidate in (getattr(tool, "__name__", None), getattr(getattr(tool, "func", None), "__name__", None)):
        if isinstance(candidate, str) and candidate:
            return checked_name(candidate)
    own = getattr(tool, "name", None)
    return checked_name(own if isinstance(own, str) and own else type(tool).__name__)


def _dialect(value: object) -> Dialect:
    try:
        return Dialect(value)  # type: ignore[arg-type] # anything else than a dialect's name is refused here
    except ValueError:
        raise OptionError(f"unknown dialect {value!r}: use {' or '.join(repr(d.value) for d in Dialect)}") from None


def _boolean(option: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise OptionError(f"{option} must be True or False, not {value!r}")
    return value


def _names(value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise OptionError(f"ignore must be a tuple of parameter names such as ('nonce',), not {value!r}")
    names = tuple(value)
    for name in names:
        if not isinstance(name, str) or not name:
            raise OptionError(f"ignore must hold parameter names, not {name!r}")
    return names


def _rules(value: object) -> tuple[Rule, ...]:
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise OptionError(f"rules must map exception types to codes, such as {{KeyError: 'not_found'}}, not {value!r}")
    try:
        return checked_rules(value)
    except ContractError as fault:
        raise OptionError(f"rules: {fault}") from None


def _function(option: str, value: Any) -> Any:
    if value is not None and not callable(value):
        raise OptionError(f"{option} must be a function that takes the returned value, not {value!r}")
    return value
