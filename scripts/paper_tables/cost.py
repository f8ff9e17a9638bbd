"""Seconds an episode, and how they grow with the graph."""

from __future__ import annotations

from typing import Any

from common import Run, markdown, read_metrics, slope, with_setting, write_table

AGENTS = ("doppler", "doppler(preset=paper)", "placeto(preset=one-pass)", "gdp")
LONGEST = 200.0  # seconds that the episodes of a size may take, by those of the size before
PUBLISHED = (
    *("published/chainmm", "published/ffnn", "published/llama-block", "published/llama-layer"),
    *("published/llama-block-8", "published/llama-layer-8"),
)


def make(run: Run) -> None:
    sizes = (100, 1000, 10000) if run.small else (100, 1000, 10000, 100000)
    values: dict[str, Any] = {}
    for agent in AGENTS:  # one after another: seconds are what is measured
        values[agent] = {task: one_cost(run, agent, task, 200) for task in PUBLISHED}
        values[agent] |= costs_by_size(run, agent, sizes)
    text = (
        "Seconds an episode on one core, training (one update an episode) / deciding alone; -: "
        f"not made, for by the size before it would take longer than {LONGEST:.0f} s.\n\n"
    )
    text += markdown(
        ["task", *AGENTS],
        [
            [task, *(cell(values[agent].get(task)) for agent in AGENTS)]
            for task in (*PUBLISHED, *map(grown, sizes))
        ],
    )
    slopes = {
        agent: {
            what: slope({n: found[what] for n in sizes if (found := values[agent].get(grown(n)))})
            for what in ("training", "deciding")
        }
        for agent in AGENTS
    }
    text += f"\nSlope of log seconds by log nodes, from {sizes[0]} nodes to the largest made:\n\n"
    text += markdown(
        ["agent", "training", "deciding"],
        [[agent, *(f"{slopes[agent][what]:.2f}" for what in slopes[agent])] for agent in AGENTS],
    )
    write_table(run, "cost", text, {"seconds": values, "slopes": slopes})


def grown(n: int) -> str:
    return f"random-dag(n={n},width=16)@p100x4"


def cell(cost: dict[str, float] | None) -> str:
    return f"{cost['training']:.2g} / {cost['deciding']:.2g}" if cost else "-"


def episodes_at(n: int) -> int:
    return max(3, min(100, 20000 // n))


def costs_by_size(run: Run, agent: str, sizes: tuple[int, ...]) -> dict[str, dict[str, float]]:
    costs: dict[str, dict[str, float]] = {}
    before = 0
    for n in sizes:
        if before:
            ratio = n / before
            linear = costs[grown(before)]["training"] * ratio * episodes_at(n)
            if linear * (ratio if "placeto" in agent else 1) > LONGEST:  # its steps see all nodes
                break
        costs[grown(n)] = one_cost(run, agent, grown(n), n)
        before = n
    return costs


def one_cost(run: Run, agent: str, task: str, n: int) -> dict[str, float]:
    episodes = episodes_at(n)
    if agent == "doppler":
        episodes *= 20
    place = "".join(c if c.isalnum() else "-" for c in f"{agent}-{task}")
    folder = run.train(
        f"cost/{place}",
        *("--agent", agent, "--task", task, "--stages", 2, "--evaluations", episodes),
    )
    lines = read_metrics(folder)
    first, last = lines[0], lines[-1]
    done = last["episodes"] - first["episodes"]
    training = (last["seconds"] - first["seconds"]) / done if done > 0 else last["seconds"]
    answer = run.call_json(
        *("assign", "--task", task, "--evaluations", 1),
        *("--agent", with_setting(agent, {"policy": folder / "policy.json"})),
    )
    return {"training": training, "deciding": answer["seconds"]}
