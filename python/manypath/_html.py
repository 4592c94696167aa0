"""Runs as a table for notebooks."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .sim import Runs

POINTS_MAX = 20
"""Most rows."""

RUNS_MAX = 2000
"""Most runs that are read for the rows; the others are counted only."""

COLUMNS: dict[str, Callable[[dict[str, Any]], float | None]] = {
    "time [s]": lambda run: run.get("transfer_time_s"),
    "goodput [Mbit/s]": lambda run: _scaled(run.get("goodput_bps"), 1e-6),
    "timeouts": lambda run: run.get("timeouts"),
    "retransmissions": lambda run: sum(path.get("retransmissions", 0) for path in run.get("paths", [])),
}
"""The means of a row, by their names."""

Point = tuple[tuple[str, str], ...]
"""The swept parameters with their values."""


def table(runs: Runs) -> str:
    """A row for each of the first points: its parameters, how many runs, and their means."""
    points: dict[Point, list[dict[str, Any]]] = {}
    read = 0
    for number in range(min(len(runs), RUNS_MAX)):
        run = runs[number]
        point = tuple((str(name), str(value)) for name, value in run.get("parameters", {}).items())
        if point not in points and len(points) == POINTS_MAX:
            break
        points.setdefault(point, []).append(run)
        read += 1
    # Points of a scenario sweep the same parameters.
    swept = [name for name, _ in next(iter(points), ())]
    header = "".join(f"<th>{escape(name)}</th>" for name in [*swept, "runs", *COLUMNS])
    rows = "".join(_row(point, own) for point, own in points.items())
    more = f" The first {read} of them are shown." if read < len(runs) else ""
    caption = f"{len(runs)} runs of {escape(repr(runs.scenario))}.{more} Means ± half their 95 % confidence interval."
    return (
        f"<table><caption>{caption}</caption><thead><tr>{header}</tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def _row(point: Point, runs: Sequence[dict[str, Any]]) -> str:
    done = [run for run in runs if run.get("completed", True)]
    count = str(len(runs)) if len(done) == len(runs) else f"{len(runs)} ({len(runs) - len(done)} incomplete)"
    means = [_mean([value(run) for run in done]) for value in COLUMNS.values()]
    cells = [*(value for _, value in point), count, *means]
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


def _mean(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    mean = statistics.fmean(known)
    if len(known) == 1:
        return f"{mean:.4g}"
    half = _student(len(known) - 1) * statistics.stdev(known) / math.sqrt(len(known))
    return f"{mean:.4g} ± {half:.2g}"


def _student(freedom: int) -> float:
    """The 97.5th percentile of Student's t."""
    table = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
    if freedom <= len(table):
        return table[freedom - 1]
    # Cornish and Fisher's expansion; from here on it is exact to three digits.
    z = statistics.NormalDist().inv_cdf(0.975)
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
