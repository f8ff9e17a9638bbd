"""What each part of DOPPLER is worth, on ffnn."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from common import Mean, Run, markdown, read_metrics, write_table

TASK = "ffnn@p100x4"
# What stage III learns on: a system whose links and first device are slower than their cost model.
SYSTEM = "simulator(bandwidth=0.25,slow_device=0,slowdown=2,noise=0.1)"
STAGES = ("1", "2", "3", "1,2", "1,3", "2,3", "1,2,3")
PRESETS = ("best", "paper")
POINTS = 8  # of a curve in the table


def make(run: Run) -> None:
    text, policies = policies_part(run)
    stage_text, stages = stages_part(run)
    passing_text, passing = passing_part(run)
    write_table(
        run,
        "ablations",
        text + stage_text + passing_text,
        {"task": TASK, "policies": policies, "stages": stages, "message_passing": passing},
    )


def budget(run: Run) -> int:
    return 100 if run.small else 10000


def policies_part(run: Run) -> tuple[str, Any]:
    """Both policies, and each alone."""
    agents = [
        f"{name}(preset=paper)" if preset == "paper" else name
        for preset in PRESETS
        for name in ("doppler", "doppler-sel", "doppler-plc")
    ]
    run.rows("ablation-policies", [TASK], agents, evaluations=budget(run))
    rows = run.read_rows("ablation-policies")
    values = {
        agent: Mean.of([row["makespan"] for row in rows if row["agent"] == agent])
        for agent in agents
    }
    lines = [[agent, mean.text(1e-3)] for agent, mean in values.items()]
    text = (
        f"Task {TASK}; mean ± 95 % interval over {run.seeds} seeds, in ms.\n\n"
        f"## Policies, {budget(run)} evaluations\n\n" + markdown(["agent", "makespan"], lines)
    )
    return text, {agent: mean.json() for agent, mean in values.items()}


def stages_part(run: Run) -> tuple[str, Any]:
    """Every combination of stages, measured on the system that stage III learns on."""
    executions = 200 if run.small else 500
    jobs = [
        (preset, stages, seed)
        for preset in PRESETS
        for stages in STAGES
        for seed in range(run.seeds)
    ]

    def train(preset: str, stages: str, seed: int) -> Path:
        agent = "doppler" if preset == "best" else "doppler(preset=paper)"
        if preset == "best" and "1" in stages:
            agent = "doppler(teacher=critical-path)"
        if preset == "paper" and "2" not in stages:  # as much of stage I as with stage II
            episodes = min(2000, budget(run) // 4)
            agent = f"doppler(preset=paper,imitation_episodes={episodes})"
        return run.train(
            f"ablation-stages/{preset}-{stages.replace(',', '')}-{seed}",
            *("--agent", agent, "--task", TASK, "--stages", stages, "--seed", seed),
            *("--evaluations", budget(run), "--engine", SYSTEM, "--executions", executions),
        )

    folders = run.side_by_side(jobs, train)
    values: dict[str, Any] = {}
    for (preset, stages, _), folder in zip(jobs, folders, strict=True):
        entry = values.setdefault(f"{preset} {stages}", {"nominal": [], "system": [], "curves": []})
        assignment = folder / "best_assignment.json"
        entry["nominal"].append(
            run.call_json("simulate", "--task", TASK, "--assignment", assignment)["makespan"]
        )
        entry["system"].append(
            run.call_json(
                *("execute", "--engine", SYSTEM.replace(",noise=0.1", "")),
                *("--task", TASK, "--assignment", assignment),
            )["makespan"]
        )
        entry["curves"].append(curve_of(folder))
    lines = [
        [name, *(Mean.of(entry[key]).text(1e-3) for key in ("nominal", "system"))]
        for name, entry in values.items()
    ]
    text = (
        f"\n## Stages\n\nStage III: {executions} executions on `{SYSTEM}`. The last column is the "
        "makespan on that system without its noise.\n\n"
        + markdown(["preset and stages", "as simulated", "on the system"], lines)
        + "\n"
        + curves_text(values)
    )
    return text, values


def curve_of(folder: Path) -> list[list[float | None]]:
    """[evaluations + executions, best makespan so far, makespan of the last update]."""
    curve = []
    for line in read_metrics(folder):
        last = line["values"].get("mean_makespan", line["values"].get("makespan"))
        curve.append([line["evaluations"] + line["executions"], line["best_makespan"], last])
    return curve


def curves_text(values: dict[str, Any]) -> str:
    """Best so far of stage II at a few numbers of evaluations: mean over the seeds, and range."""
    names = [name for name in values if "2" in name.split()[1]]
    largest = max(curve[-1][0] for name in names for curve in values[name]["curves"])
    counts = [round(largest * 2.0 ** (i - POINTS + 1)) for i in range(POINTS)]
    lines = []
    for name in names:
        line = [name]
        for count in counts:
            best = [best_at(curve, count) for curve in values[name]["curves"]]
            found = [value for value in best if value is not None]
            line.append(
                f"{1e3 * math.fsum(found) / len(found):.2f} "
                f"({1e3 * min(found):.2f} to {1e3 * max(found):.2f})"
                if len(found) == len(best)
                else "-"
            )
        lines.append(line)
    text = "Best measured by stage II against evaluations: mean (range) over the seeds, in ms.\n\n"
    return text + markdown(["preset and stages", *map(str, counts)], lines)


def best_at(curve: list[list[float | None]], count: int) -> float | None:
    best = None
    for evaluations, value, _ in curve:
        if evaluations is not None and evaluations <= count and value is not None:
            best = value
    return best


def passing_part(run: Run) -> tuple[str, Any]:
    """Message passing once an episode against each step, at equal episodes and equal seconds."""
    episodes = 8 if run.small else 500
    agents = [
        agent.format(passing=passing)
        for agent in (
            "doppler(preset=paper,message_passing={passing})",
            "placeto(preset=one-pass,message_passing={passing})",
            "joint(message_passing={passing})",
        )
        for passing in ("episode", "step")
    ]
    run.rows("ablation-passing", [TASK], agents, evaluations=episodes)
    rows = run.read_rows("ablation-passing")
    seconds = {}
    values: dict[str, Any] = {}
    lines = []
    for agent in agents:
        own = [row for row in rows if row["agent"] == agent]
        seconds[agent] = Mean.of([row["seconds"] for row in own])
        values[agent] = {
            "seconds": seconds[agent].json(),
            "makespan": Mean.of([row["makespan"] for row in own]).json(),
        }
    for once, each in zip(agents[::2], agents[1::2], strict=True):
        ratio = seconds[each].mean / seconds[once].mean
        # What the cheaper one reaches with the episodes that the dearer one's seconds pay for.
        folder = "ablation-passing-seconds"
        run.rows(folder, [TASK], [once], evaluations=max(episodes, round(episodes * ratio)))
        equal = [row["makespan"] for row in run.read_rows(folder) if row["agent"] == once]
        values[once]["makespan_at_equal_seconds"] = Mean.of(equal).json()
        lines.append(
            [
                once.split("(")[0] + (" (preset=paper)" if "paper" in once else ""),
                seconds[once].text(),
                seconds[each].text(),
                f"{ratio:.1f}",
                Mean.of(equal).text(1e-3),
                f"{values[each]['makespan']['mean'] * 1e3:.3f}",
            ]
        )
    text = (
        f"\n## Message passing\n\nSeconds of {episodes} evaluations; then the makespan in ms after "
        "as many seconds as message passing at each step took.\n\n"
        + markdown(
            ["agent", "once, s", "each step, s", "ratio", "once, ms", "each step, ms"], lines
        )
    )
    return text, values
