#!/usr/bin/env python3
"""Tests of `manypath replay`: real transfers between network namespaces are recorded and replayed.

    tests/replay/run.py --binary target/release/manypath [--require] [--keep DIR] [CASE...]

Each case is a transfer of a few seconds over the links of a scenario (`manypath emulate`), recorded with
`manypath send --trace`. The replayed original must take the recorded time, within 5 %, and the network that the record
shows must be the scenario's. With random losses a sender's times differ by more than that from one transfer to the next,
so that case has five, and their median counts. Needs Linux and the right to make network namespaces; skipped loudly
without it, unless --require is given.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

from requirements import add_binary, add_require, skip  # noqa: E402
from second_chance import Verdict, judge, settle  # noqa: E402

# Marks checks of what the network did in real time: a busy machine can be the reason why they are missed.
PACE = True
# The replayed original may differ from the recorded transfer by as much.
TOLERANCE = 0.05
PRESETS = "cmt,cmt-pf,adaptive"

TWO = """
transfer.size = "1 MB"
[[path]]
rate = "20 Mbit/s"
delay = "20 ms"
queue = "80 packets"
{first}
[[path]]
rate = "{rate}"
delay = "{delay}"
queue = "80 packets"
{second}
"""

SHARED = """
[[node]]
name = "a"
[[node]]
name = "r"
[[node]]
name = "z"
[[link]]
name = "first"
from = "a"
to = "r"
rate = "100 Mbit/s"
delay = "10 ms"
[[link]]
name = "second"
from = "a"
to = "r"
rate = "100 Mbit/s"
delay = "25 ms"
[[link]]
name = "core"
from = "r"
to = "z"
rate = "20 Mbit/s"
delay = "5 ms"
queue = "100 packets"
[[flow]]
from = "a"
to = "z"
size = "1 MB"
path = [{ via = ["first", "core"] }, { via = ["second", "core"] }]
"""


def two(rate="10 Mbit/s", delay="30 ms", first="", second=""):
    return TWO.format(rate=rate, delay=delay, first=first, second=second)


def near(found, truth, tolerance):
    return abs(found / truth - 1) <= tolerance


def rate_at(rates, time):
    """The rate in Mbit/s at a time of the transfer."""
    return [piece["bps"] for piece in rates["pieces"] if piece["from_s"] <= time][-1] / 1e6


def of_loss(paths, _):
    ratio = max(piece["ratio"] for piece in paths[0]["losses"])
    yield "random loss on path 1, 1 %", round(ratio, 4), 0.005 < ratio < 0.02, PACE


def of_outage(paths, _):
    outages = paths[1]["outages"]
    yield "outages of path 2, one of 1.5 s", outages, len(outages) == 1 and 1.2 < length(outages[0]) < 1.8, PACE
    yield "outages of path 1", len(paths[0]["outages"]), not paths[0]["outages"]


def length(outage):
    return (outage["to_s"] or 1e9) - outage["from_s"]


def of_rates(paths, _):
    # The links begin with the program, which takes a moment to open the association.
    for at, rate in ((1.0, 20), (2.8, 5)):
        found = rate_at(paths[0]["rates"], at)
        yield f"rate of path 1 at {at} s, {rate} Mbit/s", round(found, 2), near(found, rate, 0.1), PACE


def of_shared(_, network):
    groups = [link["paths"] for link in network["shared"]]
    yield "paths that share a bottleneck", groups, groups == [[0, 1]]
    rate = rate_at(network["shared"][0]["rates"], 2) if groups else 0
    yield "its rate, 20 Mbit/s", round(rate, 2), near(rate, 20, 0.1), PACE


def of_unequal(paths, network):
    for path, delay, rate in ((paths[0], 20, 20), (paths[1], 60, 8)):
        found = path["one_way_delay_s"] * 1e3
        yield f"delay of path {path['path']}, {delay} ms", round(found, 2), near(found, delay, 0.1), PACE
        found = rate_at(path["rates"], 2)
        yield f"rate of path {path['path']}, {rate} Mbit/s", round(found, 2), near(found, rate, 0.1), PACE
    yield "paths that share a bottleneck", network["shared"], not network["shared"]


LOSS = 'loss = { forward = "1 %", reverse = "0 %" }'
DOWN = 'down = [{ at = "2 s", for = "1500 ms" }]'
RATES = 'rate_changes = [{ at = "2 s", to = "5 Mbit/s" }, { at = "4 s", to = "20 Mbit/s" }]'
# So many transfers of a case; one of the others.
TRANSFERS = {"loss": 5}
# The scenario, megabytes, options of `send`, and what the network must be.
CASES = {
    "loss": (two(first=LOSS), 16, [], of_loss),
    "outage": (two(second=DOWN), 16, [], of_outage),
    "rates": (two(first=RATES), 16, [], of_rates),
    "shared": (SHARED, 12, ["--preset", "cmt-pf"], of_shared),
    "unequal": (two("8 Mbit/s", "60 ms"), 16, [], of_unequal),
}


def transfer(options, folder, name, number):
    """Records a transfer of a case; what `send` says of it."""
    scenario, megabytes, more, _ = CASES[name]
    (folder / f"{name}.toml").write_text(scenario)
    content, inbox = folder / f"{name}.bin", folder / f"{name}.{number}.inbox"
    content.write_bytes(os.urandom(megabytes * 1_000_000))
    inbox.mkdir()
    binary, record = options.binary, folder / f"{name}.{number}.jsonl"
    send = [binary, "send", str(content), "z:9899", "--trace", str(record), "--json", "--quiet",
            *(["--preset", options.preset] if options.preset else more)]
    environment = {**os.environ, "MANYPATH_TOKEN": "replay-test"}
    command = [binary, "emulate", str(folder / f"{name}.toml"), "--quiet",
               "--at", "z", f"{binary} recv --once --quiet --dir {inbox} >/dev/null", "--", *send]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment,
                          stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise RuntimeError(f"{name}: exit code {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def replay(options, folder, name, number):
    """What `replay` says of a recorded transfer."""
    command = [options.binary, "replay", str(folder / f"{name}.{number}.jsonl"), "--preset", PRESETS,
               "--out", str(folder / f"{name}.replay.toml"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise RuntimeError(f"{name}: exit code {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def checks(options, folder, name, sent):
    """What was checked of the transfers of a case: name, value, verdict, and PACE if it is a bound in time."""
    found = [replay(options, folder, name, number) for number in range(len(sent))]
    for said, replayed in zip(sent, found):
        recorded = replayed["record"]["time_s"]
        yield "recorded as `send` says", round(recorded / said["transfer_time_s"], 4), near(
            recorded, said["transfer_time_s"], TOLERANCE)
    times = ", ".join(f"{one['original']['time_s']:.3f} s of {one['record']['time_s']:.3f} s" for one in found)
    difference = statistics.median(one["difference"] for one in found)
    yield f"replayed {times}", f"{difference:+.1%}", abs(difference) <= TOLERANCE, PACE
    for one in found:
        yield from CASES[name][3](one["network"]["paths"], one["network"])
        times = {outcome["preset"]: outcome["time_s"] for outcome in one["presets"]}
        yield "times of the presets", times, list(times) == PRESETS.split(",") and all(times.values())
    scenario = folder / f"{name}.replay.toml"
    check = subprocess.run([options.binary, "sim", "check", str(scenario)], capture_output=True, text=True)
    yield "the scenario is one", check.returncode, check.returncode == 0


def errors(options, folder):
    """Files that are no records."""
    record = (folder / "unequal.0.jsonl").read_text()
    lines = record.splitlines(keepends=True)
    cut = "".join(lines[: len(lines) // 2]) + lines[len(lines) // 2][:50]
    cases = [
        ("a text", "hello\n", 2, "not the record of a transfer"),
        ("another version", record.replace('"schema":1', '"schema":99', 1), 2, "schema 99"),
        ("a damaged line", lines[0] + "{}\n" + "".join(lines[1:]), 2, "line 2"),
        ("a short transfer", "".join(lines[:40]), 1, "to tell a network"),
        ("a record cut short", cut, 0, "cut short"),
    ]
    for name, text, code, words in cases:
        file = folder / "wrong.jsonl"
        file.write_text(text)
        done = subprocess.run([options.binary, "replay", str(file), "--seeds", "1"], capture_output=True, text=True)
        yield f"{name}: exit code and words", done.returncode, done.returncode == code and words in done.stderr


def show(name, checks):
    """Prints what was checked of a case; the verdict."""
    for what, value, ok, *pace in checks:
        print(f"{'ok  ' if ok else 'LATE' if pace else 'FAIL'} {name}: {what}: {value}")
    sys.stdout.flush()
    return judge([(ok, bool(pace)) for _, _, ok, *pace in checks])


def run_alone(options, folder, name):
    """Records the transfers of a case again, and replays them; the verdict."""
    folder = folder / "again"
    folder.mkdir(exist_ok=True)
    sent = [transfer(options, folder, name, number) for number in range(TRANSFERS.get(name, 1))]
    return show(name, list(checks(options, folder, name, sent)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="*", choices=[*CASES, []], help="cases to run (default: all)")
    add_binary(parser, must=True)
    add_require(parser)
    parser.add_argument("--preset", help="records with this preset in place of the case's")
    parser.add_argument("--keep", type=Path, help="keeps records and scenarios in this folder")
    options = parser.parse_args()
    probe = subprocess.run([options.binary, "emulate", "/dev/stdin", "--quiet", "--", "true"], text=True,
                           capture_output=True, input=two())
    if probe.returncode != 0:
        return skip(options, f"no emulated network: {probe.stderr.strip()}")
    names = options.case or list(CASES)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        # One after the other: each transfer has the machine for itself.
        sent = {name: [transfer(options, folder, name, number) for number in range(TRANSFERS.get(name, 1))]
                for name in names}
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda name: list(checks(options, folder, name, sent[name])), names))
        verdicts = {name: show(name, checked) for name, checked in zip(names, found)}
        if "unequal" in names:
            verdicts["errors"] = show("errors", list(errors(options, folder)))
        late = [name for name, verdict in verdicts.items() if verdict is Verdict.LATE]
        more = ["--require"] * options.require + (["--preset", options.preset] if options.preset else [])
        command = [sys.executable, __file__, "--binary", options.binary, *more]
        bad = [name for name, verdict in verdicts.items() if verdict is Verdict.WRONG]
        bad += settle(late, lambda name: run_alone(options, folder, name), lambda name: [*command, name])
    print("all passed" if not bad else f"failed: {', '.join(bad)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
