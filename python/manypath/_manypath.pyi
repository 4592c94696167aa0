"""The native part of the package. Use :mod:`manypath.sim` and its neighbours instead."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, final

from .policy import CongestionControl, Scheduler

__all__ = [
    "AckFacts",
    "Association",
    "Choice",
    "Endpoint",
    "Events",
    "Inbox",
    "Job",
    "Kept",
    "Lab",
    "Limits",
    "PathView",
    "PathWindow",
    "Runs",
    "Scenario",
    "Security",
    "Transfer",
    "Window",
    "Work",
    "__version__",
    "engine_identity",
    "send_to",
    "start",
    "start_lab",
]

__version__: str

@final
class Scenario:
    @staticmethod
    def load(path: str | PathLike[str]) -> Scenario: ...
    @staticmethod
    def parse(text: str, name: str) -> Scenario: ...
    @staticmethod
    def from_dict(scenario: Mapping[str, Any]) -> Scenario: ...
    def copy(self) -> Scenario: ...
    def set(self, name: str, value: object) -> None: ...
    @property
    def seeds(self) -> list[int]: ...
    def points(self) -> list[list[tuple[str, str]]]: ...
    def explain(self, point: int) -> str: ...

@final
class Job:
    def wait(self, seconds: float) -> bool: ...
    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int: ...
    def cancel(self) -> None: ...
    def runs(self) -> Runs: ...
    def outcomes(self) -> list[str]: ...
    def error(self) -> BaseException | None: ...

@final
class Runs:
    def __len__(self) -> int: ...
    def json(self, index: int) -> str | None: ...
    @property
    def name(self) -> str: ...
    @property
    def failed(self) -> list[tuple[int, int, str]]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Lab:
    def __new__(cls, folder: str | PathLike[str] | None = None) -> Lab: ...
    def select(self, names: Sequence[str]) -> list[str]: ...

def start(
    scenario: Scenario,
    *,
    point: int | None = None,
    jobs: int | None = None,
    scheduler: Callable[[], Scheduler] | None = None,
    congestion_control: Callable[[], CongestionControl] | None = None,
    trace: str | PathLike[str] | None = None,
) -> Job: ...
def start_lab(
    lab: Lab,
    names: Sequence[str],
    out: str | PathLike[str],
    *,
    jobs: int | None = None,
    quick: bool = False,
    seeds: Sequence[int] | None = None,
) -> Job: ...

# The views of manypath.policy.

@final
class PathView:
    """A path as a policy sees it."""

    @property
    def number(self) -> int:
        """The number of the path, counted from 1 as in scenarios and results."""

    @property
    def state(self) -> str:
        """``unconfirmed``, ``active``, ``potentially_failed`` or ``inactive``."""

    @property
    def rank(self) -> str:
        """``normal``, ``cost=N`` or ``backup``."""

    @property
    def usable(self) -> bool:
        """It may carry data now: by the failure policy, the path set and its rank."""

    @property
    def cwnd_bytes(self) -> int:
        """Congestion window."""

    @property
    def ssthresh_bytes(self) -> int:
        """Slow-start threshold."""

    @property
    def flight_size_bytes(self) -> int:
        """DATA chunks in flight."""

    @property
    def pipe_bytes(self) -> int:
        """The same; with ``pipe_accounting`` also chunks that were lost and wait."""

    @property
    def cwnd_space_bytes(self) -> int:
        """How much the congestion window, Max.Burst and pacing allow now; 0 if nothing."""

    @property
    def srtt_s(self) -> float | None:
        """Smoothed round-trip time in seconds, once measured."""

    @property
    def rto_s(self) -> float:
        """Retransmission timeout in seconds, with its back-off."""

    @property
    def loss_rate(self) -> float:
        """Fraction of chunks lost, 0 to 1."""

    @property
    def error_count(self) -> int:
        """Timeouts in a row."""

@final
class Choice:
    """A scheduler's question: which path does the next new data take?"""

    @property
    def now_s(self) -> float:
        """Seconds since the start of the run."""

    @property
    def paths(self) -> tuple[PathView, ...]:
        """All paths of the association."""

    @property
    def primary(self) -> PathView:
        """The primary path."""

    @property
    def waiting_bytes(self) -> int:
        """User bytes that wait to be sent for the first time."""

    def random(self) -> float:
        """A random number in [0, 1): a function of the run's seed, so that runs repeat."""

@final
class Window:
    """The variables of congestion control (RFC 9260 §7.2), in bytes of DATA chunks."""

    def __new__(
        cls, cwnd_bytes: int, ssthresh_bytes: int, partial_bytes_acked: int = 0
    ) -> Window: ...
    @property
    def cwnd_bytes(self) -> int:
        """Congestion window."""

    @property
    def ssthresh_bytes(self) -> int:
        """Slow-start threshold."""

    @property
    def partial_bytes_acked(self) -> int:
        """Progress towards the next increase in congestion avoidance, in bytes."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Limits:
    """The constants of a path."""

    @property
    def packet_bytes(self) -> int:
        """One packet in window arithmetic."""

    @property
    def ssthresh_floor_bytes(self) -> int:
        """Lower bound of ssthresh after a loss."""

    @property
    def slow_start_increase_max_bytes(self) -> int:
        """Upper bound of the growth per SACK in slow start."""

@final
class PathWindow:
    """The window of a path that carries data."""

    @property
    def path(self) -> int:
        """The number of the path, counted from 1."""

    @property
    def cwnd_bytes(self) -> int:
        """Congestion window."""

    @property
    def srtt_s(self) -> float | None:
        """Smoothed round-trip time in seconds, once measured."""

    @property
    def between_losses_bytes(self) -> int:
        """Acknowledged between the last two losses that cut the window, or since the last."""

@final
class AckFacts:
    """Facts of a SACK for congestion control."""

    @property
    def path(self) -> int:
        """The number of the path, counted from 1."""

    @property
    def acked_bytes(self) -> int:
        """Acknowledged for the first time on the path."""

    @property
    def counted_bytes(self) -> int:
        """Those of them that count towards growth in congestion avoidance."""

    @property
    def flight_before_bytes(self) -> int:
        """Flight size before the SACK."""

    @property
    def flight_after_bytes(self) -> int:
        """Flight size after it."""

    @property
    def in_fast_recovery(self) -> bool:
        """The path is in fast recovery."""

    @property
    def now_s(self) -> float:
        """When the SACK arrived, in seconds since the start of the run."""

    @property
    def rtt_s(self) -> float | None:
        """The round-trip time of the latest chunk acknowledged; see ``wants_rtt``."""

    @property
    def srtt_s(self) -> float | None:
        """Smoothed round-trip time in seconds, once measured."""

    @property
    def paths(self) -> tuple[PathWindow, ...]:
        """The windows of all paths that carry data; empty without ``wants_paths``."""

@final
class Work:
    def __new__(cls, lab: Lab, names: Sequence[str], *, quick: bool = False, seeds: Sequence[int] | None = None) -> Work: ...
    def units(self) -> list[tuple[list[str], str]]: ...
    def run(self, tasks: Sequence[str]) -> list[str]: ...
    def open(self, folder: str | PathLike[str]) -> Kept: ...
    def collect(self, kept: Kept, out: str | PathLike[str]) -> list[str]: ...
    @property
    def folder(self) -> Path | None: ...

@final
class Kept:
    def known(self) -> set[str]: ...
    def push(self, lines: Sequence[str]) -> None: ...
    def fail(self, tasks: Sequence[str], why: str) -> None: ...
    @property
    def path(self) -> Path: ...

def engine_identity() -> str: ...

@final
class Security:
    """How associations are protected. Both ends need the same kind."""

    @staticmethod
    def keys(identity: str | None = None, peers: Sequence[str] | None = None) -> Security:
        """Keys of TLS 1.3, encryption and authentication of every packet.

        Args:
            identity: A private key in PEM, as :attr:`pem` gives it; without it a new one.
            peers: Fingerprints of the peers' public keys; without it every peer will do.
        """

    @staticmethod
    def shared(secret: bytes) -> Security:
        """A secret that both ends have: at least 16 bytes drawn at random."""

    @staticmethod
    def plain() -> Security:
        """None: anyone on the way can read and change everything."""

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the own public key, for the peer's `peers`."""

    @property
    def pem(self) -> str | None:
        """The own private key, to be the same after a restart. Keep it secret."""

@final
class Endpoint:
    def __new__(
        cls,
        security: Security,
        bind: Sequence[str],
        port: int,
        accept: bool,
        profile: str | None,
        preset: str | None,
        settings: Sequence[tuple[str, str]],
    ) -> Endpoint: ...
    @property
    def addresses(self) -> list[tuple[str, int]]: ...
    @property
    def port(self) -> int: ...
    def connect(self, remotes: Sequence[str]) -> Awaitable[Association]: ...
    def accept(self) -> Awaitable[Association | None]: ...
    def close(self) -> Awaitable[None]: ...
    def abort(self, reason: str) -> None: ...

@final
class Association:
    def send(
        self,
        data: bytes,
        stream: int,
        ppid: int,
        unordered: bool,
        limits: tuple[float | None, int | None, int | None],
    ) -> Awaitable[None]: ...
    def recv(self) -> Awaitable[tuple[bytes, int, int, bool, bool, bool] | None]: ...
    def acknowledged(self) -> Awaitable[None]: ...
    def shutdown(self) -> Awaitable[None]: ...
    def closed(self) -> Awaitable[str]: ...
    def abort(self, reason: str) -> None: ...
    def events(self) -> Events: ...
    def paths(self) -> list[tuple[int, str]]: ...
    def counters(self) -> list[int]: ...
    @property
    def peer(self) -> tuple[str, int] | None: ...
    @property
    def is_protected(self) -> bool: ...
    @property
    def peer_key(self) -> str | None: ...

@final
class Events:
    def next(self) -> Awaitable[str | None]: ...

@final
class Transfer:
    def next(self) -> Awaitable[str | None]: ...
    def result(self) -> Awaitable[str]: ...
    def stop(self) -> None: ...
    @property
    def peer(self) -> tuple[str, int] | None: ...

def send_to(
    ticket: str,
    paths: Sequence[str | PathLike[str]],
    bind: Sequence[str],
    profile: str | None,
    preset: str | None,
    settings: Sequence[tuple[str, str]],
    connect_limit: float,
    stall_limit: float | None,
    progress_every: float | None,
) -> Transfer: ...
@final
class Inbox:
    @staticmethod
    def open(
        directory: str | PathLike[str],
        bind: Sequence[str],
        port: int,
        max_size: int | None,
        hidden: bool,
        profile: str | None,
        preset: str | None,
        settings: Sequence[tuple[str, str]],
        stall_limit: float | None,
        progress_every: float | None,
    ) -> Awaitable[Inbox]: ...
    @property
    def ticket(self) -> str: ...
    def next(self) -> Awaitable[Transfer | None]: ...
    def close(self) -> Awaitable[None]: ...
