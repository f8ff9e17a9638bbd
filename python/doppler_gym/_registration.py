"""The ids of the environments in Gymnasium's registry."""

from __future__ import annotations

import re

import gymnasium as gym

from . import _core

NAMESPACE = "DopplerGym"


def environment_id(task: str) -> str | None:
    """The id of a registered task; None if Gymnasium has no spelling for it.

    >>> environment_id("llama-layer@p100x4")
    'DopplerGym/llama-layer.p100x4-v0'
    """
    name = re.sub(r"[@/]", ".", task)
    return f"{NAMESPACE}/{name}-v0" if re.fullmatch(r"[\w:.-]+", name, re.ASCII) else None


def register_environments() -> None:
    """Registers ``DopplerGym/Assign-v0`` and an id for each task; builds none of them."""
    ids: dict[str, dict[str, str]] = {f"{NAMESPACE}/Assign-v0": {}}
    for task in _core.tasks():
        name = environment_id(task)
        if name is not None:
            ids.setdefault(name, {"task": task})
    for name, arguments in ids.items():
        if name not in gym.registry:
            gym.register(
                id=name,
                entry_point="doppler_gym.environment:AssignEnv",
                vector_entry_point="doppler_gym.vector:AssignVectorEnv",
                kwargs=arguments,
            )
