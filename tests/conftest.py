"""What holds for all tests: Hypothesis times nothing, since a busy machine is no fault of the code."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("changeover", deadline=None)
settings.load_profile("changeover")
