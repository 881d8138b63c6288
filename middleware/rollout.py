"""Which arm a session gets: pure functions over a flag, so that everyone who asks gets the same answer.

Thresholds are monotonic on one hash: raising a rollout adds sessions and never moves one back.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from .semconv import Arm, Reason, Stage

BUCKETS = 10_000


@dataclass(frozen=True, slots=True)
class Flag:
    """The switch of one tool.

    Args:
        tool: the tool's name.
        stage: how far the tool's changeover has come.
        rollout: share of sessions, 0 to 100 %, that ``dual`` or ``cutover`` applies to.
        version: counts up with every change of this flag; 0 means that nobody has ever set it.
        salt: fixed when the flag is created and never changed, since a new salt would re-randomise every session.
    """

    tool: str
    stage: Stage = Stage.SHADOW
    rollout: float = 0.0
    version: int = 0
    salt: str = ""

    def bucket(self, session: str) -> int:
        """Return the place of *session* on this flag's scale, 0 to 9,999, spread evenly by a stable hash."""
        text = f"{self.salt}\x00{self.tool}\x00{session}".encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") % BUCKETS

    def choose(self, session: str | None) -> tuple[Arm, Reason]:
        """Return the arm of a session that has not been seen before, and why.

        Args:
            session: what stays the same during one conversation; ``None`` when nothing of the kind is known, which is
                enough for a rollout of 100 % and for nothing below it.
        """
        if self.stage in (Stage.LEGACY, Stage.SHADOW):
            return Arm.LEGACY, Reason.STATIC if self.version else Reason.DEFAULT
        arm = Arm.DUAL if self.stage is Stage.DUAL else Arm.STRUCTURED
        if self.rollout >= 100:  # noqa: PLR2004 - percent
            return arm, Reason.STATIC
        if session is None:
            return Arm.LEGACY, Reason.TARGETING_KEY_MISSING
        inside = self.bucket(session) < self.rollout * (BUCKETS // 100)
        return (arm if inside else Arm.LEGACY), Reason.SPLIT
