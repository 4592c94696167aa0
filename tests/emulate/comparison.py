"""Cases about `bench/paths/run.py`: each measurement once, in a few seconds, with limits that only
nonsense exceeds.
"""
import json
import os
import subprocess
import sys
import types
from pathlib import Path

PATHS = Path(__file__).resolve().parents[2] / "bench" / "paths"
TCP = PATHS / "tcp.py"
# A peer as users name them.
PEER = (f"tcp :: {sys.executable} {TCP} --tcp server {{port}} {{out}} :: "
        f"{sys.executable} {TCP} --tcp client $(getent hosts z-2 z-1 | head -n 1 | cut -d ' ' -f 1) {{port}} {{seconds}} cubic")


def measured(lab, measurement, seconds, systems, networks, *more):
    """One round; the runs by network and system. None, and a check that failed, if something went
    wrong.
    """
    command = [sys.executable, str(PATHS / "run.py"), "--manypath", lab.options.binary, "--measure", measurement,
               "--seconds", str(seconds), "--rounds", "1", "--json", *more]
    command += [word for name in systems for word in ("--only", name)] + [word for name in networks for word in ("--network", name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                          env={**os.environ, "MANYPATH_BENCH_PEER": PEER})
    lab.check("exit code", (done.returncode, done.stderr.strip().splitlines()[-1:]), done.returncode == 0)
    if done.returncode != 0:
        return None
    found = {(run["case"], run["stack"]): run for run in json.loads(done.stdout)[measurement]["runs"]}
    errors = [run["error"] for run in found.values()]
    lab.check("errors", errors, errors and not any(errors))
    return found if errors and not any(errors) else None


def throughput(lab):
    """One short transfer by us and by a peer of its user."""
    page = lab.dir / "page.md"
    runs = measured(lab, "throughput", 2, ["manypath", "tcp"], ["01-equal"], "--page", str(page))
    if runs is None:
        return
    ours, tcp = runs["01-equal", "manypath"], runs["01-equal", "tcp"]
    lab.check("our share of two links", round(ours["share"], 3), 0.6 < ours["share"] < 0.98, pace=True)
    lab.check("share of TCP, on one of them", round(tcp["share"], 3), 0.3 < tcp["share"] < 0.5, pace=True)
    gaps = [run["max_delivery_gap_s"] for run in (ours, tcp)]
    lab.check("longest gaps, s", gaps, all(0 < gap < 1 for gap in gaps), pace=True)
    row = next((line for line in page.read_text().splitlines() if line.startswith("| 2 x 20/10 |")), "")
    lab.check("row of the page", row, f"{ours['share']:.2f}" in row and f"{tcp['share']:.2f}" in row)


def latency(lab):
    """Alone, on a path with a round trip of 20 ms, at a quarter of its rate, nothing queues: 5 ms
    are the resolution.
    """
    systems = ["manypath"] + ["mptcp-cubic"] * Path("/proc/sys/net/mptcp/enabled").exists()
    runs = measured(lab, "latency", 2, systems, ["3-slow-far-path"])
    for (_, system), run in (runs or {}).items():
        lab.check(f"{system}: alone, ms", round(run["alone_ms"], 1), 20 < run["alone_ms"] < 60, pace=True)
        lab.check(f"{system}: over both, ms", round(run["latency_ms"], 1), 20 < run["latency_ms"] < 2000, pace=True)
        lab.check(f"{system}: Mbit/s, half of 55", round(run["mbit_per_s"], 1), 20 < run["mbit_per_s"] < 28, pace=True)


def fairness(lab):
    """Beside CUBIC neither is starved, and the link is full; two flows get about the same."""
    runs = measured(lab, "fairness", 2, ["manypath"], ["cubic-1-bdp", "flows-2"])
    if runs is None:
        return
    beside, flows = runs["cubic-1-bdp", "manypath"], runs["flows-2", "manypath"]
    lab.check("share of CUBIC", round(beside["cubic_share"], 3), 0.1 < beside["cubic_share"] < 0.9, pace=True)
    lab.check("use of the link", round(beside["used"], 3), 0.8 < beside["used"] < 1.01, pace=True)
    lab.check("Jain's index of two", round(flows["jain"], 3), 0.7 < flows["jain"] <= 1, pace=True)
    lab.check("use of the link by two", round(flows["used"], 3), 0.7 < flows["used"] < 1, pace=True)


def queue(lab):
    """CUBIC fills the buffer until it overflows; ours must be told apart from that."""
    runs = measured(lab, "standing-queue", 4, ["manypath", "tcp"], ["1-one-path"])
    if runs is None:
        return
    ours, tcp = (runs["1-one-path", name] for name in ("manypath", "tcp"))
    lab.check("lowest, BDP", [run["paths"][0]["min_bdp"] for run in (ours, tcp)],
              all(run["paths"][0]["min_bdp"] >= 0 for run in (ours, tcp)))
    lab.check("of TCP, BDP", round(tcp["standing_bdp"], 2), 1 < tcp["standing_bdp"] < 26, pace=True)
    lab.check("ours, BDP", round(ours["standing_bdp"], 2), 0 <= ours["standing_bdp"] < tcp["standing_bdp"], pace=True)


def outages(lab):
    """One outage of 0.5 s."""
    runs = measured(lab, "outages", 2, ["manypath"], ["15-silent-often"])
    if runs is None:
        return
    run = runs["15-silent-often", "manypath"]
    lab.check("outages", len(run["outages"]), len(run["outages"]) == 1)
    lab.check("lost, s", round(run["lost_s"], 3), 0 < run["lost_s"] < 1, pace=True)
    lab.check("full after, s", round(run["full_after_s"], 3), 0 <= run["full_after_s"] < 1.5, pace=True)


def figures(lab):
    """The figures that are computed, of transfers that are made up, and the bounds."""
    sys.path.insert(0, str(PATHS))
    import bounds, counts, fairness as fair, outages as out, table
    network = table.load(PATHS / "networks" / "14-silent.toml")
    # Full rate on both paths, but for the outage from 3 to 5 s on the second and 0.4 s after it.
    # The delay is 10 ms.
    file, totals, lines = lab.dir / "received", {"path1": 0.0, "path2": 0.0}, []
    for step in range(501):
        second = step * 0.02
        lines.append(json.dumps([100 + second + 0.01, {name: int(total) for name, total in totals.items()}]))
        totals["path1"] += 50_000
        totals["path2"] += 0 if 3 <= round(second, 2) < 5.4 else 50_000
    # At the end the interfaces go, and the last line is cut off.
    file.write_text("\n".join([*lines, '[111, {"path2": 9}]', "[112, {}]"]) + "\n[1")
    received = counts.Counts(file)
    total = sum(totals.values()) - 100_000
    lab.check("all bytes", received.until(200), abs(received.until(200) - total) < 1)
    lost = out.lost(network, received, 100.0, 3.0, 5.0)
    lab.check("lost: 0.4 s of one of two equal paths, s", round(lost, 3), abs(lost - 0.2) < 0.005)
    full = out.full_after(network, received, 100.0, 2, 5.0, 10.0)
    lab.check("full after, s", round(full, 3), abs(full - 0.4) < 0.03)
    options = types.SimpleNamespace(seconds=3)
    lab.check("outages within 6 s", out.outages(network, options), out.outages(network, options) == [(2, 3.0, 5.0)])
    options.seconds = 2.9
    lab.check("outages within 5.8 s", out.outages(network, options), not out.outages(network, options))
    lab.check("bytes of a second", received.between(101.01, 102.01), received.between(101.01, 102.01) == 2 * 2_500_000)
    # Of 3 s, the first one does not count.
    intervals = [{"begin_s": n / 10, "end_s": (n + 1) / 10, "bytes": 7 if n < 10 else 1} for n in range(30)]
    result = {"role": "client", "completed": False, "bytes": 100}
    file.write_text("".join(json.dumps(line) + "\n" for line in [*intervals, result]))
    lab.check("bytes after the warm-up", fair.amount(file, 2.0), fair.amount(file, 2.0) == 20)
    medians = [{"case": "08-loss-0.5", "network": "x", "stack": stack, "share": share}
               for stack, share in (("manypath", 0.9), ("mptcp-cubic", 0.44), ("mptcp-bbr", 0.96))]
    wrong, looked = bounds.violations(bounds.load(), "throughput", medians, "manypath", {"mptcp-cubic", "mptcp-bbr"})
    # At least 0.92, and 0.95 of BBR's 0.96, which is 0.91, are missed; twice the share of CUBIC is
    # kept.
    lab.check("bounds", (looked, wrong), looked == 3 and len(wrong) == 2 and "0.92" in wrong[0] and "mptcp-bbr" in wrong[1])
    names = {(measurement, pattern) for measurement, pattern, *_ in bounds.load()}
    files = {path.stem for path in (PATHS / "networks").glob("*.toml")}
    without = {name for name in files if ("throughput", name) not in names}
    lab.check("networks without bounds", without, not without)


CASES = {f"comparison-{name}": case for name, case in (
    ("throughput", throughput), ("latency", latency), ("fairness", fairness), ("queue", queue), ("outages", outages),
    ("figures", figures))}
