"""Transfers that must fail, each with its own message and exit code, and leave no damaged file."""

import signal
import time

from cases import settings, two_hosts
from transfer import Transfer, make_file

FAILED, USAGE, INTERRUPTED, NO_PATH, NOT_AUTHORISED = 1, 2, 3, 4, 5
# How long an association lives without any usable path: the default, and one for those in a hurry.
TIMEOUT_DEFAULT, TIMEOUT_QUICK = 60, 6
# Until it is noticed that there is no usable path: Path.Max.Retrans timeouts, doubling from RTO.Min, or
# heartbeats that start up to HB.interval and the RTO later.
NOTICE_MAX = 15


def expect(case, who, process, code, text):
    """How a command must have ended and what it must have said."""
    case.check(f"{who}'s exit code", process.code, process.code == code, process.said)
    last = [line for line in process.said().splitlines() if line.startswith("manypath: ")]
    said = last[-1] if last else ""
    case.check(f"{who}'s message", said, text in said, process.said)
    case.check(f"{who} did not panic", "panicked" not in process.said(), "panicked" not in process.said())


def expect_nothing_stored(case, transfer):
    """No file under its final name, and no part of one."""
    stored = transfer.stored()
    case.check("stored", stored, not stored)


def expect_part_kept(case, transfer):
    """No file under its final name, but what a later transfer goes on from."""
    stored = transfer.stored()
    case.check("kept", stored, len(stored) == 1 and stored[0].startswith(".manypath-kept-"))


def timeouts(case):
    """The association's timeout in this run, and the settings for it."""
    if case.options.full:
        return TIMEOUT_DEFAULT, []
    return TIMEOUT_QUICK, ["--set", f"association_timeout={TIMEOUT_QUICK}s"]


def begin(case, lab, mb=100):
    """A transfer over two links that has come to a third."""
    source = lab.dir / "source.bin"
    make_file(source, mb * 1_000_000)
    a, b = two_hosts(lab)
    seconds, words = timeouts(case)
    words = [*settings(case.options), *words]
    transfer = Transfer(lab, case.options.binary, source, b, words)
    transfer.start(a, *words)
    transfer.wait_bytes(mb * 1_000_000 // 3, 60)
    return transfer, a, b, seconds


def expect_in_time(case, who, process, since, seconds):
    """The command noticed the loss of all paths after its timeout and not much later."""
    took = process.ended - since
    case.check(f"{who} gave up after", f"{took:.1f} s, timeout {seconds} s", seconds - 1 <= took <= seconds + NOTICE_MAX,
               pace=took > seconds)


def no_path(case, lab):
    """Both links go down for good in the middle."""
    transfer, a, _, seconds = begin(case, lab)
    since = time.monotonic()
    for dev in ("a1", "a2"):
        lab.link(a, dev, up=False)
    transfer.send.wait(seconds + 2 * NOTICE_MAX)
    transfer.recv.wait(seconds + 2 * NOTICE_MAX)
    expect(case, "sender", transfer.send, INTERRUPTED, "no path answers any more")
    expect(case, "receiver", transfer.recv, INTERRUPTED, "no path answers any more")
    expect_in_time(case, "sender", transfer.send, since, seconds)
    expect_in_time(case, "receiver", transfer.recv, since, seconds)
    expect_part_kept(case, transfer)


def receiver_killed(case, lab):
    """The receiver is killed in the middle and cannot say so."""
    transfer, _, _, seconds = begin(case, lab)
    transfer.recv.kill()
    since = time.monotonic()
    transfer.send.wait(seconds + 2 * NOTICE_MAX)
    expect(case, "sender", transfer.send, INTERRUPTED, "no path answers any more")
    expect_in_time(case, "sender", transfer.send, since, seconds)
    expect_part_kept(case, transfer)


def sender_killed(case, lab):
    """The sender is killed in the middle and cannot say so."""
    transfer, _, _, seconds = begin(case, lab)
    transfer.send.kill()
    since = time.monotonic()
    transfer.recv.wait(seconds + 2 * NOTICE_MAX)
    expect(case, "receiver", transfer.recv, INTERRUPTED, "no path answers any more")
    expect_in_time(case, "receiver", transfer.recv, since, seconds)
    expect_part_kept(case, transfer)


def receiver_stopped(case, lab):
    """The receiver's user stops it in the middle."""
    transfer, *_ = begin(case, lab)
    transfer.recv.signal(signal.SIGTERM)
    transfer.wait(5)
    expect(case, "sender", transfer.send, INTERRUPTED, "was stopped")
    expect(case, "receiver", transfer.recv, INTERRUPTED, "interrupted")
    expect_part_kept(case, transfer)


def sender_stopped(case, lab):
    """The sender's user stops it in the middle."""
    transfer, *_ = begin(case, lab)
    transfer.send.signal(signal.SIGINT)
    transfer.wait(5)
    expect(case, "sender", transfer.send, INTERRUPTED, "interrupted")
    expect(case, "receiver", transfer.recv, INTERRUPTED, "was stopped")
    expect_part_kept(case, transfer)


def unreachable(case, lab):
    """Nobody is at the address; then there is not even a route to it."""
    source = lab.dir / "source.bin"
    make_file(source, 1000)
    a, _ = two_hosts(lab)
    for what, dest in (("no host", "10.81.1.77,10.81.2.77"), ("no program", "10.81.1.2,10.81.2.2"), ("no route", "192.0.2.1")):
        words = [case.options.binary, "send", "--token", "a token", "--connect-timeout", "3 s", str(source), dest]
        process = lab.spawn(a, words)
        process.wait(10)
        expect(case, f"with {what}, the sender", process, NO_PATH, "no answer from" if what != "no route" else "")
        if what != "no route":
            said = process.said()
            case.check(f"with {what}, it says that the addresses are private", said, "private" in said)
        took = process.ended - process.begin
        case.check(f"with {what}, it gave up after", f"{took:.1f} s", took < 4.5, pace=True)


def disk_full(case, lab):
    """The receiver's file system is too small for a file: it is sent away before it begins, and another is taken."""
    source, little = lab.dir / "source.bin", lab.dir / "little.bin"
    make_file(source, 60_000_000)
    make_file(little, 1_000_000)
    a, b = two_hosts(lab)
    small = lab.dir / "small"
    small.mkdir()
    # A namespace's processes have their own mounts; what is left behind must be listed before the end.
    script = ('mount -t tmpfs -o size=20m tmpfs "$1" && shift; dir=$1; shift; "$@"; code=$?;'
              'echo "left: $(ls -A "$dir")" >&2; exit $code')
    recv = lab.spawn(b, ["sh", "-c", script, "sh", str(small), str(small), case.options.binary, "recv", "--once", "--token",
                         "disk full", "--json", "--dir", str(small)])
    recv.wait_line('"listening"', 20)
    send = [case.options.binary, "send", "--token", "disk full"]
    first = lab.spawn(a, [*send, str(source), "10.81.1.2,10.81.2.2"])
    first.wait(30)
    expect(case, "sender", first, FAILED, "free on the disk")
    second = lab.spawn(a, [*send, str(little), "10.81.1.2,10.81.2.2"])
    second.wait(30)
    case.check("sender of a small file: exit code", second.code, second.code == 0, second.said)
    recv.wait(10)
    case.check("receiver: exit code", recv.code, recv.code == 0, recv.said)
    case.check("receiver said so", "free on the disk" in recv.said(), "free on the disk" in recv.said(), recv.said)
    case.check("left behind", recv.stderr[-1][1], recv.stderr[-1][1] == "left: little.bin")


def wrong_token(case, lab):
    """A stranger is sent away, and the receiver goes on waiting for its sender."""
    source = lab.dir / "source.bin"
    digest = make_file(source, 1_000_000)
    a, b = two_hosts(lab)
    transfer = Transfer(lab, case.options.binary, source, b, ["--token", "the right one"])
    for token in ("the wrong one", "x"):
        words = [case.options.binary, "send", "--token", token, str(source), "10.81.1.2,10.81.2.2"]
        process = lab.spawn(a, words)
        process.wait(10)
        expect(case, f"with token {token!r}, the sender", process, NOT_AUTHORISED, "does not accept this token")
    expect_nothing_stored(case, transfer)
    transfer.start(a)
    transfer.wait(20)
    case.check("the right token afterwards", transfer.send.code, transfer.send.code == 0, transfer.send.said)
    case.check("its file", transfer.result(transfer.recv).get("sha256"), transfer.result(transfer.recv).get("sha256") == digest)


def port_in_use(case, lab):
    """A second receiver on the same port, and a sender that asks for an address of another host."""
    host = lab.host("b")
    words = [case.options.binary, "recv", "--port", "9899", "--dir", str(lab.dir)]
    first = lab.spawn(host, words)
    first.wait_line("manypath2:", 10)
    second = lab.spawn(host, words)
    second.wait(10)
    expect(case, "the second receiver", second, FAILED, "9899 is in use")
    source = lab.dir / "source.bin"
    make_file(source, 1000)
    for bind, text in (("192.0.2.9", "not an address of this host"), ("eth77", "no interface")):
        process = lab.spawn(host, [case.options.binary, "send", "--token", "x", "--bind", bind, str(source), "127.0.0.1"])
        process.wait(10)
        expect(case, f"with --bind {bind}, the sender", process, FAILED, text)


CASES = {
    "no-path": no_path,
    "receiver-killed": receiver_killed,
    "sender-killed": sender_killed,
    "receiver-stopped": receiver_stopped,
    "sender-stopped": sender_stopped,
    "unreachable": unreachable,
    "disk-full": disk_full,
    "wrong-token": wrong_token,
    "port-in-use": port_in_use,
}
