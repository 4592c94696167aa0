"""The independent decoder reads what manypath writes, and the reverse."""

import hashlib
import re
import struct
import time
from pathlib import Path

import records as r
from cryptography.exceptions import InvalidTag
from failure import Failed
from relay import TO_RECEIVER, TO_SENDER, Relay
from transfer import Transfer

VECTORS = Path(__file__).resolve().parents[2] / "crates/dtls/tests/records.rs"
FIRST_EPOCH = 3
# Packets of a handshake, which has no keys yet.
PLAIN = {r.INIT, r.INIT_ACK, r.COOKIE_ECHO, r.COOKIE_ACK}
RATE = 40e6
# RFC 9260, section 3.3.5.
HEARTBEAT_INFO = 1
PAD = 0x84  # RFC 4820
PARAMETER_METHODS = 9  # where the methods of a DTLS Key Management parameter begin
CLIENT, SERVER = 1, 2  # bits of its flags


def vectors(case, _):
    """The records in manypath's own tests, in both directions, with all suites."""
    case.check("CRC32c of RFC 9260's check value", f"{r.crc32c(b'123456789'):08x}", r.crc32c(b"123456789") == 0xE306_9283)
    texts = re.findall(r'^ *"([0-9a-f]{40,})",$', VECTORS.read_text(encoding="utf-8"), re.M)
    case.check("records in crates/dtls/tests/records.rs", len(texts), len(texts) == 6)
    cookie_ack = r.chunk(r.COOKIE_ACK, 0, b"")
    for suite, first, later in zip((0x1301, 0x1302, 0x1303), texts[::2], texts[1::2]):
        for epoch, number, text in ((3, 0, first), (4, 70_000, later)):
            sealed = keys(suite, epoch).seal(cookie_ack, number).hex()
            case.check(f"suite {suite:04x}, number {number}, sealed", sealed, sealed == text)
            reader = keys(suite, epoch)
            reader.next = max(0, number - 30_000)
            opened = reader.open(bytes.fromhex(text))
            case.check(f"suite {suite:04x}, number {number}, opened", opened[0], opened == (number, cookie_ack))
        padded = keys(suite, 3).seal(cookie_ack, 7, padding=50)
        case.check(f"suite {suite:04x}, with padding", len(padded), keys(suite, 3).open(padded) == (7, cookie_ack))
        refused = sum(is_refused(keys(suite, 3), padded, bit) for bit in range(8 * len(padded)))
        case.check(f"suite {suite:04x}, flipped bits that are noticed", refused, refused == 8 * len(padded))


def keys(suite, epoch):
    """The keys of those records."""
    length = r.Suite(suite).key_length
    return r.Keys(suite, epoch, bytes(range(length)), bytes(range(100, 100 + length)), bytes(range(200, 212)))


def is_refused(reader, record, bit):
    """Whether a record is not opened with one bit flipped."""
    changed = bytearray(record)
    changed[bit // 8] ^= 1 << bit % 8
    try:
        reader.open(bytes(changed))
    except (InvalidTag, r.Malformed):
        return True
    return False


def is_of_handshake(chunks):
    """Whether a packet may be plain although its sender has keys: the client's last TLS message goes to a server
    that has none yet."""
    return all(kind in PLAIN or kind == r.SACK or kind == r.DATA and ppid_of(value) == r.PPID_KEYS
               for kind, _, value in chunks)


def ppid_of(data):
    """The payload protocol identifier of a DATA chunk."""
    return struct.unpack_from("!I", data, 8)[0]


class Reading:
    """What was found in a capture of both directions."""

    def __init__(self, log, captured):
        self.log, self.opener = log, r.Opener(log)
        self.sealed = self.plain = self.too_early = 0
        self.content, self.hellos, self.parameters = {}, {}, {}
        self.wrong, self.sealed_by, self.kinds, self.handed = [], {}, {}, set()
        self.repeated = []
        for direction, path, data in captured:
            self._packet(direction, path, data)
        # An end repeats its last words, and nothing else, if the other one has missed them.
        self.wrong += [str(packet) for packet in self.repeated if not self.opener.is_last(packet)]

    def _packet(self, direction, path, data):
        try:
            chunks, keys_used = self.opener.open(data)
        except r.Repeated as packet:
            self.repeated.append(packet)
            return
        except r.Malformed as why:
            self.wrong.append(str(why))
            return
        if keys_used:
            self.sealed += 1
            self.sealed_by[direction, path] = self.sealed_by.get((direction, path), 0) + 1
        else:
            self.plain += 1
            if any(kind == r.DATA and value[:4] not in self.handed for kind, _, value in chunks):
                self.too_early += self.sealed_by.get((direction, path), 0)
            if (direction, path) in self.sealed_by and not is_of_handshake(chunks):
                self.wrong.append(f"direction {direction}, path {path}: a plain packet after a sealed one")
        for kind, _, value in chunks:
            name = kind if keys_used else f"plain {kind}"
            self.kinds[name] = self.kinds.get(name, 0) + 1
            if kind == r.DATA:
                self._data(direction, value, keys_used)
            elif kind in (r.INIT, r.INIT_ACK):
                # By the tag of the packets that go the other way.
                self.parameters[struct.unpack_from("!I", value)[0]] = r.parameters_of(value).get(r.KEY_MANAGEMENT)

    def _data(self, direction, value, keys_used):
        tsn, _, _, ppid = struct.unpack_from("!IHHI", value)
        self.handed.add(value[:4])
        if ppid == r.PPID_KEYS:
            hello = r.client_hello(value[12:])
            if hello:
                self.hellos[hello[0]] = (direction, hello[1])
            return
        if not keys_used:
            self.wrong.append(f"plain DATA with PPID {ppid:#x}")
        if ppid == r.PPID_CONTENT and direction == TO_RECEIVER:
            if self.content.setdefault(tsn, value[12:]) != value[12:]:
                self.wrong.append(f"TSN {tsn} twice, and different")

    def digest(self):
        """Of the content in the order of its TSNs. They may begin near 2^32."""
        first = next(iter(self.content), 0)
        digest = hashlib.sha256()
        for tsn in sorted(self.content, key=lambda tsn: (tsn - first + 2**31) % 2**32):
            digest.update(self.content[tsn])
        return digest.hexdigest()

    def epochs(self):
        """By direction, the epochs in which records were opened."""
        return {self.log.roles[tag]: sorted(epoch for other, epoch in self.opener.opened if other == tag)
                for tag in {tag for tag, _ in self.opener.opened}}


def read_transfer(case, directory, size, send=(), receive=()):
    """Captures a transfer and opens all of it."""
    with (Transfer(case.options, directory, size, receive=receive) as transfer,
          Relay(transfer.targets, rate=RATE, keep=True) as relay):
        transfer.start(relay.dest, *send)
        codes = transfer.wait()
        case.check("exit codes", codes, codes == (0, 0), transfer.send.said() + transfer.recv.said())
        case.check("the file arrived", transfer.arrived(), transfer.arrived())
        time.sleep(0.05)
        captured = list(relay.kept)
        log = r.KeyLog(transfer.key_log.read_text(encoding="ascii"))
    begin = time.monotonic()
    reading = Reading(log, captured)
    case.note("decoded in", f"{time.monotonic() - begin:.1f} s")
    case.check("packets", f"{reading.sealed} sealed, {reading.plain} plain", reading.sealed > 20 * reading.plain)
    case.check("what was wrong", len(reading.wrong), not reading.wrong, "\n".join(reading.wrong[:10]))
    case.check("the sealed content is the file", reading.digest()[:16], reading.digest() == transfer.digest)
    # The other end could not open them: it has no keys before that message.
    case.check("packets sealed before the last TLS message in plain, on its path", reading.too_early, not reading.too_early)
    case.note("chunks", ", ".join(f"{kind}: {n}" for kind, n in sorted(reading.kinds.items(), key=str)))
    return reading


def opened(case, directory):
    """Every packet of a transfer that the sender rekeys often; and its keys."""
    words = ["--set", "rekey_packets=1000"]
    check_keys(case, read_transfer(case, directory, 20_000_000, words, words), TO_RECEIVER, 8)


def opened_server_rekeys(case, directory):
    """The same, rekeyed by the receiver, which is the server of the key management."""
    words = ["--set", "rekey_packets=100"]
    check_keys(case, read_transfer(case, directory, 20_000_000, receive=words), TO_SENDER, 8)


def check_keys(case, reading, begun_by, least):
    """The keys of all epochs follow from the TLS exporter (RFC 8446, section 7.5) and from the two parameters of
    the handshake as they were on the wire."""
    epochs = reading.epochs()
    for role in ("client", "server"):
        used = epochs.get(role, [])
        consecutive = used == list(range(FIRST_EPOCH, FIRST_EPOCH + len(used)))
        case.check(f"epochs of the {role}'s records", f"{min(used, default=None)} to {max(used, default=None)}", consecutive and len(used) >= least)
    offers = {role: reading.parameters.get(tag) for tag, role in tags_of(reading.log)}
    case.check("parameters", ", ".join(f"{role}: {offer and offer.hex()}" for role, offer in offers.items()),
               all(offers.values()) and roles_fit(offers["client"], offers["server"]))
    begun = [direction for epoch, (direction, _) in reading.hellos.items() if epoch > FIRST_EPOCH]
    case.check("rekeyings begun by that end", f"{begun.count(begun_by)} of {len(begun)}", begun_by in begun)
    # The direction of the packets that carry a tag.
    tags = {tag: TO_RECEIVER if role == "client" else TO_SENDER for tag, role in reading.log.roles.items()}
    derived = 0
    for tag, role in reading.log.roles.items():
        for epoch, held in reading.log.epochs[tag].items():
            begun_by_end, random = reading.hellos.get(epoch % 128, (None, None))
            secret = reading.log.exporters.get(random)
            # Whoever began that handshake is the TLS client, and its keys are those of the client.
            seals = tags[tag]
            tls_role = "client" if seals == begun_by_end else "server"
            material = secret and r.exported(held.suite.number, secret, tls_role, (offers["client"], offers["server"]))
            if material == held.material:
                derived += 1
            else:
                case.check(f"keys of the {role}, epoch {epoch}", "are not those of the exporter", False)
    case.check("key sets that follow from the exporter", derived, derived >= 2 * least)


def tags_of(log):
    """Pairs of the tag that stands in an INIT or INIT ACK, and the role of the end that sent it: packets to
    it carry that tag, and are sealed by the other role."""
    other = {"client": "server", "server": "client"}
    return [(tag, other[role]) for tag, role in log.roles.items()]


def roles_fit(client, server):
    """Whether the two parameters lead to these roles (draft-ietf-tsvwg-sctp-dtls-chunk, section 5.1), and have a
    method in common."""
    (tie_c, flags_c), (tie_s, flags_s) = (struct.unpack_from("!IB", offer, 4) for offer in (client, server))
    if not (flags_c & CLIENT and flags_s & SERVER):
        return False
    both = CLIENT | SERVER
    if flags_c & both == both == flags_s & both and tie_s <= tie_c:
        return False
    return bool(set(client[PARAMETER_METHODS:]) & set(server[PARAMETER_METHODS:]))


class Speaker:
    """Seals packets in place of an end, with the keys of the log."""

    def __init__(self, keys_held, ports, tag):
        self.keys, self.ports, self.tag = keys_held, ports, tag
        self.asked = {}

    def heartbeat(self, name, expected):
        """A HEARTBEAT chunk with information of its own, of which `expected` answers must come."""
        info = f"{name:<40}".encode()
        self.asked[name] = (info, expected)
        return r.chunk(r.HEARTBEAT, 0, struct.pack("!HH", HEARTBEAT_INFO, 4 + len(info)) + info)

    def packet(self, record, *others, flags=0):
        """A packet with this record."""
        return r.packet(*self.ports, self.tag, r.dtls_chunk(record, flags), *others)

    def packets(self, wrong_keys):
        """Packets that the other end must answer, and ones that it must not. `wrong_keys`: those of the other
        direction."""
        k = self.keys
        sealed = self.packet(k.seal(self.heartbeat("sealed", 1)))
        yield sealed
        yield self.packet(k.seal(self.heartbeat("with padding", 1), padding=100))
        yield self.packet(k.seal(self.heartbeat("with a PAD chunk", 1) + r.chunk(PAD, 0, bytes(200))))
        yield self.packet(k.seal(self.heartbeat("after a gap", 1), k.next + 3000))
        yield sealed  # again: still one answer
        yield r.packet(*self.ports, self.tag, self.heartbeat("not sealed", 0))
        wrong = bytearray(k.seal(self.heartbeat("wrong AEAD tag", 0)))
        wrong[-1] ^= 1
        yield self.packet(bytes(wrong))
        yield self.packet(k.seal(self.heartbeat("with R", 0)), flags=1)
        yield self.packet(k.seal(self.heartbeat("in a bundle", 0)), r.chunk(PAD, 0, bytes(4)))
        yield self.packet(wrong_keys.seal(self.heartbeat("other keys", 0), k.next))
        other = r.Keys(k.suite.number, k.epoch + 1, *k.material)
        yield self.packet(other.seal(self.heartbeat("other epoch", 0), k.next + 1))
        yield r.packet(*self.ports, self.tag ^ 1, r.dtls_chunk(k.seal(self.heartbeat("other tag", 0))))
        yield self.packet(k.seal(self.heartbeat("at the end", 1)))


def answers(case, directory):
    """Both ends answer what Python sealed, in the middle of a transfer, and nothing that is not right. Answers
    that are not sealed do not count."""
    # Else some answers come on another path, too.
    words = ["--set", "one_way_paths=false"]
    with Transfer(case.options, directory, 40_000_000, receive=words) as transfer:
        with Relay(transfer.targets, rate=RATE, keep=True) as relay:
            transfer.start(relay.dest, *words)
            wait_for(lambda: len(relay.kept) > 4000 or transfer.send.code is not None, 20)
            speakers = speak(relay, transfer.key_log.read_text(encoding="ascii"))
            codes = transfer.wait()
            captured = list(relay.kept)
        case.check("exit codes", codes, codes == (0, 0), transfer.send.said() + transfer.recv.said())
        case.check("the file arrived", transfer.arrived(), transfer.arrived())
        log = r.KeyLog(transfer.key_log.read_text(encoding="ascii"))
    got = {TO_RECEIVER: b"", TO_SENDER: b""}
    opener = r.Opener(log)
    for direction, _, data in captured:
        chunks, keys_used = opener.open(data)
        for kind, _, value in chunks:
            if kind == r.HEARTBEAT_ACK and keys_used:
                got[direction] += value
    for direction, who in ((TO_RECEIVER, "receiver"), (TO_SENDER, "sender")):
        for name, (info, expected) in speakers[direction].asked.items():
            # The answer goes the other way.
            count = got[1 - direction].count(info)
            case.check(f"answers of the {who}, {name}", count, count == expected)


def speak(relay, log):
    """Sends both ends the packets of a speaker, each on the path of the last datagram; the speakers by direction."""
    captured = list(relay.kept)
    opener = r.Opener(r.KeyLog(log))
    for _, _, data in captured:
        opener.open(data)
    speakers, held = {}, {}
    for direction in (TO_RECEIVER, TO_SENDER):
        _, path, last = next(one for one in reversed(captured) if one[0] == direction)
        *ports, tag = struct.unpack_from("!HHI", last)
        held[direction] = opener.log.epochs[tag][FIRST_EPOCH]
        # What the end seals until then has lower numbers. Later it uses ours, too, which costs it these packets.
        held[direction].next += 5000
        flow = next(flow for (at, _), flow in relay.flows.items() if at == path)
        speakers[direction] = flow, Speaker(held[direction], ports, tag)
    for direction, (flow, speaker) in speakers.items():
        for packet in speaker.packets(held[1 - direction]):
            relay.do(lambda flow=flow, direction=direction, packet=packet: relay.inject(flow, direction, packet))
    return {direction: speaker for direction, (_, speaker) in speakers.items()}


def wait_for(done, timeout):
    """Waits until `done()`."""
    until = time.monotonic() + timeout
    while not done():
        if time.monotonic() > until:
            raise Failed("the transfer does not begin")
        time.sleep(0.01)


CASES = {
    "vectors": vectors,
    "opened": opened,
    "opened-server-rekeys": opened_server_rekeys,
    "answers": answers,
}
