"""Models of environments from what users name, and their spaces."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gymnasium as gym
import numpy as np

from . import _core
from ._errors import UsageError


def _task(value: Any, what: str) -> _core.Task:
    if isinstance(value, str):
        return _core.task(value)
    if isinstance(value, _core.Task):
        return value
    raise UsageError(f"{what}: expected a task's name or a Task, got {value!r:.60}")


def make_model(task: Any, tasks: Any, options: dict[str, Any]) -> _core.EnvModel:
    """The model of an environment over ``task``, or over all of ``tasks``."""
    if (task is None) == (tasks is None):
        raise UsageError(
            'give either task (a name such as "llama-layer@p100x4", or a Task) or tasks (several)'
        )
    if tasks is None:
        return _core.EnvModel([_task(task, "task")], **options)
    if isinstance(tasks, str | _core.Task) or not isinstance(tasks, Iterable):
        raise UsageError(f"tasks: expected a list of names or Task values, got {tasks!r:.60}")
    return _core.EnvModel([_task(one, "tasks") for one in tasks], **options)


def action_space(model: _core.EnvModel) -> gym.Space[Any]:
    """``Discrete``, or ``MultiDiscrete`` where an action is several numbers."""
    sizes = model.action_sizes
    return gym.spaces.Discrete(sizes[0]) if model.discrete else gym.spaces.MultiDiscrete(sizes)


def observation_space(model: _core.EnvModel, flat: bool) -> gym.Space[Any]:
    """``Dict`` of ``Box``; one float32 ``Box`` of one dimension if flat."""
    arrays = model.observations
    if flat:
        sizes = [int(np.prod(array["shape"])) for array in arrays]
        low, high = (
            np.repeat([array[bound] for array in arrays], sizes).astype(np.float32)
            for bound in ("low", "high")
        )
        return gym.spaces.Box(low, high, dtype=np.float32)
    boxes: list[tuple[str, gym.Space[Any]]] = []
    for array in arrays:
        dtype = np.dtype(array["dtype"]).type
        low, high = dtype(array["low"]), dtype(array["high"])
        boxes.append((array["name"], gym.spaces.Box(low, high, array["shape"], dtype)))
    # A list of pairs keeps the order of the arrays; a dict would be sorted.
    return gym.spaces.Dict(boxes)
