"""Files and directories, sent and received with asyncio.

    >>> async with manypath.receive_files("inbox") as receiver:
    ...     print(receiver.ticket)
    ...     async for transfer in receiver:
    ...         print(await transfer)

    >>> print(await manypath.send_file(ticket, "photos"))

The ends are those of ``manypath send`` and ``manypath recv``: a program sends to the command, and
the command to a program. Transfers are encrypted and use all paths. A file that is there already is
not replaced. Every file is verified and on the disk before its sender hears that it is stored, and
a transfer that was broken off goes on when it is begun again.

A :class:`Transfer` runs in threads of its own: await it for its result, and iterate over it for its
events, both or one of them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Generator, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from types import TracebackType
from typing import Any, Self

from . import net
from ._manypath import Inbox as _Inbox
from ._manypath import Transfer as _Transfer
from ._manypath import send_to as _send_to
from ._next import Next
from ._settings import written

__all__ = [
    "Begun",
    "Entry",
    "Event",
    "Notice",
    "Progress",
    "Receiver",
    "Result",
    "Resumed",
    "Transfer",
    "receive_files",
    "send_file",
]

StrPath = str | PathLike[str]


@dataclass(frozen=True, slots=True)
class Begun:
    """Both ends are ready."""

    entries: int
    """Files and directories to come; at the receiver without those hidden in directories."""

    bytes: int | None
    """Their bytes; None if the size of one is not known."""

    omitted: int
    """Hidden files that the sender leaves out, as the receiver takes none."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Bytes that are at the receiver now."""

    done: int
    """With those that were there before."""

    total: int | None
    """Bytes in all, if that is known."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """A file is gone on with, as the receiver has its beginning."""

    name: str
    """Its name at the receiver."""

    offset: int
    """Bytes that are not sent."""

    bytes: int
    """Bytes of the whole file."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or directory is over."""

    name: str
    """Its name at the receiver."""

    is_directory: bool
    """It is a directory."""

    bytes: int | None
    """Its size; None if the receiver does not know it."""

    status: str
    """``stored``, or the reason why not: the words are those of ``manypath send --json``."""

    error: str | None
    """The reason in words, if it was not stored."""

    sha256: str | None = None
    """The SHA-256 of its content, if it was stored."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that the user of a receiver should know."""

    text: str
    """In words."""


Event = Begun | Progress | Resumed | Entry | Notice
"""An event of a transfer."""

_EVENTS: dict[str, type[Begun | Progress | Resumed | Entry | Notice]] = {
    "begun": Begun,
    "progress": Progress,
    "resumed": Resumed,
    "entry": Entry,
    "notice": Notice,
}


@dataclass(frozen=True, slots=True)
class Result:
    """A transfer that went to its end, with everything stored."""

    bytes: int
    """Bytes of content that were sent."""

    resumed: int
    """Bytes that were not sent, as the receiver had them."""

    entries: int
    """Files and directories that were stored."""

    omitted: int
    """Hidden files that the sender left out, as the receiver takes none."""

    seconds: float
    """From the first content to the last."""


class Transfer:
    """A transfer under way, from :func:`send_file` or a :class:`Receiver`.

    ``await`` waits for its :class:`Result`; a wait that is cancelled stops it. ``async for`` gives
    its events until its end; a loop that is more than 1024 events behind misses the oldest. It
    stops, too, when nothing refers to it any more.
    """

    def __init__(self, native: _Transfer) -> None:
        """Use :func:`send_file` and :class:`Receiver`."""
        self._native = native

    def __await__(self) -> Generator[Any, None, Result]:
        """The result. Raises TransferError if it was broken off, or not everything was stored."""
        return self._result().__await__()

    async def _result(self) -> Result:
        try:
            return Result(**json.loads(await self._native.result()))
        except asyncio.CancelledError:
            self.stop()
            raise

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Its events until its end, however it ends."""
        while (text := await self._native.next()) is not None:
            facts = json.loads(text)
            yield _EVENTS[facts.pop("event")](**facts)

    def stop(self) -> None:
        """Breaks it off. The other end is told, and what arrived is kept to go on from."""
        self._native.stop()

    @property
    def peer(self) -> net.Address | None:
        """Where the sender is; None at the sender."""
        return self._native.peer


def send_file(
    ticket: str,
    *paths: StrPath,
    bind: Iterable[str] = (),
    connect_limit_s: float = 15.0,
    stall_limit_s: float | None = 600.0,
    progress_every_s: float | None = 0.2,
    profile: str | None = None,
    preset: str | None = None,
    settings: Mapping[str, object] | None = None,
) -> Transfer:
    """Sends files and directories to the receiver with this ticket: ``await send_file(...)``.

    Args:
        ticket: The ticket of a :class:`Receiver` or of ``manypath recv``.
        paths: Files and directories.
        bind: Addresses and interfaces ("eth0"), a path each; by default every uplink.
        connect_limit_s: Gives up if the receiver does not answer for this time.
        stall_limit_s: Gives up without any progress for this time; None: never.
        progress_every_s: The time between two :class:`Progress`; None: there are none.
        profile, preset, settings: Transport parameters, as of :class:`manypath.net.Endpoint`.

    Raises:
        ValueError: The ticket, or a parameter, is wrong.
    """
    return Transfer(
        _send_to(
            ticket,
            list(paths),
            list(bind),
            profile,
            preset,
            written(settings),
            connect_limit_s,
            stall_limit_s,
            progress_every_s,
        )
    )


class Receiver:
    """A receiver with a ticket, from :func:`receive_files`: use it with ``async with``.

    ``async for`` gives the transfers of senders that have the ticket. They run beside each other,
    up to eight at a time; one that nothing refers to any more is stopped.
    """

    def __init__(self, opening: dict[str, Any]) -> None:
        """Use :func:`receive_files`."""
        self._opening = opening
        self._native: _Inbox | None = None
        self._senders = Next(lambda: self._opened().next())

    @property
    def ticket(self) -> str:
        """The ticket for senders: as secret as the right to send."""
        return self._opened().ticket

    async def receive(self) -> Transfer | None:
        """The transfer of the next sender; None once the receiver is closed.

        A call that is cancelled loses no transfer.
        """
        found = await self._senders.get()
        return None if found is None else Transfer(found)

    async def __aiter__(self) -> AsyncIterator[Transfer]:
        """The transfers until the receiver is closed."""
        while (transfer := await self.receive()) is not None:
            yield transfer

    async def close(self) -> None:
        """Ends all transfers, and closes the sockets."""
        await self._opened().close()

    async def __aenter__(self) -> Self:
        """Opens the sockets.

        Raises OSError if the directory takes no files, TransferError if a socket cannot be opened.
        """
        self._native = await _Inbox.open(**self._opening)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.close()

    def _opened(self) -> _Inbox:
        if self._native is None:
            raise RuntimeError("a receiver is open within `async with` only")
        return self._native


def receive_files(
    directory: StrPath,
    *,
    bind: Iterable[str] = (),
    port: int = 0,
    max_size: int | None = None,
    hidden: bool = False,
    stall_limit_s: float | None = 600.0,
    progress_every_s: float | None = 0.2,
    profile: str | None = None,
    preset: str | None = None,
    settings: Mapping[str, object] | None = None,
) -> Receiver:
    """A receiver with a new ticket, whose files go into a directory.

    Args:
        directory: Made if it is missing. Nothing in it is replaced.
        bind: Addresses and interfaces; by default all of this host's.
        port: UDP port; 0 takes a free one. The ticket has it.
        max_size: Refuses transfers of more bytes; None: of more than the disk has room for.
        hidden: Accepts names with parts that begin with a dot.
        stall_limit_s: Gives a transfer up without any progress for this time; None: never.
        progress_every_s: The time between two :class:`Progress`; None: there are none.
        profile, preset, settings: Transport parameters, as of :class:`manypath.net.Endpoint`.
    """
    return Receiver(
        {
            "directory": directory,
            "bind": list(bind),
            "port": port,
            "max_size": max_size,
            "hidden": hidden,
            "profile": profile,
            "preset": preset,
            "settings": written(settings),
            "stall_limit": stall_limit_s,
            "progress_every": progress_every_s,
        }
    )
