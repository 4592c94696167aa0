"""Endpoints and associations of one process, over loopback."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from manypath import AssociationError, net, trace

TWO = ["127.0.0.1", "127.0.0.2"]


def play(scene: Callable[[], Awaitable[None]]) -> None:
    """Runs a scene, which is over within 20 s."""

    async def whole() -> None:
        async with asyncio.timeout(20):
            await scene()

    asyncio.run(whole())


@contextlib.asynccontextmanager
async def two_ends(**options: object) -> AsyncIterator[tuple[net.Association, net.Association]]:
    """An association over two paths: the client's end and the server's."""
    more: dict[str, object] = {"settings": options}
    server = net.Endpoint(net.Security.keys(), bind=TWO, accept=True, **more)  # type: ignore[arg-type]
    fingerprint = server.security.fingerprint
    assert fingerprint
    known = net.Security.keys(peers=[fingerprint])
    client = net.Endpoint(known, bind=TWO, **more)  # type: ignore[arg-type]
    async with server, client:
        out, incoming = await asyncio.gather(client.connect(*server.addresses), server.accept())
        assert incoming is not None
        yield out, incoming


async def echo(association: net.Association) -> None:
    async for message in association:
        await association.send(message.data, stream=message.stream, ppid=message.ppid)


def test_an_ipv4_address_in_an_ipv6_one_is_the_ipv4_address() -> None:
    async def scene() -> None:
        mapped = "::ffff:127.0.0.1"
        server = net.Endpoint(net.Security.keys(), bind=[mapped, "[::ffff:127.0.0.2]"], accept=True)
        assert [ip for ip, _ in server.addresses] == TWO
        fingerprint = server.security.fingerprint
        assert fingerprint
        client = net.Endpoint(net.Security.keys(peers=[fingerprint]), bind=[mapped])
        async with server, client:
            out, _ = await asyncio.gather(client.connect((mapped, server.port)), server.accept())
            assert out.paths()[1]["remote"] == f"127.0.0.1:{server.port}"

    play(scene)


def test_a_link_local_address_keeps_its_interface() -> None:
    connected: list[list[str]] = []

    class Native:
        async def connect(self, remotes: list[str]) -> None:
            connected.append(remotes)

    async def scene() -> None:
        endpoint = net.Endpoint(net.Security.keys())
        async with endpoint:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(endpoint, "_native", Native())
                await endpoint.connect(("fe80::7%1", 9))

    play(scene)
    assert connected == [["[fe80::7%1]:9"]]



def test_an_echo_over_two_paths() -> None:
    async def scene() -> None:
        async with two_ends(scheduler="fill_in_turn") as (client, server):
            assert client.is_protected and client.peer_key
            answering = asyncio.create_task(echo(server))
            sent = [(number.to_bytes(2) * 5000, number % 4) for number in range(200)]

            async def send() -> None:
                for data, stream in sent:
                    await client.send(data, stream=stream, ppid=stream + 7)

            sending = asyncio.create_task(send())
            got = [await client.recv() for _ in sent]
            await sending
            for stream in range(4):
                own = [data for data, on in sent if on == stream]
                assert own == [m.data for m in got if m and m.stream == stream]
                assert {m.ppid for m in got if m and m.stream == stream} == {stream + 7}
            paths = client.paths()
            assert list(paths) == [1, 2]
            assert all(path["state"] == "active" for path in paths.values())
            # The other addresses of 127.0.0.0/8 work, too, but the interface does not list them.
            named = {path["local"].split(":")[0]: path["interface"] for path in paths.values()}
            assert named["127.0.0.1"] == "lo"
            assert all(path["data_chunks_sent"] > 50 for path in paths.values())
            await client.shutdown()
            await answering
            stats = client.stats()
            # Those of the key exchange are acknowledged, too.
            assert stats["bytes_queued"] == 200 * 10000 <= stats["bytes_acked"]
            assert stats["messages_received"] >= 200

    play(scene)


def test_a_receiver_that_is_cancelled_loses_no_message() -> None:
    async def scene() -> None:
        async with two_ends() as (client, server):
            for number in range(30):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.001):
                        await server.recv()
                await client.send(bytes([number]))
                # Often the message comes just when the call ends.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.0005):
                        early = await server.recv()
                        assert early and early.data == bytes([number])
                        continue
                message = await server.recv()
                assert message and message.data == bytes([number])

    play(scene)


def test_events_are_those_of_traces() -> None:
    async def scene() -> None:
        async with two_ends() as (client, server):
            events = server.events()
            first = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0)
            client.abort("enough")
            seen = [await first] + [event async for event in events]
            assert all(isinstance(event, trace.Event) for event in seen)
            assert "enough" in await server.closed()
            with pytest.raises(AssociationError, match="enough"):
                await server.recv()

    play(scene)


def test_an_unknown_key_is_refused() -> None:
    async def scene() -> None:
        server = net.Endpoint(net.Security.keys(), bind=TWO[:1], accept=True)
        other = net.Security.keys().fingerprint
        assert other
        client = net.Endpoint(net.Security.keys(peers=[other]), bind=TWO[:1])
        async with server, client:
            with pytest.raises(AssociationError):
                await client.connect(*server.addresses)

    play(scene)


def test_a_shared_secret_and_an_identity_that_lasts() -> None:
    async def scene() -> None:
        secret = net.Security.shared(b"sixteen bytes or more of secret!")
        server = net.Endpoint(secret, bind=TWO[:1], accept=True)
        client = net.Endpoint(secret, bind=TWO[:1])
        async with server, client:
            out, incoming = await asyncio.gather(client.connect(*server.addresses), server.accept())
            assert incoming and out.is_protected
            async with out:
                await out.send(b"x")
            last = [message.data async for message in incoming]
            assert last == [b"x"]
            with pytest.raises(AssociationError):
                await out.send(b"late")

    play(scene)
    own = net.Security.keys()
    assert net.Security.keys(own.pem).fingerprint == own.fingerprint


def test_wrong_values_are_errors_at_once() -> None:
    async def scene() -> None:
        with pytest.raises(ValueError, match="peers: `sha256:short`: not sha256: and 64"):
            net.Security.keys(peers=["sha256:short"])
        with pytest.raises(ValueError, match="presets?"):
            net.Endpoint(net.Security.plain(), preset="adaptiv")
        with pytest.raises(AssociationError, match=r"203\.0\.113\.1"):
            net.Endpoint(net.Security.plain(), bind=["203.0.113.1"])
        async with net.Endpoint(net.Security.plain(), bind=TWO[:1]) as endpoint:
            with pytest.raises(AssociationError, match="no remote address"):
                await endpoint.connect()

    play(scene)
