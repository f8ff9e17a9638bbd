"""check_env: content with what is right, and finds each thing that is wrong."""

import gymnasium as gym
import numpy as np
import pytest

import doppler_gym as dg
from conftest import draw_costs


@pytest.fixture
def task(rng):
    return dg.Task(dg.Graph.from_costs(*draw_costs(rng, 8)), dg.Cluster.uniform(3), name="eight")


@pytest.mark.parametrize("mode", ["sequential", "joint", "place", "refine", "oneshot"])
@pytest.mark.parametrize("on_illegal", ["penalize", "raise"])
def test_our_environments_pass(task, mode, on_illegal):
    noisy = dg.Task(task.graph, task.cluster, noise=0.1)
    for options in ({}, {"flat": True, "features": "full", "reward": "dense"}):
        dg.check_env(dg.AssignEnv(noisy, mode=mode, on_illegal=on_illegal, **options))
    dg.check_env(dg.AssignEnv(tasks=[noisy, task], mode=mode, max_devices=4, max_nodes=9))
    dg.check_env(dg.AssignEnv(task, mode="joint", factored=True))


def test_wrapped_and_foreign_environments_pass(task):
    env = dg.AssignEnv(task, mode="place", flat=True)
    dg.check_env(gym.wrappers.TransformReward(env, lambda reward: reward / 2))
    dg.check_env(gym.wrappers.FlattenObservation(dg.AssignEnv(task, mode="place")))
    dg.check_env(gym.make("DopplerGym/Assign-v0", task=task))
    dg.check_env(gym.make("FrozenLake-v1"), seed=3)


class Wrong(gym.Wrapper):
    """Breaks one rule."""

    def __init__(self, env, fault):
        super().__init__(env)
        self.fault, self.n, self.n_resets = fault, 0, 0

    def reset(self, **arguments):
        self.n = 0
        self.n_resets += 1
        observation, info = self.env.reset(**arguments)
        self.kept = observation
        return observation, info

    def step(self, action):
        if self.fault == "accepts after the end" and not self.env.action_masks().any():
            return self.kept, 0.0, True, False, {}
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.n += 1
        if self.fault == "mask of info":
            info["action_mask"] = 1 - info["action_mask"]
        if self.fault == "mask of observation":
            observation["action_mask"] = 1 - observation["action_mask"]
        if self.fault == "not finite":
            observation["device_features"][0, 0] = np.nan
        if self.fault == "outside":
            observation["node"][0] = 99
        if self.fault == "dtype":
            observation["node"] = observation["node"].astype(np.int64)
        if self.fault == "reward not finite":
            reward = float("inf")
        if self.fault == "another reward":
            reward += self.n_resets
        if self.fault == "reward of the return":
            reward += 1.0
        if self.fault == "reused arrays":
            self.kept["placement"][:] = observation["placement"]
        if self.fault == "illegal moves on" and info.get("illegal"):
            observation["phase"][0] ^= 1
        if self.fault == "no makespan":
            info.pop("makespan", None)
        if self.fault == "info":
            info = []
        self.kept = observation
        return observation, reward, terminated, truncated, info

    def action_masks(self):
        mask = self.env.action_masks()
        return mask[None] if self.fault == "shape of masks" else mask


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("mask of info", r'info\["action_mask"\] differs'),
        ("mask of observation", r'observation\["action_mask"\] differs'),
        ("shape of masks", "not one row"),
        ("not finite", "outside its space: 'device_features'|not finite"),
        ("outside", "outside its space: 'node'"),
        ("dtype", "outside its space: 'node'"),
        ("reward not finite", "the reward is inf"),
        ("another reward", "the same seed and actions gave another reward"),
        ("reward of the return", "rewards sum to"),
        ("reused arrays", "has changed"),
        ("illegal moves on", "illegal action changed the observation"),
        ("no makespan", "no 'makespan'"),
        ("info", "info is list"),
        ("accepts after the end", "was accepted"),
    ],
)
def test_each_fault_is_found(task, fault, message):
    env = Wrong(dg.AssignEnv(task, mode="sequential"), fault)
    with pytest.raises(dg.InvalidError, match=message):
        dg.check_env(env)
    dg.check_env(Wrong(dg.AssignEnv(task, mode="sequential"), "none"))


def test_wrong_arguments_are_refused(task):
    with pytest.raises(dg.UsageError, match="n_episodes"):
        dg.check_env(dg.AssignEnv(task), n_episodes=0)
    with pytest.raises(dg.UsageError, match="seed"):
        dg.check_env(dg.AssignEnv(task), seed=-1)
    with pytest.raises(dg.InvalidError, match="action_space"):
        dg.check_env(gym.Env())
    with pytest.raises(dg.UsageError, match="no masks"):
        dg.sample_mask(gym.wrappers.RescaleAction(Continuous(), -1, 1))


class Continuous(gym.Env):
    """Actions that no mask fits."""

    action_space = gym.spaces.Box(0, 1, (1,))
    observation_space = gym.spaces.Box(0, 1, (1,))

    def action_masks(self):
        return np.ones(1, bool)
