"""Suites and training runs on a Ray cluster of several workers, some of which are killed."""

import contextlib
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import doppler_gym as dg
import page_report
from doppler_gym import distributed, leaderboard

ray = pytest.importorskip("ray", reason="Ray is not installed")
pytestmark = pytest.mark.filterwarnings("default")  # Ray's own are not ours
COMMAND = [sys.executable, "-c", "import sys, doppler_gym as dg; sys.exit(dg.main())"]


@pytest.fixture(scope="module")
def cluster():
    """Three workers on this machine; its address."""
    ray.init(
        address="local",
        num_cpus=3,
        include_dashboard=False,
        logging_level="error",
        log_to_driver=False,
    )
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    path = tmp_path_factory.mktemp("suite") / "small.json"
    path.write_text(json.dumps(page_report.SUITE))
    page_report.command("leaderboard", "suites", "--fill", str(path))
    return str(path)


def rows_of(folder):
    """The rows of a folder by file, without what is measured or says where and by what."""
    rows = {}
    for path in sorted(pathlib.Path(folder).rglob("*.json")):
        row = json.loads(path.read_text())
        del row["hardware"], row["command"]
        for result in row["results"]:
            for run in result["runs"]:
                run["seconds"] = 0
                run["curve"] = [[used, 0, makespan] for used, _, makespan in run["curve"]]
        rows[path.name] = row
    return rows


@contextlib.contextmanager
def killing_the_first(marker):
    """Meanwhile kills the worker that leaves its id in the marker; gives the ids as they die."""
    killed, over = [], threading.Event()

    def watch():
        while not killed and not over.wait(0.02):
            if marker.exists() and (text := marker.read_text()).endswith("\n"):
                worker, own = map(int, text.split())
                os.kill(worker, signal.SIGKILL)
                killed.extend((worker, own))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def wait_for_death(marker, worker):
    """The first to come tells whom to kill and waits for that; others go on."""
    try:
        with open(marker, "x") as file:
            file.write(f"{worker} {os.getpid()}\n")
    except FileExistsError:
        return
    time.sleep(300)


class Fragile(dg.Agent):
    """Each node where it could start first; the worker of the first decision is killed."""

    environment = {"mode": "place"}  # noqa: RUF012
    deterministic = True

    def __init__(self, marker):
        self.marker = marker

    def act(self, observation, info):
        if self.marker:
            wait_for_death(self.marker, os.getppid())
        starts = observation["device_features"][:, 4]
        return int(np.where(info["action_mask"] == 1, starts, np.inf).argmin())


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return (
        "Z" not in pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    )


def test_rows_are_those_of_a_local_run_though_a_worker_is_killed(cluster, suite, tmp_path):
    marker = tmp_path / "marker"
    agents = {"fragile": Fragile(str(marker))}
    far = tmp_path / "far"
    with killing_the_first(marker) as killed:
        done = distributed.evaluate(suite, agents, rows=far, address=cluster, tiers=[1])
    assert done.failed == []
    assert len(done.made) == 1
    assert len(killed) == 2
    # What the dead worker had started does not live on.
    end = time.monotonic() + 20
    while is_alive(killed[1]) and time.monotonic() < end:
        time.sleep(0.1)
    assert not is_alive(killed[1])
    near = leaderboard.run(suite, "fragile", rows=tmp_path / "near", tiers=[1])
    assert near.made == done.made
    assert rows_of(tmp_path / "far") == rows_of(tmp_path / "near")
    assert leaderboard.verify(tmp_path / "far" / done.made[0], suite=suite) == []


def test_built_in_agents_and_resume(cluster, suite, tmp_path):
    agents = ["heft", "annealing"]
    done = distributed.evaluate(suite, agents, rows=tmp_path / "far", address=cluster)
    assert len(done.made) == 3
    leaderboard.run(suite, agents, rows=tmp_path / "near")
    assert rows_of(tmp_path / "far") == rows_of(tmp_path / "near")
    row = json.loads((tmp_path / "far" / done.made[0]).read_text())
    assert row["hardware"] == json.loads((tmp_path / "near" / done.made[0]).read_text())["hardware"]
    again = distributed.evaluate(suite, agents, rows=tmp_path / "far", address=cluster, resume=True)
    assert (again.made, sorted(again.found)) == ([], sorted(done.made))
    with pytest.raises(dg.UsageError, match="--resume"):
        distributed.evaluate(suite, agents, rows=tmp_path / "far", address=cluster)


class SlowToPack(Fragile):
    """Takes long enough to pack that the starts of several processes overlap."""

    def __getstate__(self):
        time.sleep(0.3)
        return self.__dict__


def test_an_agent_is_packed_by_several_starts_at_once(cluster, suite, tmp_path):
    agents = {"slow-to-pack": SlowToPack("")}
    done = distributed.evaluate(suite, agents, rows=tmp_path, address=cluster, tiers=[1], jobs=8)
    assert (len(done.made), done.failed) == (1, [])


class Fails(dg.Agent):
    environment = {"mode": "place"}  # noqa: RUF012

    def __init__(self, how):
        self.how = how

    def act(self, observation, info):
        if self.how == "raises":
            raise ValueError("not today")
        if self.how == "crashes":
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.how == "kills its worker":
            os.kill(os.getppid(), signal.SIGKILL)
        return 0


def test_what_fails_fails_its_own_row(cluster, suite, tmp_path):
    agents = {
        "fails-raising": Fails("raises"),
        "fails-crashing": Fails("crashes"),
        "fails-killing": Fails("kills its worker"),
        "fails-never": Fails("never"),
    }
    done = distributed.evaluate(
        suite, agents, rows=tmp_path, address=cluster, tiers=[1], retries=1, kind="other"
    )
    assert [name.split("--")[0] for name in done.made] == ["small/fails-never"]
    reasons = {row.agent: row.reason for row in done.failed}
    assert "not today" in reasons["fails-raising"]
    assert "signal 11" in reasons["fails-crashing"]
    assert "begun 2 times and its worker died each time" in reasons["fails-killing"]
    assert len(list(tmp_path.rglob("*.failed"))) == 3


def test_the_command_takes_the_address(cluster, suite, tmp_path):
    arguments = ["leaderboard", "run", "--suite", suite, "--agents", "heft,rule-search"]
    page_report.command(*arguments, "--rows", str(tmp_path / "near"))
    answer = subprocess.run(
        [*COMMAND, *arguments, "--rows", str(tmp_path / "far"), "--ray", cluster, "--json"],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert answer.returncode == 0, answer.stderr
    assert len(json.loads(answer.stdout)["made"]) == 3
    assert answer.stderr == ""
    assert rows_of(tmp_path / "far") == rows_of(tmp_path / "near")


def making_heft(suite, rows):
    return ["leaderboard", "run", "--suite", suite, "--agents", "heft", "--rows", str(rows)]


def test_mistakes_are_told(suite, tmp_path):
    real = "real-cpu"
    with pytest.raises(dg.UsageError, match="real engine"):
        distributed.evaluate(real, "heft", rows=tmp_path, address="local")
    with pytest.raises(dg.UsageError, match="at least one task"):
        distributed.train("annealing", [], seeds=[0], out=tmp_path, address="local")
    answer = subprocess.run(
        [*COMMAND, *making_heft(suite, tmp_path), "--ray", "local"],
        capture_output=True,
        text=True,
        timeout=100,
        env=without_ray(tmp_path),
    )
    assert answer.returncode == 2
    assert "pip install 'doppler-gym[ray]'" in answer.stderr
    assert answer.stderr.count("\n") == 1


def without_ray(folder):
    """An environment in which a module that cannot be imported takes Ray's place."""
    (folder / "hidden").mkdir()
    (folder / "hidden" / "ray.py").write_text("raise ImportError('No module named ray')\n")
    folders = [str(folder / "hidden"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}


@pytest.mark.parametrize("address", ["nonsense address", "localhost:1", "nohost.invalid:6379"])
def test_there_is_no_cluster_at_the_address(suite, tmp_path, address):
    answer = subprocess.run(
        [*COMMAND, *making_heft(suite, tmp_path), "--ray", address],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert answer.returncode == 1
    assert f"no Ray cluster at '{address}'" in answer.stderr
    assert "Traceback" not in answer.stderr


class Learner:
    """Looks at one assignment after another, and remembers the best."""

    def __init__(self, tasks, options, marker):
        self.task, self.options, self.marker = tasks[0], options, marker
        self.rng = np.random.default_rng(options.seed)
        self.used, self.least = 0, float("inf")
        self.devices = np.zeros(self.task.graph.n_nodes, np.int32)

    def update(self):
        if self.used >= self.options.max_evaluations:
            return False
        if self.marker and self.used == 5:
            wait_for_death(self.marker, os.getpid())
        shape = self.task.graph.n_nodes
        devices = self.rng.integers(0, self.task.cluster.n_devices, shape).astype(np.int32)
        makespan = self.task.simulator().makespan(devices)
        self.used += 1
        if makespan < self.least:
            self.devices, self.least = devices, makespan
        return True

    def progress(self):
        return {
            "stage": 2,
            "updates": self.used,
            "episodes": self.used,
            "evaluations": self.used,
            "share": self.used / self.options.max_evaluations,
            "best_makespan": self.least,
            "values": {},
        }

    def best(self, task):
        return self.devices, None if self.least == float("inf") else self.least

    def policy(self):
        return json.dumps(self.devices.tolist())

    def state(self):
        return pickle.dumps((self.rng, self.used, self.least, self.devices))

    def restore(self, state):
        self.rng, self.used, self.least, self.devices = pickle.loads(state)


@pytest.fixture(scope="module", autouse=True)
def learner():
    @dg.register_agent("test-looker", summary="looks")
    class Looker(dg.Agent):
        def __init__(self, marker=""):
            pass

        def act(self, observation, info):
            return 0

        @staticmethod
        def trainer(tasks, options, marker):
            return Learner(tasks, options, marker)


@pytest.mark.parametrize("shared", [False, True])
def test_a_sweep_is_what_training_alone_gives(cluster, tmp_path, shared):
    tasks, seeds = ["chainmm(n=1000,shards=2)@p100x4", "ffnn(shards=2)@p100x4"], [0, 7]
    options = {"evaluations": 30, "stages": [2], "checkpoint_every": 1}
    marker = tmp_path / "marker"
    agent = f"test-looker(marker={marker})"
    seen = []
    with killing_the_first(marker) as killed:
        runs = distributed.train(
            agent,
            tasks,
            seeds=seeds,
            out=tmp_path / "sweep",
            address=cluster,
            shared=shared,
            progress=lambda run, done, total: seen.append((run.seed, done, total)),
            **options,
        )
    assert [run.failure for run in runs] == [""] * 4
    assert len(killed) == 2
    assert [(run.task, run.seed) for run in runs] == [(t, s) for t in tasks for s in seeds]
    assert [item[1:] for item in seen] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    for number, run in enumerate(runs):
        alone = dg.train(
            "test-looker", run.task, out=tmp_path / str(number), seed=run.seed, **options
        )
        assert run.makespan == alone.makespan
        assert run.makespan < float("inf")
        theirs = (run.folder / alone.tasks[0].path.name).read_text()
        assert theirs == alone.tasks[0].path.read_text()
        assert len(dg.read_metrics(run.folder)) == len(alone.metrics())
    assert sorted(path.name for path in (tmp_path / "sweep").iterdir()) == sorted(
        run.folder.name for run in runs
    )
    again = distributed.train(
        agent, tasks, seeds=seeds, out=tmp_path / "sweep", address=cluster, resume=True, **options
    )
    assert again == runs
    with pytest.raises(dg.UsageError, match="resume=True"):
        distributed.train(agent, tasks, seeds=[0], out=tmp_path / "sweep", address=cluster)
