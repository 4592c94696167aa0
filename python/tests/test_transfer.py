"""Files and directories between programs, and between a program and the command, over loopback."""

from __future__ import annotations

import asyncio
import filecmp
import gc
import hashlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import manypath
from manypath import TransferError, transfer

from conftest import Command

TWO = ["127.0.0.1", "127.0.0.2"]
LARGE = 40_000_000
HUGE = 400_000_000
"""More than is sent while Python looks at an event on a busy machine."""


def play(scene: Callable[[], Awaitable[None]]) -> None:
    """Runs a scene, which is over within 60 s."""

    async def whole() -> None:
        async with asyncio.timeout(60):
            await scene()

    asyncio.run(whole())


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A directory with a large and a small file."""
    folder = tmp_path / "photos"
    (folder / "2026").mkdir(parents=True)
    (folder / "large").write_bytes(hashlib.shake_256(b"large").digest(LARGE))
    (folder / "2026" / "small").write_bytes(b"small")
    return folder


def same(sent: Path, received: Path) -> bool:
    names = ("large", "2026/small")
    return all(filecmp.cmp(sent / name, received / name, shallow=False) for name in names)


async def next_of(receiver: transfer.Receiver) -> transfer.Transfer:
    incoming = await receiver.receive()
    assert incoming is not None
    return incoming


async def events_of(incoming: transfer.Transfer) -> list[transfer.Event]:
    return [event async for event in incoming]


def test_both_ends_see_the_same(photos: Path, tmp_path: Path) -> None:
    async def scene() -> None:
        inbox = tmp_path / "new" / "inbox"
        async with manypath.receive_files(inbox, bind=TWO) as receiver:
            sending = manypath.send_file(receiver.ticket, photos, bind=TWO, progress_every_s=0.01)
            incoming = await next_of(receiver)
            assert incoming.peer and incoming.peer[0] in TWO and sending.peer is None
            here, there = await asyncio.gather(events_of(sending), events_of(incoming))
            sent, received = await sending, await incoming
            assert (sent.bytes, sent.entries, sent.resumed) == (LARGE + 5, 4, 0)
            assert (received.bytes, received.entries, received.resumed) == (LARGE + 5, 4, 0)
            for events in (here, there):
                assert isinstance(events[0], transfer.Begun)
                assert (events[0].entries, events[0].bytes) == (4, LARGE + 5)
                entries = {e.name: e for e in events if isinstance(e, transfer.Entry)}
                names = {"photos", "photos/large", "photos/2026", "photos/2026/small"}
                assert set(entries) == names
                assert {entry.status for entry in entries.values()} == {"stored"}
                digest = hashlib.sha256(b"small").hexdigest()
                assert entries["photos/2026/small"].sha256 == digest
                steps = [e.done for e in events if isinstance(e, transfer.Progress)]
                assert steps == sorted(steps)
            # Whoever asks later hears it again.
            assert await sending == sent
        assert same(photos, inbox / "photos")

    play(scene)


@pytest.mark.parametrize("how", ["stop", "cancel", "forget"])
def test_a_transfer_goes_on_where_it_was_broken_off(how: str, photos: Path, tmp_path: Path) -> None:
    with open(photos / "large", "r+b") as large:
        large.truncate(HUGE)

    async def broken_off(ticket: str) -> None:
        sending = manypath.send_file(ticket, photos, bind=TWO, progress_every_s=0.002)
        async for event in sending:
            if isinstance(event, transfer.Progress) and event.done > 4_000_000:
                break
        if how == "stop":
            sending.stop()
            with pytest.raises(TransferError) as error:
                await sending
            assert error.value.is_resumable
        elif how == "cancel":
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await sending

    async def scene() -> None:
        async with manypath.receive_files(tmp_path / "inbox", bind=TWO) as receiver:
            taken = asyncio.create_task(next_of(receiver))
            await broken_off(receiver.ticket)
            gc.collect()
            with pytest.raises(TransferError, match="interrupted") as error:
                await (await taken)
            assert error.value.is_resumable
            sending = manypath.send_file(receiver.ticket, photos, bind=TWO)
            incoming = await next_of(receiver)
            events = await events_of(incoming)
            resumed = [event for event in events if isinstance(event, transfer.Resumed)]
            assert [event.name for event in resumed] == ["photos/large"]
            sent = await sending
            assert sent.resumed == resumed[0].offset > 0
            assert sent.resumed + sent.bytes == HUGE + 5
        assert same(photos, tmp_path / "inbox" / "photos")

    play(scene)


def test_what_is_not_stored_is_an_error_with_its_reason(photos: Path, tmp_path: Path) -> None:
    async def scene() -> None:
        inbox = tmp_path / "inbox"
        (inbox / "photos" / "2026").mkdir(parents=True)
        (inbox / "photos" / "2026" / "small").write_bytes(b"another")
        async with manypath.receive_files(inbox, bind=TWO) as receiver:
            sending = manypath.send_file(receiver.ticket, photos, bind=TWO)
            incoming = await next_of(receiver)
            entries = {e.name: e for e in await events_of(sending) if isinstance(e, transfer.Entry)}
            small = entries["photos/2026/small"]
            assert (small.status, small.sha256) == ("exists", None)
            assert small.error and "is not replaced" in small.error
            for end in (sending, incoming):
                with pytest.raises(TransferError, match="1 of 4 entries are not stored") as error:
                    await end
                assert not error.value.is_resumable
        assert (inbox / "photos" / "2026" / "small").read_bytes() == b"another"

    play(scene)


def test_wrong_words_and_places_are_errors_at_once(photos: Path, tmp_path: Path) -> None:
    async def scene() -> None:
        with pytest.raises(ValueError, match="ticket"):
            manypath.send_file("manypath2:short", photos)
        file = tmp_path / "file"
        file.write_bytes(b"")
        with pytest.raises(OSError, match="[Dd]irectory"):
            async with manypath.receive_files(file, bind=TWO):
                pass
        with pytest.raises(ValueError, match="presets?"):
            async with manypath.receive_files(tmp_path / "inbox", bind=TWO, preset="adaptiv"):
                pass
        with pytest.raises(RuntimeError, match="async with"):
            _ = manypath.receive_files(tmp_path / "inbox").ticket
        async with manypath.receive_files(tmp_path / "inbox", bind=TWO) as receiver:
            ticket = receiver.ticket
            with pytest.raises(TransferError, match="cannot be sent"):
                await manypath.send_file(ticket, tmp_path / "missing", bind=TWO)
        with pytest.raises(TransferError, match="no answer|no more associations"):
            await manypath.send_file(ticket, photos, bind=TWO, connect_limit_s=0.3)

    play(scene)


def test_a_receiver_that_is_closed_gives_no_more_transfers(tmp_path: Path) -> None:
    async def scene() -> None:
        async with manypath.receive_files(tmp_path / "inbox", bind=TWO) as receiver:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await receiver.receive()
            waiting = asyncio.create_task(receiver.receive())
            await asyncio.sleep(0)
        assert await waiting is None

    play(scene)


def test_the_command_sends_to_a_program(
    photos: Path, tmp_path: Path, manypath: Command
) -> None:
    async def scene() -> None:
        async with transfer.receive_files(tmp_path / "inbox", bind=TWO) as receiver:
            words = ("send", "--json", "--bind", ",".join(TWO), photos, receiver.ticket)
            command = asyncio.create_task(asyncio.to_thread(manypath, *words))
            result = await (await next_of(receiver))
            done = await command
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout)["bytes"] == result.bytes == LARGE + 5
        assert same(photos, tmp_path / "inbox" / "photos")

    play(scene)
