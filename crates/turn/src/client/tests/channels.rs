//! Channels that the relay forgets before RFC 8656 says, and peers that are silent.

use turn_types::message::CHANNEL_BIND;

use super::*;
use crate::Prefix;

/// The relay's clock jumps by this, and the permission ends. The allocation lasts a day.
const PERMISSION_ENDS: Duration = Duration::from_secs(400);
/// With this jump the channel ends, too.
const CHANNEL_ENDS: Duration = Duration::from_secs(700);
/// Interval of packets to the peer.
const STEP_MS: u64 = 100;

/// A client, and a relay whose clock can jump, so that it forgets channels.
struct World {
    relay: Relay,
    client: Client,
    /// The relay's clock is ahead by this.
    ahead: Duration,
    peer_answers: bool,
    /// True while no datagram passes between client and relay.
    cut: bool,
    /// A datagram that arrives at the client in the next step.
    coming: Option<Vec<u8>>,
    /// Times of requests to bind channels, in ms.
    binds: Vec<u64>,
    /// Times at which packets were not forwarded, in ms.
    lost: Vec<u64>,
    /// Times at which packets of the peer came to the client, in ms.
    heard: Vec<u64>,
}

impl World {
    fn new() -> World {
        let lifetime_max = Duration::from_secs(86_400);
        let mut relay = Relay::new(Limits { lifetime_max, ..Limits::default() });
        let client = relay.client(at(0), address(HOME), address(PEER));
        World {
            relay,
            client,
            ahead: Duration::ZERO,
            peer_answers: true,
            cut: false,
            coming: None,
            binds: Vec::new(),
            lost: Vec::new(),
            heard: Vec::new(),
        }
    }

    /// Passes requests and answers.
    fn talk(&mut self, ms: u64) {
        while let Some(datagram) = self.client.poll_transmit() {
            let message = Message::from_bytes(&datagram).unwrap();
            if message.method() == CHANNEL_BIND {
                self.binds.push(ms);
            }
            if self.cut {
                continue;
            }
            let reply = self.relay.handle(at(ms) + self.ahead, address(HOME), &datagram);
            if let Reply::Answer(answer) = reply {
                self.client.handle(at(ms), &answer);
            }
        }
    }

    /// A packet to the peer; true if the relay forwards it.
    fn send(&mut self, ms: u64) -> bool {
        let Some(header) = self.client.header(at(ms), address(PEER), 5) else { return false };
        let packet = [&header[..], b"hello"].concat();
        let reply = self.relay.handle(at(ms) + self.ahead, address(HOME), &packet);
        !self.cut && matches!(reply, Reply::ToPeer { .. })
    }

    /// The datagram that brings a packet of the peer to the client.
    fn brought(&mut self, ms: u64) -> Option<Vec<u8>> {
        let id = *self.relay.ports.open.keys().next().unwrap();
        let now = at(ms) + self.ahead;
        let back = self.relay.server.handle_peer(now, id, address(PEER), b"hi")?;
        Some(match back.prefix {
            Prefix::Channel(header) => [&header[..], b"hi"].concat(),
            Prefix::Indication(whole) => whole,
        })
    }

    /// Sends a packet every 100 ms; answers come back 100 ms later.
    fn run(&mut self, ms: std::ops::Range<u64>) {
        for ms in ms.step_by(STEP_MS as usize) {
            if let Some(datagram) = self.coming.take()
                && let Received::Data { peer, .. } = self.client.handle(at(ms), &datagram)
            {
                assert_eq!(peer, address(PEER));
                self.heard.push(ms);
            }
            if self.client.poll_timeout().is_some_and(|due| due <= at(ms)) {
                self.client.handle_timeout(at(ms));
            }
            self.talk(ms);
            if !self.send(ms) {
                self.lost.push(ms);
            } else if self.peer_answers {
                self.coming = self.brought(ms);
            }
        }
    }

    /// How long nothing came from the peer after `ms`, until the end of the run.
    fn dead_after(&self, ms: u64) -> Option<u64> {
        // An answer that was under way still came in the first step.
        self.heard.iter().find(|&&heard| heard > ms).map(|heard| heard - ms)
    }
}

#[test]
fn a_channel_that_the_relay_forgets_is_bound_again_after_a_second() {
    for jump in [PERMISSION_ENDS, CHANNEL_ENDS] {
        let mut world = World::new();
        world.run(0..10_000);
        assert_eq!(world.lost, []);
        world.ahead = jump;
        world.run(10_000..300_000);
        let dead = world.dead_after(10_000);
        assert!(dead.is_some_and(|ms| ms <= 1500), "{jump:?}: dead for {dead:?} ms");
        assert!(world.lost.len() <= 12, "{} packets lost", world.lost.len());
    }
}

#[test]
fn a_relay_that_forgets_every_half_minute_costs_a_second_each_time() {
    let mut world = World::new();
    for round in 0..20u64 {
        let begins = round * 30_000;
        world.run(begins..begins + 30_000);
        world.ahead += CHANNEL_ENDS;
    }
    let share = world.lost.len() as f64 / (20.0 * 300.0);
    assert!(share < 0.04, "{:.0} % of the packets lost", share * 100.0);
}

#[test]
fn a_silent_peer_costs_a_request_every_16_s_and_loses_nothing() {
    let mut world = World::new();
    world.peer_answers = false;
    world.run(0..120_000);
    let seconds = [1, 3, 7, 15, 31, 47, 63, 79, 95, 111];
    assert_eq!(world.binds, seconds.map(|s| s * 1000));
    assert_eq!(world.lost, []);

    // The peer is back, and the relay forgets: the first wait is short again.
    world.peer_answers = true;
    world.run(120_000..130_000);
    world.ahead = CHANNEL_ENDS;
    world.run(130_000..140_000);
    assert!(world.dead_after(130_000).is_some_and(|ms| ms <= 1500), "{:?}", world.lost);
}

#[test]
fn a_channel_that_works_or_is_not_used_is_bound_by_the_clock_alone() {
    let mut world = World::new();
    world.run(0..1_000_000);
    assert_eq!(world.binds, [240_000, 480_000, 720_000, 960_000]);
    assert_eq!(world.lost, []);

    let mut relay = Relay::new(Limits::default());
    let mut client = relay.client(at(0), address(HOME), address(PEER));
    assert_eq!(client.poll_timeout(), Some(at(240_000)), "nothing was sent");
    client.header(at(5000), address(PEER), 5);
    assert_eq!(client.poll_timeout(), Some(at(6000)));
}

#[test]
fn a_data_indication_is_data_and_tells_that_the_channel_is_lost() {
    let mut world = World::new();
    // Another channel renews the permission of the peer's address, and outlives the first.
    world.ahead = Duration::from_secs(590);
    world.client.add_peer(at(5000), address("198.51.100.5:9900"));
    world.talk(5000);
    world.ahead = CHANNEL_ENDS;
    world.binds.clear();

    let indication = world.brought(6000).expect("still permitted");
    let Received::Data { peer, payload } = world.client.handle(at(6000), &indication) else {
        panic!("the payload of an indication is dropped")
    };
    assert_eq!((peer, &indication[payload]), (address(PEER), &b"hi"[..]));
    world.talk(6000);
    assert_eq!(world.binds, [6000], "at once");
    assert!(world.send(6001));
    assert_eq!(world.brought(6001).unwrap()[..2], [0x40, 0x00], "through the channel again");

    // Old or forged ones: data, but few requests.
    for ms in 6001..26_000 {
        world.client.handle(at(ms), &indication);
        world.talk(ms);
    }
    assert_eq!(world.binds, [6000, 8000, 12_000, 20_000]);
}

#[test]
fn damaged_and_foreign_indications_are_dropped() {
    let mut world = World::new();
    let stranger = address("198.51.100.77:9899");
    let foreign = crate::server::data_indication(stranger, b"hi").unwrap();
    assert_eq!(world.client.handle(at(6000), &foreign), Received::Other);
    let good = crate::server::data_indication(address(PEER), b"hello").unwrap();
    for index in 0..good.len() {
        assert_eq!(world.client.handle(at(6000), &good[..index]), Received::Other);
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[index] ^= 1 << bit;
            if let Received::Data { peer, payload } = world.client.handle(at(6000), &bad) {
                assert_eq!(peer, address(PEER));
                assert!(payload.end <= bad.len());
            }
        }
    }
}

#[test]
fn a_request_without_an_answer_does_not_close_a_channel() {
    let mut world = World::new();
    world.run(0..239_500);
    // All six requests to bind, due at 240 s, are lost in an outage; the relay forgets nothing.
    world.cut = true;
    world.run(239_500..259_000);
    world.cut = false;
    world.lost.clear();
    world.run(259_000..400_000);
    assert_eq!(world.lost, []);
}

#[test]
fn silence_counts_from_the_time_at_which_the_channel_was_bound() {
    let mut world = World::new();
    world.run(0..239_500);
    world.peer_answers = false;
    world.cut = true;
    world.run(239_500..241_000);
    world.cut = false;
    world.run(241_000..243_000);
    // The request of the clock and two repetitions, of which the second is answered.
    assert_eq!(world.binds, [240_000, 240_500, 241_500, 242_500]);
}
