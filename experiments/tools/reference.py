#!/usr/bin/env python3
"""Makes the reference.csv of experiments from a summary of runs of ns-2.

  reference.py SUMMARY.csv [ID...]

SUMMARY.csv has a line per parameter set: experiment, params ("name=value ..."), n, and NAME_mean, NAME_std
columns. EXPERIMENTS below says which lines belong to an experiment and what its swept parameters are called.
"""
import csv
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PERCENT = "{} %".format
# Result fields: theirs, ours. Those whose deviation is not known are shown but not compared.
CMT = {"t_ack": "ack_time_s", "t_ack_minus_t_data": "from_first_data_s", "timeouts": "timeouts"}

# Experiment: lines of the summary, its swept parameters by their names, fields.
EXPERIMENTS = {
    "002-cmt/cmt-fig12": ("a_fig12_64k", {"policy": ("transport.rtx_policy", str.lower), "loss2": ("path.2.loss", PERCENT)}, CMT),
}


def rows_of(lines, wanted, names, fields):
    for line in lines:
        if line["experiment"] != wanted:
            continue
        theirs = dict(pair.split("=", 1) for pair in line["params"].split())
        params = [show(theirs[name]) for name, (_, show) in names.items()]
        for field, ours in fields.items():
            mean, std = line.get(f"{field}_mean"), line.get(f"{field}_std", "")
            if mean:
                compare = "yes" if std else "no"
                yield params + [ours, mean, std, line["n"], f"ns-2 2.35 as packaged, {wanted}", compare]


def main():
    with open(sys.argv[1], newline="") as file:
        lines = list(csv.DictReader(file))
    for folder, (wanted, names, fields) in EXPERIMENTS.items():
        if sys.argv[2:] and folder.split("/")[-1] not in sys.argv[2:]:
            continue
        rows = list(rows_of(lines, wanted, names, fields))
        with open(ROOT / folder / "reference.csv", "w", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow([name for name, _ in names.values()] + ["field", "mean", "std", "n", "source", "compare"])
            out.writerows(rows)
        print(f"{folder}: {len(rows)} means")


if __name__ == "__main__":
    main()
