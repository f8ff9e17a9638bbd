"""TensorBoard for training runs (needs ``tensorboard``; the extra of that name installs it)."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorboard.summary import Writer

from ._errors import UsageError
from ._training import TrainProgress, read_metrics

_NUMBERS = ("stage", "episodes", "evaluations", "best_makespan", "seconds")


class TensorBoard:
    """A callback for ``train`` that writes each update.

    The tags are stage, episodes, evaluations, best_makespan and seconds, and values/NAME for what
    the agent tells; steps are updates. What is not finite is left out.

    >>> import doppler_gym as dg
    >>> from doppler_gym.tensorboard import TensorBoard
    >>> with TensorBoard("logs") as board:  # doctest: +SKIP
    ...     dg.train("doppler", "ffnn@p100x4", out="run", callbacks=[board])

    Args:
        folder: for the event files; ``tensorboard --logdir`` shows it.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._writer = Writer(os.fspath(folder))

    def __call__(self, progress: TrainProgress) -> None:
        numbers = {name: getattr(progress, name) for name in _NUMBERS}
        _write(self._writer, progress.updates, {**numbers, "values": progress.values}, None)
        self._writer.flush()

    def close(self) -> None:
        """Ends the file; nothing can be written after it."""
        self._writer.close()

    def __enter__(self) -> TensorBoard:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def write_events(run: str | os.PathLike[str], folder: str | os.PathLike[str] | None = None) -> Path:
    """Writes the metrics of a training run, under way or not, as TensorBoard's events.

    Args:
        run: the folder of the run.
        folder: a new or empty one for the event files; default ``tensorboard`` in the run's.

    Returns:
        the folder of the event files.

    Raises:
        UsageError: the folder holds something.
        RunError: there are no metrics.
    """
    lines = read_metrics(run)
    target = Path(run, "tensorboard") if folder is None else Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target} is not empty; name a new folder, or remove it first")
    # When the run was where, told from when its file was last written.
    began = Path(run, "metrics.jsonl").stat().st_mtime - (lines[-1]["seconds"] if lines else 0)
    writer = Writer(os.fspath(target))
    for line in lines:
        _write(writer, line["update"], line, began + line["seconds"])
    writer.close()
    return target


def _write(writer: Any, step: int, line: Mapping[str, Any], time: float | None) -> None:
    tagged = {name: line[name] for name in _NUMBERS}
    tagged.update({f"values/{name}": value for name, value in line["values"].items()})
    for tag, value in tagged.items():
        if value is not None and math.isfinite(value):
            writer.add_scalar(tag, value, step, wall_time=time)
