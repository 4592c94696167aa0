"""Draws what a transfer delivers while a path fails, from the CSV of the simulator's `failure` example.

    python3 failure.py failure.csv failure.svg          needs matplotlib
"""

import csv
import sys
from collections import defaultdict

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

COLOURS = {"SCTP": "#8a8f98", "CMT": "#d9822b", "CMT-PF": "#2b6cb0"}


def main(source: str, target: str) -> None:
    runs = defaultdict(list)
    with open(source, newline="") as file:
        for row in csv.DictReader(file):
            runs[row["system"]].append((float(row["time_s"]), int(row["delivered_bytes"]) / 2**20))
    matplotlib.rcParams.update({"font.family": "sans-serif", "svg.fonttype": "none", "svg.hashsalt": "manypath"})
    figure, axes = plt.subplots(figsize=(8, 3.4), facecolor="white")
    last = max(points[-1][0] for points in runs.values())
    for system, points in runs.items():
        done = points[-1][0]
        axes.plot(*zip(*points), color=COLOURS[system], linewidth=2, label=f"{system}: {done:.0f} s")
    axes.axvline(5, color="#c53030", linewidth=1, linestyle="--")
    axes.annotate("path 2 fails", (5, 0.2), xytext=(6, 0), textcoords="offset points", color="#c53030", fontsize=9)
    axes.set(xlabel="time, s", ylabel="delivered, MiB", xlim=(0, last), ylim=(0, 8.4))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, loc="lower right")
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
