"""A cluster of your own: two fast devices and two slow ones behind one slow link."""

import json

import doppler_gym as dg

fast = {"count": 2, "kind": "fast", "flops": {"float32": 14e12}, "bandwidth": 900e9, "memory": 32e9}
slow = {"count": 2, "kind": "slow", "flops": {"float32": 7e12}, "bandwidth": 600e9, "memory": 16e9}
cluster = dg.Cluster.from_json(
    json.dumps(
        {
            "format": "doppler-cluster",
            "version": 1,
            "name": "mixed",
            "enforce_memory": True,
            "devices": [fast, slow],
            "default_link": {"latency": 1e-5, "bandwidth": 12e9, "channels": "egress"},
        }
    )
)
task = dg.Task(dg.workload("llama-layer", devices=4), cluster, name="llama-layer@mixed")
env = dg.AssignEnv(task, mode="oneshot")
env.reset(seed=0)
for name in ("round-robin", "critical-path", "partner-list", "heft"):
    assignment = dg.agent(name).assign(task).assignment
    info = env.step(assignment)[4]
    env.reset()
    print(f"{name:14} {info['makespan'] * 1e3:.1f} ms")
