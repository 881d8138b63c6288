"""The key of the digests: one per spool, so that a digest of personal data cannot be reversed with a dictionary."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

KEY_BYTES: Final = 32
_NAME: Final = "key"


def digest_key(spool: Path) -> bytes:
    """Return the 32-byte key that lies in *spool*, and create both when they are not there yet.

    Two processes that start at once agree on one key: each writes its own under a private name and links it to the
    final one, which only the first can do.

    Raises:
        OSError: when the folder cannot be made or written.
        ValueError: when the file holds something else than a key.
    """
    spool.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = spool / _NAME
    try:
        return _read(path)
    except FileNotFoundError:
        _create(path)
        return _read(path)


def _read(path: Path) -> bytes:
    key = bytes.fromhex(path.read_bytes().decode().strip())
    if len(key) != KEY_BYTES:
        raise ValueError(f"{path} holds no key of {KEY_BYTES} bytes: remove it, and digests begin afresh")
    return key


def _create(path: Path) -> None:
    private = path.with_name(f".{_NAME}-{os.getpid()}-{secrets.token_hex(4)}")
    descriptor = os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, secrets.token_bytes(KEY_BYTES).hex().encode() + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    try:
        os.link(private, path)
    except FileExistsError:
        pass
    except OSError:
        # Some network and FUSE file systems have no links; there the last writer wins, before anyone has read.
        private.rename(path)
        return
    private.unlink()
