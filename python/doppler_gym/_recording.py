"""Recorders: what is played becomes a data set that Minari opens."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from . import _core
from ._errors import UsageError
from .environment import AssignEnv
from .vector import AssignVectorEnv

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MINARI_VERSION = "0.5.4"


def serialize_space(space: gym.Space[Any]) -> dict[str, Any]:
    """A space as Minari's metadata have it (the rules of minari/serialization.py)."""
    if isinstance(space, gym.spaces.Box):
        return {
            "type": "Box",
            "dtype": str(space.dtype),
            "shape": list(space.shape),
            "low": space.low.tolist(),
            "high": space.high.tolist(),
        }
    if isinstance(space, gym.spaces.Discrete):
        return {
            "type": "Discrete",
            "dtype": "int64",
            "start": int(space.start),
            "n": int(space.n),
        }
    if isinstance(space, gym.spaces.MultiDiscrete):
        return {
            "type": "MultiDiscrete",
            "dtype": str(space.dtype),
            "nvec": space.nvec.tolist(),
            "start": space.start.tolist(),
        }
    if isinstance(space, gym.spaces.MultiBinary):
        return {"type": "MultiBinary", "n": space.n}
    if isinstance(space, gym.spaces.Dict):
        parts = {key: serialize_space(part) for key, part in space.spaces.items()}
        return {"type": "Dict", "subspaces": parts}
    if isinstance(space, gym.spaces.Tuple):
        return {"type": "Tuple", "subspaces": [serialize_space(part) for part in space.spaces]}
    raise UsageError(f"{type(space).__name__} spaces are not recorded; arrays of numbers are")


def _leaves(space: gym.Space[Any], path: str) -> Iterator[tuple[str, np.dtype[Any], list[int]]]:
    """The arrays of a space: path, type, shape."""
    if isinstance(space, gym.spaces.Dict):
        for key, part in space.spaces.items():
            yield from _leaves(part, f"{path}/{key}")
    elif isinstance(space, gym.spaces.Tuple):
        for i, part in enumerate(space.spaces):
            yield from _leaves(part, f"{path}/_index_{i}")
    else:
        serialize_space(space)  # refuses what is not of numbers
        dtype = np.dtype(np.int64) if isinstance(space, gym.spaces.Discrete) else space.dtype
        yield path, np.dtype(dtype), list(space.shape or ())


def _values(space: gym.Space[Any], value: Any) -> Iterator[Any]:
    """The parts of a value, in the order of ``_leaves``."""
    if isinstance(space, gym.spaces.Dict):
        for key, part in space.spaces.items():
            yield from _values(part, value[key])
    elif isinstance(space, gym.spaces.Tuple):
        for part, one in zip(space.spaces, value, strict=True):
            yield from _values(part, one)
    else:
        yield value


class _Arrays:
    """The arrays of a space and how a value becomes them."""

    def __init__(self, space: gym.Space[Any], path: str) -> None:
        self.space = space
        self.types = [dtype for _, dtype, _ in _leaves(space, path)]
        self.layouts = [(name, str(dtype), shape) for name, dtype, shape in _leaves(space, path)]

    def rows(self, value: Any) -> list[NDArray[Any]]:
        """The value's arrays, contiguous and of their types."""
        parts = zip(_values(self.space, value), self.types, strict=True)
        return [np.ascontiguousarray(part, dtype) for part, dtype in parts]


def _metadata(
    dataset_id: str, env: Any, model: _core.EnvModel | None, agent: str, full: bool
) -> dict[str, Any]:
    """Everything of metadata.json but the spaces and totals."""
    if model is not None:
        metadata: dict[str, Any] = json.loads(
            _core.recording_metadata(dataset_id, model, full, agent)
        )
    else:
        metadata = {
            "dataset_id": dataset_id,
            "data_format": "hdf5",
            "jpeg_encoding": False,
            "minari_version": _MINARI_VERSION,
            "algorithm_name": agent,
            "dopplergym": {"version": 1, "agent": agent, "code_version": _core.__version__},
        }
    spec = getattr(env, "spec", None)
    if spec is not None and "env_spec" not in metadata:
        # A value that JSON cannot hold: the environment cannot be recovered.
        with contextlib.suppress(TypeError, ValueError):
            metadata["env_spec"] = spec.to_json()
    return metadata


def _default_id(model: _core.EnvModel | None, env: Any, agent: str) -> str:
    if model is not None and len(model.tasks) == 1:
        return _core.dataset_id_of(model.tasks[0].name, agent)
    spec = getattr(env, "spec", None)
    return _core.dataset_id_of("several" if spec is None else spec.id.split("/")[-1], agent)


class Recorder(gym.Wrapper[Any, Any, Any, Any]):
    """Records every finished episode of an environment into a data set that Minari opens.

    Observations, actions, rewards, terminations and truncations are recorded as this wrapper sees
    them, without loss. Of ``AssignEnv`` the arrays that never change stand once an episode (group
    ``static``), makespan, seed and the like are attributes of the episode, and infos hold
    ``action_mask`` and ``illegal``. Environments of others are recorded, too, if their spaces are
    arrays of numbers.

    A finished episode is on the disk when ``step`` returns. ``close`` makes the data set of them;
    after a crash ``resume=True`` goes on, and ``doppler-gym dataset repair`` makes the data set of
    what was finished.

    >>> env = dg.Recorder(gymnasium.make("DopplerGym/ffnn.p100x4-v0"), "data", agent="mine")

    Args:
        env: the environment.
        root: a root of data sets (``MINARI_DATASETS_PATH``), or another ``Recorder``, whose data
            set this one adds to.
        agent: who plays, for the data set's name and metadata.
        dataset_id: "namespace/name-v0"; by default "dopplergym/TASK/AGENT-v0".
        resume: go on with a data set that is there.
        full: of ``AssignEnv``: static arrays in each observation, too.
        flush_episodes: the most finished episodes that are not on the disk yet.

    Raises:
        UsageError: spaces that are not of numbers; a data set that is there already, or was
            recorded otherwise.
        RunError: what is there is damaged, or nothing can be written.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        root: str | os.PathLike[str] | Recorder,
        *,
        agent: str = "unknown",
        dataset_id: str | None = None,
        resume: bool = False,
        full: bool = False,
        flush_episodes: int = 1,
    ) -> None:
        super().__init__(env)
        base = env.unwrapped
        model = base._model if isinstance(base, AssignEnv) else None
        fixed = []
        if model is not None and not full and isinstance(env.observation_space, gym.spaces.Dict):
            fixed = [array["name"] for array in model.observations if array["static"]]
            fixed = [name for name in fixed if name in env.observation_space.spaces]
        recorded: gym.Space[Any] = env.observation_space
        if fixed:
            spaces = env.observation_space.spaces  # type: ignore[attr-defined]
            # A list of pairs keeps the order of the arrays.
            recorded = gym.spaces.Dict(
                [(name, space) for name, space in spaces.items() if name not in fixed]
            )
            self._fixed = _Arrays(
                gym.spaces.Dict([(name, spaces[name]) for name in fixed]), "static"
            )
        self._has_fixed = bool(fixed)
        self._observations = _Arrays(recorded, "observations")
        self._actions = _Arrays(env.action_space, "actions")
        self._is_ours = model is not None
        layouts: list[tuple[str, str, Any]] = list(self._observations.layouts)
        links = []
        if model is not None:
            layouts.append(("infos/illegal", "bool", []))
            if any(path == "observations/action_mask" for path, _, _ in layouts):
                links.append(("infos/action_mask", "observations/action_mask"))
        recording: _core.Recording
        if isinstance(root, Recorder):
            recording = root._open()
            self._owns_recording = False
        else:
            name = dataset_id or _default_id(model, env, agent)
            metadata = _metadata(name, env, model, agent, full)
            metadata["observation_space"] = json.dumps(serialize_space(recorded))
            metadata["action_space"] = json.dumps(serialize_space(env.action_space))
            recording = _core.Recording(
                Path(root), name, json.dumps(metadata), resume=resume, flush_episodes=flush_episodes
            )
            self._owns_recording = True
        # None once it is closed: then another recorder may go on with the data set.
        self._recording: _core.Recording | None = recording
        self._rows: _core.RowRecorder | None = _core.RowRecorder(
            recording, layouts, list(self._actions.layouts), links
        )
        self.folder: str = recording.folder  #: of the data set
        #: Seeds of the episodes that were there when the recording began; for ``resume``.
        self.recorded_seeds: list[int] = recording.seeds
        self._seed: int | None = None
        self._return = 0.0
        self._last: Any = None

    def _open(self) -> _core.Recording:
        if self._recording is None:
            raise UsageError("this recorder is closed; make another one with resume=True")
        return self._recording

    @property
    def n_recorded(self) -> int:
        """Episodes of the data set that are on the disk."""
        return self._open().n_episodes

    def _look(self, observation: Any, info: dict[str, Any]) -> list[NDArray[Any]]:
        rows = self._observations.rows(observation)
        if self._is_ours:
            rows.append(np.array(bool(info.get("illegal", False))))
        return rows

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode; one that has not ended is forgotten."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._seed = seed
        self._return = 0.0
        if self._rows is not None:
            self._rows.begin(self._look(observation, info))
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Takes one action; at the end of an episode it is saved."""
        if self._rows is None:
            return self.env.step(action)
        actions = self._actions.rows(action)
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._rows.step(
            actions,
            float(reward),
            bool(terminated),
            bool(truncated),
            self._look(observation, info),
        )
        self._return += float(reward)
        if terminated or truncated:
            fixed: list[tuple[tuple[str, str, Sequence[int]], NDArray[Any]]] | None = None
            if self._has_fixed:
                rows = self._fixed.rows(observation)
                fixed = [
                    ((path.split("/", 1)[1], dtype, shape), row)
                    for (path, dtype, shape), row in zip(self._fixed.layouts, rows, strict=True)
                ]
            self._rows.finish(self._attributes(bool(terminated), info), fixed)
        return observation, reward, terminated, truncated, info

    def _attributes(self, terminated: bool, info: dict[str, Any]) -> dict[str, str | int | float]:
        attributes: dict[str, str | int | float] = {}
        if self._seed is not None:
            attributes["seed"] = int(self._seed)
        attributes["return"] = self._return
        if not self._is_ours:
            return attributes
        base: Any = self.env.unwrapped
        attributes["return"] = float(base.episode_return)
        if len(base.tasks) > 1:
            attributes["task"] = base.task.name
            attributes["task_index"] = int(base._env.task_index)
        if terminated:
            result = base.result()
            for name in ("makespan", "ratio_to_critical_path", "lower_bound"):
                attributes[name] = float(result[name])
            for name in ("evaluations", "engine_seed"):
                attributes[name] = int(result[name])
            if result.get("failure"):
                attributes["failure"] = str(result["failure"])
        return attributes

    def flush(self) -> None:
        """Every finished episode is on the disk when it returns."""
        self._open().flush()

    def build(self) -> None:
        """Makes the data set hold every finished episode; recording may go on."""
        self._open().build()

    def close(self) -> None:
        """Makes the data set, if any episode was finished, and closes the environment."""
        if self._recording is not None and self._owns_recording:
            self._recording.flush()
            if self._recording.n_episodes > 0:
                self._recording.build()
        self._rows = self._recording = None
        super().close()


class VectorRecorder(gym.vector.VectorWrapper[Any, Any, Any]):
    """Records every finished episode of an ``AssignVectorEnv``, on threads of the C++ library.

    What is recorded, and the arguments, are those of ``Recorder``; besides, ``timeline`` records
    when each node ran and each tensor moved. Episodes have their seed if it was given to
    ``reset``; those that began by themselves have none. Another recorder may go on with the data
    set once the environments are gone.
    """

    def __init__(
        self,
        env: AssignVectorEnv,
        root: str | os.PathLike[str],
        *,
        agent: str = "unknown",
        dataset_id: str | None = None,
        resume: bool = False,
        full: bool = False,
        timeline: bool = False,
        flush_episodes: int = 256,
    ) -> None:
        super().__init__(env)
        if not isinstance(env, AssignVectorEnv):
            raise UsageError(
                f"expected an AssignVectorEnv, got {type(env).__name__}; wrap single environments "
                "in Recorder instead"
            )
        model = env._model
        name = dataset_id or _default_id(model, env, agent)
        metadata = json.loads(_core.recording_metadata(name, model, full, agent))
        metadata["dopplergym"]["timeline"] = timeline
        self._recording = _core.Recording(
            Path(root), name, json.dumps(metadata), resume=resume, flush_episodes=flush_episodes
        )
        env._envs.record(self._recording, full, timeline)
        self.folder: str = self._recording.folder  #: of the data set

    @property
    def n_recorded(self) -> int:
        """Episodes of the data set that are on the disk."""
        return self._recording.n_episodes

    def flush(self) -> None:
        """Every finished episode is on the disk when it returns."""
        self._recording.flush()

    def build(self) -> None:
        """Makes the data set hold every finished episode; recording may go on."""
        self._recording.build()

    def close(self, **kwargs: Any) -> None:
        """Makes the data set, if any episode was finished, and closes the environments."""
        self._recording.flush()
        if self._recording.n_episodes > 0:
            self._recording.build()
        super().close(**kwargs)
