"""The scenarios in which the model must hold, and the changes of it that must be noticed."""

from dataclasses import dataclass, field

# The message of spin for a run that goes round in circles, beside the names of properties.
LIVELOCK = "non-progress cycle"


@dataclass(frozen=True)
class Scenario:
    """Bounds of a run, by their names in the process init of association.pml."""
    bounds: dict = field(default_factory=dict)
    # Looks for runs that go round in circles, too.
    seeks_cycles: bool = False


@dataclass(frozen=True)
class Failing:
    """A scenario in which a property does not hold."""
    scenario: str
    violated: str


BOTH = {"SHUTDOWNS_A": 1, "SHUTDOWNS_Z": 1}

SCENARIOS = {
    # Both ends begin at once; packets are lost, repeated and overtaken.
    "opening": Scenario({"CONNECTS_Z": 1, "ACCEPTS_A": 1, "LOSSES": 1, "DUPLICATES": 1, "EARLY": 1},
                        seeks_cycles=True),
    "stale-cookie": Scenario({"STALE": 1, "LOSSES": 2, "EARLY": 1}, seeks_cycles=True),
    "stale-cookie-in-collision": Scenario({"CONNECTS_Z": 1, "ACCEPTS_A": 1, "STALE": 1, "DUPLICATES": 1, "EARLY": 1}),
    "restart-in-collision":
        Scenario({"CONNECTS_Z": 2, "ACCEPTS_A": 1, "RESTARTS_Z": 1, "EARLY": 1, "PROBES": 1}),
    "shutdown": Scenario({**BOTH, "DATA_A": 1, "DATA_Z": 1, "LOSSES": 1, "DUPLICATES": 1, "EARLY": 1}),
    # A path fails for good, at any time.
    "failing-path":
        Scenario({**BOTH, "DATA_A": 1, "DATA_Z": 1, "LOSSES": 1, "EARLY": 1, "FAILING_PATHS": 1, "LIMIT": 8}),
    "restart-of-client": Scenario({"CONNECTS_A": 2, "RESTARTS_A": 1, "DUPLICATES": 1, "EARLY": 2}),
    "refusal": Scenario({"SHUTDOWNS_A": 1, "CONNECTS_A": 3, "RESTARTS_A": 1, "REFUSALS": 2}),
    "restart-twice": Scenario({"CONNECTS_A": 3, "RESTARTS_A": 2, "EARLY": 1}),
    "restart-of-server": Scenario({"CONNECTS_A": 2, "RESTARTS_Z": 1, "DUPLICATES": 1, "EARLY": 2, "PROBES": 1}),
    "restart-in-shutdown": Scenario({**BOTH, "CONNECTS_A": 2, "DATA_A": 2, "DATA_Z": 2, "RESTARTS_A": 1, "EARLY": 1}),
    "restart-of-server-in-shutdown":
        Scenario({**BOTH, "CONNECTS_A": 2, "DATA_A": 2, "DATA_Z": 2, "RESTARTS_Z": 1, "EARLY": 1}),
    "abort": Scenario({**BOTH, "CONNECTS_A": 2, "DATA_A": 1, "ABORTS_A": 1, "ABORTS_Z": 1, "EARLY": 1}),
    # One packet of an attacker who knows addresses and ports, but no tag.
    "forgery": Scenario({"SHUTDOWNS_A": 1, "DATA_Z": 1, "FORGERIES": 1, "EARLY": 1}, seeks_cycles=True),
    # The network fails for longer than the ends wait.
    "giving-up": Scenario({**BOTH, "DATA_A": 1, "DATA_Z": 1, "LOSSES": 3, "EARLY": 1, "LIMIT": 1, "MAY_FAIL": 1}),
    "no-circles": Scenario({**BOTH, "DATA_A": 1, "ABORTS_A": 1, "RESTARTS_A": 1, "CONNECTS_A": 2, "DUPLICATES": 1},
                           seeks_cycles=True),
}

# Each changes a rule of the model.
MUTATIONS = {
    "crossing_init_gets_new_tag": Failing("opening", "handshake_completes"),
    "collision_keeps_peer_tag": Failing("opening", "handshake_completes"),
    "late_cookie_counts": Failing("opening", "old_cookie_moves_nothing"),
    "stale_cookie_is_ignored": Failing("stale-cookie", LIVELOCK),
    "used_cookie_counts": Failing("abort", "tag_is_used_once"),
    "cookie_needs_no_mac": Failing("restart-of-server", "tag_is_used_once"),
    "restart_keeps_tag": Failing("restart-of-client", "restart_renews_tags"),
    "restart_needs_no_tie_tags": Failing("restart-twice", "old_cookie_moves_nothing"),
    "init_ends_association": Failing("forgery", "forgery_moves_nothing"),
    "abort_needs_no_tag": Failing("forgery", "forgery_moves_nothing"),
    "shutdown_does_not_wait": Failing("shutdown", "shutdown_loses_no_data"),
    "shutdown_ack_does_not_wait": Failing("shutdown", "shutdown_loses_no_data"),
    "shutdown_sent_takes_no_data": Failing("no-circles", LIVELOCK),
    "crossing_shutdown_is_ignored": Failing("no-circles", LIVELOCK),
    "reflected_complete_is_ignored": Failing("shutdown", "shutdown_completes"),
    "late_shutdown_ack_is_ignored": Failing("shutdown", "shutdown_completes"),
    "late_packets_draw_abort": Failing("shutdown", "shutdown_is_graceful"),
    "data_reopens": Failing("shutdown", "states_fit"),
    "shutdown_has_no_timer": Failing("shutdown", "nobody_waits_for_ever"),
    "timers_keep_their_path": Failing("failing-path", "handshake_completes"),
    "abort_is_answered": Failing("no-circles", LIVELOCK),
    # Rules of RFC 9260 that do not hold these properties. README.md tells their stories.
    "newer_cookie_has_no_action": Failing("restart-of-client", "handshake_completes"),
    "open_association_changes_peer": Failing("restart-in-collision", "old_cookie_moves_nothing"),
    "old_cookie_changes_peer": Failing("restart-in-collision", "ends_agree"),
    "stale_cookie_keeps_tag": Failing("stale-cookie", "ends_agree"),
}
