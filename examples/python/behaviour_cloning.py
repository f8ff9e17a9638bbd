"""Behaviour cloning: a policy that does as recorded episodes did, with plain PyTorch.

Records two agents on one task, clones each by the same network, and plays the clones: what is
cloned decides how good they are. Needs torch and minari[hdf5].

    python behaviour_cloning.py [episodes, evaluations of annealing for each, seeds of the clones]
"""

import os
import subprocess
import sys
import tempfile

import gymnasium
import minari
import numpy as np
import torch
from torch import nn

TASK = "llama-layer@p100x4"
EPOCHS = 30
BATCH = 512


def inputs_of(device_features: np.ndarray, node_features: np.ndarray) -> torch.Tensor:
    """[steps, devices, features]: each device's features relative to the best device's, its own,
    and those of the node."""
    relative = device_features - device_features.min(axis=1, keepdims=True)
    nodes = np.repeat(node_features[:, None], device_features.shape[1], axis=1)
    return torch.tensor(np.concatenate([relative, device_features, nodes], axis=2))


def steps_of(dataset: minari.MinariDataset, node_features: np.ndarray):
    """What the data set's episodes saw and did; an episode is in memory at a time."""
    inputs, actions = [], []
    for episode in dataset.iterate_episodes():
        seen = episode.observations
        inputs.append(inputs_of(seen["device_features"][:-1], node_features[seen["node"][:-1, 0]]))
        actions.append(torch.tensor(episode.actions))
    return torch.cat(inputs), torch.cat(actions)


def clone(inputs: torch.Tensor, actions: torch.Tensor, seed: int) -> nn.Module:
    """The network's output for a device is the logit of placing the node there."""
    torch.manual_seed(seed)
    network = nn.Sequential(
        nn.Linear(inputs.shape[2], 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
    )
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(actions)).split(BATCH):
            loss = nn.functional.cross_entropy(network(inputs[batch])[..., 0], actions[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return network


def makespan_of(network: nn.Module, env: gymnasium.Env) -> float:
    """Of the assignment that the policy decides, the likeliest device each time."""
    observation, info = env.reset(seed=0)
    while True:
        node = observation["node_features"][observation["node"]]
        logits = network(inputs_of(observation["device_features"][None], node))
        action = int(logits[0, :, 0].argmax())
        observation, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            return info["makespan"]


def record(root: str, agent: str, episodes: int, evaluations: int) -> None:
    """A data set of the agent's episodes, one seed each, below ``root``."""
    command = "import sys, doppler_gym; sys.exit(doppler_gym.main())"
    line = ["record", "--task", TASK, "--agent", agent, "--mode", "place", "--features", "full"]
    line += ["--episodes", str(episodes), "--evaluations", str(evaluations), "--out", root]
    line += ["--flush-episodes", "64"]
    subprocess.run([sys.executable, "-c", command, *line], check=True, stdout=subprocess.DEVNULL)


def main(episodes: int = 64, evaluations: int = 5000, n_seeds: int = 3) -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as root:
        os.environ["MINARI_DATASETS_PATH"] = root
        for agent in ("critical-path", "annealing"):
            record(root, agent, episodes, evaluations)
        for name in minari.list_local_datasets():
            dataset = minari.load_dataset(name)
            env = dataset.recover_environment()
            observation, _ = env.reset(seed=0)
            inputs, actions = steps_of(dataset, observation["node_features"])
            metadata = dataset.storage.get_episode_metadata(range(len(dataset)))
            shown = np.mean([one["makespan"] for one in metadata])
            clones = [makespan_of(clone(inputs, actions, seed), env) for seed in range(n_seeds)]
            print(
                f"{name}: episodes {shown * 1e3:.2f} ms, clones {np.mean(clones) * 1e3:.2f} ms "
                f"(best {min(clones) * 1e3:.2f}, {n_seeds} seeds)"
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
