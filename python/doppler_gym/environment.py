"""The environment: one episode builds one assignment."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from . import _core, _spaces
from ._errors import UsageError

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike


class AssignEnv(gym.Env[Any, Any]):
    """Assigns the nodes of a dataflow graph to devices, so that the whole runs as fast as can be.

    ## Description
    A task is a graph of tensor operations, a cluster of devices, and how their time is measured.
    One episode builds one assignment, a device for each node; at its end the engine (by default
    the simulator of the work-conserving runtime) runs it once. The time scale of a task is
    max(sum of mean compute / total slots, longest path without transfers), in seconds.

    ## Action Space
    One step decides, by ``mode``:

    | mode | one step decides | action space |
    |---|---|---|
    | ``sequential`` | in turns a node and its device | ``Discrete(max_nodes + max_devices)``; device d is action max_nodes + d |
    | ``joint`` | a node and its device | ``Discrete(max_nodes * max_devices)``, action node * max_devices + device; ``factored=True``: ``MultiDiscrete([max_nodes, max_devices])`` |
    | ``place`` | the device of the next node in ``order`` | ``Discrete(max_devices)`` |
    | ``refine`` | a new device of the next node of a full assignment | ``Discrete(max_devices)`` |
    | ``oneshot`` | the whole assignment | ``MultiDiscrete([max_devices] * max_nodes)``, padding ignored |

    A node can be taken when all its predecessors have been placed. Which actions are legal is told
    by ``observation["action_mask"]`` and ``info["action_mask"]`` (int8) and by ``action_masks()``
    (bool): one element an action, or for ``MultiDiscrete`` the parts one after the other.

    ## Observation Space
    ``Dict`` of ``Box``. N, E and D are max_nodes, max_edges and max_devices; T is the total of all
    computes and transfers in time scales; "static" arrays are equal from step to step.

    | key | shape, dtype | meaning and unit | bounds |
    |---|---|---|---|
    | ``node_features`` | [N, 5] float32, static | compute, b-level, t-level, sum of incoming and of outgoing transfer times, in time scales; with ``features="full"`` [N, 7], also the number of the node's kind and its share of all output bytes | 0 to T |
    | ``edges`` | [E, 2] int32, static | producer and reader of each edge; -1: padding | -1 to N - 1 |
    | ``edge_features`` | [E, 1] float32, static | mean transfer time, in time scales | 0 to T |
    | ``node_valid``, ``edge_valid``, ``device_valid`` | [N], [E], [D] int8, static | 0: padding | 0 to 1 |
    | ``placement`` | [N] int32 | device of each node; -1: not placed, or padding | -1 to D - 1 |
    | ``candidates`` | [N] int8 | 1: not placed, but all predecessors are | 0 to 1 |
    | ``node`` | [1] int32 | the node whose device is decided next; -1: none | -1 to N - 1 |
    | ``phase`` | [1] int8 | 0: a node is selected next; 1: anything else | 0 to 1 |
    | ``device_features`` | [D, 5] float32 | of each device for ``node``, in time scales: compute placed there; compute of the node's predecessors there, their earliest start, their latest end; earliest start of the node there; zeros without a node. With ``features="full"`` [D, 10], also: transfer time into the device; transfer time of placed partners there; compute there of nodes that share a producer; speed (1: fastest); share of memory left | 0 to T; memory left may be negative |
    | ``pair_features`` | [N, D, 10] float32 | ``joint`` with ``features="full"`` alone: device_features of each candidate | as there |
    | ``action_mask`` | [mask size] int8 | 1: the action is legal | 0 to 1 |

    With ``flat=True`` all of these one after the other as one float32 ``Box`` of one dimension.

    ## Rewards
    ``sparse``: 0 at each step, and -makespan / time scale at the end. ``dense``: minus what the
    step adds to the partial schedule (appended earliest starts, no contention), and at the end what
    is missing to the same sum. ``refine``: what the move saves, in time scales, at each step.
    Memory that runs out counts as ``memory_penalty`` time scales. An illegal action changes
    nothing: with ``on_illegal="penalize"`` it costs 1 and sets ``info["illegal"]``, with "raise" it
    raises ``IllegalActionError``.

    ## Starting State
    Nothing is placed; in ``refine`` every node is, at random from the seed or by ``initial``. With
    several tasks one is drawn; ``reset(options={"task": i})`` chooses. ``info["task"]`` tells which.

    ## Episode End
    Terminated when the assignment is complete and measured. Truncated after as many illegal actions
    as the graph has nodes. The last info has ``makespan`` (seconds; inf: out of memory, ``failure``
    says where), ``ratio_to_critical_path`` (to the makespan of the critical-path heuristic),
    ``lower_bound`` (seconds), ``assignment`` (int32 [N], -1: padding), ``evaluations`` (runs of the
    engine) and ``engine_seed`` (of its noise).

    ## Arguments
    Args:
        task: a task's name, or a ``Task``.
        tasks: several instead; each reset draws one.
        mode: "sequential", "joint", "place", "refine" or "oneshot".
        reward: "sparse" or "dense".
        features: "paper" or "full".
        order: of ``place``: "b_level" (largest first) or "topological".
        engine: what measures an assignment, with its parameters.
        on_illegal: "penalize" or "raise".
        factored: ``joint`` with two numbers an action.
        flat: observations as one array.
        share_static: static arrays are one read-only object as long as the task is the same, and
            not copied at each step: quicker for large graphs. Gymnasium's checker (1.4 and later)
            then warns that observations share memory.
        max_nodes, max_edges, max_devices: what arrays are padded to; None: what the tasks need.
        memory_penalty: time scales that stand for an assignment that does not fit into memory.
        initial: of ``refine``: where it starts, integers [n_nodes].
        render_mode: "ansi" (text), "rgb_array" (uint8 [height, width, 3]) or None: the schedule so
            far as a Gantt chart; at the end as simulated, with transfers and its critical path.

    Raises:
        UsageError: an unknown name or option, a wrong type, shape or range; the state is as it was.
        EpisodeError: step() before reset() or after the end.
        IllegalActionError: see ``on_illegal``.
        InvalidError: tasks that do not fit the options; a serialized state that is damaged, or of
            another version or environment.

    ## Version History
    * v0: initial version
    """  # noqa: E501 (a table's row is one line)

    metadata: dict[str, Any] = {  # noqa: RUF012 (so declared by gymnasium.Env)
        "render_modes": ["ansi", "rgb_array"],
        "render_fps": 4,
    }

    def __init__(
        self,
        task: str | _core.Task | None = None,
        *,
        tasks: Sequence[str | _core.Task] | None = None,
        mode: str = "sequential",
        reward: str = "sparse",
        features: str = "paper",
        order: str = "b_level",
        engine: str = "simulator",
        on_illegal: str = "penalize",
        factored: bool = False,
        flat: bool = False,
        share_static: bool = False,
        max_nodes: int | None = None,
        max_edges: int | None = None,
        max_devices: int | None = None,
        memory_penalty: float = 10.0,
        initial: ArrayLike | None = None,
        render_mode: str | None = None,
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise UsageError(f"unknown render_mode {render_mode!r}; known: ansi rgb_array")
        self.render_mode = render_mode
        self._model = _spaces.make_model(
            task,
            tasks,
            {
                "mode": mode,
                "reward": reward,
                "features": features,
                "order": order,
                "engine": engine,
                "on_illegal": on_illegal,
                "factored": factored,
                "max_nodes": max_nodes,
                "max_edges": max_edges,
                "max_devices": max_devices,
                "memory_penalty": memory_penalty,
                "initial": initial,
            },
        )
        self._env = _core.Env(self._model, flat=flat, share_static=share_static)
        self._has_luck = False
        self.action_space = _spaces.action_space(self._model)
        self.observation_space = _spaces.observation_space(self._model, flat)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: of all luck, 0 to 2**64 - 1; without one the luck goes on (at first: any).
            options: {"task": number}: which of the tasks.
        """
        unknown = [key for key in options or () if key != "task"]
        if unknown:
            raise UsageError(f"unknown option {unknown[0]!r} of reset(); known: task")
        luck = seed
        if seed is None and not self._has_luck:
            luck = int(self.np_random.integers(2**63))
        result = self._env.reset(luck, (options or {}).get("task"))
        self._has_luck = True
        super().reset(seed=None if seed is None else int(seed))
        return result

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Takes one action; see the class for actions, rewards and the end."""
        return self._env.step(action)

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are legal now, bool [mask size]; a new array."""
        return self._env.action_masks()

    @property
    def task(self) -> _core.Task:
        """The task of the episode."""
        return self._env.task

    @property
    def tasks(self) -> list[_core.Task]:
        """All tasks, by their number."""
        return self._model.tasks

    @property
    def max_steps(self) -> int:
        """Legal steps of the longest episode."""
        return self._model.max_steps

    @property
    def episode_return(self) -> float:
        """Sum of the episode's rewards, penalties of illegal actions apart."""
        return self._env.episode_return

    def result(self) -> dict[str, Any]:
        """What the last info tells, with ``assignment`` [n_nodes] without padding.

        Raises:
            EpisodeError: the episode has not ended.
        """
        return self._env.result()

    def clone(self) -> Self:
        """An environment in the same state, which continues exactly as this one."""
        other = copy.copy(self)
        other._env = self._env.clone()
        other._np_random = copy.deepcopy(self._np_random)
        other.action_space = copy.deepcopy(self.action_space)
        return other

    def serialize(self) -> bytes:
        """The state of the episode and its luck: versioned, for ``restore``."""
        return self._env.serialize()

    def restore(self, state: bytes) -> None:
        """Brings back a state of an environment with the same tasks and options.

        Raises:
            InvalidError: the state is damaged, of another version or environment; nothing changes.
        """
        if not isinstance(state, bytes):
            raise UsageError(f"state: expected bytes of serialize(), got {type(state).__name__}")
        self._env.restore(state)
        self._has_luck = True

    def render(self) -> Any:
        """The schedule as a Gantt chart, in the form of ``render_mode``; None without one."""
        if self.render_mode is None:
            return None
        from . import rendering

        chart = rendering.chart_of(self._env)
        return rendering.text(chart) if self.render_mode == "ansi" else rendering.image(chart)
