"""What the tables share: runs of the command, rows, means with intervals, Markdown."""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

Row = dict[str, Any]

# Of Student's distribution: 97.5 % quantiles by degrees of freedom.
_QUANTILES = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


def _quantile(freedom: int) -> float:
    """97.5 % of Student's distribution; beyond the table Hill's expansion, to 0.1 %."""
    if freedom <= len(_QUANTILES):
        return _QUANTILES[freedom - 1]
    z = 1.959964
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


@dataclass(frozen=True)
class Run:
    """How a table is made."""

    command: str
    work: Path
    """Training folders and the like: what a later call goes on from."""
    out: Path
    """Where the tables go, and the rows of the runs behind them, which can be replayed."""
    jobs: int
    small: bool
    seeds: int

    def call(self, *words: object) -> str:
        """The output of ``doppler-gym WORDS``; its message ends the program if it fails."""
        line = [self.command, *map(str, words)]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(line)}\nfailed: {done.stderr.strip()}")
        return done.stdout

    def call_json(self, *words: object) -> Any:
        return json.loads(self.call(*words, "--json"))

    def side_by_side(self, jobs: Iterable[tuple[Any, ...]], function: Any) -> list[Any]:
        """function(*job) of every job, at most ``self.jobs`` at a time, in their order."""
        with ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(lambda job: function(*job), jobs))

    def rows(
        self, folder: str, tasks: Sequence[str], agents: Sequence[str], **options: Any
    ) -> None:
        """``doppler-gym results run``: makes the rows that are missing."""
        words: list[object] = []
        for name, value in options.items():
            words += [f"--{name.replace('_', '-')}", value]
        place = self.out / "rows" / folder
        place.parent.mkdir(parents=True, exist_ok=True)
        self.call(
            *("results", "run", "--rows", place, "--jobs", self.jobs, "--seeds", self.seeds),
            *("--tasks", ",".join(tasks), "--agents", ",".join(agents), *words),
        )

    def read_rows(self, folder: str) -> list[Row]:
        paths = sorted((self.out / "rows" / folder).glob("*.json"))
        rows = [json.loads(path.read_text()) for path in paths]
        return [row for row in rows if row["seed"] < self.seeds]  # a call before may have had more

    def train(self, folder: str, *words: object) -> Path:
        """Trains in a folder, or goes on there, to the end of the run."""
        place = self.work / folder
        place.parent.mkdir(parents=True, exist_ok=True)
        if (place / "config.json").exists():
            self.call("train", "--resume", "--out", place)
        else:
            self.call("train", *words, "--out", place)
        return place


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@dataclass(frozen=True)
class Mean:
    """A mean with the half width of its 95 % interval (Student), of values that are finite."""

    mean: float
    half: float
    n: int

    @staticmethod
    def of(values: Sequence[float]) -> Mean:
        n = len(values)
        mean = math.fsum(values) / n
        if n < 2:
            return Mean(mean, math.nan, n)
        variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
        return Mean(mean, _quantile(n - 1) * math.sqrt(variance / n), n)

    def text(self, unit: float = 1, digits: int = 3) -> str:
        if math.isnan(self.half):
            return f"{self.mean / unit:.{digits}f}"
        return f"{self.mean / unit:.{digits}f} ± {self.half / unit:.{digits}f}"

    def json(self) -> dict[str, Any]:
        half = None if math.isnan(self.half) else self.half
        return {"mean": self.mean, "half": half, "n": self.n}


def with_setting(agent: str, setting: Mapping[str, object]) -> str:
    """The agent's name with these parameters besides those that it has."""
    if not setting:
        return agent
    given = ",".join(f"{name}={value}" for name, value in setting.items())
    return f"{agent[:-1]},{given})" if agent.endswith(")") else f"{agent}({given})"


def slope(points: Mapping[float, float]) -> float:
    """Of the least squares line through the logarithms of x -> y."""
    xs = [math.log(x) for x in points]
    ys = [math.log(y) for y in points.values()]
    x0, y0 = math.fsum(xs) / len(xs), math.fsum(ys) / len(ys)
    return math.fsum((x - x0) * (y - y0) for x, y in zip(xs, ys, strict=True)) / math.fsum(
        (x - x0) ** 2 for x in xs
    )


def markdown(titles: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    text = "| " + " | ".join(titles) + " |\n"
    text += "|" + "|".join("---" if i == 0 else "---:" for i in range(len(titles))) + "|\n"
    for line in lines:
        text += "| " + " | ".join(str(cell) for cell in line) + " |\n"
    return text


def write_whole(path: Path, text: str) -> None:
    """Under a temporary name, synced, renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part{os.getpid()}")
    with part.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def write_table(run: Run, name: str, text: str, values: Any) -> None:
    scope = "small" if run.small else "full"
    write_whole(run.out / f"{name}.md", text)
    content = {"format": "doppler-paper-table", "table": name, "scope": scope, **values}
    write_whole(run.out / f"{name}.json", json.dumps(content, indent=1) + "\n")
    print(text)
