"""Waiting for work in native threads, with progress and Ctrl-C."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol

Progress = Callable[[int, int], object]
"""Called with the number of runs that are over, and of all runs."""

INTERVAL_S = 0.1
"""Seconds between two looks at the work: how fast progress and Ctrl-C are."""


class Work(Protocol):
    """Work that goes on in native threads."""

    def wait(self, seconds: float) -> bool: ...
    def cancel(self) -> None: ...
    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int: ...


def wait(work: Work, progress: Progress | bool | None) -> None:
    """Waits until the work is over. If an exception ends that, the work is cancelled first."""
    show, close = shower(progress, work.total)
    shown = -1
    try:
        while True:
            is_over = work.wait(INTERVAL_S)
            if work.done != shown:
                shown = work.done
                show(shown, work.total)
            if is_over:
                return
    except BaseException:
        work.cancel()
        while not work.wait(INTERVAL_S):
            pass
        raise
    finally:
        close()


def shower(
    progress: Progress | bool | None, total: int
) -> tuple[Progress, Callable[[], object]]:
    """What shows progress, and what ends that."""
    if callable(progress):
        return progress, lambda: None
    if progress is None:
        progress = sys.stderr is not None and sys.stderr.isatty()
    if not progress:
        return (lambda done, total: None), (lambda: None)
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return _line, lambda: sys.stderr.write("\r\x1b[K")
    bar: Any = tqdm(total=total, unit="run", leave=False)
    return (lambda done, total: bar.update(done - bar.n)), bar.close


def _line(done: int, total: int) -> None:
    """A line on a terminal."""
    filled = 30 * done // max(total, 1)
    sys.stderr.write(f"\r{'█' * filled}{'░' * (30 - filled)} {done}/{total} runs")
    sys.stderr.flush()
