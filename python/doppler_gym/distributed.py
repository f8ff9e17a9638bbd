"""Suites and training runs spread over a Ray cluster.

Needs Ray (``pip install 'doppler-gym[ray]'``), and this package in the same version on every
machine of the cluster. Work that a worker's death interrupted is done again.

    from doppler_gym import distributed
    distributed.evaluate("paper-8", "annealing", rows="rows", address="10.0.0.1:6379")
    distributed.train("doppler", ["ffnn@p100x4"], seeds=range(5), out="sweep", address="auto")
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from . import leaderboard
from ._cluster import Cluster, packed, register
from ._errors import DopplerError, RunError, UsageError
from ._training import train as train_here

__all__ = ["Cluster", "Trained", "evaluate", "train"]


def evaluate(
    suite: str, agents: Any, *, address: str, retries: int = 3, **options: Any
) -> leaderboard.Done:
    """Runs agents by a suite's protocol on a Ray cluster: the rows that ``leaderboard.run`` makes,
    but for seconds and hardware.

    Decisions are kept here as they come, so that ``resume=True`` goes on where a run was broken
    off. An agent that fails fails its own row.

    Args:
        suite, agents: as for ``leaderboard.run``; agents of Python are sent to the cluster.
        address: see ``Cluster``.
        retries: how often decisions are begun again after their worker died.
        **options: rows, tiers, resume and the others of ``leaderboard.run``; ``jobs`` is how many
            pieces of work are given to the cluster at once, 0 (default): as many as it has cores.

    Raises:
        UsageError, RunError: see ``leaderboard.run`` and ``Cluster``.
    """
    if leaderboard.suite(suite)["engine"] != "simulator":
        raise UsageError(f"suite {suite!r} has a real engine; run it on one machine, without Ray")
    with Cluster(address, retries=retries) as cluster:
        return leaderboard.run(suite, agents, **{"jobs": 0, **options}, places=cluster)


def connect_command(
    address: str, suite: str, agents: list[str], memory: float
) -> tuple[Callable[[list[str], float], tuple[int, int]], int, str]:
    """What ``leaderboard run --ray`` asks for: how decisions start, cores, hardware."""
    if leaderboard.suite(suite)["engine"] != "simulator":
        raise UsageError(f"--ray: suite {suite!r} has a real engine; run it on one machine")
    cluster = Cluster(address)
    return cluster.start, cluster.cores, cluster.hardware


@dataclass(frozen=True)
class Trained:
    """One training run of a sweep."""

    task: str
    seed: int
    folder: pathlib.Path
    makespan: float
    """The best one, in seconds; inf: none."""
    failure: str
    """Why there is no run; empty: there is one."""


def train(
    agent: str,
    tasks: Sequence[str],
    *,
    seeds: Sequence[int],
    out: str | os.PathLike[str],
    address: str,
    resume: bool = False,
    shared: bool = False,
    retries: int = 3,
    progress: Callable[[Trained, int, int], None] | None = None,
    **options: Any,
) -> list[Trained]:
    """Trains an agent on each task with each seed, a run for each, on a Ray cluster.

    Each run is a folder ``out/TASK--seed-N`` as ``doppler_gym.train`` makes it. It appears whole
    when the run is over: a worker trains in a folder of its own machine. With ``shared`` it trains
    in ``out`` itself, which every machine must see at the same path; then a run whose worker died
    goes on from its last checkpoint, and else begins again.

    Args:
        agent: a name with parameters; one that this program registered is sent to the cluster.
        tasks, seeds: a run for each pair.
        out: the folder of the runs.
        address, retries: see ``Cluster``.
        resume: keep runs that are there, and make those that are missing.
        shared: see above.
        progress: called here with each run that is over, how many are, and how many there will be.
        **options: of ``doppler_gym.train``: evaluations, seconds, stages, ...

    Raises:
        UsageError: a run is there and ``resume`` is not set; options that the training refuses.
        RunError: no cluster.
    """
    folder = pathlib.Path(out).absolute()
    cells = [(task, int(seed)) for task in tasks for seed in seeds]
    if not cells:
        raise UsageError("give at least one task and one seed")
    for name in ("callbacks", "task", "seed"):
        if name in options:
            raise UsageError(f"{name} cannot be given to a sweep")
    places = {cell: folder / f"{_file_name(cell[0])}--seed-{cell[1]}" for cell in cells}
    if len(set(places.values())) < len(cells):
        raise UsageError("a task or a seed is given twice")
    if not resume and (found := [place for place in places.values() if place.exists()]):
        raise UsageError(f"{found[0]} is there; give resume=True to keep it, or remove it")
    folder.mkdir(parents=True, exist_ok=True)
    over: dict[tuple[str, int], Trained] = {}
    show = _Progress(len(cells), progress)
    with Cluster(address, retries=retries) as cluster:
        _, content = packed(agent)
        waiting: dict[Any, tuple[str, int]] = {}
        for cell, place in places.items():
            if _is_over(place):
                over[cell] = _trained(cell, place)
                show(over[cell])
                continue
            there = str(place) if shared else ""
            waiting[cluster.submit(_train, agent, content, *cell, options, there, calls=1)] = cell
        for reference in cluster.as_they_end(list(waiting)):
            cell = waiting[reference]
            try:
                files = cluster.result(reference)
                if not shared:
                    _unpack(files, places[cell])
                over[cell] = _trained(cell, places[cell])
            except DopplerError as error:
                over[cell] = Trained(*cell, places[cell], float("inf"), str(error))
            show(over[cell])
    return [over[cell] for cell in cells]


class _Progress:
    """Counts runs: on a terminal a line each, and whatever the caller wants."""

    def __init__(self, total: int, call: Callable[[Trained, int, int], None] | None) -> None:
        self._total, self._call, self._done = total, call, 0

    def __call__(self, trained: Trained) -> None:
        self._done += 1
        if sys.stderr.isatty():
            what = trained.failure or f"{trained.makespan:.6g} s"
            print(
                f"{self._done}/{self._total}  {trained.task}, seed {trained.seed}: {what}",
                file=sys.stderr,
            )
        if self._call is not None:
            self._call(trained, self._done, self._total)


def _file_name(task: str) -> str:
    return re.sub(r"[^A-Za-z0-9._=-]+", "_", task)


_OVER = "sweep.json"  # beside a run's own files: it is whole


def _is_over(folder: pathlib.Path) -> bool:
    return (folder / _OVER).exists()


def _trained(cell: tuple[str, int], folder: pathlib.Path) -> Trained:
    makespan = json.loads((folder / _OVER).read_text())["makespan"]
    return Trained(*cell, folder, float("inf") if makespan is None else makespan, "")


def _train(
    agent: str, content: bytes, task: str, seed: int, options: dict[str, Any], place: str
) -> dict[str, bytes]:
    """On a worker: a training run, as the files of its folder unless it has a place."""
    register(agent.partition("(")[0], content)
    with tempfile.TemporaryDirectory(prefix="doppler-gym-") as folder:
        out = pathlib.Path(place or pathlib.Path(folder) / "run")
        goes_on = (out / "config.json").exists()
        result = train_here(agent, task, out=out, seed=seed, resume=goes_on, **options)
        best = result.makespan
        told = {"agent": agent, "task": task, "seed": seed, "state": result.state}
        told["makespan"] = best if best < float("inf") else None
        part = out / f"{_OVER}.{os.getpid()}.tmp"
        part.write_text(json.dumps(told) + "\n")
        part.replace(out / _OVER)
        if place:
            return {}
        files = [path for path in out.rglob("*") if path.is_file()]
        return {str(path.relative_to(out)): path.read_bytes() for path in files}


def _unpack(files: dict[str, bytes], place: pathlib.Path) -> None:
    """Puts a run's folder in its place, whole or not at all."""
    with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as folder:
        whole = pathlib.Path(folder) / "run"
        for name, content in files.items():
            path = whole / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        if place.exists():
            raise RunError(f"{place} has come to be there meanwhile")
        whole.replace(place)
