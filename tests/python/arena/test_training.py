"""Tests for an arena task as Gymnasium environments: the task's scenarios, and its score as the only reward."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import ackclock
from ackclock.errors import InputError

pytest.importorskip("gymnasium")
env_checker = pytest.importorskip("gymnasium.utils.env_checker")

from ackclock import arena  # noqa: E402
from ackclock.arena.score import combined, frames, terms  # noqa: E402
from ackclock.gym import VectorEnv, power  # noqa: E402

TASK = arena.read(
    """
title = "Small"
[score]
delay = "20 ms"
loss = "1 %"
starves = 0.5
weights = { throughput = 2, delay = 1, others = 1, speed = 1, fairness = 1, worst = 1 }
[draws]
quick = 1
medium = 2
full = 3
[[families]]
id = "alone"
counts = ["throughput", "delay"]
[families.scenario]
duration = "2 s"
network.bottleneck = { rate = { from = "4 Mbit/s", to = "8 Mbit/s" }, delay = "10 ms" }
flows = [{ congestion_control = "@", workload = { kind = "bulk" } }]
[[families]]
id = "beside"
counts = ["throughput", "others"]
[families.scenario]
duration = "2 s"
network.bottleneck = { rate = "4 Mbit/s", delay = "10 ms" }
flows = [{ congestion_control = "cubic" }, { congestion_control = "@", workload = { kind = "bulk" } }]
[[families]]
id = "alike"
counts = ["throughput", "fairness"]
[families.scenario]
duration = "2 s"
network.bottleneck = { rate = "4 Mbit/s", delay = "10 ms" }
flows = [{ congestion_control = "@" }, { congestion_control = "@" }]
[[families]]
id = "short"
counts = ["speed"]
[families.scenario]
duration = "2 s"
network.bottleneck = { rate = "4 Mbit/s", delay = "10 ms" }
[[families.scenario.flows]]
congestion_control = "@"
workload = { kind = "transactions", bytes = { kind = "constant", value = "10 kB" }, arrivals = { kind = "poisson", load = 0.3 } }
[[families]]
id = "adversary"
counts = ["worst"]
attack = { budget = "trouble", objective = "utilisation", evaluations = 3 }
""",
    "small",
)


def episode(env, seed):
    _, told = env.reset(seed=seed)
    rewards = []
    while True:
        _, reward, terminated, truncated, info = env.step([0.25])
        rewards.append(reward)
        if terminated or truncated:
            return told, rewards, info


def test_it_is_an_environment_as_gymnasium_wants_it():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*render.*")
        env = arena.TaskEnv(TASK)
        env_checker.check_env(env, skip_render_check=True)
        env.close()


def test_families_that_an_agent_cannot_control_are_left_out_and_refused_by_name():
    assert arena.steered(TASK) == ["alone", "beside"]
    with pytest.raises(InputError, match=r'families: found "short"; allowed: alone, beside'):
        arena.TaskEnv(TASK, families=["short"])


def test_equal_seeds_give_equal_episodes_and_others_draw_others():
    env = arena.TaskEnv(TASK, families=["alone"], step="100 ms")
    (first, rewards, end), (again, same, last), (other, _, _) = (episode(env, seed) for seed in (3, 3, 4))
    assert first["draw"] == again["draw"] != other["draw"]
    assert rewards == same
    assert end["run"].digest == last["run"].digest
    assert end["score"] == last["score"]


@pytest.mark.parametrize("family", ["alone", "beside"])
def test_the_score_is_that_of_the_table(family):
    env = arena.TaskEnv(TASK, families=[family], step="100 ms")
    _, _, info = episode(env, 5)
    draw = env._draw
    usual = ackclock.run(draw.scenario("cubic", {}), seed=draw.seed)
    found = terms(TASK, draw, frames(info["run"]), frames(usual))
    assert info["terms"] == found
    assert info["score"] == combined(TASK, found) > 0
    assert set(found) == set(draw.family.counts)
    # the agent controls the entry's flow, whatever its position
    assert info["run"].scenario.flows[draw.groups[0][0]].congestion_control == "custom:agent"


def test_the_reward_is_that_of_the_environment():
    given = []

    def kept(step, best):
        given.append(power(step, best))
        return given[-1]

    _, rewards, _ = episode(arena.TaskEnv(TASK, families=["alone"], step="100 ms", reward=kept), 5)
    _, usual, _ = episode(arena.TaskEnv(TASK, families=["alone"], step="100 ms"), 5)
    assert rewards == usual == given


def test_hundreds_of_runs_draw_from_the_task():
    envs = VectorEnv(arena.paths("satellite", ["cell", "radio"]), num_envs=4, step="100 ms", jobs=1)
    envs.reset(seed=1)
    observations, *_ = envs.step(np.zeros((4, 1), dtype=np.float32))
    assert observations.shape == (4, 5)
    assert len({envs.digest(n) for n in range(4)}) == 4
    # in the shipped tasks the entry is the first group, which the environment controls
    for name in arena.built_in():
        task = arena.load(name)
        for draw in arena.drawn(task, "any", 1):
            assert draw.family.id not in arena.steered(task) or draw.groups[0] == (0,)
