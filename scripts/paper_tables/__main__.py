"""The tables of the DOPPLER paper, made again: python3 scripts/paper_tables TABLE [--small]."""

from __future__ import annotations

import argparse
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
    if not Path(given.command).exists():
        parser.error(f"{given.command} is missing; build it: scripts/quickstart.sh")
    if given.jobs < 1 or (given.seeds is not None and given.seeds < 1):
        parser.error("--jobs and --seeds are 1 or more")
    scope = "small" if given.small else "full"
    run = Run(
        command=given.command,
        work=given.work or ROOT / "build/paper-tables" / scope,
        out=given.out or ROOT / "leaderboard/results/paper" / scope,
        jobs=given.jobs,
        small=given.small,
        seeds=given.seeds or (3 if given.small else 5),
    )
    for name, make in TABLES.items():
        if given.table in (name, "all"):
            make(run)


if __name__ == "__main__":
    main()
