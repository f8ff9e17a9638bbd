"""Agents of one's own as the command takes them: by name, from a file or from a package."""

import functools
import json
import os
import pickle
import re
import shlex
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import doppler_gym as dg

TASK = "chainmm@p100x4"


def run(arguments, *, cwd, folders=()):
    """The command's process, with folders to import from."""
    folders = [*map(str, folders), os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))},
    )


COMMAND = ("-c", "import sys; from doppler_gym._command import main; sys.exit(main())")


@pytest.fixture
def installed(tmp_path):
    """Makes a distribution with entry points; returns the folder that it is installed in."""

    def install(source, **agents):
        package = tmp_path / "site"
        folder = package / "agents_of_others-1.0.dist-info"
        folder.mkdir(parents=True)
        (package / "agents_of_others.py").write_text(textwrap.dedent(source))
        (folder / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: agents-of-others\nVersion: 1.0\n"
        )
        lines = [f"{name.replace('_', '-')} = {value}" for name, value in agents.items()]
        (folder / "entry_points.txt").write_text("\n".join(["[doppler_gym.agents]", *lines]))
        return package

    return install


LAST = """
    import numpy as np
    import doppler_gym as dg

    @dg.register_agent("last-device")
    class Last(dg.Agent):
        environment = {"mode": "place"}
        deterministic = True
        def act(self, observation, info):
            return int(info["action_mask"].nonzero()[0][-1])

    class Guess:
        "Any object with act(); by default it selects a node, then places it."
        def begin(self, env, seed):
            self.rng = np.random.default_rng(seed)
        def act(self, observation, info):
            return int(self.rng.choice(info["action_mask"].nonzero()[0]))
"""


def test_evaluate_takes_agents_of_packages_on_several_threads(installed, tmp_path):
    package = installed(LAST, last_device="agents_of_others:Last", guess="agents_of_others:Guess")
    line = ["evaluate", "--task", TASK, "--agents", "guess,last-device,critical-path,guess"]
    line += ["--seeds", "6", "--evaluations", "1", "--json"]
    tables = []
    for jobs in ("1", "4"):
        answer = run([*COMMAND, *line, "--jobs", jobs], cwd=tmp_path, folders=[package])
        assert (answer.returncode, answer.stderr) == (0, "")
        rows = json.loads(answer.stdout)["rows"]
        assert [row["agent"] for row in rows] == [
            "guess",
            "last-device",
            "critical-path",
            "guess",
        ]
        tables.append([row["makespans"] for row in rows])
    assert tables[0] == tables[1]
    assert tables[0][0] == tables[0][3]
    assert len(set(tables[0][0])) == 6
    last = dg.task(TASK).simulate(np.full(76, 3)).makespan
    assert set(tables[0][1]) == {last}
    # One evaluation: the episode with this very seed.
    for seed in (0, 5):
        rng = np.random.default_rng(seed)
        env = dg.AssignEnv(TASK)
        _, info = env.reset(seed=seed)
        over = False
        while not over:
            action = int(rng.choice(info["action_mask"].nonzero()[0]))
            _, _, over, _, info = env.step(action)
        assert tables[0][0][seed] == info["makespan"]


def test_commands_that_look_at_one_assignment_take_them_too(installed, tmp_path):
    package = installed(LAST, last_device="agents_of_others:Last")
    for command in (["assign"], ["simulate"]):
        line = [*command, "--task", TASK, "--agent", "last-device", "--json"]
        answer = run([*COMMAND, *line], cwd=tmp_path, folders=[package])
        assert (answer.returncode, answer.stderr) == (0, "")
        last = dg.task(TASK).simulate(np.full(76, 3)).makespan
        assert json.loads(answer.stdout)["makespan"] == last
    listed = run([*COMMAND, "tasks", "--agents", "--json"], cwd=tmp_path, folders=[package])
    named = {agent["name"]: agent for agent in json.loads(listed.stdout)["agents"]}
    assert named["last-device"]["summary"] == "from agents_of_others:Last"


def test_a_package_is_loaded_when_its_agent_is_made(installed, tmp_path):
    package = installed("raise RuntimeError('not for nothing')", broken="agents_of_others:Any")
    fine = run([*COMMAND, "tasks", "--agents"], cwd=tmp_path, folders=[package])
    assert (fine.returncode, fine.stderr) == (0, "")
    line = ["assign", "--task", TASK, "--agent", "broken"]
    answer = run([*COMMAND, *line], cwd=tmp_path, folders=[package])
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "agent 'broken' cannot be made: RuntimeError: not for nothing" in answer.stderr
    assert "agents_of_others.py:1" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_names_that_are_taken_or_malformed_are_left_out_with_a_warning(installed, tmp_path):
    package = installed(LAST, heft="agents_of_others:Last", **{"a b": "agents_of_others:Last"})
    answer = run(["-W", "always", *COMMAND, "tasks", "--agents"], cwd=tmp_path, folders=[package])
    assert answer.returncode == 0
    assert "'heft' = 'agents_of_others:Last'" in answer.stderr
    assert "registered already" in answer.stderr
    assert "'a b'" in answer.stderr


FAULTS = """
    import doppler_gym as dg

    class Forgetful(dg.Agent):
        def act(self, observation, info):
            return {}["plan"]

    class Illegal(dg.Agent):
        environment = {"mode": "joint"}
        def act(self, observation, info):
            return int((info["action_mask"] == 0).nonzero()[0][0])

    class Absent(dg.Agent):
        environment = {"mode": "guess"}
        def act(self, observation, info):
            return 0

    class Many(dg.Agent):
        environment = {"mode": "refine"}
        def act(self, observation, info):
            return 0

    def nothing():
        return 3
"""


@pytest.mark.parametrize(
    ("agent", "exit_code", "words"),
    [
        ("forgetful", 1, ["failed on 'chainmm@p100x4'", "KeyError: 'plan'", "others.py:6"]),
        ("illegal", 1, ["failed on 'chainmm@p100x4'", "is not legal; legal: node * 4 + device"]),
        ("absent", 1, ["failed on", "guess", "sequential"]),
        ("many", 1, ["77 evaluations of 5 allowed"]),
        ("nothing", 2, ["agent 'nothing'", "3", "no act(observation, info)"]),
        ("nothing(depth=3)", 2, ["nothing", "depth"]),
        ("nobody", 2, ["unknown agent 'nobody'", "doppler_gym.agents"]),
    ],
)
def test_faults_of_an_agent_are_told_in_one_message(installed, tmp_path, agent, exit_code, words):
    package = installed(
        FAULTS,
        **{name: f"agents_of_others:{name.title()}" for name in ("forgetful", "illegal")},
        absent="agents_of_others:Absent",
        many="agents_of_others:Many",
        nothing="agents_of_others:nothing",
    )
    for command in (["assign"], ["evaluate", "--jobs", "4"]):
        line = [*command, "--task", TASK, "--agent", agent, "--evaluations", "5"]
        answer = run([*COMMAND, *line], cwd=tmp_path, folders=[package])
        assert (answer.returncode, answer.stdout) == (exit_code, "")
        assert answer.stderr.startswith("doppler-gym: ")
        assert answer.stderr.count("\n") == 1
        for word in words:
            assert word in answer.stderr


class Forgetful(dg.Agent):
    """Fails in Python."""

    def act(self, observation, info):
        raise LookupError("no plan")


class Impatient(dg.Agent):
    """As if Ctrl-C were pressed."""

    def act(self, observation, info):
        raise KeyboardInterrupt


def test_what_an_agent_raises_is_the_cause_of_the_error_in_python():
    dg.register_agent("own-forgetful")(Forgetful)
    dg.register_agent("own-impatient")(Impatient)
    agent = dg.agent("own-forgetful")
    for _ in range(2):
        with pytest.raises(dg.RunError, match="agent 'own-forgetful' failed on") as caught:
            agent.assign(dg.task(TASK))
        assert isinstance(caught.value.__cause__, LookupError)
        assert "test_own_agents.py" in str(caught.value)
    assert isinstance(pickle.loads(pickle.dumps(caught.value)), dg.RunError)
    with pytest.raises(KeyboardInterrupt):
        dg.agent("own-impatient").assign(dg.task(TASK))


def test_what_makes_an_agent_needs_no_name_of_its_own():
    dg.register_agent("own-partial")(functools.partial(Forgetful))
    with pytest.raises(dg.RunError, match="no plan"):
        dg.agent("own-partial").assign(dg.task(TASK))


def test_an_agent_of_python_serves_several_threads_in_turn():
    @dg.register_agent("own-first")
    class First(dg.Agent):
        environment = {"mode": "place"}  # noqa: RUF012
        busy = False

        def act(self, observation, info):
            assert not self.busy
            self.busy = True
            threading.Event().wait(1e-4)  # lets others run
            self.busy = False
            return 0

    agent = dg.agent("own-first")
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(agent.assign(dg.task(TASK))))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert len(results) == 4
    assert len({result.makespan for result in results}) == 1


def test_the_example_of_the_readme_is_a_command(root, tmp_path):
    text = (root / "README.md").read_text()
    section = text.split("## Your own agent", 1)[1].split("\n## ", 1)[0]
    (tmp_path / "mine.py").write_text(section.split("```python\n")[1].split("```")[0])
    shown = [row[4:] for row in section.splitlines() if row.startswith("    ")]
    line = next(row for row in shown if row.startswith("$ python mine.py "))
    table = shown[shown.index(line) + 1 :]
    answer = run(shlex.split(line)[2:], cwd=tmp_path)
    assert (answer.returncode, answer.stderr) == (0, "")

    def without_seconds(text):
        return [re.sub(r"\S+ (µs|ms|s)(?=\s+\d+$)", "", row).split() for row in text]

    assert len(table) == 4
    assert without_seconds(answer.stdout.splitlines()) == without_seconds(table)


def test_main_takes_arguments_and_returns_the_exit_code(tmp_path):
    program = (
        "import doppler_gym as dg;"
        "print(dg.main(['--version']), dg.main(['tasks', '--nonsense']), flush=True)"
    )
    answer = run(["-c", program], cwd=tmp_path)
    assert answer.stdout.splitlines()[-1] == "0 2"
    assert dg.__version__ in answer.stdout
