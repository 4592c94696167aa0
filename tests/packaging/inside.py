#!/usr/bin/env python3
"""Runs an installed manypath within a root directory: version, demo, send and recv, relay, proxy.

    unshare --net --mount tests/packaging/inside.py ROOT [--commit COMMIT] [--static]

Needs namespaces of its own, as above: its network is loopback only, and its mounts go with it. manypath runs as
nobody, and finds names through a name server of this script's.
"""

import argparse
import hashlib
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

from failure import Failed, expect  # noqa: E402
from process import Process  # noqa: E402

NOBODY = 65534
SECONDS = 60
# A name that only the name server of this script knows.
HOST = "far.example"


# The network


def answer_names(server):
    """Answers questions for the address of HOST with loopback's, and all others with "no such name"."""
    while True:
        question, peer = server.recvfrom(512)
        end = question.index(b"\0", 12)
        labels, at = [], 12
        while at < end:
            labels.append(question[at + 1:at + 1 + question[at]].decode())
            at += 1 + question[at]
        kind = struct.unpack("!H", question[end + 1:end + 3])[0]
        known, wanted = ".".join(labels).lower() == HOST, kind == 1
        flags = 0x8180 if known else 0x8183
        header = question[:2] + struct.pack("!5H", flags, 1, int(known and wanted), 0, 0)
        record = b"\xc0\x0c" + struct.pack("!2HIH", 1, 1, 60, 4) + socket.inet_aton("127.0.0.1")
        server.sendto(header + question[12:end + 5] + (record if known and wanted else b""), peer)


def echo(server):
    """Sends back what arrives, until its sender has ended."""
    def serve(peer):
        with peer:
            while data := peer.recv(65536):
                peer.sendall(data)

    while True:
        threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()


def start_network():
    """Loopback, the name server, and the port of an echo server."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.bind(("127.0.0.1", 53))
    threading.Thread(target=answer_names, args=(names,), daemon=True).start()
    echoes = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=echo, args=(echoes,), daemon=True).start()
    return echoes.getsockname()[1]


# Processes in the root


CHROOT = shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin:/bin")
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}


def command(root, *words):
    return [CHROOT, f"--userspec={NOBODY}:{NOBODY}", str(root), "manypath", *map(str, words)]


def start(root, *words):
    """A manypath in the root, whose standard output is lines of JSON."""
    return Process(command(root, *words), ENVIRONMENT)


def say(root, *words):
    done = subprocess.run(command(root, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=SECONDS, env=ENVIRONMENT, stdin=subprocess.DEVNULL, check=False)
    expect(done.returncode == 0, f"manypath {' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


# What is tried


def version(root, options):
    said = say(root, "--version")
    expect(said.startswith("manypath "), said)
    expect(options.commit is None or f"\ncommit: {options.commit}" in said, f"{options.commit} is not in {said}")
    features = said.split("\nfeatures: ")[1].split("\n")[0].split()
    expect(options.static == ("static" in features), said)
    return said.splitlines()[1]


def demo(root, _options):
    words = ["demo", "--json", "--quiet", "--size", "6MB", "--down", "1s", "--for", "1s"]
    result = json.loads(say(root, *words))
    expect(result["verified"], f"not verified: {result}")
    return f"{result['goodput_bps'] / 1e6:.0f} Mbit/s"


def transfer(root, name, receiver, *more):
    """Sends a file to a receiver; its digest must be the same there."""
    source = root / "tmp" / name
    source.write_bytes(os.urandom(3_000_000))
    source.chmod(0o644)
    result = json.loads(say(root, "send", "--json", *more, f"/tmp/{name}", receiver))
    expect(result["completed"] and result["encrypted"], f"{result}")
    expect(digest(root / "tmp/in" / name) == digest(source), "the file differs")
    return result


def receive(root, *more):
    place = root / "tmp/in"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    os.chown(place, NOBODY, NOBODY)
    return start(root, "recv", "--json", "--listen", "127.0.0.1", "--port", "0", "--dir", "/tmp/in", *more)


def send(root, _options):
    with receive(root, "--once") as receiver:
        result = transfer(root, "file", receiver.event("listening")["ticket"])
        expect(receiver.wait() == 0, "the receiver's exit code")
    # By a name that has to be looked up.
    with receive(root, "--once", "--token", "correct horse") as receiver:
        port = receiver.event("listening")["port"]
        transfer(root, "named", f"{HOST}:{port}", "--token", "correct horse")
        expect(receiver.wait() == 0, "the receiver's exit code")
    wrong = subprocess.run(command(root, "send", "/tmp/file", "none.example"), stderr=subprocess.PIPE, text=True,
                           timeout=SECONDS, env=ENVIRONMENT | {"MANYPATH_TOKEN": "correct horse"}, check=False)
    expect(wrong.returncode == 1 and "cannot find the host" in wrong.stderr, f"{wrong}")
    return f"{result['bytes']} bytes, by ticket and by name"


def relay(root, _options):
    (root / "tmp/users").write_text("ann:correct-horse-battery\n")
    words = ["relay", "--json", "--listen", "127.0.0.1", "--port", "0", "--allow-peer", "127.0.0.0/8"]
    with start(root, *words, "--users", "/tmp/users") as server:
        address = server.event("listening")["addresses"][0]
        relayed(root, f"turn:ann:correct-horse-battery@{address}")
        expect(server.stop() == 0, "the relay's exit code")
        stopped = server.event("stopped")
    expect(stopped["allocated"] == 1 and stopped["bytes"] > 0, f"{stopped}")
    return f"{stopped['bytes']} bytes forwarded"


def relayed(root, via):
    """A measurement with a path through a relay, long enough for it to join."""
    with start(root, "perf", "server", "--json", "--once", "--listen", "127.0.0.1", "--port", "0") as server:
        port = server.event("listening")["port"]
        words = ["perf", "client", "--json", "--via", via, "--preset", "cmt-pf", "--rate", "2Mbit/s", "-t", "3"]
        result = json.loads(say(root, *words, f"127.0.0.1:{port}"))
        expect(server.wait() == 0, "the server's exit code")
    expect(result["completed"], f"{result}")
    paths = [path for path in result["paths"] if path["relay"]]
    expect(paths and paths[0]["packets_received"] > 0, f"nothing came through the relay: {result['paths']}")


def proxy(root, options):
    (root / "tmp/token").write_text("correct horse\n")
    (root / "tmp/token").chmod(0o644)
    target = f"{HOST}:{options.echo}"
    listen = ["proxy", "listen", "--json", "--listen", "127.0.0.1", "--port", "0", "--token-file", "/tmp/token"]
    with start(root, *listen) as far:
        ticket = root / "tmp/ticket"
        ticket.write_text(far.event("listening")["ticket"] + "\n")
        ticket.chmod(0o644)
        with start(root, "proxy", "connect", "--json", "@/tmp/ticket", "-L", f"0:{target}") as near:
            port = int(near.event("ready")["ports"][0]["listen"][0].rsplit(":", 1)[1])
            size = echoed(port)
            expect(near.stop() == 0, "the near side's exit code")
        expect(far.stop() == 0, "the far side's exit code")
    return f"{size} bytes, there and back"


def echoed(port, size=1_000_000):
    """Sends bytes through the proxy to the echo server, and compares what comes back."""
    data = os.urandom(size)
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as client:
        def give():
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)

        threading.Thread(target=give, daemon=True).start()
        back = b""
        while part := client.recv(65536):
            back += part
    expect(back == data, f"{len(back)} of {size} bytes came back")
    return size


CHECKS = (version, demo, send, relay, proxy)


def prepare(root):
    """The parts of a root that its user has, not its packages: devices, /proc, /tmp, the name server."""
    for name, kind, source in (("proc", "proc", "proc"), ("dev", None, "/dev"), ("tmp", "tmpfs", "tmpfs")):
        place = root / name
        place.mkdir(exist_ok=True)
        words = ["--rbind", source] if kind is None else ["-t", kind, source]
        subprocess.run(["mount", *words, str(place)], check=True)
    (root / "tmp").chmod(0o1777)
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc/resolv.conf").unlink(missing_ok=True)
    (root / "etc/resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:2 attempts:1\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("--commit", help="the commit that --version names")
    parser.add_argument("--static", action="store_true", help="it is linked statically")
    options = parser.parse_args()
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    options.echo = start_network()
    prepare(options.root)
    for check in CHECKS:
        begin = time.monotonic()
        try:
            told = check(options.root, options)
        except (Failed, OSError, KeyError, IndexError, ValueError, subprocess.SubprocessError) as why:
            print(f"    FAILED {check.__name__}: {type(why).__name__} {why}", flush=True)
            return 1
        print(f"    {check.__name__} ({time.monotonic() - begin:.1f} s): {told}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
