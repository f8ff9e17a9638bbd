"""The CUDA engine's module: loaded when an engine is used, whatever was imported before."""

import importlib.util
import subprocess
import sys

import pytest

import doppler_gym

# Prints what a run gives, and whether CUDA was loaded by the imports alone.
PROGRAM = """
{imports}

def is_loaded():
    with open("/proc/self/maps") as maps:
        return "doppler_cuda.so" in maps.read()

print("loaded" if is_loaded() else "not loaded")
task = doppler_gym.task("chainmm(n=16,shards=2)@uniform(2)")
try:
    run = doppler_gym.Engine("cuda").run(task, [0] * task.graph.n_nodes)
    print("makespan", run.makespan)
except doppler_gym.RunError as error:
    print("error", error)
{after}
"""


def run_program(imports: str, after: str = "") -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(imports=imports, after=after)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return done.stdout.splitlines()


def check(lines: list[str]) -> None:
    assert lines[0] == "not loaded"
    kind, _, rest = lines[1].partition(" ")
    if kind == "makespan":
        assert float(rest) > 0
    else:
        assert "engine 'cuda'" in rest
        assert "finds no GPU" in rest or "DOPPLER_CUDA" in rest


def test_import_loads_nothing_of_cuda() -> None:
    check(run_program("import doppler_gym"))


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
@pytest.mark.parametrize(
    ("imports", "after"),
    [
        ("import torch, doppler_gym", ""),
        ("import doppler_gym, torch", ""),
        ("import doppler_gym", "import torch"),
    ],
)
def test_pytorch_may_be_imported_before_and_after(imports: str, after: str) -> None:
    product = "import torch; print('sum', float((torch.ones(8, 8) @ torch.ones(8, 8)).sum()))"
    lines = run_program(imports, after + "\n" + product)
    check(lines)
    assert lines[2] == "sum 512.0"


def test_the_engine_is_listed_and_checked_without_a_gpu() -> None:
    with pytest.raises(doppler_gym.UsageError, match="precision"):
        doppler_gym.Engine("cuda(precision=float64)")
