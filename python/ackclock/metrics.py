"""Numbers computed from tables: fairness, utilisation, means over time."""

from ackclock._results.metrics import (
    capacity_bps,
    completion_s,
    convergence_s,
    friendliness,
    goodput_bps,
    jain,
    jain_windows,
    ramp_up_s,
    rtt_exponent,
    sample_mean,
    utilisation,
    variation,
)

__all__ = [
    "capacity_bps",
    "completion_s",
    "convergence_s",
    "friendliness",
    "goodput_bps",
    "jain",
    "jain_windows",
    "ramp_up_s",
    "rtt_exponent",
    "sample_mean",
    "utilisation",
    "variation",
]
