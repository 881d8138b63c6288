"""The examples run as they stand and leave the record that they promise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from changeover.store.engine import open_store
from changeover.store.report import report

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_wrapping_a_tool_records_its_loop(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CHANGEOVER_")}
    done = subprocess.run(
        [sys.executable, EXAMPLES / "wrap_a_tool.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    with open_store(f"sqlite:///{tmp_path}/changeover.db") as store:
        tool = report(store)["tools"][0]
    legacy = tool["arms"]["legacy"]

    assert done.stdout.splitlines()[-1] == "recorded"
    assert (tool["tool"], legacy["calls"], legacy["errors"], legacy["loops"]) == ("find_order", 3, 2, 1)
