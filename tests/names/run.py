#!/usr/bin/env python3
"""Tests of names in the local network (`recv --name`, `send FILE NAME`, `names`) and of QR codes (`--qr`).

    tests/names/run.py --binary target/release/manypath [--require] [--verbose] [CASE...]

Each case has its own network: a receiver and a sender with two links between them, and a stranger with a link to each.
They are network namespaces of this machine, so this needs root, Linux and `ip`; some cases also need openssl, curl, and
the Python modules pyzbar and zeroconf (Debian: python3-pyzbar, python3-zeroconf). Where something is missing, cases are
skipped loudly, or fail with --require.
"""

import argparse
import fcntl
import json
import importlib.util
import os
import pty
import select
import shutil
import struct
import subprocess
import sys
import termios
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

import pictures  # noqa: E402
from failure import Failed, Unavailable  # noqa: E402
from namespaces import Lab, check_machine, remove_leftovers, sh  # noqa: E402
from requirements import add_binary, add_require, skip  # noqa: E402
from second_chance import Verdict, judge, settle  # noqa: E402

HERE = Path(__file__).resolve().parent
MEMORY_MAX = 64 << 20
TOGETHER = 4
SHOWN = {Verdict.GOOD: "ok", Verdict.LATE: "LATE", Verdict.WRONG: "FAILED"}
CASES = {}


def case(function):
    CASES[function.__name__.replace("_", "-")] = function
    return function


class Network:
    """Receiver r and sender s with two links; the stranger e with a link to each of them."""

    def __init__(self, lab, options):
        self.lab, self.binary, self.checks = lab, options.binary, []
        self.r, self.s, self.e = (lab.host(name) for name in ("r", "s", "e"))
        lab.veth(self.r, "eth0", "10.77.1.1/24", self.s, "eth0", "10.77.1.2/24")
        lab.veth(self.r, "eth1", "10.77.2.1/24", self.s, "eth1", "10.77.2.2/24")
        lab.veth(self.e, "eth0", "10.77.3.1/24", self.s, "eth2", "10.77.3.2/24")
        lab.veth(self.e, "eth1", "10.77.4.1/24", self.r, "eth2", "10.77.4.2/24")
        for host in (self.r, self.s, self.e):
            lab.settle(host)

    def check(self, what, value, is_right, pace=False):
        """With `pace` it is a bound in time: a busy machine can be the reason why it is missed."""
        self.checks.append((what, value, bool(is_right), pace))

    def directory(self, name):
        path = self.lab.dir / name
        path.mkdir(exist_ok=True)
        return path

    def file(self, name, size=200_000):
        path = self.lab.dir / name
        path.write_bytes(os.urandom(size))
        return path

    def recv(self, host, *more, to="in"):
        """Starts a receiver; it with its first record."""
        command = [self.binary, "recv", "--json", "--dir", str(self.directory(to)), *more]
        process = self.lab.spawn(host, command)
        return process, json.loads(process.wait_line('"listening"', 10))

    def stranger(self, host, *words):
        """Starts the stranger, who is no manypath."""
        process = self.lab.spawn(host, [sys.executable, str(HERE / "announcer.py"), *words])
        process.wait_line("ready", 5)
        return process

    def run(self, host, *command, timeout=20, environment=()):
        """Runs manypath; exit code, standard output, standard error, seconds, process."""
        begin = time.monotonic()
        process = self.lab.spawn(host, ["env", *environment, self.binary, *map(str, command)])
        code = process.wait(timeout)
        out = "\n".join(line for _, line in process.stdout)
        return code, out, process.said(), time.monotonic() - begin, process

    def send(self, *words, **more):
        return self.run(self.s, "send", *words, "--json", **more)

    def names(self, host=None, wait="1s"):
        code, out, said, _, process = self.run(host or self.s, "names", "--wait", wait, "--json")
        if code != 0:
            raise Failed(f"names: exit code {code}: {said}")
        return json.loads(out), process

    def has(self, file, to="in"):
        stored = self.lab.dir / to / file.name
        return stored.exists() and stored.read_bytes() == file.read_bytes()


def wrong(code):
    """Another code."""
    return code[:-1] + str((int(code[-1]) + 1) % 10)


class Terminal:
    """A command at a terminal of its own, with this number of columns."""

    def __init__(self, host, command, columns=100, rows=50):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
        environment = {k: v for k, v in os.environ.items() if k not in ("MANYPATH_CODE", "MANYPATH_TOKEN")}
        self.child = subprocess.Popen(["ip", "netns", "exec", host, *command], stdin=slave, stdout=slave,
                                      stderr=slave, start_new_session=True, env=environment)
        os.close(slave)
        self.shown = ""

    def wait_for(self, text, timeout=10):
        """Reads until `text` is shown; all that was shown."""
        until = time.monotonic() + timeout
        while text not in self.shown:
            if time.monotonic() > until or not self._read(0.2):
                raise Failed(f"did not show {text!r}, but {self.shown!r}")
        return self.shown

    def _read(self, timeout):
        if not select.select([self.master], [], [], timeout)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.shown += data.decode(errors="replace")
        return bool(data)

    def types(self, text):
        os.write(self.master, text.encode())

    def end(self, timeout=10):
        """Its exit code, once it has ended."""
        until = time.monotonic() + timeout
        while self.child.poll() is None:
            if time.monotonic() > until:
                raise Failed(f"still runs; it showed {self.shown!r}")
            self._read(0.05)
        while self._read(0.05) and time.monotonic() < until:
            if not select.select([self.master], [], [], 0)[0]:
                break
        return self.child.returncode

    def close(self):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait(5)
        os.close(self.master)


@case
def transfer(net):
    """A name and a code suffice, over both links; the code comes from an option, a variable or the terminal."""
    receiver, listening = net.recv(net.r, "--name", "Laptop")
    code, key = listening["code"], listening["key"]
    net.check("the record has the name", listening["name"], listening["name"] == "Laptop")
    net.check("the record has a code of nine digits", len(code), len(code.replace("-", "")) == 9)
    first, second, third = (net.file(name) for name in ("first", "second", "third"))
    exit_code, out, said, seconds, _ = net.send(first, "laptop", "--code", code)
    net.check("it is sent", said, exit_code == 0 and net.has(first))
    net.check("within 4 s", round(seconds, 2), seconds < 4, pace=True)
    result = json.loads(out)
    net.check("encrypted, to the key of the receiver", result["peer_key"], result["peer_key"] == key)
    remotes = {path["remote"].rsplit(":", 1)[0] for path in result["paths"]}
    net.check("over both links", sorted(remotes), {"10.77.1.1", "10.77.2.1"} <= remotes)
    exit_code, _, said, _, _ = net.send(second, "LAPTOP", environment=[f"MANYPATH_CODE={code.replace('-', ' ')}"])
    net.check("the code of the variable", said, exit_code == 0 and net.has(second))
    terminal = Terminal(net.s, [net.binary, "send", str(third), "laptop"])
    try:
        terminal.wait_for("Code that laptop shows:")
        terminal.types("12\n")
        terminal.wait_for("nine digits")
        terminal.types(f"{code}\n")
        exit_code = terminal.end()
        net.check("the code that is typed", terminal.shown, exit_code == 0 and net.has(third))
    finally:
        terminal.close()
    fourth = net.file("fourth")
    exit_code, _, said, _, _ = net.send(fourth, "10.77.2.1", "--code", code)
    net.check("the code works with an address", said, exit_code == 0 and net.has(fourth))
    listed, _ = net.names()
    known = [(one["name"], one["key"], one["needs"]) for one in listed["names"]]
    net.check("it is listed", known, known == [("Laptop", key, "code")])
    addresses = set(listed["names"][0]["addresses"])
    net.check("with all addresses", sorted(addresses), addresses == {"10.77.1.1", "10.77.2.1", "10.77.4.2"})
    exit_code, out, said, _, _ = net.run(net.s, "names", "--wait", "1s")
    net.check("it is listed as text", out, exit_code == 0 and out.startswith("Laptop  ") and key in out)
    listener = net.stranger(net.s, "goodbye")
    receiver.signal(15)
    net.check("a receiver that is stopped ends well", receiver.said(), receiver.wait(5) == 0)
    net.check("and takes its name back", "", listener.wait_line("goodbye", 3))


@case
def own_token(net):
    """A receiver with a token of its own has no code."""
    _, listening = net.recv(net.r, "--name", "laptop", "--token", "correct horse")
    net.check("there is no code", listening["code"], listening["code"] is None)
    file = net.file("file")
    exit_code, _, said, _, _ = net.send(file, "laptop")
    net.check("a token is asked for", said, exit_code == 2 and "laptop wants the token" in said)
    exit_code, _, said, _, _ = net.send(file, "laptop", environment=["MANYPATH_TOKEN=correct horse"])
    net.check("it is sent", said, exit_code == 0 and net.has(file))
    exit_code, _, said, _, _ = net.send(file, "laptop", "--code", "123-456-789")
    net.check("a code is of no use", said, exit_code == 5)


def make_certificates(directory, names):
    """An authority, and a key and certificate from it for each name: NAME.key, NAME.pem, ca.pem."""
    def openssl(*words):
        done = subprocess.run(["openssl", *words], cwd=directory, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"openssl {' '.join(words)}: {done.stderr}")
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test")
    for name in names:
        openssl("req", *curve, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (directory / f"{name}.ext").write_text(f"subjectAltName=DNS:{name}\nbasicConstraints=CA:FALSE\n")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.pem")


@case
def certificates(net):
    """With certificates there is no code; a name that is not in the receiver's certificate is refused."""
    if shutil.which("openssl") is None:
        raise Unavailable("needs openssl")
    at = net.directory("certificates")
    make_certificates(at, ["laptop", "desk"])

    def owner(name):
        return ["--cert", str(at / f"{name}.pem"), "--key", str(at / f"{name}.key"), "--ca", str(at / "ca.pem")]
    _, listening = net.recv(net.r, "--name", "laptop", *owner("laptop"))
    net.recv(net.r, "--name", "printer", "--port", "0", *owner("laptop"), to="other")
    net.check("there is no code", listening["code"], listening["code"] is None and listening["key"] is None)
    file = net.file("file")
    exit_code, _, said, _, _ = net.send(file, "laptop", *owner("desk"))
    net.check("it is sent", said, exit_code == 0 and net.has(file))
    exit_code, _, said, _, _ = net.send(file, "printer", *owner("desk"))
    net.check("a name that the certificate lacks", said, exit_code == 5 and not net.has(file, "other"))
    exit_code, _, said, _, _ = net.send(file, "laptop", "--token", "correct horse")
    net.check("a token is of no use", said, exit_code == 2 and "laptop wants a certificate" in said)


@case
def interop(net):
    """Another implementation of multicast DNS finds our receiver, and we find what it announces."""
    if importlib.util.find_spec("zeroconf") is None:
        raise Unavailable("needs zeroconf (Debian: python3-zeroconf)")
    _, listening = net.recv(net.r, "--name", "Laptop")
    peer = [sys.executable, str(HERE / "zeroconf_peer.py")]
    finder = net.lab.spawn(net.s, [*peer, "find"])
    found = json.loads(finder.wait_line("instance", 15))
    digits = listening["key"].removeprefix("sha256:")[:16]
    net.check("its instance", found["instance"], found["instance"] == f"laptop-{digits}._manypath._udp.local.")
    net.check("its port", found["port"], found["port"] == listening["port"])
    net.check("its addresses", found["addresses"], found["addresses"] == ["10.77.1.1", "10.77.2.1", "10.77.4.2"])
    expected = {"v": "1", "name": "Laptop", "auth": "code", "key": listening["key"]}
    net.check("its text", found["text"], found["text"] == expected)
    key = "sha256:" + "cd" * 32
    net.lab.spawn(net.e, [*peer, "announce", "printer", key, "10.77.3.1"]).wait_line("ready", 15)
    listed, _ = net.names(wait="2s")
    others = [one for one in listed["names"] if one["name"] == "printer"]
    expected = {"name": "printer", "addresses": ["10.77.3.1"], "port": 9899, "key": key, "needs": "token"}
    net.check("what it announces", listed["names"], others == [expected])


@case
def wrong_code(net):
    """A wrong code is refused, and the guesses of a stranger are slowed down."""
    receiver, listening = net.recv(net.r, "--name", "laptop")
    code, file = listening["code"], net.file("file")
    exit_code, _, said, _, _ = net.send(file, "laptop")
    net.check("without a code nothing is tried", said, exit_code == 2 and "MANYPATH_CODE" in said)
    exit_code, _, said, _, _ = net.send(file, "laptop", "--code", "12345678")
    net.check("what is no code is said", said, exit_code == 2 and "nine digits" in said)
    times = []
    for _ in range(6):
        exit_code, _, said, seconds, _ = net.send(file, "laptop", "--code", wrong(code))
        times.append(round(seconds, 2))
        net.check("a wrong code is exit code 5", said, exit_code == 5 and "does not know this code" in said)
    net.check("the sixth has to wait", times, times[5] >= min(times) + 0.8)
    net.check("nothing was stored", "", not any((net.lab.dir / "in").iterdir()))
    receiver.wait_for(lambda: receiver.said().count("rejected") >= 6 or None, 5, "a wrong code was not told of")
    ticket = listening["ticket"]
    exit_code, _, said, _, _ = net.send(file, ticket)
    net.check("the ticket works beside it", said, exit_code == 0 and net.has(file))


@case
def two_of_one_name(net):
    """Of two receivers with one name neither gets anything, unless the key says which."""
    _, first = net.recv(net.r, "--name", "laptop")
    _, second = net.recv(net.e, "--name", "LAPTOP", to="other")
    rival, _ = net.recv(net.r, "--name", "Laptop", "--port", "0", to="third")
    rival.wait_for(lambda: "another receiver calls itself Laptop" in rival.said() or None, 5, "no note of the other")
    rival.kill()
    file = net.file("file")
    exit_code, _, said, _, _ = net.send(file, "laptop", "--code", first["code"])
    both = all(one["key"] in said for one in (first, second))
    net.check("both are named", said, exit_code == 1 and "two receivers call themselves laptop" in said and both)
    exit_code, _, said, _, _ = net.send(file, "laptop", "--code", first["code"], "--peer", first["key"])
    net.check("the key says which", said, exit_code == 0 and net.has(file) and not net.has(file, "other"))
    exit_code, _, said, _, _ = net.send(file, "laptop", "--code", first["code"], "--peer", "sha256:" + "ab" * 32)
    net.check("a third key is exit code 5", said, exit_code == 5 and "another key" in said)


@case
def nobody(net):
    """A name that nobody has is an error after some seconds, with the names that there are."""
    net.recv(net.r, "--name", "laptop")
    exit_code, _, said, seconds, _ = net.send(net.file("file"), "toaster", "--code", "123-456-789")
    net.check("exit code 4", said, exit_code == 4 and "nobody in the local network calls itself toaster" in said)
    net.check("it says what there is, and what to do", said, "names: laptop" in said and "--name toaster" in said)
    net.check("after 5 s", round(seconds, 2), 4.5 < seconds < 8, pace=seconds > 4.5)
    begin = time.monotonic()
    exit_code, _, said, _, _ = net.send(net.file("x"), "localhost", "--code", "123-456-789", "--connect-timeout", "1s")
    took = round(time.monotonic() - begin, 2)
    # It is not looked for, which took 5 s for the toaster.
    net.check("localhost is no name", said, exit_code == 4 and "no answer from 127.0.0.1:9899" in said)
    net.check("localhost is not looked for", took, took < seconds - 2, pace=True)


@case
def moved(net):
    """A receiver whose addresses change is found at the new ones."""
    _, listening = net.recv(net.r, "--name", "laptop")
    file = net.file("file")
    for dev, old, new in (("eth0", "10.77.1.1", "10.77.1.9"), ("eth1", "10.77.2.1", "10.77.2.9")):
        sh("ip", "-n", net.r, "addr", "add", f"{new}/24", "dev", dev)
        sh("ip", "-n", net.r, "addr", "del", f"{old}/24", "dev", dev)
        # Linux takes the further addresses of a network away with its first.
        if new not in sh("ip", "-n", net.r, "addr", "show", "dev", dev):
            sh("ip", "-n", net.r, "addr", "add", f"{new}/24", "dev", dev)
    begin, found = time.monotonic(), set()
    while not {"10.77.1.9", "10.77.2.9"} <= found and time.monotonic() < begin + 8:
        listed, _ = net.names(wait="500ms")
        found = {ip for one in listed["names"] for ip in one["addresses"]}
    took = time.monotonic() - begin
    net.check("the new addresses within 4 s", (round(took, 2), sorted(found)), took < 4 and "10.77.1.1" not in found,
              pace="10.77.1.1" not in found)
    exit_code, _, said, _, _ = net.send(file, "laptop", "--code", listening["code"])
    net.check("it is sent", said, exit_code == 0 and net.has(file))


@case
def impostor(net):
    """Whoever takes the name gets nothing and learns nothing; nor does whoever announces the key."""
    receiver, listening = net.recv(net.r, "--name", "laptop")
    code, key = listening["code"], listening["key"]
    known = [one["key"] for one in net.names()[0]["names"]]
    net.check("the receiver is known", known, known == [key])
    receiver.signal(15)
    receiver.wait(5)
    impostor, _ = net.recv(net.e, "--name", "laptop", to="stolen")
    file = net.file("file")
    exit_code, _, said, _, _ = net.send(file, "laptop", "--code", code)
    net.check("another one of that name is exit code 5", said, exit_code == 5 and "does not know this code" in said)
    impostor.signal(15)
    impostor.wait(5)
    net.recv(net.e, to="stolen")
    net.stranger(net.e, "forge", "10.77.3.1", "laptop", key, "9899")
    exit_code, _, said, _, _ = net.send(file, "laptop", "--code", code)
    net.check("the key of another is exit code 5", said, exit_code == 5)
    net.check("nothing was stored", "", not any((net.lab.dir / "stolen").iterdir()))


@case
def hostile(net):
    """A flood of malformed and of valid messages costs neither memory nor the transfer."""
    receiver, listening = net.recv(net.r, "--name", "laptop")
    flood = net.stranger(net.e, "flood", "7")
    listed, process = net.names(wait="2s")
    names = listed["names"]
    net.check("a few names are listed", len(names), 1 < len(names) <= 32 and listed["more"])
    net.check("each can be shown", "", all(one["name"].isascii() and one["name"].isprintable() for one in names))
    net.check("memory of names", process.rss, process.rss < MEMORY_MAX)
    file = net.file("file")
    codes = []
    for _ in range(3):
        exit_code, _, said, _, process = net.send(file, "laptop", "--code", listening["code"])
        codes.append(exit_code)
    # A sender may miss an answer in the flood; whatever it does it ends, and says why.
    net.check("the name is found", (codes, said), codes.count(0) >= 2 and net.has(file))
    net.check("memory of the sender", process.rss, process.rss < MEMORY_MAX)
    flood.wait_line("sent", 10)
    receiver.signal(15)
    net.check("the receiver ends well", receiver.said(), receiver.wait(5) == 0)
    net.check("memory of the receiver", receiver.rss, receiver.rss < MEMORY_MAX)
    net.check("its processor time", round(receiver.cpu, 2), receiver.cpu < 5, pace=True)


def has_picture(process):
    """Waits until a process has printed all of a picture: nothing more comes."""
    seen = -1
    while len(process.stderr) != seen or not pictures.block_lines(process.said()):
        seen = len(process.stderr)
        if process.poll() is not None:
            raise Failed(f"no picture: {process.said()}")
        time.sleep(0.3)


@case
def qr(net):
    """The printed blocks are read by a decoder, with and without colours."""
    if pictures.pyzbar is None:
        raise Unavailable("needs pyzbar (Debian: python3-pyzbar)")
    receiver, listening = net.recv(net.r, "--qr", "--port", "0")
    has_picture(receiver)
    read = pictures.decode(receiver.said())
    net.check("a pipe has the ticket as blocks", read, read == listening["ticket"].upper())
    ticket = listening["ticket"]
    file = net.file("file")
    exit_code, _, said, _, _ = net.send(file, read)
    net.check("the ticket that was read works", said, exit_code == 0 and net.has(file))
    net.check("and it is small", len(read), read.lower() == ticket and len(pictures.block_lines(receiver.said())) < 30)
    terminal = Terminal(net.r, [net.binary, "recv", "--qr", "--port", "0"])
    try:
        shown = terminal.wait_for("manypath2:")
        terminal.wait_for("\x1b[0m\r\n", 5)
        time.sleep(0.3)
        terminal._read(0.2)
        shown = terminal.shown
        ticket = next(line for line in shown.replace("\r", "").split("\n") if line.startswith("manypath2:"))
        net.check("a terminal has black on white in each line", pictures.colours(shown),
                  pictures.colours(shown) == {(pictures.BLACK_ON_WHITE, "0")})
        net.check("and the ticket", "", pictures.decode(shown) == ticket.upper())
    finally:
        terminal.close()
    terminal = Terminal(net.r, [net.binary, "recv", "--qr", "--port", "0"], columns=30)
    try:
        terminal.wait_for("No QR code: it needs")
        net.check("a narrow terminal has none, and the reason", "", not pictures.block_lines(terminal.shown))
    finally:
        terminal.close()
    for what, command in (("the proxy", ["proxy", "listen", "--port", "0"]),
                          ("the relay", ["relay", "--port", "0", "--listen", "10.77.1.1"])):
        process = net.lab.spawn(net.r, [net.binary, *command, "--qr", "--json"])
        event = json.loads(process.wait_line('"listening"', 10))
        has_picture(process)
        expected = event["ticket"].upper() if "ticket" in event else event["via"][0]
        read = pictures.decode(process.said())
        net.check(f"{what} has one, too", read, read == expected)
        process.kill()


@case
def examples(net):
    """The commands of examples/README.md work as they are pasted."""
    if shutil.which("curl") is None:
        raise Unavailable("needs curl")
    page = HERE.parents[1] / "examples" / "README.md"
    runner = HERE.parent / "docs" / "run.py"
    process = net.lab.spawn(net.r, [sys.executable, str(runner), "--binary", net.binary, str(page)])
    code = process.wait(60)
    net.check("each block prints what the page says", process.said() or process.stdout, code == 0)


def run_case(name, options):
    """Runs a case: its checks, its time, and why it could not go on."""
    begin = time.monotonic()
    try:
        with Lab(f"n{sorted(CASES).index(name)}") as lab:
            net = Network(lab, options)
            try:
                CASES[name](net)
            except Unavailable as why:
                return net.checks, time.monotonic() - begin, f"SKIPPED: {why}"
            except Exception as error:
                why = str(error) if isinstance(error, Failed) else traceback.format_exc()
                return net.checks, time.monotonic() - begin, why
            return net.checks, time.monotonic() - begin, None
    except Failed as error:
        return [], time.monotonic() - begin, str(error)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_binary(parser, must=True)
    add_require(parser)
    parser.add_argument("--verbose", action="store_true", help="all that was checked")
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], metavar="CASE")
    options = parser.parse_args()
    try:
        check_machine()
    except Unavailable as why:
        sys.exit(skip(options, f"names: {why}"))
    remove_leftovers()
    os.environ.pop("MANYPATH_CODE", None)
    os.environ.pop("MANYPATH_TOKEN", None)
    failed, late, lock = [], [], threading.Lock()

    def report(name):
        checks, took, error = run_case(name, options)
        skipped = error is not None and error.startswith("SKIPPED")
        verdict = judge([(is_right, pace) for *_, is_right, pace in checks] or [(skipped, False)])
        if error and not skipped:
            verdict = Verdict.WRONG
        with lock:
            state = "SKIPPED" if skipped and verdict is Verdict.GOOD else SHOWN[verdict]
            print(f"{name}: {state} ({took:.1f} s, {len(checks)} checks)", flush=True)
            for what, value, is_right, _ in checks:
                if options.verbose or not is_right:
                    print(f"    {'' if is_right else 'FAILED '}{what}: {value}", flush=True)
            if error:
                print(f"    {error}", flush=True)
            if verdict is Verdict.WRONG or (skipped and options.require):
                failed.append(name)
            elif verdict is Verdict.LATE:
                late.append(name)
        return verdict

    with ThreadPoolExecutor(TOGETHER) as pool:
        list(pool.map(report, options.cases or CASES))
    command = [sys.executable, __file__, "--binary", options.binary, *["--require"] * options.require]
    failed += settle(list(late), report, lambda name: [*command, name])
    if failed:
        sys.exit(f"failed: {', '.join(sorted(set(failed)))}")


if __name__ == "__main__":
    main()
