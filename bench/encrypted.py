"""The encrypted comparison of run.py: quinn, manypath, and manypath in plain, in turns."""
import os
import pathlib
import shutil
import statistics
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
# The length of IP packets at which the best of quinn was seen; above 6578 bytes its batches of ten packets are
# longer than the kernel takes, probably.
QUINN_LARGE = ["--mtu", "6500", "--window", "1250000"]
SAME_SIZE = 1500
COLUMNS = [("mbit_per_s", "Mbit/s", "{:8.0f}"), ("sender_cpu_s_per_gb", "sender CPU s/GB", "{:8.2f}"),
           ("receiver_cpu_s_per_gb", "receiver CPU s/GB", "{:8.2f}"), ("packet_bytes", "packet bytes", "{:8.0f}")]
PLAIN, OURS, QUINN, LARGE = "manypath plain", "manypath", "quinn", "quinn large"


def stacks(args):
    """Name, kind, options of both ends, of each stack, in the order of a round."""
    pmtu = f" --set pmtu_max={SAME_SIZE}" if args.same_size else ""
    quinn = ["--mtu", str(SAME_SIZE)] if args.same_size else []
    found = [(QUINN, "quinn", quinn)]
    if not args.same_size:
        found.append((LARGE, "quinn", QUINN_LARGE))
    return [*found, (OURS, "manypath", pmtu.split()), (PLAIN, "manypath", f"--insecure{pmtu}".split())]


def build_quinn(error):
    """Builds the program on the crate quinn with its own lock file, and returns its path."""
    if shutil.which("cargo") is None:
        raise error("not found: cargo. Install Rust, or name a built program with --quinn-binary")
    manifest = HERE / "quinn" / "Cargo.toml"
    target = HERE / "quinn" / "target"
    made = subprocess.run(["cargo", "build", "--quiet", "--release", "--locked", "--manifest-path", manifest, "--target-dir", target],
                          stderr=subprocess.PIPE, text=True, check=False)
    if made.returncode != 0:
        raise error(f"could not build the quinn program:\n{made.stderr.strip()}")
    return target / "release" / "quinn-bulk"


def run_one(bench, args, name, kind, options):
    """One transfer; `bench` is the module that runs processes."""
    port = bench.free_port()
    if kind == "quinn":
        server, client = bench.transfer(
            [args.quinn_binary, "server", "--listen", f"127.0.0.1:{port}", *options],
            [args.quinn_binary, "client", f"127.0.0.1:{port}", args.seconds, *options], args.seconds)
        result, sent = bench.last_object(server), bench.last_object(client)
        rate, packet = result["mbit_per_s"] * 1e6, sent["packet_bytes"]
    else:
        server, client = bench.transfer(
            [args.manypath, "perf", "server", "--listen", "127.0.0.1", "--port", port, "--once", "--json", *options],
            [args.manypath, "perf", "client", f"127.0.0.1:{port}", "-t", args.seconds, "--json", *options], args.seconds)
        result = bench.last_object(client)
        rate, packet = result["goodput_bps"], max(path["mtu_bytes"] for path in result["paths"])
    return bench.measure(name, rate, result["bytes"], server, client) | {"packet_bytes": packet, "load": os.getloadavg()[0]}


def both_ends(run):
    return run["sender_cpu_s_per_gb"] + run["receiver_cpu_s_per_gb"]


def summarise(runs):
    """Medians and spread of each stack, and the ratios of medians."""
    stacks_of = {}
    for run in runs:
        stacks_of.setdefault(run["stack"], []).append(run)
    summary = {"runs": runs, "median": {}, "spread": {}}
    for name, own in stacks_of.items():
        summary["median"][name] = {key: statistics.median(r[key] for r in own) for key, _, _ in COLUMNS}
        summary["median"][name]["both_cpu_s_per_gb"] = statistics.median(map(both_ends, own))
        summary["spread"][name] = {
            "mbit_per_s": [min(r["mbit_per_s"] for r in own), max(r["mbit_per_s"] for r in own)],
            "both_cpu_s_per_gb": [min(map(both_ends, own)), max(map(both_ends, own))],
        }
    ratios = summary["ratio"] = {}
    for other in (QUINN, LARGE, PLAIN):
        if other in stacks_of:
            pairs = list(zip(stacks_of[OURS], stacks_of[other]))
            ratios[other] = {
                "throughput": summary["median"][OURS]["mbit_per_s"] / summary["median"][other]["mbit_per_s"],
                "throughput_of_rounds": statistics.median(a["mbit_per_s"] / b["mbit_per_s"] for a, b in pairs),
                "cpu": summary["median"][OURS]["both_cpu_s_per_gb"] / summary["median"][other]["both_cpu_s_per_gb"],
                "cpu_of_rounds": statistics.median(both_ends(a) / both_ends(b) for a, b in pairs),
            }
    return summary


def row(name, values, load=None):
    cells = " ".join(f"{fmt.format(values[key]):>18}" for key, _, fmt in COLUMNS)
    return f"{name:<22} {cells} {'' if load is None else f'{load:6.1f}'}"


def print_summary(summary):
    print()
    for name, values in summary["median"].items():
        low, high = summary["spread"][name]["mbit_per_s"]
        cpu_low, cpu_high = summary["spread"][name]["both_cpu_s_per_gb"]
        print(row(f"{name} median", values))
        print(f"{'':<22} {low:.0f} to {high:.0f} Mbit/s; both ends {values['both_cpu_s_per_gb']:.2f} ({cpu_low:.2f} to {cpu_high:.2f}) CPU s/GB")
    print()
    for other, ratio in summary["ratio"].items():
        print(f"manypath / {other}: throughput {ratio['throughput']:.2f} x (median of the rounds {ratio['throughput_of_rounds']:.2f} x), "
              f"CPU per byte, both ends {ratio['cpu']:.2f} x (median of the rounds {ratio['cpu_of_rounds']:.2f} x)")


def unmet(summary, require):
    """The requirements that are not met: against quinn and its CPU, and against plain."""
    throughput, cpu, plain = require
    ratio = summary["ratio"]
    return [text for is_met, text in (
        (ratio[QUINN]["throughput"] >= throughput, f"throughput at least {throughput:g} x quinn's"),
        (ratio[QUINN]["cpu"] < cpu, f"CPU per byte below {cpu:g} x quinn's"),
        (ratio[PLAIN]["throughput"] >= plain, f"throughput at least {plain:g} x that in plain"),
    ) if not is_met]


def run(bench, args):
    """All rounds; the summary."""
    runs = []
    if not args.json:
        print(f"{'':<22} {' '.join(f'{title:>18}' for _, title, _ in COLUMNS)}   load", flush=True)
    for number in range(args.pairs):
        for name, kind, options in stacks(args):
            one = run_one(bench, args, name, kind, options) | {"round": number + 1}
            runs.append(one)
            if not args.json:
                print(row(f"{name} {number + 1}", one, one["load"]), flush=True)
    return summarise(runs)
