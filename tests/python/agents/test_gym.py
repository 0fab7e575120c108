"""Tests for the Gymnasium environment: each episode is a run."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

import ackclock
from ackclock.errors import ControllerError, InputError, ScenarioError

gymnasium = pytest.importorskip("gymnasium")
env_checker = pytest.importorskip("gymnasium.utils.env_checker")

from ackclock.gym import Env, Step  # noqa: E402


def scenario(**flow: object) -> ackclock.Scenario:
    link = {"rate": "10 Mbit/s", "delay": "20 ms", "queue": {"kind": "drop-tail", "limit": "2 BDP"}}
    link["loss"] = {"kind": "bernoulli", "p": "0.1 %"}
    network = {"bottleneck": link}
    return ackclock.Scenario.from_dict({"duration": "3 s", "network": network, "flows": [flow]})


def episode(env, policy, seed=3):
    observation, info = env.reset(seed=seed)
    seen, rewards, told = [observation], [], [info]
    while True:
        observation, reward, terminated, truncated, info = env.step(policy(observation, info))
        if terminated or truncated:
            return seen, rewards, told, info["run"], terminated
        seen.append(observation)
        rewards.append(reward)
        told.append(info)


def test_it_is_an_environment_as_gymnasium_wants_it():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make("ackclock/Flow-v0", scenario=scenario(), step="100 ms", disable_env_checker=True)
        env_checker.check_env(env.unwrapped, skip_render_check=True)
        assert np.isfinite(env.observation_space.high).all()
        env.close()
    with gymnasium.make("ackclock/Flow-v0", step="1 s") as env:  # as in the package's first scenario
        assert env.reset(seed=1)[1]["now_s"] > 1


def test_equal_seeds_and_actions_are_equal_runs():
    def policy(observation, _):
        return [0.3 if observation[1] < 0.3 else -0.3]

    first, second = (episode(Env(scenario(), step="rtt"), policy) for _ in range(2))
    assert np.array_equal(first[0], second[0])
    assert first[3].digest == second[3].digest
    assert first[1] == second[1]
    assert episode(Env(scenario(), step="rtt"), policy, seed=4)[3].digest != first[3].digest


def test_steps_add_up_to_the_run():
    env = Env(scenario(), step="50 ms")
    _, _, told, run, terminated = episode(env, lambda *_: [0.0])
    assert not terminated
    assert 40 < len(told) < 60
    got = sum(info["throughput_bps"] * info["seconds"] / 8 for info in told)
    assert got <= run.flows["bytes_acked"][0]
    assert got == pytest.approx(run.flows["bytes_acked"][0], rel=0.05)
    assert all(info["seconds"] >= 0.05 for info in told)
    assert {info["cwnd"] for info in told} == {10.0}, "nobody else changes the window"


def test_the_window_is_what_the_agent_makes_of_it():
    told = episode(Env(scenario(), step="100 ms"), lambda _, info: [1.0 if info["cwnd"] < 40 else -1.0])[2]
    windows = [info["cwnd"] for info in told]
    assert windows[:4] == [10, 20, 40, 20]
    assert set(windows[2:]) == {20, 40}


def test_a_complete_transfer_terminates():
    flow = {"workload": {"kind": "transfer", "bytes": "200 kB"}}
    *_, run, terminated = episode(Env(scenario(**flow), step="50 ms"), lambda *_: [0.2])
    assert terminated
    assert run.flows["bytes_acked"][0] == 200_000


def test_a_named_flow_terminates_and_the_last_step_tells_the_rest():
    flow = {"name": "mine", "workload": {"kind": "transfer", "bytes": "200 kB"}}
    env = Env(scenario(**flow), step="70 ms")
    _, info = env.reset(seed=3)
    got, ended = 0.0, False
    while not ended:
        got += info["throughput_bps"] * info["seconds"] / 8
        observation, reward, terminated, truncated, info = env.step([0.2])
        ended = terminated or truncated
    assert (terminated, truncated) == (True, False)
    assert env.observation_space.contains(observation)
    assert reward > 0.0
    got += info["throughput_bps"] * info["seconds"] / 8
    assert got == pytest.approx(200_000, abs=15_000), "but for the first window, before the first step began"
    flows = info["run"].flows
    assert flows.select("name", "congestion_control").row(0) == ("mine", "custom:agent")
    assert (info["delivered"], info["now_s"]) > (0, 0)


def test_leaving_early_leaves_no_thread():
    before = threading.active_count()
    env = Env(scenario(), step="50 ms")
    for _ in range(3):
        env.reset(seed=1)
        env.step([0.1])
    env.close()
    assert threading.active_count() == before
    with pytest.raises(InputError, match="found no episode"):
        env.step([0.0])


def test_rewards_are_ones_own():
    def delivered(step: Step, best_bps: float) -> float:
        assert step.throughput_bps <= best_bps
        return float(step.delivered)

    _, rewards, told, *_ = episode(Env(scenario(), step="100 ms", reward=delivered), lambda *_: [0.0])
    assert rewards == [info["delivered"] for info in told[1:]]


def test_what_cannot_be_is_one_line():
    with pytest.raises(ScenarioError, match=r"flows\.0: found 2 x bulk; allowed: one flow"):
        Env(scenario(count=2))
    with pytest.raises(ScenarioError, match="1 x voice"):
        Env(scenario(workload={"kind": "voice"}))
    with pytest.raises(InputError, match="group: found 3; allowed: 0 to 0"):
        Env(scenario(), group=3)
    with pytest.raises(InputError, match="step"):
        Env(scenario(), step="0 s")
    with pytest.raises(InputError, match=r'^step: found "rtd"; allowed: "rtt", or a duration'):
        Env(scenario(), step="rtd")
    with pytest.raises(InputError, match="without a single step"):
        Env(scenario(), step="10 s").reset(seed=1)
    env = Env(scenario(), step="100 ms")
    env.reset(seed=1)
    with pytest.raises(InputError, match="action: found 2 numbers; allowed: one"):
        env.step([0, 0])
    with pytest.raises(InputError, match="action: found 7; allowed: -1 to 1"):
        env.step([7.0])
    env.close()


def test_an_error_in_the_run_comes_to_the_agent(monkeypatch):
    import ackclock._agents.gym as gym

    env = Env(scenario(), step="100 ms")
    env.reset(seed=1)
    monkeypatch.setattr(gym, "LARGEST", -1.0)
    with pytest.raises(ControllerError, match="on_control"):
        [env.step([0.0]) for _ in range(100)]
