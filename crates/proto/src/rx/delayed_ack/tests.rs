use super::*;

const CONFIG: SackConfig = SackConfig {
    sack_delay: Duration::from_millis(200),
    sack_every: 2,
    dac: false,
    first_at_once: true,
    filled_gap_at_once: true,
    counts_duplicates: false,
};
const DAC: SackConfig = SackConfig { dac: true, ..CONFIG };

const IN_ORDER: PacketFacts = PacketFacts {
    any_new: true,
    any_duplicate: false,
    any_dropped: false,
    gap_before: false,
    gap_after: false,
    immediate_bit: false,
};

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// The state after the first SACK of an association.
fn established(config: SackConfig) -> DelayedAck {
    let mut ack = DelayedAck::new(config);
    ack.on_data_packet(at(0), IN_ORDER);
    ack.on_sack_sent();
    ack
}

/// True if one packet alone makes a SACK due.
fn forces(config: SackConfig, facts: PacketFacts) -> bool {
    let mut ack = established(config);
    ack.on_data_packet(at(10), facts);
    ack.is_due(at(10))
}

#[test]
fn the_first_packet_is_acknowledged_at_once() {
    let mut ack = DelayedAck::new(CONFIG);
    assert!(!ack.is_due(at(0)));
    ack.on_data_packet(at(0), IN_ORDER);
    assert!(ack.is_due(at(0)));
    ack.on_sack_sent();
    assert!(!ack.is_due(at(0)));
}

#[test]
fn every_second_packet_is_acknowledged() {
    let mut ack = established(CONFIG);
    ack.on_data_packet(at(10), IN_ORDER);
    assert!(!ack.is_due(at(10)));
    ack.on_data_packet(at(11), IN_ORDER);
    assert!(ack.is_due(at(11)), "RFC 9260 §6.2: at least every second packet");
}

#[test]
fn no_packet_waits_longer_than_the_delay() {
    let mut ack = established(CONFIG);
    assert_eq!(ack.deadline(), None);
    ack.on_data_packet(at(10), IN_ORDER);
    assert_eq!(ack.deadline(), Some(at(210)), "RFC 9260 §6.2: within sack_delay");
    assert!(!ack.is_due(at(209)));
    assert!(ack.is_due(at(210)));
    ack.on_sack_sent();
    assert_eq!(ack.deadline(), None);
    assert!(!ack.is_due(at(1000)));
}

#[test]
fn the_delay_runs_from_the_oldest_packet() {
    let mut ack = established(SackConfig { sack_every: 10, ..CONFIG });
    ack.on_data_packet(at(10), IN_ORDER);
    ack.on_data_packet(at(100), IN_ORDER);
    assert_eq!(ack.deadline(), Some(at(210)));
}

#[test]
fn what_forces_a_sack() {
    let new = IN_ORDER;
    let duplicate = PacketFacts { any_duplicate: true, ..PacketFacts::default() };
    let both = PacketFacts { any_duplicate: true, ..new };
    let dropped = PacketFacts { any_dropped: true, ..PacketFacts::default() };
    let cases = [
        ("in order", new, false, false),
        ("nothing but duplicates", duplicate, true, true),
        ("a duplicate beside new data", both, false, false),
        ("no room", dropped, true, true),
        ("the I bit", PacketFacts { immediate_bit: true, ..new }, true, true),
        ("a gap opens", PacketFacts { gap_after: true, ..new }, true, false),
        ("a gap remains", PacketFacts { gap_before: true, gap_after: true, ..new }, true, false),
        ("the last gap is filled", PacketFacts { gap_before: true, ..new }, true, false),
    ];
    for (name, facts, plain, dac) in cases {
        assert_eq!(forces(CONFIG, facts), plain, "RFC 9260 §6.2, §6.7: {name}");
        assert_eq!(forces(DAC, facts), dac, "CMT §III-C, always delay: {name}");
    }
}

#[test]
fn with_dac_reordered_packets_are_counted_and_reported() {
    let gap = PacketFacts { gap_before: true, gap_after: true, ..IN_ORDER };
    let mut ack = established(DAC);
    assert_eq!(ack.dac_flags(1), 0);
    ack.on_data_packet(at(10), gap);
    assert!(!ack.is_due(at(10)));
    assert_eq!(ack.dac_flags(1), 0, "CMT Fig. 4: 0 reports one packet");
    ack.on_data_packet(at(10), gap);
    assert!(ack.is_due(at(10)));
    assert_eq!(ack.packets_since_sack(), 2);
    assert_eq!(ack.dac_flags(1), 1, "CMT Fig. 4: 1 reports two packets");
    ack.on_data_packet(at(10), gap);
    assert_eq!(ack.dac_flags(1), 1, "one bit says two at most");
    assert_eq!(ack.dac_flags(3), 2);
    ack.on_sack_sent();
    assert_eq!(ack.packets_since_sack(), 0);
}

#[test]
fn without_dac_the_flags_are_zero() {
    let mut ack = established(CONFIG);
    ack.on_data_packet(at(10), IN_ORDER);
    ack.on_data_packet(at(10), IN_ORDER);
    assert_eq!(ack.dac_flags(1), 0, "RFC 9260 §3.3.4: SACK flags are sent as 0");
}

#[test]
fn packets_of_duplicates_are_not_counted() {
    let duplicate = PacketFacts { any_duplicate: true, ..PacketFacts::default() };
    let mut ack = established(DAC);
    ack.on_data_packet(at(10), IN_ORDER);
    ack.on_data_packet(at(10), duplicate);
    assert_eq!(ack.packets_since_sack(), 1);
    assert_eq!(ack.dac_flags(1), 0, "a duplicate is no report of anything missing");
}

#[test]
fn fewer_sacks_on_request() {
    let mut ack = established(CONFIG);
    ack.set_sack_every(4);
    for packet in 1..=4 {
        assert!(!ack.is_due(at(10)), "before packet {packet}");
        ack.on_data_packet(at(10), IN_ORDER);
    }
    assert!(ack.is_due(at(10)));
}

#[test]
fn a_sack_can_be_demanded() {
    let mut ack = established(CONFIG);
    ack.demand_now();
    assert!(ack.is_due(at(0)));
}

#[test]
fn the_sack_of_a_filled_gap_may_be_delayed_like_any_other() {
    let fills = PacketFacts { any_new: true, gap_before: true, ..PacketFacts::default() };
    for at_once in [true, false] {
        let mut ack = established(SackConfig { filled_gap_at_once: at_once, ..CONFIG });
        ack.on_data_packet(Instant::ZERO, fills);
        assert_eq!(ack.is_due(Instant::ZERO), at_once);
        assert!(ack.is_due(Instant::from_millis(200)), "RFC 2960 §6.2");
    }
}
