"""From a file to JSON values: plain or gzip, one document or one a line, with bounds on all of it."""

from __future__ import annotations

import gzip
import hashlib
import json
import stat
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .fields import LATEST_NS
from .model import ReplayError

if TYPE_CHECKING:
    import os
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
        numbers: the line of each document, when there is one a line; else nothing.
    """

    path: Path
    digest: str
    modified_ns: int
    values: list[Any]
    numbers: list[int]

    @property
    def lines(self) -> bool:
        """Whether there is one document a line."""
        return bool(self.numbers)

    def placed(self) -> list[tuple[str, Any]]:
        """Return every document with what to call it in an error: its line, or nothing when it is the only one."""
        if not self.lines:
            return [("", value) for value in self.values]
        return [(f"line {number}", value) for number, value in zip(self.numbers, self.values, strict=True)]


def load(path: Path) -> Source:
    """Read *path* whole.

    Raises:
        ReplayError: when it cannot be opened, is too large, or is neither JSON nor JSON lines.
    """
    try:
        modified_ns = min(max(0, _status(path).st_mtime_ns), LATEST_NS)
        data = _content(path)
    except (OSError, EOFError, zlib.error) as error:
        raise ReplayError(path, _reason(error)) from error
    try:
        values, numbers = _documents(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ReplayError(path, f"is no UTF-8 text (byte {error.start})") from None
    except RecursionError:
        raise ReplayError(path, "is nested too deeply") from None
    except ValueError as error:
        raise ReplayError(path, f"is no complete JSON: {error}") from None
    return Source(path, hashlib.blake2b(data, digest_size=16).hexdigest(), modified_ns, values, numbers)


def _status(path: Path) -> os.stat_result:
    status = path.stat()
    # A named pipe in a folder would be waited for until somebody writes.
    if not stat.S_ISREG(status.st_mode):
        raise ReplayError(path, "is a directory" if stat.S_ISDIR(status.st_mode) else "is no regular file")
    return status


def _content(path: Path) -> bytes:
    with path.open("rb") as raw:
        compressed = raw.read(2) == _GZIP
        raw.seek(0)
        reader = gzip.GzipFile(fileobj=raw) if compressed else raw
        data = reader.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ReplayError(path, f"is larger than {MAX_BYTES // 1024 // 1024} MiB: split it")
    return data


def _documents(text: str) -> tuple[list[Any], list[int]]:
    if not text.strip():
        raise ValueError("the file is empty")
    try:
        return [json.loads(text)], []
    except ValueError as whole:
        # A file that breaks in its first line was meant to be one document; its own error says where.
        values: list[Any] = []
        numbers: list[int] = []
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            try:
                values.append(json.loads(line))
            except ValueError as error:
                if not values:
                    raise whole from None
                raise ValueError(f"line {number}: {error}") from None
            numbers.append(number)
        return values, numbers


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    return f"cannot be decompressed: {error}" if isinstance(error, EOFError | zlib.error | OSError) else str(error)
