"""Endpoints and associations over real networks, with asyncio.

    >>> from manypath import net
    >>> server = net.Endpoint(net.Security.keys(), bind=["127.0.0.1", "127.0.0.2"], accept=True)
    >>> known = net.Security.keys(peers=[server.security.fingerprint])
    >>> client = net.Endpoint(known, bind=["127.0.0.1", "127.0.0.2"])
    >>> association = await client.connect(*server.addresses)
    >>> await association.send(b"hello", stream=3)

An association carries messages on numbered streams, over all of its paths together: see
docs/python.md. Every call belongs to the running event loop; the transport works in threads of its
own, without the interpreter's lock.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from . import trace
from ._manypath import Association as _Association
from ._manypath import Endpoint as _Endpoint
from ._manypath import Security
from ._next import Next
from ._settings import written

__all__ = ["PORT", "Address", "Association", "Endpoint", "Message", "Security"]

Address = tuple[str, int]
"""A host name or an IP address, and a UDP port."""

PORT = 9899
"""The UDP port of SCTP (RFC 6951)."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message that arrived."""

    data: bytes
    """Its bytes."""

    stream: int
    """The stream it came on."""

    ppid: int
    """Payload protocol identifier: a number that the sender chose."""

    unordered: bool
    """It was sent without regard to the order of its stream."""

    is_end: bool
    """False for a part of a long message that more parts of the same stream follow."""

    is_cut_off: bool = False
    """The sender gave it up after parts of it had arrived: this part is empty, and the last."""


class Association:
    """An association with a peer, from :meth:`Endpoint.connect` or :meth:`Endpoint.accept`.

    ``async with`` shuts it down at the end, or aborts it if an exception leaves the block.
    """

    def __init__(self, native: _Association) -> None:
        """Use :meth:`Endpoint.connect` and :meth:`Endpoint.accept`."""
        self._native = native
        self._messages = Next(lambda: self._native.recv())

    async def send(
        self,
        data: bytes,
        *,
        stream: int = 0,
        ppid: int = 0,
        unordered: bool = False,
        lifetime: float | None = None,
        max_retransmissions: int | None = None,
        priority: int | None = None,
    ) -> None:
        """Sends a message: at least one byte. Waits while the send buffer is full.

        A message with a lifetime is given up that many seconds after this call, and one with
        max_retransmissions when it would be sent again more often. One with a priority may be given
        up, as long as nothing of it was sent, for a message with a lower number. The peer skips what
        was given up; one that cannot gets all of which something was sent.

        Raises AssociationError if the association is over or the message can never be sent.
        """
        limits = (lifetime, max_retransmissions, priority)
        await self._native.send(data, stream, ppid, unordered, limits)

    async def recv(self) -> Message | None:
        """The next message; None once the peer has shut down and all is received.

        A call that is cancelled loses no message. Raises AssociationError if the association broke.
        """
        found = await self._messages.get()
        return None if found is None else Message(*found)

    async def __aiter__(self) -> AsyncIterator[Message]:
        """The messages until the peer shuts down."""
        while (message := await self.recv()) is not None:
            yield message

    async def acknowledged(self) -> None:
        """Waits until the peer has everything that was sent."""
        await self._native.acknowledged()

    async def shutdown(self) -> None:
        """Delivers what was sent, then ends the association. No more can be sent."""
        await self._native.shutdown()

    def abort(self, reason: str = "") -> None:
        """Ends it at once; the peer is told why."""
        self._native.abort(reason)

    async def closed(self) -> str:
        """Waits for its end. Why it ended, in words."""
        return await self._native.closed()

    def paths(self) -> dict[int, dict[str, Any]]:
        """The paths by number, from 1: interface, addresses, state, counters and variables.

        Names end with their unit: ``srtt_s``, ``cwnd_bytes``. docs/cli.md lists them.
        """
        return {number: json.loads(text) for number, text in self._native.paths()}

    def stats(self) -> dict[str, int]:
        """Messages and user bytes: taken to be sent, acknowledged, delivered here.

        What is acknowledged includes the key exchange.
        """
        names = "messages_sent", "bytes_queued", "bytes_acked", "messages_received"
        return dict(zip((*names, "bytes_received"), self._native.counters(), strict=True))

    async def events(self) -> AsyncIterator[trace.Event]:
        """What happens to it from now on, until its end: the events of traces.

        ``time_s`` counts from this call; ``host`` is ``here``. A reader that is more than 256
        events behind misses the oldest.
        """
        events = self._native.events()
        while (text := await events.next()) is not None:
            for event in trace.read_lines([text]):
                yield event

    @property
    def peer(self) -> Address | None:
        """Where the peer is, on the primary path."""
        return self._native.peer

    @property
    def is_protected(self) -> bool:
        """Every packet is encrypted and authenticated."""
        return self._native.is_protected

    @property
    def peer_key(self) -> str | None:
        """The fingerprint of the peer's public key, if it has shown one."""
        return self._native.peer_key

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if error is None:
            await self.shutdown()
        else:
            self.abort(type(error).__name__)


class Endpoint:
    """Sockets, and all associations that go through them. ``async with`` closes it at the end."""

    def __init__(
        self,
        security: Security,
        *,
        bind: Iterable[str] = (),
        port: int = 0,
        accept: bool = False,
        profile: str | None = None,
        preset: str | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """Opens the sockets.

        Args:
            security: How associations are protected. Both ends need the same kind.
            bind: Addresses and interfaces ("eth0"), a path each as far as the peer's allow; by
                default paths from every interface with a route to the peer.
            port: UDP port; 0 takes a free one. Servers usually have :data:`PORT`.
            accept: Peers may open associations: take them with :meth:`accept`.
            profile, preset, settings: Transport parameters, as of ``manypath config show``; by
                default those of the command.

        Raises:
            ValueError: A parameter is wrong.
            AssociationError: A socket cannot be opened.
        """
        self.security = security
        """How associations are protected."""

        own = written(settings)
        self._native = _Endpoint(security, list(bind), port, accept, profile, preset, own)

    @property
    def addresses(self) -> list[Address]:
        """Where peers reach it: addresses and the UDP port."""
        return self._native.addresses

    @property
    def port(self) -> int:
        """Its UDP port."""
        return self._native.port

    async def connect(self, *remotes: Address | str) -> Association:
        """Opens an association with the peer at these addresses; the first is tried first.

        A text is a host with :data:`PORT`. Raises AssociationError if that fails, OSError if a name
        has no address.
        """
        found: list[str] = []
        for remote in remotes:
            host, port = (remote, PORT) if isinstance(remote, str) else remote
            loop = asyncio.get_running_loop()
            for *_, place in await loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM):
                found.append(_written(place, port))
        return Association(await self._native.connect(list(dict.fromkeys(found))))

    async def accept(self) -> Association | None:
        """The next association that a peer opened; None once the endpoint is closed."""
        native = await self._native.accept()
        return None if native is None else Association(native)

    async def close(self) -> None:
        """Ends all associations, delivering what was sent, and closes the sockets."""
        await self._native.close()

    def abort(self, reason: str = "") -> None:
        """Aborts all associations; peers are told why."""
        self._native.abort(reason)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if error is not None:
            self.abort(type(error).__name__)
        await self.close()


def _written(place: tuple[Any, ...], port: int) -> str:
    """The address that getaddrinfo found, with the number of its interface if it has one."""
    ip = ipaddress.ip_address(place[0].partition("%")[0])
    interface = f"%{place[3]}" if len(place) == 4 and place[3] else ""
    return f"[{ip}{interface}]:{port}" if ip.version == 6 else f"{ip}:{port}"
