"""Mask the secrets in a text: by their shape, by the scheme before them, by the name they stand under."""

from __future__ import annotations

import re
from typing import Final

from .secret_shapes import (
    ELEMENT,
    SCHEME,
    SHAPE,
    USERINFO,
    is_credential,
    is_plainly_secret,
    is_secret_name,
    looks_random,
    may_hold_name,
    may_hold_shape,
)

MASK: Final = "***"

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
_BARE: Final = re.compile(r"""(?:[^\s"'`<>&;,)\]}…\\]|\\(?!["'nrt\\]))++""")
_LINE: Final = re.compile(r"""[^\r\n"'…\\]++""")
_SCHEME_AND_TOKEN: Final = re.compile(r"""(?i:bearer|basic|digest|token|apikey|negotiate)[ \t]++[^\s"',;…\\]++""")
_MAX_PROSE: Final = 120
_NO_SECRET: Final = frozenset({MASK, "none", "null", "true", "false", "undefined", "nil"})
_PROSE: Final = frozenset(
    """
    a an and are be can't cannot does expected expired expires field for format from has have header
    incorrect input invalid is it length may mismatch missing must no not of only or provided rejected
    required should string the this to too unknown value was were will wrong you your
    """.split()  # noqa: SIM905 - thirty words read better as a text
)
"""Words that begin a sentence about a secret: ``password: must not be empty``."""


_MAX_KNOWN: Final = 1024
_MAX_REMEMBERED: Final = 1024
_known_clean: set[str] = set()
"""Texts that were looked through before: errors repeat. Only clean ones, since secrets are not to be kept."""


def is_clean(text: str) -> bool:
    """Return whether *text* certainly holds no secret that `masked` knows; the common case, and a quick one."""
    if text in _known_clean:
        return True
    if ("://" in text and "@" in text) or may_hold_shape(text) or may_hold_name(text):
        return False
    if len(text) <= _MAX_REMEMBERED:
        if len(_known_clean) >= _MAX_KNOWN:
            _known_clean.clear()
        _known_clean.add(text)
    return True


def masked(text: str) -> str:
    """Return *text* with every secret replaced by `MASK`."""
    if is_clean(text):
        return text
    if may_hold_shape(text):
        text = SHAPE.sub(MASK, text)
    if "://" in text and "@" in text:
        text = USERINFO.sub(rf"\1{MASK}@", text)
    if not may_hold_name(text):
        return text
    if "<" in text:
        text = ELEMENT.sub(_masked_element, text)
    return _masked_pairs(SCHEME.sub(_masked_scheme, text))


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
    if value is None or _is_no_secret(name, value[0], prose=prose):
        return None
    return MASK, value.end()


def _is_no_secret(name: str, value: str, *, prose: bool) -> bool:
    """Return whether a bare value is a placeholder, or the beginning of a sentence about the secret."""
    # What is passed over is looked at again, so only short values may be: the time would grow with their square.
    if len(value) > _MAX_PROSE:
        return False
    if value.lower() in _NO_SECRET or not value.strip():
        return True
    if not prose:
        return False
    word = value.split(maxsplit=1)[0].strip(".:").lower()
    return word in _PROSE or not (is_plainly_secret(name) or looks_random(value))
