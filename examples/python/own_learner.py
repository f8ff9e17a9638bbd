"""An agent that learns, in Python: the cross-entropy method over a table of device weights.

python own_learner.py        (trains a little, stops, goes on)
python own_learner.py train --agent cross-entropy --task ffnn@p100x4 --evaluations 2000 --out run
python own_learner.py train --resume --out run
"""

import json
import pickle
import sys
import tempfile

import numpy as np

import doppler_gym as dg


class CrossEntropyTrainer:
    """Samples assignments of one task, and moves the table toward the best eighth of them."""

    def __init__(self, tasks, options, batch, rate):
        if len(tasks) != 1:
            raise dg.UsageError("cross-entropy trains on one task")
        if 2 not in options.stages:
            raise dg.UsageError("cross-entropy has stage 2 alone")
        self.task, self.options, self.batch, self.rate = tasks[0], options, batch, rate
        self.simulator = self.task.simulator()
        shape = (self.task.graph.n_nodes, self.task.cluster.n_devices)
        self.table = np.full(shape, 1 / shape[1])
        if options.initial_policy:
            self.table = np.array(json.loads(options.initial_policy)["table"])
            if self.table.shape != shape:
                raise dg.ParseError("a policy for another task")
        self.rng = np.random.default_rng(options.seed)
        self.best_assignment, self.best_makespan = self.table.argmax(1), np.inf
        self.updates = self.evaluations = 0

    def update(self):
        n = min(self.batch, self.options.max_evaluations - self.evaluations)
        if n < 1:
            return False
        drawn = self.rng.random((n, self.table.shape[0], 1))
        samples = (drawn < self.table.cumsum(1)[None]).argmax(2)
        makespans = self.simulator.makespans(samples, threads=self.options.threads)
        order = makespans.argsort(kind="stable")
        if makespans[order[0]] < self.best_makespan:
            self.best_makespan = float(makespans[order[0]])
            self.best_assignment = samples[order[0]]
        elite = samples[order[: max(1, n // 8)]]
        shares = (elite[:, :, None] == np.arange(self.table.shape[1])).mean(0)
        self.table += self.rate * (shares - self.table)
        self.updates += 1
        self.evaluations += n
        return True

    def progress(self):
        entropy = -(self.table * np.log(np.maximum(self.table, 1e-12))).sum(1).mean()
        return {
            "stage": 2,
            "updates": self.updates,
            "episodes": self.evaluations,
            "evaluations": self.evaluations,
            "share": self.evaluations / max(1, self.options.max_evaluations),
            "best_makespan": self.best_makespan,
            "values": {"entropy": entropy},
        }

    def best(self, task):
        measured = np.isfinite(self.best_makespan)
        return self.best_assignment, self.best_makespan if measured else None

    def policy(self):
        return json.dumps({"table": self.table.tolist()})

    def state(self):
        parts = (self.table, self.rng, self.best_assignment, self.best_makespan)
        return pickle.dumps((*parts, self.updates, self.evaluations))

    def restore(self, state):
        (
            self.table,
            self.rng,
            self.best_assignment,
            self.best_makespan,
            self.updates,
            self.evaluations,
        ) = pickle.loads(state)


@dg.register_agent("cross-entropy", summary="cross-entropy method over a table", source="own")
class CrossEntropy(dg.Agent):
    def __init__(self, batch=64, rate=0.3):
        pass

    def act(self, observation, info):
        """Untrained: the first legal action."""
        return int(np.flatnonzero(info["action_mask"])[0])

    @staticmethod
    def trainer(tasks, options, batch, rate):
        return CrossEntropyTrainer(tasks, options, batch, rate)


def main():
    with tempfile.TemporaryDirectory() as folder:
        # Stopped after ten updates, then to the end.
        options = {"evaluations": 5000, "callbacks": [lambda progress: progress.updates < 10]}
        first = dg.train("cross-entropy", "ffnn@p100x4", out=f"{folder}/run", **options)
        print(f"after {first.progress.updates} updates: {first.makespan * 1e3:.3f} ms")
        result = dg.train(out=f"{folder}/run", resume=True)
        print(f"after {result.progress.updates} updates: {result.makespan * 1e3:.3f} ms")
        entropies = [line["values"]["entropy"] for line in result.metrics()]
        print(f"entropy a node: {entropies[0]:.2f} at first, {entropies[-1]:.2f} in the end")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(dg.main())
    main()
