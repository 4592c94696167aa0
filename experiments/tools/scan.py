"""The maps over what the papers do not give: how far their numbers are from ours at each setting.

Reads the runs of `manypath lab run MAP --out DIR` and prints a table in Markdown, a row for each setting:

    python3 experiments/tools/scan.py MAP DIR

The score of a setting is the mean of the squared distances between our means and the paper's numbers, each in a unit of its
own. Where the paper says how many runs it has, that is what chance explains: the deviation of our runs, for as many of ours and
for the paper's. Else it is the tolerance of the claim about that number. About 1 is chance alone, or a number at the edge of its
tolerance. In brackets: how many numbers are outside, and of the paper's statements how many our means go with. Where the text
allows several readings of a system each has a column.
"""

import argparse
import csv
import statistics
from dataclasses import dataclass, field
from pathlib import Path

BEYOND = 1.96  # units of chance: outside it


@dataclass
class Number:
    """A number of the paper: the point and the field that measure it here, and the tolerance of its claim."""

    point: dict
    field: str
    expected: float
    tolerance: float = None


@dataclass
class Map:
    """What is read from the runs of an experiment."""

    settings: list  # columns whose values make a setting
    readings: dict  # name of a reading: its numbers
    paper_runs: int = None
    counts: bool = False  # numbers are counts of rare events
    statements: dict = field(default_factory=dict)  # name of a reading: functions of a setting's runs, true if one goes with it
    shown: dict = field(default_factory=dict)  # head of a column: point, field and scale of a mean


PATH_1, PATH_2 = "path1_data_chunks_sent", "path2_data_chunks_sent"
SECOND, THIRD, FOURTH = (f"path2_t3_in_a_row_{n}" for n in (2, 3, 4))
# (preset, load of path 2): field and number of Tables 1 and 2. Numbers below 0.1 are left out, for they are one to four
# timeouts in 45 runs.
CROSS = {
    ("cmt", "70 %"): {SECOND: 0.49, PATH_1: 13857, PATH_2: 9486},
    ("cmt", "80 %"): {SECOND: 1.13, PATH_1: 15530, PATH_2: 7902},
    ("cmt", "90 %"): {SECOND: 3.73, THIRD: 0.60, PATH_1: 17137, PATH_2: 6401},
    ("cmt", "100 %"): {SECOND: 9.42, THIRD: 1.62, FOURTH: 0.18, PATH_1: 18093, PATH_2: 5508},
    ("cmt-pf", "70 %"): {PATH_1: 14002, PATH_2: 9344},
    ("cmt-pf", "80 %"): {PATH_1: 16029, PATH_2: 7416},
    ("cmt-pf", "90 %"): {PATH_1: 18153, PATH_2: 5362},
    ("cmt-pf", "100 %"): {PATH_1: 20318, PATH_2: 3193},
}


def cross():
    """pf-cross: Tables 1 and 2 of the CMT-PF paper, by the times of the cross-traffic."""
    numbers = [
        Number({"transport.preset": preset, "path.2.cross.load": load}, name, expected)
        for (preset, load), fields in CROSS.items()
        for name, expected in fields.items()
    ]
    return Map(["times", "shape"], {"score": numbers}, paper_runs=45, counts=True)


RT, RTV2 = ["MSACMT-RT", "MSACMT-RT, once"], ["MSACMT-RTv2", "MSACMT-RTv2, restart"]
TIME = "transfer_time_s"


def links():
    """msacmt-links: the two times that the text of the MSACMT-RTv2 paper gives, by the links and by the readings."""
    one, five, large, small = ({"case": case} for case in ("60 MiB, 1 failure", "60 MiB, 5 failures", "60 MiB", "20 MiB"))

    def gain(runs, rt, rtv2, case):
        return mean(runs, {"line": rtv2} | case, TIME) / mean(runs, {"line": rt} | case, TIME) - 1

    def held(rt, rtv2):
        return [
            lambda runs: gain(runs, rt, rtv2, large) < gain(runs, rt, rtv2, small) < 0,
            lambda runs: abs(gain(runs, rt, rtv2, small)) <= 0.05,
            lambda runs: gain(runs, rt, rtv2, five) < gain(runs, rt, rtv2, one) < 0,
        ]

    result = Map(["rates", "delays", "queues"], {})
    for rt in RT:
        for rtv2 in RTV2:
            name = f"{rt.removeprefix('MSACMT-')}; {rtv2.removeprefix('MSACMT-')}"
            numbers = [(rt, 55.02), (rtv2, 48.05)]
            result.readings[name] = [Number({"line": line} | one, TIME, s, 0.1 * s) for line, s in numbers]
            result.statements[name] = held(rt, rtv2)
    for line in RT + RTV2:
        result.shown[f"{line.removeprefix('MSACMT-')}, s"] = ({"line": line} | one, TIME, 1)
    return result


def ratios(settings, numbers):
    """mtcp-fig8-map, mtcp-fig9-map: ratios of Figs. 8 and 9 of the mTCP paper, by the links; interval: number, tolerance."""
    points = {interval: {"transport.shared_interval": interval} for interval in numbers}
    wanted = [Number(points[interval], "shared_ratio", *number) for interval, number in numbers.items()]
    return Map(settings, {"score": wanted}, shown={interval: (point, "shared_ratio", 1) for interval, point in points.items()})


def fig11a():
    """cmt-fig11a-map: the three times that the text of the CMT paper gives for 7 % of losses, by what it does not give."""
    lines = {"AppStripe": 40.4, "RTX-SAME": 35.5, "RTX-CWND": 33.2}
    return Map(
        ["chunks", "transport.sack_delay", "transport.initial_ssthresh"],
        {"score": [Number({"line": line}, "ack_time_s", s) for line, s in lines.items()]},
        paper_runs=30,
        shown={f"{line}, s": ({"line": line}, "ack_time_s", 1) for line in lines},
    )


MAPS = {
    "cmt-fig11a-map": fig11a(),
    "pf-cross": cross(),
    "msacmt-links": links(),
    "mtcp-fig8-map": ratios(["rate", "queue", "tcp"], {"5 ms": (0.4, 0.1), "100 ms": (0.8, 0.1), "400 ms": (0.96, 0.06)}),
    "mtcp-fig9-map": ratios(["rate", "queue"], {"5 ms": (0.14, 0.1), "200 ms": (0.28, 0.1), "400 ms": (0.39, 0.1)}),
}


def values(runs, point, name):
    """Of the runs at a point."""
    return [float(run[name]) for run in runs if all(run[key] == value for key, value in point.items())]


def mean(runs, point, name):
    """Of the runs at a point."""
    return statistics.fmean(values(runs, point, name))


def distance(scan, ours, number):
    """Between the mean of ours and the paper's number, in its unit."""
    if number.tolerance:
        return (statistics.fmean(ours) - number.expected) / number.tolerance
    # Ours may have no timeouts at all: a count's own deviation is the root of its mean.
    is_count = scan.counts and number.field not in (PATH_1, PATH_2)
    deviation = max(statistics.stdev(ours), number.expected**0.5 if is_count else 0)
    return (statistics.fmean(ours) - number.expected) / (deviation * (1 / len(ours) + 1 / scan.paper_runs) ** 0.5)


def score(scan, runs, numbers):
    """Of one setting, with its runs: the score, and how many numbers are outside."""
    distances = [distance(scan, values(runs, number.point, number.field), number) for number in numbers]
    outside = sum(abs(d) > (1 if number.tolerance else BEYOND) for d, number in zip(distances, numbers))
    return statistics.fmean(d * d for d in distances), outside


def row(scan, setting, runs):
    """The cells of a setting."""
    cells = list(setting)
    for point, name, scale in scan.shown.values():
        cells.append(f"{mean(runs, point, name) * scale:.2f}")
    for reading, numbers in scan.readings.items():
        value, outside = score(scan, runs, numbers)
        statements = scan.statements.get(reading)
        held = f"; {sum(holds(runs) for holds in statements)} of {len(statements)}" if statements else ""
        cells.append(f"{value:.1f} ({outside} of {len(numbers)}{held})")
    return cells


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("map", choices=MAPS, help="the experiment")
    parser.add_argument("results", type=Path, help="folder of the results, which has MAP/runs.csv")
    args = parser.parse_args()
    scan, settings = MAPS[args.map], {}
    with (args.results / args.map / "runs.csv").open() as file:
        for run in csv.DictReader(file):
            settings.setdefault(tuple(run[column] for column in scan.settings), []).append(run)
    heads = scan.settings + list(scan.shown) + list(scan.readings)
    rows = [heads, ["---"] * len(scan.settings) + ["---:"] * (len(heads) - len(scan.settings))]
    rows += [row(scan, setting, runs) for setting, runs in settings.items()]
    print("\n".join(f"| {' | '.join(cells)} |" for cells in rows))


if __name__ == "__main__":
    main()
