"""The map of pf-cross: how far both tables of the CMT-PF paper are from ours, by the times of the cross-traffic.

Reads the runs of `manypath lab run pf-cross --out DIR` and prints a table in Markdown. The score of a setting is the mean of
the squared distances between our means and the paper's numbers, each in units of what chance explains: the deviation of our
runs, for as many of ours and for the paper's 45. About 1 is chance alone. Numbers below 0.1 are left out, for they are one to
four timeouts in 45 runs.
"""

import argparse
import csv
import statistics
from pathlib import Path

PAPER_RUNS = 45
PATH_1, PATH_2 = "path1_data_chunks_sent", "path2_data_chunks_sent"
SECOND, THIRD, FOURTH = (f"path2_t3_in_a_row_{n}" for n in (2, 3, 4))
# (preset, load of path 2): field and number of Tables 1 and 2.
PAPER = {
    ("cmt", "70 %"): {SECOND: 0.49, PATH_1: 13857, PATH_2: 9486},
    ("cmt", "80 %"): {SECOND: 1.13, PATH_1: 15530, PATH_2: 7902},
    ("cmt", "90 %"): {SECOND: 3.73, THIRD: 0.60, PATH_1: 17137, PATH_2: 6401},
    ("cmt", "100 %"): {SECOND: 9.42, THIRD: 1.62, FOURTH: 0.18, PATH_1: 18093, PATH_2: 5508},
    ("cmt-pf", "70 %"): {PATH_1: 14002, PATH_2: 9344},
    ("cmt-pf", "80 %"): {PATH_1: 16029, PATH_2: 7416},
    ("cmt-pf", "90 %"): {PATH_1: 18153, PATH_2: 5362},
    ("cmt-pf", "100 %"): {PATH_1: 20318, PATH_2: 3193},
}
BEYOND = 1.96  # of these units: outside chance


def distance(values, field, expected):
    """Between the mean of ours and the paper's number, in units of chance."""
    # Ours may have no timeouts at all: a count's own deviation is the root of its mean.
    deviation = max(statistics.stdev(values), expected**0.5 if field not in (PATH_1, PATH_2) else 0)
    return (statistics.fmean(values) - expected) / (deviation * (1 / len(values) + 1 / PAPER_RUNS) ** 0.5)


def score(runs):
    """Of one setting, with its runs by preset and load: the score, how many numbers there are and are outside chance."""
    distances = []
    for point, numbers in PAPER.items():
        for field, expected in numbers.items():
            distances.append(distance([float(run[field]) for run in runs[point]], field, expected))
    return statistics.fmean(d * d for d in distances), len(distances), sum(abs(d) > BEYOND for d in distances)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="folder of the results, which has pf-cross/runs.csv")
    args = parser.parse_args()
    settings = {}
    with (args.results / "pf-cross" / "runs.csv").open() as file:
        for run in csv.DictReader(file):
            runs = settings.setdefault((run["times"], run["shape"]), {})
            runs.setdefault((run["transport.preset"], run["path.2.cross.load"]), []).append(run)
    print("| burst, pause | shape | score | outside chance |\n| --- | ---: | ---: | ---: |")
    for (times, shape), runs in settings.items():
        mean, numbers, outside = score(runs)
        print(f"| {times} | {shape} | {mean:.1f} | {outside} of {numbers} |")


if __name__ == "__main__":
    main()
