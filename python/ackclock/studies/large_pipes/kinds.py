"""Packet pairs against packet trains (W21, W22)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.studies.large_pipes import paths
from ackclock.studies.large_pipes.coalescing import controller_after
from ackclock.studies.large_pipes.paths import (
    ALABAMA,
    SENDERS,
    westwood,
)
from ackclock.studies.large_pipes.runs import pick
from ackclock.studies.large_pipes.starts import NO_BOUND
from ackclock.study import (
    Chapter,
    Claim,
    Criterion,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
    at_least,
    below,
    between,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.estimates import Array, median

BE_SACK = "BE, SACK on"
ALONE, SHARED, LOSSY = "alone", "four flows", "alone, 0.3 % loss"


def run_kinds(plan: Plan) -> Data:
    """Packet pairs against packet trains: estimate over capacity and over the fair share (W21, W22).

    Returns
    -------
    Data
        `kinds.estimates`: estimator, setting, run, estimate_bps (mean in steady state), fair_bps.
    """
    seeds = plan.count(quick=6, paper=12)
    senders = {
        "BE": westwood("BE", estimator="be"),
        "RE": westwood("RE", estimator="re"),
        "ABSE": SENDERS[paths.TCPW],
        BE_SACK: westwood(BE_SACK, estimator="be", sack=True),
    }
    settings = {ALONE: (1, 0.0), SHARED: (4, 0.0), LOSSY: (1, 0.003)}
    cells = []

    def estimates(batch: Batch) -> pl.DataFrame:
        return controller_after(batch, 15.0).group_by("seed", maintain_order=True).agg(pl.col("estimate_bps").mean())

    for name, protocol in senders.items():
        for setting, (count, loss) in settings.items():
            scenario = paths.scenario(
                ALABAMA,
                [(protocol, count)],
                duration_s=45.0 if plan.scale == "paper" else 22.0,
                queue=400,
                loss=loss,
                users=0.0,
                record={"controller": "flow"},
            )
            cells.append(
                Cell(
                    scenario=scenario,
                    keys={"estimator": name, "setting": setting, "fair_bps": ALABAMA.payload_bps / count},
                    stream=f"large-pipes kinds {setting}",
                    seeds=seeds,
                    needs={"controllers": ("flow", "t_s", "estimate_bps")},
                    keep={"estimates": estimates},
                )
            )
    return collect("kinds", cells, plan, numbered=True)


def _estimate(tables: Tables, estimator: str, setting: str) -> Array:
    value = pick(tables, "kinds.estimates", "estimate_bps", estimator=estimator, setting=setting)
    fair = pick(tables, "kinds.estimates", "fair_bps", estimator=estimator, setting=setting)
    return np.asarray(value / fair)


def w21(tables: Tables) -> Sequence[Evidence]:
    """Packet pairs."""
    return [
        Evidence.of(
            median(_estimate(tables, "BE", SHARED)), "BE, four flows: estimate over the fair share", at_least(1.15)
        ),
        Evidence.of(
            median(_estimate(tables, "BE", LOSSY)),
            "BE, alone at 0.3 % loss: estimate over the capacity",
            between(0.9, 1.1),
        ),
        Evidence.of(
            median(_estimate(tables, BE_SACK, LOSSY)),
            "the same, SACK on",
            NO_BOUND,
            weighs=False,
        ),
    ]


def w22(tables: Tables) -> Sequence[Evidence]:
    """Packet trains."""
    return [
        Evidence.of(
            median(_estimate(tables, "RE", SHARED)),
            "RE, four flows: estimate over the fair share",
            between(0.85, 1.15),
        ),
        Evidence.of(
            median(_estimate(tables, "RE", LOSSY)),
            "RE, alone at 0.3 % loss: estimate over the capacity",
            below(0.7),
        ),
    ]


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="W21",
        place="slide 4",
        statement="Packet pairs work under random loss and over-estimate under congestion.",
        direction=Criterion(
            measure=w21,
            reading="BE alone: with four flows at least 15 % above the fair share; alone at 0.3 % loss within 10 % of the capacity.",
        ),
        note="With four flows BE is 2.3 times the fair share. Alone under loss it is 0.57 of the capacity; with SACK it is 0.82.",
    ),
    Claim(
        id="W22",
        place="slide 4",
        statement="Packet trains are fair under congestion and under-estimate under random loss.",
        direction=Criterion(
            measure=w22,
            reading="RE alone: with four flows within 15 % of the fair share; alone at 0.3 % loss below 70 % of the capacity.",
        ),
    ),
)

CHAPTER = Chapter(
    title="Packet pairs and packet trains",
    experiments=(Experiment(name="kinds", title="packet pairs against packet trains", run=run_kinds, weight=8),),
    claims=CLAIMS,
)
