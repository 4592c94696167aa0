#!/usr/bin/env python3
"""The Python package between network namespaces: every uplink is used without a parameter.

    PYTHON-WITH-MANYPATH tests/python/run.py [--require]

Needs root, Linux and `ip`, and the package manypath in the Python that runs it. Skipped loudly without them, unless
--require is given. `client` and `server` are what runs in the two hosts.
"""

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

from failure import Failed, Unavailable  # noqa: E402
from laptop import GOODPUT_MIN, SUM, Laptop  # noqa: E402
from namespaces import Lab, check_machine, remove_leftovers  # noqa: E402
from requirements import add_require, skip  # noqa: E402
from second_chance import Verdict, judge, settle  # noqa: E402

SIZE, MESSAGE = 120_000_000, 60_000


async def serve():
    """Takes one association and counts what comes."""
    from manypath import net
    async with net.Endpoint(net.Security.keys(), accept=True) as endpoint:
        print(json.dumps({"addresses": endpoint.addresses, "key": endpoint.security.fingerprint}), flush=True)
        association, count = await endpoint.accept(), 0
        async for message in association:
            count += len(message.data)
        print(json.dumps({"bytes": count}), flush=True)
        await association.closed()


async def send(place):
    """Sends to a server, and says how long that took and which paths there were."""
    from manypath import net
    known = net.Security.keys(peers=[place["key"]])
    async with net.Endpoint(known) as endpoint:
        association = await endpoint.connect(*map(tuple, place["addresses"]))
        begin, message = time.monotonic(), bytes(MESSAGE)
        for _ in range(SIZE // MESSAGE):
            await association.send(message)
        await association.acknowledged()
        took = time.monotonic() - begin
        paths = [(path["local"], path["state"]) for path in association.paths().values()]
        print(json.dumps({"seconds": took, "paths": paths}), flush=True)
        await association.shutdown()


def run():
    """A transfer from the laptop to the server; the verdict."""
    with Lab("python") as lab:
        try:
            net = Laptop(lab)
            server = lab.spawn(net.server, [sys.executable, __file__, "server"])
            place = server.wait_line('"key"', 30)
            client = lab.spawn(net.laptop, [sys.executable, __file__, "client", place])
            codes = client.wait(60), server.wait(20)
            said = json.loads(client.stdout[-1][1]) if client.stdout else {}
            count = json.loads(server.stdout[-1][1]).get("bytes")
        except (Failed, ValueError) as why:
            print(f"FAILED: {why}")
            return Verdict.WRONG
        share = SIZE * 8 / said["seconds"] / SUM if "seconds" in said else 0.0
        used = sorted(local.rsplit(":", 1)[0] for local, _ in said.get("paths", []))
        wanted = sorted(uplink.address(2) for uplink in net.uplinks)
        verdict = judge([(codes == (0, 0), False), (count == SIZE, False), (used == wanted, False),
                         (share >= GOODPUT_MIN, True)])
        print(f"{verdict.value}: exit codes {codes}, {count} bytes, {share:.1%} of the uplinks' rates, from {', '.join(used)}")
        for process in (client, server):
            if verdict is not Verdict.GOOD and process.said():
                print(process.said())
        return verdict


def main():
    if sys.argv[1:2] == ["server"]:
        return asyncio.run(serve())
    if sys.argv[1:2] == ["client"]:
        return asyncio.run(send(json.loads(sys.argv[2])))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_require(parser)
    options = parser.parse_args()
    try:
        check_machine()
        try:
            import manypath  # noqa: F401
        except ImportError:
            raise Unavailable(f"{sys.executable} has no package manypath") from None
    except Unavailable as why:
        return skip(options, f"the Python package between namespaces: {why}")
    remove_leftovers()
    verdict = run()
    late = ["python uplinks"] if verdict is Verdict.LATE else []
    failed = settle(late, lambda _: run(), lambda _: [sys.executable, __file__, "--require"])
    return 1 if failed or verdict is Verdict.WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
