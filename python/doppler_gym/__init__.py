"""Device assignment of dataflow graphs in work-conserving multi-GPU systems.

>>> import doppler_gym as dg
>>> task = dg.task("llama-layer@p100x4")
>>> result = dg.agent("partner-list").assign(task)
>>> execution = task.simulate(result.assignment)

Values are immutable, compare by content, and can be pickled. Times are seconds, sizes bytes.
"""

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
from ._errors import DopplerError, InvalidError, ParseError, RunError, UsageError

__all__ = [
    "AgentDescription",
    "AssignResult",
    "BuiltinAgent",
    "Cluster",
    "ClusterDescription",
    "CostModel",
    "CriticalPath",
    "Description",
    "Device",
    "DopplerError",
    "Execution",
    "Graph",
    "InvalidError",
    "Levels",
    "OutOfMemory",
    "Parameter",
    "ParseError",
    "Route",
    "RunError",
    "Simulator",
    "Task",
    "TaskDescription",
    "UsageError",
    "WorkloadDescription",
    "__version__",
    "agent",
    "agents",
    "clusters",
    "critical_path",
    "levels",
    "lower_bound",
    "simulate",
    "task",
    "tasks",
    "workload",
    "workloads",
]
