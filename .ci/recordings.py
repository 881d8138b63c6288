"""Replay recorded sessions through the command line and compare every figure with the known ones.

    python .ci/recordings.py FOLDER

FOLDER holds the recordings and EXPECTED.json; without it there is nothing to compare, which is said and is no failure.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def replayed(folder: Path) -> dict[str, Any]:
    """Return what ``changeover replay FOLDER --json`` prints, on a store of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        store = f"sqlite:///{scratch}/changeover.db"
        command = [sys.executable, "-m", "changeover", "replay", str(folder), "--store", store, "--json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def differences(expected: Any, found: Any, place: str) -> list[str]:
    """Return every place where *found* lacks or contradicts what is *expected*; what it has beyond that is fine."""
    if isinstance(expected, dict):
        if not isinstance(found, dict):
            return [f"{place}: missing"]
        return [line for key in expected for line in differences(expected[key], found.get(key), f"{place} {key}")]
    if isinstance(expected, float) and isinstance(found, float):
        found = round(found, 4)  # as EXPECTED.json is written
    return [] if expected == found else [f"{place}: expected {expected}, found {found}"]


def main(folder: Path) -> int:
    """Compare and say so; return the exit code."""
    known = folder / "EXPECTED.json"
    if not known.is_file():
        print(f"no recordings at {folder}: nothing to compare")
        return 0
    expected = json.loads(known.read_text())
    figures = replayed(folder)
    by_file = {str(Path(entry["path"]).resolve().relative_to(folder.resolve())): entry for entry in figures["files"]}
    wrong = differences(expected["total"], figures, "total")
    for name, counts in expected["per_file"].items():
        wrong += differences(counts, by_file.get(name), name)
    print("\n".join(wrong) or f"all figures as expected: {len(expected['per_file'])} files, {figures['calls']} calls")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
