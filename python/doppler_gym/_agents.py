"""Agents that are written in Python."""

from __future__ import annotations

import inspect
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from . import _core
from ._errors import DopplerError, RunError, UsageError
from .environment import AssignEnv

_Factory = TypeVar("_Factory", bound=Callable[..., Any])


class SupportsAct(Protocol):
    """What every agent is: an object that chooses an action."""

    def act(self, observation: Any, info: dict[str, Any]) -> Any:
        """The action for what the environment tells now."""


class Agent:
    """A base for agents; any object with ``act(observation, info)`` is one as well.

    >>> import numpy as np
    >>> import doppler_gym as dg
    >>> class Earliest(dg.Agent):
    ...     environment = {"mode": "place"}
    ...     def act(self, observation, info):
    ...         starts = observation["device_features"][:, 4]
    ...         return int(np.where(info["action_mask"] == 1, starts, np.inf).argmin())
    >>> dg.run(Earliest(), "chainmm@p100x4").ratio_to_critical_path
    1.0
    """

    environment: ClassVar[Mapping[str, Any]] = {}
    """Options of ``AssignEnv`` that the agent plays in, where it is given a task."""

    def begin(self, env: gym.Env[Any, Any], seed: int) -> None:
        """Before each episode, after its reset. All luck of the agent comes from ``seed``."""

    def act(self, observation: Any, info: dict[str, Any]) -> Any:
        """The action for what the environment tells now."""
        raise NotImplementedError(f"{type(self).__name__} has no act(observation, info)")


@dataclass(frozen=True)
class Run:
    """What one episode came to."""

    assignment: NDArray[np.int32]
    """Device of each node, [n_nodes]."""
    makespan: float
    """Seconds; inf: out of memory."""
    ratio_to_critical_path: float
    """To the makespan of the critical-path heuristic."""
    episode_return: float
    """Sum of the rewards, penalties included."""
    n_steps: int
    """Actions that were taken, illegal ones included."""
    evaluations: int
    """Runs of the engine."""
    info: dict[str, Any]
    """The last info."""


def run(
    agent: SupportsAct,
    env: gym.Env[Any, Any] | _core.Task | str,
    seed: int = 0,
    **options: Any,
) -> Run:
    """Lets an agent play one episode.

    Args:
        agent: any object with ``act(observation, info)``; ``begin(env, seed)`` is called if it has
            one.
        env: an environment over ``AssignEnv``, or a task or its name.
        seed: of the episode and of the agent, 0 to 2**64 - 1.
        **options: of ``AssignEnv``, for a task; they go before ``agent.environment``.

    Raises:
        UsageError: no agent, or an episode that ended by illegal actions.
    """
    if not callable(getattr(agent, "act", None)):
        raise UsageError(f"{agent!r:.60} is no agent: it has no act(observation, info)")
    if isinstance(env, gym.Env):
        if options:
            raise UsageError(f"{next(iter(options))!r} is for a task; the environment has its own")
    else:
        env = AssignEnv(env, **{**getattr(agent, "environment", {}), **options})
    ours = env.unwrapped
    if not isinstance(ours, AssignEnv):
        raise UsageError(f"{ours!r:.60} is not an AssignEnv; it has no assignment to tell")
    observation, info = env.reset(seed=seed)
    begin = getattr(agent, "begin", None)
    if callable(begin):
        begin(env, seed)
    total, n_steps, terminated, truncated = 0.0, 0, False, False
    while not (terminated or truncated):
        observation, reward, terminated, truncated, info = env.step(agent.act(observation, info))
        total += float(reward)
        n_steps += 1
    if not terminated:
        raise UsageError(
            f"the episode was cut off after {n_steps} steps; take only actions that "
            'info["action_mask"] has 1 for'
        )
    result = ours.result()
    return Run(
        assignment=result["assignment"],
        makespan=result["makespan"],
        ratio_to_critical_path=result["ratio_to_critical_path"],
        episode_return=total,
        n_steps=n_steps,
        evaluations=result["evaluations"],
        info=info,
    )


def register_agent(
    name: str, *, summary: str = "", source: str = "own"
) -> Callable[[_Factory], _Factory]:
    """Registers an agent of Python under a name, as a decorator of a class or a function.

    After that ``agent(name)``, ``agents()`` and ``main()``, the command in this process, take it.
    Parameters with a default (bool, int, float or str) can be given as for every agent:
    ``mine(depth=3)``. A package registers by an entry point of the group ``doppler_gym.agents``
    instead, for every ``doppler-gym`` command: its name is that of the agent, its object the class
    or function. It is loaded when an agent is made, without parameters. A class may have both.

    The agent plays with ``on_illegal="raise"``, and ``mode="sequential"`` unless its
    ``environment`` says otherwise. What it raises ends the run by a ``RunError`` that names it. An
    instance serves one thread; ``evaluate --jobs`` makes one for each run.

    >>> import doppler_gym as dg
    >>> @dg.register_agent("first-device", summary="everything on device 0")
    ... class First(dg.Agent):
    ...     environment = {"mode": "place"}
    ...     def act(self, observation, info):
    ...         return 0
    >>> dg.agent("first-device").assign(dg.task("chainmm@p100x4")).evaluations
    1

    Args:
        name: lower case, words joined by "-".
        summary: one line; without it the first line of the docstring.
        source: a paper, or "own".

    Raises:
        UsageError: the name is taken, or a parameter has no default of these types.
    """

    def register(factory: _Factory) -> _Factory:
        place = [getattr(factory, key, "") for key in ("__module__", "__qualname__")]
        if _entry_points.get(name) == ":".join(place):
            return factory  # this very agent
        lines = (inspect.getdoc(factory) or "").splitlines()
        first_line = lines[0] if lines else ""
        _core.register_agent(name, summary or first_line, source, _parameters(factory), factory)
        registered[name] = Registered(factory, summary or first_line, source)
        return factory

    return register


def _parameters(factory: Callable[..., Any]) -> list[tuple[str, Any]]:
    if factory is object or getattr(factory, "__init__", None) is object.__init__:
        return []
    found = []
    for parameter in inspect.signature(factory).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if not isinstance(parameter.default, bool | int | float | str):
            raise UsageError(
                f"parameter {parameter.name!r} of {factory!r:.60} needs a default that is a bool, "
                "int, float or str"
            )
        found.append((parameter.name, parameter.default))
    return found


class Registered(NamedTuple):
    """An agent that a program has registered."""

    factory: Callable[..., Any]
    summary: str
    source: str


# By name; those of entry points are not among them.
registered: dict[str, Registered] = {}

# What has been registered by entry points: name and "module:object".
_entry_points: dict[str, str] = {}


def register_entry_points() -> None:
    """Registers the agents of installed packages; none of them is loaded."""
    for entry_point in metadata.entry_points(group="doppler_gym.agents"):
        summary = f"from {entry_point.value}"
        try:
            _core.register_agent(entry_point.name, summary, "own", [], _Loaded(entry_point))
        except UsageError as error:
            warnings.warn(
                f"the entry point {entry_point.name!r} = {entry_point.value!r} of the group "
                f"doppler_gym.agents is left out: {error}",
                stacklevel=2,
            )
        else:
            _entry_points[entry_point.name] = entry_point.value


class _Loaded:
    """Makes the agent of an entry point, loading it first."""

    def __init__(self, entry_point: metadata.EntryPoint) -> None:
        self._entry_point = entry_point

    def __call__(self) -> Any:
        return self._entry_point.load()()


def make(name: str, factory: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    """What the C++ library asks for by name: an agent of Python with these parameters."""
    try:
        agent = factory(**parameters)
    except UsageError:
        raise
    except Exception as error:
        raise RunError(f"agent {name!r} cannot be made: {told(error)}") from error
    if not callable(getattr(agent, "act", None)):
        raise UsageError(
            f"agent {name!r}: {agent!r:.60} was made, which has no act(observation, info)"
        )
    return agent


def told(error: Exception) -> str:
    """One line for somebody who does not see the traceback."""
    if isinstance(error, DopplerError):
        return str(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})"


def decide(
    name: str, agent: SupportsAct, task: _core.Task, seed: int, evaluations: int, seconds: float
) -> tuple[NDArray[np.int32], float, int]:
    """What the C++ library asks an agent of Python for: assignment, makespan, evaluations used.

    Raises:
        RunError: the agent raised an exception, or took an illegal action.
    """
    try:
        return _best(agent, task, seed, evaluations, seconds)
    except Exception as error:
        where = f" on {task.name!r}" if task.name else ""
        raise RunError(f"agent {name!r} failed{where}: {told(error)}") from error


def _best(
    agent: SupportsAct, task: _core.Task, seed: int, evaluations: int, seconds: float
) -> tuple[NDArray[np.int32], float, int]:
    """Plays episodes while the limits allow one more, and keeps the best; an agent without luck
    (``deterministic = True``) plays one.

    The first episode has the seed itself, later ones have seeds drawn from it, so that runs of
    neighbouring seeds have none in common. Where runs differ by luck, each episode has its own, and
    what is returned is measured once more by the task's. That is one evaluation, unless there was
    one episode only: then nothing depends on how its own run came out.
    """
    start = time.perf_counter()
    seeds = np.random.SeedSequence(seed)
    options = {"on_illegal": "raise", **getattr(agent, "environment", {})}
    env = AssignEnv(task, **options)
    has_luck = task.noise > 0 or task.policy == "random"
    best: Run | None = None
    used = number = 0
    while True:
        if number > 0:
            seed = int(seeds.spawn(1)[0].generate_state(1, np.uint64)[0])
        result = run(agent, env, seed)
        used += result.evaluations
        number += 1
        if best is None or result.makespan < best.makespan:
            best = result
        spent = time.perf_counter() - start
        enough = getattr(agent, "deterministic", False)
        if (
            enough
            or used + result.evaluations + has_luck > evaluations
            or spent * (number + 1) / number > seconds
        ):
            if not has_luck:
                return best.assignment, best.makespan, used
            makespan = task.simulate(best.assignment).makespan
            return best.assignment, makespan, used + (number > 1)
