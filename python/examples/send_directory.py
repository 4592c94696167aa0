"""Sends a directory, breaks it off part-way, and goes on: a receiver and its sender in one program.

    python send_directory.py
"""

import asyncio
import random
import tempfile
from pathlib import Path

import manypath
from manypath import transfer

UPLINKS = ["127.0.0.1", "127.0.0.2"]
"""Two paths, for which addresses of loopback stand. By default there is one for each uplink."""

SIZES = {"large.bin": 192 << 20, "notes.txt": 5_000, "2026/november.jpeg": 250_000}
ENOUGH = 8_000_000
"""The first attempt ends when this many bytes have arrived."""


def make_files(directory: Path) -> None:
    dice = random.Random(20_261_128)
    for name, size in SIZES.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(dice.randbytes(size))


async def receive(receiver: transfer.Receiver) -> None:
    """Takes whoever comes. Real programs would show this, too."""
    async for incoming in receiver:
        try:
            await incoming
        except manypath.TransferError as error:
            print(f"receiver: {error}")


async def break_off(ticket: str, directory: Path) -> None:
    sending = manypath.send_file(ticket, directory, bind=UPLINKS, progress_every_s=0.005)
    async for event in sending:
        if isinstance(event, transfer.Progress) and event.done >= ENOUGH:
            print(f"broken off at {event.done / 1e6:.1f} MB")
            sending.stop()
            break
    try:
        await sending
    except manypath.TransferError as error:
        assert error.is_resumable, error
    else:
        raise SystemExit("everything was sent before it could be broken off")


async def send(ticket: str, directory: Path) -> transfer.Result:
    sending = manypath.send_file(ticket, directory, bind=UPLINKS)
    async for event in sending:
        match event:
            case transfer.Resumed(name=name, offset=offset):
                print(f"{name}: {offset / 1e6:.1f} MB are there already")
            case transfer.Progress(done=done, total=total) if total:
                print(f"{done / total:.0%}")
            case transfer.Entry(name=name, status=status):
                print(f"{name}: {status}")
    return await sending


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        photos, inbox = Path(folder, "photos"), Path(folder, "inbox")
        make_files(photos)
        async with manypath.receive_files(inbox, bind=UPLINKS) as receiver:
            receiving = asyncio.create_task(receive(receiver))
            await break_off(receiver.ticket, photos)
            result = await send(receiver.ticket, photos)
        await receiving
        for name in SIZES:
            if (photos / name).read_bytes() != (inbox / "photos" / name).read_bytes():
                raise SystemExit(f"{name} is different")
        if result.resumed == 0 or result.resumed + result.bytes != sum(SIZES.values()):
            raise SystemExit(f"not resumed: {result}")
        print(f"{result.entries} entries stored, {result.resumed / 1e6:.1f} MB not sent again")


if __name__ == "__main__":
    asyncio.run(main())
