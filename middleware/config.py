"""Where to record, under which name, and whether at all: explicit arguments, then the environment, then defaults.

Every environment variable of the project is defined here, each described beneath its name.
"""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

ENV_STORE: Final = "CHANGEOVER_STORE"
"""Database URL of the store, for example ``sqlite:///changeover.db`` (the default) or ``postgresql://host/name``."""

ENV_SPOOL: Final = "CHANGEOVER_SPOOL"
"""Folder that takes each record before it reaches the store; beside a SQLite file by default."""

ENV_SERVICE: Final = "CHANGEOVER_SERVICE"
"""The ``service.name`` on every record; ``OTEL_SERVICE_NAME`` when unset, else ``unknown_service``."""

ENV_ENABLED: Final = "CHANGEOVER_ENABLED"
"""``false`` turns recording off, and with it everything of ours: wrapped tools run as if they were bare."""

ENV_TOKEN: Final = "CHANGEOVER_TOKEN"  # noqa: S105 - the variable's name, not a token
"""What visitors of the dashboard must show; needed when it can be reached from other machines."""

ENV_OTEL_SERVICE: Final = "OTEL_SERVICE_NAME"
"""OpenTelemetry's own variable, honoured so that one name serves both."""

DEFAULT_STORE: Final = "sqlite:///changeover.db"
DEFAULT_SERVICE: Final = "unknown_service"

_WORDS: Final = {
    "true": True,
    "1": True,
    "yes": True,
    "on": True,
    "false": False,
    "0": False,
    "no": False,
    "off": False,
}
_SCHEMES: Final = ("sqlite", "postgresql", "postgres")
_MEBIBYTE: Final = 1024 * 1024


class ConfigurationError(ValueError):
    """A setting cannot be used; the message names the setting and says what to put there."""


@dataclass(frozen=True, slots=True)
class Config:
    """Everything a running process needs to know; build it with [`Config.resolve`][changeover.config.Config.resolve].

    Args:
        store: database URL; the path of a SQLite file is absolute, so that a later ``chdir`` changes nothing.
        service: the ``service.name`` of every record.
        spool: folder of the spool.
        recording: whether calls are recorded. A process that does not record serves the legacy payload whatever the
            flags say: what leaves no evidence is no changeover.
        spool_bytes: how large the spool's folder may grow while the store is away; what comes beyond is dropped and
            counted.
        segment_bytes: size at which a process begins a new segment.
        payload_bytes: length at which a recorded payload text is cut, visibly.
        drain_seconds: how often a process moves its records into the store.
        exit_seconds: how long the end of the process may wait for the store.
    """

    store: str
    service: str
    spool: Path
    recording: bool = True
    spool_bytes: int = 256 * _MEBIBYTE
    segment_bytes: int = 4 * _MEBIBYTE
    payload_bytes: int = 16 * 1024
    drain_seconds: float = 0.5
    exit_seconds: float = 2.0

    @classmethod
    def resolve(
        cls,
        *,
        store: str | None = None,
        service: str | None = None,
        spool: str | os.PathLike[str] | None = None,
        recording: bool | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> Self:
        """Return the settings of this process, arguments before environment before defaults.

        An environment variable that is set but empty counts as unset.

        Raises:
            ConfigurationError: for a value that cannot be used.
        """
        url = _store(store if store is not None else _env(environ, ENV_STORE) or DEFAULT_STORE)
        folder = spool if spool is not None else _env(environ, ENV_SPOOL)
        return cls(
            store=url,
            service=_service(service, environ),
            spool=spool_for(url) if folder is None else _folder(folder),
            recording=_word(environ, ENV_ENABLED, default=True) if recording is None else _flag("recording", recording),
        )


def spool_for(store_url: str) -> Path:
    """Return the folder whose records belong to the store at *store_url*.

    ``<file>.spool`` beside a SQLite file, so that both travel together; for a server, a folder in the user's state
    directory that is named by a hash of the URL without its password.

    Raises:
        ConfigurationError: when there is no state directory to put it in.
    """
    file = sqlite_file(store_url)
    if file is not None:
        return file.with_name(f"{file.name}.spool")
    name = hashlib.blake2b(_without_password(store_url).encode(), digest_size=8).hexdigest()
    return _state_directory() / "changeover" / f"{name}.spool"


def sqlite_file(store_url: str) -> Path | None:
    """Return the absolute path of the SQLite file that *store_url* names, or ``None`` for any other database."""
    scheme, separator, rest = store_url.partition("://")
    if not separator or scheme.partition("+")[0] != "sqlite" or not rest.startswith("/"):
        return None
    path = rest[1:].partition("?")[0].removeprefix("file:")
    return Path(path).absolute() if path and path != ":memory:" else None


def _store(url: object) -> str:
    if not isinstance(url, str) or not url.strip():
        raise ConfigurationError(f"store must be a database URL such as {DEFAULT_STORE}, not {url!r}")
    url = url.strip()
    scheme, separator, rest = url.partition("://")
    dialect = scheme.partition("+")[0]
    if not separator:
        raise ConfigurationError(
            f"store must be a database URL, not {_shown(url)!r}: for a SQLite file write sqlite:///{_shown(url)}"
        )
    if dialect not in _SCHEMES:
        raise ConfigurationError(f"store {_shown(url)!r} has an unknown kind {dialect!r}: use sqlite or postgresql")
    if dialect != "sqlite":
        return url
    return _absolute_sqlite(url, scheme, rest)


def _absolute_sqlite(url: str, scheme: str, rest: str) -> str:
    file = sqlite_file(url)
    if file is None:
        raise ConfigurationError(
            f"store {url!r} names no file, and a database in memory cannot be seen by the dashboard: "
            f"use {DEFAULT_STORE} or another file"
        )
    if file.is_dir():
        raise ConfigurationError(f"store {url!r} is a folder: name a file in it")
    path, mark, query = rest[1:].partition("?")
    prefix = "file:" if path.startswith("file:") else ""
    return f"{scheme}:///{prefix}{file}{mark}{query}"


def _service(given: object, environ: Mapping[str, str]) -> str:
    if given is None:
        return _env(environ, ENV_SERVICE) or _env(environ, ENV_OTEL_SERVICE) or DEFAULT_SERVICE
    if not isinstance(given, str) or not given.strip():
        raise ConfigurationError(f"service must be a name such as 'orders-agent', not {given!r}")
    return given.strip()


def _folder(given: str | os.PathLike[str]) -> Path:
    try:
        path = Path(given).expanduser().absolute()
    except (TypeError, RuntimeError) as fault:
        raise ConfigurationError(f"spool must be the path of a folder, not {given!r}: {fault}") from None
    if path.exists() and not path.is_dir():
        raise ConfigurationError(f"spool {str(path)!r} is not a folder: name a folder, or one that does not exist yet")
    return path


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ConfigurationError(f"{name} must be True or False, not {value!r}")
    return value


def _word(environ: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = _env(environ, name)
    if text is None:
        return default
    try:
        return _WORDS[text.lower()]
    except KeyError:
        raise ConfigurationError(f"{name} must be true or false, not {text!r}") from None


def _env(environ: Mapping[str, str], name: str) -> str | None:
    return environ.get(name, "").strip() or None


def _state_directory() -> Path:
    override = os.environ.get("XDG_STATE_HOME", "").strip()
    if override:
        return Path(override)
    try:
        home = Path.home()
    except RuntimeError:
        raise ConfigurationError(f"this user has no home folder: set {ENV_SPOOL} to a folder for the spool") from None
    return home / "Library" / "Application Support" if sys.platform == "darwin" else home / ".local" / "state"


def _without_password(url: str) -> str:
    head, at, tail = url.rpartition("@")
    if not at:
        return url
    scheme, separator, credentials = head.partition("://")
    return f"{scheme}{separator}{credentials.partition(':')[0]}@{tail}"


def _shown(url: str) -> str:
    return _without_password(url)
