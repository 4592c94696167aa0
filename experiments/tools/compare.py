#!/usr/bin/env python3
"""Compares the runs of two result folders of `manypath lab run`, row by row and field by field.

Says what differs, and ends with exit code 1 if anything does. For example, after a change that must not
change results:

  git switch main; manypath lab run 000 001 002 --seeds 1 --out before
  git switch mine; manypath lab run 000 001 002 --seeds 1 --out after
  experiments/tools/compare.py before after --ignore transport.rtx_policy --skip pf-fig15
"""
import argparse
import collections
import json
import pathlib
import sys

ABSENT = "(absent)"


def rows(folder, experiment):
    with open(folder / experiment / "runs.jsonl", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def experiments(folder):
    return {path.parent.name for path in folder.glob("*/runs.jsonl")}


def differences(before, after, ignored):
    """Fields of two rows with different values, and the values."""
    for field in sorted((before.keys() | after.keys()) - ignored):
        old, new = before.get(field, ABSENT), after.get(field, ABSENT)
        if old != new:
            yield field, old, new


def compare(experiment, before, after, ignored):
    """Prints what differs in one experiment; returns whether anything does."""
    if len(before) != len(after):
        print(f"{experiment}: {len(before)} rows before, {len(after)} after")
        return True
    counts, first = collections.Counter(), {}
    for number, (old, new) in enumerate(zip(before, after), 1):
        for field, *values in differences(old, new, ignored):
            counts[field] += 1
            first.setdefault(field, (number, *values))
    for field, count in counts.items():
        number, old, new = first[field]
        print(f"{experiment}: {field} differs in {count} of {len(before)} rows, first in row {number}: {old} -> {new}")
    return bool(counts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--ignore", metavar="FIELD", action="append", default=[], help="a field that may differ")
    parser.add_argument("--skip", metavar="EXPERIMENT", action="append", default=[], help="an experiment not to compare")
    args = parser.parse_args()
    both = [experiments(folder) - set(args.skip) for folder in (args.before, args.after)]
    differs = False
    for experiment in sorted(both[0] ^ both[1]):
        print(f"{experiment}: only {'before' if experiment in both[0] else 'after'}")
        differs = True
    count = 0
    for experiment in sorted(both[0] & both[1]):
        before = rows(args.before, experiment)
        differs |= compare(experiment, before, rows(args.after, experiment), set(args.ignore))
        count += len(before)
    print(f"{count} rows of {len(both[0] & both[1])} experiments compared: {'they differ' if differs else 'all equal'}")
    sys.exit(1 if differs or count == 0 else 0)


main()
