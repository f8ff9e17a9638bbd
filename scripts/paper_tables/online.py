"""Agents on the real CPU engine, and how stage III adapts to a system that is not as told."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from common import ROOT, Run, markdown, read_metrics, write_table, write_whole

# A system whose links are four times and whose first device is two times slower than told.
SYSTEM = "simulator(bandwidth=0.25,slow_device=0,slowdown=2{noise})"
ADAPTS = ("ffnn", "llama-layer")
WORKLOADS = ("ffnn", "chainmm", "llama-block", "llama-layer")
DEVICES = (2, 4)
PLAIN = ("critical-path", "partner-list", "enumerative", "placeto", "gdp", "annealing")
TWO, THREE = "doppler, stages I and II", "doppler, stages I, II and III"


def make(run: Run) -> None:
    values: dict[str, Any] = {}
    text = (
        "Medians of interleaved repeats on the engine `cpu` with emulated links, in ms, with their "
        "95 % interval (order statistics). Costs are calibrated: the cluster by `calibrate`, the "
        "nodes by `profile`. Every agent had the same evaluations of the simulator on these costs; "
        "stage III had executions on the engine besides.\n"
    )
    for n_devices in DEVICES:
        cluster = calibrated(run, n_devices)
        for workload in WORKLOADS:
            task = f"{workload}@{cluster}"
            name = f"{workload} on {n_devices} devices"
            values[name] = one_task(run, task, f"online/{workload}-{n_devices}")
            best = min(entry["median"] for entry in values[name]["agents"].values())
            text += f"\n## {name}\n\n" + markdown(
                ["agent", "median", "interval", "over the best"],
                [
                    [
                        agent,
                        f"{1e3 * entry['median']:.2f}",
                        f"{1e3 * entry['low']:.2f} to {1e3 * entry['high']:.2f}",
                        f"{100 * (entry['median'] / best - 1):.1f} %",
                    ]
                    for agent, entry in values[name]["agents"].items()
                ],
            )
            stage = values[name]["stage III"]
            text += (
                f"\nStage III: {stage['executions']} executions, learning took "
                f"{100 * stage['learning_share']:.1f} % of their time, exploring cost "
                f"{100 * stage['regret_share']:.1f} % of it.\n"
            )
    adapting, part = adaptation(run)
    write_table(run, "online", text + part, {"tasks": values, "adaptation": adapting})


def adaptation(run: Run) -> tuple[dict[str, Any], str]:
    """Stage III on a second simulator that departs from the first, under noise."""
    cluster = slow_cluster(run)
    values: dict[str, Any] = {}
    lines = []
    for workload in ADAPTS:
        task, truth = f"{workload}@p100x4", f"{workload}@{cluster}"
        for seed in range(run.seeds):
            found = one_adaptation(run, task, truth, seed)
            values[f"{task}, seed {seed}"] = found
            gap = found["stage II"] - found["annealing"]
            lines.append(
                [
                    f"{task}, {seed}",
                    *(f"{1e3 * found[key]:.2f}" for key in ("stage II", "stage III", "annealing")),
                    f"{100 * (found['stage II'] - found['stage III']) / gap:.0f} %"
                    if gap > 0
                    else "none",
                    f"{100 * found['learning_share']:.1f} %",
                    f"{100 * found['regret_share']:.1f} %",
                ]
            )
    text = (
        f"\n## A system that is not as told\n\n`{SYSTEM.format(noise=',noise=0.1')}`, 500 "
        "executions after 1,000 evaluations of the simulator as told. Makespans in ms on that "
        "system without its noise; annealing knows the system and has 10,000 evaluations of it. "
        "Learning and regret as shares of the executions' time.\n\n"
    )
    titles = ["task, seed", "stage II", "stage III", "annealing", "gap closed", "learning"]
    return values, text + markdown([*titles, "regret"], lines)


def slow_cluster(run: Run) -> Path:
    """p100x4 as the system of the adaptation really is."""
    cluster = json.loads((ROOT / "datasets/clusters/p100x4.json").read_text())
    (device,) = cluster["devices"]
    slow = dict(device, count=1, flops={key: rate / 2 for key, rate in device["flops"].items()})
    slow["bandwidth"] /= 2
    slow["launch_overhead"] *= 2
    cluster["devices"] = [slow, dict(device, count=device["count"] - 1)]
    cluster["default_link"]["bandwidth"] /= 4
    del cluster["sources"]
    place = run.work / "online" / "slow.cluster.json"
    write_whole(place, json.dumps(cluster))
    return place


def one_adaptation(run: Run, task: str, truth: str, seed: int) -> dict[str, float]:
    folder = f"online/adapt-{task.replace('@', '_')}-{seed}"
    words = ("--agent", "doppler", "--task", task, "--evaluations", 1000, "--seed", seed)
    trained = {
        "stage II": run.train(f"{folder}-two", *words),
        "stage III": run.train(
            f"{folder}-three",
            *(*words, "--stages", "1,2,3", "--executions", 500),
            *("--engine", SYSTEM.format(noise=",noise=0.1")),
        ),
    }
    found = {
        name: run.call_json(
            *("execute", "--engine", SYSTEM.format(noise=""), "--task", task),
            *("--assignment", of / "best_assignment.json"),
        )["makespan"]
        for name, of in trained.items()
    }
    found["annealing"] = run.call_json(
        *("assign", "--agent", "annealing", "--task", truth, "--seed", seed),
        *("--evaluations", 10000),
    )["makespan"]
    last = read_metrics(trained["stage III"])[-1]
    done = last["values"]
    found["learning_share"] = done["learning_seconds"] / done["executing_seconds"]
    found["regret_share"] = done["regret"] / (last["executions"] * done["first_makespan"])
    return found


def calibrated(run: Run, n_devices: int) -> Path:
    place = run.work / "online" / f"cpu{n_devices}.cluster.json"
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        run.call("calibrate", "--engine", "cpu", "--devices", n_devices, "--out", place)
    return place


def one_task(run: Run, task: str, folder: str) -> dict[str, Any]:
    place = run.work / folder
    place.mkdir(parents=True, exist_ok=True)
    profile = place / "profile.json"
    if not profile.exists():
        run.call("profile", "--engine", "cpu", "--task", task, "--out", profile)
    problem = ("--task", task, "--profile", profile)
    budget = 500 if run.small else 10000
    executions = 60 if run.small else 500
    assignments: dict[str, Path] = {}
    for agent in PLAIN:
        assignments[agent] = place / f"{agent}.json"
        if not assignments[agent].exists():
            run.call(
                *("assign", *problem, "--agent", agent, "--evaluations", budget),
                *("--out", assignments[agent]),
            )
    trained = {
        name: run.train(
            f"{folder}/{kind}",
            *("--agent", "doppler", *problem, "--evaluations", budget, "--stages", stages),
            *("--engine", "cpu(repeats=1,warm_up=0)", "--executions", executions),
        )
        for name, kind, stages in ((TWO, "two", "1,2"), (THREE, "three", "1,2,3"))
    }
    for name, of in trained.items():
        assignments[name] = of / "best_assignment.json"
    repeats = interleaved(run, problem, assignments, place)
    last = read_metrics(trained[THREE])[-1]
    done = last["values"]
    return {
        "agents": {name: median_of(makespans) for name, makespans in repeats.items()},
        "stage III": {
            "executions": last["executions"],
            "learning_share": done["learning_seconds"] / done["executing_seconds"],
            "regret_share": done["regret"] / (last["executions"] * done["first_makespan"]),
            "noise": done["noise"],
            "model_error": done["model_error"],
        },
    }


def interleaved(
    run: Run, problem: tuple[object, ...], assignments: dict[str, Path], place: Path
) -> dict[str, list[float]]:
    """Rounds over all assignments, so that what the machine does meanwhile falls on all alike."""
    rounds = 7 if run.small else 31
    file = place / "repeats.json"
    repeats: dict[str, list[float]] = json.loads(file.read_text()) if file.exists() else {}
    for number in range(rounds):
        for name, assignment in assignments.items():
            done = repeats.setdefault(name, [])
            if len(done) > number:
                continue
            answer = run.call_json(
                *("execute", "--engine", "cpu(repeats=1)", *problem, "--assignment", assignment)
            )
            done.append(answer["makespan"])
            write_whole(file, json.dumps(repeats))
    return repeats


def median_of(values: list[float]) -> dict[str, Any]:
    """The median, and the order statistics that hold it with 95 % (where there are few: all)."""
    ordered = sorted(values)
    n = len(ordered)
    half = n // 2
    median = ordered[half] if n % 2 else (ordered[half - 1] + ordered[half]) / 2
    below = 0
    while 2 * binomial_tail(n, below) <= 0.05 and below < half:
        below += 1
    return {"median": median, "low": ordered[max(0, below - 1)], "high": ordered[-max(1, below)]}


def binomial_tail(n: int, k: int) -> float:
    """P(at most k of n fair coins)."""
    return math.fsum(math.comb(n, i) for i in range(k + 1)) / 2.0**n
