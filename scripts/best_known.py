#!/usr/bin/env python3
"""Finds better assignments of the registered tasks and keeps them in datasets/best_known.

Each round runs one agent with one seed on every task. What it finds is written only where it is
better than what is there, so that the collection never gets worse. Rows of leaderboard/results
count as found, too.

    scripts/best_known.py --minutes 30 build/release/bin/doppler-gym
    scripts/best_known.py --agent rule-search --evaluations 9000 build/release/bin/doppler-gym
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "datasets" / "best_known"
PLAN = [
    ("rule-search", 1_000),
    ("annealing(moves=all)", 20_000),
    ("rule-search", 10_000),
    ("annealing", 100_000),
    ("rule-search", 30_000),
]


def path_of(task: str) -> Path:
    return FOLDER / (re.sub(r"[^a-z0-9-]", ".", task) + ".json")


def keep_if_better(entry: dict[str, Any]) -> bool:
    """Writes the entry if its task has none, or a worse one, or one of another version."""
    path = path_of(entry["task"])
    if path.exists():
        known = json.loads(path.read_text())
        same_task = known["task_hash"] == entry["task_hash"]
        if same_task and known["makespan"] <= entry["makespan"]:
            return False
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(entry) + "\n")
    temporary.replace(path)
    return True


def keep_row(path: Path) -> bool:
    """Keeps what a result row found, unless its engine had other settings than the task says."""
    row = json.loads(path.read_text())
    if row.get("settings") or not isinstance(row["makespan"], float):
        return False
    names = ("task", "task_hash", "makespan", "agent", "seed", "max_evaluations", "code_version")
    entry = {"format": "doppler-best-known", "version": 1}
    entry |= {name: row[name] for name in names} | {"assignment": row["assignment"]}
    return keep_if_better(entry)


def search(command: str, task: str, agent: str, evaluations: int, seed: int) -> bool:
    """One run; whether it found something better."""
    with tempfile.TemporaryDirectory() as folder:
        line = [command, "results", "run", "--tasks", task, "--agents", agent, "--rows", folder]
        line += ["--evaluations", str(evaluations), "--seeds", "1", "--first-seed", str(seed)]
        subprocess.run(line, check=True, capture_output=True)
        return any(keep_row(path) for path in Path(folder).glob("*.json"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", help="doppler-gym")
    parser.add_argument("--minutes", type=float, default=30.0, help="stop after so many")
    parser.add_argument("--agent", help="one round of this agent alone")
    parser.add_argument("--evaluations", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    for path in sorted(ROOT.glob("leaderboard/results/*/rows/*.json")):
        keep_row(path)
    listing = subprocess.run(
        [arguments.command, "tasks", "--json"], check=True, capture_output=True, text=True
    )
    tasks = [task["name"] for task in json.loads(listing.stdout)["tasks"]]
    rounds = [(arguments.agent, arguments.evaluations, arguments.seed)]
    if arguments.agent is None:
        rounds = [(agent, n, seed) for seed in range(100) for agent, n in PLAN]
    end = time.monotonic() + 60 * arguments.minutes
    for agent, evaluations, seed in rounds:
        for task in tasks:
            if time.monotonic() > end:
                return
            if search(arguments.command, task, agent, evaluations, seed):
                print(
                    f"{task}: better by {agent}, {evaluations} evaluations, seed {seed}", flush=True
                )


if __name__ == "__main__":
    main()
