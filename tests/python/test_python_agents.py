"""Agents that are written in Python: played, registered, run by the command."""

import json
import pickle
import subprocess
import sys
import textwrap

import gymnasium as gym
import numpy as np
import pytest

import doppler_gym as dg
from conftest import draw_costs


class Earliest(dg.Agent):
    """Each node where it can start first: the critical-path heuristic."""

    environment = {"mode": "place"}  # noqa: RUF012
    deterministic = True

    def act(self, observation, info):
        starts = observation["device_features"][:, 4]
        return int(np.where(info["action_mask"] == 1, starts, np.inf).argmin())


class Guess(dg.Agent):
    """A random legal device."""

    environment = {"mode": "place"}  # noqa: RUF012

    def begin(self, env, seed):
        self.rng = np.random.default_rng(seed)

    def act(self, observation, info):
        return int(self.rng.choice(np.flatnonzero(info["action_mask"])))


@pytest.fixture
def task(rng):
    return dg.Task(dg.Graph.from_costs(*draw_costs(rng, 14)), dg.Cluster.uniform(3))


@pytest.fixture
def registered():
    """A name that no other test has; registries keep what they have been given."""
    registered.count = getattr(registered, "count", 0) + 1
    return f"test-agent-{registered.count}"


def test_an_agent_plays_an_episode(task, rng):
    # Times without ties, which float32 could break otherwise than float64.
    graph = dg.Graph.from_costs(rng.random(14), rng.random(14), task.graph.edges)
    task = dg.Task(graph, task.cluster)
    result = dg.run(Earliest(), task)
    assert result.makespan == task.simulate(result.assignment).makespan
    assert result.ratio_to_critical_path == 1
    assert (result.n_steps, result.evaluations) == (14, 1)
    assert result.episode_return == pytest.approx(-result.makespan / task.time_scale)


def test_any_object_with_act_is_an_agent_and_any_wrapper_its_environment(task):
    class Bare:
        def act(self, observation, info):
            return 1

    env = gym.wrappers.TransformReward(dg.AssignEnv(task, mode="place"), lambda reward: 2 * reward)
    result = dg.run(Bare(), env)
    assert result.assignment.tolist() == [1] * 14
    assert result.episode_return == pytest.approx(-2 * result.makespan / task.time_scale)
    assert dg.run(Bare(), "chainmm@p100x4", mode="place").n_steps == 76


def test_the_same_seed_gives_the_same_run(task):
    first, again, other = (dg.run(Guess(), task, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.assignment, again.assignment)
    assert not np.array_equal(first.assignment, other.assignment)


def test_what_is_no_agent_or_environment_is_refused(task):
    with pytest.raises(dg.UsageError, match="has no act"):
        dg.run(object(), task)
    with pytest.raises(dg.UsageError, match="is not an AssignEnv"):
        dg.run(Guess(), gym.make("CartPole-v1"))
    with pytest.raises(dg.UsageError, match="'mode' is for a task"):
        dg.run(Guess(), dg.AssignEnv(task), mode="place")
    with pytest.raises(NotImplementedError, match="act"):
        dg.run(dg.Agent(), task)

    class Stubborn(Guess):
        environment = {"mode": "sequential"}  # noqa: RUF012

        def act(self, observation, info):
            return int(np.flatnonzero(info["action_mask"] == 0)[0])

    with pytest.raises(dg.UsageError, match="cut off after 14 steps"):
        dg.run(Stubborn(), task)


def test_a_registered_agent_is_found_by_name_with_its_parameters(task, registered):
    @dg.register_agent(registered, source="a test")
    class Fixed(dg.Agent):
        """Everything on one device."""

        environment = {"mode": "place"}  # noqa: RUF012
        deterministic = True

        def __init__(self, device=2, scale=1.0, plan="x", loud=False):
            assert isinstance(scale, float)
            assert isinstance(loud, bool)
            assert plan == "x"
            self.device = device

        def act(self, observation, info):
            return self.device

    description = dg.agents()[registered]
    assert description.summary == "Everything on one device."
    assert (description.family, description.source) == ("python", "a test")
    assert [parameter.name for parameter in description.parameters] == [
        "device",
        "scale",
        "plan",
        "loud",
    ]
    assert dg.agent(registered).assign(task).assignment.tolist() == [2] * 14
    agent = dg.agent(f"{registered}(device=1, loud=true)")
    result = agent.assign(task)
    assert result.assignment.tolist() == [1] * 14
    assert result.makespan == task.simulate(result.assignment).makespan
    assert pickle.loads(pickle.dumps(agent)).assign(task).makespan == result.makespan
    assert Fixed(device=0).device == 0
    with pytest.raises(dg.UsageError, match="device"):
        dg.agent(registered, devices=1)
    with pytest.raises(dg.UsageError, match="registered already"):
        dg.register_agent(registered)(Fixed)


def test_more_evaluations_never_give_a_worse_assignment(task, registered):
    seeds = []

    @dg.register_agent(registered)
    class Noted(Guess):
        def begin(self, env, seed):
            seeds.append(seed)
            super().begin(env, seed)

    agent = dg.agent(registered)
    makespans = [agent.assign(task, seed=3, evaluations=n).makespan for n in (1, 4, 16)]
    assert makespans == sorted(makespans, reverse=True)
    assert agent.assign(task, seed=3, evaluations=16).evaluations == 16
    one, four, sixteen, again = seeds[:1], seeds[1:5], seeds[5:21], seeds[21:]
    assert one == [3]
    assert four == sixteen[:4]
    assert sixteen == again
    runs = [dg.run(Guess(), task, seed=seed).makespan for seed in sixteen]
    assert makespans[-1] == min(runs)
    seeds.clear()
    agent.assign(task, seed=4, evaluations=16)
    assert not set(seeds) & set(sixteen)


def test_what_an_agent_raises_reaches_the_caller(task, registered):
    @dg.register_agent(registered)
    class Forgetful(Guess):
        plan = None

        def act(self, observation, info):
            if self.plan is None:
                raise KeyError("no plan")
            return super().act(observation, info)

    with pytest.raises(dg.RunError, match=r"failed.*KeyError: 'no plan'"):
        dg.agent(registered).assign(task)
    Forgetful.plan = "any"
    dg.agent(registered).assign(task)


def test_what_cannot_be_registered_is_refused(registered):
    with pytest.raises(dg.UsageError, match="two words"):
        dg.register_agent("two words")(Guess)
    with pytest.raises(dg.UsageError, match=r"'depth'.*needs a default"):
        dg.register_agent(registered)(lambda depth: Guess())
    made = [3, Guess()]
    dg.register_agent(registered)(lambda: made.pop(0) if len(made) > 1 else made[0])
    with pytest.raises(dg.UsageError, match="has no act"):
        dg.agent(registered)


def test_agents_of_installed_packages_are_commands_agents_too(tmp_path):
    (tmp_path / "other_package.py").write_text(
        textwrap.dedent(
            """
            import doppler_gym as dg

            class Last(dg.Agent):
                environment = {"mode": "place"}
                deterministic = True
                def act(self, observation, info):
                    return int(info["action_mask"].nonzero()[0][-1])
            """
        )
    )
    folder = tmp_path / "other_package-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: other-package\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(
        "[doppler_gym.agents]\nlast-device = other_package:Last\n"
    )
    program = (
        "import sys; sys.path.insert(0, sys.argv.pop(1));"
        "from doppler_gym._command import main; sys.exit(main())"
    )
    answer = subprocess.run(
        [
            sys.executable,
            *("-c", program, str(tmp_path)),
            *("assign", "--task", "chainmm@p100x4", "--agent", "last-device", "--json"),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""
    document = json.loads(answer.stdout)
    makespan = dg.task("chainmm@p100x4").simulate(np.full(76, 3)).makespan
    assert makespan == pytest.approx(document["makespan"])
