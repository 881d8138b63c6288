"""What a call was asked for: bound to the tool's signature, in canonical form, as a digest.

`Binder` runs before every call of a wrapped tool, so the ordinary signature is bound by two dict operations; only an
odd signature, and a call that does not fit, take the long way.
"""

from __future__ import annotations

import hashlib
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .canonical import canonical_json, canonical_recorded, type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["Binder", "BindingFault", "Bound", "canonical_json", "canonical_recorded", "digest", "type_name"]

_RECEIVERS = ("self", "cls")
_POSITIONAL_ONLY = inspect.Parameter.POSITIONAL_ONLY
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class BindingFault:
    """Why a call does not fit the tool's signature: names only, never a value.

    Args:
        missing: required parameters that the call left out.
        unexpected: names the call gave that the tool does not take. They come from the caller: bound their length.
        repeated: parameters given both by position and by name.
        too_many_positional: whether more positional arguments came than the tool takes.
        accepted: every name the tool does take.
    """

    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    too_many_positional: bool = False
    accepted: tuple[str, ...] = ()


class Bound(NamedTuple):
    """A call's arguments in canonical form: a tuple, since a frozen dataclass takes twice as long to make.

    Attributes:
        text: the canonical text.
        kind: ``bound`` when it stands by parameter names with defaults applied; ``raw`` when it stands as sent,
            because the signature is unknown or the call does not fit it.
        fault: why the call does not fit, if it does not.
    """

    text: bytes
    kind: Literal["bound", "raw"]
    fault: BindingFault | None = None


def digest(data: bytes, key: bytes) -> bytes:
    """Return a 16-byte keyed hash of *data*; without the key nobody can find personal data by trying guesses.

    Args:
        data: a canonical text or a payload.
        key: at most 64 bytes, the same for everything that is to be compared.
    """
    return hashlib.blake2b(data, digest_size=16, key=key).digest()


class Binder:
    """Bind the calls of one tool.

    The receiver (a first parameter named ``self`` or ``cls``) is no argument.

    Args:
        fn: the tool's function.
        ignore: parameters to leave out of the canonical form, such as a nonce or something the host injects.
    """

    def __init__(self, fn: Callable[..., Any], ignore: Iterable[str] = ()) -> None:
        self._ignored = frozenset(ignore)
        self._parameters = _parameters(fn)
        parameters = self._parameters or ()
        kinds = {parameter.kind for parameter in parameters}
        self._var_positional = _name_of(parameters, inspect.Parameter.VAR_POSITIONAL)
        self._var_keyword = _name_of(parameters, inspect.Parameter.VAR_KEYWORD)
        self._plain = self._parameters is not None and kinds <= {
            *_POSITIONAL,
            inspect.Parameter.KEYWORD_ONLY,
        }
        named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        self._names = tuple(p.name for p in named)
        self._positional = tuple(p.name for p in named if p.kind in _POSITIONAL)
        self._by_keyword = frozenset(p.name for p in named if p.kind is not _POSITIONAL_ONLY)
        self._defaults = {p.name: p.default for p in named if p.default is not p.empty}
        self._receiver = self._positional[0] if self._positional and self._positional[0] in _RECEIVERS else None
        self._dropped = tuple(self._ignored | ({self._receiver} if self._receiver else set()))

    def canonical(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Bound:
        """Return the canonical form of a call with *args* and *kwargs*; never raises."""
        if self._plain:
            given = dict(zip(self._positional, args, strict=False))
            given.update(kwargs)
            # All three hold only when nothing is surplus, given twice, unknown, or missing.
            if len(given) == len(args) + len(kwargs) and kwargs.keys() <= self._by_keyword:
                bound = self._defaults | given
                if len(bound) == len(self._names):
                    return Bound(self._text(bound), "bound")
        return self._slow(args, kwargs)

    def _text(self, arguments: dict[str, Any]) -> bytes:
        for name in self._dropped:
            arguments.pop(name, None)
        return canonical_json(arguments)

    def _slow(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Bound:
        if self._parameters is None:
            return Bound(self._raw(args, kwargs), "raw")
        fault = self._fault(args, kwargs)
        if fault is not None:
            return Bound(self._raw(args, kwargs), "raw", fault)
        return Bound(self._text(self._flattened(args, kwargs)), "bound")

    def _fault(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> BindingFault | None:
        given = set(self._positional[: len(args)])
        by_name = [name for name in kwargs if name in self._by_keyword]
        missing = [name for name in self._names if name not in given and name not in self._defaults]
        fault = BindingFault(
            missing=tuple(name for name in missing if name not in by_name and name != self._receiver),
            unexpected=() if self._var_keyword else tuple(name for name in kwargs if name not in self._by_keyword),
            repeated=tuple(name for name in by_name if name in given),
            too_many_positional=self._var_positional is None and len(args) > len(self._positional),
            accepted=tuple(name for name in self._names if name not in self._dropped),
        )
        fits = not (fault.missing or fault.unexpected or fault.repeated or fault.too_many_positional)
        return None if fits else fault

    def _flattened(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by name; what ``**kwargs`` takes stands beside the others, as the caller wrote it."""
        named = self._defaults | dict(zip(self._positional, args, strict=False))
        named.update((name, value) for name, value in kwargs.items() if name in self._by_keyword)
        if self._var_positional is not None:
            named[self._var_positional] = args[len(self._positional) :]
        surplus = {name: value for name, value in kwargs.items() if name not in self._by_keyword}
        if self._var_keyword is not None and not surplus.keys().isdisjoint(named):
            surplus = {self._var_keyword: surplus}
        return named | surplus

    def _raw(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
        sent = args[1:] if self._receiver else args
        named = {name: value for name, value in kwargs.items() if name not in self._ignored}
        return canonical_json({"$args": list(sent), **named} if sent else named)


def _parameters(fn: Callable[..., Any]) -> tuple[inspect.Parameter, ...] | None:
    try:
        return tuple(inspect.signature(fn).parameters.values())
    except Exception:  # noqa: BLE001 - a C function has none, a hostile ``__signature__`` may raise anything
        return None


def _name_of(parameters: Iterable[inspect.Parameter], kind: Any) -> str | None:
    return next((parameter.name for parameter in parameters if parameter.kind is kind), None)
