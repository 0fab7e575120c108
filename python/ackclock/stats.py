"""Estimates with confidence intervals. Each function documents its interval; the default level is 0.95."""

from ackclock.judge.intervals import (
    Comparison,
    Estimate,
    bootstrap_interval,
    bootstrap_mean,
    compare_pairs,
    least_for_quantile,
    mean_interval,
    paired_difference,
    proportion_interval,
    quantile_interval,
    seeds_needed,
    stratified_mean,
)

__all__ = [
    "Comparison",
    "Estimate",
    "bootstrap_interval",
    "bootstrap_mean",
    "compare_pairs",
    "least_for_quantile",
    "mean_interval",
    "paired_difference",
    "proportion_interval",
    "quantile_interval",
    "seeds_needed",
    "stratified_mean",
]
