"""Policies of your own, in Python, for experiments.

    >>> from manypath import policy, sim
    >>> class Fastest(policy.Scheduler):
    ...     def choose(self, choice):
    ...         free = [p for p in choice.paths if p.usable and p.cwnd_space_bytes > 0]
    ...         return min(free, key=lambda p: p.srtt_s or 0, default=None)
    >>> sim.run("two-paths.toml", scheduler=Fastest)

Give :func:`manypath.sim.run` the class, or a function without arguments that makes a policy: it is
called for each association, of congestion control for each path. A policy must depend on nothing
but what it is told, and on :meth:`Choice.random`; then runs repeat exactly.

An error that a policy raises ends the runs and is the error of the call. docs/python.md says what a
policy in Python costs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from ._manypath import AckFacts, Choice, Limits, PathView, PathWindow, Window

__all__ = [
    "AckFacts",
    "Choice",
    "CongestionControl",
    "Limits",
    "PathView",
    "PathWindow",
    "Scheduler",
    "Window",
]


class Scheduler(ABC):
    """Chooses the path of new data."""

    @abstractmethod
    def choose(self, choice: Choice) -> PathView | None:
        """One of ``choice.paths`` that is usable and has room, or None to wait.

        Asked for each packet of new data while a path has room, and again for the same packet if
        the answer is another path than that of the packets being built. So do not count answers:
        the paths tell what is in flight. After None it is asked again when a SACK, a timer or the
        application has changed something.
        """


class CongestionControl(ABC):
    """Moves the congestion window of one path; every path has an object of its own.

    A method gets the window as it is and returns the window as it shall be. The engine may have
    changed it since the last call, for instance while the path was idle. ``cwnd_bytes`` must stay
    at one packet (``limits.packet_bytes``) or more.
    """

    wants_rtt: bool = False
    """Measures a round-trip time with each SACK, not only one in a round trip."""

    wants_paths: bool = False
    """Fills ``ack.paths``: for control that is coupled over the paths."""

    @abstractmethod
    def on_ack(self, window: Window, limits: Limits, ack: AckFacts) -> Window:
        """The window after a SACK that moved the left edge of the path."""

    @abstractmethod
    def on_fast_retransmit(self, window: Window, limits: Limits) -> Window:
        """The window after a loss seen by missing reports: once per fast recovery."""

    @abstractmethod
    def on_timeout(self, window: Window, limits: Limits) -> Window:
        """The window after T3-rtx expired, or after the path was found silent."""
