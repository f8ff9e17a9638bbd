"""Step many environments at once, and keep the best assignment that luck finds."""

import gymnasium as gym
import numpy as np

import doppler_gym  # noqa: F401 (registers the environments)

envs = gym.make_vec("DopplerGym/chainmm.p100x4-v0", num_envs=64, mode="place")
observations, infos = envs.reset(seed=0)
rng = np.random.default_rng(0)
best, n_episodes = np.inf, 0
for _ in range(500):
    actions = rng.integers(0, envs.single_action_space.n, envs.num_envs)
    observations, rewards, terminated, truncated, infos = envs.step(actions)
    if terminated.any():
        n_episodes += int(terminated.sum())
        best = min(best, infos["makespan"][terminated].min())
print(f"{n_episodes} episodes, best makespan {best * 1e3:.1f} ms")
