from __future__ import annotations

import pytest

from ackclock import Scenario, bench


@pytest.mark.parametrize("cell", bench.CELLS, ids=lambda c: f"{c.congestion_control}-{c.rate_mbps}-{c.flows}")
def test_every_cell_is_a_valid_scenario(cell):
    assert sum(group.count for group in Scenario.from_dict(bench.scenario(cell)).flows) == cell.flows
