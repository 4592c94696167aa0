"""The result of the comparison as tables in Markdown, and as a page."""
import os
import platform
import shlex
import sys
import time


def grid(names, rows):
    lines = ["| network | " + " | ".join(names) + " |", "| --- |" + " ---: |" * len(names)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def share(median, best):
    if median is None:
        return ""
    text = f"{median['share']:.2f}"
    text = f"**{text}**" if text == best else text
    failed = f" ({median['failed']} of {median['rounds']} failed)" if median["failed"] else ""
    return text + failed + (" *" if median["late"] else "")


def gap(median):
    return "" if median is None or median["max_delivery_gap_s"] is None else f"{median['max_delivery_gap_s']:.2f}"


def tables(networks, names, medians):
    """Two tables: shares and gaps."""
    found = {(median["network"], median["stack"]): median for median in medians}
    shares, gaps = [], []
    for network in networks:
        own = [found.get((network.name, name)) for name in names]
        best = max((f"{median['share']:.2f}" for median in own if median), default="")
        shares.append([network.name] + [share(median, best) for median in own])
        gaps.append([network.name] + [gap(median) for median in own])
    text = "Share of what the links offer:\n\n" + grid(names, shares)
    text += "\n\nLongest gap between two deliveries, in seconds:\n\n" + grid(names, gaps)
    if any(median["late"] for median in medians):
        text += "\n\n\\* In at least one round the emulated links were late: the machine was too slow or busy."
    return text


def page(options, networks, text, runs):
    """A page of its own."""
    loads = [run["load"] for run in runs]
    lines = [
        "# Transports over several paths", "",
        f"{time.strftime('%d %B %Y', time.gmtime())}, {platform.system()} {platform.release()}, {os.cpu_count()} processors, load",
        f"{min(loads):.1f} to {max(loads):.1f} before the transfers. Medians of {options.rounds} rounds of {options.seconds:g} s;"
        " the best of each row is bold.",
        "Made by", "", f"    {shlex.join(['python3', 'bench/paths/run.py', *sys.argv[1:]])}", "", text, "",
        "The networks:", "", "| name | links |", "| --- | --- |",
        *(f"| {network.name} | {network.description} |" for network in networks), "",
    ]
    return "\n".join(lines)
