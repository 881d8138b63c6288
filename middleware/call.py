"""One call while it runs: its span in the context, what was asked for, what the flags decided."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel

from .clock import tick

if TYPE_CHECKING:
    from contextvars import Token

    from opentelemetry.context import Context
    from opentelemetry.trace import Span

    from .arguments import BindingFault
    from .flags import Decision
    from .hostbridge import Host
    from .runtime import Runtime
    from .session import Session
    from .spans import LightSpan


class Call:
    """What is known about one call; made by [`Tool.begin`][changeover.calls.Tool.begin].

    Args:
        runtime: the process's runtime at the beginning; a later ``configure`` does not touch a running call.
        decision: which arm, and why.
        session: who calls, or ``None``.
        span: ours, or the carrier of the ids of the host's.
        context: what is attached while the tool runs; ``None`` when the host's span is there already.
        host: the host's tracing when it gets the span.
        host_span: the host's own span of this call.
    """

    __slots__ = (
        "_token",
        "args_digest",
        "args_kind",
        "context",
        "decision",
        "fault",
        "host",
        "host_span",
        "items",
        "last_item",
        "runtime",
        "sequence",
        "session",
        "span",
    )

    def __init__(  # noqa: PLR0917 - made for every call: keywords would cost a tenth of it
        self,
        runtime: Runtime,
        decision: Decision,
        session: Session | None,
        span: LightSpan,
        context: Context | None,
        host: Host | None,
        host_span: Span | None,
    ) -> None:
        self.runtime = runtime
        self.decision = decision
        self.session = session
        self.span = span
        self.context = context
        self.host = host
        self.host_span = host_span
        self.args_digest: str | None = None
        self.args_kind = "raw"
        self.fault: BindingFault | None = None
        self.sequence = tick()
        self.items = 0
        self.last_item: Any = None
        self._token: Token[Context] | None = None

    def enter(self) -> None:
        """Make the span current: what runs now is inside the tool."""
        if self.context is not None:
            self._token = otel.attach(self.context)

    def leave(self) -> None:
        """Give the caller its own context back, and keep the tool's for its next step.

        A tool may end in another context than it began in (an async generator closed by another task); its token is
        worthless there, and so is a message about it in the host's log.
        """
        token, self._token = self._token, None
        if token is None:
            return
        self.context = otel.get_current()
        try:
            token.var.reset(token)
        except ValueError:
            pass
        except AttributeError:  # a runtime context of the host's own making, whose tokens are its own too
            otel.detach(token)

    def end(self) -> None:
        """The tool has finished."""
        self.span.end_ns = time.time_ns()
        if self._token is not None:
            self.leave()

    def abandon(self) -> None:
        """Give the caller its context back after a fault of ours that nobody foresaw; never raises."""
        with suppress(Exception):
            self.leave()

    def take_item(self, item: Any) -> None:
        """Remember an item that a generator yielded; the last one may be its way to say that it failed."""
        self.items += 1
        self.last_item = item
