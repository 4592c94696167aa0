"""Figures of experiments by Matplotlib: the keys of figures.toml are those of docs/report.md."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

from . import _extras
from ._errors import LabError

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure
    import pandas

    from .lab import Experiment, Results

Spec = dict[str, Any]
"""A ``[[figure]]`` table."""


def find(experiment: Experiment, id: str) -> Spec:
    """The figure with this identifier; of an experiment the first one."""
    specs: list[Spec] = tomllib.loads(experiment.figures_toml).get("figure", [])
    wanted = [spec for spec in specs if spec.get("id", experiment.id) == id]
    if id == experiment.id:
        wanted = wanted or specs
    if not wanted:
        known = ", ".join(spec.get("id", experiment.id) for spec in specs) or "none"
        what = f"no figure is named `{id}`"
        raise LabError(experiment.id, None, what, f"its figures.toml has {known}")
    return wanted[0]


def draw(
    spec: Spec, experiment: Experiment, results: Results, variant: str
) -> matplotlib.figure.Figure:
    """Draws one figure."""
    if "relative_to" in spec:
        what = f"`{spec.get('id')}` draws changes against another line, which is not done here"
        raise LabError(experiment.id, None, what, "`manypath lab report` draws it")
    kind = spec.get("kind", "lines")
    frame = results.samples() if kind == "time" else results.summary()
    frame = _kept(frame[frame["variant"] == variant], spec)
    if frame.empty:
        known = ", ".join(results.about["variants"])
        what = f"there are no runs of the variant `{variant}` for this figure"
        raise LabError(str(results.folder), None, what, f"variants are {known}")
    facet = spec.get("facet")
    panels: list[str | None] = [*_values(frame, facet)] if facet else [None]
    figure: matplotlib.figure.Figure = _extras.load("matplotlib.figure", "figures").Figure(
        figsize=(6.4 if len(panels) == 1 else 4.2 * len(panels), 4.2), layout="constrained"
    )
    axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for panel, ax in zip(panels, axes, strict=True):
        part = frame if panel is None else frame[frame[facet] == panel]
        if panel is not None:
            ax.set_title(_named(spec, panel))
        _panel(spec, panel, part, results, ax)
    figure.suptitle(spec.get("title", experiment.title))
    axes[0].set_ylabel(_label(spec, "y", _fields(spec)[0]))
    return figure


def _stated(
    spec: Spec, panel: str | None, frame: pandas.DataFrame, ax: matplotlib.axes.Axes
) -> None:
    """Numbers that the paper states: stars."""
    texts = _values(frame, spec["x"]) if spec.get("x") in frame else []
    numbers = None if spec.get("kind") == "bars" else _numbers(texts)[0]
    places = dict(zip(map(_solid, texts), numbers or range(len(texts)), strict=True))
    lines = ax.get_legend_handles_labels()[1]
    labels = set()
    for stated in spec.get("stated", []):
        if panel is not None and stated.get("facet", panel) != panel:
            continue
        x = places.get(_solid(str(stated["x"])), stated["x"])
        name = stated["label"]
        # The colour of the line that it is about, if there is one.
        color = f"C{lines.index(name)}" if name in lines else "black"
        label = None if name in labels else f"{name}, the paper"
        ax.plot([x], [stated["y"]], "*", color=color, markeredgecolor="black", label=label)
        labels.add(name)


def _panel(
    spec: Spec,
    panel: str | None,
    frame: pandas.DataFrame,
    results: Results,
    ax: matplotlib.axes.Axes,
) -> None:
    kind = spec.get("kind", "lines")
    if kind == "time":
        _over_time(spec, frame, results, ax)
    elif kind == "scatter":
        _scatter(spec, frame, results, ax)
    else:
        _over_parameter(spec, frame, results, ax, is_bars=kind == "bars")
    _stated(spec, panel, frame, ax)
    if spec.get("x_log"):
        ax.set_xscale("log")
    if spec.get("y_log"):
        ax.set_yscale("log")
    if spec.get("y_zero") or kind == "bars":
        ax.set_ylim(bottom=0)
    ax.grid(alpha=0.3)
    if len(ax.get_legend_handles_labels()[1]) > 1:
        ax.legend()


def _over_parameter(
    spec: Spec, frame: pandas.DataFrame, results: Results, ax: matplotlib.axes.Axes, is_bars: bool
) -> None:
    x, [y], scale = spec["x"], _fields(spec), spec.get("y_scale", 1.0)
    frame = _field(frame, y, results)
    texts = _values(frame, x)
    numbers, unit = (None, "") if is_bars else _numbers(texts)
    places = dict(zip(texts, numbers or range(len(texts)), strict=True))
    lines = list(_lines(spec, frame, results, x))
    for index, (label, part) in enumerate(lines):
        at = [places[str(text)] for text in part[x]]
        mean, half = part["mean"] * scale, part["ci95"].fillna(0) * abs(scale)
        if is_bars:
            width = 0.8 / len(lines)
            at = [place + (index - (len(lines) - 1) / 2) * width for place in at]
            ax.bar(at, mean, width, yerr=half, label=label, capsize=2)
        else:
            ax.errorbar(at, mean, yerr=half, label=label, marker="o", markersize=4, capsize=2)
    if numbers is None:
        ax.set_xticks(range(len(texts)), [_named(spec, text) for text in texts])
    ax.set_xlabel(_label(spec, "x", x, unit))


def _scatter(
    spec: Spec, frame: pandas.DataFrame, results: Results, ax: matplotlib.axes.Axes
) -> None:
    x, [y] = spec["x"], _fields(spec)
    swept = results.about["parameters"]
    for label, part in _lines(spec, frame, results, None):
        across = _field(part, x, results).set_index(swept)["mean"] * spec.get("x_scale", 1.0)
        up = _field(part, y, results).set_index(swept)["mean"] * spec.get("y_scale", 1.0)
        up = up.reindex(across.index)
        ax.plot(across, up, "o", label=label)
    ax.set_xlabel(_label(spec, "x", x))


def _over_time(
    spec: Spec, frame: pandas.DataFrame, results: Results, ax: matplotlib.axes.Axes
) -> None:
    seed = spec.get("seed", frame["seed"].iloc[0])
    frame = frame[frame["seed"] == seed]
    scale = spec.get("y_scale", 1.0)
    for label, part in _lines(spec, frame, results, None):
        for series in _fields(spec):
            one = part[part["series"] == series]
            shown = _named(spec, series)
            name = shown if not label else f"{label} {shown}" if len(_fields(spec)) > 1 else label
            ax.step(one["time_s"], one["value"] * scale, where="post", label=name)
    ax.set_xlabel("time (s)")


def _fields(spec: Spec) -> list[str]:
    """The fields or series on the vertical axis."""
    y = spec["y"]
    return [y] if isinstance(y, str) else list(y)


def _field(frame: pandas.DataFrame, name: str, results: Results) -> pandas.DataFrame:
    found = frame[frame["field"] == name]
    if found.empty:
        what = f"the runs have no field `{name}`"
        remedy = "`manypath lab report` draws figures with columns derived from other runs"
        raise LabError(str(results.folder), None, what, remedy)
    return found


def _kept(frame: pandas.DataFrame, spec: Spec) -> pandas.DataFrame:
    """The rows that ``where`` keeps."""
    for name, values in spec.get("where", {}).items():
        solid = {_solid(value) for value in ([values] if isinstance(values, str) else values)}
        frame = frame[frame[name].map(_solid).isin(solid)]
    return frame


def _solid(text: str) -> str:
    """Values are the same without regard to white space."""
    return "".join(text.split())


def _lines(
    spec: Spec, frame: pandas.DataFrame, results: Results, x: str | None
) -> list[tuple[str, pandas.DataFrame]]:
    """The parts of the frame that are a line each, with their labels, in the order of the sweep."""
    named = spec.get("lines")
    fixed = {name for name, values in spec.get("where", {}).items() if isinstance(values, str)}
    fixed |= {x or "", spec.get("facet", "")}
    names = [name for name in results.about["parameters"] if name not in fixed]
    if named is not None:
        names = [named] if isinstance(named, str) else list(named)
    if not names:
        return [("", frame)]
    found = frame.groupby(names, sort=False)
    return [(" · ".join(_named(spec, str(value)) for value in key), part) for key, part in found]


def _values(frame: pandas.DataFrame, column: str) -> list[str]:
    """The values of a column, each once, in the order of the sweep."""
    return [str(value) for value in frame[column].unique()]


def _named(spec: Spec, value: str) -> str:
    name: str = spec.get("names", {}).get(value, value)
    return name


def _label(spec: Spec, axis: str, name: str, unit: str = "") -> str:
    label = spec.get(f"{axis}_label") or name.replace("_", " ").replace(".", " ")
    unit = spec.get(f"{axis}_unit") or unit
    return f"{label} ({unit})" if unit else label


def _numbers(texts: list[str]) -> tuple[list[float] | None, str]:
    """The numbers and the unit of values such as "7 %", if they have one unit in common."""
    found = [re.fullmatch(r"\s*(-?\d+(?:\.\d+)?)\s*(\D*?)\s*", text) for text in texts]
    units = {match[2] for match in found if match}
    if len(units) != 1 or not all(found):
        return None, ""
    return [float(match[1]) for match in found if match], units.pop()
