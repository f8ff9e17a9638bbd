"""Every agent on every task at equal evaluations, without noise and with."""

from __future__ import annotations

import json
import math
from typing import Any

from common import ROOT, Mean, Row, Run, markdown, with_setting, write_table, write_whole
from tuning import tuned

FULL_TASKS = (
    *("published/chainmm", "published/ffnn", "published/llama-block", "published/llama-layer"),
    *("chainmm@p100x4", "ffnn@p100x4", "llama-block@p100x4", "llama-layer@p100x4"),
    *("chainmm@v100x8", "ffnn@v100x8", "llama-block@v100x8", "llama-layer@v100x8"),
)
SMALL_TASKS = ("published/ffnn", "published/llama-layer", "ffnn@p100x4", "llama-layer@p100x4")
LEARNED = (
    *("placeto", "placeto(preset=one-pass)", "gdp"),
    *("joint", "doppler(preset=paper)"),
)
ABLATIONS = ("doppler-sel", "doppler-plc")
AGENTS = (
    *("critical-path", *LEARNED[:3], "enumerative", *LEARNED[3:], "doppler", *ABLATIONS),
    *("partner-list", "annealing", "rule-search"),
)
LUCK: dict[str, dict[str, Any]] = {"none": {}, "noise": {"noise": 0.1, "choice": "random"}}
LUCKS = 20  # executions of one assignment where there is luck; none of them has the row's own
EVALUATIONS = {True: 100, False: 10000}


def make(run: Run) -> None:
    tasks = SMALL_TASKS if run.small else FULL_TASKS
    budget = EVALUATIONS[run.small]
    settings = tuned(run)
    named = [with_setting(agent, settings.get(agent, {})) for agent in AGENTS]
    tables: dict[str, Any] = {}
    text = (
        "Makespans in ms (published graphs: raw costs / 1e10), mean ± 95 % interval (Student) over "
        f"{run.seeds} seeds. Every agent that learns or searches had {budget} evaluations of the "
        "simulator, a heuristic one. Agents that learn began from nothing on each task. Settings, "
        f"by the table of tuning: {', '.join(name for name in named if name not in AGENTS)}.\n"
    )
    for luck, options in LUCK.items():
        folder = f"main-{luck}"
        run.rows(folder, tasks, named, evaluations=budget, **options)
        rows = [{**row, "agent": agent_of(row, settings)} for row in run.read_rows(folder)]
        if options:
            means = run.side_by_side([(run, folder, row, options) for row in rows], mean_of_lucks)
            rows = [{**row, "makespan": mean} for row, mean in zip(rows, means, strict=True)]
        tables[luck], part = one_table(tasks, by_task_and_agent(rows, budget), luck)
        text += part
    write_table(run, "main", text, {"evaluations": budget, "seeds": run.seeds, "luck": tables})


def agent_of(row: Row, settings: dict[str, dict[str, str]]) -> str:
    """The name in the table; of a row that an earlier tuning led to, empty."""
    name = row["agent"].partition("(")[0]
    preset = f"{name}(preset={row['parameters'].get('preset')})"
    agent = preset if preset in AGENTS else name
    for parameter, value in settings.get(agent, {}).items():
        if float(row["parameters"][parameter]) != float(value):
            return ""
    return agent


def by_task_and_agent(rows: list[Row], budget: int) -> dict[tuple[str, str], list[Row]]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["max_evaluations"] in (1, budget):
            groups.setdefault((row["task"], row["agent"]), []).append(row)
    return groups


def mean_of_lucks(run: Run, folder: str, row: Row, options: dict[str, Any]) -> float:
    """The mean makespan of a row's assignment over lucks that its agent has not seen."""
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    place = run.work / f"{folder}-lucks" / f"{row['task_hash']}-{row['assignment_hash']}.json"
    if not place.exists():
        assignment = place.with_suffix(".assignment")
        write_whole(assignment, json.dumps({"assignment": row["assignment"]}))
        makespans = [
            run.call_json(
                *("simulate", "--task", row["task"], "--assignment", assignment),
                *("--seed", 1_000_000 + luck, *words),
            )["makespan"]
            for luck in range(LUCKS)
        ]
        assignment.unlink()
        write_whole(place, json.dumps(makespans))
    makespans = json.loads(place.read_text())
    return math.inf if None in makespans else math.fsum(makespans) / LUCKS


def makespan_of(row: Row) -> float:
    return math.inf if row["makespan"] == "out of memory" else float(row["makespan"])


def best_known(task: str) -> float:
    """The makespan without noise of the best assignment that the project knows."""
    name = task.replace("/", ".").replace("@", ".") + ".json"
    return float(json.loads((ROOT / "datasets/best_known" / name).read_text())["makespan"])


def one_table(
    tasks: tuple[str, ...], groups: dict[tuple[str, str], list[Row]], luck: str
) -> tuple[dict[str, Any], str]:
    means: dict[tuple[str, str], Mean] = {}
    lines: list[list[str]] = [[agent] for agent in AGENTS]
    best_line, known_line = ["best of any run here"], ["best known"]
    bound_line = ["lower bound"]
    reductions: list[list[str]] = []
    values: dict[str, Any] = {}
    for task in tasks:
        unit = 1e10 if task.startswith("published/") else 1e-3
        for agent, line in zip(AGENTS, lines, strict=True):
            found = [makespan_of(row) for row in groups[task, agent]]
            if not all(map(math.isfinite, found)):
                line.append("out of memory")
                continue
            means[task, agent] = Mean.of(found)
            line.append(means[task, agent].text(unit))
        best = min(makespan_of(row) for agent in AGENTS for row in groups[task, agent])
        bound = groups[task, AGENTS[0]][0]["lower_bound"]
        best_line.append(f"{best / unit:.3f}")
        known_line.append(f"{best_known(task) / unit:.3f}")
        bound_line.append(f"{bound / unit:.3f}")
        doppler = means[task, "doppler"].mean
        against = {
            "best learned baseline": min(
                (means[task, agent].mean for agent in LEARNED if (task, agent) in means),
                default=math.inf,
            ),
            "critical path": means[task, "critical-path"].mean,
            "enumerative": means[task, "enumerative"].mean,
        }
        reduction = {name: 1 - doppler / other for name, other in against.items()}
        reductions.append([task, *(f"{100 * share:.1f} %" for share in reduction.values())])
        values[task] = {
            "agents": {
                agent: means[task, agent].json() if (task, agent) in means else None
                for agent in AGENTS
            },
            "best": best,
            "lower_bound": bound,
            "reductions": reduction,
            "doppler": standing(task, means, bound),
        }
    titles = ["agent", *tasks]
    kind = "No noise"
    if luck != "none":
        kind = f"Noise 0.1, random choice (means over {LUCKS} lucks that the agent has not seen)"
    last_lines = [best_line, bound_line] if luck != "none" else [best_line, known_line, bound_line]
    text = f"\n## {kind}\n\n" + markdown(titles, [*lines, *last_lines])
    text += "\nReduction of the makespan by `doppler`, against\n\n"
    text += markdown(["task", "best learned baseline", "critical path", "enumerative"], reductions)
    text += "\n" + "".join(f"- {task}: {values[task]['doppler']}\n" for task in tasks)
    return values, text


def standing(task: str, means: dict[tuple[str, str], Mean], bound: float) -> str:
    """Where `doppler` stands on a task, in words."""
    own = means[task, "doppler"]
    others = {
        agent: mean for (of, agent), mean in means.items() if of == task and agent != "doppler"
    }
    name, other = min(others.items(), key=lambda item: item[1].mean)
    if own.mean <= bound * (1 + 1e-9):
        return "doppler is at the lower bound"
    if own.mean <= other.mean:
        half = [0 if math.isnan(mean.half) else mean.half for mean in (own, other)]
        apart = own.mean + half[0] < other.mean - half[1]
        return f"doppler is first, {'apart from' if apart else 'within the interval of'} {name}"
    return f"{name} is first, doppler {100 * (own.mean / other.mean - 1):.3f} % behind"
