"""Writes the folder of an evaluation: runnable scenarios, every number, `evaluate.json` and `junit.xml`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock.evaluate.harness import Evaluation
from ackclock.evaluate.plan import REFERENCE, Plan
from ackclock.evaluate.rows.text import STATEMENTS
from ackclock.evaluate.settle import LARGER
from ackclock.evaluate.situation import Row
from ackclock.evaluate.verdict import UNJUDGED, Judged, RowVerdict
from ackclock.judge.evidence import finite
from ackclock.judge.intervals import Estimate
from ackclock.judge.looks import LOOKS
from ackclock.text import xml

if TYPE_CHECKING:
    import polars as pl

    from ackclock.scenario import Scenario

SCHEMA = "ackclock.evaluate/1"


def alarms() -> list[dict[str, Any]]:
    """Return the recorded false-alarm rates of CUBIC against itself, one run for each scale."""
    found: list[dict[str, Any]] = json.loads(files("ackclock.evaluate").joinpath("alarms.json").read_text("utf-8"))
    return found


def scenario_file(row: str, cell: str, arm: str) -> str:
    """Return the path of a cell's scenario in the folder."""
    return f"cells/{row}/{cell}.{arm or 'alone'}.toml"


def command(
    evaluation: Evaluation,
    row: RowVerdict,
    arm: str = "candidate",
    *,
    seed: int | None = None,
    folder: Path | None = None,
) -> str:
    """Return the command that repeats a row's worst cell, with its worst seed or another one: in the evaluation's
    folder, or from where `folder` is its path.
    """
    from ackclock.own import named

    worst = row.worst
    assert worst is not None, "the row was tested"
    own = " --own-code" if arm == "candidate" and named(evaluation.plan.candidate.controller) else ""
    own += (
        "".join(f" {part}" for part in libraries(evaluation.plan, whole=folder is not None))
        if arm == "candidate"
        else ""
    )
    file = scenario_file(row.row.id, worst.cell.id, arm)
    place = file if folder is None else shlex.quote(str(folder / file))
    return f"ackclock run {place} --seed {seed or worst.worst_seed}{own}"


def invocation(
    plan: Plan,
    *,
    rows: Sequence[str] | None = None,
    scale: str | None = None,
    more: Sequence[str] = (),
    candidate: str = "",
) -> str:
    """Return the command of an evaluation, optionally with only some rows, a different scale, further options, or the
    candidate as it was typed.
    """
    from ackclock.own import short

    scale = scale or plan.scale
    only = plan.only if rows is None else rows
    parts = ["ackclock evaluate", shlex.quote(candidate) if candidate else short(plan.candidate.controller)]
    parts += [f"--option {k}={v}" for k, v in plan.candidate.options.items()]
    if plan.rival:
        parts.append(f"--rival {short(plan.rival.controller)}")
        parts += [f"--rival-option {k}={v}" for k, v in plan.rival.options.items()]
    parts += [f"--{scale}"] if scale != "standard" else []
    parts += [f"--rows {','.join(only)}"] if only else []
    parts += ["--gigabit"] if plan.gigabit else []
    parts += [f"--environment {plan.environment}"] if plan.environment != "internet" else []
    parts += [f"--population {shlex.quote(plan.population.place)}"] if plan.population is not None else []
    parts += ["--backend linux"] if plan.backend == "linux" else []
    parts += [] if any(part.startswith("--stack ") for part in more) else libraries(plan)
    return " ".join([*parts, *more])


def libraries(plan: Plan, *, whole: bool = False) -> list[str]:
    """Return the options that load the stacks of a plan's controllers, with the libraries' whole paths or names."""
    from ackclock import stacks

    arms = [plan.candidate, *([plan.rival] if plan.rival else [])]
    wanted = {arm.controller.split(":")[1] for arm in arms if arm.controller.startswith("stack:")}
    files = [Path(one.file) for one in stacks.loaded() if one.name in wanted]
    return [f"--stack {shlex.quote(str(file) if whole else file.name)}" for file in files]


def settling_commands(
    evaluation: Evaluation, *, more: Sequence[str] = (), folder: Path | None = None, candidate: str = ""
) -> dict[str, str]:
    """Return, for each row that shows no difference, the command that would settle it; empty if none is known.

    Parameters
    ----------
    evaluation
        The evaluation.
    more
        Further options, such as the folder.
    folder
        Folder of the evaluation, for commands that run one of its scenarios; None: they are run in it.
    candidate
        The candidate as it was typed; empty: its file without the folder.
    """
    plan, again = evaluation.plan, partial(invocation, evaluation.plan, candidate=candidate)
    ways = {
        "seeds": lambda rows: again(rows=rows, more=["--decide", *more]),
        "scale": lambda rows: again(rows=rows, scale=LARGER[plan.scale], more=more),
    }
    by_id = {r.row.id: r for r in evaluation.rows}
    found = {}
    for one in evaluation.open:
        if one.how in ways:
            found[one.row] = ways[one.how]([o.row for o in evaluation.open if o.how == one.how])
        elif one.how == "look":
            found[one.row] = command(evaluation, by_id[one.row], one.arm, seed=one.seed, folder=folder)
        else:
            found[one.row] = ""
    return found


def write_scenarios(evaluation: Evaluation, folder: Path) -> None:
    """Write each cell under each arm as it was run, with the controller's file beside it."""
    from ackclock.own import copied, named
    from ackclock.scenario._toml import quoted

    for (row, cell, arm), scenario in evaluation.scenarios.items():
        place = folder / scenario_file(row, cell, arm)
        place.parent.mkdir(parents=True, exist_ok=True)
        text = scenario.to_toml()
        for _, name in scenario.controllers():
            if named(name):
                text = text.replace(quoted(name), quoted(f"../{copied(name, folder / 'cells')}"))
        place.write_text(text, encoding="utf-8")


def cells_table(evaluation: Evaluation) -> pl.DataFrame:
    """Return one row per run and measure: row, cell, measure, arm, seed, value, digest, scenario."""
    import polars as pl

    columns: dict[str, list[Any]] = {
        n: [] for n in ("row", "cell", "measure", "arm", "seed", "value", "digest", "scenario")
    }
    for (row, cell, measure, arm), values in evaluation.numbers.items():
        for seed, value in values.numbers.items():
            for name, entry in zip(
                columns,
                (row, cell, measure, arm, seed, value, values.digests[seed], scenario_file(row, cell, arm)),
                strict=True,
            ):
                columns[name].append(entry)
    return pl.DataFrame(columns, schema_overrides={"seed": pl.Int64, "value": pl.Float64})


def to_json(evaluation: Evaluation, *, statements: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the evaluation as plain values; null for values that are not finite."""
    from ackclock.sweep import engine_identity

    plan = evaluation.plan
    version, _, build = engine_identity().partition("+")
    first, most = plan.counts
    return {
        "schema": SCHEMA,
        "engine": {"version": version, "build": build, "profile": "linux-6", "backend": plan.backend},
        "controller": {
            "name": plan.candidate.name,
            "source": _source(plan.candidate.controller),
            "options": dict(plan.candidate.options),
        },
        "rival": plan.rival.name if plan.rival else None,
        "reference": REFERENCE,
        "environment": plan.environment,
        "scale": plan.scale,
        "seeds": {"first": 1, "count": first, "max": most},
        "margins": {"whose": "ours", "rows": {r.row.id: _margins(r.row) for r in evaluation.rows if r.row.measures}},
        "digest": evaluation.digest,
        "summary": {v.replace(" ", "_"): n for v, n in evaluation.summary().items()},
        "false_alarms": next((a for a in alarms() if a["scale"] == plan.scale), None),
        "rows": [_row_json(evaluation, row) for row in evaluation.rows],
        "decide": _decided_json(evaluation),
        "search": None if evaluation.search is None else dict(evaluation.search),
        "statements": {section: (statements or {}).get(section, "missing") for section in STATEMENTS},
    }


def _decided_json(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return the further looks as plain values, without the time limit, which only determines their number."""
    found = evaluation.decided
    if found is None:
        return None
    return {
        "looks": found.looks,
        "at_most": LOOKS,
        "runs": found.runs,
        "ended": found.ended,
        "rows": {row: {"seeds": n, "look": found.verdicts[row].look} for row, n in found.seeds.items()},
    }


def _margins(row: Row) -> dict[str, Any]:
    return {
        m.name: {"margin": m.margin, "unit": m.unit, "relative": m.relative, "least": m.least, "judged": m.judged}
        for m in row.measures
    }


def _source(controller: str) -> dict[str, str]:
    from ackclock.own import described, named, short

    if not named(controller):
        return {"kind": "built in", "name": controller}
    own = described(controller, {}).planned()
    return {
        "kind": "file",
        "name": short(controller),
        "sha256": own.digest,
        **({"reads": own.whole} if own.whole else {}),
    }


def _row_json(evaluation: Evaluation, found: RowVerdict) -> dict[str, Any]:
    row, worst = found.row, found.worst
    settling = next((one for one in evaluation.open if one.row == row.id), None)
    return {
        "id": row.id,
        "section": row.section,
        "level": row.level,
        "title": row.title,
        "quote": row.quote,
        "verdict": found.verdict,
        "measure": found.measure,
        "reason": found.reason,
        "remark": found.remark,
        "difference_in_margins": None if found.difference is None else estimate(found.difference),
        "worst": None
        if worst is None
        else {
            "cell": worst.cell.id,
            "victim": worst.cell.about.get("victim", ""),
            "scenario": scenario_file(row.id, worst.cell.id, "candidate"),
            "reference_scenario": scenario_file(row.id, worst.cell.id, REFERENCE),
            "seed": worst.worst_seed,
            "command": command(evaluation, found),
            **_judged_json(evaluation, found, worst),
        },
        "cells": [
            {"id": j.cell.id, "about": dict(j.cell.about), **_judged_json(evaluation, found, j)} for j in found.cells
        ],
        "settle": None
        if settling is None
        else {
            "how": settling.how,
            "text": settling.text,
            "seeds": settling.seeds,
            "runs": settling.runs,
            "command": settling_commands(evaluation)[row.id],
        },
        "needs": list(row.needs),
        "note": row.note,
    }


def _judged_json(evaluation: Evaluation, found: RowVerdict, j: Judged) -> dict[str, Any]:
    seeds = list(j.by_seed)
    digests = evaluation.digests[(found.row.id, j.cell.id, "candidate")]
    return {
        "measure": j.measure.name,
        "unit": j.measure.unit,
        "better": j.measure.better,
        "judged": j.measure.judged,
        "n": j.difference.n,
        "runs": j.runs,
        "without_number": {"candidate": j.without[0], "reference": j.without[1]},
        "candidate": estimate(j.candidate),
        "reference": estimate(j.reference),
        "at_least": list(j.at_least),
        "difference": {
            **estimate(j.difference),
            "margin": finite(j.margin),
            "of": "logarithms" if j.measure.ratio else "values",
        },
        "duty": {"at_most": j.measure.duty, "broken_by": j.broken},
        "by_seed": {str(s): finite(j.by_seed[s]) for s in seeds},
        "digests": {str(s): digests[s] for s in seeds},
        "distinct_digests": j.distinct,
        "verdict": j.verdict,
        "note": j.note,
    }


def estimate(e: Estimate) -> dict[str, float | int | None]:
    """Return an estimate as plain values."""
    return {"value": finite(e.value), "low": finite(e.low), "high": finite(e.high), "n": e.n}


def to_junit(evaluation: Evaluation) -> str:
    """Return one test suite per row, with one case for each measure of each cell. Only the row's own case can fail."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>"]
    for found in evaluation.rows:
        cases: list[str] = []
        failures = skipped = 0
        head = f"row {found.row.id}: {found.row.title}"
        said = f"<testcase classname={xml(head)} name={xml('the row')}"
        if found.verdict == "worse" or found.fails_must:
            failures += 1
            message = f"{found.verdict}: {found.reason}" + (f"; {command(evaluation, found)}" if found.worst else "")
            cases.append(f"{said}><failure message={xml(message)}/></testcase>")
        elif found.verdict in UNJUDGED:
            skipped += 1
            cases.append(f"{said}><skipped message={xml(f'{found.verdict}: {found.reason}')}/></testcase>")
        else:
            cases.append(
                f'{said}><properties><property name="verdict" value={xml(found.verdict)}/></properties></testcase>'
            )
        for j in found.cells:
            name = f"{j.cell.id}: {j.measure.name}"
            d = j.difference
            value = f"{j.verdict}: {d.value:.4g}, {d.low:.4g} to {d.high:.4g}, margin {j.margin:.4g}, n {d.n}"
            case = f"<testcase classname={xml(head)} name={xml(name)}"
            if j.verdict == "not tested":
                skipped += 1
                cases.append(f"{case}><skipped message={xml(j.note)}/></testcase>")
            else:
                cases.append(
                    f'{case}><properties><property name="verdict" value={xml(value)}/></properties></testcase>'
                )
        lines.append(f'<testsuite name={xml(head)} tests="{len(cases)}" failures="{failures}" skipped="{skipped}">')
        lines += [*cases, "</testsuite>"]
    return "\n".join([*lines, "</testsuites>", ""])


def scenario_of(evaluation: Evaluation, row: RowVerdict, arm: str) -> Scenario:
    """Return the scenario for a row's worst cell."""
    assert row.worst is not None, "the row was tested"
    return evaluation.scenarios[(row.row.id, row.worst.cell.id, arm)]
