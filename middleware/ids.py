"""Trace and span ids from a generator of our own, so that a host's ``random.seed`` cannot make two calls collide."""

from __future__ import annotations

import os
import random
from typing import Final

_TRACE_BITS: Final = 128
_SPAN_BITS: Final = 64

_source = random.Random(os.urandom(32))  # noqa: S311 - ids must be distinct, not secret


def trace_id() -> int:
    """Return a new trace id, never 0, which OpenTelemetry reserves for "none"."""
    return _source.getrandbits(_TRACE_BITS) or trace_id()


def span_id() -> int:
    """Return a new span id, never 0."""
    return _source.getrandbits(_SPAN_BITS) or span_id()


def reseed() -> None:
    """Draw a new seed: a forked child would otherwise repeat its parent's ids."""
    _source.seed(os.urandom(32))


os.register_at_fork(after_in_child=reseed)
