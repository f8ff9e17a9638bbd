"""The Python sources: what ruff and mypy say, with the settings of pyproject.toml."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("ruff", ["check", "."]), ("ruff", ["format", "--check", "."]), ("mypy", [])],
)
def test_the_sources_are_clean(tool, arguments, root):
    pytest.importorskip(tool)
    answer = subprocess.run(
        [sys.executable, "-m", tool, *arguments],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
