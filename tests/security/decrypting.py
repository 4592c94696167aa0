"""`manypath decrypt`: what it opens is what the independent decoder reads, and tshark shows it."""

import collections
import hashlib
import json
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import records as r
from capture import PORT, write_pcap
from decoding import RATE, Reading, check_keys
from process import Process
from relay import TO_RECEIVER, Relay
from transfer import Transfer

CAPTURE = Path(__file__).resolve().parents[1] / "netns/capture.py"
LINKTYPE_ETHERNET = 1
SECTION, INTERFACE, ENHANCED_PACKET = 0x0A0D_0D0A, 1, 6
COMMENT = 1
OPENED = "opened: was protected by a DTLS chunk"
SIZE = 5_000_000


def read_pcapng(path):
    """The packets of a pcapng file in this machine's byte order: link type, comments and bytes of each."""
    data, at, link_types = path.read_bytes(), 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        body = data[at + 8:at + length - 4]
        assert struct.unpack_from("<I", data, at + length - 4)[0] == length
        if kind == SECTION:
            link_types.clear()
        elif kind == INTERFACE:
            link_types.append(struct.unpack_from("<H", body)[0])
        elif kind == ENHANCED_PACKET:
            interface, _, _, captured, _ = struct.unpack_from("<IIIII", body)
            yield link_types[interface], comments(body[20 + captured + -captured % 4:]), body[20:20 + captured]
        at += length


def comments(options):
    """The comments of a packet."""
    found, at = [], 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from("<HH", options, at)
        if code == COMMENT:
            found.append(options[at + 4:at + 4 + length].decode())
        at += 4 + length + -length % 4
    return found


def datagram(link_type, frame):
    """The UDP payload of a frame of IPv4; None if there is none. Checks its lengths."""
    ip = frame[14:] if link_type == LINKTYPE_ETHERNET else frame
    if len(ip) < 28 or ip[0] != 0x45 or ip[9] != socket.IPPROTO_UDP:
        return None
    total, udp = struct.unpack_from("!H", ip, 2)[0], struct.unpack_from("!H", ip, 24)[0]
    assert total == 20 + udp <= len(ip), f"lengths {total}, {udp}, {len(ip)}"
    return ip[28:total]


def decrypt(case, transfer, capture, out):
    """Runs the command; its result."""
    command = [case.options.binary, "decrypt", str(capture), "--keys", str(transfer.key_log), "--out", str(out), "--json"]
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    case.check("exit code of decrypt", done.returncode, done.returncode == 0, done.stderr)
    case.note("decrypted in", f"{time.monotonic() - begin:.1f} s")
    return json.loads(done.stdout or "{}")


class Opened:
    """The opened packets of a copy, read as plain SCTP."""

    def __init__(self, path):
        self.kinds, self.content, self.wrong = collections.Counter(), {}, []
        self.opened = self.sealed = 0
        for link_type, said, frame in read_pcapng(path):
            data = datagram(link_type, frame)
            if data is None or len(data) < r.HEADER + 4:
                continue
            self.sealed += data[r.HEADER] == r.DTLS
            if not any(text.startswith(OPENED) for text in said):
                continue
            self.opened += 1
            if not r.has_checksum(data):
                self.wrong.append("a checksum")
            for kind, _, value in r.chunks_of(data[r.HEADER:]):
                self.kinds[kind] += 1
                if kind == r.DATA and struct.unpack_from("!I", value, 8)[0] == r.PPID_CONTENT:
                    self.content[struct.unpack_from("!I", value)[0]] = value[12:]

    def digest(self):
        """Of the content in the order of its TSNs, which may begin near 2^32."""
        first = next(iter(self.content), 0)
        digest = hashlib.sha256()
        for tsn in sorted(self.content, key=lambda tsn: (tsn - first + 2**31) % 2**32):
            digest.update(self.content[tsn])
        return digest.hexdigest()


def check_with_tshark(case, path, expected, port=PORT):
    """tshark shows as many chunks of each type as Python, with right checksums, and no DTLS chunk."""
    if not shutil.which("tshark"):
        case.check("tshark", "is missing", not case.options.require)
        return
    words = ["tshark", "-r", str(path), "-Y", "frame.comment", "-o", "sctp.checksum:CRC 32c", "-d", f"udp.port=={port},sctp",
             "-o", "sctp.reassembly:FALSE", "-T", "fields", "-e", "sctp.chunk_type", "-e", "sctp.checksum.status"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    kinds, wrong = collections.Counter(), 0
    for line in done.stdout.splitlines():
        types, status = line.split("\t")
        kinds.update(int(kind) for kind in types.split(","))
        wrong += status != "1"
    case.check("tshark's wrong checksums", wrong, not wrong, done.stderr)
    case.check("tshark's chunks", dict(sorted(kinds.items())), kinds == expected and kinds[r.DATA] > 1000,
               f"expected {dict(sorted(expected.items()))}")


def decrypted(case, directory):
    """A transfer through a relay that captures it, rekeyed by the sender; and the second half of the capture, in
    which each packet comes twice."""
    words = ["--set", "rekey_packets=200"]
    with (Transfer(case.options, directory, SIZE, receive=words) as transfer,
          Relay(transfer.targets, rate=RATE, keep=True) as relay):
        transfer.start(relay.dest, *words)
        codes = transfer.wait()
        case.check("exit codes", codes, codes == (0, 0), transfer.send.said() + transfer.recv.said())
        time.sleep(0.05)
        captured = list(relay.kept)
    reading = Reading(r.KeyLog(transfer.key_log.read_text(encoding="ascii")), captured)
    check_keys(case, reading, TO_RECEIVER, 3)
    capture, out = directory / "capture.pcap", directory / "opened.pcapng"
    datagrams = [(direction, data) for direction, _, data in captured]
    # Not protected, and damaged.
    last = captured[-1][2]
    datagrams += [(TO_RECEIVER, bytes(40)), (TO_RECEIVER, last[:-8] + bytes([last[-8] ^ 1]) + last[-7:])]
    write_pcap(capture, datagrams)
    result = decrypt(case, transfer, capture, out)
    case.check("packets", result.get("packets"), result.get("packets") == len(datagrams))
    case.check("opened", result.get("opened"), result.get("opened") == reading.sealed > 1000)
    left = result.get("not_opened")
    case.check("not opened", left, left == {"not_authentic": 1})
    opened = Opened(out)
    sealed_kinds = collections.Counter({kind: count for kind, count in reading.kinds.items() if isinstance(kind, int)})
    case.check("chunks in the copy", sum(opened.kinds.values()), opened.kinds[r.DATA] >= sealed_kinds[r.DATA] > 1000)
    case.check("what was wrong in the copy", len(opened.wrong), not opened.wrong)
    case.check("the opened content is the file", opened.digest()[:16], opened.digest() == transfer.digest)
    check_with_tshark(case, out, opened.kinds)

    half = [one for one in datagrams[len(captured) // 2:len(captured)] for _ in range(2)]
    write_pcap(capture, half)
    result = decrypt(case, transfer, capture, out)
    case.check("opened of the second half, twice each", result.get("opened"),
               result.get("opened") == len(half) and not result.get("not_opened"))


def decrypted_batches(case, directory):
    """A transfer captured by the host itself, which sees the kernel's batches, and on loopback each packet twice."""
    with Transfer(case.options, directory, SIZE) as transfer:
        raw = directory / "capture.pcap"
        capture = Process([sys.executable, str(CAPTURE), str(raw)])
        time.sleep(0.5)
        if capture.code is not None:
            case.check("capture", "needs the right to capture: skipped", "PermissionError" in capture.said(), capture.said())
            return
        try:
            port = transfer.targets[0][1]
            transfer.start(",".join(f"{host}:{port}" for host, _ in transfer.targets))
            codes = transfer.wait()
            time.sleep(0.1)
        finally:
            capture.signal(signal.SIGTERM)
            capture.code_within(10)
    case.check("exit codes", codes, codes == (0, 0), transfer.send.said() + transfer.recv.said())
    lost = int(next((line.split()[1] for _, line in capture.stdout if line.startswith("lost")), "-1"))
    case.check("packets that the capture lost", lost, lost == 0, capture.said())
    out = directory / "opened.pcapng"
    result = decrypt(case, transfer, raw, out)
    for name in ("packets", "written", "opened", "not_protected", "not_opened", "batches"):
        case.note(name, result.get(name))
    left = sum(result.get("not_opened", {}).values())
    case.check("protected packets that were not opened", left, left == 0)
    opened = Opened(out)
    case.check("opened packets in the copy", opened.opened, opened.opened == result.get("opened", 0) > 1000)
    case.check("DTLS chunks in the copy", opened.sealed, opened.sealed == 0)
    case.check("what was wrong in the copy", len(opened.wrong), not opened.wrong)
    case.check("the opened content is the file", opened.digest()[:16], opened.digest() == transfer.digest)
    check_with_tshark(case, out, opened.kinds, port)


CASES = {
    "decrypted": decrypted,
    "decrypted-batches": decrypted_batches,
}
