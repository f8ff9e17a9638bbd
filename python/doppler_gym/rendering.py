"""The schedule of an assignment as a Gantt chart: text, or an image."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core

_WIDTH = 96  # columns of the time axis, of a text

_GLYPHS = {  # 3 x 5 pixels, row by row from the top left, most significant bit first
    **dict(zip("0123456789", (
        0o75557, 0o26227, 0o71747, 0o71717, 0o55711, 0o74717, 0o74757, 0o71111, 0o75757, 0o75717,
    ), strict=True)),
    **dict(zip("abcdefghijklmnopqrstuvwxyz", (
        0o25755, 0o65656, 0o34443, 0o65556, 0o74647, 0o74644, 0o34553, 0o55755, 0o72227, 0o11152,
        0o55655, 0o44447, 0o57755, 0o65555, 0o25552, 0o65644, 0o25563, 0o65655, 0o34216, 0o72222,
        0o55557, 0o55552, 0o55775, 0o55255, 0o55222, 0o71247,
    ), strict=True)),
    **dict(zip(" .-+:()/@_", (
        0o00000, 0o00002, 0o00700, 0o02720, 0o02020, 0o12221, 0o42224, 0o11244, 0o75747, 0o00007,
    ), strict=True)),
}  # fmt: skip


@dataclass(frozen=True)
class Bar:
    """A node on its device, or a transfer on its way into a device."""

    row: int
    start: float  # seconds
    end: float
    critical: bool = False


@dataclass(frozen=True)
class Chart:
    """What there is to draw. Rows of ``nodes`` are slots of devices, of ``transfers`` devices."""

    title: str
    rows: list[tuple[str, int]]  # label and device of each row
    nodes: list[Bar] = field(default_factory=list)
    transfers: list[Bar] = field(default_factory=list)
    end: float = 0.0

    @classmethod
    def partial(
        cls,
        task: _core.Task,
        devices: NDArray[np.int32],
        starts: NDArray[np.float64],
        ends: NDArray[np.float64],
    ) -> Chart:
        """The nodes that are placed (device >= 0), without transfers."""
        rows = [(f"device {number}", number) for number in range(task.cluster.n_devices)]
        placed = np.flatnonzero(devices >= 0)
        end = float(ends[placed].max()) if len(placed) else 0.0
        title = f"{task.name}: {len(placed)} of {len(devices)} nodes placed, {end * 1e3:.6g} ms"
        bars = [Bar(int(devices[v]), float(starts[v]), float(ends[v])) for v in placed]
        return cls(title, rows, bars, [], end)

    @classmethod
    def of(cls, task: _core.Task, execution: _core.Execution) -> Chart:
        """A whole execution, its critical path marked."""
        nodes, transfers = critical_path(execution)
        first_row: list[int] = []
        rows: list[tuple[str, int]] = []
        for number, device in enumerate(task.cluster.devices):
            first_row.append(len(rows))
            name = f"device {number}"
            rows.append((name, number))
            rows += [(f"{name} slot {slot}", number) for slot in range(1, device.streams)]
        starts, ends = execution.starts, execution.ends
        bars = [
            Bar(first_row[device] + slot, float(starts[v]), float(ends[v]), v in nodes)
            for v, (device, slot) in enumerate(
                zip(execution.devices.tolist(), execution.slots.tolist(), strict=True)
            )
        ]
        arriving = [
            Bar(int(run["target"]), float(run["start"]), float(run["end"]), i in transfers)
            for i, run in enumerate(execution.transfers)
        ]
        end = max((bar.end for bar in bars), default=0.0)
        memory = ", out of memory" if execution.out_of_memory else ""
        title = f"{task.name}: {end * 1e3:.6g} ms, {len(arriving)} transfers{memory}"
        return cls(title, rows, bars, arriving, end)


def critical_path(execution: _core.Execution) -> tuple[set[int], set[int]]:
    """The nodes and transfers that the end of the execution has waited for, one after the other.

    From the node that ends last, back in time: what ended at the very instant at which it started.
    """
    starts, ends = execution.starts.tolist(), execution.ends.tolist()
    devices, runs = execution.devices.tolist(), execution.transfers
    nodes: set[int] = set()
    transfers: set[int] = set()
    if not ends:
        return nodes, transfers
    node_ends: dict[float, list[int]] = {}
    for v, end in enumerate(ends):
        node_ends.setdefault(end, []).append(v)
    arrivals: dict[tuple[int, float], list[int]] = {}
    releases: dict[tuple[int, float], list[int]] = {}
    for i, run in enumerate(runs):
        arrivals.setdefault((int(run["target"]), float(run["end"])), []).append(i)
        releases.setdefault((int(run["channel"]), float(run["end"])), []).append(i)

    def ended(instant: float, device: int) -> int | None:
        """A node that ended then and is not on the path yet: on the device, or else on any."""
        found = [v for v in node_ends.get(instant, ()) if v not in nodes]
        return next((v for v in found if devices[v] == device), found[0] if found else None)

    def arrived(instant: float, device: int) -> int | None:
        found = arrivals.get((device, instant), ())
        return next((i for i in found if i not in transfers), None)

    node: int | None = int(np.argmax(ends))
    while node is not None:
        nodes.add(node)
        instant, device = starts[node], devices[node]
        if instant <= 0:
            break
        local = [v for v in node_ends.get(instant, ()) if v not in nodes and devices[v] == device]
        transfer = None if local else arrived(instant, device)
        node = local[0] if local else None
        while transfer is not None:
            transfers.add(transfer)
            run = runs[transfer]
            instant, device = float(run["start"]), int(run["source"])
            waiting = instant > float(run["requested"])
            before = releases.get((int(run["channel"]), instant), ()) if waiting else ()
            transfer = next((i for i in before if i not in transfers), None)
        if node is None and instant > 0:
            node = ended(instant, device)
    return nodes, transfers


def chart_of(env: _core.Env) -> Chart:
    """The schedule so far; the simulated execution once the episode has ended."""
    if env.terminated:
        result = env.result()
        seed = int(result["engine_seed"])
        return Chart.of(env.task, env.task.simulate(result["assignment"], seed=seed))
    return Chart.partial(*env.schedule())


def text(chart: Chart) -> str:
    """One line a slot, and one for the transfers into a device if there are any.

    ``=`` computes, ``-`` is on its way in; ``#`` and ``+`` the same on the critical path.
    """
    scale = _WIDTH / chart.end if chart.end > 0 else 0.0
    width = max([len(label) for label, _ in chart.rows] + [2])

    def line(label: str, bars: list[Bar], plain: str, critical: str) -> str:
        cells = [" "] * _WIDTH
        for bar in sorted(bars, key=lambda bar: bar.critical):
            first = min(round(bar.start * scale), _WIDTH - 1)
            last = max(round(bar.end * scale), first + 1)
            cells[first:last] = [critical if bar.critical else plain] * (last - first)
        return f"{label:>{width}} |{''.join(cells)}|"

    lines = [chart.title]
    for row, (label, device) in enumerate(chart.rows):
        lines.append(line(label, [bar for bar in chart.nodes if bar.row == row], "=", "#"))
        arriving = [bar for bar in chart.transfers if bar.row == device]
        last_of_device = row + 1 == len(chart.rows) or chart.rows[row + 1][1] != device
        if arriving and last_of_device:
            lines.append(line("in", arriving, "-", "+"))
    return "\n".join(lines) + "\n"


def image(chart: Chart, width: int = 960) -> NDArray[np.uint8]:
    """uint8 [height, width, 3]; a node's colour tells it from its neighbours.

    Red frames: the critical path. Thin bars below a device: transfers into it.
    """
    left, top, bar, thin, gap = 108, 24, 20, 6, 8
    rows_y, lanes_y, y = [], {}, top
    for row, (_, device) in enumerate(chart.rows):
        rows_y.append(y)
        y += bar + 2
        if row + 1 == len(chart.rows) or chart.rows[row + 1][1] != device:
            lanes_y[device] = y
            y += thin + gap
    pixels = np.full((y + 4, width, 3), 255, np.uint8)
    scale = (width - left - 8) / chart.end if chart.end > 0 else 0.0
    _write(pixels, chart.title, 8, 6, 2)
    for (label, _), row_y in zip(chart.rows, rows_y, strict=True):
        _write(pixels, label, 8, row_y + 5, 2, left - 12)
        pixels[row_y : row_y + bar, left : width - 8] = 240

    def fill(one: Bar, y: int, height: int, color: Any) -> None:
        first = left + int(one.start * scale)
        last = max(left + int(one.end * scale), first + 1)
        area = pixels[y : y + height, first:last]
        area[:] = color
        if one.critical:
            red = (210, 0, 0)
            edge = 2 if height > 8 else 1
            area[:edge] = area[-edge:] = red
            area[:, :1] = area[:, -1:] = red

    for critical in (False, True):  # those that are framed on top
        for number, one in enumerate(chart.nodes):
            if one.critical is critical:
                hue = 0.3 + 0.5 * (
                    number * 0.618034 % 1
                )  # green to violet: never the red of frames
                color = [int(255 * part) for part in colorsys.hsv_to_rgb(hue, 0.5, 0.85)]
                fill(one, rows_y[one.row], bar, color)
        for one in chart.transfers:
            if one.critical is critical:
                fill(one, lanes_y[one.row], thin, (120, 120, 120))
    return pixels


def _write(
    pixels: NDArray[np.uint8], label: str, x: int, y: int, size: int, limit: int | None = None
) -> None:
    """Writes what fits before column ``limit``, in small letters."""
    end = pixels.shape[1] if limit is None else limit
    for character in label.lower():
        if x + 3 * size > end:
            return
        bits = _GLYPHS.get(character, _GLYPHS["-"])
        glyph = np.array([[bits >> (14 - 3 * r - c) & 1 for c in range(3)] for r in range(5)], bool)
        cells = np.kron(glyph, np.ones((size, size), bool))
        pixels[y : y + 5 * size, x : x + 3 * size][cells] = 40
        x += 4 * size
