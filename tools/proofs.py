"""Sentences about short responses, proven or refuted over all loss patterns, on a path and its neighbours; and their pages.

    python tools/proofs.py            # evaluate every case, write measured/proofs/sentences.json and the pages
    python tools/proofs.py --replay   # add the Linux kernel's results in worst, median and drawn cases of the path
    python tools/proofs.py --pages    # only the pages: docs/proofs.md, and a table in the page of each study
    python tools/proofs.py --check    # exit code 1 if a page differs from the record, or the path's cases from the engine

On a study's page the table is between two comments: `<!-- proofs prr -->` and `<!-- . -->`. The kernel's results
are valid only for the cases in which they were obtained, and are dropped when the cases change.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ackclock import Scenario, prove
from ackclock.prove.cases import pattern
from ackclock.sweep.task import engine_identity

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "measured" / "proofs" / "sentences.json"
PAGE = ROOT / "docs" / "proofs.md"
STUDIES = ROOT / "docs" / "studies"
TABLE = re.compile(r"<!-- proofs ([\w-]+) -->\n(.*?)<!-- \. -->", re.DOTALL)

NEIGHBOURS: dict[str, dict[str, Any]] = {
    "the path": {},
    "Reno": {"controller": "reno"},
    "5 segments": {"segments": 5},
    "9 segments": {"segments": 9},
    "11 segments": {"segments": 11},
    "12 segments": {"segments": 12},
    "16 segments": {"segments": 16},
    "1 Mbit/s": {"rate": "1 Mbit/s"},
    "100 Mbit/s": {"rate": "100 Mbit/s"},
    "RTT 10 ms": {"delay": "5 ms"},
    "RTT 200 ms": {"delay": "100 ms"},
    "initial window 3": {"initial_window": 3},
    "no TLP": {"tlp": False},
    "no RACK": {"detection": "dupthresh"},
}
"""Neighbours of the path: name -> changes."""


def path(change: dict[str, Any]) -> Scenario:
    """A ten-segment response over a 10 Mbit/s, 50 ms path, with these changes."""
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
    """A claim about all cases."""

    study: str
    id: str
    text: str
    arms: Sequence[tuple[str, dict[str, Any]]]
    breaks: Callable[[Sequence[prove.Cases]], Any]
    """Function from the arms' cases to an array of flags marking the cases that break the claim."""
    magnitude: Callable[[Sequence[prove.Cases]], str]
    without: Sequence[str] = ()
    """Neighbours for which the claim makes no sense."""


def slower(cases: Sequence[prove.Cases]) -> Any:
    """Whether the first arm is slower than the second, case by case."""
    return prove.numbers.times(cases[0]) > prove.numbers.times(cases[1])


def faster(cases: Sequence[prove.Cases]) -> Any:
    """Whether the first arm is faster than the second, case by case."""
    return prove.numbers.times(cases[0]) < prove.numbers.times(cases[1])


def timeouts(cases: Sequence[prove.Cases]) -> Any:
    """Whether a timeout occurs, case by case."""
    return cases[0]["timeouts"] > 0


def more_timeouts(cases: Sequence[prove.Cases]) -> Any:
    """Whether the first arm has more timeouts than the second, case by case."""
    return cases[0]["timeouts"] > cases[1]["timeouts"]


def one_more_is_faster(cases: Sequence[prove.Cases]) -> Any:
    """Check that a case takes longer without one of its losses."""
    took, answers = prove.numbers.times(cases[0]), cases[0]["answers"].astype("i8")
    place = np.argsort(answers)
    faster = np.zeros(len(took), dtype=bool)
    for k in range(len(took).bit_length() - 1):
        lost = answers >> k & 1 == 1
        faster[lost] |= took[place[answers[lost] ^ (1 << k)]] > took[lost]
    return faster


def earlier_costs_more(cases: Sequence[prove.Cases]) -> Any:
    """Single-loss cases in which losing the previous segment costs more."""
    took, single = prove.numbers.times(cases[0]), np.flatnonzero(cases[0].yes == 1)
    single = single[np.argsort(cases[0]["answers"][single])]
    broken = np.zeros(len(took), dtype=bool)
    broken[single[1:]] = took[single[:-1]] > took[single[1:]]
    return broken


def last_is_not_worst(cases: Sequence[prove.Cases]) -> Any:
    """Single-loss cases in which the loss costs more than losing the last segment."""
    took, single = prove.numbers.times(cases[0]), cases[0].yes == 1
    last = took[single & (cases[0]["answers"] == cases[0]["answers"].max() // 2 + 1)]
    return single & (took > last.max())


def compared(cases: Sequence[prove.Cases]) -> str:
    """Return how often and by how much the arms differ."""
    found = prove.compare(("a", "b"), cases[0], cases[1])
    assert found is not None
    return f"faster in {found.faster}, slower in {found.slower} of {found.cases}, by up to {found.most_faster_s * 1e3:.4g} and {found.most_slower_s * 1e3:.4g} ms"


def counted(cases: Sequence[prove.Cases]) -> str:
    """Return the number of cases with a timeout, for each arm."""
    return (
        f"timeouts in {(cases[0]['timeouts'] > 0).sum()} and in {(cases[1]['timeouts'] > 0).sum()} of {len(cases[0])}"
    )


def by_one(cases: Sequence[prove.Cases]) -> str:
    """Return the number of cases that take longer with one loss fewer."""
    return f"in {one_more_is_faster(cases).sum()} of {len(cases[0])} some loss less takes longer"


def singles(cases: Sequence[prove.Cases]) -> str:
    """Cost of a single loss, by position."""
    took, single = prove.numbers.times(cases[0]), np.flatnonzero(cases[0].yes == 1)
    single = single[np.argsort(cases[0]["answers"][single])]
    none = took[cases[0].yes == 0][0]
    return "a loss costs, by its place: " + ", ".join(f"{(took[at] - none) / 1e6:.4g}" for at in single) + " ms"


def spread(cases: Sequence[prove.Cases]) -> str:
    """Range from the fastest case to the slowest."""
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
        study="prr",
        id="P7",
        text="One loss more never makes a response faster (PRR).",
        arms=(PRR,),
        breaks=one_more_is_faster,
        magnitude=by_one,
    ),
    Sentence(
        study="prr",
        id="P8",
        text="Rate halving is never faster than RFC 6675.",
        arms=(HALVING, RFC),
        breaks=faster,
        magnitude=compared,
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
        study="iw10",
        id="W3",
        text="An initial window of 10 never has more timeouts than one of 3, whatever is lost.",
        arms=(("window 10", {"initial_window": 10}), ("window 3", {"initial_window": 3})),
        breaks=more_timeouts,
        magnitude=counted,
        without=("initial window 3",),
    ),
    Sentence(
        study="slow-start",
        id="S1",
        text="Of all single losses, that of the last segment costs most.",
        arms=(("CUBIC", {}),),
        breaks=last_is_not_worst,
        magnitude=singles,
    ),
    Sentence(
        study="slow-start",
        id="S2",
        text="Of all single losses, that of the last segment costs most, with the stack of Linux 3.2.",
        arms=(("CUBIC", {"profile": "linux-3.2"}),),
        breaks=last_is_not_worst,
        magnitude=singles,
        without=("no TLP", "no RACK"),
    ),
    Sentence(
        study="slow-start",
        id="S3",
        text="A single loss never costs less than that of the segment before.",
        arms=(("CUBIC", {}),),
        breaks=earlier_costs_more,
        magnitude=singles,
    ),
]


@functools.cache
def _cases(scenario: str, segments: int) -> prove.Cases:
    target = prove.Target(name="x", scenario=prove.certificate.parsed(scenario))
    return prove.prove([target], prove.Adversary(name="losses", first=segments), jobs=os.cpu_count() or 1).cases[0]


def judged(sentence: Sentence, change: dict[str, Any]) -> dict[str, Any]:
    """A sentence on one path."""
    segments = change.get("segments", 10)
    cases = [_cases(path({**change, **arm}).to_toml(), segments) for _, arm in sentence.arms]
    broken = sentence.breaks(cases)
    simplest = cases[0].answers(prove.numbers.simplest(cases[0], broken)) if broken.any() else None
    return {
        "holds": simplest is None,
        "cases": len(cases[0]),
        "broken": int(broken.sum()),
        "simplest": None if simplest is None else pattern(simplest, segments),
        "numbers": sentence.magnitude(cases),
        "roots": [one.root for one in cases],
    }


def cannot(sentence: Sentence) -> str:
    """Reason why a sentence is not replayed in the kernel; empty if it is."""
    if any(arm.get("profile", "linux-6") != "linux-6" for _, arm in sentence.arms):
        return "no kernel that builds has this stack: none replays it"
    if any("detection" in arm for _, arm in sentence.arms):
        return "Linux 7.3.4 detects losses by RACK alone: it replays none"
    return ""


def replayed(sentence: Sentence) -> list[dict[str, Any]]:
    """The kernel's results for the path's worst, median and drawn cases."""
    targets = [prove.Target(name=name, scenario=path(arm)) for name, arm in sentence.arms]
    made = prove.prove(targets, prove.Adversary(name="losses", first=10), jobs=os.cpu_count() or 1)
    rows = [prove.replay(made, target, cases, seed=1) for target, cases in zip(made.targets, made.cases, strict=True)]
    return [one.to_json() for row in rows for one in row]


def measure() -> None:
    """Evaluate every case of every sentence."""
    before = read() if RECORD.exists() else {"sentences": {}}
    record: dict[str, Any] = {"engine": engine_identity(), "sentences": {}}
    record.update({key: before[key] for key in before if key not in record})
    for sentence in SENTENCES:
        changes = {name: change for name, change in NEIGHBOURS.items() if name not in sentence.without}
        one: dict[str, Any] = {
            "study": sentence.study,
            "text": sentence.text,
            "arms": [name for name, _ in sentence.arms],
            "paths": {name: judged(sentence, change) for name, change in changes.items()},
        }
        known = before["sentences"].get(sentence.id, {})
        if known.get("kernel") and known["paths"]["the path"]["roots"] == one["paths"]["the path"]["roots"]:
            one["kernel"] = known["kernel"]
        record["sentences"][sentence.id] = one
        print(sentence.id, sentence.text, verdict(one["paths"]), flush=True)
    write(record)


def replay() -> None:
    """Test in the kernel each sentence that can be tested there and has not been tested yet."""
    for sentence in SENTENCES:
        record = read()
        if not cannot(sentence) and not record["sentences"][sentence.id].get("kernel"):
            record["sentences"][sentence.id]["kernel"] = replayed(sentence)
            print(sentence.id, kernel(sentence, record["sentences"][sentence.id]), flush=True)
            write(record)


def read() -> dict[str, Any]:
    """The stored record."""
    found: dict[str, Any] = json.loads(RECORD.read_text())
    return found


def write(record: dict[str, Any]) -> None:
    """Store the record."""
    RECORD.write_text(json.dumps(record, indent=1) + "\n")


def verdict(paths: dict[str, Any]) -> str:
    """Verdict on a sentence, in words."""
    broken = {name: found for name, found in paths.items() if not found["holds"]}
    where = "; ".join(
        f"{name}: {found['simplest']}, {found['broken']:,} case{'s' * (found['broken'] > 1)}"
        for name, found in broken.items()
        if name != "the path"
    )
    if not broken:
        return f"**proven**: in all patterns on all {len(paths)} paths"
    if "the path" not in broken:
        return f"**proven** on the path and on {len(paths) - len(broken) - 1} of its {len(paths) - 1} neighbours; breaks with {where}"
    found = paths["the path"]
    here = f"**refuted** by pattern {found['simplest']}, in {found['broken']:,} of {found['cases']:,}"
    if len(broken) == len(paths):
        return f"{here}, and on all {len(paths) - 1} neighbours"
    holds = ", ".join(name for name, found in paths.items() if found["holds"])
    return f"{here}; holds with {holds}"


def kernel(sentence: Sentence, one: dict[str, Any]) -> str:
    """The kernel's results, in words."""
    if reason := cannot(sentence):
        return reason
    rows = one.get("kernel")
    if not rows:
        return "not replayed"
    equal = sum(row["equal"] for row in rows)
    timed = sum(row["simulator_s"] == row["kernel_s"] for row in rows)
    return f"Linux {rows[0]['kernel']}: {equal} of {len(rows)} cases equal, segment by segment; {timed} complete in the same ns"


def table(record: dict[str, Any], study: str | None = None) -> str:
    """The sentences of one study, or of all."""
    lines = ["| sentence | verdict | on the path | the kernel |", "|---|---|---|---|"]
    for sentence in SENTENCES:
        one = record["sentences"][sentence.id]
        if study in (None, sentence.study):
            here = one["paths"]["the path"]["numbers"]
            lines.append(
                f"| {sentence.id}: {sentence.text} | {verdict(one['paths'])} | {here} | {kernel(sentence, one)} |"
            )
    return "\n".join([*lines, ""])


def pages(record: dict[str, Any]) -> dict[Path, str]:
    """Each page, as generated from the record."""
    made = {PAGE: TABLE.sub(lambda _: f"<!-- proofs all -->\n{table(record)}<!-- . -->", PAGE.read_text())}
    for place in sorted(STUDIES.glob("*.md")):
        made[place] = TABLE.sub(
            lambda found: f"<!-- proofs {found[1]} -->\n{table(record, found[1])}<!-- . -->", place.read_text()
        )
    return made


def check() -> int:
    """Compare pages with the record, and the path's cases with the engine."""
    record, wrong = read(), []
    for place, text in pages(record).items():
        if place.read_text() != text:
            wrong.append(
                f"{place.relative_to(ROOT)} differs from measured/proofs/sentences.json: python tools/proofs.py --pages"
            )
    for sentence in SENTENCES:
        if judged(sentence, {}) != record["sentences"][sentence.id]["paths"]["the path"]:
            wrong.append(
                f"measured/proofs/sentences.json, {sentence.id}: the engine gives other cases: python tools/proofs.py, then --replay"
            )
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group()
    for option in ("replay", "pages", "check"):
        which.add_argument(f"--{option}", action="store_true")
    options = parser.parse_args()
    if options.check:
        return check()
    if options.replay:
        replay()
    elif not options.pages:
        measure()
    for place, text in pages(read()).items():
        if place.read_text() != text:
            place.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
