#!/usr/bin/env python3
"""Steps a second of the Python package, beside CartPole-v1 in the same run.

    benchmarks/python_steps.py [--task TASK] [--seconds SECONDS] [--json]

Single environments are timed step by step, without the choice of the action; the middle of five
rounds is shown, in which all of them take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

import doppler_gym as dg

ROUNDS = 5


def single(env: Any, choose: Callable[[], Any], seconds: float) -> float:
    """Steps a second of one environment."""
    env.reset(seed=0)
    spent, n = 0.0, 0
    while spent < seconds:
        action = choose()
        begin = time.perf_counter()
        _, _, terminated, truncated, _ = env.step(action)
        spent += time.perf_counter() - begin
        n += 1
        if terminated or truncated:
            env.reset()
    return n / spent


def vector(envs: Any, seconds: float) -> float:
    """Steps a second of all environments of a vector together."""
    envs.reset(seed=0)
    spent, n = 0.0, 0
    while spent < seconds:
        actions = envs.unwrapped.action_masks().argmax(axis=1)
        begin = time.perf_counter()
        envs.step(actions)
        spent += time.perf_counter() - begin
        n += envs.num_envs
    return n / spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", default="llama-layer@p100x4")
    parser.add_argument("--seconds", type=float, default=0.3, help="of each measurement")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()

    made = gym.make("DopplerGym/Assign-v0", task=arguments.task, mode="sequential")
    bare = dg.AssignEnv(arguments.task, mode="sequential")
    cart = gym.make("CartPole-v1")
    envs = gym.make_vec("DopplerGym/Assign-v0", 256, task=arguments.task, mode="sequential")
    masks = made.get_wrapper_attr("action_masks")
    contestants = {
        "AssignEnv": lambda s: single(bare, lambda: int(np.argmax(bare.action_masks())), s),
        "AssignEnv, gymnasium.make": lambda s: single(made, lambda: int(np.argmax(masks())), s),
        "CartPole-v1, gymnasium.make": lambda s: single(cart, lambda: 0, s),
        "AssignVectorEnv of 256": lambda s: vector(envs, s),
    }
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, measure in contestants.items():
            rates[name].append(measure(arguments.seconds))
    middle = {name: statistics.median(measured) for name, measured in rates.items()}
    if arguments.json:
        print(json.dumps({"task": arguments.task, "cores": os.cpu_count(), "steps/s": middle}))
        return
    print(f"{arguments.task}, sequential, paper features, {os.cpu_count()} cores")
    for name, rate in middle.items():
        print(f"{name:28} {rate:12,.0f} steps/s")


if __name__ == "__main__":
    main()
