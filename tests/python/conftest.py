"""What the tests share: random problems and the public reference data."""

import json
import pathlib
import signal

import numpy as np
import pytest

import doppler_gym as dg

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def reference():
    """Reads a file of the reference data beside the project: text, or what its JSON holds."""
    folder = ROOT.parent / "shared" / "reference"

    def read(name):
        path = folder / name
        if not path.exists():
            pytest.skip(f"{path} is not there: the reference data is not part of the project")
        return json.loads(path.read_text()) if path.suffix == ".json" else path

    return read


def make_agent_or_skip(name):
    """The agent; the test is skipped, with the reason, where this build lacks it."""
    try:
        return dg.agent(name)
    except dg.RunError as error:
        pytest.skip(str(error))


def draw_costs(rng, n_nodes, *, n_devices=None, own_tensors=False):
    """Arguments of Graph.from_costs; whole numbers, so that instants coincide."""
    pairs = [(p, r) for r in range(n_nodes) for p in range(max(0, r - 6), r) if rng.random() < 0.35]
    ids = rng.permutation(n_nodes)
    edges = [(int(ids[p]), int(ids[r])) for p, r in pairs]
    rng.shuffle(edges)
    shape = n_nodes if n_devices is None else (n_nodes, n_devices)
    compute = rng.integers(0, 6, shape).astype(float)
    if own_tensors:
        rows = [(p, r, float(rng.integers(0, 5))) for p, r in edges]
        return compute, None, np.array(rows, float).reshape(-1, 3)
    return compute, rng.integers(0, 5, n_nodes).astype(float), np.array(edges).reshape(-1, 2)


@pytest.fixture
def rng():
    return np.random.default_rng(20240607)


@pytest.fixture
def diamond():
    """0 -> 1, 2 -> 3; compute 1, 2, 3, 4; outputs 10, 20, 30, 40."""
    return dg.Graph.from_costs(
        [1.0, 2.0, 3.0, 4.0],
        [10.0, 20.0, 30.0, 40.0],
        [[0, 1], [0, 2], [1, 3], [2, 3]],
        names=["a", "b", "c", "d"],
        kinds=["x", "y", "y", "x"],
        name="diamond",
    )


@pytest.fixture(autouse=True, scope="session")
def _interrupts_are_heard():
    """A shell starts background jobs with SIGINT ignored; then Python hears no interrupt at all."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
