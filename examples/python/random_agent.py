"""Play one episode by random legal actions."""

import gymnasium as gym

import doppler_gym as dg

env = gym.make("DopplerGym/Assign-v0", task="llama-layer@p100x4", mode="sequential")
observation, info = env.reset(seed=0)
env.action_space.seed(0)
terminated = truncated = False
while not (terminated or truncated):
    action = env.action_space.sample(dg.sample_mask(env))
    observation, reward, terminated, truncated, info = env.step(action)
print(f"makespan {info['makespan'] * 1e3:.1f} ms")
print(f"{info['ratio_to_critical_path']:.2f} times that of the critical-path heuristic")
