#!/usr/bin/env python3
"""Tests of `manypath doctor`: broken set-ups in network namespaces, each found, named and mended.

    tests/doctor/run.py --binary target/release/manypath [--require] [--verbose] [CASE...]

Every case begins with a host that has two uplinks and breaks it in one way. The doctor must find that and nothing else
above a note. Then the commands of its finding are run as they are, and it must find nothing any more. Three sound
set-ups, of IPv4, of IPv6 and with STUN servers, must have no finding at once. Behind each kind of NAT it must say which
peers can have direct paths. Needs Linux, root, and the commands ip, nft, miniupnpd, ethtool, sysctl and setpriv;
skipped loudly without them, unless --require is given.
"""

import argparse
import concurrent.futures
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

from cases import CASES  # noqa: E402
from failure import Failed, Unavailable  # noqa: E402
from namespaces import Lab, check_machine, remove_leftovers  # noqa: E402
from nats import NATS  # noqa: E402
from net import DEST, DEST6, Net  # noqa: E402
from requirements import add_binary, add_require, skip  # noqa: E402

TOGETHER = 8  # they mostly wait
EXITS = {"ok": 0, "note": 0, "warning": 10, "error": 11}


def bad(report):
    """The findings above a note."""
    return [f for f in report["findings"] if f["severity"] in ("warning", "error")]


def told(report):
    return "; ".join(f"{f['id']} ({f['severity']}): {f['sentence']}" for f in bad(report)) or "nothing"


def require_sound(code, report, when):
    if code != 0 or bad(report):
        raise Failed(f"{when}: exit code {code}, found {told(report)}")


def sound(lab, options):
    """A sound set-up, by IPv4: everything is seen, and nothing is found."""
    net = Net(lab, options.binary)
    net.serve()
    net.tell_time()
    net.relay()
    code, report = net.doctor("--time-server", DEST, "--stun", DEST)
    require_sound(code, report, "a sound set-up")
    # Nothing at all is found, and nothing is left out.
    if report["worst"] != "ok" or report["unseen"]:
        raise Failed(f"not all sound: {[f for f in report['findings'] if f['severity'] != 'ok']}, {report['unseen']}")
    ids = {finding["id"] for finding in report["findings"]}
    missing = {"uplinks", "routes", "sources", "answers", "mtu", "udp-buffers", "nat-none", "clock"} - ids
    if missing or report["bind"] != "eth0,eth1":
        raise Failed(f"not said to be sound: {sorted(missing)}; --bind {report['bind']}")
    if [uplink["mtu_bytes"] for uplink in report["uplinks"]] != [1500, 1500]:
        raise Failed(f"sizes of packets: {report['uplinks']}")


def sound_by_ipv6(lab, options):
    """A sound set-up with both families."""
    net = Net(lab, options.binary, v6=True)
    net.with_v6_uplinks()
    net.serve()
    for dest in (f"[{DEST6}]", f"{DEST},{DEST6}"):
        code, report = net.doctor(dest=dest)
        require_sound(code, report, dest)
        if not all(uplink["answers"] for uplink in report["uplinks"]):
            raise Failed(f"{dest}: {report['uplinks']}")


def without_privilege(lab, options):
    """As nobody: sound as well, but for the buffers, and what is not seen is said."""
    lab.dir.chmod(0o755)
    binary = shutil.copy(options.binary, lab.dir / "manypath")
    net = Net(lab, binary)
    net.serve()
    net.tell_time()
    nobody = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all",
              "--bounding-set=-all")
    code, report = net.doctor(prefix=nobody)
    if {finding["id"] for finding in bad(report)} - {"udp-buffers"}:
        raise Failed(f"exit code {code}, found {told(report)}")
    if "firewall" not in [unseen["what"] for unseen in report["unseen"]]:
        raise Failed(f"not said: {report['unseen']}")
    for finding in report["findings"]:
        for command in finding["mend"]:
            if not command.startswith("sudo "):
                raise Failed(f"not for a user: {command}")


def broken(name, lab, options):
    """A case: found, named, mended."""
    body, v6 = CASES[name]
    net = Net(lab, options.binary, v6)
    net.time = net.tell_time()
    steps = body(net)
    expected = next(steps)
    try:
        words, prefix = expected.words or ("--time-server", DEST), expected.prefix
        code, report = net.doctor(*words, dest=expected.dest, prefix=prefix)
        ids = {(f["id"], f["severity"]) for f in bad(report)}
        if ids != {(expected.finding, expected.severity)} or code != EXITS[expected.severity]:
            raise Failed(f"exit code {code}, found {told(report)}")
        findings = bad(report)
        if expected.place and [f["place"] for f in findings] != [expected.place]:
            raise Failed(f"at {[f['place'] for f in findings]}")
        if expected.mends == "case":
            try:
                steps.send(findings[0])
            except StopIteration:
                return findings
            raise Failed("the case goes on")
        dest = mend(net, expected, findings)
        next(steps, None)
        code, report = net.doctor(*words, dest=dest, prefix=prefix)
        require_sound(code, report, "after " + "; ".join(c for f in findings for c in f["mend"] + f["mend_at_destination"]))
        return findings
    finally:
        steps.close()


def mend(net, expected, findings):
    """Runs the commands as they are; the destination from then on."""
    dest = expected.dest
    for finding in findings:
        if expected.mends == "here":
            if not finding["mend"]:
                raise Failed("there is no command")
            for command in finding["mend"]:
                (expected.by or (lambda command: net.run(net.a, command)))(command)
            continue
        if not finding["mend_at_destination"]:
            raise Failed("there is no command for the destination")
        for command in finding["mend_at_destination"]:
            words = command.split()
            if words[0] != "manypath":
                net.run(net.z, command.replace("sudo ", ""))
                continue
            folder = net.lab.dir / "received"
            folder.mkdir(exist_ok=True)
            server = net.lab.spawn(net.z, [net.binary, *words[1:], "--json", "--dir", str(folder)])
            server.wait_line("{", 10)
            dest = f"{DEST}:{words[words.index('--port') + 1]}"
    return dest


def kind_of_nat(name, lab, options):
    """A host behind a NAT, without a destination: what the doctor says of it."""
    nat = NATS[name]
    net = Net(lab, options.binary)
    net.tell_time()
    nat.build(net)
    relays = [net.relay(address) for address in nat.relays]
    net.lab.settle(net.a)
    code, report = net.doctor("--time-server", DEST, "--bind", "eth1", "--stun", ",".join(relays), dest="")
    nat.check(net, code, report)
    return report["findings"]


SOUND = {"sound": sound, "sound-by-ipv6": sound_by_ipv6, "without-privilege": without_privilege}


def run(name, options):
    """Runs a case in a lab of its own: the reason why it failed, or nothing, and the findings."""
    began = time.monotonic()
    with Lab(name, options.work_dir) as lab:
        try:
            if name in SOUND:
                findings = SOUND[name](lab, options)
            else:
                findings = (kind_of_nat if name in NATS else broken)(name, lab, options)
            return name, None, time.monotonic() - began, findings or []
        except (Failed, OSError, ValueError, KeyError) as why:
            return name, f"{type(why).__name__}: {why}", time.monotonic() - began, []


def needs():
    """Raises Unavailable unless the tests can run here."""
    check_machine()
    for tool, package in (("miniupnpd", "miniupnpd-nftables"), ("nft", "nftables"), ("ethtool", "ethtool"), ("sysctl", "procps"), ("setpriv", "util-linux")):
        if shutil.which(tool) is None:
            raise Unavailable(f"needs the command {tool!r} (Debian: {package})")
    if not Path("/proc/sys/net/ipv6").exists():
        raise Unavailable("needs a kernel with IPv6")
    if not Path("/dev/net/tun").exists():
        raise Unavailable("needs /dev/net/tun")


def main():
    known = [*SOUND, *CASES, *NATS]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_binary(parser)
    add_require(parser)
    parser.add_argument("--verbose", "-v", action="store_true", help="prints the findings with their commands")
    parser.add_argument("--work-dir", help="where files go meanwhile [default: the system's]")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(known))
    options = parser.parse_args()
    if unknown := set(options.cases) - set(known):
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    try:
        needs()
    except Unavailable as why:
        sys.exit(skip(options, f"the tests of the doctor: {why}"))
    remove_leftovers()
    began, failed = time.monotonic(), []
    with concurrent.futures.ThreadPoolExecutor(TOGETHER) as pool:
        running = [pool.submit(run, name, options) for name in options.cases or known]
        for done in concurrent.futures.as_completed(running):
            name, why, took, findings = done.result()
            print(f"{'FAILED' if why else 'ok    '} {name} ({took:.1f} s){': ' + why if why else ''}", flush=True)
            failed += [name] if why else []
            for finding in findings if options.verbose else []:
                print(f"    {finding['severity']} {finding['id']}: {finding['sentence']}")
                for command in finding["mend"] + finding["mend_at_destination"]:
                    print(f"        {command}")
    print(f"{len(running) - len(failed)} of {len(running)} cases in {time.monotonic() - began:.0f} s")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
