"""Copy the studies' numbers from their records into the documents, or check that both agree.

A number is enclosed in two comments, which are invisible on the page:

    gains <!-- prr.P5.large_high@paper:i -->6.0 % (5.8 to 6.2)<!-- . --> there

`prr` is the study, `P5` the claim, `large_high` the key of its evidence, `paper` the scale; `:i` adds the 95 %
interval, `:n` omits the unit. The verdicts of a study are a table:

    <!-- verdicts prr -->
    ...
    <!-- . -->

Every sentence of its publications, with claims, verdicts and causes, is a second table:

    <!-- sentences prr -->
    ...
    <!-- . -->

Verdicts that differ from those of an earlier version, each with a one-sentence reason, are a third:

    <!-- changed pcc -->
    ...
    <!-- . -->

The sentences over the population of paths are a fourth:

    <!-- paths prr -->
    ...
    <!-- . -->

    python tools/study_numbers.py          # renew README.md, docs/*.md, docs/how-to/*.md and docs/studies/*.md
    python tools/study_numbers.py --check  # exit code 1 if one of them differs
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import replace
from pathlib import Path

from ackclock import studies
from ackclock.errors import InputError
from ackclock.study import SCALES, edges, population, sentence
from ackclock.study.claim import DIRECTION, MAGNITUDE

ROOT = Path(__file__).resolve().parent.parent
NUMBER = re.compile(r"<!-- (\w[\w-]*)\.(\w+)\.(\w+)@(\w+)(?::(\w))? -->(.*?)<!-- \. -->", re.DOTALL)
VERDICTS = re.compile(r"<!-- verdicts (\w[\w-]*) -->\n(.*?)<!-- \. -->", re.DOTALL)


SENTENCES = re.compile(r"<!-- sentences (\w[\w-]*) -->\n(.*?)<!-- \. -->", re.DOTALL)


CHANGED = re.compile(r"<!-- changed (\w[\w-]*) -->\n(.*?)<!-- \. -->", re.DOTALL)
PATHS = re.compile(r"<!-- paths (\w[\w-]*) -->\n(.*?)<!-- \. -->", re.DOTALL)


def documents(root: Path = ROOT) -> list[Path]:
    """Documents with numbers from studies."""
    return [
        root / "README.md",
        *sorted((root / "docs").glob("*.md")),
        *sorted((root / "docs" / "how-to").glob("*.md")),
        *sorted((root / "docs" / "studies").glob("*.md")),
    ]


def number(match: re.Match[str]) -> str:
    """A number between its comments."""
    study, claim, key, scale, form, _ = match.groups()
    quoted = studies.get(study).recorded(scale).quote(claim, key)
    if quoted is None:
        raise InputError(f"number: found {study}.{claim}.{key}@{scale}; allowed: one that the study's record has")
    opening = match[0][: match[0].index("-->") + 3]
    return f"{opening}{replace(quoted, taken='').text(form or '')}<!-- . -->"


def verdicts(match: re.Match[str]) -> str:
    """A table of all claims with the verdicts at both scales."""
    study = studies.get(match[1])
    records = [study.recorded(scale) for scale in SCALES]

    turned = edges.words(study)

    def told(claim: str, half: str) -> str:
        words = [record.verdicts(claim).get(half) for record in records]
        beside = f" ({turned[claim, half]})" if (claim, half) in turned else ""
        if words[0] == words[1]:
            return f"{words[0]}{beside}" if words[0] else ""
        return " / ".join(str(word or "–") for word in words) + beside

    rows = [
        f"| {claim.id} | {claim.statement} | {told(claim.id, DIRECTION)} | {told(claim.id, MAGNITUDE)} |"
        for claim in study.claims
    ]
    head = ["| claim | statement | what it says | how much |", "| --- | --- | --- | --- |"]
    return f"<!-- verdicts {study.name} -->\n\n" + "\n".join((*head, *rows)) + "\n\n<!-- . -->"


def sentences(match: re.Match[str]) -> str:
    """Return every sentence of a study's publications, and its outcome."""
    study = studies.get(match[1])
    records = tuple(study.recorded(scale) for scale in SCALES)
    told = sentence.table(study.sentences, study.claims, records, edges.words(study))
    return f"<!-- sentences {study.name} -->\n\n{told}\n\n<!-- . -->"


def changed(match: re.Match[str]) -> str:
    """Verdicts that differ from an earlier version's."""
    study = studies.get(match[1])
    if study.before is None:
        raise InputError(
            f"changed {study.name}: found no verdicts of an earlier version; allowed: a study that keeps them"
        )
    records = tuple(study.recorded(scale) for scale in SCALES)
    return f"<!-- changed {study.name} -->\n\n{study.before.table(study.claims, records)}\n\n<!-- . -->"


def paths(match: re.Match[str]) -> str:
    """The sentences over a study's path population, at the largest scale that has them."""
    study = studies.get(match[1])
    for scale in reversed(SCALES):
        found = population.recorded(study.recorded(scale), [claim.id for claim in study.claims])
        if found:
            return f"<!-- paths {study.name} -->\n\n{found}\n\n<!-- . -->"
    raise InputError(f"{study.name}: found no population of paths in its record; allowed: a study that has one")


def renewed(text: str) -> str:
    """A document with the numbers filled in from the records."""
    text = CHANGED.sub(changed, text)
    text = PATHS.sub(paths, text)
    return SENTENCES.sub(sentences, VERDICTS.sub(verdicts, NUMBER.sub(number, text)))


def main() -> int:
    """Renew or check every document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    stale = []
    check = parser.parse_args().check
    for path in documents():
        text = path.read_text(encoding="utf-8")
        try:
            made = renewed(text)
        except InputError as error:
            sys.exit(f"{path.relative_to(ROOT)}: {error}")
        if made != text:
            stale.append(str(path.relative_to(ROOT)))
            if not check:
                path.write_text(made, encoding="utf-8")
    if check and stale:
        sys.exit(f"numbers of {', '.join(stale)} differ from the records; python tools/study_numbers.py renews them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
