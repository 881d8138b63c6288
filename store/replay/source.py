"""From a file to JSON values: plain or gzip, one document or one a line, with bounds on all of it."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .model import ReplayError

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES: Final = 512 * 1024 * 1024
"""Largest content that is read, after decompression."""

_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Source:
    """The content of one file.

    Args:
        path: the file.
        digest: 32 hexadecimal digits over the decompressed content.
        modified_ns: when the file was last changed, nanoseconds since the epoch.
        values: the JSON documents in it: one, or one a line.
        lines: whether there is one document a line.
    """

    path: Path
    digest: str
    modified_ns: int
    values: list[Any]
    lines: bool


def load(path: Path) -> Source:
    """Read *path* whole.

    Raises:
        ReplayError: when it cannot be opened, is too large, or is neither JSON nor JSON lines.
    """
    try:
        modified_ns = max(0, path.stat().st_mtime_ns)
        data = _content(path)
    except (OSError, EOFError, zlib.error) as error:
        raise ReplayError(path, _reason(error)) from error
    try:
        values, lines = _documents(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ReplayError(path, f"is no UTF-8 text (byte {error.start})") from None
    except RecursionError:
        raise ReplayError(path, "is nested too deeply") from None
    except ValueError as error:
        raise ReplayError(path, f"is no complete JSON: {error}") from None
    return Source(path, hashlib.blake2b(data, digest_size=16).hexdigest(), modified_ns, values, lines)


def _content(path: Path) -> bytes:
    with path.open("rb") as raw:
        compressed = raw.read(2) == _GZIP
        raw.seek(0)
        reader = gzip.GzipFile(fileobj=raw) if compressed else raw
        data = reader.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ReplayError(path, f"is larger than {MAX_BYTES // 1024 // 1024} MiB: split it")
    return data


def _documents(text: str) -> tuple[list[Any], bool]:
    if not text.strip():
        raise ValueError("the file is empty")
    try:
        return [json.loads(text)], False
    except ValueError as whole:
        # A file that breaks in its first line was meant to be one document; its own error says where.
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        values = []
        for number, line in lines:
            try:
                values.append(json.loads(line))
            except ValueError as error:
                if not values or len(lines) == 1:
                    raise whole from None
                raise ValueError(f"line {number}: {error}") from None
        return values, True


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    return f"cannot be decompressed: {error}" if isinstance(error, EOFError | zlib.error | OSError) else str(error)
