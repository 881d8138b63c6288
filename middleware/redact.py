"""Take secrets out of what is recorded, then cut it to size: in that order, so that no cut can save a secret's head.

    >>> redact_text("400 for url: https://api.example.com/y?key=AIzaFAKE123&q=1")
    '400 for url: https://api.example.com/y?key=***&q=1'

Recognised are the well-known shapes (keys of clouds, Git hosts, chat and model providers, JWTs, private keys), what
follows ``Bearer`` or ``Basic``, user names and passwords in URLs, and whatever stands under a name such as
``password``, ``api_key`` or ``X-Amz-Signature``, in JSON, in a query string or in prose. Words, numbers, UUIDs and
order numbers stay. The time needed is in proportion to the text, whatever it holds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from .canonical import type_name
from .cuts import ELLIPSIS, cut_json, cut_text
from .secret_shapes import (
    ELEMENT,
    SCHEME,
    SHAPE,
    SHAPE_HEADS,
    USERINFO,
    is_credential,
    is_plainly_secret,
    is_secret_name,
    looks_random,
)

MASK: Final = "***"
MAX_DEPTH: Final = 64
_MAX_INTEGER: Final = 2**63 - 1
_WINDOW: Final = 65_536
_TAIL: Final = 4_096

_NAME: Final = re.compile(
    r"""
    (?<![\w.-])(?:
        (?P<option>--[\w-]++)[ \t]++(?=[^\s-])
      | (?P<name>[\w.-]++)(?:\\*+["'])?[ \t]*+(?P<sign>=>|={1,3}+|:=|:(?!:)|%3[Dd])[ \t]*+
    )
    """,
    re.VERBOSE,
)
_QUOTED: Final = re.compile(
    r"""[bru]{0,2}(")(?:[^"\\…]|\\.|…(?!\[cut))*+|[bru]{0,2}(')(?:[^'\\…]|\\.|…(?!\[cut))*+""",
    re.DOTALL | re.IGNORECASE,
)
_ESCAPED: Final = re.compile(r"""(\\++["'])(?:(?!\1)(?!…\[cut).)*+""", re.DOTALL)
_BRACKETED: Final = re.compile(r"""[\[{](?:"(?:[^"\\]|\\.)*+"?|'(?:[^'\\]|\\.)*+'?|[^\]}"'])*+[\]}]?""", re.DOTALL)
_BARE: Final = re.compile(r"""(?:[^\s"'`<>&;,|()\[\]{}…\\]|\\(?!["'nrt\\]))++""")
_LINE: Final = re.compile(r"""[^\r\n"'…\\]++""")
_SCHEME_AND_TOKEN: Final = re.compile(r"""(?i:bearer|basic|digest|token|apikey|negotiate)[ \t]++[^\s"',;…\\]++""")
_NO_SECRET: Final = frozenset({MASK, "none", "null", "true", "false", "undefined", "nil"})
_PROSE: Final = frozenset(
    """
    a an and are be can't cannot does expected expired expires field for format from has have header
    incorrect input invalid is it length may mismatch missing must no not of only or provided rejected
    required should string the this to too unknown value was were will wrong you your
    """.split()  # noqa: SIM905 - thirty words read better as a text
)
"""Words that begin a sentence about a secret: ``password: must not be empty``."""


def redact_text(text: str, limit: int | None = None) -> str:
    """Return *text* without its secrets, and encodable: half a surrogate pair becomes U+FFFD.

    Args:
        text: anything: an exception's text, a URL, a header, JSON, a whole page.
        limit: at most so many characters; what is cut ends in ``…[cut: 31000 characters]``. Much longer text is
            looked at only as far as is needed.
    """
    if limit is None:
        return _redacted(text)
    window = 2 * max(limit, 0) + _WINDOW
    if len(text) <= window:
        redacted = _redacted(text)
        return redacted if len(redacted) <= limit else cut_text(redacted, limit, len(text))
    # The window may end inside a secret that is not known by its head: what stands there is not used.
    return cut_text(_redacted(text[:window])[:-_TAIL], limit, len(text))


def redact_json(value: Any, limit: int | None = None) -> Any:
    """Return *value* as plain JSON without its secrets, in fields with telling names and in every string.

    The result always serializes: ``NaN`` is ``null``, a value that is no JSON is its type's name, integers beyond 64
    bits are strings, and nesting ends at 64 levels.

    Args:
        value: anything, usually a payload.
        limit: at most so many characters of compact JSON; strings and containers that were cut say so.
    """
    plain = _walk(value, secret=False, depth=0)
    return plain if limit is None else cut_json(plain, limit)


def _redacted(text: str) -> str:
    text = _encodable(text)
    if SHAPE_HEADS.search(text):
        text = SHAPE.sub(MASK, text)
    if "://" in text and "@" in text:
        text = USERINFO.sub(rf"\1{MASK}@", text)
    if "<" in text:
        text = ELEMENT.sub(_masked_element, text)
    return _masked_pairs(SCHEME.sub(_masked_scheme, text))


def _encodable(text: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _masked_scheme(match: re.Match[str]) -> str:
    scheme, space, text = match.groups()
    return f"{scheme}{space}{MASK}" if is_credential(scheme, text) else match[0]


def _masked_element(match: re.Match[str]) -> str:
    name, text = match.groups()
    return f"<{name}>{MASK}" if text.strip() and is_secret_name(name) else match[0]


def _masked_pairs(text: str) -> str:
    """Mask what stands after a secret name. One pass: what was masked is not looked at again."""
    pieces: list[str] = []
    done = 0
    match = _NAME.search(text)
    while match:
        end = match.end()
        shown = _shown_value(text, match)
        if shown is not None:
            mask, end = shown
            pieces += (text[done : match.end()], mask)
            done = end
        match = _NAME.search(text, end)
    return "".join((*pieces, text[done:])) if pieces else text


def _shown_value(text: str, match: re.Match[str]) -> tuple[str, int] | None:
    """Return what to show for the value after a name, and where the value ends; ``None`` to leave it as it is."""
    name = match["name"] or match["option"]
    before = text[match.start() - 1] if match.start() else ""
    if not is_secret_name(name, in_query=before in ("?", "&")):
        return None
    at = match.end()
    for pattern in (_QUOTED, _ESCAPED):
        quoted = pattern.match(text, at)
        if quoted:
            quote = next(group for group in quoted.groups() if group)
            inside = quoted[0][quoted[0].index(quote) + len(quote) :]
            return (quoted[0][: -len(inside)] + MASK, quoted.end()) if inside.lower() not in _NO_SECRET | {""} else None
    bracketed = _BRACKETED.match(text, at)
    if bracketed:
        return MASK, bracketed.end()
    return _shown_bare(text, at, name, prose=match["sign"] == ":")


def _shown_bare(text: str, at: int, name: str, *, prose: bool) -> tuple[str, int] | None:
    pattern = _LINE if "cookie" in name.lower() else _BARE
    value = _SCHEME_AND_TOKEN.match(text, at) or pattern.match(text, at)
    if value is None or value[0].lower() in _NO_SECRET:
        return None
    if prose:
        word = value[0].split()[0].strip(".:").lower() if value[0].split() else ""
        if word in _PROSE or not (is_plainly_secret(name) or looks_random(value[0])):
            return None
    return MASK, value.end()


def _walk(value: Any, *, secret: bool, depth: int) -> Any:  # noqa: PLR0911 - a table of types
    if value is None or isinstance(value, bool):
        return value if value is None else bool(value)
    if isinstance(value, str):
        return MASK if secret and value else redact_text(str(value))
    if isinstance(value, int | float):
        return MASK if secret else _number(value)
    if depth >= MAX_DEPTH:
        return ELLIPSIS
    try:
        if isinstance(value, Mapping):
            return _walk_object(value, secret=secret, depth=depth)
        if isinstance(value, list | tuple | AbstractSet):
            return [_walk(item, secret=secret, depth=depth + 1) for item in value]
    except Exception:  # noqa: BLE001, S110 - an object may raise from anything it is asked: its type's name will do
        pass
    return f"<{type_name(value)}>"


def _number(value: float) -> Any:
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return int(value) if -_MAX_INTEGER <= value <= _MAX_INTEGER else f"{value:#x}"


def _walk_object(value: Mapping[Any, Any], *, secret: bool, depth: int) -> dict[str, Any]:
    named = next((value[key] for key in ("name", "key") if isinstance(value.get(key), str)), "")
    walked: dict[str, Any] = {}
    for key, item in value.items():
        name = key if isinstance(key, str) else str(_walk(key, secret=False, depth=MAX_DEPTH))
        hidden = secret or is_secret_name(name) or (name == "value" and is_secret_name(named))
        shown = redact_text(name)
        while shown in walked:
            shown += "~"
        walked[shown] = _walk(item, secret=hidden, depth=depth + 1)
    return walked
