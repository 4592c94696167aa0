"""Waiting for the next of several things, without a loss where a wait is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Next(Generic[T]):
    """The next thing that a native object gives, one wait after the other."""

    def __init__(self, ask: Callable[[], Awaitable[T]]) -> None:
        """Asks the native object by ``ask``."""
        self._ask = ask
        self._waiting = asyncio.Lock()
        self._next: asyncio.Future[T] | None = None

    async def get(self) -> T:
        """The next thing. A call that is cancelled loses none."""
        async with self._waiting:
            if self._next is None:
                self._next = asyncio.ensure_future(self._ask())
            # The thing that a cancelled call waited for is the next one's.
            try:
                found = await asyncio.shield(self._next)
            except asyncio.CancelledError:
                raise
            except BaseException:
                self._next = None
                raise
            self._next = None
            return found
