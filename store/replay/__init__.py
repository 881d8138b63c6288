"""Readers of recorded agent sessions, one module a format."""
