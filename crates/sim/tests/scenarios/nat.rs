//! A NAT forgets a mapping: a path's source port changes under way.

use std::net::SocketAddr;
use std::time::Duration;

use manypath_sim::{Pair, QueueLimit, secs};

use crate::MIB;

fn public(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], port))
}

#[test]
fn a_sender_behind_a_rebinding_nat_goes_on() {
    for preset in ["sctp", "cmt-pf"] {
        let mut t = Pair::two_paths(preset).connect();
        t.net.path(0).at(secs(2)).rebind_source(public(40_000));
        t.net.path(0).at(secs(4)).rebind_source(public(40_001));
        t.a.send_file(8 * MIB);
        let result = t.run_to_end(secs(120)).result();
        assert!(result.completed, "{preset}: {result:#?}");
        assert!(result.max_delivery_gap_s < 5.0, "{preset}: {}", result.max_delivery_gap_s);
        assert_eq!((t.a.epoch(), t.z.epoch()), (0, 0), "one association throughout");
    }
}

#[test]
fn a_receiver_behind_a_rebinding_nat_is_found_again() {
    let mut t = Pair::two_paths("cmt-pf").connect();
    t.net.path(0).at(secs(2)).rebind_source(public(40_000));
    t.z.send_file(8 * MIB);
    t.run_to_end(secs(120));
    assert_eq!(t.a.received_bytes(), 8 * MIB);
}

#[test]
fn a_lone_path_survives_a_rebinding() {
    let mut t = Pair::one_path("sctp").set("hb_interval", "5 s").connect();
    t.net.path(0).at(secs(2)).rebind_source(public(40_000));
    t.run_until(secs(60));
    assert!(t.a.is_established() && t.z.is_established());
    t.z.send_file(100_000);
    t.a.send_file(100_000);
    t.run_for(Duration::from_secs(60));
    assert!(t.has_delivered_all(), "the heartbeats showed each side the new address");
}

#[test]
fn data_to_the_address_before_a_rebinding_leaves_it_though_the_new_one_answers() {
    // Each answer on the new path, and each SACK of what it carried, had what was outstanding on
    // the old one sent again there. So T3-rtx of the old path never expired, and what was sent in
    // vain took the room of a short queue.
    for queue in [3, 6, 50] {
        for (cut_ms, seed) in [(1500, 1), (1500, 3), (3500, 3), (5000, 4), (7000, 1), (7000, 2)] {
            let mut t = Pair::two_paths("sctp")
                .profile("fast")
                .rate_mbps(10.0)
                .delay_ms(1.0)
                .queue(QueueLimit::Packets(queue))
                .loss(0.05)
                .set("ack_path", "primary")
                .seed(seed)
                .connect();
            t.net.path(0).at(secs(1)).cut();
            t.net.path(1).at(secs(1)).cut_for(Duration::from_millis(cut_ms));
            t.net.path(1).at(secs(1) + Duration::from_millis(500)).rebind_source(public(40_000));
            t.z.send_file(4 * MIB);
            t.a.send_file(MIB);
            t.run_to_end(secs(60));
            assert!(t.has_delivered_all(), "queue of {queue}, {cut_ms} ms, seed {seed}");
        }
    }
}
