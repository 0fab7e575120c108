"""A program that writes controllers, without any model: random mutations of the constants of `cubic.c`, scored by `ackclock arena serve`.

    python examples/arena/search.py --out found

Harm outweighs the score: every percent that CUBIC gets less beside a mutant than beside Reno costs 20 points. A mutant
is scored on one draw of each family, and on four of the family beside CUBIC. Unless it is far behind the best mutant
there, both are compared on six times as many draws; the better one becomes the best mutant, and a successful step is
repeated once. A mutant that is harmless on these draws may do harm on others. The last best mutants are therefore
scored on the draws of a second salt, newest first. The winner is the first that leaves CUBIC as much as Reno does
there, or else the best one.

`--seconds` is CPU time; Ctrl-C ends the search earlier. Finally the winner and the controller to be beaten are scored
on draws of a third salt, which no mutant has seen. The output folder gets `curve.csv`, `curve.png`, `winner.c` and
`held-out.json`.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import random
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TEXT = (Path(__file__).parent / "cubic.c").read_text(encoding="utf-8")
RANGES = {
    "C": (50, 20000), "BETA": (512, 1000), "BETA_SHORT": (512, 1024), "SHORT": (1, 1024), "CONVERGE": (700, 1024), "FRIENDLY": (256, 4096), "LEAVE": (16, 1024),
    "FIRST": (10, 64), "EAGER": (1, 512), "CALM": (64, 65536),
}  # fmt: skip
"""Minimum and maximum of each constant."""

HARM = 20
"""Penalty in points for each percent that CUBIC loses."""

NEAR = 2
"""Maximum deficit in points on the few draws up to which a mutant is still compared on more."""

LAST = 6
"""Maximum number of mutants scored on the draws of the second salt."""


class Server:
    """A process of `ackclock arena serve` with a salt, which scores texts."""

    def __init__(self, task: str, salt: str, beat: str, jobs: int) -> None:
        command = [sys.executable, "-m", "ackclock", "arena", "serve", "--salt", salt, "--jobs", str(jobs)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self._task, self._beat = task, beat
        self.cpu_s = 0.0

    def score(self, text: str, tier: str) -> dict[str, Any]:
        """Return the server's answer; a text that does not compile, or whose runs cannot be repeated, has a score of
        zero.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"task": self._task, "entry": {"language": "c", "text": text}, "tier": tier, "beat": self._beat}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        self.cpu_s += answer.get("cpu_s", 0.0)
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def value(answer: Mapping[str, Any]) -> float:
    """Return the objective of the search: the score minus the penalty for CUBIC's deficit beside the mutant."""
    return 0.0 if answer.get("score") is None else float(answer["score"]) - HARM * lacks(answer)


def lacks(answer: Mapping[str, Any]) -> float:
    """Return how much less CUBIC gets beside the mutant than beside Reno, percent."""
    return 100 * max(float(answer["reno"]["left_to_others"]) - float(answer["left_to_others"]), 0.0)


def constants(text: str) -> dict[str, int]:
    return {name: int(found) for name, found in re.findall(r"^#define (\w+) +(\d+)", text, re.M) if name in RANGES}


def with_constants(values: Mapping[str, int]) -> str:
    return re.sub(
        r"^(#define (\w+) +)\d+", lambda m: f"{m[1]}{values[m[2]]}" if m[2] in values else m[0], TEXT, flags=re.M
    )


def mutant(values: Mapping[str, int], chance: random.Random) -> dict[str, int]:
    """Return values with one to three constants changed, each by a random factor or to a random value of its range,
    so that a mechanism that is off can be switched on in one step.
    """
    found = dict(values)
    for name in chance.sample(sorted(RANGES), chance.randint(1, 3)):
        low, high = RANGES[name]
        if chance.random() < 0.5:
            drawn = math.exp(chance.uniform(math.log(low), math.log(high)))
        else:
            drawn = max(found[name], low) * math.exp(chance.gauss(0, 0.3))
        found[name] = round(min(max(drawn, low), high))
    return found


Mutant = dict[str, int]


def further(values: Mapping[str, int], before: Mapping[str, int]) -> Mutant:
    """Return the values after repeating the last successful step."""
    found = {name: value * value / before[name] if before[name] else value for name, value in values.items()}
    return {name: round(min(max(value, RANGES[name][0]), RANGES[name][1])) for name, value in found.items()}


def searched(server: Server, chance: random.Random, seconds: float, file: Path) -> tuple[list[Mutant], int, float]:
    """Return the successive best constants, the number of mutants examined, and the score to be beaten on the same
    draws.
    """
    best = [constants(TEXT)]
    answers = [server.score(with_constants(best[0]), tier) for tier in ("quick", "medium")]
    quick, medium = (value(answer) for answer in answers)
    bar = float(answers[1]["beat_score"])
    looked, last, helped = 1, answers[1], False
    with file.open("w", newline="", encoding="utf-8") as opened:
        curve = csv.writer(opened)
        curve.writerow(["evaluations", "cpu_s", "quick", "value", "score", "left", *RANGES])

        def written() -> None:
            told = [round(quick, 2), round(medium, 2), round(last["score"], 2), last["left_to_others"]]
            curve.writerow([looked, round(server.cpu_s, 1), *told, *best[-1].values()])
            opened.flush()

        written()
        try:
            while server.cpu_s < seconds:
                tried = further(best[-1], best[-2]) if helped and len(best) > 1 else mutant(best[-1], chance)
                looked, helped = looked + 1, False
                first = value(server.score(with_constants(tried), "quick"))
                if first <= quick - NEAR:
                    continue
                answer = server.score(with_constants(tried), "medium")
                if value(answer) <= medium:
                    continue
                best.append(tried)
                quick, medium, last, helped = first, value(answer), answer, True
                written()
                print(
                    f"{looked} mutants, {server.cpu_s:.0f} s: {last['score']:.1f}, lacks {lacks(last):.2f} %",
                    flush=True,
                )
        except KeyboardInterrupt:
            print(f"{looked} mutants, {server.cpu_s:.0f} s: stopped", flush=True)
    return best, looked, bar


def chosen(server: Server, best: Sequence[Mutant]) -> tuple[Mutant, list[dict[str, Any]]]:
    """Return the newest mutant that leaves CUBIC as much as Reno does on the server's draws, or else the best one,
    with the server's answers.
    """
    told: list[tuple[float, Mutant]] = []
    said = []
    for one in best[: -LAST - 1 : -1]:
        answer = server.score(with_constants(one), "full")
        told.append((value(answer), one))
        if answer.get("score") is None:
            continue
        said.append({"constants": one, **{key: answer[key] for key in ("tier", "score", "left_to_others", "reno")}})
        print(f"checked: {answer['score']:.1f}, lacks {lacks(answer):.2f} %", flush=True)
        if not lacks(answer):
            return one, said
    return max(told, key=lambda pair: pair[0])[1], said


def drawn(file: Path, looked: int, bar: float, beat: str) -> None:
    """Draw `curve.png` from the numbers in `file`."""
    import matplotlib.pyplot as plt

    with file.open(encoding="utf-8") as opened:
        rows = [(int(row["evaluations"]), float(row["score"])) for row in csv.DictReader(opened)]
    rows.append((looked, rows[-1][1]))
    figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    ax.step([n for n, _ in rows], [score for _, score in rows], where="post", color="#0072B2", label="the best so far")
    ax.axhline(bar, color="#D55E00", lw=1, ls="--", label=beat)
    ax.set_xlabel("mutants looked at")
    ax.set_ylabel("score, draws of the search")
    ax.legend(frameon=False, loc="lower right")
    figure.savefig(file.with_suffix(".png"), dpi=150)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="satellite")
    parser.add_argument("--beat", default="bbr3", help="the controller that is to be beaten")
    parser.add_argument("--seconds", type=float, default=800, help="CPU time of the search")
    parser.add_argument("--jobs", type=int, default=2, help="threads")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--salt", default="search", help="of the draws of the search")
    parser.add_argument("--check", default="check", help="of the draws by which one of the last mutants is chosen")
    parser.add_argument("--held-out", default="unseen", help="of the draws at the end")
    parser.add_argument("--tier", default="full", help="at the end")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    chance = random.Random(asked.seed)
    server = Server(asked.task, asked.salt, asked.beat, asked.jobs)
    found_all, looked, bar = searched(server, chance, asked.seconds, asked.out / "curve.csv")
    server.close()
    checker = Server(asked.task, asked.check, "reno", asked.jobs)  # every mutant beats Reno, so no check is cut short
    best, checked = chosen(checker, found_all)
    checker.close()
    drawn(asked.out / "curve.csv", looked, bar, asked.beat)
    (asked.out / "winner.c").write_text(with_constants(best), encoding="utf-8")
    judge = Server(asked.task, asked.held_out, asked.beat, asked.jobs)
    found = judge.score(with_constants(best), asked.tier)
    began = judge.score(TEXT, asked.tier)
    judge.close()
    told = {
        "evaluations": looked, "search_cpu_s": round(server.cpu_s, 1), "check_cpu_s": round(checker.cpu_s, 1), "bar": bar, "checked": checked, "held_out_cpu_s": round(judge.cpu_s, 1), "constants": best, "began": began, "winner": found,
    }  # fmt: skip
    (asked.out / "held-out.json").write_text(json.dumps(told, indent=1), encoding="utf-8")
    print(
        f"held out: {began.get('score')} before, {found.get('score')} after {looked} mutants; {asked.beat}: {found.get('beat_score')}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
