"""Device assignment of dataflow graphs in work-conserving multi-GPU systems.

>>> import doppler_gym as dg
>>> task = dg.task("llama-layer@p100x4")
>>> result = dg.agent("partner-list").assign(task)
>>> execution = task.simulate(result.assignment)

An environment of Gymnasium builds an assignment step by step; see AssignEnv.

>>> import gymnasium
>>> env = gymnasium.make("DopplerGym/llama-layer.p100x4-v0", mode="place")
>>> observation, info = env.reset(seed=0)

Values are immutable, compare by content, and can be pickled. Times are seconds, sizes bytes.
"""

from . import leaderboard
from ._agents import Agent, Run, SupportsAct, register_agent, register_entry_points, run
from ._command import main
from ._core import (
    AgentDescription,
    AssignResult,
    BuiltinAgent,
    Cluster,
    ClusterDescription,
    CostModel,
    CriticalPath,
    Description,
    Device,
    Engine,
    Execution,
    Graph,
    Levels,
    OutOfMemory,
    Parameter,
    Route,
    Simulator,
    Task,
    TaskDescription,
    WorkloadDescription,
    __version__,
    agent,
    agents,
    clusters,
    critical_path,
    levels,
    lower_bound,
    simulate,
    task,
    tasks,
    workload,
    workloads,
)
from ._errors import (
    DopplerError,
    EpisodeError,
    IllegalActionError,
    InvalidError,
    ParseError,
    RunError,
    UsageError,
)
from ._recording import Recorder, VectorRecorder
from ._registration import environment_id, register_environments
from ._training import (
    TrainedTask,
    Trainer,
    TrainOptions,
    TrainProgress,
    TrainResult,
    read_metrics,
    train,
)
from .conformance import check_env, sample_mask
from .environment import AssignEnv
from .vector import AssignVectorEnv

__all__ = [
    "Agent",
    "AgentDescription",
    "AssignEnv",
    "AssignResult",
    "AssignVectorEnv",
    "BuiltinAgent",
    "Cluster",
    "ClusterDescription",
    "CostModel",
    "CriticalPath",
    "Description",
    "Device",
    "DopplerError",
    "Engine",
    "EpisodeError",
    "Execution",
    "Graph",
    "IllegalActionError",
    "InvalidError",
    "Levels",
    "OutOfMemory",
    "Parameter",
    "ParseError",
    "Recorder",
    "Route",
    "Run",
    "RunError",
    "Simulator",
    "SupportsAct",
    "Task",
    "TaskDescription",
    "TrainOptions",
    "TrainProgress",
    "TrainResult",
    "TrainedTask",
    "Trainer",
    "UsageError",
    "VectorRecorder",
    "WorkloadDescription",
    "__version__",
    "agent",
    "agents",
    "check_env",
    "clusters",
    "critical_path",
    "environment_id",
    "leaderboard",
    "levels",
    "lower_bound",
    "main",
    "read_metrics",
    "register_agent",
    "run",
    "sample_mask",
    "simulate",
    "task",
    "tasks",
    "train",
    "workload",
    "workloads",
]

register_environments()
register_entry_points()
