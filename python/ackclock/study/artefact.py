"""Writes a study as an artefact that someone else can run: one command, the versions, and the expected results.

A study in a folder is copied completely, because no package contains it. The parts are those of ACM's artefact review
(Artifact Review and Badging, version 1.1): documented, consistent, complete, exercisable, and with reproducible
results.
"""

from __future__ import annotations

import hashlib
import json
import platform
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ackclock._files import check_folder, refused, staged
from ackclock.errors import InputError
from ackclock.study import edges, register, sentence
from ackclock.study.plan import SCALES
from ackclock.study.record import build
from ackclock.study.study import Study

EXPECTED = "expected.json"
BUILD = "build.txt"
UNKNOWN = "not recorded"
WRITTEN = ("README.md", "claims.md", EXPECTED, "plan.json", "reproduce.sh", "requirements.txt", BUILD)
"""Files in an artefact, in addition to the study's folder if it has one."""

LARGEST = 64 * 2**20
"""Maximum size of a study's folder, bytes: reports and stores belong elsewhere."""

WHEELS = "wheels"
"""Folder of the included wheel."""

NEEDED = ("ackclock", "numpy", "polars", "scipy", "matplotlib")
"""Packages whose versions may affect the numbers, tables and figures."""


def write(study: Study, folder: Path, *, wheel: Path | None = None) -> Path:
    """Write the artefact.

    Parameters
    ----------
    study
        Study with a record, which gives the expected results.
    folder
        Created if absent; an earlier artefact in it is replaced.
    wheel
        Wheel of the installed package to include; None: users get the package elsewhere.

    Returns
    -------
    Path
        The README.

    Raises
    ------
    InputError
        If the study has no record, the wheel is of another version, or the folder cannot be written.
    """
    if not any(study.recorded(scale) for scale in SCALES):
        raise InputError(f"{study.named}: found no record; allowed: a study that was run with --record")
    own = dict(files(study, folder))
    packed = None if wheel is None else (wheel.name, _packed(wheel))
    check_folder(folder, (*WRITTEN, WHEELS, *({called(study)} if own else ())), (EXPECTED,), whose="artefact")
    made = register.plan(study)
    plan = json.dumps({"hash": register.hashed(made), "plan": made}, indent=1, ensure_ascii=False) + "\n"
    expected = json.dumps(expectation(study), indent=1, ensure_ascii=False) + "\n"
    pinned = "".join(_pinned(name, found, packed) for name, found in versions())
    contents = {
        "README.md": readme(study, register.hashed(made)),
        "claims.md": claims(study),
        EXPECTED: expected,
        "plan.json": plan,
        "reproduce.sh": script(study),
        "requirements.txt": pinned,
        BUILD: builds(study),
    }
    with staged(folder, marks=(EXPECTED,)) as part:
        for name, text in contents.items():
            (part / name).write_text(text, encoding="utf-8")
        (part / "reproduce.sh").chmod(0o755)
        if packed is not None:
            (part / WHEELS).mkdir()
            (part / WHEELS / packed[0]).write_bytes(packed[1])
        for place, content in own.items():
            (part / place).parent.mkdir(parents=True, exist_ok=True)
            (part / place).write_bytes(content)
    return folder / "README.md"


def called(study: Study) -> str:
    """Return the study's folder within the artefact, or the name of a packaged study."""
    return study.name if study.source is None else study.source.resolve().name


def asked(study: Study) -> str:
    """Return the name by which commands in the artefact's folder select the study."""
    return study.name if study.source is None else f"./{called(study)}"


def files(study: Study, artefact: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield the files of the study's own folder, without hidden files and Python's caches; none for a packaged study.

    Raises
    ------
    InputError
        If they are too large, or cannot be read.
    """
    if study.source is None:
        return
    size = 0
    within = artefact.resolve()
    for file in sorted(study.source.rglob("*")):
        place = file.relative_to(study.source)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in place.parts)
        if hidden or not file.is_file() or within in file.resolve().parents:
            continue
        size += file.stat().st_size
        if size > LARGEST:
            raise InputError(
                f"{study.named}: found more than {LARGEST >> 20} MiB in the study's folder; allowed: reports and stores elsewhere"
            )
        try:
            yield Path(called(study)) / place, file.read_bytes()
        except OSError as error:
            raise refused(error, str(file)) from None


def builds(study: Study) -> str:
    """For each recorded scale, return the build that made the record, one line each."""
    found = ((scale, study.recorded(scale)) for scale in SCALES)
    return "".join(f"{scale}: {record.build or UNKNOWN}\n" for scale, record in found if record)


def _packed(wheel: Path) -> bytes:
    """Return the wheel's contents. A wheel of another version is refused."""
    expected = f"ackclock-{version('ackclock')}-"
    try:
        with zipfile.ZipFile(wheel) as opened:
            whole = opened.testzip() is None
        if whole and wheel.name.startswith(expected) and wheel.suffix == ".whl":
            return wheel.read_bytes()
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError(
            f"--wheel {wheel}: found no wheel that can be read ({error}); allowed: {expected}*.whl"
        ) from None
    raise InputError(f"--wheel: found {wheel.name}; allowed: {expected}*.whl")


def _pinned(name: str, found: str, packed: tuple[str, bytes] | None) -> str:
    """Return a line of requirements.txt."""
    if name != "ackclock" or packed is None:
        return f"{name}=={found}\n"
    return f"./{WHEELS}/{packed[0]}  # SHA-256 {hashlib.sha256(packed[1]).hexdigest()}\n"


def versions() -> Iterator[tuple[str, str]]:
    """Yield the versions of the packages installed here."""
    for name in NEEDED:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue


def expectation(study: Study) -> dict[str, Any]:
    """Return the record's verdicts and values at each scale."""
    return {
        "schema": "ackclock.artefact/1",
        "study": study.name,
        "scales": {
            scale: {"taken": dict(record.taken), "claims": dict(record.claims)}
            for scale in SCALES
            for record in (study.recorded(scale),)
            if record
        },
    }


def script(study: Study) -> str:
    """Return a script that runs the study as recorded, and again with seeds never used before."""
    return f"""#!/bin/sh
# Runs the study twice: with the recorded seeds, and with seeds that follow from the hash of plan.json.
# Exit code 0: every verdict is the recorded one. The first argument is the scale: quick (default) or paper.
set -u
cd "$(dirname "$0")" || exit 2
scale="${{1:-quick}}"
status=0
ackclock --version
recorded="$(sed -n "s/^$scale: //p" {BUILD})"
if [ "${{recorded:-{UNKNOWN}}}" = "{UNKNOWN}" ]; then
  echo "Which build made the record is not recorded: verdicts are compared, bits need not be equal."
elif ackclock --version | grep -qxF "$recorded"; then
  echo "The build is that of the record: equal seeds give equal bits."
else
  echo "The record was made with another build ($recorded): verdicts are compared, bits need not be equal."
fi
ackclock study run {asked(study)} --scale "$scale" --out reproduced || status=1
ackclock study run {asked(study)} --scale "$scale" --registered plan.json --out held-out || status=1
exit "$status"
"""


def claims(study: Study) -> str:
    """Return every sentence of the publications with its verdict."""
    records = tuple(study.recorded(scale) for scale in SCALES)
    head = "Verdicts at scale quick, and after a slash those at scale paper where they differ.\n\n"
    return f"# Claims of {study.name}\n\n{head}{sentence.table(study.sentences, study.claims, records, edges.words(study))}\n"


def readme(study: Study, plan: str) -> str:
    """Return the text that a reviewer should read first."""
    cited = "".join(f"- {p.authors}: {p.title}. {p.where}\n" for p in study.publications)
    pinned = ", ".join(f"{name} {found}" for name, found in versions())
    taken = ", ".join(f"{scale}: {study.recorded(scale).told}" for scale in SCALES if study.recorded(scale))
    row = f"| `{called(study)}/` | the study: its claims and its code |\n" if study.source else ""
    whole = (
        f"the study is in `{called(study)}`, the simulator is the package named above"
        if study.source
        else "the code of study and simulator is the package named above"
    )
    return f"""# Artefact of the study {study.name}

{study.title.rstrip(".")}{"" if study.title.endswith(("?", "!")) else "."} {" ".join(study.summary.split())}

Publications that it repeats:

{cited}
## Run it

    python -m venv env && env/bin/pip install -r requirements.txt
    PATH="$PWD/env/bin:$PATH" ./reproduce.sh

Where the folder `{WHEELS}` is absent and no package index has this version of ackclock, install it from its source first. `./reproduce.sh paper` runs the larger scale. Exit code 0 means that every verdict is the recorded one. The reports are `reproduced/report.html` and
`held-out/report.html`; both hold every claim with its numbers, intervals and figures.

- With the recorded seeds a run gives the same numbers, bit by bit, with the build of ackclock that made the record. `{BUILD}` names it for each scale, and `reproduce.sh` compares; where it says "{UNKNOWN}", verdicts alone are compared.
- With the seeds of `plan.json`, which follow from the hash of the plan ({plan}), values differ within their intervals. A claim may become
  undecided, or decided; one that turns from holding to failing counts as not reproduced.

## Needs

Any machine with Python {platform.python_version().rpartition(".")[0]} or later; no network, no special hardware, no root. Expected values were taken {taken}.
This artefact was written with {pinned}; ackclock's {build()}.

## What is in it

| file | what |
|---|---|
| `reproduce.sh` | the one command |
| `requirements.txt` | versions |
| `{BUILD}` | the build that made the record of each scale: hash of the engine's sources, and how it was compiled |
| `plan.json` | claims, bounds, readings and the hash of the code, with the hash of all of it |
| `{EXPECTED}` | verdicts and values of the record, of each scale, with intervals |
| `claims.md` | every sentence of the publications, the claim that tests it, its verdict and whether its cause was tested |
{row}
## Demands of artefact review

| badge | what it asks | here |
|---|---|---|
| functional | documented | this file; `ackclock study show {asked(study)}` |
| | consistent | `claims.md` leads from each sentence to its claim |
| | complete | {whole} |
| | exercisable | `reproduce.sh`; `ackclock study run {asked(study)} --seeds N`, `--readings` |
| reusable | can be extended | `ackclock study new`; every cell is a scenario file in the report |
| available | an archive with a permanent identifier | to be deposited by its publisher |
| results reproduced | by others, with the authors' artefact | the exit code of `reproduce.sh`, run by others |
"""
