"""Training runs from Python, with an agent that learns in Python."""

import _thread
import json
import math
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import doppler_gym as dg

TASK = "ffnn@p100x4"


class Climb:
    """Changes a few devices of the best assignment and keeps what is better."""

    def __init__(self, tasks, options, batch, fault):
        if 3 in options.stages:
            raise dg.UsageError("stage 3 is not for climbing")
        self.tasks = tasks
        self.options = options
        self.batch = batch
        self.fault = fault
        self.rng = np.random.default_rng(options.seed)
        self.best_of = [(np.zeros(task.graph.n_nodes, np.int32), math.inf) for task in self.tasks]
        if options.initial_policy:
            best = json.loads(options.initial_policy)["best"]
            self.best_of = [(np.array(devices, np.int32), math.inf) for devices in best]
        self.updates = self.evaluations = 0

    def update(self):
        if self.evaluations >= self.options.max_evaluations:
            return False
        if self.fault == "raise" and self.updates == 3:
            raise ValueError("no more")
        if self.fault == "nan" and self.updates == 3:
            raise dg.RunError("the loss is nan")
        if self.fault == "slow":
            time.sleep(0.02)
        index = self.updates % len(self.tasks)
        task = self.tasks[index]
        devices, least = self.best_of[index]
        for _ in range(self.batch):
            changed = devices.copy()
            nodes = self.rng.integers(0, len(devices), 3)
            changed[nodes] = self.rng.integers(0, task.cluster.n_devices, 3)
            makespan = task.simulator().makespan(changed)
            self.evaluations += 1
            if makespan < least:
                devices, least = changed, makespan
        self.best_of[index] = devices, least
        self.updates += 1
        return True

    def progress(self):
        return {
            "stage": 2,
            "updates": self.updates,
            "episodes": self.evaluations,
            "evaluations": self.evaluations,
            "share": min(1, self.evaluations / self.options.max_evaluations),
            "best_makespan": self.best_of[0][1],
            "values": {"loss": 1 / (1 + self.updates), "odd": math.nan},
        }

    def best(self, task):
        devices, makespan = self.best_of[task]
        if self.fault == "lie":
            makespan /= 2
        return devices, None if makespan == math.inf else makespan

    def policy(self):
        return json.dumps({"best": [devices.tolist() for devices, _ in self.best_of]})

    def state(self):
        return pickle.dumps((self.best_of, self.rng, self.updates, self.evaluations))

    def restore(self, state):
        self.best_of, self.rng, self.updates, self.evaluations = pickle.loads(state)


@pytest.fixture(scope="module", autouse=True)
def climber():
    @dg.register_agent("test-climber", summary="climbs")
    class Climber(dg.Agent):
        def __init__(self, batch=5, fault="none"):
            pass

        def act(self, observation, info):
            return 0

        @staticmethod
        def trainer(tasks, options, batch, fault):
            return Climb(tasks, options, batch, fault)


def outcome(folder):
    """Every file of a run but the configuration, without seconds."""
    files = {}
    for path in pathlib.Path(folder).rglob("*"):
        if path.name == "config.json" or path.is_dir():
            continue
        content = path.read_bytes()
        if path.name == "metrics.jsonl":
            lines = [json.loads(line) for line in content.splitlines()]
            content = [{k: v for k, v in line.items() if k != "seconds"} for line in lines]
        if path.name == "checkpoint.bin":
            content = content[content.index(b"\n") :]
        files[path.name] = content
    return files


def test_a_run_gives_its_best_assignment_policy_and_metrics(tmp_path):
    seen = []
    result = dg.train(
        "test-climber", TASK, out=tmp_path / "run", evaluations=60, seed=3, callbacks=[seen.append]
    )
    assert result.state == "over"
    task = dg.task(TASK)
    assert task.simulate(result.assignment).makespan == result.makespan
    assert result.tasks[0].lower_bound == dg.lower_bound(task)
    assert json.loads(result.tasks[0].path.read_text()) == {
        "assignment": result.assignment.tolist()
    }
    assert json.loads(result.policy.read_text())["best"] == [result.assignment.tolist()]
    assert result.progress.updates == 12
    assert result.progress.evaluations == 60
    assert [progress.updates for progress in seen] == list(range(1, 13))
    assert seen[-1].best_makespan == result.makespan
    metrics = result.metrics()
    assert [line["update"] for line in metrics] == list(range(1, 13))
    for line, progress in zip(metrics, seen, strict=True):
        assert line["best_makespan"] == progress.best_makespan
        assert line["evaluations"] == progress.evaluations
        assert line["values"]["loss"] == progress.values["loss"]
        assert line["values"]["odd"] is None
        assert math.isnan(progress.values["odd"])
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["agent"] == "test-climber"
    assert config["tasks"] == [TASK]
    assert config["seed"] == 3


@pytest.mark.parametrize("tasks", [TASK, [TASK, dg.task("chainmm@p100x4")]])
def test_a_run_that_a_callback_stops_goes_on_to_the_same_end(tmp_path, tasks):
    options = {"evaluations": 60, "checkpoint_every": 4}
    whole = dg.train("test-climber", tasks, out=tmp_path / "whole", **options)
    cut = tmp_path / "cut"
    first = dg.train("test-climber", tasks, out=cut, callbacks=[lambda p: p.updates < 7], **options)
    assert first.state == "stopped"
    assert first.progress.updates == 7
    again = dg.train(out=cut, resume=True)
    assert again.state == "over"
    assert again.makespan == whole.makespan
    assert outcome(cut) == outcome(tmp_path / "whole")
    over = dg.train(out=cut, resume=True, callbacks=[lambda _: pytest.fail("nothing is left")])
    assert over.state == "over"
    assert over.progress.updates == 12


def test_an_exception_of_a_callback_leaves_a_checkpoint(tmp_path):
    def interrupt(progress):
        if progress.updates == 5:
            raise KeyboardInterrupt

    whole = dg.train("test-climber", TASK, out=tmp_path / "whole", evaluations=60)
    with pytest.raises(KeyboardInterrupt):
        dg.train("test-climber", TASK, out=tmp_path / "run", evaluations=60, callbacks=[interrupt])
    seen = []
    result = dg.train(out=tmp_path / "run", resume=True, callbacks=[seen.append])
    assert seen[0].updates == 6
    assert result.makespan == whole.makespan
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")


def test_ctrl_c_within_an_update_keeps_the_last_checkpoint(tmp_path):
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    out = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        dg.train("test-climber(fault=slow)", TASK, out=out, evaluations=10**6, checkpoint_every=1)
    timer.join()
    seen = []
    dg.train(out=out, resume=True, callbacks=[seen.append, lambda _: False])
    assert seen[0].updates >= 2


def test_the_interpreter_is_free_during_an_update(tmp_path):
    """A second thread runs while the first trains; the trainer itself sleeps without the lock."""
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.wait(0.001):
            ticks.append(None)

    thread = threading.Thread(target=tick)
    thread.start()
    dg.train("test-climber(fault=slow)", TASK, out=tmp_path / "run", evaluations=50)
    stop.set()
    thread.join()
    assert len(ticks) > 10


@pytest.mark.parametrize(("fault", "word"), [("raise", "no more"), ("nan", "loss is nan")])
def test_a_trainer_that_fails_is_told_and_the_checkpoint_stays(tmp_path, fault, word):
    out = tmp_path / "run"
    agent = f"test-climber(fault={fault})"
    with pytest.raises(dg.RunError, match=f"update 4.*{word}.*update 2"):
        dg.train(agent, TASK, out=out, evaluations=60, checkpoint_every=2)
    assert len(dg.read_metrics(out)) == 3
    with pytest.raises(dg.RunError, match=word):
        dg.train(out=out, resume=True)
    metrics = out / "metrics.jsonl"
    metrics.write_text(metrics.read_text().replace("{", "", 1))
    with pytest.raises(dg.ParseError, match=r"metrics\.jsonl:1: damaged"):
        dg.read_metrics(out)


def test_a_makespan_that_is_not_true_is_told(tmp_path):
    with pytest.raises(dg.RunError, match="claims a makespan"):
        dg.train("test-climber(fault=lie)", TASK, out=tmp_path / "run", evaluations=10)


def test_tasks_of_a_program_are_given_again(tmp_path, diamond):
    task = dg.Task(diamond, dg.Cluster.uniform(2), name="mine", noise=0.1, seed=4)
    out = tmp_path / "run"
    stop = [lambda _: False]
    first = dg.train("test-climber", task, out=out, evaluations=50, callbacks=stop)
    assert first.tasks[0].name == "mine"
    with pytest.raises(dg.UsageError, match="task="):
        dg.train(out=out, resume=True)
    with pytest.raises(dg.UsageError, match="not what the run was started with"):
        dg.train(task=dg.Task(diamond, dg.Cluster.uniform(2)), out=out, resume=True)
    assert dg.train(task=task, out=out, resume=True).progress.evaluations == 50


def test_a_policy_is_what_another_run_starts_from(tmp_path):
    first = dg.train("test-climber", TASK, out=tmp_path / "a", evaluations=100)
    for source in (first.policy, tmp_path / "a"):
        out = tmp_path / f"from-{source.name}"
        again = dg.train("test-climber", TASK, out=out, evaluations=5, init_from=source)
        assert (again.assignment != first.assignment).sum() <= 3
    with pytest.raises(dg.RunError, match="none"):
        dg.train("test-climber", TASK, out=tmp_path / "b", init_from=tmp_path / "none")


def test_a_recorded_data_set_is_imitated_as_the_command_does(tmp_path):
    data = tmp_path / "data"
    words = ["record", "--agent", "annealing", "--task", "chainmm@p100x4", "--evaluations", "20"]
    assert dg.main([*words, "--episodes", "3", "--out", str(data)]) == 0
    (folder,) = data.glob("dopplergym/*/annealing-v0")
    agent, task = "doppler(preset=paper,imitation_episodes=4)", "chainmm@p100x4"
    run = dg.train(agent, task, out=tmp_path / "here", stages=(1,), evaluations=1, dataset=folder)
    command = ["train", "--agent", agent, "--task", task, "--stages", "1", "--evaluations", "1"]
    there = tmp_path / "there"
    assert dg.main([*command, "--dataset", str(folder), "--out", str(there)]) == 0
    assert run.policy.read_bytes() == (there / "policy.json").read_bytes()
    other = dg.train(agent, task, out=tmp_path / "other", stages=(1,), evaluations=1)
    assert run.policy.read_bytes() != other.policy.read_bytes()
    with pytest.raises(dg.UsageError, match="no finished episode of task 'ffnn@p100x4'"):
        dg.train(agent, "ffnn@p100x4", out=tmp_path / "x", stages=(1,), dataset=folder)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"agent": None}, "agent: none is given"),
        ({"task": None}, "task: none is given"),
        ({"agent": "annealing"}, "does not learn"),
        ({"agent": "test-climbr"}, "test-climber"),
        ({"task": "fnn@p100x4"}, "ffnn"),
        ({"task": 3.5}, "."),
        ({"task": [3]}, "task: expected a Task or its name"),
        ({"evaluations": -1}, "evaluations: expected"),
        ({"evaluations": 1.5}, "evaluations: expected"),
        ({"seconds": -1}, "max_seconds"),
        ({"seed": 2**63}, "seed: expected"),
        ({"stages": (1, 2, 3)}, "stage 3"),
        ({"stages": "12"}, "stages: expected"),
        ({"stages": (2, 1)}, "ascend"),
        ({"device": "tpu"}, "tpu"),
        ({"checkpoint_every": "soon"}, "checkpoint_every.*soon"),
        ({"checkpoint_every": 0}, "checkpoint_every"),
        ({"callbacks": [3]}, "callbacks: 3"),
        ({"task": "ffnn@mesh"}, "test split.*allow_test_tasks=True"),
    ],
)
def test_what_does_not_fit_is_refused_before_a_folder_is_made(tmp_path, options, words):
    arguments = {"agent": "test-climber", "task": TASK, "out": tmp_path / "run", **options}
    with pytest.raises((dg.UsageError, TypeError), match=words):
        dg.train(**arguments)
    assert not (tmp_path / "run").exists()


def test_a_folder_with_a_run_is_not_used_twice(tmp_path):
    out = tmp_path / "run"
    dg.train("test-climber", TASK, out=out, evaluations=10)
    with pytest.raises(dg.UsageError, match="holds a training run"):
        dg.train("test-climber", TASK, out=out)
    with pytest.raises(dg.UsageError, match="evaluations 10"):
        dg.train(out=out, resume=True, evaluations=20)
    state = (out / "checkpoint.bin").read_bytes()
    (out / "checkpoint.bin").write_bytes(state[:-1])
    with pytest.raises(dg.ParseError, match="damaged"):
        dg.train(out=out, resume=True)
    assert (
        dg.train(
            "test-climber", "ffnn@mesh", out=tmp_path / "t", evaluations=5, allow_test_tasks=True
        ).makespan
        < math.inf
    )


def test_the_command_trains_agents_of_python(tmp_path):
    program = tmp_path / "mine.py"
    program.write_text(
        textwrap.dedent("""
            import sys
            import doppler_gym as dg
            from test_training import Climb

            @dg.register_agent("climber", summary="climbs")
            class Climber(dg.Agent):
                environment = {"mode": "place"}

                def act(self, observation, info):
                    return 0

                @classmethod
                def trainer(cls, tasks, options):
                    return Climb(tasks, options, 5, "slow")

            if __name__ == "__main__":
                sys.exit(dg.main())
        """)
    )
    here = str(pathlib.Path(__file__).parent)
    path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, str(program), "train"]
    out = tmp_path / "run"
    started = [*command, "--agent", "climber", "--task", TASK, "--evaluations", "200"]
    with subprocess.Popen(
        [*started, "--out", str(out)], env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        while not (out / "metrics.jsonl").exists() or len(dg.read_metrics(out)) < 3:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    assert "--resume" in told
    finished = subprocess.run(
        [*command, "--resume", "--out", str(out), "--json"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert json.loads(finished.stdout)["updates"] == 40
    subprocess.run([*started, "--out", str(tmp_path / "whole")], env=environment, check=True)
    assert outcome(out) == outcome(tmp_path / "whole")


@pytest.mark.parametrize("missing", ["update", "progress", "best", "policy", "state", "restore"])
def test_a_trainer_that_lacks_something_is_refused(tmp_path, missing):
    name = f"test-half-{missing}"
    methods = {"update", "progress", "best", "policy", "state", "restore"} - {missing}
    trainer = type("Half", (), {method: lambda self, *_: None for method in methods})()

    @dg.register_agent(name, summary="half")
    class Half(dg.Agent):
        def act(self, observation, info):
            return 0

        @staticmethod
        def trainer(tasks, options):
            return trainer

    with pytest.raises(dg.UsageError, match=rf"no {missing}\(\)"):
        dg.train(name, TASK, out=tmp_path / "run")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"progress": lambda self: {"updates": "x"}}, "no number"),
        ({"progress": lambda self: {"udpates": 1}}, "udpates"),
        ({"policy": lambda self: b"x"}, "no str"),
        ({"state": lambda self: "x"}, "not bytes"),
        ({"best": lambda self, task: [0]}, "assignment"),
        ({"best": lambda self, task: ([0], None)}, "."),
    ],
)
def test_a_trainer_that_gives_something_else_is_told(tmp_path, changes, words):
    name = f"test-odd-{abs(hash(str(changes) + words))}"
    odd = type("Odd", (Climb,), changes)

    @dg.register_agent(name, summary="odd")
    class Odd(dg.Agent):
        def act(self, observation, info):
            return 0

        @staticmethod
        def trainer(tasks, options):
            return odd(tasks, options, 5, "none")

    with pytest.raises((dg.RunError, dg.UsageError), match=words):
        dg.train(name, TASK, out=tmp_path / "run", evaluations=10)


def test_tensorboard_shows_what_the_metrics_hold(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from doppler_gym.tensorboard import TensorBoard, write_events

    run = tmp_path / "run"
    with TensorBoard(tmp_path / "live") as board:
        result = dg.train("test-climber", TASK, out=run, evaluations=60, callbacks=[board])
    later = write_events(run)
    assert later == run / "tensorboard"
    for folder in (tmp_path / "live", later):
        events = EventAccumulator(str(folder), size_guidance={"tensors": 0}).Reload()
        assert set(events.Tags()["tensors"]) == {
            "stage", "episodes", "evaluations", "best_makespan", "seconds", "values/loss",
        }  # fmt: skip
        for tag, of in [
            ("best_makespan", lambda line: line["best_makespan"]),
            ("evaluations", lambda line: line["evaluations"]),
            ("values/loss", lambda line: line["values"]["loss"]),
        ]:
            told = [(e.step, e.tensor_proto.float_val[0]) for e in events.Tensors(tag)]
            metrics = result.metrics()
            assert [step for step, _ in told] == [line["update"] for line in metrics]
            np.testing.assert_allclose(
                [value for _, value in told], [of(line) for line in metrics], rtol=1e-6
            )
    with pytest.raises(dg.UsageError, match="not empty"):
        write_events(run)
    with pytest.raises(dg.RunError, match="metrics"):
        write_events(tmp_path / "none")


def test_stage_three_learns_on_an_engine(tmp_path):
    try:
        dg.agent("doppler")
    except dg.RunError as error:
        pytest.skip(str(error))
    engine = "simulator(bandwidth=0.5,noise=0.05)"
    options = {"stages": (2, 3), "evaluations": 20, "engine": engine, "regret": 0.5}
    stopped = dg.train(
        *("doppler", "ffnn@p100x4"),
        out=tmp_path / "run",
        executions=24,
        callbacks=[lambda progress: progress.executions < 10],
        **options,
    )
    assert stopped.state == "stopped"
    with pytest.raises(dg.UsageError, match="engine"):
        dg.train(out=tmp_path / "run", resume=True, engine="simulator")
    result = dg.train(out=tmp_path / "run", resume=True)
    assert result.state == "over"
    assert 10 < result.progress.executions <= 24
    assert result.progress.evaluations == 20
    lines = dg.read_metrics(tmp_path / "run")
    assert [line["executions"] for line in lines if line["stage"] == 2] == [0] * sum(
        line["stage"] == 2 for line in lines
    )
    assert lines[-1]["executions"] == result.progress.executions
    for line in lines:
        if line["stage"] == 3:
            assert line["values"]["regret"] <= line["values"]["allowed_regret"]
    for wrong in ({"executions": 0}, {"engine": "gpu"}, {"regret": -1}):
        with pytest.raises(dg.UsageError, match=next(iter(wrong))):
            dg.train("doppler", "ffnn@p100x4", out=tmp_path / "no", **{**options, **wrong})
