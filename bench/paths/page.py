"""The results of the comparison: medians, tables in Markdown, and a page."""
import os
import platform
import shlex
import statistics
import sys
import time
from dataclasses import dataclass
from typing import Callable


@dataclass
class Table:
    """A table of the page: a value of each network and system, and which of a row is best, if one
    is.
    """
    key: str
    title: str
    short: str
    digits: int
    best: Callable | None = None
    # The networks that it has rows of.
    has: Callable = lambda case: True


def summarise(tables, runs):
    """The medians of each network and system."""
    medians = []
    for case, network, stack in dict.fromkeys((run["case"], run["network"], run["stack"]) for run in runs):
        own = [run for run in runs if (run["case"], run["stack"]) == (case, stack)]
        median = {"case": case, "network": network, "stack": stack, "rounds": len(own),
                  "failed": sum(run["error"] is not None for run in own), "late": sum(bool(run["warnings"]) for run in own)}
        for key in (table.key for table in tables):
            values = [run[key] for run in own if run.get(key) is not None]
            median |= {key: statistics.median(values), f"{key}_min": min(values), f"{key}_max": max(values)} if values else {key: None}
        medians.append(median)
    return medians


def described(tables, run):
    """A run in a line."""
    if run["error"] is not None:
        return f"FAILED: {run['error']}"
    values = [f"{table.short} {run[table.key]:.3g}" for table in tables if run[table.key] is not None]
    return ", ".join(values) + f", load {run['load']:.1f}" + ("; the links were late" if run["warnings"] else "")


def grid(names, rows):
    lines = ["| network | " + " | ".join(names) + " |", "| --- |" + " ---: |" * len(names)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def rows(table, wanted, cases, names, medians):
    """The rows of a table. The first table that has a network says which of its runs failed and
    which were late.
    """
    found = {(median["network"], median["stack"]): median for median in medians}
    for case in filter(table.has, cases):
        is_first = table is next(other for other in wanted if other.has(case))
        own = [found.get((case.name, name)) for name in names]
        values = [median[table.key] for median in own if median and median[table.key] is not None]
        best = f"{table.best(values):.{table.digits}f}" if values and table.best else None
        cells = []
        for median in own:
            value = median and median[table.key]
            text = "" if value is None else f"{value:.{table.digits}f}"
            text = f"**{text}**" if text and text == best else text
            if median and is_first:
                text += f" ({median['failed']} of {median['rounds']} failed)" if median["failed"] else ""
                text += " *" if median["late"] else ""
            cells.append(text.strip())
        yield [case.name, *cells]


def tables(wanted, cases, names, medians):
    """The tables of a measurement."""
    names = [name for name in names if any(median["stack"] == name for median in medians)]
    parts = []
    for table in (table for table in wanted if any(map(table.has, cases))):
        parts += [f"{table.title}:", grid(names, rows(table, wanted, cases, names, medians))]
    if any(median["late"] for median in medians):
        parts.append("\\* In at least one round the emulated links were late: the machine was too slow or busy.")
    return "\n\n".join(parts)


def page(options, parts):
    """A page of its own, of the measurements with their networks, tables and runs."""
    loads = [run["load"] for _, _, _, runs in parts for run in runs]
    lines = [
        "# Transports over several paths", "",
        f"{time.strftime('%d %B %Y', time.gmtime())}, {platform.system()} {platform.release()}, {os.cpu_count()} processors, load",
        f"{min(loads):.1f} to {max(loads):.1f} before the transfers. Medians of {options.rounds} round{'s'[:options.rounds > 1]} of {options.seconds:g} s;"
        " the best of each row is bold.",
        "Made by", "", f"    {shlex.join(['python3', 'bench/paths/run.py', *sys.argv[1:]])}", "",
    ]
    for measurement, cases, text, _ in parts:
        lines += [f"## {measurement.NAME.capitalize().replace('-', ' ')}", "", text, "", "The networks:", "", "| name | links |", "| --- | --- |",
                  *(f"| {case.name} | {case.description} |" for case in cases), ""]
    return "\n".join(lines)
