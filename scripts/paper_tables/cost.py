"""Seconds an episode, and how they grow with the graph."""

from __future__ import annotations

from typing import Any

from common import Run, markdown, read_metrics, slope, write_table

AGENTS = ("doppler", "doppler(preset=paper)", "placeto", "gdp")
PUBLISHED = (
    *("published/chainmm", "published/ffnn", "published/llama-block", "published/llama-layer"),
    *("published/llama-block-8", "published/llama-layer-8"),
)


def make(run: Run) -> None:
    sizes = (100, 1000, 10000) if run.small else (100, 1000, 10000, 100000)
    tasks = [*PUBLISHED, *(grown(n) for n in sizes)]
    values: dict[str, Any] = {}
    for agent in AGENTS:  # one after another: seconds are what is measured
        values[agent] = {task: one_cost(run, agent, task) for task in tasks}
    text = "Seconds an episode on one core, training (one update an episode) / deciding alone.\n\n"
    text += markdown(
        ["task", *AGENTS],
        [
            [
                task,
                *(
                    f"{values[agent][task]['training']:.2g} / {values[agent][task]['deciding']:.2g}"
                    for agent in AGENTS
                ),
            ]
            for task in tasks
        ],
    )
    slopes = {
        agent: {
            what: slope({n: values[agent][grown(n)][what] for n in sizes})
            for what in ("training", "deciding")
        }
        for agent in AGENTS
    }
    text += f"\nSlope of log seconds by log nodes, {sizes[0]} to {sizes[-1]} nodes:\n\n"
    text += markdown(
        ["agent", "training", "deciding"],
        [[agent, *(f"{slopes[agent][what]:.2f}" for what in slopes[agent])] for agent in AGENTS],
    )
    write_table(run, "cost", text, {"seconds": values, "slopes": slopes})


def grown(n: int) -> str:
    return f"random-dag(n={n},width=16)@p100x4"


def nodes_of(task: str) -> int:
    return int(task.split("n=")[1].split(",")[0]) if "n=" in task else 200


def one_cost(run: Run, agent: str, task: str) -> dict[str, float]:
    episodes = max(3, min(100, 20000 // nodes_of(task)))
    if agent == "doppler":
        episodes *= 20
    name = agent.split("(")[0] + ("-paper" if "paper" in agent else "")
    place = "".join(c if c.isalnum() else "-" for c in task)
    folder = run.train(
        f"cost/{name}-{place}",
        *("--agent", agent, "--task", task, "--stages", 2, "--evaluations", episodes),
    )
    lines = read_metrics(folder)
    first, last = lines[0], lines[-1]
    done = last["episodes"] - first["episodes"]
    training = (last["seconds"] - first["seconds"]) / done if done > 0 else last["seconds"]
    preset = "preset=paper," if "paper" in agent else ""
    answer = run.call_json(
        *("assign", "--task", task, "--evaluations", 1),
        *("--agent", f"{name.split('-')[0]}({preset}policy={folder}/policy.json)"),
    )
    return {"training": training, "deciding": answer["seconds"]}
