"""The leaderboard: suites of tasks, rows that can be replayed, ranking.

Formats and rules are those of docs/leaderboard.md; the command is ``doppler-gym leaderboard``.

>>> from doppler_gym import leaderboard
>>> len(leaderboard.suite("paper-4")["seeds"])
5
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._agents import SupportsAct, register_agent
from ._errors import UsageError

__all__ = [
    "Done",
    "FailedRow",
    "Interval",
    "Places",
    "decide",
    "decisions",
    "interquartile_mean",
    "probability_of_improvement",
    "rank",
    "report",
    "row",
    "run",
    "save",
    "suite",
    "suites",
    "verify",
]

_GIBIBYTE = 2.0**30


class Interval(NamedTuple):
    """A figure with its bootstrap interval."""

    value: float
    low: float
    high: float


class FailedRow(NamedTuple):
    """A row that could not be made, and why."""

    file: str
    agent: str
    tier: int
    task: str
    seed: int
    reason: str


@dataclass(frozen=True)
class Done:
    """What ``run`` came to; files are named below the folder of rows."""

    made: list[str]
    found: list[str]
    """Rows that were there."""
    failed: list[FailedRow]


class Places(Protocol):
    """Where decisions are made, if not here."""

    @property
    def cores(self) -> int:
        """Decisions that can be made at once."""

    @property
    def hardware(self) -> str:
        """What rows say of it: JSON."""

    def start(self, keys: list[str], memory: float) -> tuple[int, int]:
        """Starts a process of this machine for decisions: its id, and the file that their records
        come from. It leads a process group. Threads call this side by side."""


def suites() -> dict[str, dict[str, Any]]:
    """Every suite of this build by name, each as its file has it."""
    found = [json.loads(text) for text in _core.leaderboard_suites()]
    return {item["name"]: item for item in found}


def suite(name: str) -> dict[str, Any]:
    """A suite by its name or the path of its file.

    Raises:
        UsageError: there is none of that name.
    """
    found: dict[str, Any] = json.loads(_core.leaderboard_suite(name))
    return found


def run(
    suite: str,
    agents: str | SupportsAct | Sequence[str] | Mapping[str, Callable[[], Any] | SupportsAct],
    *,
    rows: str | os.PathLike[str],
    tiers: Sequence[int] = (),
    resume: bool = False,
    jobs: int = 1,
    memory: float = 8.0,
    training: str | os.PathLike[str] = "",
    kind: str = "",
    authors: Sequence[str] = (),
    link: str = "",
    note: str = "",
    places: Places | None = None,
) -> Done:
    """Runs agents by a suite's protocol: a row for each agent and tier.

    Every task of an agent is done in a process of its own, which this one forks: what crashes,
    hangs, takes too much memory or is illegal fails its own row.

    Args:
        suite: a name, or the path of a file.
        agents: names of registered agents; or agents of Python by the names that they are to have,
            each an object with ``act`` or something that makes one; or one such object, which is
            named by its class.
        rows: the folder of the rows.
        tiers: budgets in evaluations; none: all of the suite. Heuristics have the smallest only.
        resume: keep rows and decisions that are there; otherwise a row that is there is an error.
        jobs: processes side by side.
        memory: the most of one process, in GiB.
        training: what the agents had learnt beforehand: a file, or the folder of a training run.
        kind: "heuristic", "search", "learned" or "other"; "": as the registry says.
        authors, link, note: as the rows are to say.
        places: where decisions are made; None: in processes forked here. See ``distributed``.

    Raises:
        UsageError: an unknown suite, agent or tier, or a row that is there.
    """
    if jobs < 0:
        raise UsageError(f"jobs is {jobs}; give 1 or more, or 0 for one a core")
    options = {
        "suite": suite,
        "agents": _names(agents),
        "tiers": list(tiers),
        "rows": os.fspath(rows),
        "training": os.fspath(training),
        "kind": kind,
        "authors": list(authors),
        "link": link,
        "note": note,
        "command": " ".join([pathlib.Path(sys.argv[0] or "python").name, *sys.argv[1:]]),
        "resume": resume,
        "jobs": jobs,
        "memory": memory * _GIBIBYTE,
    }
    if places is not None:
        options["hardware"] = places.hardware
        options["jobs"] = jobs or places.cores
    start = _fork if places is None else places.start
    made, found, failed = _core.leaderboard_run(options, start)
    return Done(made, found, [FailedRow(*item) for item in failed])


def _names(agents: Any) -> list[str]:
    """The names of agents; objects of Python are registered by theirs."""
    if isinstance(agents, str):
        return [agents]
    if callable(getattr(agents, "act", None)):
        agents = {type(agents).__name__.lower(): agents}
    if not isinstance(agents, Mapping):
        return list(agents)
    for name, agent in agents.items():
        register_agent(name)(_factory(agent))
    return list(agents)


def _factory(agent: Any) -> Callable[[], Any]:
    if isinstance(agent, type) or not callable(getattr(agent, "act", None)):
        made: Callable[[], Any] = agent
        return made

    def kept() -> Any:
        return agent

    kept.__doc__ = type(agent).__doc__
    kept.__module__ = type(agent).__module__  # which is sent with it to other machines
    kept.deterministic = getattr(agent, "deterministic", False)  # type: ignore[attr-defined]
    return kept


def _fork(keys: list[str], memory: float) -> tuple[int, int]:
    """Starts a process that makes the decisions; its id and the pipe that it writes to."""
    return fork_with(keys, memory, lambda: None)


def fork_with(keys: list[str], memory: float, prepare: Callable[[], None]) -> tuple[int, int]:
    """The same; ``prepare`` is called in the new process first."""
    source, target = os.pipe()
    process = os.fork()
    if process:
        os.close(target)
        return process, source
    try:
        os.setpgid(0, 0)
        os.close(source)
        # What an agent prints is no part of the run's output.
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        prepare()
        _core.leaderboard_serve(keys, target, memory)
    finally:
        os._exit(0)  # nothing of the parent's is to be cleaned up here


def decisions(suite: str, agent: str, tier: int, *, kind: str = "") -> list[dict[str, Any]]:
    """The decisions that make a row, as keys for ``decide``; they may be made in any order and
    place."""
    return [json.loads(key) for key in _core.leaderboard_plan(suite, agent, tier, kind)]


def decide(key: Mapping[str, Any]) -> dict[str, Any]:
    """Makes one decision here, in this process, and returns its record.

    Raises:
        DopplerError: whatever the agent failed with.
    """
    record: dict[str, Any] = json.loads(_core.leaderboard_decide(json.dumps(dict(key))))
    return record


def row(
    suite: str, agent: str, tier: int, records: Sequence[Mapping[str, Any]], **head: Any
) -> dict[str, Any]:
    """The row of the records of all its decisions.

    Args:
        suite, agent, tier: as for ``decisions``.
        records: in any order.
        **head: kind, authors, link, note, command, training (a file or folder, see ``run``).

    Raises:
        RunError: a decision failed or is missing.
    """
    known = {"kind", "authors", "link", "note", "command", "training"}
    if unknown := set(head) - known:
        raise UsageError(f"unknown {', '.join(sorted(unknown))}; known: {', '.join(sorted(known))}")
    texts = [json.dumps(dict(record)) for record in records]
    made: dict[str, Any] = json.loads(_core.leaderboard_row(suite, agent, tier, texts, head))
    return made


def save(row: Mapping[str, Any], *, rows: str | os.PathLike[str], suite: str = "") -> pathlib.Path:
    """Verifies a row and writes it, whole or not at all, into the folder of rows.

    Raises:
        UsageError: the row does not hold, or there is one of its agent, authors and tier.
    """
    if faults := verify(row, suite=suite):
        raise UsageError("the row does not hold: " + "; ".join(faults))
    text = json.dumps(dict(row)) + "\n"
    path = pathlib.Path(rows) / _core.leaderboard_file_name(text)
    if path.exists():
        raise UsageError(f"{path} is there; remove it to have another row")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.tmp")
    with part.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    return path


def verify(row: Mapping[str, Any] | str | os.PathLike[str], *, suite: str = "") -> list[str]:
    """Why a row (or the row of a file) does not hold; empty: it holds.

    Args:
        row: as its file has it, or the path.
        suite: the path of a suite's file, if it is not one of this build.

    Raises:
        ParseError: what is given is no row.
    """
    if isinstance(row, Mapping):
        return list(_core.leaderboard_verify(json.dumps(dict(row)), suite))
    return list(_core.leaderboard_verify(pathlib.Path(row).read_text(), suite))


def rank(rows: str | os.PathLike[str], *, suite: str = "", samples: int = 2000) -> dict[str, Any]:
    """The ranking of the verified rows of a folder: what ``leaderboard rank --json`` prints."""
    found: dict[str, Any] = json.loads(
        _core.leaderboard_rank(os.fspath(rows), suite, samples, False)
    )
    return found


def report(rows: str | os.PathLike[str], *, suite: str = "", samples: int = 2000) -> dict[str, Any]:
    """The same with curves and schedules: what ``leaderboard report --json`` writes."""
    found: dict[str, Any] = json.loads(
        _core.leaderboard_rank(os.fspath(rows), suite, samples, True)
    )
    return found


def _table(scores: ArrayLike | Sequence[Sequence[float]]) -> list[list[float]]:
    table = [[float(value) for value in np.asarray(task, float)] for task in scores]  # type: ignore[union-attr]
    if not table or not all(table):
        raise UsageError("scores need at least one task, and each task a run")
    return table


def interquartile_mean(
    scores: ArrayLike | Sequence[Sequence[float]],
    *,
    samples: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval:
    """The interquartile mean of scores [task][run] with its stratified bootstrap interval, as
    rliable defines both."""
    if samples < 1 or not 0 < confidence < 1:
        raise UsageError("give samples of at least 1, and a confidence between 0 and 1")
    return Interval(*_core.interquartile_mean(_table(scores), samples, confidence, seed))


def probability_of_improvement(
    x: ArrayLike | Sequence[Sequence[float]], y: ArrayLike | Sequence[Sequence[float]]
) -> float:
    """How probable it is that a run of x, [task][run], is less than one of y on the same task."""
    first, second = _table(x), _table(y)
    if len(first) != len(second):
        raise UsageError(f"x has {len(first)} tasks, and y {len(second)}")
    return float(_core.probability_of_improvement(first, second))
