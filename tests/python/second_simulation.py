"""The simulator's rules in plain Python, written from the design alone: a second implementation.

One slot a device, no noise, graph inputs everywhere, networks ``independent`` and ``channel``.
"""

import heapq
from collections import defaultdict


def simulate(seconds, tensors, edges, assignment, cluster, *, network, key):
    """Returns starts, ends, ready times (lists by node) and the makespan.

    seconds[v][d]; tensors: (producer, bytes) by tensor; edges: (tensor, reader); key(ready, v): the
    smallest of a device's ready nodes starts first.
    """
    n = len(assignment)
    readers = defaultdict(set)
    inputs = defaultdict(set)
    for tensor, reader in edges:
        readers[tensor].add(reader)
        inputs[reader].add(tensor)
    produced = defaultdict(list)
    for tensor, (producer, _) in enumerate(tensors):
        produced[producer].append(tensor)

    missing = {v: len(inputs[v]) for v in range(n)}
    ready, start, end = [0.0] * n, [None] * n, [None] * n
    queue = defaultdict(list)
    busy, channel_free = set(), defaultdict(float)
    events = []  # (time, what, node or tensor, device)

    def arrive(tensor, device, now):
        for v in readers[tensor]:
            if assignment[v] == device:
                missing[v] -= 1
                if missing[v] == 0:
                    ready[v] = now
                    heapq.heappush(queue[device], (key(now, v), v))

    for v in range(n):
        if missing[v] == 0:
            heapq.heappush(queue[assignment[v]], (key(0.0, v), v))
    now = 0.0
    while True:
        ended = []
        while events and events[0][0] == now:
            _, what, item, device = heapq.heappop(events)
            if what == "end":
                ended.append(item)
                busy.discard(device)
                for tensor in produced[item]:
                    arrive(tensor, device, now)
            else:
                arrive(item, device, now)
        for device in range(cluster.n_devices):
            if device not in busy and queue[device]:
                _, v = heapq.heappop(queue[device])
                busy.add(device)
                start[v], end[v] = now, now + seconds[v][device]
                heapq.heappush(events, (end[v], "end", v, device))
        for v in sorted(ended):
            for tensor in produced[v]:
                source = assignment[v]
                for target in sorted({assignment[r] for r in readers[tensor]} - {source}):
                    route = cluster.route(source, target)
                    duration = route.latency + tensors[tensor][1] / route.bandwidth
                    begin = now
                    if network == "channel":
                        begin = max(now, channel_free[route.channel])
                        channel_free[route.channel] = begin + duration
                    heapq.heappush(events, (begin + duration, "arrival", tensor, target))
        if not events:
            break
        now = events[0][0]
    return start, end, ready, max(end, default=0.0)
