"""Training an agent, in a folder from which it can go on."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._agents import told
from ._errors import DopplerError, ParseError, RunError, UsageError


@dataclass(frozen=True)
class TrainProgress:
    """How far a training run is."""

    stage: int
    """Of the last update: 1 imitation, 2 simulator, 3 real engine; 0: none yet."""
    updates: int
    """Gradient steps, or generations."""
    episodes: int
    """Assignments that a policy decided, measured or not."""
    evaluations: int
    """Runs of the simulator."""
    executions: int
    """Stage 3: runs of its engine."""
    share: float
    """Of the run that is done, 0 to 1, without regard to seconds."""
    best_makespan: float
    """The least so far of the first task, in seconds; inf: none was measured."""
    seconds: float
    """Of all sessions."""
    values: dict[str, float]
    """Of the last update, by name: loss, entropy, ..."""


@dataclass(frozen=True)
class TrainedTask:
    """What a training run has come to on one of its tasks."""

    name: str
    assignment: NDArray[np.int32]
    """Device of each node, [n_nodes]: the best that was measured."""
    makespan: float
    """Seconds; inf: out of memory."""
    lower_bound: float
    """Seconds."""
    path: Path
    """The file of the assignment."""


@dataclass(frozen=True)
class TrainResult:
    """What a training run has come to."""

    state: Literal["over", "out_of_seconds", "stopped"]
    """Why it ended; a run that a callback stopped, or whose seconds were used up, can go on."""
    folder: Path
    tasks: list[TrainedTask]
    progress: TrainProgress

    @property
    def makespan(self) -> float:
        """The best one of the first task, in seconds."""
        return self.tasks[0].makespan

    @property
    def assignment(self) -> NDArray[np.int32]:
        """The best one of the first task: device of each node."""
        return self.tasks[0].assignment

    @property
    def policy(self) -> Path:
        """The file of what the agent has learnt; ``init_from`` takes it."""
        return self.folder / "policy.json"

    def metrics(self) -> list[dict[str, Any]]:
        """Every update of the run; see ``read_metrics``."""
        return read_metrics(self.folder)


Callback = Callable[[TrainProgress], bool | None]
"""Called after each update; ``False`` stops the run, which can go on later."""


def train(
    agent: str | None = None,
    task: _core.Task | str | Sequence[_core.Task | str] | None = None,
    *,
    out: str | os.PathLike[str],
    resume: bool = False,
    callbacks: Iterable[Callback] = (),
    stages: Sequence[int] | None = None,
    evaluations: int | None = None,
    engine: str | None = None,
    executions: int | None = None,
    regret: float | None = None,
    seconds: float | None = None,
    seed: int | None = None,
    threads: int | None = None,
    device: Literal["cpu", "cuda"] | None = None,
    init_from: str | os.PathLike[str] | None = None,
    dataset: str | os.PathLike[str] | None = None,
    checkpoint_every: str | int | None = None,
    allow_test_tasks: bool = False,
) -> TrainResult:
    """Trains an agent in a folder, as ``doppler-gym train`` does.

    The folder gets a configuration, metrics, the policy, the best assignment and checkpoints. If
    the process is killed, ``resume=True`` goes on from the last checkpoint, on one thread to the
    same bits as without a break. Ctrl-C (``KeyboardInterrupt``) and whatever a callback raises
    leave a checkpoint of the last whole update first.

    Args:
        agent: a name with parameters, ``"doppler(preset=paper)"``.
        task: a task or its name, or several to learn from.
        out: the run's folder: new or empty, or with ``resume`` one that holds a run.
        resume: go on. Then everything else may be left out, and only ``seconds``, ``threads`` and
            ``checkpoint_every`` may be other than they were. Tasks that were made by a program are
            given again.
        callbacks: called with a ``TrainProgress`` after each update; one that returns ``False``
            stops the run.
        stages: some of 1 (imitation), 2 (simulator), 3 (real engine). Default (1, 2).
        evaluations: the most runs of the simulator, all tasks and stages together; 0: as many as
            the agent's parameters say. Default 10000.
        engine: stage 3: the engine that is learnt on, with parameters. Default ``"cpu"``.
        executions: stage 3: the most runs of that engine. Default 500.
        regret: stage 3: what exploring may cost in all, as a share of the time of ``executions``
            runs of the first assignment. Default 0.1.
        seconds: the most seconds, of all sessions. Default: no limit.
        seed: of all luck. Default 0. It is also the seed of tasks that are given by name.
        threads: of rollouts and evaluations. Default 1.
        device: where gradients are computed. Default ``"cpu"``.
        init_from: a policy file, or the folder of a run, to start from.
        dataset: the folder of a recorded data set (``Recorder``, ``doppler-gym record``) that stage
            1 imitates. Default: the agent's teacher.
        checkpoint_every: ``"30s"`` (default), or a number of updates.
        allow_test_tasks: train on tasks of the test split too, which generalisation is judged on.

    Raises:
        UsageError: an agent that does not learn, options that do not fit, a folder that holds
            something else.
        ParseError: a policy, configuration or checkpoint that is damaged or of another version.
        RunError: a loss that is not finite; the last checkpoint stays.
    """
    options = {
        "agent": agent,
        "stages": stages,
        "evaluations": evaluations,
        "engine": engine,
        "executions": executions,
        "regret": regret,
        "seconds": seconds,
        "seed": seed,
        "threads": threads,
        "device": device,
        "init_from": init_from,
        "dataset": dataset,
        "checkpoint_every": checkpoint_every,
        "allow_test_tasks": allow_test_tasks,
    }
    tasks = _as_list(task)
    called = list(callbacks)
    for callback in called:
        if not callable(callback):
            raise UsageError(f"callbacks: {callback!r:.60} cannot be called")
    if resume:
        run = _core.resume_training(out, tasks, options)
    else:
        if agent is None:
            raise UsageError("agent: none is given; dg.agents() lists them")
        if not tasks:
            raise UsageError("task: none is given; dg.tasks() lists them")
        run = _core.start_training(out, tasks, options)
    try:
        stopped = _run(run, called)
        return TrainResult(
            state="stopped" if stopped else _ended(run),
            folder=Path(out),
            tasks=[
                TrainedTask(name, assignment, makespan, lower_bound, Path(path))
                for name, assignment, makespan, lower_bound, path in run.results()
            ],
            progress=TrainProgress(**run.progress()),
        )
    finally:
        run.close()


def _run(run: _core.TrainingRun, callbacks: Sequence[Callback]) -> bool:
    """Updates until the run ends or a callback stops it, which is then saved."""
    try:
        while run.update():
            if not callbacks:
                continue
            progress = TrainProgress(**run.progress())
            answers = [callback(progress) for callback in callbacks]
            if any(answer is False for answer in answers):
                run.checkpoint()
                return True
    except BaseException:
        if run.between_updates:
            run.checkpoint()
        raise
    return False


def _ended(run: _core.TrainingRun) -> Literal["over", "out_of_seconds"]:
    return "over" if run.state == "over" else "out_of_seconds"


def _as_list(
    task: _core.Task | str | Sequence[_core.Task | str] | None,
) -> list[_core.Task | str]:
    if task is None:
        return []
    return [task] if isinstance(task, _core.Task | str) else list(task)


def read_metrics(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The updates of a training run, oldest first; a run under way may be read too.

    Returns:
        for each update a dict with the keys update, stage, episodes, evaluations, executions,
        share, best_makespan (None: none was measured), seconds and values (a dict).
    """
    path = Path(folder) / "metrics.jsonl"
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise RunError(f"{path}: cannot read: {error.strerror}") from error
    updates = []
    for number, line in enumerate(lines, start=1):
        if not line.endswith(b"\n"):
            break  # it is being written
        try:
            updates.append(json.loads(line))
        except ValueError as error:
            raise ParseError(f"{path}:{number}: damaged; it is no JSON ({error})") from error
    return updates


@dataclass(frozen=True)
class TrainOptions:
    """What a trainer of Python is asked for; see ``train``."""

    stages: tuple[int, ...]
    seed: int
    max_evaluations: int
    """0: as many as the agent's parameters say."""
    max_seconds: float
    """The run itself keeps to it, between updates."""
    threads: int
    device: str
    engine: str
    """Of stage 3."""
    max_executions: int
    """Of that engine."""
    max_regret: float
    initial_policy: str
    """What ``policy()`` of an earlier run gave; empty: from nothing."""


class Trainer(Protocol):
    """One training run of an agent that is written in Python.

    A class that ``register_agent`` registers learns if it has a static or class method
    ``trainer(tasks, options, **parameters)`` that returns such an object; ``tasks`` is a list of
    ``Task``, ``options`` are ``TrainOptions``. Everything that it does depends on these alone.
    """

    def update(self) -> bool:
        """One update; False, without doing anything, when the run is over."""

    def progress(self) -> Mapping[str, Any]:
        """The fields of ``TrainProgress`` but for seconds; those left out are 0, inf or empty."""

    def best(self, task: int) -> tuple[ArrayLike, float | None]:
        """The best assignment of a task and its makespan, None if it was not measured."""

    def policy(self) -> str:
        """The content of a policy file: what has been learnt, without the state of the run."""

    def state(self) -> bytes:
        """Everything that ``restore`` needs to go on to the same result."""

    def restore(self, state: bytes) -> None:
        """Goes on from what ``state`` gave; raises for what is not of such a run."""


def make_trainer(
    agent: str,
    factory: Callable[..., Trainer],
    parameters: dict[str, Any],
    tasks: list[_core.Task],
    options: tuple[Any, ...],
) -> Trainer:
    """What the C++ library asks an agent of Python for."""
    try:
        trainer = factory(tasks, TrainOptions(*options), **parameters)
    except DopplerError:
        raise
    except Exception as error:
        raise RunError(f"agent {agent!r} cannot be trained: {told(error)}") from error
    for method in ("update", "progress", "best", "policy", "state", "restore"):
        if not callable(getattr(trainer, method, None)):
            raise UsageError(f"agent {agent!r}: its trainer {trainer!r:.60} has no {method}()")
    return trainer


def _ask(agent: str, trainer: Trainer, method: str, *arguments: Any) -> Any:
    try:
        return getattr(trainer, method)(*arguments)
    except DopplerError:
        raise
    except Exception as error:
        raise RunError(f"agent {agent!r} failed in {method}(): {told(error)}") from error


def trainer_update(agent: str, trainer: Trainer) -> bool:
    return bool(_ask(agent, trainer, "update"))


def trainer_progress(
    agent: str, trainer: Trainer
) -> tuple[list[int], float, float, dict[str, float]]:
    answer = dict(_ask(agent, trainer, "progress"))
    try:
        numbers = [
            int(answer.pop(key, 0))
            for key in ("stage", "updates", "episodes", "evaluations", "executions")
        ]
        share = float(answer.pop("share", 0))
        best = float(answer.pop("best_makespan", math.inf))
        values = {str(name): float(value) for name, value in answer.pop("values", {}).items()}
    except (TypeError, ValueError, AttributeError) as error:
        raise RunError(f"agent {agent!r}: progress() gave what is no number: {error}") from error
    if answer:
        raise RunError(f"agent {agent!r}: progress() has the unknown key {next(iter(answer))!r}")
    return numbers, share, best, values


def trainer_best(agent: str, trainer: Trainer, task: int) -> tuple[ArrayLike, float | None]:
    answer = _ask(agent, trainer, "best", task)
    try:
        assignment, makespan = answer
        return assignment, None if makespan is None else float(makespan)
    except (TypeError, ValueError) as error:
        raise RunError(f"agent {agent!r}: best() gives (assignment, makespan): {error}") from error


def trainer_policy(agent: str, trainer: Trainer) -> str:
    policy = _ask(agent, trainer, "policy")
    if not isinstance(policy, str):
        raise RunError(f"agent {agent!r}: policy() gave {policy!r:.60}, which is no str")
    return policy


def trainer_state(agent: str, trainer: Trainer) -> bytes:
    state = _ask(agent, trainer, "state")
    if not isinstance(state, bytes):
        raise RunError(f"agent {agent!r}: state() gave {state!r:.60}, which is not bytes")
    return state


def trainer_restore(agent: str, trainer: Trainer, state: bytes) -> None:
    try:
        _ask(agent, trainer, "restore", state)
    except RunError as error:
        raise ParseError(str(error)) from error
