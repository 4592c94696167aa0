use bytes::Bytes;
use manypath_wire::{Checksum, Chunk, CommonHeader, Packet, PacketBuilder};

use super::*;
use crate::policy::recovery::{HeartbeatRules, RoomRules, SackRules, T3Rules};
use crate::tx::Fragment;

/// Rules for tests of acknowledgement.
pub(in crate::tx) const RULES: AckRules<'static> = AckRules {
    by: &Rules {
        sacks: SackRules {
            scope: ReportScope::Path,
            compares: SfrCompares::Order,
            mfr: false,
            mfr_on_one_path: true,
            cuc: Cuc::V2,
            missing_reports: 3,
            reports_after_timeout: true,
            highest_stays: false,
            waiting_is_reported: false,
            overtaken_revokes: false,
            waiting_used_cwnd: false,
            cum_ack_clears_errors: false,
        },
        t3: T3Rules {
            watches: T3Watches::EarliestSent,
            covers_waiting: false,
            restarts_for_lower: false,
        },
        room: RoomRules { of_headers: false, of_waiting: false },
        heartbeats: HeartbeatRules {
            from_sending: false,
            failed_at_once: false,
            none_at_start: false,
            halved: false,
            repeated_at_once: true,
            one_at_a_time: false,
        },
        waiting_takes_cwnd: false,
        growth_needs_used_window: false,
        decays_in_silence: false,
        holds_data: false,
        verifies_first: false,
        duplicates_count: false,
    },
    dac: false,
    reports_gaps: true,
    in_fast_recovery: false,
    echo: None,
    via: None,
    is_full: false,
    waits_for_late: true,
};

fn sack(cum: u32, gaps: &[(u16, u16)]) -> Sack {
    let header = CommonHeader { source_port: 1, destination_port: 1, verification_tag: 1 };
    let mut bytes = Vec::new();
    let mut packet = PacketBuilder::new(&mut bytes, header, 1400);
    packet.push_sack(Tsn(cum), 1 << 20, 0, gaps.iter().copied(), std::iter::empty());
    packet.finish(false);
    let packet = Packet::parse(Bytes::from(bytes), Checksum::Ignore).expect("well formed");
    match packet.chunks().next() {
        Some(Ok(Chunk::Sack(sack))) => sack,
        other => panic!("not a SACK: {other:?}"),
    }
}

/// TSNs 1 to 20, alternately on two paths.
fn outstanding() -> Outstanding {
    let mut out = Outstanding::new(Tsn(1));
    for id in [PathId(0), PathId(1)] {
        out.add_path(id);
    }
    for n in 0..20u8 {
        let fragment = Fragment::whole(b"data", n.into());
        out.push(fragment, PathId(n % 2), Instant::ZERO);
    }
    out
}

fn acked(out: &Outstanding) -> Vec<u32> {
    (1..=20).filter(|&t| out.get(Tsn(t)).is_some_and(|s| s.state == TsnState::Acked)).collect()
}

#[test]
fn an_older_sack_that_reports_beyond_a_cut_newer_one_revokes_nothing() {
    let mut out = outstanding();
    let mut digest = SackDigest::default();
    // The newer SACK arrives first; its packet had room for two blocks.
    let newer = sack(0, &[(2, 5), (7, 8)]);
    assert_eq!(out.acknowledge(&newer, &RULES, Instant::ZERO, &mut digest), Ok(true));
    let older = sack(0, &[(2, 3), (7, 7), (12, 12)]);
    assert_eq!(out.acknowledge(&older, &RULES, Instant::ZERO, &mut digest), Ok(true));
    assert!(digest.stale, "its a_rwnd is out of date");
    assert_eq!(acked(&out), [2, 3, 4, 5, 7, 8, 12]);
    out.check_invariants();
}

#[test]
fn an_older_sack_that_ends_before_what_a_newer_one_reported_may_be_a_cut_one() {
    let mut out = outstanding();
    let mut digest = SackDigest::default();
    let newer = sack(0, &[(2, 8)]);
    assert_eq!(out.acknowledge(&newer, &RULES, Instant::ZERO, &mut digest), Ok(true));
    assert!(!digest.cut_or_stale);
    for (cum, gap, expected) in [(0, (2, 6), true), (0, (2, 9), false), (2, (2, 2), false)] {
        let other = sack(cum, &[gap]);
        assert_eq!(out.acknowledge(&other, &RULES, Instant::ZERO, &mut digest), Ok(true));
        assert_eq!(digest.cut_or_stale, expected, "{cum} {gap:?}");
        assert!(!digest.stale);
    }
    assert_eq!(acked(&out), [4, 5, 6, 7, 8, 9], "nothing is revoked");
    out.check_invariants();
}

#[test]
fn a_chunk_is_beyond_what_the_receiver_has_once_it_dropped_what_was_above() {
    for is_full in [false, true] {
        let mut out = outstanding();
        let mut digest = SackDigest::default();
        // TSNs 12 and 20 of path 1 are missing, and the receiver has some between them.
        let first = sack(0, &[(2, 10), (13, 19)]);
        assert_eq!(out.acknowledge(&first, &RULES, Instant::ZERO, &mut digest), Ok(true));
        assert!(!out.is_beyond_received(PathId(1)));
        let rules = AckRules { is_full, ..RULES };
        let second = sack(0, &[(2, 10)]);
        assert_eq!(out.acknowledge(&second, &rules, Instant::ZERO, &mut digest), Ok(true));
        let may_be_cut = is_full;
        assert_eq!(out.is_beyond_received(PathId(1)), !may_be_cut);
        assert!(!out.is_beyond_received(PathId(0)), "TSN 1 is below what it has");
        out.check_invariants();
    }
}

#[test]
fn a_sack_that_moves_the_cumulative_ack_shows_what_was_reneged() {
    let mut out = outstanding();
    let mut digest = SackDigest::default();
    let first = sack(0, &[(3, 6), (9, 9)]);
    assert_eq!(out.acknowledge(&first, &RULES, Instant::ZERO, &mut digest), Ok(true));
    // TSNs 1 and 2 arrived; 5 and 6 were dropped again.
    let second = sack(4, &[(5, 5)]);
    assert_eq!(out.acknowledge(&second, &RULES, Instant::ZERO, &mut digest), Ok(true));
    assert!(!digest.stale);
    assert_eq!(acked(&out), [9], "RFC 9260 §6.2.1, D iii");
    assert_eq!(out.get(Tsn(5)).map(|s| s.state), Some(TsnState::InFlight));
    out.check_invariants();
}

#[test]
fn the_ack_of_a_retransmission_leaves_the_pipes_of_both_paths() {
    let mut out = outstanding();
    out.counts_lost = true;
    let mut digest = SackDigest::default();
    let size = out.get(Tsn(1)).expect("sent").size();
    let pipes = |out: &Outstanding| [0, 1].map(|id| out.pipe(PathId(id)) / size);
    assert_eq!(pipes(&out), [10, 10]);
    // TSNs 3, 5 and 7 arrive, all of path 0: 1 is lost there.
    let gaps = sack(0, &[(3, 3), (5, 5), (7, 7)]);
    assert_eq!(out.acknowledge(&gaps, &RULES, Instant::ZERO, &mut digest), Ok(true));
    assert_eq!(pipes(&out), [7, 10], "one report is not enough");
    for more in [9, 11] {
        let gaps = sack(0, &[(3, 3), (5, 5), (7, 7), (more, more)]);
        assert_eq!(out.acknowledge(&gaps, &RULES, Instant::ZERO, &mut digest), Ok(true));
    }
    assert_eq!(out.next_marked(PathId(0)), Some(Tsn(1)));
    assert_eq!(pipes(&out), [5, 10], "what is lost stays (mTCP paper, section 3.1.2)");
    out.check_invariants();
    out.retransmit(Tsn(1), PathId(1), Instant::ZERO);
    assert_eq!(pipes(&out), [5, 11]);
    let filled = sack(1, &[(2, 2), (4, 4), (6, 6), (8, 8), (10, 10)]);
    assert_eq!(out.acknowledge(&filled, &RULES, Instant::ZERO, &mut digest), Ok(true));
    assert_eq!(pipes(&out), [4, 10], "both are less by one");
    out.check_invariants();
}

#[test]
fn a_timeout_empties_the_pipe_of_its_path() {
    let mut out = outstanding();
    out.counts_lost = true;
    let mut digest = SackDigest::default();
    for high in [5, 7, 9] {
        let gaps = sack(0, &[(3, 3), (high, high)]);
        assert_eq!(out.acknowledge(&gaps, &RULES, Instant::ZERO, &mut digest), Ok(true));
    }
    out.retransmit(Tsn(1), PathId(1), Instant::ZERO);
    assert!(out.pipe(PathId(0)) > 0);
    out.mark_path(PathId(0), None);
    out.forget_lost(PathId(0));
    assert_eq!(out.pipe(PathId(0)), 0, "mTCP paper, section 3.1.2");
    out.check_invariants();
}
