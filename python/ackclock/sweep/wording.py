"""Words and units in sweep figures: axes, metrics, numbers in headings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ackclock.sweep.measures import measure

_SCALES = {
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes")),
}


def scaled(unit: str, values: Sequence[float]) -> tuple[float, str]:
    """Return the factor and name of the unit in which values are shown."""
    known = [abs(v) for v in values if v == v and v not in (float("inf"), float("-inf"))]
    top = max(known, default=0.0)
    for factor, name in _SCALES.get(unit, ()):
        if top >= factor:
            return factor, name
    return 1.0, unit


def metric_column(metric: str) -> str:
    """Return the metric's column, regardless of flow or group."""
    found = measure(metric)
    return metric if found is None else found.column


def metric_unit(metric: str) -> str:
    """Return a metric's unit, derived from its name."""
    metric = metric_column(metric)
    stem = metric.rpartition(".")[0] if metric.count(".") == 2 and not metric.endswith(".count") else metric
    for suffix, unit in (("_bps", "bit/s"), ("_s", "s"), ("_packets", "packets")):
        if stem.endswith(suffix):
            return unit
    return ""


def words(column: str) -> str:
    """Return a column as an axis label: "network.bottleneck.rate" -> "bottleneck rate"."""
    parts = [p for p in column.split(".") if not p.isdecimal() and p not in ("network", "flows")]
    return " ".join(parts[-2:]).replace("_", " ")


def metric_words(metric: str) -> str:
    """Return a metric as an axis label, without the unit."""
    found = measure(metric)
    if found is not None:
        whose = {"run": "all flows", "flow": f"flow {found.who}", "group": found.who}[found.of]
        return f"{metric_words(found.column)} of {whose}"
    for suffix in ("_bps", "_s"):
        metric = metric.removesuffix(suffix)
    text = metric.replace("_", " ")
    for short, written in (
        ("rtt", "RTT"),
        ("p50 ", "median "),
        ("p95 ", "95th percentile of "),
        ("p99 ", "99th percentile of "),
    ):
        text = text.replace(short, written)
    return text


AFTER = frozenset(
    [
        "p95_rtt_s",
        "p95_delay_s",
        "loss_share",
        "dropped_queue",
        "dropped_loss",
        "marked",
        "queue_mean_packets",
        "queue_max_packets",
    ]
)
"""Metrics that exclude the warm-up; other metrics with a plain name cover the whole run."""


def span(metric: str) -> str:
    """Return the time covered by a metric in a scenario with a warm-up; empty if it has its own time, as a fetch does."""
    if measure(metric) is not None or metric in AFTER or metric.startswith(("links.", "performance.")):
        return "after the warm-up"
    if metric.startswith(("fetch", "completion")) or ("." in metric and not metric.startswith("flows.")):
        return ""
    return "over the whole run, the warm-up included"


def titled(text: str, unit: str) -> str:
    """Return an axis label with its unit."""
    return f"{text}, {unit}" if unit else text


def told(value: float, unit: str = "") -> str:
    """Format a number for a heading: three digits, with its unit."""
    return f"{value:.3g} {unit}".strip()


def ranked(means: Mapping[str, float], unit: str) -> str:
    """Return names and values from the largest to the smallest: "bbr 9.1, cubic 8.9, reno 8.2 Mbit/s"."""
    order = sorted(means, key=lambda name: -means[name])
    if len(order) <= 4:
        return titled_list([f"{name} {means[name]:.3g}" for name in order], unit)
    return f"most {order[0]} ({told(means[order[0]], unit)}), least {order[-1]} ({told(means[order[-1]], unit)})"


def titled_list(parts: Sequence[str], unit: str) -> str:
    """Join parts that share a unit, which is placed after the last one."""
    return f"{', '.join(parts)} {unit}".strip()
