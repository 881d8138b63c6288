"""The README's commands, example and links are what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)


def test_two_commands_of_one_line_do_their_whole_set_up():
    commands = [text.strip() for language, text in BLOCKS if language == "sh"]

    assert len(commands) == 2
    assert all("\n" not in command for command in commands)
    assert all(command.startswith("python3 -m venv .venv && .venv/bin/python -m pip install ") for command in commands)
    assert commands[0].endswith(" && .venv/bin/changeover demo")


def test_ci_runs_the_very_command_of_the_readme():
    """Its extraction is run here as it stands in .ci/run."""
    script = (ROOT / ".ci" / "run").read_text()
    (extraction,) = re.findall(r"^tests=\$\((.*)\)$", script, re.MULTILINE)
    done = subprocess.run(["bash", "-c", extraction], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == [text.strip() for language, text in BLOCKS if language == "sh"][1]
    assert 'bash -euo pipefail -c "$tests"' in script


def test_the_example_runs_and_is_recorded(tmp_path: Path):
    (code,) = [text for language, text in BLOCKS if language == "python"]
    program = f"ORDERS = {{'O-7': {{}}}}\n{code}\nprint(changeover.flush())"
    environment = {**os.environ, "CHANGEOVER_STORE": f"sqlite:///{tmp_path}/readme.db"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ("True\n", "")
    assert len(code.strip().splitlines()) <= 12


def test_every_link_leads_to_a_file():
    targets = re.findall(r"\]\(([^)#]+)\)", README)

    assert targets
    assert [target for target in targets if not (ROOT / target).is_file()] == []
