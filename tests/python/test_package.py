"""The package as a whole: import, types, command, exceptions."""

import itertools
import json
import os
import pathlib
import pickle
import subprocess
import sys
import sysconfig
from importlib import metadata

import pytest

import doppler_gym as dg


def python(*arguments, **options):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=300, **options
    )


def test_import_prints_nothing_and_leaves_the_heavy_libraries_alone():
    code = (
        "import sys, doppler_gym\n"
        "heavy = {'torch', 'networkx', 'stable_baselines3', 'torchrl', 'ray', 'tensorboard'}\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    answer = python("-W", "error", "-c", code)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")


def test_everything_public_is_documented():
    for name in dg.__all__:
        thing = getattr(dg, name)
        if name != "__version__":
            assert thing.__doc__, name
    assert set(dg.__all__) <= set(dir(dg))


def test_the_distribution_holds_the_types_and_the_command():
    names = {path.name for path in metadata.files("doppler-gym")}
    assert {"py.typed", "_core.pyi", "doppler-gym", "LICENSE"} <= names
    assert not [name for name in names if name.endswith((".a", ".h", ".cc"))]


def test_the_version_is_that_of_the_project(root):
    assert dg.__version__ == metadata.version("doppler-gym")
    assert f"project(DopplerGym VERSION {dg.__version__} " in (root / "CMakeLists.txt").read_text()


def test_the_exceptions_are_what_people_catch():
    assert issubclass(dg.UsageError, ValueError)
    assert issubclass(dg.InvalidError, ValueError)
    assert issubclass(dg.ParseError, ValueError)
    assert issubclass(dg.RunError, OSError)
    for error in (dg.UsageError, dg.InvalidError, dg.ParseError, dg.RunError):
        assert issubclass(error, dg.DopplerError)
        told = error("what, where, how")
        assert str(told) == str(pickle.loads(pickle.dumps(told))) == "what, where, how"


def test_the_examples_of_the_readme_print_what_it_says(root):
    blocks = (root / "README.md").read_text().split("```python\n")[1:]
    assert len(blocks) >= 2
    for block in blocks:
        code, rest = block.split("```\n", 1)
        if "dg.main()" in code:  # a command, which test_own_agents.py runs
            continue
        answer = python("-c", code)
        assert answer.stderr == ""
        # The first indented lines behind the code.
        lines = itertools.dropwhile(lambda line: not line.startswith("    "), rest.splitlines())
        want = [line[4:] for line in itertools.takewhile(lambda line: line.startswith(" "), lines)]
        assert answer.stdout.splitlines() == want


def test_the_stub_names_what_the_extension_has(root):
    pytest.importorskip("mypy")
    answer = python(
        "-m",
        "mypy.stubtest",
        "doppler_gym._core",
        "--mypy-config-file=pyproject.toml",
        "--ignore-disjoint-bases",
        "--ignore-positional-only",
        "--concise",
        cwd=root,
    )
    # The extension's classes have a metaclass and an initialiser of their own.
    ours = ("is inconsistent, metaclass differs", 'does not have *args parameter "args"')
    faults = [line for line in answer.stdout.splitlines() if not line.endswith(ours)]
    assert faults == []
    assert answer.stderr == ""


SAMPLE = """
import numpy as np
import doppler_gym as dg

graph = dg.Graph.from_costs(np.ones(3), np.ones(3), [[0, 1]])
task = dg.Task(graph, dg.Cluster.uniform(2), network="fair", noise=0.1)
simulator = dg.Simulator(graph, task.cluster, policy="random", seed=3)
reveal_type(simulator.makespans([[0, 1, 0]], threads=2))
reveal_type(dg.agent("heft").assign(task, evaluations=3).makespan)
reveal_type(dg.simulate(graph, task.cluster, [0, 1, 0]).transfers)
dg.Task(graph, task.cluster, netwrk="fair")
dg.Simulator(graph, task.cluster, network="lan")
simulator.makespan([0, 1, 0], 3)
"""


def test_type_checkers_see_the_types(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "sample.py").write_text(SAMPLE)
    answer = python("-m", "mypy", "--strict", "sample.py", cwd=tmp_path)
    lines = answer.stdout.splitlines()
    revealed = [line for line in lines if "Revealed type" in line]
    assert "ndarray" in revealed[0]
    assert "float64" in revealed[0]
    assert "float" in revealed[1]
    assert "void" in revealed[2]
    errors = [line for line in lines if "error:" in line]
    assert len(errors) == 3, answer.stdout
    for error, words in zip(errors, ("netwrk", "network", "positional"), strict=True):
        assert words in error


def command(*arguments, **options):
    program = pathlib.Path(sysconfig.get_path("scripts")) / "doppler-gym"
    return subprocess.run(
        [program, *arguments],
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        timeout=60,
        **options,
    )


def test_the_command_comes_with_the_package(tmp_path):
    answer = command("--version")
    assert answer.returncode == 0
    assert dg.__version__ in answer.stdout
    assert "llama-layer@p100x4" in command("tasks").stdout
    bad = command("tasks", "--nonsense")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert "--nonsense" in bad.stderr
    absent = command("graph", "check", os.fsencode(tmp_path) + b"/\xff.json")
    assert absent.returncode == 1
    assert absent.stderr.count("\n") == 1


def test_the_command_agrees_with_the_package():
    task = dg.task("chainmm@p100x4")
    answer = command("assign", "--task", task.name, "--agent", "partner-list", "--json")
    told = json.loads(answer.stdout)
    result = dg.agent("partner-list").assign(task)
    assert told["assignment"] == result.assignment.tolist()
    assert told["makespan"] == result.makespan
