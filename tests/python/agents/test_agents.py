"""Tests for environments with many runs and many agents: each agent observes its own run, on any number of threads."""

from __future__ import annotations

import importlib.util
import json
import warnings
from dataclasses import fields

import numpy as np
import pytest
from conftest import ROOT

import ackclock
from ackclock.errors import InputError, ScenarioError, UnavailableError
from ackclock.stats import mean_interval

gymnasium = pytest.importorskip("gymnasium")

from ackclock.gym import Env, Steps, VectorEnv  # noqa: E402

LINK = {
    "rate": "10 Mbit/s",
    "delay": "10 ms",
    "queue": {"kind": "drop-tail", "limit": "1 BDP"},
    "loss": {"kind": "bernoulli", "p": "0.2 %"},
}


def scenario(*flows: dict[str, object], duration: str = "1 s") -> ackclock.Scenario:
    return ackclock.Scenario.from_dict(
        {"duration": duration, "network": {"bottleneck": LINK}, "flows": list(flows) or [{}]}
    )


def played(envs: VectorEnv, steps: int, seed: int = 7):
    """Return observations, rewards and digests under actions that depend on the observations."""
    seen, _ = envs.reset(seed=seed)
    all_seen, rewards, ends = [seen], [], []
    for _ in range(steps):
        action = np.where(seen[:, 1:2] < 0.5, 0.3, -0.3)
        seen, reward, terminated, truncated, _ = envs.step(np.repeat(action, envs.single_action_space.shape[0], axis=1))
        all_seen.append(seen)
        rewards.append(reward)
        ends.append(terminated | truncated)
    return np.array(all_seen), np.array(rewards), np.array(ends), [envs.digest(at) for at in range(envs.num_envs)]


def test_threads_and_neighbours_change_nothing():
    one = played(VectorEnv(scenario(), num_envs=5, jobs=1), 60)
    two = played(VectorEnv(scenario(), num_envs=5, jobs=2), 60)
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a, b)
    assert len(set(one[3])) == 5
    assert one[0].shape == (61, 5, 5)
    assert np.isfinite(one[1]).all()
    assert played(VectorEnv(scenario(), num_envs=5, jobs=2), 60, seed=8)[3] != one[3]


def test_a_run_that_is_over_begins_anew_at_the_next_step():
    envs = VectorEnv(scenario(duration="100 ms"), num_envs=2, step="10 ms")
    seen, rewards, ends, _ = played(envs, 25)
    # the reset performs the first of ten steps; the step after the last one starts a new run without a reward
    assert [step for step, end in enumerate(ends) if end.all()] == [8, 18]
    assert (rewards[[9, 19]] == 0).all()
    assert (rewards[[5, 15]] != 0).all()
    assert (seen[10] == seen[1] * 0).all() or (seen[10, :, 0] == 0).all(), "a handshake again"


def test_what_is_told_adds_up_to_what_the_flow_did():
    plain = scenario({"workload": {"kind": "transfer", "bytes": "200 KB"}}, duration="20 s")
    envs = VectorEnv(plain, num_envs=1, step="50 ms")
    _, info = envs.reset(seed=1)
    acked = info["throughput_bps"] * info["seconds"] / 8
    while True:
        _, _, terminated, truncated, info = envs.step(np.full((1, 1), 0.1))
        acked += info["throughput_bps"] * info["seconds"] / 8
        if terminated.any() or truncated.any():
            break
    assert terminated.all()
    assert not truncated.any()
    assert acked[0] == pytest.approx(200_002), "SYN and FIN are acknowledged as a byte each"
    assert set(info) == {field.name for field in fields(Steps)}


def test_own_numbers_history_and_drawn_scenarios():
    drawn = []

    def path(random: np.random.Generator) -> ackclock.Scenario:
        rate = float(random.uniform(2, 20))
        drawn.append(rate)
        return scenario().set("network.bottleneck.rate", f"{rate:.3f} Mbit/s")

    envs = VectorEnv(
        path,
        num_envs=3,
        step="100 ms",
        history=4,
        observe=lambda steps: np.stack([steps.rtt_s, steps.cwnd], axis=-1),
        bounds=(np.zeros(2), np.array([1.0, 1e6])),
        reward=lambda steps: -steps.lost,
        paced=True,
    )
    assert envs.single_action_space.shape == (2,)
    seen, rewards, _, _ = played(envs, 12)
    assert len(set(drawn)) == len(drawn) == 6, "three runs, begun twice"
    assert seen.shape == (13, 3, 8)
    assert np.array_equal(seen[5, :, :6], seen[4, :, 2:]), "the newest step is last"
    assert (seen[0, :, :6] == 0).all()
    assert (rewards <= 0).all()


def test_pacing_spreads_what_a_window_sends():
    """A window far above the BDP does not fill the queue if the sender paces at half a BDP per RTT, but does at twice that rate."""
    waits = []
    for pace in (-1.0, 1.0):
        envs = VectorEnv(
            scenario(duration="3 s").set("network.bottleneck.loss.p", "0 %"), num_envs=1, step="100 ms", paced=True
        )
        envs.reset(seed=1)
        for step in range(25):
            _, _, _, _, info = envs.step(np.array([[0.7 if step in (3, 4) else 0.0, pace]]))
        waits.append(float(info["rtt_s"][0] - info["min_rtt_s"][0]))
    assert waits[0] < 0.002 < waits[1]


def test_gymnasium_makes_it_and_finds_nothing_wrong():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        envs = gymnasium.make_vec(
            "ackclock/Flow-v0", num_envs=3, vectorization_mode="vector_entry_point", scenario=scenario(), step="20 ms"
        )
        observation, _ = envs.reset(seed=1)
        for _ in range(60):
            assert envs.observation_space.contains(observation)
            observation, reward, terminated, truncated, _ = envs.step(envs.action_space.sample())
            assert reward.shape == terminated.shape == truncated.shape == (3,)
        wrapped = gymnasium.wrappers.vector.RecordEpisodeStatistics(envs)
        wrapped.reset(seed=2)
        done = [wrapped.step(envs.action_space.sample())[4] for _ in range(60)]
        assert any("episode" in info for info in done)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"num_envs": 0}, "number of runs: found 0; allowed: 1 or more"),
        ({"step": "0 s"}, 'step: found "0 s"; allowed: more than "0 s"'),
        ({"step": "rtt"}, 'step: found "rtt"; allowed: a duration'),
        ({"history": 0}, "history: found 0; allowed: 1 or more"),
        ({"scenario": []}, "scenario: found an empty list; allowed: one or more"),
        ({"group": 3}, "group: found 3; allowed: 0 to 0"),
        ({"scenario": "transactions"}, "allowed: one flow with workload bulk, transfer or throttled"),
    ],
)
def test_what_cannot_be_is_refused(options, says):
    with pytest.raises((InputError, ScenarioError)) as refused:
        VectorEnv(**options)
    assert says in str(refused.value)


def test_a_step_needs_an_episode_and_actions_of_its_range():
    envs = VectorEnv(num_envs=2)
    with pytest.raises(InputError, match="found no episode"):
        envs.step(np.zeros((2, 1)))
    envs.reset(seed=1)
    for wrong in (1.5, np.nan):
        with pytest.raises(InputError, match="allowed: -1 to 1"):
            envs.step(np.full((2, 1), wrong))


def test_the_single_environment_sees_the_same_world():
    """Both environments reproduce the constant-window run if no action changes the window."""
    one = Env(scenario(), step="100 ms")
    one.reset(seed=5)
    while True:
        *_, truncated, info = one.step([0.0])
        if truncated:
            break
    envs = VectorEnv(scenario(), num_envs=1, step="100 ms")
    envs.reset()
    envs._bank.begin([(0, scenario(), 5)])
    for _ in range(10):
        envs._bank.play(np.ones((1, 1)))
    assert envs.digest(0) == info["run"].digest


def test_pettingzoo_finds_nothing_wrong_and_each_agent_has_its_flow():
    pytest.importorskip("pettingzoo")
    from pettingzoo.test import parallel_api_test

    from ackclock.gym import ParallelEnv

    short = scenario({"workload": {"kind": "transfer", "bytes": "50 KB"}}, {"start": "100 ms"})
    env = ParallelEnv(short, step="20 ms")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(env, num_cycles=100)
    assert env.possible_agents == ["flow_0", "flow_1"]
    digests = []
    for _ in range(2):
        observations, _ = env.reset(seed=3)
        ended = {}
        while env.agents:
            actions = {name: [0.5 if observations[name][1] < 0.2 else -0.5] for name in env.agents}
            observations, rewards, terminated, truncated, _ = env.step(actions)
            ended |= {name: "complete" for name, is_so in terminated.items() if is_so}
            ended |= {name: "over" for name, is_so in truncated.items() if is_so}
            assert observations.keys() == rewards.keys()
        assert ended == {"flow_0": "complete", "flow_1": "over"}
        digests.append(env.digest())
    assert digests[0] == digests[1]
    with pytest.raises(InputError, match="found no episode"):
        env.step({})


def test_without_pettingzoo_one_line_says_so(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    monkeypatch.delitem(sys.modules, "ackclock._agents.parallel", raising=False)
    with pytest.raises(UnavailableError, match="pip install 'ackclock\\[agents\\]'"):
        ackclock.gym.ParallelEnv  # noqa: B018


@pytest.mark.deep
def test_what_was_trained_is_better_than_a_fixed_rule_on_other_paths(tmp_path):
    """On held-out paths of the training population, the example's policy beats a fixed rule, and its controller plays the same policy."""
    folder = ROOT / "examples" / "agent"
    spec = importlib.util.spec_from_file_location("train", folder / "train.py")
    train = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(train)
    weights = np.array(json.loads((folder / "weights.json").read_text(encoding="utf-8")))[None]
    fixed, learned = (
        np.concatenate(
            [train.played(policy, seed).reshape(-1, train.CANDIDATES)[:, 0] for seed in (20_001, 20_002, 20_003)]
        )
        for policy in (train.fixed, train.learned(weights))
    )
    better = mean_interval(learned - fixed)
    assert better.low > 0
    path = train.path(np.random.default_rng(5)).set("network.bottleneck.loss.p", "0 %")
    envs = VectorEnv(path, num_envs=1, step=train.STEP)
    seen, info = envs.reset(seed=1)
    acked = info["throughput_bps"] * info["seconds"]
    act = lambda seen: train.learned(weights)(np.repeat(seen, train.ENVS, axis=0))[:1]  # noqa: E731
    for _ in range(249):
        seen, _, _, _, info = envs.step(act(seen))
        acked += info["throughput_bps"] * info["seconds"]
    named = path.set("flows.0.congestion_control", f"{folder}/controller.py:Learned")
    (tmp_path / "own.toml").write_text(named.to_toml(), encoding="utf-8")
    alone = ackclock.run(ackclock.load(tmp_path / "own.toml", own_code=True), seed=1)
    assert alone.flows["goodput_bps"][0] == pytest.approx(float(acked[0]) / 5, rel=0.02)
