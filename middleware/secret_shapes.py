"""What secrets look like: names that hold them, and shapes they have wherever they stand.

Every pattern starts at a literal, or at the head of a word, and takes what follows without trying again, so that the
time it needs is in proportion to the text, also for text that was written to make it slow.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_CONTAINED: Final = ("password", "passwd", "passphrase", "secret", "credential", "apikey", "authorization", "cookie")
"""A name is secret when one of these stands in it, once it is lower case and rid of separators."""

_ENDINGS: Final = (
    "token",
    "pwd",
    "accesskey",
    "accesskeyid",
    "accountkey",
    "encryptionkey",
    "masterkey",
    "privatekey",
    "sharedkey",
    "signature",
    "signingkey",
)
_EXACT: Final = frozenset({"auth", "bearer", "cvc", "cvv", "jwt", "otp", "pass", "sig"})
_HARMLESS: Final = re.compile(r"(?:next|page|continuation|cursor|sync|pagination|invalid|unexpected)token$")
"""Cursors, and words of a parser's messages: they end like a secret and are none."""

_SEPARATORS: Final = re.compile(r"[\W_]+")
_MAX_NAME: Final = 128


@lru_cache(maxsize=4096)
def is_secret_name(name: str, *, in_query: bool = False) -> bool:
    """Return whether a field, header, variable or parameter of this *name* holds a secret.

    Args:
        name: in any spelling: ``api_key``, ``X-Api-Key``, ``apiKey``.
        in_query: whether it is a parameter of a URL, where ``key`` alone is enough.
    """
    plain = _plain(name)
    if plain in _EXACT or (in_query and plain == "key"):
        return True
    return is_plainly_secret(name) or (plain.endswith(_ENDINGS) and not _HARMLESS.search(plain))


@lru_cache(maxsize=4096)
def is_plainly_secret(name: str) -> bool:
    """Return whether *name* can hardly be anything else, so that even prose after it is taken for a secret."""
    plain = _plain(name)
    return any(part in plain for part in _CONTAINED)


def _plain(name: str) -> str:
    return _SEPARATORS.sub("", name[-_MAX_NAME:]).lower()


SHAPE: Final = re.compile(
    r"""
    -----BEGIN\ [A-Z\ ]{0,32}PRIVATE\ KEY(?:\ BLOCK)?-----
        (?s:.)*?(?:-----END\ [A-Z\ ]{0,32}PRIVATE\ KEY(?:\ BLOCK)?-----|\Z)
  | hooks\.slack\.com/services/[\w/]++
  | (?<![A-Za-z0-9])(?:
        (?:sk|rk|pk)[-_](?=[a-z_-]{0,64}[A-Z0-9])[\w-]{8,}+             # OpenAI, Anthropic, Stripe
      | (?:AKIA|ASIA)[A-Z0-9]{12,}+                                       # AWS
      | gh[pousr]_[A-Za-z0-9]{16,}+ | github_pat_\w{16,}+ | glpat-[\w-]{16,}+
      | xox[a-z]-[\w-]{8,}+ | xapp-[\w-]{8,}+                           # Slack
      | AIza[\w-]{6,}+ | ya29\.[\w.-]{8,}+ | GOCSPX-[\w-]{8,}+          # Google
      | eyJ[\w-]{8,}+(?:\.[\w-]*+)*+                                    # JWT
      | SG\.[\w-]{16,}+(?:\.[\w-]*+)*+                                  # SendGrid
      | (?:whsec_|npm_|pypi-|hf_|gsk_|dop_v1_|shpat_|shpss_)[\w-]{16,}+
    )
    """,
    re.VERBOSE | re.ASCII,
)
"""Secrets that are known by their own shape."""

_HEADS: Final = ("PRIVATE KEY", "hooks.slack", "AKIA", "ASIA", "AIza", "eyJ", "ya29", "SG.")
_HEADS_WITH_DASH: Final = ("k-", "xox", "xapp", "glpat", "GOCSPX", "pypi")
_HEADS_WITH_LINE: Final = (
    *("k_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "whsec_", "npm_", "hf_", "dop_v1_", "shpat_"),
    "shpss_",
)
_NAME_PARTS: Final = (
    *("pass", "secret", "token", "auth", "cookie", "credential", "bearer", "basic", "pwd", "jwt", "otp", "cvc", "cvv"),
)
_NAME_ENDS: Final = re.compile(r"""(?:key(?:[_-]?id)?|sig(?:nature)?)[=:"'\\ \t%>]""")


def may_hold_shape(text: str) -> bool:
    """Return whether `SHAPE` is worth trying: a plain search is many times quicker than a pattern."""
    return (
        _holds_any(text, _HEADS)
        or ("-" in text and _holds_any(text, _HEADS_WITH_DASH))
        or ("_" in text and _holds_any(text, _HEADS_WITH_LINE))
    )


def may_hold_name(text: str) -> bool:
    """Return whether anything in *text* may be a secret name or an authentication scheme."""
    lowered = text.lower()
    if _holds_any(lowered, _NAME_PARTS):
        return True
    return ("key" in lowered or "sig" in lowered) and _NAME_ENDS.search(lowered) is not None


def _holds_any(text: str, parts: tuple[str, ...]) -> bool:
    for part in parts:  # noqa: SIM110 - ``any`` over a generator takes twice as long
        if part in text:
            return True
    return False


SCHEME: Final = re.compile(r"(?i:\b(bearer|basic|apikey|token))([ \t]{1,4}|%20)([A-Za-z0-9._~+/=-]{6,}+)", re.ASCII)
"""An HTTP authentication scheme and what follows it, which may be prose: see `is_credential`."""

USERINFO: Final = re.compile(r"""(://)[^\s/?#"'<>\\]*@""")
"""User and password in a URL."""

ELEMENT: Final = re.compile(r"<([\w:.-]++)>([^<]++)")
"""An XML element without attributes, and its text."""

_SURELY_LONG: Final = 20
_LIKELY_LONG: Final = 8


def is_credential(scheme: str, text: str) -> bool:
    """Return whether what follows an authentication *scheme* is a credential rather than prose.

    "Basic authentication" and "bearer of news" are prose; a credential has digits, capitals inside, or great length.
    """
    if scheme.lower() == "basic":
        return text.endswith("=") or (
            text.lower() != text and text[1:].upper() != text[1:] and text[1:].lower() != text[1:]
        )
    return len(text) >= _SURELY_LONG or (len(text) >= _LIKELY_LONG and looks_random(text))


def looks_random(text: str) -> bool:
    """Return whether *text* is made up rather than a word: it has digits, or capitals inside."""
    return any(character.isdigit() for character in text) or text[1:].lower() != text[1:]
