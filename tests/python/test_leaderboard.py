"""The leaderboard from Python: statistics against rliable, agents of Python, rows."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import ClassVar

import numpy as np
import pytest
from rliable import library, metrics

import doppler_gym as dg
from doppler_gym import leaderboard

SUITE = {
    "format": "doppler-suite",
    "version": 1,
    "name": "small",
    "revision": 1,
    "summary": "for tests",
    "engine": "simulator",
    "seeds": [0, 1],
    "runs": 2,
    "first_luck": 1000000,
    "tiers": [{"evaluations": 1, "seconds": 5}, {"evaluations": 20, "seconds": 5}],
    "training": {"max_evaluations": 100, "max_seconds": 60, "held_out": False, "tasks": []},
    "tasks": [
        {"name": "exact", "task": "chainmm(n=1000,shards=2)@p100x4"},
        {
            "name": "lucky",
            "task": "ffnn(shards=2)@p100x4",
            "settings": {"choice": "random", "noise": 0.1},
        },
    ],
}


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    path = tmp_path_factory.mktemp("suite") / "small.json"
    path.write_text(json.dumps(SUITE))
    command(["leaderboard", "suites", "--fill", str(path)])
    return str(path)


def command(arguments):
    answer = subprocess.run(
        [sys.executable, "-c", "import sys, doppler_gym as dg; sys.exit(dg.main())", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert answer.returncode == 0, answer.stderr


class Earliest(dg.Agent):
    """Each node where it could start first."""

    environment: ClassVar = {"mode": "place"}

    def act(self, observation, info):
        starts = observation["device_features"][:, 4]
        return int(np.where(info["action_mask"] == 1, starts, np.inf).argmin())


def scores_of(rng, n_runs, n_tasks, shift=0.0):
    return rng.lognormal(shift, 0.4, (n_runs, n_tasks)) + np.linspace(0, 1, n_tasks)


@pytest.mark.parametrize(("n_runs", "n_tasks"), [(1, 1), (3, 5), (5, 13), (4, 2)])
def test_the_interquartile_mean_is_rliables(rng, n_runs, n_tasks):
    scores = scores_of(rng, n_runs, n_tasks)
    ours = leaderboard.interquartile_mean(scores.T)
    assert ours.value == pytest.approx(metrics.aggregate_iqm(scores), rel=1e-12)


@pytest.mark.filterwarnings("ignore:random_state is deprecated:FutureWarning")
def test_the_stratified_bootstrap_is_rliables(rng):
    scores = scores_of(rng, 5, 8)
    _, intervals = library.get_interval_estimates(
        {"agent": scores},
        lambda x: np.array([metrics.aggregate_iqm(x)]),
        reps=1000,
        random_state=np.random.RandomState(0),
    )
    low, high = intervals["agent"][:, 0]
    ours = leaderboard.interquartile_mean(scores.T, samples=40000)
    # Two estimates of the same quantiles from 1,000 samples and more.
    assert ours.low == pytest.approx(low, abs=0.08 * (high - low))
    assert ours.high == pytest.approx(high, abs=0.08 * (high - low))


def test_the_probability_of_improvement_is_rliables(rng):
    for ties in (False, True):
        x, y = scores_of(rng, 5, 6), scores_of(rng, 4, 6, 0.2)
        if ties:
            x, y = np.round(x), np.round(y)
        # rliable's is for scores of which more is better.
        expected = metrics.probability_of_improvement(-x, -y)
        assert leaderboard.probability_of_improvement(x.T, y.T) == pytest.approx(expected)


def test_scores_that_are_none_are_refused():
    with pytest.raises(dg.UsageError, match="at least one task"):
        leaderboard.interquartile_mean([])
    with pytest.raises(dg.UsageError, match="2 tasks"):
        leaderboard.probability_of_improvement([[1], [2]], [[1]])


def test_an_object_makes_a_row_that_holds(suite, tmp_path):
    rows = tmp_path / "rows"
    done = leaderboard.run(suite, Earliest(), rows=rows, tiers=[1], kind="heuristic", note="a note")
    assert len(done.made) == 1
    assert not done.failed
    path = rows / done.made[0]
    assert leaderboard.verify(path, suite=suite) == []
    row = json.loads(path.read_text())
    assert (row["agent"], row["kind"], row["note"]) == ("earliest", "heuristic", "a note")
    for result, spelling in zip(
        row["results"], ("chainmm(n=1000,shards=2)@p100x4", "ffnn(shards=2)@p100x4"), strict=True
    ):
        played = dg.run(Earliest(), spelling)
        assert result["runs"][0]["assignment"] == played.assignment.tolist()
    ranking = leaderboard.rank(rows, suite=suite)
    assert ranking["suites"][0]["tiers"][0]["ranking"][0]["agent"] == "earliest"
    assert len(leaderboard.report(rows, suite=suite)["rows"]) == 1
    with pytest.raises(dg.UsageError, match="--resume"):
        leaderboard.run(suite, "earliest", rows=rows, tiers=[1], kind="heuristic")


class Fails(dg.Agent):
    environment: ClassVar = {"mode": "place"}

    def __init__(self, how):
        self.how = how

    def act(self, observation, info):
        if self.how == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif self.how == "exit":
            os._exit(3)
        elif self.how == "raise":
            raise ValueError("not today")
        elif self.how == "hang":
            time.sleep(600)
        elif self.how == "memory":
            self.kept = np.ones(1 << 30)
        elif self.how == "illegal":
            return 99
        return 0


def test_what_an_object_does_wrong_fails_its_own_row(suite, tmp_path):
    hows = ("crash", "exit", "raise", "hang", "memory", "illegal", "nothing")
    agents = {f"fails-by-{how}": Fails(how) for how in hows}
    done = leaderboard.run(suite, agents, rows=tmp_path / "rows", tiers=[1], memory=2)
    assert [name.split("--")[0] for name in done.made] == ["small/fails-by-nothing"]
    reasons = {row.agent.removeprefix("fails-by-"): row.reason for row in done.failed}
    assert set(reasons) == set(hows) - {"nothing"}
    assert "signal 11" in reasons["crash"]
    assert "exit code 3" in reasons["exit"]
    assert "not today" in reasons["raise"]
    assert "within the 5 s" in reasons["hang"]
    assert "emory" in reasons["memory"]
    assert "99" in reasons["illegal"]


class Leaves(Earliest):
    def act(self, observation, info):
        os.chdir("/")
        return super().act(observation, info)


def test_an_agent_may_leave_the_folder_that_a_suite_is_told_in(suite, tmp_path, monkeypatch):
    monkeypatch.chdir(pathlib.Path(suite).parent)
    name = pathlib.Path(suite).name
    done = leaderboard.run(name, {"leaves": Leaves()}, rows=tmp_path / "rows", tiers=[1])
    assert (len(done.made), done.failed) == (1, [])


class Talks(Earliest):
    def act(self, observation, info):
        print("from Python")
        os.write(1, b"from elsewhere\n")
        return super().act(observation, info)


def test_what_an_object_prints_is_no_output_of_the_run(suite, tmp_path, capfd):
    print("before", end="")  # may lie in a buffer that the processes inherit
    leaderboard.run(suite, {"talks": Talks()}, rows=tmp_path / "rows", tiers=[1])
    out, err = capfd.readouterr()
    assert out == "before"
    assert "from Python" in err
    assert "from elsewhere" in err


def test_a_file_with_an_agent_is_the_command(suite, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "import sys\n"
        "import doppler_gym as dg\n"
        "@dg.register_agent('first', summary='device 0')\n"
        "class First(dg.Agent):\n"
        "    environment = {'mode': 'place'}\n"
        "    deterministic = True\n"
        "    def act(self, observation, info):\n"
        "        print('something')\n"
        "        return 0\n"
        "if __name__ == '__main__':\n"
        "    sys.exit(dg.main())\n"
    )
    rows = tmp_path / "rows"
    answer = subprocess.run(
        [
            sys.executable,
            str(mine),
            "leaderboard",
            "run",
            "--suite",
            suite,
            "--agents",
            "first",
            "--tiers",
            "1",
            "--rows",
            str(rows),
            "--json",
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert answer.returncode == 0, answer.stderr
    (name,) = json.loads(answer.stdout)["made"]
    row = json.loads((rows / name).read_text())
    assert set(row["results"][0]["runs"][0]["assignment"]) == {0}
    assert row["kind"] == "other"


def test_a_row_is_made_of_decisions_in_any_order(suite, tmp_path):
    keys = leaderboard.decisions(suite, "annealing", 20)
    assert len(keys) == 2 * 2
    records = [leaderboard.decide(key) for key in reversed(keys)]
    row = leaderboard.row(suite, "annealing", 20, records, authors=["A. Author"])
    assert leaderboard.verify(row, suite=suite) == []
    path = leaderboard.save(row, rows=tmp_path, suite=suite)
    done = leaderboard.run(suite, "annealing", rows=tmp_path / "other", tiers=[20])
    other = json.loads((tmp_path / "other" / done.made[0]).read_text())
    for ours, theirs in zip(row["results"], other["results"], strict=True):
        for a, b in zip(ours["runs"], theirs["runs"], strict=True):
            assert (a["assignment"], a["makespans"]) == (b["assignment"], b["makespans"])
    with pytest.raises(dg.UsageError, match="is there"):
        leaderboard.save(row, rows=tmp_path, suite=suite)
    row["results"][0]["runs"][0]["makespans"][0] *= 1.001
    assert "but the assignment gives" in " ".join(leaderboard.verify(row, suite=suite))
    with pytest.raises(dg.UsageError, match="does not hold"):
        leaderboard.save(row, rows=tmp_path / "third", suite=suite)
    assert path.exists()
    with pytest.raises(dg.RunError, match="was not made"):
        leaderboard.row(suite, "annealing", 20, records[1:])
    with pytest.raises(dg.UsageError, match="author"):
        leaderboard.row(suite, "annealing", 20, records, author="A")


def test_the_suites_are_those_of_the_command():
    suites = leaderboard.suites()
    assert set(suites) >= {"paper-4", "paper-8", "published", "generalize", "scale", "real-cpu"}
    assert leaderboard.suite("scale") == suites["scale"]
    with pytest.raises(dg.UsageError, match="paper-4"):
        leaderboard.suite("paper-5")
