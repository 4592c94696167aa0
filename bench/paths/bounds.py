"""Holds medians against bounds.toml."""
import fnmatch
import tomllib
from pathlib import Path

FILE = Path(__file__).with_name("bounds.toml")


class BoundsError(Exception):
    """The file of bounds is wrong; the message says where."""


def load(file=FILE):
    """The bounds: of each measurement, a pattern of networks, a value, and its conditions."""
    found = []
    for measurement, networks in tomllib.loads(file.read_text(encoding="utf-8")).items():
        for pattern, values in networks.items():
            for key, conditions in values.items():
                for unknown in set(conditions) - {"least", "most", "of_best", "of"}:
                    raise BoundsError(f"{file.name}: {measurement}, {pattern}, {key}: {unknown} is no condition")
                found.append((measurement, pattern, key, conditions))
    return found


def violations(bounds, measurement, medians, system, peers):
    """Bounds of a measurement that a system misses, in words, and the number of conditions that
    were looked at.
    """
    wrong, looked = [], 0
    for median in (median for median in medians if median["stack"] == system):
        others = {other["stack"]: other for other in medians if other["case"] == median["case"] and other["stack"] in peers}
        for _, pattern, key, conditions in bounds:
            if _ != measurement or not fnmatch.fnmatch(median["case"], pattern):
                continue
            for text, is_met in judged(median.get(key), key, conditions, others):
                looked += 1
                if not is_met:
                    wrong.append(f"{measurement}: {median['network']}: {text}")
    return wrong, looked


def judged(value, key, conditions, others):
    """Each condition that can be judged, in words, and the answer. Values count as the tables show
    them, to 1/100.
    """
    shown = "unknown" if value is None else f"{value:.2f}"
    rounded = None if value is None else round(value, 2)
    if "least" in conditions:
        least = conditions["least"]
        yield f"{key} is {shown}, at least {least} is asked", rounded is not None and rounded >= least
    if "most" in conditions:
        most = conditions["most"]
        yield f"{key} is {shown}, at most {most} is asked", rounded is not None and rounded <= most
    factors = dict(conditions.get("of", {}))
    if "of_best" in conditions:
        known = [other for other in others if others[other].get(key) is not None]
        if known:
            best = max(known, key=lambda name: others[name][key])
            factors[best] = max(factors.get(best, 0), conditions["of_best"])
    for name, factor in factors.items():
        if name in others and others[name].get(key) is not None:
            other = round(others[name][key], 2)
            yield (f"{key} is {shown}, {factor:g} x that of {name} ({other:.2f}) is asked",
                   rounded is not None and rounded >= round(factor * other, 2))
