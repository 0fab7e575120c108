"""A sender whose window an agent sets step by step: a Gymnasium environment (`pip install 'ackclock[gym]'`).

One episode is one run of a scenario. Every step lasts a fixed time, or one round trip; then the agent sees what the ACKs of that
step told and scales the window. Everything else is the simulator's: the network, the other flows, the sender's loss detection and
retransmissions. Equal seeds and equal actions give equal packets.

Examples
--------
>>> import ackclock
>>> from ackclock.gym import Env
>>> scenario = ackclock.Scenario.from_dict({
...     "duration": "2 s",
...     "network": {"bottleneck": {"rate": "10 Mbit/s", "delay": "20 ms"}},
...     "flows": [{}],
... })
>>> env = Env(scenario, step="100 ms")
>>> observation, info = env.reset(seed=1)
>>> observation, reward, terminated, truncated, info = env.step([0.5])
>>> env.close()
"""

from ackclock._agents.gym import Env, Step, power

__all__ = ["Env", "Step", "power"]
