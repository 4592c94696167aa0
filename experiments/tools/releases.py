#!/usr/bin/env python3
"""Compares the profiles ns2-3.4 to ns2-3.7 with the releases of ns-2's SCTP module that they repeat.

  releases.py [--binary PATH] [--seeds N] [--out FOLDER] [--all] [--only ID,...] [RELEASE...]

It runs the points of each reference.csv whose source is an older release, by the variant that the line names, and
without placebos and other variants. A point agrees if the means are within 5 % of one another, or if Welch's test does
not tell them apart at p = 0.01. With fewer than five runs of the release the t test with a common deviation takes its
place: the deviation of three runs is often far too small by chance, and Welch's test relies on it. Prints the points that do not agree (--all: every point), and counts for each release.
"""
import argparse
import collections
import csv
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
NEAR, P = 0.05, 0.01
FEW = 5


def without_claims(text):
    """The title of a claims.toml, its samples, and what adds columns to the results."""
    head, *blocks = re.split(r"(?m)^(?=\[\[)", text)
    head = "".join(line for line in head.splitlines(True) if line.startswith(("title", "figure =", "samples", "counts_incomplete")))
    return head + "\n" + "".join(block for block in blocks if block.startswith("[[derive]]"))


def rows_by_variant(folder, release):
    with open(folder / "reference.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["source"].startswith(f"release {release} ")]
    by_variant = collections.defaultdict(list)
    for row in rows:
        by_variant[row.pop("variant")].append(row)
    return by_variant


def name_of(folder, variant, release):
    return folder.name if variant in ("scenario", f"release-{release}") else f"{folder.name}.{variant}"


def make_experiment(folder, variant, rows, into):
    """An experiment of one variant only, with the reference of one release."""
    into.mkdir(parents=True)
    (into / "claims.toml").write_text(without_claims((folder / "claims.toml").read_text()))
    shutil.copy(folder / "scenario.toml", into / ("base.toml" if variant != "scenario" else "scenario.toml"))
    if variant != "scenario":
        text = (folder / f"{variant}.toml").read_text()
        (into / "scenario.toml").write_text(text.replace('extends = "scenario.toml"', 'extends = "base.toml"'))
    with open(into / "reference.csv", "w", newline="") as file:
        out = csv.DictWriter(file, rows[0], lineterminator="\n")
        out.writeheader()
        out.writerows(rows)


def agreements(binary, experiments, out, seeds):
    command = [binary, "lab", "run", "all", "--experiments", experiments, "--out", out, "--jobs", "1", "--json"]
    command += ["--seeds", str(seeds)] if seeds else []
    result = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed")
    for line in result.stdout.splitlines():
        about = json.loads(line)
        for one in about["agreements"]:
            yield about["about"]["id"], one
        if about["not_compared"]:
            print(f"{about['about']['id']}: {about['not_compared']} means of the reference without runs of ours")


def student_p(t, df):
    """The two-sided p value of Student's t, by Simpson's rule."""
    scale = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)
    steps = 2000
    width = abs(t) / steps
    weights = [1, *[4, 2] * (steps // 2 - 1), 4, 1]
    inside = sum(w * (1 + (n * width) ** 2 / df) ** (-(df + 1) / 2) for n, w in enumerate(weights))
    return max(0.0, 1 - 2 * scale * inside * width / 3)


def p_of(one):
    ours, theirs = one["ours"], one["reference"]
    if theirs["n"] >= FEW or not theirs["std"] or not ours["std"]:
        return one["p"]
    df = ours["n"] + theirs["n"] - 2
    common = math.sqrt(((ours["n"] - 1) * ours["std"] ** 2 + (theirs["n"] - 1) * theirs["std"] ** 2) / df)
    return student_p((ours["mean"] - theirs["mean"]) / (common * math.sqrt(1 / ours["n"] + 1 / theirs["n"])), df)


def agrees(one):
    ratio, p = one["ratio"], p_of(one)
    return ratio is not None and abs(ratio - 1) <= NEAR or p is not None and p >= P


def describe(name, one):
    reference, ours = one["reference"], one["ours"]
    params = ", ".join(value for _, value in reference["params"])
    p = "" if p_of(one) is None else f", p {p_of(one):.4f}"
    ratio = float("nan") if one["ratio"] is None else 100 * (one["ratio"] - 1)
    return (
        f"{name}: {params}: {reference['field']} {ours['mean']:.6g} ({ours['n']}) for {reference['mean']:.6g} ({reference['n']}): "
        f"{ratio:+.1f} %{p}"
    )


def compare(release, args):
    with tempfile.TemporaryDirectory() as temporary:
        tree = pathlib.Path(temporary)
        for path in sorted(ROOT.glob("*/*/reference.csv")):
            folder = path.parent
            if args.only and folder.name not in args.only.split(","):
                continue
            for variant, rows in rows_by_variant(folder, release).items():
                make_experiment(folder, variant, rows, tree / folder.parent.name / name_of(folder, variant, release))
        out = pathlib.Path(args.out) / release if args.out else tree / "results"
        found = list(agreements(args.binary, tree, out, args.seeds))
    good = [one for _, one in found if agrees(one)]
    for name, one in found:
        if args.all or not agrees(one):
            print(("agrees   " if agrees(one) else "differs  ") + describe(name, one))
    share = 100 * len(good) / max(len(found), 1)
    means = [one["ratio"] for _, one in found if one["ratio"]]
    print(f"release {release}: {len(good)} of {len(found)} points agree ({share:.1f} %), mean ratio {sum(means) / max(len(means), 1):.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description="compares the profiles with the releases of ns-2's SCTP module")
    parser.add_argument("releases", nargs="*", default=["3.4", "3.5", "3.6", "3.7"])
    parser.add_argument("--binary", default="manypath")
    parser.add_argument("--seeds", type=int, help="default: those of each experiment")
    parser.add_argument("--out", help="keeps the results here")
    parser.add_argument("--all", action="store_true", help="prints the points that agree, too")
    parser.add_argument("--only", help="experiments, separated by commas")
    args = parser.parse_args()
    for release in args.releases:
        compare(release, args)


if __name__ == "__main__":
    main()
