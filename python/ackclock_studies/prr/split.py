"""The split of the CS244'13 blog: fetches "with retransmission" and others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ackclock.judge.estimates import Array


def two_sigma(total_s: Array) -> NDArray[np.bool_]:
    """The publication's "with retransmission": at least two standard deviations above the minimum.

    The script measures from the minimum (according to the text, from the average) and uses the population's standard
    deviation. Works on the last axis.
    """
    least = total_s.min(axis=-1, keepdims=True)
    sigma = total_s.std(axis=-1, keepdims=True)
    mask: NDArray[np.bool_] = (total_s - least >= 2 * sigma) & (sigma > 0)
    return mask


def group_b_mean(total_s: Array) -> Array:
    """Mean of the publication's group "with retransmission", along the last axis; NaN if it is empty."""
    mask = two_sigma(total_s)
    count = mask.sum(axis=-1)
    total: Array = np.where(mask, total_s, 0.0).sum(axis=-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def group_a_mean(total_s: Array) -> Array:
    """Mean of the publication's group "almost no retransmission"."""
    mask = ~two_sigma(total_s)
    result: Array = np.where(mask, total_s, 0.0).sum(axis=-1) / np.maximum(mask.sum(axis=-1), 1)
    return result
