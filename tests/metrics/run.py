#!/usr/bin/env python3
"""The metrics as users have them: scraped by Prometheus, and shown by the board in examples/grafana.

    tests/metrics/run.py --binary target/release/manypath [--require]

Prometheus scrapes a measurement over loopback and a relay; its figures must be those of the measurement. Every
expression of the board is evaluated there, and the board is held against Grafana's own types (board.py). --require
makes missing programs and packages a failure.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

from failure import Failed, expect  # noqa: E402
from measurement import Measurement, free_port, get, until  # noqa: E402
from requirements import add_binary, add_require, skip  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
BOARD = ROOT / "examples" / "grafana" / "manypath.json"
CONFIG = ROOT / "examples" / "prometheus.yml"
RATE_BPS = 40e6
# Of the process itself, not of an association or a path.
OF_PROCESS = ["manypath_build_info", "manypath_associations", "manypath_acked_bytes_total"]


class Prometheus:
    """Prometheus with the configuration of examples/, but for the addresses and a shorter interval."""

    def __init__(self, it, targets):
        config = CONFIG.read_text().replace("scrape_interval: 5s", "scrape_interval: 500ms")
        for old, new in zip(["127.0.0.1:9464", "127.0.0.1:9465"], targets):
            expect(f"- {old}\n" in config, f"{old} is not in {CONFIG.name}")
            config = config.replace(f"- {old}\n", f"- {new}\n")
        file = it.folder / "prometheus.yml"
        file.write_text(config)
        port = free_port()
        self.base = f"http://127.0.0.1:{port}"
        command = ["prometheus", f"--config.file={file}", f"--storage.tsdb.path={it.folder / 'data'}", f"--web.listen-address=127.0.0.1:{port}"]
        it.started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        until(self.is_ready, seconds=20)

    def is_ready(self):
        """Prometheus is ready"""
        try:
            return bool(get(self.base + "/-/ready"))
        except OSError:
            return False

    def ask(self, path, **parameters):
        try:
            answer = json.loads(get(f"{self.base}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"))
        except urllib.error.HTTPError as error:
            raise Failed(f"{parameters}: {error.read().decode()}") from None
        return answer["data"]

    def values(self, expression):
        """The values of an expression now, with their labels."""
        return [(row["metric"], float(row["value"][1])) for row in self.ask("query", query=expression)["result"]]


def rules(address):
    """promtool finds nothing to say; names and types are those of the conventions."""
    text = get(f"http://{address}/metrics")
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True)
    expect(checked.returncode == 0, f"promtool: {checked.stdout}{checked.stderr}")
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M):
        expect(name.startswith("manypath_"), f"{name} does not begin with manypath_")
        expect((kind == "counter") == name.endswith("_total"), f"{name} is a {kind}")
    return set(re.findall(r"^# TYPE (\S+)", text, re.M))


def page(names):
    """docs/metrics.md lists every metric, and no other."""
    listed = set(re.findall(r"^\| `(manypath_\w+)`", (ROOT / "docs" / "metrics.md").read_text(), re.M))
    expect(names <= listed, f"not in docs/metrics.md: {sorted(names - listed)}")
    expect(listed <= names, f"only in docs/metrics.md: {sorted(listed - names)}")


def figures(prometheus):
    """The rates and paths that Prometheus knows are those of the measurement."""
    seconds = 3
    rate = sum(value for _, value in prometheus.values(f"8 * rate(manypath_path_acked_bytes_total[{seconds}s])"))
    expect(0.8 * RATE_BPS < rate < 1.25 * RATE_BPS, f"{rate / 1e6:.1f} Mbit/s over all paths, of {RATE_BPS / 1e6:.0f}")
    whole = prometheus.values(f"8 * rate(manypath_acked_bytes_total[{seconds}s]) > 0")
    expect(len(whole) == 1 and 0.8 * RATE_BPS < whole[0][1] < 1.25 * RATE_BPS, f"of the process: {whole}")
    rtts = prometheus.values("manypath_path_rtt_seconds")
    expect(len(rtts) == 2 and all(0 < value < 1 for _, value in rtts), f"round-trip times: {rtts}")
    for labels, _ in rtts:
        wanted = {"association", "path", "local", "remote"}
        expect(wanted <= set(labels), f"labels: {labels}")
    active = prometheus.values('manypath_path_state{state="active"} == 1')
    expect(len(active) == 2, f"active paths: {active}")
    metadata = prometheus.ask("metadata")
    for name in OF_PROCESS:
        expect(name in metadata and metadata[name][0]["help"], f"Prometheus knows no help of {name}")


def board(prometheus):
    """Every expression of the board is valid, and there is something to see."""
    shown = json.loads(BOARD.read_text())
    variables = {"$__rate_interval": "3s", "$job": ".*", "$instance": ".*"}
    count = 0
    for panel in shown["panels"]:
        for target in panel["targets"]:
            expression = target["expr"]
            for name, value in variables.items():
                expression = expression.replace(name, value)
            expect("$" not in expression, f"an unknown variable in {expression}")
            expect(prometheus.values(expression), f"{panel['title']}: nothing to see of {expression}")
            count += 1
    expect(count > 10, f"only {count} expressions")
    return count


def types(require):
    """The board consists of what Grafana knows."""
    from board import problems
    try:
        found = problems(json.loads(BOARD.read_text()))
    except ModuleNotFoundError as error:
        if require:
            raise Failed(f"{error}; pip install grafana-foundation-sdk") from None
        print(f"metrics: SKIPPED: the board against Grafana's types: {error}", file=sys.stderr)
        return
    expect(not found, "\n".join(found))


def relay(it):
    """Starts a relay that knows another one; the address of its metrics."""
    command = [it.binary, "relay", "--listen", "127.0.0.1", "--user", "ann:password"]
    port = free_port()
    printed = open(it.folder / "relay.txt", "w+")
    for options in (["--port", port], ["--port", 0, "--peers", f"127.0.0.1:{port}", "--metrics", 0]):
        it.started.append(subprocess.Popen([*command, *map(str, options)], stdout=printed, stderr=printed, env=it.environment))

    def there():
        return re.search(r"Metrics: http://(\S+)/metrics", (it.folder / "relay.txt").read_text())
    return until(there)[0].group(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_binary(parser, must=True)
    add_require(parser)
    options = parser.parse_args()
    gone = [name for name in ("prometheus", "promtool") if not shutil.which(name)]
    if gone:
        return skip(options, f"metrics: not installed: {', '.join(gone)}")
    failed = 0

    def case(of, *arguments):
        nonlocal failed
        try:
            value = of(*arguments)
            print(f"ok    {of.__name__}: {of.__doc__.splitlines()[0]}")
            return value
        except (Failed, OSError, subprocess.SubprocessError) as error:
            failed += 1
            print(f"FAIL  {of.__name__}: {error}")
            return None

    with Measurement(options.binary) as it:
        it.client("-n", "1GB", "--metrics", "0")
        client = it.printed(r"Metrics: http://(\S+)/metrics")
        relayed = relay(it)
        prometheus = Prometheus(it, [client, relayed])
        # It takes some seconds until it begins to scrape. Then rates need more than two scrapes.
        until(lambda: len(prometheus.values("up == 1")) == 2, seconds=20)
        time.sleep(3.5)
        names = (case(rules, client) or set()) | (case(rules, relayed) or set())
        case(page, names)
        case(figures, prometheus)
        case(board, prometheus)
        case(types, options.require)
    print(f"metrics: {failed} failed" if failed else "metrics: all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
