#!/usr/bin/env python3
"""Holds traces of the example scenarios against their JSON Schema, with a validator that is not ours.

    tests/docs/schema.py --binary target/release/manypath docs/trace.schema.json examples/scenarios/*.toml [--require]

One line of every form is validated: an event with its fields, their types and, within, those of its chunks. Each line is
then changed, one value at a time, to one of a type that no field has, and such lines must be refused: a schema that accepts
anything would pass otherwise. Needs the Python package `jsonschema`; skipped without it, unless --require is given.
"""

import argparse
import copy
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

from requirements import add_binary, add_require, skip  # noqa: E402

# No field of a trace is a list of lists.
NEVER = [[]]


def form(value):
    """What kind of value it is, with all names and types within."""
    if isinstance(value, dict):
        return tuple((name, value[name] if name in ("event", "kind") else form(value[name])) for name in sorted(value))
    if isinstance(value, list):
        return tuple(sorted({repr(form(item)) for item in value}))
    return type(value).__name__


def places(value, path=()):
    """Every place in it, from the outside inwards."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        yield (*path, name)
        yield from places(inner, (*path, name))


def changed(value, path):
    """A copy with something impossible at that place."""
    value = copy.deepcopy(value)
    at = value
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = NEVER
    return value


def forms_of(binary, scenario):
    """A line of each form in the trace of a scenario's first point."""
    command = [binary, "sim", "run", scenario, "--point", "1", "--seeds", "1..1", "--trace", "-", "--quiet"]
    found, lines = {}, 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        for line in process.stdout:
            record = json.loads(line)
            found.setdefault(form(record), record)
            lines += 1
    if process.returncode or not lines:
        sys.exit(f"FAILED: {' '.join(command)}: exit code {process.returncode}, {lines} lines")
    return lines, list(found.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("schema")
    parser.add_argument("scenario", nargs="+")
    add_binary(parser, must=True)
    add_require(parser)
    options = parser.parse_args()
    try:
        import jsonschema
    except ImportError:
        return skip(options, "traces against their schema: install python3-jsonschema, or `pip install jsonschema`")
    with open(options.schema) as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    failures, events = 0, set()
    for scenario in options.scenario:
        lines, records = forms_of(options.binary, scenario)
        refused = 0
        for record in records:
            events.add(record["event"])
            error = next(validator.iter_errors(record), None)
            if error:
                failures += 1
                print(f"not as the schema says: {json.dumps(record)}\n  {error.message[:300]}", file=sys.stderr)
            for path in places(record):
                refused += 1
                if validator.is_valid(changed(record, path)):
                    failures += 1
                    print(f"the schema accepts anything as {'.'.join(map(str, path))} of {json.dumps(record)}", file=sys.stderr)
        print(f"{scenario}: {lines} lines of {len(records)} forms are as the schema says, {refused} changed ones are not")
    print(f"events met: {', '.join(sorted(events))}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
