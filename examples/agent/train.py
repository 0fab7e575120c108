"""Trains a policy on randomly drawn paths, 256 runs at a time, and compares it with a fixed rule on unseen paths.

    pip install 'ackclock[gym]' cma
    python train.py

Writes weights.json, which controller.py reads: `ackclock evaluate controller.py:Learned --quick`.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import ackclock
from ackclock.gym import VectorEnv

ENVS, CANDIDATES, GENERATIONS, STEPS = 256, 16, 60, 250
STEP = "20 ms"


def path(random: np.random.Generator) -> ackclock.Scenario:
    """Draw rate, delay, queue and loss of a path, each log-uniformly."""

    def between(low: float, high: float) -> float:
        return float(low * (high / low) ** random.random())

    link = {
        "rate": f"{between(2, 50):.3f} Mbit/s",
        "delay": f"{between(5, 60):.3f} ms",
        "queue": {"kind": "drop-tail", "limit": f"{between(0.5, 4):.2f} BDP"},
        "loss": {"kind": "bernoulli", "p": f"{between(0.001, 1):.4f} %"},
    }
    return ackclock.Scenario.from_dict({"duration": "5 s", "network": {"bottleneck": link}, "flows": [{}]})


def played(policy, seed: int) -> np.ndarray:
    """Return the mean reward of each run. All candidates get the same paths, because the draws depend only on the
    seed.
    """
    draws = [path(np.random.default_rng([seed, n])) for n in range(ENVS // CANDIDATES)]
    envs = VectorEnv([draws[n // CANDIDATES] for n in range(ENVS)], num_envs=ENVS, step=STEP)
    observation, _ = envs.reset(seed=seed)
    total = np.zeros(ENVS)
    for _ in range(STEPS - 1):
        observation, reward, *_ = envs.step(policy(observation))
        total += reward
    return total / STEPS


def learned(weights: np.ndarray):
    """Return the policy in which each run uses its candidate's weights, of shape (CANDIDATES, 6) or (1, 6)."""
    each = np.resize(weights, (ENVS, 6))
    return lambda seen: 0.3 * np.tanh((each[:, :5] * np.minimum(seen, 4)).sum(axis=1) + each[:, 5])[:, None]


def fixed(seen: np.ndarray) -> np.ndarray:
    """Increase the window while the RTT is less than a quarter above its minimum; otherwise decrease it."""
    return np.where(seen[:, 1:2] < 0.25, 0.1, -0.1)


def main() -> None:
    import cma

    search = cma.CMAEvolutionStrategy(np.zeros(6), 1.0, {"popsize": CANDIDATES, "seed": 1, "verbose": -9})
    for generation in range(GENERATIONS):
        asked = search.ask()
        # run n has path n // CANDIDATES and candidate n % CANDIDATES
        scores = played(learned(np.array(asked)), seed=generation).reshape(-1, CANDIDATES).mean(axis=0)
        search.tell(asked, (-scores).tolist())
        if generation % 10 == 9:
            print(f"generation {generation + 1}: mean reward {scores.mean():.3f}, best {scores.max():.3f}")
    best = search.result.xfavorite
    Path("weights.json").write_text(json.dumps([round(float(w), 4) for w in best]) + "\n", encoding="utf-8")
    held = {
        name: np.concatenate([played(policy, seed).reshape(-1, CANDIDATES)[:, 0] for seed in range(10_000, 10_012)])
        for name, policy in (("fixed rule", fixed), ("learned", learned(best[None])))
    }
    for name, rewards in held.items():
        print(f"{name}: mean reward {rewards.mean():.3f} on {len(rewards)} paths that were not trained on")
    better = held["learned"] - held["fixed rule"]
    half = 1.97 * better.std(ddof=1) / len(better) ** 0.5
    print(f"path by path: {better.mean():+.3f} +- {half:.3f}")


if __name__ == "__main__":
    main()
