"""Sentences about short responses, proven or refuted by all patterns of losses, on a path and on its neighbours; and their page.

`python tools/proofs.py` runs every sentence and writes `measured/proofs.json`; `python tools/proofs.py --replay` adds what the Linux kernel does
in worst, median and drawn cases; `python tools/proofs.py --page` makes `docs/proofs.md` of what was written.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ackclock import Scenario, prove
from ackclock.prove.cases import pattern
from ackclock.sweep.task import engine_identity

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "measured" / "proofs.json"
PAGE = ROOT / "docs" / "proofs.md"

NEIGHBOURS: dict[str, dict[str, Any]] = {
    "the path": {},
    "Reno": {"controller": "reno"},
    "9 segments": {"segments": 9},
    "11 segments": {"segments": 11},
    "12 segments": {"segments": 12},
    "1 Mbit/s": {"rate": "1 Mbit/s"},
    "100 Mbit/s": {"rate": "100 Mbit/s"},
    "RTT 10 ms": {"delay": "5 ms"},
    "RTT 200 ms": {"delay": "100 ms"},
    "initial window 3": {"initial_window": 3},
    "no TLP": {"tlp": False},
    "no RACK": {"detection": "dupthresh"},
}
"""What differs from the path."""


def path(change: dict[str, Any]) -> Scenario:
    """A response of ten segments at 10 Mbit/s and 50 ms, with these changes."""
    given = {
        "segments": 10,
        "rate": "10 Mbit/s",
        "delay": "25 ms",
        "controller": "cubic",
        "profile": "linux-6",
        **change,
    }
    flow: dict[str, Any] = {"profile": given["profile"], "congestion_control": given["controller"]}
    if "recovery" in given:
        flow["recovery"] = given["recovery"]
    stack = {key: given[key] for key in ("initial_window", "tlp", "detection", "sack") if key in given}
    return Scenario.from_dict(
        {
            "duration": "120 s",
            "network": {
                "bottleneck": {
                    "rate": given["rate"],
                    "delay": given["delay"],
                    "queue": {"kind": "drop-tail", "limit": "1000 packets"},
                }
            },
            "flows": [
                {
                    **flow,
                    **({"stack": stack} if stack else {}),
                    "workload": {"kind": "transfer", "bytes": f"{1448 * given['segments']} bytes"},
                }
            ],
        }
    )


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """What is said of all cases."""

    study: str
    id: str
    text: str
    arms: Sequence[tuple[str, dict[str, Any]]]
    breaks: Callable[[Sequence[prove.Cases]], Any]
    """Which cases break it, as an array of flags; by the cases of the arms."""
    magnitude: Callable[[Sequence[prove.Cases]], str]
    without: Sequence[str] = ()
    """Neighbours that make no sense for it."""


def slower(cases: Sequence[prove.Cases]) -> Any:
    """The first is slower than the second."""
    return prove.numbers.times(cases[0]) > prove.numbers.times(cases[1])


def faster(cases: Sequence[prove.Cases]) -> Any:
    """The first is faster than the second."""
    return prove.numbers.times(cases[0]) < prove.numbers.times(cases[1])


def timeouts(cases: Sequence[prove.Cases]) -> Any:
    """A timeout strikes."""
    return cases[0]["timeouts"] > 0


def last_is_not_worst(cases: Sequence[prove.Cases]) -> Any:
    """Of cases with one loss: it costs more than that of the last segment."""
    took, single = prove.numbers.times(cases[0]), cases[0].yes == 1
    last = took[single & (cases[0]["answers"] == cases[0]["answers"].max() // 2 + 1)]
    return single & (took > last.max())


def compared(cases: Sequence[prove.Cases]) -> str:
    """How often and by how much."""
    found = prove.compare(("a", "b"), cases[0], cases[1])
    assert found is not None
    return f"faster in {found.faster}, slower in {found.slower} of {found.cases}, by up to {found.most_faster_s * 1e3:.4g} and {found.most_slower_s * 1e3:.4g} ms"


def spread(cases: Sequence[prove.Cases]) -> str:
    """From the fastest case to the worst."""
    found = prove.summary(cases[0])
    return f"{found.least_s:.4g} to {found.worst_s:.4g} s, timeouts in {found.with_timeouts} of {found.cases}"


PRR, RFC, HALVING = (
    ("PRR", {"recovery": "prr-rfc9937"}),
    ("RFC 6675", {"recovery": "rfc6675"}),
    ("rate halving", {"recovery": "rate-halving"}),
)
SENTENCES = [
    Sentence(
        study="prr",
        id="P1",
        text="PRR (RFC 9937) is never faster than RFC 6675.",
        arms=(PRR, RFC),
        breaks=faster,
        magnitude=compared,
    ),
    Sentence(
        study="prr",
        id="P2",
        text="PRR (RFC 9937) is never slower than rate halving.",
        arms=(PRR, HALVING),
        breaks=slower,
        magnitude=compared,
    ),
    Sentence(
        study="prr",
        id="P3",
        text="No pattern of lost first transmissions leads to a timeout (PRR).",
        arms=(PRR,),
        breaks=timeouts,
        magnitude=spread,
    ),
    Sentence(
        study="prr",
        id="P4",
        text="With the stack of Linux 3.2, PRR is never slower than rate halving.",
        arms=(
            ("PRR", {"recovery": "prr-linux-3.2", "profile": "linux-3.2"}),
            ("rate halving", {"recovery": "rate-halving", "profile": "linux-3.2"}),
        ),
        breaks=slower,
        magnitude=compared,
        without=("no TLP", "no RACK"),
    ),
    Sentence(
        study="prr",
        id="P5",
        text="SACK never makes a response slower (PRR).",
        arms=(("with SACK", {"recovery": "prr-rfc9937"}), ("without", {"recovery": "prr-rfc9937", "sack": False})),
        breaks=slower,
        magnitude=compared,
        without=("no RACK",),
    ),
    Sentence(
        study="prr",
        id="P6",
        text="RACK and TLP never make a response slower than three duplicate ACKs and timeouts alone (PRR).",
        arms=(
            ("RACK and TLP", {"recovery": "prr-rfc9937"}),
            ("neither", {"recovery": "prr-rfc9937", "tlp": False, "detection": "dupthresh"}),
        ),
        breaks=slower,
        magnitude=compared,
        without=("no TLP", "no RACK"),
    ),
    Sentence(
        study="iw10",
        id="W1",
        text="An initial window of 10 is never slower than one of 3, whatever is lost.",
        arms=(("window 10", {"initial_window": 10}), ("window 3", {"initial_window": 3})),
        breaks=slower,
        magnitude=compared,
        without=("initial window 3",),
    ),
    Sentence(
        study="iw10",
        id="W2",
        text="An initial window of 10 is never slower than one of 3, with the stack of Linux 3.0.",
        arms=(
            ("window 10", {"initial_window": 10, "profile": "linux-3.0"}),
            ("window 3", {"initial_window": 3, "profile": "linux-3.0"}),
        ),
        breaks=slower,
        magnitude=compared,
        without=("initial window 3", "no TLP", "no RACK"),
    ),
    Sentence(
        study="slow_start",
        id="S1",
        text="Of all single losses, that of the last segment costs most.",
        arms=(("CUBIC", {}),),
        breaks=last_is_not_worst,
        magnitude=spread,
    ),
    Sentence(
        study="slow_start",
        id="S2",
        text="Of all single losses, that of the last segment costs most, with the stack of Linux 3.2.",
        arms=(("CUBIC", {"profile": "linux-3.2"}),),
        breaks=last_is_not_worst,
        magnitude=spread,
        without=("no TLP", "no RACK"),
    ),
]


def judged(sentence: Sentence, change: dict[str, Any]) -> dict[str, Any]:
    """A sentence on one path."""
    segments = change.get("segments", 10)
    targets = [prove.Target(name=name, scenario=path({**change, **arm})) for name, arm in sentence.arms]
    made = prove.prove(targets, prove.Adversary(name="losses", first=segments), jobs=os.cpu_count() or 1)
    broken = sentence.breaks(made.cases)
    holds = not broken.any()
    simplest = None if holds else made.cases[0].answers(prove.numbers.simplest(made.cases[0], broken))
    return {
        "holds": holds,
        "cases": len(made.cases[0]),
        "broken": int(broken.sum()),
        "simplest": None if simplest is None else pattern(simplest, segments),
        "numbers": sentence.magnitude(made.cases),
        "roots": [cases.root for cases in made.cases],
    }


def replayed(sentence: Sentence) -> list[dict[str, Any]]:
    """What the kernel does in worst, median and drawn cases of the path."""
    targets = [prove.Target(name=name, scenario=path(arm)) for name, arm in sentence.arms]
    made = prove.prove(targets, prove.Adversary(name="losses", first=10), jobs=os.cpu_count() or 1)
    rows = [prove.replay(made, target, cases, seed=1) for target, cases in zip(made.targets, made.cases, strict=True)]
    return [one.to_json() for row in rows for one in row]


def measure(*, replay: bool) -> None:
    """Run every sentence, and write what came of it."""
    record: dict[str, Any] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for sentence in SENTENCES:
        one = record.setdefault(sentence.id, {})
        if replay:
            if all(arm.get("profile", "linux-6") == "linux-6" for _, arm in sentence.arms):
                one["kernel"] = replayed(sentence)
        else:
            one.update(
                study=sentence.study,
                text=sentence.text,
                arms=[name for name, _ in sentence.arms],
                engine=engine_identity(),
            )
            one["paths"] = {
                name: judged(sentence, change) for name, change in NEIGHBOURS.items() if name not in sentence.without
            }
        broken = [name for name, found in one.get("paths", {}).items() if not found["holds"]]
        print(sentence.id, "proven" if not broken else f"breaks on {', '.join(broken)}", flush=True)
        RECORD.write_text(json.dumps(record, indent=1) + "\n")


def page() -> str:
    """The page of the record."""
    record = json.loads(RECORD.read_text())
    lines = [
        "# Sentences that are proven",
        "",
        "Each sentence is about all patterns of losses among the first transmissions of a response: ten segments at 10 Mbit/s and 50 ms behind a deep",
        "queue, CUBIC, the stack of Linux 6 where nothing else is said. Evidence: all patterns; there is no interval. A sentence is looked at on the neighbours of the path, too:",
        "Reno; 9, 11 and 12 segments; a tenth of the rate and ten times it; 10 and 200 ms; an initial window of 3; without TLP; without RACK. `python tools/proofs.py` makes this page;",
        "[how to prove a sentence of your own](how-to/prove.md).",
        "",
        "| sentence | verdict | on the path | the kernel |",
        "|---|---|---|---|",
    ]
    for id, one in record.items():
        paths = one["paths"]
        broken = {name: found for name, found in paths.items() if not found["holds"]}
        if not broken:
            verdict = f"**proven**, in all patterns on all {len(paths)} paths"
        elif "the path" in broken:
            verdict = f"**refuted** by pattern {broken['the path']['simplest']}; holds on {len(paths) - len(broken)} of {len(paths)} paths"
        else:
            where = "; ".join(
                f"{name} ({found['broken']} of {found['cases']}, the simplest {found['simplest']})"
                for name, found in broken.items()
            )
            verdict = f"**proven** on the path; breaks with {where}"
        kernel = one.get("kernel")
        if kernel:
            equal = sum(row["equal"] for row in kernel)
            said = f"Linux {kernel[0]['kernel']}: {equal} of {len(kernel)} cases equal, segment by segment"
        elif kernel is None:
            said = "no kernel that builds has this stack"
        else:
            said = "not replayed"
        lines.append(f"| {one['study']} {id}: {one['text']} | {verdict} | {paths['the path']['numbers']} | {said} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replay", action="store_true", help="Ask the Linux kernel, too.")
    parser.add_argument("--page", action="store_true", help="Only make the page.")
    options = parser.parse_args()
    if not options.page:
        measure(replay=options.replay)
    PAGE.write_text(page())
