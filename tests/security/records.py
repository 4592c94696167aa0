"""SCTP packets, and the DTLS chunks in them, opened and sealed with the keys of a key log.

Written from RFC 9260, RFC 9147, RFC 8446, draft-ietf-tsvwg-sctp-dtls-chunk and
draft-porfiri-tsvwg-sctp-dtls-handshake, and from nothing of manypath's but the line format of its
key log (crates/keys/src/key_log.rs). Ciphers are those of the package `cryptography`.
"""

import struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

DATA, INIT, INIT_ACK, SACK, HEARTBEAT, HEARTBEAT_ACK, ABORT, SHUTDOWN, SHUTDOWN_ACK = range(9)
ERROR, COOKIE_ECHO, COOKIE_ACK = 9, 10, 11
SHUTDOWN_COMPLETE, DTLS = 14, 0x41
STATE_COOKIE, KEY_MANAGEMENT = 7, 0x8006
HEADER = 12  # of a packet
# DATA of the key management, and the content of files (docs/protocol-transfer.md).
PPID_KEYS, PPID_CONTENT = 4242, 0x6D70_0002
EXPORTER_LABEL = b"EXPORTER_TLS_FOR_DTLS_IN_SCTP"
APPLICATION_DATA = 23
TAG = 16


class Malformed(Exception):
    """Bytes that are not what they should be."""


class Repeated(Malformed):
    """A packet that was opened before."""

    def __init__(self, tag, keys, number):
        super().__init__(f"epoch {keys.epoch}, number {number}: the same record once more")
        self.tag, self.keys, self.number = tag, keys, number


def _crc32c_tables():
    """The table of a byte (RFC 9260, appendix A), and from it that of two."""
    one = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F6_3B78 if byte & 1 else 0)
        one.append(byte)
    return one, [one[pair & 0xFF] >> 8 ^ one[(one[pair & 0xFF] ^ pair >> 8) & 0xFF] for pair in range(1 << 16)]


_ONE, _TWO = _crc32c_tables()


def crc32c(data):
    """CRC32c, two bytes at a time."""
    crc, table = 0xFFFF_FFFF, _TWO
    for pair in struct.unpack_from(f"<{len(data) // 2}H", data):
        crc = crc >> 16 ^ table[(crc ^ pair) & 0xFFFF]
    if len(data) % 2:
        crc = crc >> 8 ^ _ONE[(crc ^ data[-1]) & 0xFF]
    return crc ^ 0xFFFF_FFFF


def with_checksum(data):
    """The packet with the checksum that it should have."""
    return data[:8] + struct.pack("<I", crc32c(data[:8] + bytes(4) + data[HEADER:])) + data[HEADER:]


def has_checksum(data):
    """Whether a packet's checksum is right."""
    return len(data) >= HEADER and with_checksum(data) == data


def chunk(kind, flags, value):
    """A chunk, with its padding."""
    return struct.pack("!BBH", kind, flags, 4 + len(value)) + value + bytes(-len(value) % 4)


def packet(source, destination, tag, *chunks):
    """A packet of whole chunks."""
    return with_checksum(struct.pack("!HHII", source, destination, tag, 0) + b"".join(chunks))


def tlvs(data, head):
    """Splits chunks or parameters: the first bytes of each, by the format `head`, and its value.
    They must fill the data."""
    at = 0
    while at < len(data):
        if len(data) - at < 4:
            raise Malformed(f"{len(data) - at} bytes are left over")
        *first, length = struct.unpack_from(head, data, at)
        if length < 4 or at + length > len(data):
            raise Malformed(f"length {length} where {len(data) - at} bytes are left")
        yield (*first, data[at + 4:at + length])
        # The padding of the last parameter of a chunk need not be there (RFC 9260, section 3.2.1).
        at += length + -length % 4


def chunks_of(data):
    """The chunks of a packet, or of a record: type, flags and value of each."""
    return tlvs(data, "!BBH")


def parameters_of(init):
    """The parameters of an INIT or INIT ACK, by their type: the bytes of each as on the wire, without
    padding."""
    return {kind: struct.pack("!HH", kind, 4 + len(value)) + value for kind, value in tlvs(init[16:], "!HH")}


class Suite:
    """A cipher suite of TLS 1.3: its AEAD, and its mask of sequence numbers."""

    def __init__(self, number):
        self.number = number
        self.key_length, self.aead, self.hash = {
            0x1301: (16, AESGCM, hashes.SHA256()),
            0x1302: (32, AESGCM, hashes.SHA384()),
            0x1303: (32, ChaCha20Poly1305, hashes.SHA256()),
        }[number]

    def mask(self, key):
        """A function from 16 bytes of ciphertext to a mask (RFC 9147, section 4.2.3)."""
        if self.number == 0x1303:
            # The package takes counter and nonce as one value.
            return lambda sample: Cipher(algorithms.ChaCha20(key, sample), None).encryptor().update(bytes(2))
        block = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
        return block.update


class Keys:
    """The keys with which one end seals in one epoch, for either direction."""

    def __init__(self, suite, epoch, key, sn_key, iv):
        self.suite, self.epoch = Suite(suite), epoch
        if (len(key), len(sn_key), len(iv)) != (self.suite.key_length, self.suite.key_length, 12):
            raise Malformed("keys of a wrong length")
        self.material = (key, sn_key, iv)
        self.cipher, self.mask = self.suite.aead(key), self.suite.mask(sn_key)
        self.iv = int.from_bytes(iv, "big")
        # One more than the highest number that was opened or sealed, and the records by number.
        self.next, self.seen = 0, {}

    def _nonce(self, number):
        """RFC 8446, section 5.3."""
        return (self.iv ^ number).to_bytes(12, "big")

    def seal(self, chunks, number=None, padding=0):
        """A record of these chunks (RFC 9147, section 4) with zeros behind its content type."""
        if number is None:
            number = self.next
        self.next = max(self.next, number + 1)
        head = struct.pack("!BH", 0b0010_1000 | self.epoch % 4, number % 2**16)
        inner = chunks + bytes([APPLICATION_DATA]) + bytes(padding)
        sealed = self.cipher.encrypt(self._nonce(number), inner, head)
        mask = self.mask(sealed[:16])
        return head[:1] + bytes((head[1] ^ mask[0], head[2] ^ mask[1])) + sealed

    def open(self, record):
        """The sequence number and the chunks of a record. Raises InvalidTag if the keys are others'."""
        if len(record) < 3 + 1 + TAG or record[0] != 0b0010_1000 | self.epoch % 4:
            raise Malformed(f"not the header of a record of epoch {self.epoch}: {record[:3].hex()}")
        sealed = record[3:]
        mask = self.mask(sealed[:16])
        low = bytes((record[1] ^ mask[0], record[2] ^ mask[1]))
        number = self._whole(int.from_bytes(low, "big"))
        inner = self.cipher.decrypt(self._nonce(number), sealed, record[:1] + low)
        content = inner.rstrip(b"\0")
        if not content or content[-1] != APPLICATION_DATA:
            raise Malformed("the content type is not application_data")
        self.next = max(self.next, number + 1)
        return number, content[:-1]

    def _whole(self, low):
        """The number with these 16 bits that is the closest to the next one (RFC 9147, section 4.2.2)."""
        about = (self.next & ~0xFFFF) + low
        return min((n for n in (about - 2**16, about, about + 2**16) if n >= 0), key=lambda n: abs(n - self.next))


class KeyLog:
    """A key log: the keys of chunks and the exporter secrets of TLS."""

    def __init__(self, text):
        self.epochs, self.exporters, self.roles = {}, {}, {}
        for words in map(str.split, text.splitlines()):
            if words[0] == "EXPORTER_SECRET":
                self.exporters[bytes.fromhex(words[1])] = bytes.fromhex(words[2])
            elif words[0] == "SCTP_DTLS_KEY":
                client, server = int(words[1], 16), int(words[2], 16)
                # Packets carry the tag that their receiver expects.
                tag = server if words[3] == "client" else client
                material = [bytes.fromhex(word) for word in words[6:9]]
                keys = Keys(int(words[5], 16), int(words[4]), *material)
                known = self.epochs.setdefault(tag, {}).setdefault(keys.epoch, keys)
                if known.material != keys.material:
                    raise Malformed(f"the ends have different keys of epoch {keys.epoch}")
                self.roles[tag] = words[3]


class Opener:
    """Opens protected packets of all directions, in the order of their arrival."""

    def __init__(self, log):
        self.log = log
        self.opened = {}

    def open(self, data):
        """The chunks of a packet, whether they were protected, and the keys if so."""
        if not has_checksum(data):
            raise Malformed("a wrong checksum")
        plain = data[HEADER:]
        if plain[:1] != bytes([DTLS]):
            return list(chunks_of(plain)), None
        (_, flags, value), *others = chunks_of(plain)
        if others:
            raise Malformed("a DTLS chunk is not alone in its packet")
        if flags or value[0]:
            raise Malformed(f"flags {flags:#x}, pre-padding {value[0]:#x}")
        tag = struct.unpack_from("!I", data, 4)[0]
        record = value[1:]
        keys, number, chunks = self._record(tag, record)
        earlier = keys.seen.setdefault(number, record)
        if earlier is not record:
            if earlier != record:
                raise Malformed(f"epoch {keys.epoch}, number {number}: another record, so a nonce was used twice")
            raise Repeated(tag, keys, number)
        self.opened[tag, keys.epoch] = self.opened.get((tag, keys.epoch), 0) + 1
        return list(chunks_of(chunks)), keys

    def is_last(self, repeated):
        """Whether nothing was opened that was sealed after a packet that came once more."""
        newest = max(epoch for tag, epoch in self.opened if tag == repeated.tag)
        return (repeated.keys.epoch, repeated.number) == (newest, repeated.keys.next - 1)

    def _record(self, tag, record):
        """Tries the epochs that have the record's two bits, the newest that was used first."""
        epochs = self.log.epochs.get(tag, {})
        fits = [keys for epoch, keys in epochs.items() if epoch % 4 == record[0] & 3]
        newest = max((epoch for epoch, keys in epochs.items() if keys.next), default=min(epochs, default=3))
        for keys in sorted(fits, key=lambda keys: abs(keys.epoch - newest)):
            try:
                return keys, *keys.open(record)
            except InvalidTag:
                continue
        raise Malformed(f"no key opens it: tag {tag:08x}, {record[:3].hex()}, {len(record)} bytes")


def dtls_chunk(record, flags=0):
    """A DTLS chunk with its byte of pre-padding."""
    return chunk(DTLS, flags, b"\0" + record)


def expand_label(hash_, secret, label, context, length):
    """HKDF-Expand-Label (RFC 8446, section 7.1)."""
    label = b"tls13 " + label
    info = struct.pack("!HB", length, len(label)) + label + bytes([len(context)]) + context
    return HKDFExpand(algorithm=hash_, length=length, info=info).derive(secret)


def exporter(suite, secret, context, length):
    """TLS-Exporter (RFC 8446, section 7.5) with the label of DTLS in SCTP."""
    def digest(data):
        state = hashes.Hash(suite.hash)
        state.update(data)
        return state.finalize()
    secret = expand_label(suite.hash, secret, EXPORTER_LABEL, digest(b""), suite.hash.digest_size)
    return expand_label(suite.hash, secret, b"exporter", digest(context), length)


def exported(suite, secret, role, parameters):
    """Key, sequence number key and IV for what an end of this role seals. `parameters`: the DTLS Key
    Management parameters of client and server."""
    suite = Suite(suite)
    lengths = (suite.key_length, suite.key_length, 12)
    direction = {"client": 0, "server": 1}[role]
    return tuple(exporter(suite, secret, bytes([direction, 0, kind]) + b"".join(parameters), length)
                 for kind, length in enumerate(lengths))


def client_hello(message):
    """Epoch and client random, if a key management message begins with a ClientHello."""
    if len(message) < 43 or message[0] & 0x80 or message[1] != 22 or message[6] != 1:
        return None
    return message[0] & 0x7F, message[12:44]
