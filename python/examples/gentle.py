"""Congestion control of one's own: a law that yields less after a loss.

    python gentle.py
"""

from manypath import policy, sim

SCENARIO = {
    "name": "a lossy path",
    "transport": {"preset": "cmt-pf"},
    "transfer": {"size": "2 MB"},
    "path": [{"rate": "20 Mbit/s", "delay": "20 ms", "loss": "0.5 %"}],
}


class Gentle(policy.CongestionControl):
    """Scalable TCP's law beside the standard slow start: a gentle cut, and growth in proportion."""

    def on_ack(
        self, window: policy.Window, limits: policy.Limits, ack: policy.AckFacts
    ) -> policy.Window:
        if ack.flight_before_bytes < window.cwnd_bytes or ack.in_fast_recovery:
            return window
        if window.cwnd_bytes <= window.ssthresh_bytes:
            growth = min(ack.acked_bytes, limits.slow_start_increase_max_bytes)
        else:
            growth = ack.acked_bytes // 100
        return policy.Window(window.cwnd_bytes + growth, window.ssthresh_bytes)

    def on_fast_retransmit(self, window: policy.Window, limits: policy.Limits) -> policy.Window:
        cwnd = max(window.cwnd_bytes - window.cwnd_bytes // 8, limits.ssthresh_floor_bytes)
        return policy.Window(cwnd, cwnd)

    def on_timeout(self, window: policy.Window, limits: policy.Limits) -> policy.Window:
        ssthresh = max(window.cwnd_bytes // 2, limits.ssthresh_floor_bytes)
        return policy.Window(limits.packet_bytes, ssthresh)


def main() -> None:
    for control in ("rfc9260", Gentle):
        runs = sim.run(SCENARIO, seeds=5, congestion_control=control)
        rates = [run["goodput_bps"] / 1e6 for run in runs]
        name = control if isinstance(control, str) else control.__name__
        print(f"{name:8} {sum(rates) / len(rates):.1f} Mbit/s")


if __name__ == "__main__":
    main()
