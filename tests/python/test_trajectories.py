"""Recorded data sets, opened by Minari itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import doppler_gym as dg
from doppler_gym._recording import serialize_space

minari = pytest.importorskip("minari")
serialization = pytest.importorskip("minari.serialization")

STATIC = {"node_features", "edges", "edge_features", "node_valid", "edge_valid", "device_valid"}


def load(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(root))
    (name,) = minari.list_local_datasets()
    return minari.load_dataset(name)


def play(env: Any, seed: int) -> list[Any]:
    """An episode of random legal actions: the observations, actions and results."""
    rng = np.random.default_rng(seed)
    observation, info = env.reset(seed=seed)
    seen: list[Any] = [observation]
    steps: list[Any] = []
    done = False
    while not done:
        action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        observation, reward, terminated, truncated, info = env.step(action)
        seen.append(observation)
        steps.append((action, reward, terminated, truncated))
        done = terminated or truncated
    return [seen, steps, info]


def check_episode(episode: Any, seen: list[Any], steps: list[Any]) -> None:
    for name, rows in episode.observations.items():
        assert rows.dtype == seen[0][name].dtype
        np.testing.assert_array_equal(rows, np.stack([one[name] for one in seen]), err_msg=name)
    np.testing.assert_array_equal(episode.actions, [step[0] for step in steps])
    np.testing.assert_array_equal(episode.rewards, [step[1] for step in steps])
    np.testing.assert_array_equal(episode.terminations, [step[2] for step in steps])
    np.testing.assert_array_equal(episode.truncations, [step[3] for step in steps])


@pytest.mark.parametrize("full", [False, True])
def test_recorder_keeps_every_array(
    full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = dg.Recorder(
        gym.make("DopplerGym/ffnn.p100x4-v0", mode="place"), tmp_path, agent="random", full=full
    )
    played = [play(env, seed) for seed in range(4)]
    assert env.n_recorded == 4
    env.close()
    dataset = load(tmp_path, monkeypatch)
    assert dataset.id == "dopplergym/ffnn_p100x4/random-v0"
    assert dataset.total_episodes == 4
    assert dataset.total_steps == 4 * 180
    names = set(dataset.observation_space.spaces)
    assert names & STATIC == (STATIC if full else set())
    for episode, (seen, steps, _) in zip(dataset.iterate_episodes(), played, strict=True):
        check_episode(episode, seen, steps)
        assert dataset.observation_space["device_features"].contains(
            episode.observations["device_features"][3]
        )
        masks = np.stack([one["action_mask"] for one in seen])
        np.testing.assert_array_equal(episode.infos["action_mask"], masks)
        assert not episode.infos["illegal"].any()
    assert len(dataset.sample_episodes(2)) == 2
    metadata = list(dataset.storage.get_episode_metadata(range(4)))
    for seed, (one, (_, _, info)) in enumerate(zip(metadata, played, strict=True)):
        assert one["seed"] == seed
        assert one["makespan"] == info["makespan"]
        assert one["lower_bound"] == info["lower_bound"]
    # The environment comes back, and plays on as it was.
    recovered = dataset.recover_environment()
    again = play(recovered, 2)
    assert again[2]["makespan"] == played[2][2]["makespan"]


def test_static_arrays_stand_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import h5py

    env = dg.Recorder(gym.make("DopplerGym/ffnn.p100x4-v0", mode="place"), tmp_path)
    seen, _, _ = play(env, 0)
    play(env, 1)
    env.close()
    dataset = load(tmp_path, monkeypatch)
    with h5py.File(Path(dataset.spec.data_path) / "main_data.hdf5") as file:
        assert set(file["episode_0/static"]) == STATIC
        for name in STATIC:
            np.testing.assert_array_equal(file["episode_0/static"][name][0], seen[0][name])
        assert file["episode_0/static"] == file["episode_1/static"]  # one object


def test_vector_recorder_is_the_recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    envs = dg.VectorRecorder(
        dg.AssignVectorEnv(3, "ffnn@p100x4", mode="place", autoreset_mode="Disabled"),
        tmp_path / "vector",
        agent="random",
    )
    rngs = [np.random.default_rng(seed) for seed in range(3)]
    _, infos = envs.reset(seed=0)
    done = np.zeros(3, bool)
    while not done.all():
        masks = infos["action_mask"]
        actions = [int(rng.choice(np.flatnonzero(m))) for rng, m in zip(rngs, masks, strict=True)]
        _, _, terminated, truncated, infos = envs.step(np.array(actions))
        done = terminated | truncated
    envs.close()
    env = dg.Recorder(
        dg.AssignEnv("ffnn@p100x4", mode="place"), tmp_path / "single", agent="random"
    )
    for seed in range(3):
        play(env, seed)
    env.close()
    with monkeypatch.context() as patch:
        vector = load(tmp_path / "vector", patch)
    with monkeypatch.context() as patch:
        single = load(tmp_path / "single", patch)
    for a, b in zip(vector.iterate_episodes(), single.iterate_episodes(), strict=True):
        for name, rows in a.observations.items():
            np.testing.assert_array_equal(rows, b.observations[name])
        np.testing.assert_array_equal(a.actions, b.actions)
        np.testing.assert_array_equal(a.rewards, b.rewards)


def test_the_command_writes_what_python_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ["record", "--task", "chainmm@p100x4", "--agent", "critical-path", "--episodes", "3"]
    start = [sys.executable, "-c", "import sys, doppler_gym; sys.exit(doppler_gym.main())"]
    subprocess.run([*start, *line, "--out", str(tmp_path)], check=True, capture_output=True)
    dataset = load(tmp_path, monkeypatch)
    env = dataset.recover_environment()
    for number, episode in enumerate(dataset.iterate_episodes()):
        observation, _ = env.reset(seed=number)
        for t, action in enumerate(episode.actions):
            for name, rows in episode.observations.items():
                np.testing.assert_array_equal(rows[t], observation[name])
            observation, reward, terminated, _, _ = env.step(action)
            assert reward == episode.rewards[t]
            assert terminated == episode.terminations[t]
    assert number == 2


def test_environments_of_others_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Counter(gym.Env[Any, Any]):
        observation_space = gym.spaces.Tuple(
            (
                gym.spaces.Box(0, 9, (2, 3), np.float64),
                gym.spaces.Dict({"a": gym.spaces.Discrete(9), "b": gym.spaces.MultiBinary(4)}),
            )
        )
        action_space = gym.spaces.Dict(
            {"x": gym.spaces.Box(-1, 1, (2,)), "y": gym.spaces.MultiDiscrete([2, 3])}
        )

        def _see(self) -> Any:
            return (np.full((2, 3), self.t / 2), {"a": self.t, "b": np.ones(4, np.int8)})

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            self.t = 0
            return self._see(), {}

        def step(self, action: Any) -> Any:
            self.t += 1
            return self._see(), 0.5 * self.t, False, self.t == 5, {}

    env = dg.Recorder(Counter(), tmp_path, dataset_id="test/counter-v0")
    env.action_space.seed(0)
    actions = []
    for seed in range(2):
        env.reset(seed=seed)
        for _ in range(5):
            actions.append(env.action_space.sample())
            env.step(actions[-1])
    env.close()
    dataset = load(tmp_path, monkeypatch)
    episode = dataset[1]
    np.testing.assert_array_equal(episode.observations[0][:, 0, 0], np.arange(6) / 2)
    np.testing.assert_array_equal(episode.observations[1]["a"], np.arange(6))
    np.testing.assert_array_equal(episode.actions["x"], [one["x"] for one in actions[5:]])
    np.testing.assert_array_equal(episode.actions["y"], [one["y"] for one in actions[5:]])
    assert episode.truncations.tolist() == [False] * 4 + [True]


def test_recording_goes_on_and_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = lambda **options: dg.Recorder(  # noqa: E731
        dg.AssignEnv("chainmm@p100x4", mode="place"), tmp_path, agent="mine", **options
    )
    env = make()
    play(env, 0)
    with pytest.raises(dg.RunError, match="another process"):
        make(resume=True)
    env.build()
    play(env, 1)
    env.close()
    with pytest.raises(dg.UsageError, match="already"):
        make()
    env = make(resume=True)
    assert env.recorded_seeds == [0, 1]
    env.reset(seed=5)
    env.step(0)  # an episode that does not end
    play(env, 2)
    env.close()
    dataset = load(tmp_path, monkeypatch)
    metadata = list(dataset.storage.get_episode_metadata(range(dataset.total_episodes)))
    assert [one["seed"] for one in metadata] == [0, 1, 2]
    with pytest.raises(dg.EpisodeError):
        make(resume=True).step(0)
    with pytest.raises(dg.UsageError, match="Text"):
        serialize_space(gym.spaces.Text(3))


def test_spaces_are_serialized_as_minari_does() -> None:
    env = dg.AssignEnv("chainmm@p100x4", mode="joint", factored=True)
    for space in (env.observation_space, env.action_space, gym.spaces.MultiBinary([2, 3])):
        ours = json.loads(json.dumps(serialize_space(space)))
        assert ours == json.loads(serialization.serialize_space(space))


def test_minari_merges_and_extends_what_was_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = dg.Recorder(dg.AssignEnv("chainmm@p100x4", mode="place"), tmp_path, agent="mine")
    for seed in range(4):
        play(env, seed)
    env.close()
    dataset = load(tmp_path, monkeypatch)
    assert dataset.filter_episodes(lambda e: bool(e.terminations[-1])).total_episodes == 4
    parts = minari.split_dataset(dataset, sizes=[3, 1], seed=1)
    assert [part.total_episodes for part in parts] == [3, 1]
    merged = minari.combine_datasets([dataset], new_dataset_id="merged-v0")
    assert merged.total_steps == dataset.total_steps
    np.testing.assert_array_equal(merged[2].actions, dataset[2].actions)
