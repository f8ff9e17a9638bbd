"""Suites and training runs spread over a Ray cluster.

Needs Ray (``pip install 'doppler-gym[ray]'``), and this package in the same version on every
machine of the cluster. Work that a worker's death interrupted is done again.

    from doppler_gym import distributed
    distributed.evaluate("paper-8", "annealing", rows="rows", address="10.0.0.1:6379")
    distributed.train("doppler", ["ffnn@p100x4"], seeds=range(5), out="sweep", address="auto")
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import sys
import sysconfig
import tempfile
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from . import _core, leaderboard
from ._agents import Registered, register_agent, registered
from ._errors import DopplerError, RunError, UsageError
from ._training import train as train_here

_CONNECT_SECONDS = 10
_ANSWER_SECONDS = 120
_BY_VALUE = threading.Lock()

__all__ = ["Cluster", "Trained", "evaluate", "train"]


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise UsageError(
            f"Ray is needed and {sys.executable} cannot import it ({error}); "
            "pip install 'doppler-gym[ray]' installs it"
        ) from error
    return ray


@dataclass(frozen=True)
class _Machine:
    """What a machine of the cluster says of itself."""

    name: str
    version: str
    """Of the package; empty: it is not there."""
    hardware: str


class Cluster:
    """A Ray cluster that decisions are made on: ``places`` of ``leaderboard.run``.

    Args:
        address: "HOST:PORT" of a cluster that this machine belongs to; "auto": the one that runs
            on this machine; "local": one of its own for this process, with ``workers`` cores. A
            process that is connected to a cluster already uses that.
        retries: how often a piece of work is begun again after its worker died.
        workers: cores of a local cluster; 0: those of the machine.

    Raises:
        UsageError: Ray is not installed, or a machine lacks this package or has another version.
        RunError: there is no cluster at the address.
    """

    def __init__(self, address: str, *, retries: int = 3, workers: int = 0) -> None:
        if retries < 0:
            raise UsageError(f"retries is {retries}; give 0 or more")
        self._ray = _ray()
        self.retries = retries
        self._open: set[Any] = set()
        self._lock = threading.Lock()
        self._is_ours = not self._ray.is_initialized()
        if self._is_ours:
            self._connect(address, workers)
        try:
            machines = self._machines()
        except BaseException:
            self.close()
            raise
        self.cores = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self.hardware = _merged([machine.hardware for machine in machines])

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends what is still under way, and the connection if it was made here."""
        with self._lock:
            pending, self._open = list(self._open), set()
        for reference in pending:
            with contextlib.suppress(Exception):
                self._ray.cancel(reference, force=True)
        if self._is_ours:
            self._ray.shutdown()

    def _connect(self, address: str, workers: int) -> None:
        _check_reachable(address)
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        if address == "local":
            options |= {"address": "local", "include_dashboard": False}
            if workers:
                options["num_cpus"] = workers
        else:
            options["address"] = address
        try:
            with _signals_heard():
                self._ray.init(**options)
        except Exception as error:  # Ray raises plain ones where its processes do not start
            raise RunError(
                f"no Ray cluster at {address!r}: {_first_line(error)}; start one by "
                "`ray start --head`, or give 'local'"
            ) from error

    def _machines(self) -> list[_Machine]:
        """Asks each machine. A function that does not need the package where it runs."""

        def look() -> tuple[str, str]:
            try:
                import doppler_gym
                from doppler_gym import _core as core
            except ImportError:
                return "", ""
            return doppler_gym.__version__, core.leaderboard_hardware()

        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        nodes = [
            node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU")
        ]
        if not nodes:
            raise RunError("the Ray cluster has no machine with cores")
        # By value: Ray's pickle takes functions of modules by their name.
        references = [
            self._ray.remote(num_cpus=0, max_retries=3)(look)
            .options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False))
            .remote()
            for node in nodes
        ]
        try:
            answers = self._ray.get(references, timeout=_ANSWER_SECONDS)
        except (TimeoutError, self._ray.exceptions.RayError) as error:
            raise RunError(
                f"a machine of the Ray cluster gives no answer: {_first_line(error)}"
            ) from error
        machines = [
            _Machine(node["NodeManagerAddress"], *answer)
            for node, answer in zip(nodes, answers, strict=True)
        ]
        for machine in machines:
            if machine.version != _core.__version__:
                has = f"version {machine.version}" if machine.version else "none"
                raise UsageError(
                    f"the machine {machine.name} of the Ray cluster has {has} of doppler_gym, and "
                    f"this one {_core.__version__}; install the same everywhere"
                )
        return machines

    def submit(self, function: Callable[..., Any], *arguments: Any, calls: int = 0) -> Any:
        """Begins a piece of work on a core of the cluster; its Ray reference. A worker ends after
        so many ``calls``; 0: never."""
        remote = self._ray.remote(num_cpus=1, max_retries=self.retries, max_calls=calls)(function)
        reference = remote.remote(*arguments)
        with self._lock:
            self._open.add(reference)
        return reference

    def result(self, reference: Any) -> Any:
        """Waits for a piece of work.

        Raises:
            RunError: it failed, or its workers died more often than ``retries``.
        """
        exceptions = self._ray.exceptions
        try:
            return self._ray.get(reference)
        except exceptions.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, DopplerError):
                raise cause from None
            raise RunError(f"a worker of the Ray cluster failed: {cause!r}") from error
        except exceptions.RayError as error:
            times = f"{self.retries + 1} times" if self.retries else "once"
            raise RunError(
                f"the work was begun {times} and its worker died each time "
                f"({type(error).__name__}: {_first_line(error)})"
            ) from error
        finally:
            with self._lock:
                self._open.discard(reference)

    def start(self, keys: list[str], memory: float) -> tuple[int, int]:
        """See ``leaderboard.Places``. The process here only hands on what comes from the cluster;
        the agent's own process is on the machine that makes the decisions."""
        first = json.loads(keys[0])
        suite = leaderboard.suite(first["suite"])
        if suite["engine"] != "simulator":
            raise UsageError(
                f"suite {suite['name']!r} has the engine {suite['engine']!r}, whose makespans are "
                "those of one machine; run it there, without Ray"
            )
        name, agent = _packed(first["agent"])
        process, into, output = _start_cat()
        try:
            reference = self.submit(_decide, suite, keys, memory, name, agent)
        except BaseException:
            os.close(into)
            os.close(output)
            raise
        threading.Thread(
            target=self._hand_on, args=(reference, into, suite, first), daemon=True
        ).start()
        return process, output

    def _hand_on(
        self, reference: Any, into: int, suite: dict[str, Any], first: dict[str, Any]
    ) -> None:
        try:
            records = self.result(reference)
        except Exception as error:
            hashes = {task["name"]: task["hash"] for task in suite["tasks"]}
            head = {"format": "doppler-decision", "version": 1, **first}
            records = [
                json.dumps(head | {"task_hash": hashes[first["task"]], "failure": str(error)})
            ]
        # Broken: the run here has ended.
        with contextlib.suppress(OSError), os.fdopen(into, "w") as file:
            for record in records:
                file.write(record.rstrip("\n") + "\n")


def _check_reachable(address: str) -> None:
    """Ray itself tries for minutes."""
    host, separator, port = address.rpartition(":")
    if not separator or "://" in address:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
    except (OSError, OverflowError, ValueError) as error:
        raise RunError(
            f"no Ray cluster at {address!r}: {_first_line(error)}; start one by "
            "`ray start --head`, or give 'local'"
        ) from error


@contextlib.contextmanager
def _signals_heard() -> Iterator[None]:
    """The command hears signals in a thread; what Ray starts must not take over that mask."""
    before = signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), repr(error))


def _merged(texts: Sequence[str]) -> str:
    """What rows say of several machines: what equal ones are, else the processors' names."""
    different = sorted(set(texts))
    if len(different) == 1:
        return different[0]
    all_of_them = [json.loads(text) for text in different]
    names = {
        key: ", ".join(sorted({item[key] for item in all_of_them if item[key]}))
        for key in ("processor", "accelerator")
    }
    return json.dumps({"cores": 0, "memory": 0.0, **names})


def _start_cat() -> tuple[int, int, int]:
    """A process that copies its input: its id, the file to write to, and the one to read from."""
    program = shutil.which("cat")
    if program is None:
        raise RunError("there is no program `cat` on this machine's path")
    source, into = os.pipe()
    output, target = os.pipe()
    try:
        actions = [(os.POSIX_SPAWN_DUP2, source, 0), (os.POSIX_SPAWN_DUP2, target, 1)]
        process = os.posix_spawn(
            program, ["cat"], os.environ, file_actions=actions, setpgroup=0, setsigmask=()
        )
    except BaseException:
        os.close(into)
        os.close(output)
        raise
    finally:
        os.close(source)
        os.close(target)
    return process, into, output


def _packed(agent: str) -> tuple[str, bytes]:
    """The name of an agent that may have parameters, and itself if this program registered it."""
    name = agent.partition("(")[0]
    if name not in registered:
        return name, b""
    module = sys.modules.get(registered[name].factory.__module__)
    try:
        with _by_value(module):
            packed: bytes = _ray().cloudpickle.dumps(registered[name])
    except Exception as error:
        raise UsageError(
            f"agent {name!r} cannot be sent to the cluster ({error}); let its constructor make "
            "what cannot be pickled, or install it there with an entry point"
        ) from error
    return name, packed


@contextlib.contextmanager
def _by_value(module: types.ModuleType | None) -> Iterator[None]:
    """Sends what a module defines with the agent, unless it is of an installed package, which the
    other machines have as well."""
    file = getattr(module, "__file__", None)
    installed = [sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib")]
    if module is None or file is None or any(file.startswith(folder) for folder in installed):
        yield
        return
    cloudpickle = _ray().cloudpickle
    # Processes are started from several threads, and what is registered is the whole program's.
    with _BY_VALUE:
        cloudpickle.register_pickle_by_value(module)
        try:
            yield
        finally:
            cloudpickle.unregister_pickle_by_value(module)


def _register(name: str, packed: bytes) -> None:
    """On a worker: makes an agent known that was sent."""
    if packed and name not in _core.agents():
        agent: Registered = _ray().cloudpickle.loads(packed)
        register_agent(name, summary=agent.summary, source=agent.source)(agent.factory)


def _decide(
    suite: dict[str, Any], keys: list[str], memory: float, name: str, packed: bytes
) -> list[str]:
    """On a worker: makes decisions in a process of their own, and returns their records."""

    def start(texts: list[str], memory: float) -> tuple[int, int]:
        return leaderboard.fork_with(texts, memory, lambda: _register(name, packed))

    with tempfile.TemporaryDirectory(prefix="doppler-gym-") as folder:
        path = pathlib.Path(folder) / "suite.json"
        path.write_text(json.dumps(suite))
        local = [json.dumps(json.loads(key) | {"suite": str(path)}) for key in keys]
        return _core.leaderboard_follow(local, memory, start)


def evaluate(
    suite: str, agents: Any, *, address: str, retries: int = 3, **options: Any
) -> leaderboard.Done:
    """Runs agents by a suite's protocol on a Ray cluster: the rows that ``leaderboard.run`` makes,
    but for seconds and hardware.

    Decisions are kept here as they come, so that ``resume=True`` goes on where a run was broken
    off. An agent that fails fails its own row.

    Args:
        suite, agents: as for ``leaderboard.run``; agents of Python are sent to the cluster.
        address: see ``Cluster``.
        retries: how often decisions are begun again after their worker died.
        **options: rows, tiers, resume and the others of ``leaderboard.run``; ``jobs`` is how many
            pieces of work are given to the cluster at once, 0 (default): as many as it has cores.

    Raises:
        UsageError, RunError: see ``leaderboard.run`` and ``Cluster``.
    """
    if leaderboard.suite(suite)["engine"] != "simulator":
        raise UsageError(f"suite {suite!r} has a real engine; run it on one machine, without Ray")
    with Cluster(address, retries=retries) as cluster:
        return leaderboard.run(suite, agents, **{"jobs": 0, **options}, places=cluster)


def connect_command(
    address: str, suite: str, agents: list[str], memory: float
) -> tuple[Callable[[list[str], float], tuple[int, int]], int, str]:
    """What ``leaderboard run --ray`` asks for: how decisions start, cores, hardware."""
    if leaderboard.suite(suite)["engine"] != "simulator":
        raise UsageError(f"--ray: suite {suite!r} has a real engine; run it on one machine")
    cluster = Cluster(address)
    return cluster.start, cluster.cores, cluster.hardware


@dataclass(frozen=True)
class Trained:
    """One training run of a sweep."""

    task: str
    seed: int
    folder: pathlib.Path
    makespan: float
    """The best one, in seconds; inf: none."""
    failure: str
    """Why there is no run; empty: there is one."""


def train(
    agent: str,
    tasks: Sequence[str],
    *,
    seeds: Sequence[int],
    out: str | os.PathLike[str],
    address: str,
    resume: bool = False,
    shared: bool = False,
    retries: int = 3,
    progress: Callable[[Trained, int, int], None] | None = None,
    **options: Any,
) -> list[Trained]:
    """Trains an agent on each task with each seed, a run for each, on a Ray cluster.

    Each run is a folder ``out/TASK--seed-N`` as ``doppler_gym.train`` makes it. It appears whole
    when the run is over: a worker trains in a folder of its own machine. With ``shared`` it trains
    in ``out`` itself, which every machine must see at the same path; then a run whose worker died
    goes on from its last checkpoint, and else begins again.

    Args:
        agent: a name with parameters; one that this program registered is sent to the cluster.
        tasks, seeds: a run for each pair.
        out: the folder of the runs.
        address, retries: see ``Cluster``.
        resume: keep runs that are there, and make those that are missing.
        shared: see above.
        progress: called here with each run that is over, how many are, and how many there will be.
        **options: of ``doppler_gym.train``: evaluations, seconds, stages, ...

    Raises:
        UsageError: a run is there and ``resume`` is not set; options that the training refuses.
        RunError: no cluster.
    """
    folder = pathlib.Path(out).absolute()
    cells = [(task, int(seed)) for task in tasks for seed in seeds]
    if not cells:
        raise UsageError("give at least one task and one seed")
    for name in ("callbacks", "task", "seed"):
        if name in options:
            raise UsageError(f"{name} cannot be given to a sweep")
    places = {cell: folder / f"{_file_name(cell[0])}--seed-{cell[1]}" for cell in cells}
    if len(set(places.values())) < len(cells):
        raise UsageError("a task or a seed is given twice")
    if not resume and (found := [place for place in places.values() if place.exists()]):
        raise UsageError(f"{found[0]} is there; give resume=True to keep it, or remove it")
    folder.mkdir(parents=True, exist_ok=True)
    over: dict[tuple[str, int], Trained] = {}
    show = _Progress(len(cells), progress)
    with Cluster(address, retries=retries) as cluster:
        _, packed = _packed(agent)
        waiting: dict[Any, tuple[str, int]] = {}
        for cell, place in places.items():
            if _is_over(place):
                over[cell] = _trained(cell, place)
                show(over[cell])
                continue
            there = str(place) if shared else ""
            waiting[cluster.submit(_train, agent, packed, *cell, options, there, calls=1)] = cell
        for reference in _as_they_end(cluster, waiting):
            cell = waiting[reference]
            try:
                files = cluster.result(reference)
                if not shared:
                    _unpack(files, places[cell])
                over[cell] = _trained(cell, places[cell])
            except DopplerError as error:
                over[cell] = Trained(*cell, places[cell], float("inf"), str(error))
            show(over[cell])
    return [over[cell] for cell in cells]


class _Progress:
    """Counts runs: on a terminal a line each, and whatever the caller wants."""

    def __init__(self, total: int, call: Callable[[Trained, int, int], None] | None) -> None:
        self._total, self._call, self._done = total, call, 0

    def __call__(self, trained: Trained) -> None:
        self._done += 1
        if sys.stderr.isatty():
            what = trained.failure or f"{trained.makespan:.6g} s"
            print(
                f"{self._done}/{self._total}  {trained.task}, seed {trained.seed}: {what}",
                file=sys.stderr,
            )
        if self._call is not None:
            self._call(trained, self._done, self._total)


def _as_they_end(cluster: Cluster, waiting: dict[Any, Any]) -> Iterator[Any]:
    pending = list(waiting)
    while pending:
        ready, pending = cluster._ray.wait(pending, num_returns=1)
        yield from ready


def _file_name(task: str) -> str:
    return re.sub(r"[^A-Za-z0-9._=-]+", "_", task)


_OVER = "sweep.json"  # beside a run's own files: it is whole


def _is_over(folder: pathlib.Path) -> bool:
    return (folder / _OVER).exists()


def _trained(cell: tuple[str, int], folder: pathlib.Path) -> Trained:
    makespan = json.loads((folder / _OVER).read_text())["makespan"]
    return Trained(*cell, folder, float("inf") if makespan is None else makespan, "")


def _train(
    agent: str, packed: bytes, task: str, seed: int, options: dict[str, Any], place: str
) -> dict[str, bytes]:
    """On a worker: a training run, as the files of its folder unless it has a place."""
    _register(agent.partition("(")[0], packed)
    with tempfile.TemporaryDirectory(prefix="doppler-gym-") as folder:
        out = pathlib.Path(place or pathlib.Path(folder) / "run")
        goes_on = (out / "config.json").exists()
        result = train_here(agent, task, out=out, seed=seed, resume=goes_on, **options)
        best = result.makespan
        told = {"agent": agent, "task": task, "seed": seed, "state": result.state}
        told["makespan"] = best if best < float("inf") else None
        part = out / f"{_OVER}.{os.getpid()}.tmp"
        part.write_text(json.dumps(told) + "\n")
        part.replace(out / _OVER)
        if place:
            return {}
        files = [path for path in out.rglob("*") if path.is_file()]
        return {str(path.relative_to(out)): path.read_bytes() for path in files}


def _unpack(files: dict[str, bytes], place: pathlib.Path) -> None:
    """Puts a run's folder in its place, whole or not at all."""
    with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as folder:
        whole = pathlib.Path(folder) / "run"
        for name, content in files.items():
            path = whole / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        if place.exists():
            raise RunError(f"{place} has come to be there meanwhile")
        whole.replace(place)
