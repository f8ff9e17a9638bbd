"""A Ray cluster: what is found there, how work is sent to it, and what becomes of it."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
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

_CONNECT_SECONDS = 10
_ANSWER_SECONDS = 120
_BY_VALUE = threading.Lock()


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

    def as_they_end(self, references: Sequence[Any]) -> Iterator[Any]:
        """The references of work, each when it is over."""
        pending = list(references)
        while pending:
            ready, pending = self._ray.wait(pending, num_returns=1)
            yield from ready

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
        name, agent = packed(first["agent"])
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


def packed(agent: str) -> tuple[str, bytes]:
    """The name of an agent that may have parameters, and itself if this program registered it."""
    name = agent.partition("(")[0]
    if name not in registered:
        return name, b""
    module = sys.modules.get(registered[name].factory.__module__)
    try:
        with _by_value(module):
            content: bytes = _ray().cloudpickle.dumps(registered[name])
    except Exception as error:
        raise UsageError(
            f"agent {name!r} cannot be sent to the cluster ({error}); let its constructor make "
            "what cannot be pickled, or install it there with an entry point"
        ) from error
    return name, content


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


def register(name: str, content: bytes) -> None:
    """On a worker: makes an agent known that was sent."""
    if content and name not in _core.agents():
        agent: Registered = _ray().cloudpickle.loads(content)
        register_agent(name, summary=agent.summary, source=agent.source)(agent.factory)


def _decide(
    suite: dict[str, Any], keys: list[str], memory: float, name: str, content: bytes
) -> list[str]:
    """On a worker: makes decisions in a process of their own, and returns their records."""

    def start(texts: list[str], memory: float) -> tuple[int, int]:
        return leaderboard.fork_with(texts, memory, lambda: register(name, content))

    with tempfile.TemporaryDirectory(prefix="doppler-gym-") as folder:
        path = pathlib.Path(folder) / "suite.json"
        path.write_text(json.dumps(suite))
        local = [json.dumps(json.loads(key) | {"suite": str(path)}) for key in keys]
        return _core.leaderboard_follow(local, memory, start)
