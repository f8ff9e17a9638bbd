"""The environment for RLlib, without RLlib."""

import warnings

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import doppler_gym as dg
from doppler_gym.rllib import Env


@pytest.mark.parametrize("mode", ["sequential", "joint", "place", "refine", "oneshot"])
def test_observations_are_the_mask_and_the_flat_arrays(mode):
    env = Env({"task": "chainmm@p100x4", "mode": mode})
    flat = dg.AssignEnv("chainmm@p100x4", mode=mode, flat=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*is different from the unwrapped version")
        check_env(env, skip_render_check=True)
    dg.check_env(env)
    assert env.observation_space["observations"] == flat.observation_space
    assert env.action_space == flat.action_space
    observation, _ = env.reset(seed=3)
    want, info = flat.reset(seed=3)
    over = False
    while not over:
        assert env.observation_space.contains(observation)
        np.testing.assert_array_equal(observation["observations"], want)
        np.testing.assert_array_equal(observation["action_mask"], info["action_mask"])
        action = flat.action_space.sample(dg.sample_mask(flat))
        observation, reward, over, _, _ = env.step(action)
        want, other_reward, _, _, info = flat.step(action)
        assert reward == other_reward
    np.testing.assert_array_equal(observation["action_mask"], info["action_mask"])


def test_unknown_options_are_refused():
    with pytest.raises(TypeError, match="moed"):
        Env({"task": "chainmm@p100x4", "moed": "place"})
