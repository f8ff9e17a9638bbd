"""Many environments stepped together, on threads of the C++ library."""

from __future__ import annotations

import copy
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from . import _core, _spaces
from ._errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class AssignVectorEnv(gym.vector.VectorEnv[Any, Any, Any]):
    """``num_envs`` environments of one kind; what ``gymnasium.make_vec`` gives for our ids.

    Observations, rewards and infos are those of ``gymnasium.vector.SyncVectorEnv`` over
    ``AssignEnv`` with the same seeds, and do not depend on the number of threads.

    Args:
        num_envs: 1 to 2**20.
        task, tasks, mode, ...: as for ``AssignEnv``; ``tasks`` run side by side, padded.
        share_static: static arrays of the observation are one read-only object as long as no
            environment gets another task; False: new ones at each step. PyTorch warns once when it
            is given a read-only array.
        autoreset_mode: "NextStep" (a finished environment is reset by the next step, whose action
            for it is ignored), "SameStep" (by the step that ends it; ``infos["final_obs"]`` and
            ``infos["final_info"]`` have the end) or "Disabled" (by ``reset(options={"reset_mask":
            ...})``); or a ``gymnasium.vector.AutoresetMode``. Also in ``metadata``.
        threads: of the C++ library; 0: one a core.

    Raises:
        UsageError, EpisodeError, IllegalActionError, InvalidError: as for ``AssignEnv``.
    """

    def __init__(
        self,
        num_envs: int = 1,
        task: str | _core.Task | None = None,
        *,
        tasks: Sequence[str | _core.Task] | None = None,
        mode: str = "sequential",
        reward: str = "sparse",
        features: str = "paper",
        order: str = "b_level",
        engine: str = "simulator",
        on_illegal: str = "penalize",
        factored: bool = False,
        flat: bool = False,
        share_static: bool = True,
        max_nodes: int | None = None,
        max_edges: int | None = None,
        max_devices: int | None = None,
        memory_penalty: float = 10.0,
        initial: ArrayLike | None = None,
        render_mode: str | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        threads: int = 0,
    ) -> None:
        super().__init__()
        if render_mode is not None and render_mode not in ("ansi", "rgb_array"):
            raise UsageError(f"unknown render_mode {render_mode!r}; known: ansi rgb_array")
        self.render_mode = render_mode
        self.autoreset_mode = _autoreset_mode(autoreset_mode)
        self.metadata = {
            "render_modes": ["ansi", "rgb_array"],
            "render_fps": 4,
            "autoreset_mode": self.autoreset_mode,
        }
        self._model = _spaces.make_model(
            task,
            tasks,
            {
                "mode": mode,
                "reward": reward,
                "features": features,
                "order": order,
                "engine": engine,
                "on_illegal": on_illegal,
                "factored": factored,
                "max_nodes": max_nodes,
                "max_edges": max_edges,
                "max_devices": max_devices,
                "memory_penalty": memory_penalty,
                "initial": initial,
            },
        )
        self._flat = flat
        self._share_static = share_static
        self._threads = threads
        self._envs = self._make_envs(num_envs)
        self.num_envs = len(self._envs)
        # Which environments have been given a seed, and which the next step resets.
        self._has_luck = np.zeros(self.num_envs, bool)
        self._finished = np.zeros(self.num_envs, bool)
        self.single_action_space = _spaces.action_space(self._model)
        self.single_observation_space = _spaces.observation_space(self._model, flat)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def _make_envs(self, num_envs: int) -> _core.VectorEnv:
        names = {
            AutoresetMode.NEXT_STEP: "next_step",
            AutoresetMode.SAME_STEP: "same_step",
            AutoresetMode.DISABLED: "disabled",
        }
        return _core.VectorEnv(
            self._model,
            num_envs,
            autoreset=names[self.autoreset_mode],
            threads=self._threads,
            flat=self._flat,
            share_static=self._share_static,
        )

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode in all environments, or in some.

        Args:
            seed: s gives environment i the seed s + i; or one each, where None lets its luck go on.
            options: {"reset_mask": bool [num_envs], at least one True}: which ones start anew.
        """
        unknown = [key for key in options or () if key != "reset_mask"]
        if unknown:
            raise UsageError(f"unknown option {unknown[0]!r} of reset(); known: reset_mask")
        chosen = self._reset_mask((options or {}).get("reset_mask"))
        seeds = self._seeds(seed)
        if seed is not None and not isinstance(seed, Sequence | np.ndarray):
            super().reset(seed=int(seed))
        for i in np.flatnonzero(chosen & ~self._has_luck):
            if seeds[i] is None:
                seeds[i] = int(self.np_random.integers(2**63))
        given = np.array([one is not None for one in seeds])
        numbers = [0 if one is None else one for one in seeds]
        if (chosen & given).any():
            self._envs.reset(numbers, chosen & given)
        if (chosen & ~given).any():
            self._envs.reset(None, chosen & ~given)
        self._has_luck |= chosen
        self._finished &= ~chosen

        observation = self._envs.observation()
        infos: dict[str, Any] = {}
        if chosen.all():
            infos["action_mask"] = self._envs.action_mask(observation)
            infos["_action_mask"] = chosen
        else:
            mask = self._envs.action_mask(observation).copy()
            mask[~chosen] = 0
            infos["action_mask"], infos["_action_mask"] = mask, chosen
        self._add_tasks(infos, chosen)
        return observation, infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Takes an action in each environment, [num_envs] or [num_envs, numbers of an action]."""
        envs = self._envs
        envs.step(actions)
        observation = envs.observation()
        terminated, truncated, illegal = envs.terminated(), envs.truncated(), envs.illegal()
        infos: dict[str, Any] = {
            "action_mask": envs.action_mask(observation),
            "_action_mask": np.ones(self.num_envs, bool),
        }
        ended = terminated | truncated
        same_step = self.autoreset_mode is AutoresetMode.SAME_STEP
        if illegal.any():
            shown = illegal & ~ended if same_step else illegal
            if shown.any():
                infos["illegal"], infos["_illegal"] = shown, shown.copy()
        if ended.any():
            for i in np.flatnonzero(ended):
                self._add_end(infos, int(i), bool(terminated[i]), bool(illegal[i]))
        if same_step:
            self._add_tasks(infos, ended)
        elif self.autoreset_mode is AutoresetMode.NEXT_STEP:
            self._add_tasks(infos, self._finished)
            self._finished = ended
        return observation, envs.rewards(), terminated, truncated, infos

    def _add_end(self, infos: dict[str, Any], i: int, terminated: bool, illegal: bool) -> None:
        """What environment i tells at the end of its episode."""
        result = self._envs.result(i) if terminated else {}
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            info: dict[str, Any] = {"action_mask": self._envs.final_mask(i)}
            if illegal:
                info["illegal"] = True
            end = {"final_obs": self._envs.final_observation(i), "final_info": {**info, **result}}
            self._add_info(infos, end, i)
        elif result:
            self._add_info(infos, result, i)

    def _add_tasks(self, infos: dict[str, Any], started: NDArray[np.bool_]) -> None:
        if started.any():
            infos["task"] = np.where(started, self._envs.task_indices(), 0)
            infos["_task"] = started.copy()

    def _reset_mask(self, mask: Any) -> NDArray[np.bool_]:
        if mask is None:
            return np.ones(self.num_envs, bool)
        if not isinstance(mask, np.ndarray) or mask.dtype != bool:
            raise UsageError("reset_mask: expected a numpy array of bool")
        if mask.shape != (self.num_envs,) or not mask.any():
            raise UsageError(
                f"reset_mask: expected shape ({self.num_envs},) with at least one True, "
                f"got shape {mask.shape}"
            )
        return mask.copy()

    def _seeds(self, seed: Any) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if not isinstance(seed, Sequence | np.ndarray):
            try:
                first = operator.index(seed)
            except TypeError:
                raise UsageError(f"seed: expected a whole number, got {seed!r:.60}") from None
            if isinstance(seed, bool) or first < 0:
                raise UsageError(f"seed: expected a whole number from 0, got {seed!r:.60}")
            return [first + i for i in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise UsageError(f"{len(seed)} seeds for {self.num_envs} environments; give one each")
        return list(seed)

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are legal now, bool [num_envs, mask size]; a new array."""
        return self._envs.action_masks()

    def result(self, index: int) -> dict[str, Any]:
        """What the last info of environment ``index`` told, ``assignment`` without padding."""
        return self._envs.result(index, padded=False)

    def serialize(self) -> list[bytes]:
        """The states of all environments and their luck: versioned, for ``restore``."""
        return self._envs.serialize()

    def restore(self, states: Sequence[bytes]) -> None:
        """Brings back states of environments with the same tasks and options."""
        self._envs.restore(states)
        self._has_luck[:] = True
        ended = ~self._envs.running()
        self._finished = ended & (self.autoreset_mode is AutoresetMode.NEXT_STEP)

    def render(self) -> tuple[Any, ...] | None:
        """The schedule of each environment, as ``AssignEnv.render`` shows it."""
        if self.render_mode is None:
            return None
        from . import rendering

        draw = rendering.text if self.render_mode == "ansi" else rendering.image
        return tuple(
            draw(rendering.Chart.partial(*self._envs.schedule(i))) for i in range(self.num_envs)
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_envs": self._envs.serialize()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        states = state["_envs"]
        self._envs = self._make_envs(len(states))
        self._envs.restore(states)

    def __deepcopy__(self, memo: dict[int, Any]) -> AssignVectorEnv:
        other = type(self).__new__(type(self))
        memo[id(self)] = other
        other.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return other


def _autoreset_mode(mode: str | AutoresetMode) -> AutoresetMode:
    if isinstance(mode, AutoresetMode):
        return mode
    for known in AutoresetMode:
        if mode in (known.value, known.name, known.name.lower()):
            return known
    names = " ".join(known.value for known in AutoresetMode)
    raise UsageError(f"unknown autoreset_mode {mode!r}; known: {names}")
