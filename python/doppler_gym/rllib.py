"""Environments as the action masks of RLlib want them; importing this needs no RLlib."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from .environment import AssignEnv


class Env(gym.Wrapper[Any, Any, Any, Any]):
    """An environment for RLlib's ``ActionMaskingTorchRLModule``.

    Observations are ``{"action_mask": float32 [mask size], "observations": float32 [sizes of all
    arrays]}``; the second is what ``flat=True`` gives. The class itself is RLlib's creator:
    ``PPOConfig().environment(Env, env_config={"task": "chainmm@p100x4", "mode": "place"})`` or
    ``ray.tune.register_env("DopplerGym", Env)``.

    >>> from doppler_gym.rllib import Env
    >>> env = Env({"task": "chainmm@p100x4", "mode": "place"})
    >>> env.reset(seed=0)[0]["action_mask"].tolist()
    [1.0, 1.0, 1.0, 1.0]

    Args:
        config: the arguments of ``AssignEnv``, ``flat`` apart.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(AssignEnv(**{**config, "flat": True}))
        ours = self.unwrapped
        assert isinstance(ours, AssignEnv)
        self.observation_space = gym.spaces.Dict(
            {
                "action_mask": gym.spaces.Box(0, 1, ours.action_masks().shape, np.float32),
                "observations": self.env.observation_space,
            }
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode; see ``AssignEnv``."""
        observation, info = self.env.reset(seed=seed, options=options)
        return _masked(observation, info), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Takes one action; see ``AssignEnv``."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return _masked(observation, info), reward, terminated, truncated, info


def _masked(observation: Any, info: dict[str, Any]) -> dict[str, Any]:
    return {
        "action_mask": info["action_mask"].astype(np.float32),
        "observations": observation,
    }
