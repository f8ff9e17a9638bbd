"""Masks in Gymnasium's form, and a check of what every environment must keep."""

from __future__ import annotations

import contextlib
import copy
import math
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from ._errors import DopplerError, InvalidError, UsageError
from .environment import AssignEnv

_MOST_STEPS = 1_000_000


def sample_mask(env: gym.Env[Any, Any]) -> Any:
    """The mask of legal actions in the form that ``env.action_space.sample(mask)`` takes.

    Returns:
        int8 [n] for ``Discrete``, a tuple of such arrays for ``MultiDiscrete``.
    """
    masks = env.get_wrapper_attr("action_masks")()
    return _in_form(env.action_space, np.asarray(masks).astype(np.int8))


def _in_form(space: gym.Space[Any], mask: NDArray[np.int8]) -> Any:
    if isinstance(space, gym.spaces.Discrete):
        return mask
    if isinstance(space, gym.spaces.MultiDiscrete):
        parts = np.split(mask, np.cumsum(space.nvec.ravel())[:-1])
        return tuple(parts)
    raise UsageError(f"there are no masks for actions of {type(space).__name__}")


def check_env(env: gym.Env[Any, Any], *, seed: int = 0, n_episodes: int = 2) -> None:
    """Checks an environment, or wrappers around one, by random legal episodes.

    That the same seed gives the same episode; observations are in their space and finite, and do
    not change once returned; the masks of ``action_masks()``, ``info["action_mask"]`` and
    ``observation["action_mask"]`` (those that there are) have equal values; an illegal action,
    where masks tell of one, leaves the episode as it was; rewards are finite. For ``AssignEnv``
    also: rewards sum to the return, which is what the last info says (unless a wrapper changes
    rewards), ``step()`` after the end is refused, and all that the C++ library checks: exact
    copies and restored states, masks against what is accepted, makespans against the simulator.

    Args:
        env: stays in some state of its episode.
        seed: of the episodes.
        n_episodes: how many are played, 1 or more.

    Raises:
        InvalidError: the first fault, with its episode and step.
    """
    if n_episodes < 1:
        raise UsageError(f"n_episodes is {n_episodes}; play 1 or more")
    for attribute in ("action_space", "observation_space"):
        if not isinstance(getattr(env, attribute, None), gym.Space):
            raise InvalidError(f"{attribute} is no gymnasium.Space")
    ours = env.unwrapped if isinstance(env.unwrapped, AssignEnv) else None
    if ours is not None:
        ours._model.check(seed=seed, n_episodes=n_episodes)
    for episode in range(n_episodes):
        first = _play(env, seed + episode, None)
        again = _play(env, seed + episode, [step["action"] for step in first])
        _compare(first, again, f"episode {episode}", "the same seed and actions")
        with_illegal = _play_with_illegal(env, seed + episode, first, episode)
        if with_illegal is not None:
            _compare(first, with_illegal, f"episode {episode}", "illegal actions in between")
        if ours is not None:
            _check_end(env, ours, first, episode)


def _play(env: gym.Env[Any, Any], seed: int, actions: list[Any] | None) -> list[dict[str, Any]]:
    """One episode: what it told step by step; random legal actions, or those given."""
    rng = np.random.default_rng(seed)
    observation, info = env.reset(seed=seed)
    steps: list[dict[str, Any]] = []
    before = _snapshot(env, observation, info, f"seed {seed}, reset")
    kept, kept_copy = observation, before["observation"]
    over = False
    while not over:
        where = f"seed {seed}, step {len(steps)}"
        if len(steps) == _MOST_STEPS:
            raise InvalidError(f"{where}: the episode does not end")
        action = _draw(env, before["mask"], rng) if actions is None else actions[len(steps)]
        observation, reward, terminated, truncated, info = env.step(action)
        if not math.isfinite(float(reward)):
            raise InvalidError(f"{where}: the reward is {reward}")
        if not _equal(kept, kept_copy):
            raise InvalidError(f"{where}: the observation before has changed; return new arrays")
        after = _snapshot(env, observation, info, where)
        kept, kept_copy = observation, after["observation"]
        over = bool(terminated or truncated)
        steps.append(
            {
                **before,
                "action": action,
                "reward": float(reward),
                "end": (bool(terminated), bool(truncated)),
                "next": after["observation"],
                "info": after["info"],
            }
        )
        before = after
        if actions is not None and len(steps) == len(actions):
            break
    return steps


def _snapshot(
    env: gym.Env[Any, Any], observation: Any, info: dict[str, Any], where: str
) -> dict[str, Any]:
    """A copy of what was told, checked."""
    if not env.observation_space.contains(observation):
        raise InvalidError(
            f"{where}: the observation is outside its space: {_outside(env, observation)}"
        )
    if not all(np.isfinite(array).all() for array in _arrays(observation)):
        raise InvalidError(f"{where}: the observation has elements that are not finite")
    if not isinstance(info, dict):
        raise InvalidError(f"{where}: info is {type(info).__name__}, not a dict")
    masks: dict[str, Any] = {}
    with contextlib.suppress(AttributeError):
        masks["action_masks()"] = env.get_wrapper_attr("action_masks")()
    if "action_mask" in info:
        masks['info["action_mask"]'] = info["action_mask"]
    if isinstance(observation, dict) and "action_mask" in observation:
        masks['observation["action_mask"]'] = observation["action_mask"]
    first: NDArray[np.bool_] | None = None
    for name, mask in masks.items():
        flat = np.asarray(mask)
        if flat.ndim != 1 or not np.isin(flat, (0, 1)).all():
            raise InvalidError(f"{where}: {name} is not one row of 0 and 1")
        if first is None:
            first = flat.astype(bool)
        elif not np.array_equal(first, flat.astype(bool)):
            raise InvalidError(f"{where}: {name} differs from {next(iter(masks))}")
    return {
        "observation": copy.deepcopy(observation),
        "info": copy.deepcopy(info),
        "mask": first,
        "where": where,
    }


def _outside(env: gym.Env[Any, Any], observation: Any) -> str:
    space = env.observation_space
    if isinstance(space, gym.spaces.Dict) and isinstance(observation, dict):
        if set(space.keys()) != set(observation):
            return f"keys {sorted(observation)} instead of {sorted(space.keys())}"
        for key, part in space.items():
            if not part.contains(observation[key]):
                return f"{key!r}"
    return type(observation).__name__


def _arrays(value: Any) -> list[NDArray[Any]]:
    if isinstance(value, dict):
        return [array for one in value.values() for array in _arrays(one)]
    if isinstance(value, tuple | list):
        return [array for one in value for array in _arrays(one)]
    array = np.asarray(value)
    return [array] if array.dtype.kind in "biufc" else []


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(_equal, a, b))
    return bool(np.array_equal(np.asarray(a), np.asarray(b)))


def _draw(env: gym.Env[Any, Any], mask: NDArray[np.bool_] | None, rng: np.random.Generator) -> Any:
    space = env.action_space
    if mask is None:
        space.seed(int(rng.integers(2**31)))
        return space.sample()
    form = _in_form(space, mask.astype(np.int8))
    if isinstance(form, tuple):
        return np.array([rng.choice(np.flatnonzero(part)) for part in form])
    return int(rng.choice(np.flatnonzero(form)))


def _compare(
    first: list[dict[str, Any]], again: list[dict[str, Any]], episode: str, why: str
) -> None:
    for number, (a, b) in enumerate(zip(first, again, strict=False)):
        for what in ("observation", "mask", "reward", "end", "next", "info"):
            if not _equal(a[what], b[what]):
                raise InvalidError(f"{episode}, step {number}: {why} gave another {what}")
    if len(first) != len(again):
        raise InvalidError(f"{episode}: {why} gave {len(again)} steps instead of {len(first)}")


def _play_with_illegal(
    env: gym.Env[Any, Any], seed: int, first: list[dict[str, Any]], episode: int
) -> list[dict[str, Any]] | None:
    """The same episode with an illegal action before the first and before the last step."""
    places = {0, len(first) - 1} if len(first) > 2 else {0}
    actions: list[Any] = []
    illegal: list[bool] = []
    for number, step in enumerate(first):
        wrong = _illegal(env.action_space, step["mask"])
        if number in places and wrong is not None:
            actions.append(wrong)
            illegal.append(True)
        actions.append(step["action"])
        illegal.append(False)
    if not any(illegal):
        return None
    observation, info = env.reset(seed=seed)
    before = _snapshot(env, observation, info, f"episode {episode}, reset")
    steps: list[dict[str, Any]] = []
    for action, wrong in zip(actions, illegal, strict=True):
        where = f"episode {episode}, step {len(steps)}"
        try:
            observation, reward, terminated, truncated, info = env.step(action)
        except Exception as error:
            if not wrong:
                raise
            if not isinstance(error, DopplerError | ValueError | AssertionError):
                raise InvalidError(f"{where}: an illegal action raised {error!r}") from error
            continue
        after = _snapshot(env, observation, info, where)
        if wrong:
            if not _equal(after["observation"], before["observation"]):
                raise InvalidError(f"{where}: an illegal action changed the observation")
            if truncated and not terminated:
                return None  # too many of them for so short an episode
            if terminated:
                raise InvalidError(f"{where}: an illegal action ended the episode")
            continue
        steps.append(
            {
                **before,
                "action": action,
                "reward": float(reward),
                "end": (bool(terminated), bool(truncated)),
                "next": after["observation"],
                "info": after["info"],
            }
        )
        before = after
    return steps


def _illegal(space: gym.Space[Any], mask: NDArray[np.bool_] | None) -> Any:
    """An action of the space that the mask forbids, if there is one."""
    if mask is None or mask.all():
        return None
    if isinstance(space, gym.spaces.Discrete):
        return int(np.flatnonzero(~mask)[0])
    parts = _in_form(space, mask.astype(np.int8))
    for position, part in enumerate(parts):
        if not part.all():
            action = np.array([np.flatnonzero(other)[0] if other.any() else 0 for other in parts])
            action[position] = np.flatnonzero(part == 0)[0]
            return action
    return None


def _check_end(
    env: gym.Env[Any, Any], ours: AssignEnv, steps: list[dict[str, Any]], episode: int
) -> None:
    where = f"episode {episode}"
    info = steps[-1]["info"]
    for key in ("makespan", "ratio_to_critical_path", "lower_bound", "assignment"):
        if key not in info:
            raise InvalidError(f"{where}: the last info has no {key!r}")
    wrappers = env
    while isinstance(wrappers, gym.Wrapper):
        if isinstance(wrappers, gym.RewardWrapper):
            break
        wrappers = wrappers.env
    total = math.fsum(step["reward"] for step in steps)
    if not isinstance(wrappers, gym.Wrapper) and not math.isclose(
        total, ours.episode_return, rel_tol=1e-6, abs_tol=1e-9
    ):
        raise InvalidError(f"{where}: rewards sum to {total}, the return is {ours.episode_return}")
    try:
        env.step(steps[-1]["action"])
    except Exception as error:
        if not isinstance(error, DopplerError):
            raise InvalidError(f"{where}: step() after the end raised {error!r}") from error
    else:
        raise InvalidError(f"{where}: step() after the end was accepted")
