"""Stable-Baselines3 over the C++ vector of environments (needs ``stable-baselines3``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from stable_baselines3.common import vec_env
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn

from ._errors import UsageError
from .vector import AssignVectorEnv


class VecEnv(vec_env.VecEnv):
    """``num_envs`` environments for algorithms of Stable-Baselines3 and sb3-contrib.

    >>> from sb3_contrib import MaskablePPO
    >>> from doppler_gym.sb3 import VecEnv
    >>> envs = VecEnv(8, task="chainmm@p100x4", mode="place")
    >>> model = MaskablePPO("MultiInputPolicy", envs).learn(4096)

    Args:
        num_envs: 1 to 2**20.
        **options: as for ``AssignVectorEnv``, autoreset_mode apart.
    """

    def __init__(self, num_envs: int = 1, **options: Any) -> None:
        if "autoreset_mode" in options:
            raise UsageError("autoreset_mode: Stable-Baselines3 has one of its own; leave it out")
        # Algorithms make tensors of the arrays, and PyTorch warns of those that are read-only.
        options = {"share_static": False, **options}
        self.envs = AssignVectorEnv(num_envs, autoreset_mode=AutoresetMode.SAME_STEP, **options)
        self._actions: Any = None
        super().__init__(
            self.envs.num_envs, self.envs.single_observation_space, self.envs.single_action_space
        )

    def reset(self) -> VecEnvObs:
        """The first observation of each environment, by the seeds of ``seed()``."""
        if any(self._options):
            raise UsageError("options of reset() are for single environments; leave them out")
        observation: VecEnvObs
        observation, infos = self.envs.reset(seed=self._seeds)
        self.reset_infos = [
            {"action_mask": mask, "task": int(task)}
            for mask, task in zip(infos["action_mask"], infos["task"], strict=True)
        ]
        self._reset_seeds()
        self._reset_options()
        return observation

    def step_async(self, actions: np.ndarray) -> None:
        """Keeps the actions for ``step_wait``."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Takes the actions. Infos of finished environments have what the last info tells, and
        ``terminal_observation``; those of others are empty but for ``illegal``."""
        observation, rewards, terminated, truncated, infos = self.envs.step(self._actions)
        done = terminated | truncated
        told: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(infos.get("illegal", ())):
            told[i]["illegal"] = True
        for i in np.flatnonzero(done):
            told[i] = {
                key: value[i]
                for key, value in infos["final_info"].items()
                if not key.startswith("_") and infos["final_info"]["_" + key][i]
            }
            told[i]["terminal_observation"] = infos["final_obs"][i]
            told[i]["TimeLimit.truncated"] = bool(truncated[i] and not terminated[i])
            self.reset_infos[i] = {
                "action_mask": infos["action_mask"][i],
                "task": int(infos["task"][i]),
            }
        return observation, rewards.astype(np.float32), done, told

    def close(self) -> None:
        """Lets go of nothing that the last reference would not."""
        self.envs.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """The attribute of the vector, once for each environment; masks row by row."""
        chosen = self._chosen(indices)
        if attr_name == "action_masks":
            return [lambda row=row: self.envs.action_masks()[row] for row in chosen]
        return [getattr(self.envs, attr_name) for _ in chosen]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Refused: the environments are not Python's."""
        raise UsageError(f"{attr_name} cannot be set; give it to the constructor")

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """``action_masks`` (bool [mask size]) and ``result`` of each environment."""
        chosen = self._chosen(indices)
        if method_name == "action_masks":
            masks = self.envs.action_masks()
            return [masks[i] for i in chosen]
        if method_name == "result":
            return [self.envs.result(i) for i in chosen]
        raise UsageError(f"unknown method {method_name!r}; known: action_masks result")

    def env_is_wrapped(self, wrapper_class: Any, indices: VecEnvIndices = None) -> list[bool]:
        """Never."""
        return [False for _ in self._chosen(indices)]

    def get_images(self) -> Sequence[np.ndarray | None]:
        """The schedule of each environment (``render_mode="rgb_array"``)."""
        frames = self.envs.render() if self.render_mode == "rgb_array" else None
        return frames if frames is not None else [None for _ in range(self.num_envs)]

    def _chosen(self, indices: VecEnvIndices) -> list[int]:
        if indices is None:
            return list(range(self.num_envs))
        return list(indices) if isinstance(indices, Iterable) else [indices]
