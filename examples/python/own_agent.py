"""An agent of your own: each node goes where it and its placed partners are soonest served."""

import numpy as np

import doppler_gym as dg


@dg.register_agent("near-partners")
class NearPartners(dg.Agent):
    """Earliest start plus the transfer time that staying away from the partners would cost."""

    environment = {"mode": "place", "features": "full"}  # noqa: RUF012
    deterministic = True

    def __init__(self, weight=0.5):
        self.weight = weight

    def act(self, observation, info):
        start = observation["device_features"][:, 4]
        partners = observation["device_features"][:, 6]
        return int(np.where(info["action_mask"], start - self.weight * partners, np.inf).argmin())


task = dg.task("llama-layer@p100x4")
for name in ("critical-path", "near-partners", "near-partners(weight=1.0)"):
    print(f"{name:28} {dg.agent(name).assign(task).makespan * 1e3:.1f} ms")
