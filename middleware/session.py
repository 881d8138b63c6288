"""Who is calling: the conversation and the actor in it, carried by a context variable.

    with changeover.session("conv-42", actor="planner") as conversation:
        conversation.user_message()      # a person said something
        ...                              # ask the model
        conversation.turn()              # the model answered; the calls that follow belong together
        find_order("O-7")
        with changeover.session(actor="researcher"):    # a sub-agent of the same conversation
            search("O-7")

A new thread starts without the context of the one that made it, as everywhere in Python: open the session in the
thread, or run the thread's function through ``contextvars.copy_context().run``.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Final

from .clock import tick

if TYPE_CHECKING:
    from types import TracebackType

MAX_ID_CHARACTERS: Final = 512
MAX_ACTOR_CHARACTERS: Final = 256


class SessionError(ValueError):
    """A session was opened with an id or actor that cannot be recorded; the message says what to pass."""


class _Conversation:
    """What all actors of one session share: when a person last spoke."""

    __slots__ = ("user_turn",)

    def __init__(self) -> None:
        self.user_turn: int | None = None


class Session:
    """One actor in one conversation; made by [`session`][changeover.session.session].

    Turns are readings of the hybrid logical clock, so they keep growing when a conversation goes on in another block,
    thread or process, and nothing has to be remembered between those.

    Attributes:
        id: the conversation's id (``gen_ai.conversation.id``).
        actor: the agent's name, or ``None`` for the only one.
        current_turn: the mark of the latest model response, in ns, or ``None`` when none was ever marked: turns are
            then derived from which calls overlap in time.
        current_user_turn: the mark of the latest user message, in ns, or ``None`` when none was ever marked.
    """

    __slots__ = ("_conversation", "actor", "current_turn", "id")

    def __init__(self, id: str, actor: str | None = None, *, within: Session | None = None) -> None:  # noqa: A002
        self.id = id
        self.actor = actor
        self.current_turn: int | None = None
        self._conversation = _Conversation()
        if within is not None and within.id == id:
            self._conversation = within._conversation  # noqa: SLF001 - of the same class
            self.current_turn = within.current_turn if within.actor == actor else None

    @property
    def current_user_turn(self) -> int | None:
        """The mark of the latest user message of the conversation, whichever actor noted it."""
        return self._conversation.user_turn

    def turn(self) -> int:
        """Mark a new model response of this actor; return its mark."""
        self.current_turn = mark = tick()
        return mark

    def user_message(self) -> int:
        """Mark a new user message, for all actors of the conversation; return its mark."""
        self._conversation.user_turn = mark = tick()
        return mark

    def __repr__(self) -> str:
        return f"Session({self.id!r}, actor={self.actor!r})"


_current: ContextVar[Session | None] = ContextVar("changeover_session", default=None)


def current() -> Session | None:
    """Return the session that the running code is in, or ``None``."""
    return _current.get()


class session:  # noqa: N801 - used as a function: ``with changeover.session(…)``
    """Open a session for the calls inside a ``with`` or ``async with`` block.

    Args:
        id: what stays the same during one conversation or run: 1 to 512 characters. Inside another session it may be
            left out, which keeps that session's id.
        actor: the name of the agent that calls, 1 to 256 characters. Inside another block of the same session it may
            be left out, which keeps that block's actor.

    Raises:
        SessionError: (a ``ValueError``) for an unusable id or actor, and for no id where there is none to keep.
    """

    __slots__ = ("_actor", "_entered", "_id")

    def __init__(self, id: str | None = None, *, actor: str | None = None) -> None:  # noqa: A002
        self._id = None if id is None else _checked("id", id, MAX_ID_CHARACTERS)
        self._actor = None if actor is None else _checked("actor", actor, MAX_ACTOR_CHARACTERS)
        self._entered: list[tuple[Session, Token[Session | None]]] = []

    def __enter__(self) -> Session:
        outer = _current.get()
        if self._id is not None:
            id_ = self._id
        elif outer is not None:
            id_ = outer.id
        else:
            raise SessionError("session id is missing: pass one, or open this block inside another session")
        kept = outer.actor if outer is not None and outer.id == id_ else None
        opened = Session(id_, self._actor if self._actor is not None else kept, within=outer)
        self._entered.append((opened, _current.set(opened)))
        return opened

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        opened, token = self._entered.pop()
        try:
            _current.reset(token)
        except ValueError:
            # Left in another context than entered, as an async generator's clean-up may be. What that context holds is
            # its own, unless it was copied while this block was open.
            if _current.get() is opened:
                _current.set(None if token.old_value is Token.MISSING else token.old_value)

    async def __aenter__(self) -> Session:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, traceback)


def _checked(name: str, value: object, limit: int) -> str:
    if not isinstance(value, str):
        raise SessionError(f"session {name} must be a string, not {type(value).__name__}")
    if not value.strip():
        raise SessionError(f"session {name} must not be empty: pass what stays the same during one conversation")
    if len(value) > limit:
        raise SessionError(f"session {name} has {len(value)} characters, at most {limit} are allowed")
    if "\x00" in value or not _encodable(value):
        raise SessionError(f"session {name} holds characters that no database stores (NUL or half a surrogate pair)")
    return value


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
