"""The settings that were tried for each agent that learns by REINFORCE: the same for each."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from common import Run, markdown, with_setting, write_table, write_whole

TASKS = ("ffnn@p100x4", "llama-layer@p100x4")
AGENTS = ("placeto(preset=one-pass)", "gdp", "joint", "doppler(preset=paper)", "placeto")
# The learning rate is of stage II. The episodes of stage I are those of a run of 8,000 evaluations;
# a shorter run has as large a share of them.
SETTINGS = [
    {"learning_rate": rate, "imitation_episodes": episodes}
    for rate in ("1e-2", "1e-3", "1e-4")
    for episodes in ("2000", "20000")
]
FIRST_SEED = 100  # the other tables' seeds begin with 0
EVALUATIONS = {True: 100, False: 10000}


def make(run: Run) -> None:
    budget = EVALUATIONS[run.small]
    n_seeds = 1 if run.small else run.seeds
    seeds = range(FIRST_SEED, FIRST_SEED + n_seeds)
    jobs = [
        (run, with_setting(agent, setting), task, seed, budget)
        for agent in AGENTS
        for setting in SETTINGS
        for task in TASKS
        for seed in seeds
    ]
    makespans = dict(zip((job[1:4] for job in jobs), run.side_by_side(jobs, one), strict=True))
    values: dict[str, Any] = {}
    lines = []
    for agent in AGENTS:
        means = []
        for setting in SETTINGS:
            named = with_setting(agent, setting)
            logarithms = [math.log(makespans[named, t, s]) for t in TASKS for s in seeds]
            means.append(math.exp(math.fsum(logarithms) / len(logarithms)))
        best = SETTINGS[means.index(min(means))]
        values[agent] = {"geometric_means": means, "best": best}
        lines.append([agent, *(f"{1e3 * mean:.2f}" for mean in means), text_of(best)])
    text = (
        f"Geometric mean of the makespans in ms over {', '.join(TASKS)} (seeds from "
        f"{FIRST_SEED} on, which no other table uses: {n_seeds}), {budget} evaluations each, by "
        "learning rate of stage II / episodes of stage I (which take no evaluations) for each "
        "8,000 of stage II. `doppler` (preset best) has neither, and no setting of it was tried "
        "here.\n\n"
    )
    titles = ["agent", *map(text_of, SETTINGS), "best"]
    content = {"settings": SETTINGS, "agents": values}
    write_table(run, "tuning", text + markdown(titles, lines), content)


def text_of(setting: Mapping[str, str]) -> str:
    return " / ".join(setting.values())


def tuned(run: Run) -> dict[str, dict[str, str]]:
    """The best setting of each agent that was tuned; the table is made if it is not there."""
    place = run.out / "tuning.json"
    if not place.exists():
        make(run)
    found = json.loads(place.read_text())["agents"]
    return {agent: values["best"] for agent, values in found.items()}


def one(run: Run, agent: str, task: str, seed: int, budget: int) -> float:
    name = "".join(c if c.isalnum() or c in "-." else "_" for c in f"{agent}-{task}-{seed}")
    place = run.work / "tuning" / name
    if not place.exists():
        answer = run.call_json(
            *("assign", "--agent", agent, "--task", task, "--seed", seed),
            *("--evaluations", budget),
        )
        write_whole(place, str(answer["makespan"]))
    return float(place.read_text())
