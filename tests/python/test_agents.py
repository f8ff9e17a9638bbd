"""Agents by name."""

import itertools
import pickle
import threading

import numpy as np
import pytest

import doppler_gym as dg
from conftest import draw_costs, make_agent_or_skip


@pytest.mark.parametrize("name", list(dg.agents()))
def test_every_agent_returns_what_the_simulator_confirms(name, rng):
    task = dg.Task(dg.Graph.from_costs(*draw_costs(rng, 15)), dg.Cluster.uniform(3))
    agent = make_agent_or_skip(name)
    result = agent.assign(task, seed=5, evaluations=20)
    assert result.assignment.shape == (15,)
    assert result.assignment.dtype == np.int32
    assert result.makespan == task.simulate(result.assignment).makespan
    assert 1 <= result.evaluations <= 20
    assert result.seconds >= 0
    again = dg.agent(name).assign(task, seed=5, evaluations=20)
    np.testing.assert_array_equal(again.assignment, result.assignment)
    same = pickle.loads(pickle.dumps(result))
    np.testing.assert_array_equal(same.assignment, result.assignment)
    assert (same.makespan, same.evaluations) == (result.makespan, result.evaluations)
    if dg.agents()[name].deterministic:
        other = agent.assign(task, seed=6, evaluations=20)
        np.testing.assert_array_equal(other.assignment, result.assignment)


def test_partner_list_reaches_the_published_makespans():
    want = {"chainmm": 1200.07, "ffnn": 56.698, "llama-block": 166.784, "llama-layer": 173.867}
    for name, value in want.items():
        result = dg.agent("partner-list").assign(dg.task(f"published/{name}"))
        assert result.makespan / 1e10 == pytest.approx(value, abs=6e-4)
        assert result.evaluations == 1


def test_heft_gives_the_schedule_of_its_paper(reference):
    example = reference("literature/topcuoglu2002.json")
    graph = dg.Graph.from_costs(example["compute"], None, np.array(example["edges"], float))
    task = dg.Task(graph, dg.Cluster.uniform(3), network="independent")
    result = dg.agent("heft").assign(task)
    assert result.makespan == 80
    np.testing.assert_array_equal(result.assignment, example["HEFT"]["assignment"])


@pytest.mark.parametrize("name", list(dg.agents()))
def test_no_agent_beats_exhaustive_search(name, rng):
    agent = make_agent_or_skip(name)
    task = dg.Task(dg.Graph.from_costs(*draw_costs(rng, 7)), dg.Cluster.uniform(3))
    every = np.array(list(itertools.product(range(3), repeat=7)))
    best = task.simulator().makespans(every).min()
    assert agent.assign(task, evaluations=50).makespan >= best


def test_parameters_may_be_keywords_or_part_of_the_name(diamond):
    task = dg.Task(diamond, dg.Cluster.uniform(3))
    for agent in (dg.agent("single-device", device=2), dg.agent("single-device(device=2)")):
        assert agent.assign(task).assignment.tolist() == [2] * 4
        assert agent.name == "single-device(device=2)"
        assert "single-device" in repr(agent)
        assert pickle.loads(pickle.dumps(agent)).assign(task).assignment.tolist() == [2] * 4


def test_threads_may_share_an_agent(rng):
    task = dg.Task(dg.Graph.from_costs(*draw_costs(rng, 40)), dg.Cluster.uniform(4))
    agent = dg.agent("random")
    want = [agent.assign(task, seed=s).makespan for s in range(8)]
    got = [None] * 8

    def work(seed):
        got[seed] = agent.assign(task, seed=seed).makespan

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == want


def test_assignments_outlive_their_result(diamond):
    task = dg.Task(diamond, dg.Cluster.uniform(3))
    assignment = dg.agent("single-device", device=1).assign(task).assignment
    junk = [dg.agent("single-device", device=2).assign(task) for _ in range(50)]
    assert assignment.tolist() == [1] * 4
    assert len(junk) == 50
    with pytest.raises(ValueError, match="read-only"):
        assignment[0] = 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"evaluations": 0}, "evaluations: expected a whole number from 1"),
        ({"evaluations": 1.0}, "evaluations: expected a whole number, got 1.0"),
        ({"seed": -1}, "seed: expected"),
        ({"seconds": -1.0}, "seconds"),
        ({"seconds": float("nan")}, "seconds"),
        ({"seconds": "1"}, "seconds: expected a number"),
    ],
)
def test_limits_that_leave_nothing_are_refused(diamond, options, message):
    with pytest.raises(dg.UsageError, match=message):
        dg.agent("random").assign(dg.Task(diamond, dg.Cluster.uniform(2)), **options)


def test_unknown_agents_and_parameters_are_told_with_the_nearest(diamond):
    with pytest.raises(dg.UsageError, match="partner-list"):
        dg.agent("partnerlist")
    with pytest.raises(dg.UsageError, match="did you mean device"):
        dg.agent("single-device", devise=1)
    with pytest.raises(dg.UsageError, match="takes no parameters"):
        dg.agent("random", n=1)
    with pytest.raises(TypeError):
        dg.agent("random").assign(diamond)
