"""Engines: real executions from Python."""

import pickle

import numpy as np
import pytest

import doppler_gym as dg

SMALL = "chainmm(n=32,shards=2)@cpu2"


def test_a_real_execution_has_the_records_of_a_simulated_one():
    task = dg.task(SMALL)
    assignment = np.arange(task.graph.n_nodes) % 2
    real = dg.Engine("cpu(repeats=3)").run(task, assignment)
    simulated = task.simulate(assignment)
    np.testing.assert_array_equal(real.devices, assignment)
    assert real.bytes_moved == simulated.bytes_moved
    assert real.bytes_local == simulated.bytes_local
    assert real.starts.shape == real.ends.shape == (task.graph.n_nodes,)
    assert (real.ready <= real.starts).all()
    assert (real.starts <= real.ends).all()
    assert len(real.transfers) == len(simulated.transfers)
    assert real.makespans.shape == (3,)
    assert real.makespan == np.sort(real.makespans)[1] == real.ends.max()
    assert simulated.makespans.shape == (0,)
    assert real.clock_error == 0
    assert pickle.loads(pickle.dumps(real)) == real


def test_engines_are_named_and_survive_pickling():
    engine = dg.Engine("cpu( repeats = 2 )")
    assert engine.name == "cpu(repeats=2)"
    assert repr(engine) == "<engine cpu(repeats=2)>"
    assert pickle.loads(pickle.dumps(engine)).name == engine.name
    task = dg.task(SMALL)
    everywhere = np.zeros(task.graph.n_nodes, int)
    assert dg.Engine("simulator").run(task, everywhere) == task.simulate(everywhere)
    with pytest.raises(dg.UsageError, match="cpu"):
        dg.Engine("cpv")
    published = dg.task("published/chainmm")
    with pytest.raises(dg.InvalidError, match="attributes"):
        engine.run(published, np.zeros(published.graph.n_nodes, int))
    with pytest.raises(dg.DopplerError):
        engine.run(task, everywhere + 2)


def test_an_environment_measures_on_a_real_engine():
    env = dg.AssignEnv(SMALL, mode="oneshot", engine="cpu(repeats=1)")
    env.reset(seed=0)
    _, reward, terminated, _, info = env.step(np.zeros(env.action_space.shape, int))
    assert terminated
    assert info["makespan"] > 0
    assert reward == pytest.approx(-info["makespan"] / env.task.time_scale)

    envs = dg.AssignVectorEnv(4, SMALL, mode="oneshot", engine="cpu(repeats=1)")
    envs.reset(seed=0)
    shape = envs.action_space.shape
    _, rewards, terminated, _, _ = envs.step(np.zeros(shape, int))
    assert terminated.all()
    assert (rewards < 0).all()
