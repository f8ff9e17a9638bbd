"""What a policy that was learnt on one task is worth on another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from common import Mean, Run, markdown, write_table

PAIRS = (("ffnn@p100x4", "llama-layer@p100x4"), ("llama-layer@p100x4", "llama-layer@v100x8"))
AGENTS = ("doppler", "doppler(preset=paper)")


def make(run: Run) -> None:
    episodes = (0, 100, 200) if run.small else (0, 2000, 4000)
    whole = 400 if run.small else 8000
    values: dict[str, Any] = {}
    lines = []
    for agent in AGENTS:
        for source, target in PAIRS:
            entry = one_transfer(run, agent, source, target, episodes, whole)
            values[f"{agent}: {source} to {target}"] = entry
            lines.append(
                [
                    f"{agent}: {source} to {target}",
                    *(Mean.of(entry["makespan"][str(n)]).text(1e-3) for n in episodes),
                    Mean.of(entry["makespan"]["scratch"]).text(1e-3),
                    *(
                        f"{100 * Mean.of(entry['local'][key]).mean:.1f} %"
                        for key in (str(episodes[0]), str(episodes[-1]), "scratch")
                    ),
                ]
            )
    titles = [
        "agent: from to",
        *(f"{n} episodes" for n in episodes),
        f"{whole} from scratch",
        *(f"local, {n}" for n in (episodes[0], episodes[-1])),
        "local, scratch",
    ]
    text = (
        f"Makespans on the second task in ms, mean ± 95 % interval over {run.seeds} seeds, of a "
        f"policy that was trained with {whole} evaluations on the first and then with so many on "
        "the second (0: it decides as it is, once). `local`: the share of edge bytes that stay on "
        "a device.\n\n" + markdown(titles, lines)
    )
    write_table(run, "transfer", text, {"transfers": values})


def one_transfer(
    run: Run, agent: str, source: str, target: str, episodes: tuple[int, ...], whole: int
) -> dict[str, Any]:
    kind = "paper" if "paper" in agent else "best"

    def train(task: str, count: int, seed: int, begin: Path | None) -> Path:
        name = f"{kind}-{task.replace('@', '_')}-{count}-{seed}"
        words: list[object] = ["--agent", agent, "--task", task, "--seed", seed]
        words += ["--evaluations", max(count, 1)]
        if begin is not None:
            name += f"-from-{begin.name}"
            words += ["--init-from", begin, "--stages", 2]
        return run.train(f"transfer/{name}", *words)

    def one_seed(seed: int) -> dict[str, dict[str, float]]:
        first = train(source, whole, seed, None)
        assignments = {"scratch": train(target, whole, seed, None) / "best_assignment.json"}
        for count in episodes:
            if count > 0:
                trained = train(target, count, seed, first)
                assignments[str(count)] = trained / "best_assignment.json"
            else:
                assignments["0"] = decide(run, kind, first, target, seed)
        return {key: measure(run, target, file) for key, file in assignments.items()}

    answers = run.side_by_side([(seed,) for seed in range(run.seeds)], one_seed)
    return {
        what: {key: [answer[key][what] for answer in answers] for key in answers[0]}
        for what in ("makespan", "local")
    }


def decide(run: Run, kind: str, trained: Path, task: str, seed: int) -> Path:
    """The file of what a trained policy decides at once."""
    file = run.work / "transfer" / f"{trained.name}-at-once-{task.replace('@', '_')}.json"
    if not file.exists():
        preset = "preset=paper," if kind == "paper" else ""
        run.call(
            *("assign", "--task", task, "--seed", seed, "--evaluations", 1, "--out", file),
            *("--agent", f"doppler({preset}policy={trained}/policy.json)"),
        )
    return file


def measure(run: Run, task: str, assignment: Path) -> dict[str, float]:
    answer = run.call_json("simulate", "--task", task, "--assignment", assignment)
    moved, local = answer["bytes_moved"], answer["bytes_local"]
    whole = moved + local
    return {"makespan": answer["makespan"], "local": local / whole if whole > 0 else 1.0}
