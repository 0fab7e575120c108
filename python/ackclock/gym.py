"""A Gymnasium environment in which an agent sets a sender's window step by step (`pip install 'ackclock[gym]'`).

One episode is one run of a scenario. Every step lasts a fixed time, or one round trip; then the agent observes the ACKs of that
step and scales the window. Everything else is simulated: the network, the other flows, the sender's loss detection and
retransmissions. Identical seeds and actions give identical packets.

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

Hundreds of runs in parallel, on all cores, with steps of a fixed time:

>>> from ackclock.gym import VectorEnv
>>> envs = VectorEnv(scenario, num_envs=100, step="10 ms")
>>> observations, info = envs.reset(seed=1)
>>> observations, rewards, terminated, truncated, info = envs.step(envs.action_space.sample())
>>> observations.shape
(100, 5)
"""

from typing import TYPE_CHECKING

from ackclock._agents.gym import Env, Step, power
from ackclock._agents.steering import Steps
from ackclock._agents.vector import VectorEnv

if TYPE_CHECKING:
    from ackclock._agents.parallel import ParallelEnv

__all__ = ["Env", "ParallelEnv", "Step", "Steps", "VectorEnv", "power"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    """Import `ParallelEnv` on demand, because only this class needs PettingZoo."""
    if name == "ParallelEnv":
        from ackclock._agents.parallel import ParallelEnv

        return ParallelEnv
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
