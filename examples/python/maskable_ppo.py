"""Train MaskablePPO of sb3-contrib on a task; a number on the command line: how many steps."""

import sys

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import VecNormalize

import doppler_gym as dg
from doppler_gym.sb3 import VecEnv

n_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
torch.set_num_threads(1)  # the network is small
task = dg.task("chainmm@p100x4")
options = {"mode": "place", "features": "full", "reward": "dense", "flat": True}
# Ids and static arrays are in the observation too; normalizing takes what never changes out.
envs = VecNormalize(VecEnv(16, task=task, **options), gamma=1.0)
model = MaskablePPO(
    "MlpPolicy", envs, n_steps=76, batch_size=304, n_epochs=8, gamma=1.0, learning_rate=1e-3, seed=0
)


class Trained(dg.Agent):
    """What the model would do."""

    environment = options

    def act(self, observation, info):
        seen = envs.normalize_obs(observation)
        return model.predict(seen, action_masks=info["action_mask"])[0]


def mean_ms(agent):
    return 1e3 * np.mean([dg.run(agent, task, seed=seed).makespan for seed in range(20)])


print(f"untrained {mean_ms(Trained()):.1f} ms, mean of 20 episodes")
for part in range(4):
    model.learn(n_steps // 4, reset_num_timesteps=part == 0)
    print(f"{model.num_timesteps:9} steps {mean_ms(Trained()):.1f} ms")
for name in ("critical-path", "partner-list"):
    print(f"{name} {dg.agent(name).assign(task).makespan * 1e3:.1f} ms")
