"""The end of the interpreter, right after the last future had its result."""

import subprocess
import sys

PROGRAM = """
import asyncio
from manypath import net

async def main():
    security = net.Security.keys()
    async with net.Endpoint(security, accept=True, bind=["127.0.0.1"]) as server:
        known = net.Security.keys(peers=[security.fingerprint])
        async with net.Endpoint(known, bind=["127.0.0.1"]) as client:
            association = await client.connect(*server.addresses)
            accepted = await server.accept()
            await association.shutdown()
            await accepted.closed()

asyncio.run(main())
"""


def test_a_program_that_ends_after_its_last_future_does_not_crash() -> None:
    for _ in range(20):
        done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, timeout=30, check=False)
        assert done.returncode == 0, done.stderr.decode()
