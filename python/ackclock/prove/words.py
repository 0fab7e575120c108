"""Results over all cases, as sentences."""

from __future__ import annotations

from ackclock.prove.adversary import Adversary
from ackclock.prove.cases import Cases, pattern
from ackclock.prove.numbers import Comparison, compare, summary
from ackclock.prove.proof import Proof


def sentences(proof: Proof) -> list[str]:
    """Return sentences about each target and about each pair of targets."""
    made = [
        _of_target(target.name, cases, proof.adversary)
        for target, cases in zip(proof.targets, proof.cases, strict=True)
    ]
    names = [target.name for target in proof.targets]
    for i in range(len(names)):
        for j in range(i + 1, len(names)):
            found = compare((names[i], names[j]), proof.cases[i], proof.cases[j])
            if found is None:
                made.append(
                    f"{names[i]} and {names[j]}: no comparison case by case, for the packets differ that are asked about."
                )
            else:
                made += _of_two(found, proof.cases[i], proof.adversary)
    return made


def case(answers: int, asked: int, adversary: Adversary) -> str:
    """Return a case as text."""
    if adversary.name == "start":
        return f"start at {answers} ticks"
    if not answers:
        return "none"
    return pattern(answers, max(min(asked, adversary.first), answers.bit_length()))


def _of_target(name: str, cases: Cases, adversary: Adversary) -> str:
    found = summary(cases)
    text = f"{name}: {found.cases:,} cases, {_s(found.least_s)} to {_s(found.worst_s)}, median {_s(found.median_s)}, mean {_s(found.mean_s)}"
    text += f"; worst: {case(found.worst, found.asked[1], adversary)}"
    text += f"; {found.unfinished:,} do not complete" if found.unfinished else ""
    text += f"; timeouts in {found.with_timeouts:,}" if found.with_timeouts else "; no timeout in any"
    text += f"; queues dropped packets in {found.queue_lost:,}." if found.queue_lost else "; queues dropped none."
    return text


def _of_two(found: Comparison, cases: Cases, adversary: Adversary) -> list[str]:
    first, second, total = found.first, found.second, f"{found.cases:,}"

    def shown(answers: int | None) -> str:
        return "" if answers is None else case(answers, int(cases["asked"].max()), adversary)

    made = []
    if found.faster == 0:
        made.append(
            f"Proven: {first} is never faster than {second} in all {total} cases (slower in {found.slower:,}, by up to {_ms(found.most_slower_s)})."
        )
    else:
        made.append(
            f'Refuted: "{first} is never faster than {second}": it is in {found.faster:,} of {total} cases, by up to {_ms(found.most_faster_s)}; '
            f"the simplest: {shown(found.smallest_faster)}."
        )
    if found.slower == 0:
        made.append(
            f"Proven: {first} is never slower than {second} in all {total} cases (faster in {found.faster:,}, by up to {_ms(found.most_faster_s)})."
        )
    else:
        made.append(
            f'Refuted: "{first} is never slower than {second}": it is in {found.slower:,} of {total} cases, by up to {_ms(found.most_slower_s)}; '
            f"the simplest: {shown(found.smallest_slower)}."
        )
    return made


def _s(value: float) -> str:
    return "no completion" if value == float("inf") else f"{value:.4f} s"


def _ms(value: float) -> str:
    return "the other does not complete" if value == float("inf") else f"{value * 1e3:.4g} ms"
