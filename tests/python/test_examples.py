"""Every program of examples/python runs and says something."""

import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"
ARGUMENTS = {"maskable_ppo": ["2432"], "behaviour_cloning": ["2", "50", "1"]}


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_the_example_runs(name):
    if name == "maskable_ppo":
        pytest.importorskip("sb3_contrib")
    if name == "behaviour_cloning":
        pytest.importorskip("torch")
        pytest.importorskip("minari")
    if name == "own_workload":
        pytest.importorskip("networkx")
    answer = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *ARGUMENTS.get(name, [])],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""
    assert " s" in answer.stdout or " ms" in answer.stdout
