"""Policies that manypath has, again in Python: to compare results, and to measure what Python costs.

    python python/tests/same_policies.py        prints the price
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from manypath import policy, sim


class FillFirst(policy.Scheduler):
    """The scheduler fill_first: one window after the other."""

    def __init__(self) -> None:
        self.current: int | None = None
        self.since_s = 0.0

    def choose(self, choice: policy.Choice) -> policy.PathView | None:
        paths = choice.paths
        last = next((at for at, path in enumerate(paths) if path.number == self.current), None)
        first = 0 if last is None else last if self.since_s == choice.now_s else last + 1
        for path in paths[first:] + paths[:first]:
            if path.usable and path.cwnd_space_bytes > 0:
                self.current, self.since_s = path.number, choice.now_s
                return path
        return None


class Rfc9260(policy.CongestionControl):
    """The control rfc9260 (RFC 9260 §7.2)."""

    def on_ack(
        self, window: policy.Window, limits: policy.Limits, ack: policy.AckFacts
    ) -> policy.Window:
        cwnd, ssthresh, acked = window.cwnd_bytes, window.ssthresh_bytes, window.partial_bytes_acked
        grows = ack.flight_before_bytes >= cwnd and not ack.in_fast_recovery
        if cwnd <= ssthresh:
            if grows:
                cwnd += min(ack.acked_bytes, limits.slow_start_increase_max_bytes)
        else:
            acked += ack.acked_bytes
            if acked >= cwnd and grows:
                cwnd, acked = cwnd + limits.packet_bytes, acked - cwnd
            elif acked >= cwnd:
                acked = cwnd
        return policy.Window(cwnd, ssthresh, 0 if ack.flight_after_bytes == 0 else acked)

    def on_fast_retransmit(self, window: policy.Window, limits: policy.Limits) -> policy.Window:
        cwnd = max(window.cwnd_bytes // 2, limits.ssthresh_floor_bytes)
        return policy.Window(cwnd, cwnd)

    def on_timeout(self, window: policy.Window, limits: policy.Limits) -> policy.Window:
        ssthresh = max(window.cwnd_bytes // 2, limits.ssthresh_floor_bytes)
        return policy.Window(limits.packet_bytes, ssthresh)


def price(rounds: int = 7) -> dict[str, float]:
    """Processor time of runs with policies in Python, over that of the same runs without."""
    scenario = {
        "transport": {"preset": "cmt-pf"},
        "transfer": {"size": "20 MB"},
        "path": [{"rate": "10 Mbit/s", "delay": "20 ms", "loss": "0.2 %"}] * 2,
    }
    sides: dict[str, tuple[Any, Any]] = {
        "neither": ("fill_first", "rfc9260"),
        "scheduler": (FillFirst, "rfc9260"),
        "congestion control": ("fill_first", Rfc9260),
        "both": (FillFirst, Rfc9260),
    }
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, (scheduler, control) in sides.items():
            began = time.process_time()
            sim.run(
                scenario,
                seeds=3,
                jobs=1,
                scheduler=scheduler,
                congestion_control=control,
                progress=False,
            )
            seconds[name].append(time.process_time() - began)
    medians = {name: statistics.median(measured) for name, measured in seconds.items()}
    return {name: median / medians["neither"] for name, median in medians.items()}


if __name__ == "__main__":
    for side, ratio in price().items():
        print(f"in Python: {side:20} {ratio:.2f} times the processor time of a run")
