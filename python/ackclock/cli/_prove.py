"""`ackclock prove`."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ackclock.cli import _run, _terminal
from ackclock.cli._options import NOTHING, Controllers, Jobs, Json, OwnCode, file_name, whole_number
from ackclock.cli._sweep import stoppable
from ackclock.errors import InputError, quote

if TYPE_CHECKING:
    from ackclock.prove import Certificate, Chance, Replayed, Target
    from ackclock.scenario import Scenario

WRITTEN = ("proof.json", "plan.json", "cases", "scenarios", "cases.png", "replay.json")
MARKS = ("plan.json",)


def prove_(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="Scenario (TOML).", show_default=False)] = None,
    vary: Annotated[
        str | None,
        typer.Option(metavar="KEY=A,B,...", help="Targets: one for each value of a key, compared case by case."),
    ] = None,
    change: Annotated[
        list[str], typer.Option("--set", metavar="KEY=VALUE", help="Change a value. Repeatable.")
    ] = NOTHING,
    adversary: Annotated[
        str,
        typer.Option(metavar="NAME", help="Kind of decisions: losses, data, packets, burst, late, marks or start."),
    ] = "losses",
    first: Annotated[
        int,
        typer.Option(
            parser=whole_number(1, 100_000),
            metavar="N",
            help="Number of packets, or of ticks, that the adversary decides about.",
        ),
    ] = 10,
    most: Annotated[
        int | None,
        typer.Option(
            parser=whole_number(1, 128), metavar="K", help="Maximum number of times that the adversary says yes."
        ),
    ] = None,
    length: Annotated[
        int | None, typer.Option(parser=whole_number(1, 127), metavar="B", help="Packets of a burst.")
    ] = None,
    late: Annotated[
        str | None, typer.Option(metavar="TIME", help="Delay of a late packet, or time between two ticks.")
    ] = None,
    chance: Annotated[
        list[str], typer.Option(metavar="P", help="Exact expectation at this loss, e.g. 1%. Repeatable.")
    ] = NOTHING,
    bursts: Annotated[
        list[str],
        typer.Option(
            metavar="P,R",
            help="Exact expectation with losses in bursts (Gilbert-Elliott): shares of packets. Repeatable.",
        ),
    ] = NOTHING,
    seed: Annotated[
        int,
        typer.Option(
            parser=whole_number(0, 2**63 - 1), metavar="N", help="Seed of controllers that draw random numbers."
        ),
    ] = 1,
    out: Annotated[
        Path | None, typer.Option(parser=file_name, metavar="DIR", help="Folder of the proof (default: NAME.proof).")
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(parser=file_name, metavar="DIR", help="Check a proof instead: its numbers, and 200 cases, drawn."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="With --check: run all cases anew.")] = False,
    draw: Annotated[
        int | None,
        typer.Option(parser=whole_number(0, 2**32 - 1), metavar="N", help="With --check: draw by this seed."),
    ] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Run worst, median and 20 drawn cases in the Linux kernel, too.")
    ] = False,
    controller: Controllers = NOTHING,
    own_code: OwnCode = False,
    jobs: Jobs = None,
    as_json: Json = False,
) -> int:
    """Run every case of a finite adversary: which sentences hold in all of them, and the simplest case that breaks one.

    In the folder of an interrupted proof only the missing cases are run.
    """
    from ackclock import prove
    from ackclock.plot.figure import ABSENT
    from ackclock.plot.style import drawable

    threads = jobs or _terminal.cpus()
    if check is not None:
        return _check(check, file, every=every, draw=draw, jobs=threads, as_json=as_json)
    for option, given in (("--all", every), ("--draw", draw is not None)):
        if given:
            raise InputError(f"{option}: found it without --check; allowed: together with --check")
    if file is None:
        raise InputError("prove: found neither FILE nor --check; allowed: one of them")
    wanted = prove.Adversary(name=adversary, first=first, most=most, length=length, late=late)
    _ = wanted.late_ns  # checked before anything is written
    chances = _chances(chance, bursts)
    targets = _targets(file, change, vary, controller, own_code=own_code)
    folder = out or Path(f"{file.stem}.proof")
    _terminal.own_folder(folder, WRITTEN, MARKS, whose="prove")
    stop = threading.Event()
    with _terminal.progress() as tell:
        proof = stoppable(
            lambda: prove.prove(
                targets, wanted, seed=seed, folder=folder, jobs=threads, progress=tell, stopped=stop.is_set
            ),
            stop,
        )
    certificate = prove.Certificate(proof, chances)
    certificate.write(folder)
    _scenarios(certificate, folder)
    drawn = wanted.name != "start" and drawable()
    if drawn:
        prove.draw(proof, folder / "cases.png")
    replayed = _replay(certificate, folder) if replay else []
    said = certificate.to_json()
    if as_json:
        _terminal.show_json({**said, "replayed": [one.to_json() for one in replayed], "cpu_s": proof.cpu_s})
    else:
        _tell(said, replayed)
        _terminal.say(f"certificate: {folder / 'proof.json'}")
        if wanted.name != "start" and not drawn:
            _terminal.say(ABSENT)
    return 0


def _check(folder: Path, file: Path | None, *, every: bool, draw: int | None, jobs: int, as_json: bool) -> int:
    from dataclasses import asdict

    from ackclock import prove

    if file is not None:
        raise InputError(f"--check: found a scenario beside it, {quote(str(file))}; allowed: --check alone")
    stop = threading.Event()
    with _terminal.progress() as tell:
        found = stoppable(
            lambda: prove.check(folder, every=every, seed=draw, jobs=jobs, progress=tell, stopped=stop.is_set), stop
        )
    if as_json:
        _terminal.show_json(asdict(found))
    else:
        for fault in found.faults[1:6]:
            _terminal.say(fault)
        _terminal.say(f"{folder}: {found.words}")
    return 1 if found.faults else 0


def _targets(
    file: Path, change: list[str], vary: str | None, controller: list[str], *, own_code: bool
) -> tuple[Target, ...]:
    from ackclock import prove
    from ackclock.scenario import load

    changes = _run.changes(change)

    def made(more: dict[str, Any]) -> Scenario:
        scenario = load(file, changes={**changes, **more}, own_code=own_code)
        for text in controller:
            scenario = _run.controlled(scenario, text)
        return scenario

    if vary is None:
        return (prove.Target(name=file.stem, scenario=made({})),)
    key, equals, values = vary.partition("=")
    names = [value.strip() for value in values.split(",")]
    if not equals or not key.strip() or not all(names) or len(set(names)) < len(names):
        raise InputError(
            f"--vary: found {quote(vary)}; allowed: KEY=A,B,..., e.g. flows.0.recovery=rfc6675,rate-halving"
        )
    return tuple(prove.Target(name=name, scenario=made(_run.changes([f"{key}={name}"]))) for name in names)


def _chances(chance: list[str], bursts: list[str]) -> tuple[Chance, ...]:
    from ackclock.prove import Bernoulli, GilbertElliott
    from ackclock.units import parse_share

    made: list[Chance] = [Bernoulli(parse_share(text)) for text in chance]
    for text in bursts:
        p, comma, r = text.partition(",")
        if not comma:
            raise InputError(f"--bursts: found {quote(text)}; allowed: P,R, e.g. 0.5%,50%")
        made.append(GilbertElliott(parse_share(p.strip()), parse_share(r.strip())))
    return tuple(made)


def _scenarios(certificate: Certificate, folder: Path) -> None:
    """Return each target's worst and median case as runnable scenarios, if a script can express them."""
    from ackclock import _files
    from ackclock.prove import summary
    from ackclock.prove.replay import scripted

    proof = certificate.proof
    place = folder / "scenarios"
    place.mkdir(exist_ok=True)
    for at, (target, cases) in enumerate(zip(proof.targets, proof.cases, strict=True)):
        found = summary(cases)
        for what, answers in (("worst", found.worst), ("median", found.median)):
            try:
                scenario = scripted(target.scenario, proof.adversary, answers)
            except InputError:
                return
            name = "".join(c if c.isalnum() or c in "-._" else "_" for c in target.name)[:80]
            _files.write(place / f"{at}-{name}-{what}.toml", scenario.to_toml(), "the scenario of a case")


def _replay(certificate: Certificate, folder: Path) -> list[Replayed]:
    import json

    from ackclock import _files, prove

    proof, made = certificate.proof, []
    for target, cases in zip(proof.targets, proof.cases, strict=True):
        made += prove.replay(proof, target, cases, seed=proof.seed)
    _files.write(folder / "replay.json", json.dumps([one.to_json() for one in made], indent=1), "the replay")
    return made


def _tell(said: dict[str, Any], replayed: list[Replayed]) -> None:
    _terminal.say(f"{said['about']}:")
    for sentence in said["sentences"]:
        _terminal.say(f"- {sentence}")
    for result in said["results"]:
        if result["unshared"]:
            _terminal.say(f"{result['target']}: each case was run from the beginning: {result['unshared']}")
        for one in result["expectations"]:
            mean = (
                f"{one['low_s']:.6f} s"
                if one["high_s"] == one["low_s"]
                else f"{one['low_s']:.6f} to {one['high_s']:.6f} s"
            )
            left = f"; left out: probability {one['probability_left_out']:.3g}" if one["probability_left_out"] else ""
            _terminal.say(f"{result['target']}, {one['chance']}: mean {mean}{left}")
    if replayed:
        equal = sum(one.equal for one in replayed)
        _terminal.say(f"Linux {replayed[0].kernel}: {equal} of {len(replayed)} cases equal, segment by segment")
        for one in [one for one in replayed if not one.equal][:5]:
            _terminal.say(f"  {one.target} {one.case}: {one.first_difference}")
