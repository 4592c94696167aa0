"""mTCP's experiments in real time: the paths are a direct link and relays. Beside each figure that of the simulator."""

import json
import signal
import subprocess
import time

from failure import Failed
from overlay import RATE, Overlay
from relays import rates
from transfer import HERE, check_complete, mbit

SUM_MIN = 0.85  # of the paths' rates together
MB = 30  # sent, for each path
# Fig. 3: rate and one-way delays of the five paths, in bit/s and ms. The simulator's experiment has the same.
FIG3_RATE, FIG3_DELAYS = 16e6, (26, 38, 50, 62, 73.5)
# Fig. 5: rate, loss rate and one-way delays of the two paths.
FIG5_RATE, FIG5_LOSS, FIG5_DELAYS = 10e6, 0.001, (40.0825, 51.445)
FIG5_FAILS = 20  # s
FIG5_LEAST, FIG5_MOST = 1.5, 3.5  # s: "about 3 s, between two and three in most cases"
FIG5_BACK = 0.5  # of its rate before: of one run, where the paper's window is a mean
FIG5_SCENARIO = HERE.parents[1] / "experiments/003-mtcp/mtcp-fig5/scenario.toml"
QUEUE = 50e-3  # s of tbf's limit, beside the burst of 32 KiB


def simulate(case, file, *words):
    """The result of the first run of a scenario."""
    command = [case.options.binary, "sim", "run", "--json", "--seeds", "1", *words, str(file)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[0])


def scenario(rate, delays_ms, mb, settings):
    """A plain transfer over paths that queue as many bytes as tbf does."""
    queue = int(rate * QUEUE / 8) + 32768
    transport = "".join(f'{key} = "{value}"\n' for key, value in settings.items())
    paths = "".join(f'[[path]]\nrate = "{int(rate)} bit/s"\ndelay = "{delay} ms"\nqueue = "{queue} B"\n'
                    for delay in delays_ms)
    return (f'time_limit = "600 s"\n[transport]\nprofile = "fast"\npreset = "mtcp"\nmax_paths = {len(delays_ms)}\n'
            f'{transport}[transfer]\nsize = "{mb} MB"\n{paths}')


def more_paths(case, lab, rate, delays_ms):
    """Each path adds its rate: one to five paths, with detection of shared bottlenecks, and without."""
    overlay = Overlay(case, lab, delay_ms=delays_ms[0], relays=len(delays_ms) - 1, relay_delays_ms=delays_ms[1:], rate=rate)
    overlay.send_single_packets()
    for chosen in ({}, {"shared_congestion": "off"}):
        goodputs = []
        for count in range(1, len(delays_ms) + 1):
            goodputs.append(run_one(case, overlay, rate, delays_ms[:count], chosen))
        what = "without detection" if chosen else "with detection"
        rising = all(after > before for before, after in zip(goodputs, goodputs[1:]))
        case.check(f"each path adds to the goodput, {what}", rising, rising)


def run_one(case, overlay, rate, delays_ms, chosen):
    """One transfer; its goodput, which must be most of the sum of the rates."""
    count, mb = len(delays_ms), case.options.size or MB * len(delays_ms)
    words = [word for key, value in chosen.items() for word in ("--set", f"{key}={value}")]
    transfer, _, digest = overlay.start(mb, "--preset", "mtcp", *words, relays=count - 1)
    transfer.wait(60 + mb * 8e6 / rate)
    sent = check_complete(case, transfer, digest)
    transfer.received().unlink()
    file = overlay.lab.dir / "same.toml"
    file.write_text(scenario(rate, [delay or 0.1 for delay in delays_ms], mb, chosen))
    simulated = simulate(case, file)["goodput_bps"]
    goodput = sent.get("goodput_bps", 0)
    verdicts = sum(n["event"] == "shared_bottleneck" for n in sent.get("notices", []))
    timeouts = sum(path["t3_expirations"] for path in sent.get("paths", []))
    name = f"{count} paths, {'without' if chosen else 'with'} detection"
    case.measure(name, goodput / 1e6, "Mbit/s")
    case.measure(f"{name}, simulated", simulated / 1e6, "Mbit/s")
    case.check(name, f"{mbit(goodput)} of {mbit(rate * count)}, {goodput / (rate * count):.1%}; simulated"
               f" {mbit(simulated)}; {verdicts} verdicts, {timeouts} timeouts", goodput >= SUM_MIN * rate * count)
    return goodput


def fig3(case, lab):
    """The five independent paths of Fig. 3, without the other flows."""
    more_paths(case, lab, FIG3_RATE, FIG3_DELAYS)


def equal_paths(case, lab):
    """Five paths that nothing tells apart but their bottlenecks."""
    more_paths(case, lab, RATE, (None,) * 5)


def fig5(case, lab):
    """The path that carries all SACKs fails for good and tells nobody. The other one is taken to have failed, too, until
    it is found to work and to be the primary."""
    direct_ms, relay_ms = FIG5_DELAYS
    overlay = Overlay(case, lab, delay_ms=direct_ms, relays=1, relay_delays_ms=[relay_ms], rate=FIG5_RATE, loss=FIG5_LOSS)
    overlay.send_single_packets()
    words = ["--profile", "rfc9260", "--preset", "mtcp", "--set", "receive_buffer=1 MiB"]
    transfer, _, digest = overlay.start(36, *words)
    begin = transfer.send.begin
    relay = overlay.hosts[0]
    sleep_until(begin + 10)
    sacks = dict(rates(lab, overlay.far, ["f1", "fr1"]))
    case.check("SACKs take the direct path", sacks, sacks["f1"] > 10 * sacks["fr1"])
    before = rate_between(lab, relay, "far0", time.monotonic(), begin + FIG5_FAILS)
    overlay.direct.signal(signal.SIGSTOP)
    after = rate_between(lab, relay, "far0", begin + FIG5_FAILS + 5, begin + FIG5_FAILS + 30)
    transfer.wait(120)
    sent = check_complete(case, transfer, digest)
    gap = sent.get("max_delivery_gap_s") or 99
    case.measure("recovery", gap, "s")
    case.measure("recovery, simulated", simulate(case, FIG5_SCENARIO)["max_delivery_gap_s"], "s")
    case.check("longest pause in delivery", f"{gap:.2f} s", FIG5_LEAST <= gap <= FIG5_MOST)
    case.measure("rate of the other path before", before / 1e6, "Mbit/s")
    case.measure("rate of the other path from 5 s after the failure on", after / 1e6, "Mbit/s")
    case.check("the other path is what it was", f"{after / before:.2f} of its rate before", after >= FIG5_BACK * before)
    for notice in sent.get("notices", []):
        case.note(f"{notice['at_s']:.1f} s", json.dumps({k: v for k, v in notice.items() if k != "at_s"}))


def sleep_until(when):
    """Waits for a time of the monotonic clock."""
    time.sleep(max(0.0, when - time.monotonic()))


def rate_between(lab, host, device, begin, end):
    """What leaves through a device from `begin` to `end`, in bit/s."""
    sleep_until(begin)
    first, at = lab.sent_bytes(host, device), time.monotonic()
    sleep_until(end)
    return (lab.sent_bytes(host, device) - first) * 8 / (time.monotonic() - at)


# Minutes long, or measurements: these run only if they are named.
MEASURED = {"mtcp-fig3": fig3, "mtcp-fig5": fig5, "mtcp-equal": equal_paths}
