"""The record at rest: tables, ingest, loops, statistics, flags, and readers of recorded sessions."""
