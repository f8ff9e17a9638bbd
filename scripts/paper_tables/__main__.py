"""The tables of the DOPPLER paper, made again: python3 scripts/paper_tables TABLE [--small]."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import ablations
import cost
import main_table
import online
import transfer
import tuning
from common import ROOT, Run

TABLES = {
    "tuning": tuning.make,
    "main": main_table.make,
    "ablations": ablations.make,
    "transfer": transfer.make,
    "cost": cost.make,
    "online": online.make,
}


MOST_SEEDS = 1000


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/paper_tables",
        description="Makes a table of the DOPPLER paper again, as Markdown and JSON. What was made "
        "before is kept: a call that was broken off goes on when it is started again.",
    )
    parser.add_argument("table", choices=[*TABLES, "all"])
    parser.add_argument("--small", action="store_true", help="fewer tasks, runs and evaluations")
    parser.add_argument("--seeds", type=int, default=None, help="default: 5, with --small 3")
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side; default 2")
    parser.add_argument("--command", default=str(ROOT / "build/release/bin/doppler-gym"))
    parser.add_argument("--work", type=Path, default=None, help="default: build/paper-tables/SCOPE")
    parser.add_argument(
        "--out", type=Path, default=None, help="default: leaderboard/results/paper/SCOPE"
    )
    given = parser.parse_args()
    if not Path(given.command).is_file() or not os.access(given.command, os.X_OK):
        parser.error(f"{given.command} is no program; build it: scripts/quickstart.sh")
    if given.jobs < 1 or not (given.seeds is None or 1 <= given.seeds <= MOST_SEEDS):
        parser.error(f"--jobs is 1 or more, --seeds 1 to {MOST_SEEDS}")
    scope = "small" if given.small else "full"
    run = Run(
        command=given.command,
        work=given.work or ROOT / "build/paper-tables" / scope,
        out=given.out or ROOT / "leaderboard/results/paper" / scope,
        jobs=given.jobs,
        small=given.small,
        seeds=given.seeds or (3 if given.small else 5),
    )
    try:
        for place in (run.work, run.out):
            place.mkdir(parents=True, exist_ok=True)
        for name, make in TABLES.items():
            if given.table in (name, "all"):
                make(run)
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"{parser.prog}: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
