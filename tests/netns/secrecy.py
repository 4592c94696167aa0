"""What the packets of a transfer show, and ends that must not talk to each other."""

import base64
import signal
import sys
import time

import capture
from cases import settings, two_hosts
from failures import INTERRUPTED, NOT_AUTHORISED, expect, expect_nothing_stored, timeouts
from transfer import HERE, Transfer, check_complete, make_file

TOKEN = "correct horse battery"
NAME = "a name that nobody should read.bin"
WINDOW = 16  # bytes of content that count as read
# No more: the memory that this process takes for it counts as that of programs which it starts later.
BYTES = 1_000_000
RESTARTED_MAX = 10


def forms(secret):
    """A secret as it may be written, in upper and lower case."""
    base32 = base64.b32encode(secret).rstrip(b"=")
    return {"raw": [secret], "hexadecimal": [secret.hex().encode(), secret.hex().upper().encode()],
            "base32": [base32, base32.lower()]}


def found(packets, content, secrets):
    """What packets contain: how many of the content's aligned windows, and which secrets in which form. Whatever
    has 31 bytes of the content in a row has such a window."""
    windows = {content[at:at + WINDOW] for at in range(0, len(content) - WINDOW + 1, WINDOW)}
    total, seen, shown = len(windows), set(), set()
    wanted = [(f"{name}, {form}", text) for name, secret in secrets.items()
              for form, texts in forms(secret).items() for text in texts]
    for packet in packets:
        shown |= {what for what, text in wanted if text in packet}
        seen |= windows.intersection(packet[at:at + WINDOW] for at in range(len(packet) - WINDOW + 1))
    return len(seen) / total, sorted(shown)


def token_of(ticket):
    """The token in a ticket (crates/files/src/ticket.rs)."""
    text = ticket.split(":")[1].upper()
    body = base64.b32decode(text + "=" * (-len(text) % 8))
    return body[4:4 + body[3]]


def captured(case, lab, name, words, by_ticket):
    """A transfer whose packets are captured on all interfaces of both ends: the part of the content and the secrets
    that they show."""
    (lab.dir / name).mkdir()
    source = lab.dir / name / NAME
    digest = make_file(source, BYTES)
    a, b = two_hosts(lab)
    files = [lab.dir / name / f"{side}.pcap" for side in "ab"]
    captures = [lab.spawn(host, [sys.executable, str(HERE / "capture.py"), str(file)]) for host, file in zip((a, b), files)]
    for one in captures:
        one.wait_line("ready", 10)
    token = [] if by_ticket else ["--token", TOKEN]
    transfer = Transfer(lab, case.options.binary, source, b, [*words, *token, *settings(case.options)])
    listening = transfer.listening
    transfer.start(a, *words, *token, *settings(case.options),
                   dest=None if by_ticket else f"10.81.1.2:{listening['port']},10.81.2.2:{listening['port']}")
    transfer.wait(60)
    check_complete(case, transfer, digest)
    for one in captures:
        one.signal(signal.SIGTERM)
        one.wait(20)
        lost = one.stdout[-1][1]
        case.check(f"{name}: packets that the capture lost", lost, lost == "lost 0")
    packets = {packet for file in files for packet in capture.packets(file)}
    case.check(f"{name}: captured", f"{len(packets)} different packets", sum(map(len, packets)) > BYTES)
    secret = token_of(listening["ticket"]) if by_ticket else TOKEN.encode()
    return found(packets, source.read_bytes(), {"name": NAME.encode(), "token": secret})


def encrypted(case, lab):
    """With a ticket: nothing of the file, its name or the token is in any packet."""
    judge(case, *captured(case, lab, "ticket", [], True))


def encrypted_password(case, lab):
    """The same with a password, which people choose, and the receiver's address."""
    judge(case, *captured(case, lab, "password", [], False))


def judge(case, share, shown):
    case.check("part of the content that packets show", f"{share:.1%}", share == 0)
    case.check("secrets that packets show", shown, not shown)


def encrypted_control(case, lab):
    """With `--insecure` all of it is found: the search finds what is there."""
    share, shown = captured(case, lab, "insecure", ["--insecure"], True)
    case.check("part of the content that packets show", f"{share:.1%}", share > 0.95)
    case.check("secrets that packets show", shown, shown == ["name, raw", "token, raw"])


def wrong_key(case, lab):
    """Another receiver is at the address in a ticket: the sender refuses it and sends nothing. So does a receiver that
    does not know the sender's key."""
    source = lab.dir / "source.bin"
    make_file(source, 1_000_000)
    a, b = two_hosts(lab)
    keys = [lab.dir / name for name in ("first.pem", "second.pem", "sender.pem", "stranger.pem")]
    first = Transfer(lab, case.options.binary, source, b, ["--token", TOKEN, "--identity", str(keys[0])])
    ticket = first.listening["ticket"]
    first.recv.kill()
    second = Transfer(lab, case.options.binary, source, b, ["--token", TOKEN, "--identity", str(keys[1])])
    case.check("another key", second.listening["key"], second.listening["key"] != first.listening["key"])
    second.start(a, dest=ticket)
    second.send.wait(20)
    expect(case, "sender with the first's ticket", second.send, NOT_AUTHORISED, "key")
    expect_nothing_stored(case, second)
    second.recv.kill()
    # The same port and key again: the ticket is good.
    third = Transfer(lab, case.options.binary, source, b, ["--token", TOKEN, "--identity", str(keys[0])])
    third.start(a, dest=ticket)
    third.wait(20)
    case.check("with the first's key, exit codes", (third.send.code, third.recv.code), third.send.code == third.recv.code == 0)
    third.received().unlink()
    # The receiver's turn: it accepts the key of a sender that has shown it, and no other.
    probe = Transfer(lab, case.options.binary, source, b, ["--token", TOKEN])
    probe.start(a, "--identity", str(keys[2]))
    probe.wait(20)
    allowed = probe.result(probe.recv).get("peer_key")
    probe.received().unlink()
    strict = Transfer(lab, case.options.binary, source, b, ["--token", TOKEN, "--allow", str(allowed)])
    strict.start(a, "--identity", str(keys[3]))
    strict.send.wait(20)
    expect(case, "sender with a key that is not allowed", strict.send, NOT_AUTHORISED, "key")
    expect_nothing_stored(case, strict)
    strict.start(a, "--identity", str(keys[2]))
    strict.wait(20)
    case.check("with the allowed key", (strict.send.code, strict.recv.code), strict.send.code == strict.recv.code == 0)


def receiver_replaced(case, lab):
    """The receiver is killed and another one started at its address, which answers packets that it does not know
    with an ABORT. The sender cannot believe that. It ends in time, and sends the new one nothing."""
    source = lab.dir / "source.bin"
    make_file(source, 100_000_000)
    a, b = two_hosts(lab)
    seconds, words = timeouts(case)
    key = ["--token", TOKEN, "--identity", str(lab.dir / "key.pem")]
    transfer = Transfer(lab, case.options.binary, source, b, [*words, *key])
    transfer.start(a, *words)
    transfer.wait_bytes(30_000_000, 60)
    transfer.recv.kill()
    since = time.monotonic()
    other = Transfer(lab, case.options.binary, source, b, [*words, *key])
    transfer.send.wait(seconds + 30)
    took = transfer.send.ended - since
    expect(case, "sender", transfer.send, INTERRUPTED, "no path answers any more")
    case.check("sender gave up after", f"{took:.1f} s, timeout {seconds} s", seconds - 1 <= took <= seconds + RESTARTED_MAX,
               pace=took > seconds)
    case.check("the new receiver still waits", other.recv.poll(), other.recv.poll() is None)
    case.check("file under its final name", other.stored(), source.name not in other.stored())


CASES = {
    "encrypted": encrypted,
    "encrypted-password": encrypted_password,
    "encrypted-control": encrypted_control,
    "wrong-key": wrong_key,
    "receiver-replaced": receiver_replaced,
}
