#!/usr/bin/env python3
"""Both hosts of a case of run.py: `peer.py far CASE` on host z, `peer.py near CASE` on host a.

The near side prints the checks as one line of JSON.
"""

import asyncio
import json
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

from failure import Unavailable  # noqa: E402

MANYPATH = os.environ.get("MANYPATH", "manypath")
DIRECTORY = Path(os.environ.get("DIRECTORY", "."))
FULL = bool(os.environ.get("FULL"))
# The goals, and without --full what short measurements beside other work keep.
SHARE_MIN, SLOWER_MAX = (0.9, 2) if FULL else (0.75, 2.5)
WEB, ECHO, SSH = 8080, 8007, 8022
LOCAL_WEB, LOCAL_ECHO, LOCAL_SSH, SOCKS = 9080, 9007, 9022, 9050
# A port of the far host that leads to a server of this one, and a local port that leads there.
REMOTE, BEHIND, ROUND = 9100, 9101, 9102
MBIT = 1e6
SUM = 100 * MBIT
CHECKS = []
ROOT = Path(__file__).resolve().parents[2]
# An address that only host z has, for connections that are redirected, and the port for them (examples/tproxy.nft).
ELSEWHERE, REDIRECTED = "203.0.113.7", 1081
# The largest file descriptor table that the system allows: each connection is one.
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


def check(what, value, is_right, pace=False):
    """With `pace` it is a bound in time: a busy machine can be the reason why it is missed."""
    CHECKS.append((what, value, bool(is_right), pace))


# ---- Host z ----


async def web(reader, writer):
    """HTTP: /N gives N bytes, /page/N a page with N images, all others an image."""
    try:
        while line := await reader.readline():
            while (await reader.readline()).strip():
                pass
            path = line.split()[1].decode().strip("/")
            kind = "application/octet-stream"
            if path.startswith("page/"):
                images = "".join(f'<img src="/image{i}.svg">' for i in range(int(path[5:])))
                body, kind = f"<!doctype html><title>wait</title>{images}<script>onload = () => document.title = [...document.images].filter(i => i.naturalWidth).length</script>".encode(), "text/html"
            elif path.isdigit():
                body = None
            else:
                body, kind = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>' + b" " * 8000, "image/svg+xml"
            length = int(path) if body is None else len(body)
            writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n".encode())
            if body is not None:
                writer.write(body)
            block = bytes(65536)
            left = length if body is None else 0
            while left > 0:
                writer.write(block[:min(left, len(block))])
                left -= min(left, len(block))
                await writer.drain()
            await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def echo(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


def listen():
    """Starts `proxy listen`."""
    secret = str(DIRECTORY / "secret")
    return subprocess.Popen([MANYPATH, "proxy", "listen", "--identity", str(DIRECTORY / "far.key"),
                             "--token-file", secret, "--allow-remote-forwards"], stdout=subprocess.DEVNULL)


class UdpEcho(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, address):
        self.transport.sendto(data, address)


async def far(case):
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    proxy = listen()
    await asyncio.start_server(web, "127.0.0.1", WEB, backlog=4096)
    await asyncio.start_server(echo, "127.0.0.1", ECHO, backlog=4096)
    await asyncio.get_running_loop().create_datagram_endpoint(UdpEcho, ("127.0.0.1", ECHO))
    if case == "tproxy":
        subprocess.run(["ip", "address", "add", f"{ELSEWHERE}/32", "dev", "lo"], check=True)
        await asyncio.start_server(web, ELSEWHERE, WEB)
    sshd = ssh_server() if case == "ssh" else None
    while not stopped.is_set():
        # The near side says that it wants a restart.
        if (DIRECTORY / "restart").exists():
            (DIRECTORY / "restart").unlink()
            proxy.kill()
            proxy.wait()
            await asyncio.sleep(1)
            proxy = listen()
            (DIRECTORY / "restarted").touch()
        try:
            await asyncio.wait_for(stopped.wait(), 0.02)
        except asyncio.TimeoutError:
            pass
    for process in (proxy, sshd):
        if process:
            process.kill()
            process.wait()


def ssh_server():
    """An SSH server with keys of its own, if there is one."""
    if not (server := shutil.which("sshd", path="/usr/sbin:/usr/bin")):
        return None
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", DIRECTORY / name], check=True)
    os.makedirs("/run/sshd", exist_ok=True)
    config = DIRECTORY / "sshd_config"
    config.write_text(f"Port {SSH}\nListenAddress 127.0.0.1\nHostKey {DIRECTORY}/host\nPidFile none\nUsePAM no\n"
                      f"AuthorizedKeysFile {DIRECTORY}/user.pub\nStrictModes no\nPermitRootLogin yes\n")
    return subprocess.Popen([server, "-D", "-e", "-f", config], stderr=open(DIRECTORY / "sshd.log", "w"))


# ---- Host a ----


def connect(*more):
    """Starts `proxy connect`, and waits until it is ready."""
    until = time.monotonic() + 10
    while not (DIRECTORY / "far.key").exists() and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(0.3)
    command = [MANYPATH, "proxy", "connect", "z", "--token-file", str(DIRECTORY / "secret"), "--json",
               "-L", f"{LOCAL_WEB}:127.0.0.1:{WEB}", "-L", f"{LOCAL_ECHO}:127.0.0.1:{ECHO}",
               "-L", f"{LOCAL_SSH}:127.0.0.1:{SSH}", "-D", str(SOCKS), *more]
    proxy = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    event = json.loads(proxy.stdout.readline())
    assert event["event"] == "ready", event
    # Until the second path is verified.
    time.sleep(0.5)
    return proxy


def curl(path, *more, port=LOCAL_WEB):
    """The rate of a download in bit/s, without its first second, in which the association begins to use both paths."""
    url = f"http://127.0.0.1:{port}/{path}"
    with subprocess.Popen(["curl", "-sS", *more, url], stdout=subprocess.PIPE, bufsize=0) as download:
        total, counted, begin = 0, 0, time.monotonic()
        since = end = begin
        while data := download.stdout.read(1 << 16):
            end = time.monotonic()
            total += len(data)
            if end - begin < 1:
                since = end
            else:
                counted += len(data)
    assert total == int(path), total
    return counted * 8 / (end - since)


def case_throughput():
    size = 200_000_000 if FULL else 60_000_000
    for name, more in (("-L", ()), ("SOCKS5", ("-x", f"socks5h://127.0.0.1:{SOCKS}"))):
        rate = curl(size, *more, port=WEB if more else LOCAL_WEB)
        check(f"download through {name}, Mbit/s of {SUM / MBIT:.0f}", round(rate / MBIT, 1), rate >= SHARE_MIN * SUM,
              pace=True)


def case_udp():
    """A datagram through UDP ASSOCIATE (RFC 1928 section 7), to the echo server and back."""
    with socket.create_connection(("127.0.0.1", SOCKS)) as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        for tell in (tcp, udp):
            tell.settimeout(5)
        tcp.sendall(bytes([5, 1, 0]))
        assert tcp.recv(2) == bytes([5, 0])
        tcp.sendall(bytes([5, 3, 0, 1, 0, 0, 0, 0, 0, 0]))
        answer = tcp.recv(10)
        assert answer[:4] == bytes([5, 0, 0, 1]), answer
        relay = (socket.inet_ntoa(answer[4:8]), struct.unpack("!H", answer[8:])[0])
        header = bytes([0, 0, 0, 1]) + socket.inet_aton("127.0.0.1") + struct.pack("!H", ECHO)
        got = set()
        for i in range(20):
            udp.sendto(header + b"datagram %d" % i, relay)
        for _ in range(20):
            data = udp.recv(1000)
            assert data.startswith(header), data
            got.add(data[len(header):])
    check("datagrams through SOCKS5 and back, of 20", len(got), got == {b"datagram %d" % i for i in range(20)})


async def around():
    """A connection through -L to the far host's port of -R, which leads back to a server here."""
    await asyncio.start_server(echo, "127.0.0.1", BEHIND)
    reader, writer = await asyncio.open_connection("127.0.0.1", ROUND)
    data = os.urandom(5_000_000)
    got = asyncio.create_task(reader.readexactly(len(data)))
    writer.write(data)
    await asyncio.wait_for(writer.drain(), 20)
    check("5 MB through -L, -R and back", len(await asyncio.wait_for(got, 20)), got.result() == data)
    writer.write_eof()
    check("bytes after the end of both directions", len(rest := await asyncio.wait_for(reader.read(), 5)), rest == b"")
    writer.close()


def case_remote():
    asyncio.run(around())


def arrivals(seconds):
    """Downloads for some seconds: the times at which data arrived."""
    with socket.create_connection(("127.0.0.1", LOCAL_WEB)) as tcp:
        tcp.sendall(b"GET /2000000000 HTTP/1.1\r\n\r\n")
        times, end = [], time.monotonic() + seconds
        while time.monotonic() < end:
            if not tcp.recv(1 << 16):
                break
            times.append(time.monotonic())
        return times


def case_outage():
    times = arrivals(11)
    pause = max(b - a for a, b in zip(times, times[1:]))
    check("longest pause while one of two paths fails, in s", round(pause, 3), pause <= 0.5, pace=True)


def requests(count):
    """Times of small requests of eight clients, each with a connection of its own, in s.

    About one of 400 is lost in a queue that overflows, so of few requests the 99th percentile may be of those.
    """
    clients = 8

    def client(_):
        times = []
        for _ in range(count // clients):
            begin = time.monotonic()
            with socket.create_connection(("127.0.0.1", LOCAL_WEB)) as tcp:
                tcp.sendall(b"GET /1000 HTTP/1.1\r\n\r\n")
                got = b""
                while len(got) < 1000:
                    got += tcp.recv(4096)
            times.append(time.monotonic() - begin)
            time.sleep(0.02)
        return times

    with ThreadPoolExecutor(clients) as pool:
        return sorted(sum(pool.map(client, range(clients)), []))


def case_latency():
    count = 2000 if FULL else 800
    alone = requests(count)
    bulk = subprocess.Popen(["curl", "-sS", "-o", "/dev/null", f"http://127.0.0.1:{LOCAL_WEB}/2000000000"])
    time.sleep(2)
    beside = requests(count)
    bulk.kill()
    bulk.wait()
    p99 = lambda times: times[int(len(times) * 0.99)]
    median = lambda times: times[len(times) // 2]
    check("median of small requests, alone and beside a download, in ms",
          [round(median(t) * 1e3, 1) for t in (alone, beside)], True)
    check("99th percentile of small requests, alone and beside a download, in ms",
          [round(p99(t) * 1e3, 1) for t in (alone, beside)], p99(beside) <= SLOWER_MAX * p99(alone),
          pace=True)


def case_restart():
    old = socket.create_connection(("127.0.0.1", LOCAL_ECHO))
    idle = socket.create_connection(("127.0.0.1", LOCAL_ECHO))
    for tcp in (old, idle):
        tcp.settimeout(15)
        tcp.sendall(b"before")
        assert tcp.recv(100) == b"before"
    (DIRECTORY / "restart").touch()
    time.sleep(0.2)
    old.sendall(b"during")
    while not (DIRECTORY / "restarted").exists():
        time.sleep(0.01)
    back, took = time.monotonic(), None
    while time.monotonic() < back + 10:
        try:
            with socket.create_connection(("127.0.0.1", LOCAL_ECHO)) as tcp:
                tcp.settimeout(5)
                tcp.sendall(b"after")
                if tcp.recv(100) == b"after":
                    took = time.monotonic() - back
                    break
        except OSError:
            pass
        time.sleep(0.02)
    check("a new connection works after the far side is back, in s", took and round(took, 2), took is not None and took <= 1,
          pace=took is not None)
    for name, tcp in (("old", old), ("old idle", idle)):
        try:
            what = f"{len(tcp.recv(100))} bytes"
        except ConnectionResetError:
            what = "reset"
        except OSError as error:
            what = str(error)
        check(f"an {name} connection is", what, what == "reset")


async def many(count):
    begin = time.monotonic()
    open_connections, failed = [], 0

    async def one(i):
        nonlocal failed
        # More than 200 new ones a second, or as many as the case is in a hurry for.
        await asyncio.sleep(i / (220 if FULL else 1000))
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", LOCAL_ECHO)
            writer.write(b"x%d\n" % i)
            assert await asyncio.wait_for(reader.readline(), 20) == b"x%d\n" % i
            open_connections.append((reader, writer))
        except Exception as error:  # any is a failure of this connection
            failed += 1
            if failed == 1:
                print(repr(error), file=sys.stderr)

    await asyncio.gather(*(one(i) for i in range(count)))
    took = time.monotonic() - begin
    check("connections open at the same time", len(open_connections), len(open_connections) == count and failed == 0)
    check("new connections a second", round(count / took), count / took >= 200, pace=True)
    # All still work.
    for i, (_, writer) in enumerate(open_connections):
        writer.write(b"y%d\n" % i)
    answers = await asyncio.gather(*(asyncio.wait_for(reader.readline(), 20) for reader, _ in open_connections))
    check("of them answer once more", len(answers), answers == [b"y%d\n" % i for i in range(len(answers))])
    for _, writer in open_connections:
        writer.close()


def case_many():
    asyncio.run(many(10_000))
    rss = int(next(l for l in Path(f"/proc/{PROXY.pid}/status").read_text().splitlines() if l.startswith("VmHWM")).split()[1])
    check("memory of the near side, in MiB", round(rss / 1024), rss < 1024 * 1024)


def case_ssh():
    if not shutil.which("sshd", path="/usr/sbin:/usr/bin") or not shutil.which("ssh"):
        raise Unavailable("no SSH client and server (Debian: openssh-client, openssh-server)")
    command = ["ssh", "-p", str(LOCAL_SSH), "-i", str(DIRECTORY / "user"), "-o", "StrictHostKeyChecking=no",
               "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes", "root@127.0.0.1"]
    data = os.urandom(5_000_000)
    done = subprocess.run([*command, "cat"], input=data, capture_output=True, timeout=30)
    check("bytes through SSH and back", len(done.stdout), done.stdout == data or print(done.stderr, file=sys.stderr))


def case_browser():
    browser = shutil.which("chromium")
    if not browser:
        raise Unavailable("no Chromium (Debian: chromium)")
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={DIRECTORY}/chromium",
                           f"--proxy-server=socks5://127.0.0.1:{SOCKS}", "--proxy-bypass-list=<-loopback>",
                           "--virtual-time-budget=20000", "--dump-dom", f"http://127.0.0.1:{WEB}/page/100"],
                          capture_output=True, text=True, timeout=50)
    title = done.stdout.partition("<title>")[2].partition("</title>")[0]
    check("objects of a page of 100 that a browser loaded", title, title == "100" or print(done.stderr[-1000:], file=sys.stderr))


def fetched(address, port, path):
    """The answer to a request; why there is none."""
    try:
        with socket.create_connection((address, port), timeout=3) as tcp:
            tcp.settimeout(5)
            tcp.sendall(f"GET /{path} HTTP/1.1\r\n\r\n".encode())
            return tcp.recv(15).decode()
    except OSError as why:
        return type(why).__name__


def case_tproxy():
    """The rules of the example, as its comments say."""
    # A way that leads nowhere: hosts have a default route.
    for command in ("link add uplink type veth peer name nobody", "link set uplink up", "link set nobody up",
                    "address add 192.0.2.9/24 dev uplink", "route add default dev uplink src 192.0.2.9"):
        subprocess.run(["ip", *command.split()], check=True)
    # Emulated hosts have no IPv6.
    for name in ("all", "lo"):
        Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("0")
    text = (ROOT / "examples/tproxy.nft").read_text(encoding="utf-8")
    commands = [part.splitlines() for part in text.split("To take it back")[:2]]
    on, off = ([line.removeprefix("#   sudo ") for line in part if line.startswith("#   sudo ")] for part in commands)
    check("a connection to an address of the far host before", why := fetched(ELSEWHERE, WEB, 10), why != "HTTP/1.1 200 OK")
    for command in on:
        subprocess.run(command.replace("sudo ", ""), shell=True, cwd=ROOT, check=True)
    check("a redirected connection", got := fetched(ELSEWHERE, WEB, 10), got == "HTTP/1.1 200 OK")
    check("one where nobody listens", got := fetched(ELSEWHERE, 1, 10), got == "ConnectionResetError")
    check("one to the port itself", got := fetched("127.0.0.1", REDIRECTED, 10), got == "ConnectionResetError")
    check("one of the far side's network, through -L", got := fetched("127.0.0.1", LOCAL_WEB, 10), got == "HTTP/1.1 200 OK")
    for command in off:
        subprocess.run(command.replace("sudo ", ""), shell=True, cwd=ROOT, check=True)
    check("one after the rules are gone", why := fetched(ELSEWHERE, WEB, 10), why != "HTTP/1.1 200 OK")


def near(case):
    global PROXY
    more = {"tproxy": ["--tproxy", f"{REDIRECTED}"],
            "remote": ["-R", f"{REMOTE}:127.0.0.1:{BEHIND}", "-L", f"{ROUND}:127.0.0.1:{REMOTE}"]}
    PROXY = connect(*more.get(case, []))
    try:
        globals()[f"case_{case}"]()
        result = {"checks": CHECKS}
    except Unavailable as why:
        result = {"skipped": str(why)}
    finally:
        PROXY.terminate()
        code = PROXY.wait(10)
    if "checks" in result:
        check("exit code after SIGTERM", code, code == 0)
    print(json.dumps(result))


if __name__ == "__main__":
    side, case = sys.argv[1:]
    asyncio.run(far(case)) if side == "far" else near(case)
