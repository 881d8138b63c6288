"""Recognising failures: from an exception or a returned value to a ``ToolError``."""

from .exceptions import Classified, classify_exception
from .traits import Rule, Traits, rules
from .values import classify_result, is_empty, looks_like_failure

__all__ = [
    "Classified",
    "Rule",
    "Traits",
    "classify_exception",
    "classify_result",
    "is_empty",
    "looks_like_failure",
    "rules",
]
