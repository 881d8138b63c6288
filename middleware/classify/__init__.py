"""Recognising failures: from an exception or a returned value to a ``ToolError``."""
