//! Beginning where much is lost: the profile `fast` repeats INIT and COOKIE ECHO often.

use std::time::Duration;

use manypath_proto::{AssocClosed, Instant, PathId};
use manypath_sim::chunk_type::{COOKIE_ACK, COOKIE_ECHO, DATA, INIT};
use manypath_sim::{Pair, PairBuilder, PathSpec, QueueLimit, millis, secs, shared_key};

/// One path of 45 ms, as the command line has it.
fn one_path() -> PairBuilder {
    Pair::one_path("cmt-pf").profile("fast")
}

/// When the receiver's application has the first bytes, with that loss each way.
fn begins(builder: PairBuilder, loss: f64, seed: u64) -> Option<Instant> {
    let mut t = builder.loss(loss).seed(seed).lean().start();
    t.a.send(0, 200); // a hello
    t.run_until_true(secs(60), |t| t.z.received_bytes() > 0).then(|| t.net.now())
}

/// How many of 1,000 runs do not begin within that time, and the latest that begins at all.
fn late(builder: &PairBuilder, loss: f64, within: Instant) -> (usize, Duration) {
    let times: Vec<_> = (0..1000).map(|seed| begins(builder.clone(), loss, seed)).collect();
    let latest = times.iter().flatten().max().map_or(Duration::ZERO, |at| *at - Instant::ZERO);
    (times.iter().filter(|at| at.is_none_or(|at| at > within)).count(), latest)
}

#[test]
fn ninety_nine_of_a_hundred_begin_soon_whatever_is_lost() {
    for (loss, within) in [(0.1, secs(3)), (0.2, secs(6)), (0.3, secs(10))] {
        let (late, latest) = late(&one_path(), loss, within);
        println!("loss {loss}: {late} of 1000 later than {within:?}, the last at {latest:?}");
        assert!(late <= 10, "loss {loss}: {late} of 1000 begin later than {within:?}");
    }
}

#[test]
fn two_paths_begin_sooner_than_one() {
    let two = Pair::two_paths("cmt-pf").profile("fast");
    let (late, latest) = late(&two, 0.3, secs(5));
    println!("two paths: {late} of 1000 later than 5 s, the last at {latest:?}");
    assert!(late <= 10, "{late} of 1000 begin later than 5 s");
}

/// A repeated INIT is padded; more than fits a packet never left.
#[test]
fn a_repeated_init_fits_a_small_mtu() {
    for mtu in ["512", "576", "1280"] {
        for is_protected in [false, true] {
            let builder = one_path().set("mtu", mtu);
            let builder = if is_protected { builder.keys(shared_key()) } else { builder };
            let mut t = builder.loss(1.0).start();
            t.run_until(millis(100));
            t.net.path(0).set_loss(0.0);
            let begins = t.run_until_true(secs(2), |t| t.a.is_established());
            assert!(begins, "mtu {mtu}, protected {is_protected}");
            assert!(t.sent(INIT).count() > 1, "the first one was lost");
        }
    }
}

#[test]
fn the_hello_travels_with_the_cookie() {
    let mut t = one_path().start();
    t.a.send(0, 200);
    t.run_to_end(secs(10));
    let first_data = t.sent(DATA).by(t.a.node()).first();
    assert_eq!(first_data, t.sent(COOKIE_ECHO).first(), "RFC 9260 §5.1, C: bundled");
    assert!(first_data < t.sent(COOKIE_ACK).first());
    assert_eq!((t.z.received_messages(), t.sent(DATA).by(t.a.node()).count()), (1, 1));
}

#[test]
fn what_does_not_fit_beside_the_cookie_waits_until_it_is_acknowledged() {
    let mut t = one_path().start();
    t.a.send(0, 200);
    t.a.send(0, 20_000);
    t.run_to_end(secs(10));
    assert_eq!(t.z.received_messages(), 2);
    let data = t.sent(DATA).by(t.a.node());
    let before = data.until(t.sent(COOKIE_ACK).first().expect("answered")).count();
    assert_eq!(before, 1, "RFC 9260 §5.1, C: nothing but COOKIE ECHO until COOKIE ACK");
}

#[test]
fn a_lost_cookie_takes_its_data_along_when_it_is_repeated() {
    let mut t = one_path().start();
    t.a.send(0, 200);
    t.run_until(millis(80));
    t.net.path(0).forward().cut_for(Duration::from_millis(500));
    t.run_to_end(secs(10));
    let (cookies, data) = (t.sent(COOKIE_ECHO).times(), t.sent(DATA).by(t.a.node()).times());
    assert_eq!(cookies.len(), 3, "{cookies:?}");
    assert_eq!(cookies[1] - cookies[0], Duration::from_millis(250), "handshake_rto");
    assert_eq!(cookies[2] - cookies[1], Duration::from_millis(500), "and its back-off");
    assert_eq!((data, t.z.received_messages()), (cookies, 1));
}

#[test]
fn a_lost_cookie_ack_costs_no_second_message() {
    let mut t = one_path().start();
    t.a.send(0, 200);
    t.run_until(millis(100));
    t.net.path(0).reverse().cut_for(Duration::from_millis(400));
    t.a.send(0, 300);
    t.run_to_end(secs(10));
    assert_eq!((t.z.received_messages(), t.z.epoch()), (2, 0), "RFC 9260 §5.2.4, action D");
    assert!(t.net.now() < secs(1), "{:?}", t.net.now());
}

#[test]
fn the_cookie_has_a_back_off_of_its_own() {
    let mut t = one_path().start();
    t.net.path(0).cut();
    t.run_until(secs(6));
    t.net.path(0).restore();
    t.run_until_true(secs(20), |t| t.sent(COOKIE_ECHO).count() > 0);
    t.net.path(0).cut_for(Duration::from_millis(400));
    t.run_until_true(secs(20), |t| t.a.is_established());
    let times = t.sent(COOKIE_ECHO).times();
    assert_eq!(times[1] - times[0], Duration::from_millis(250), "INIT had backed off to 1 s");
}

#[test]
fn init_takes_all_paths_at_once_and_the_first_answer_chooses() {
    let mut t = Pair::two_paths("cmt-pf").profile("fast").start();
    t.net.path(0).cut();
    t.a.send(0, 200);
    t.run_until_true(secs(5), |t| t.z.received_bytes() > 0);
    assert!(t.net.now() < millis(200), "one and a half round trips: {:?}", t.net.now());
    let inits = [PathId(0), PathId(1)].map(|path| t.sent(INIT).on(path).count());
    assert_eq!(inits, [1, 1]);
    t.run_for(Duration::from_secs(1));
    assert!(t.a.is_established());
    assert_eq!((t.a.epoch(), t.z.epoch()), (0, 0), "one association");
}

#[test]
fn two_answers_make_one_association() {
    let mut t = Pair::two_paths("cmt-pf").profile("fast").start();
    t.a.send_file(1_000_000);
    t.run_to_end(secs(20));
    assert_eq!((t.z.received_bytes(), t.z.epoch()), (1_000_000, 0));
    assert_eq!(t.sent(COOKIE_ECHO).count(), 1, "RFC 9260 §5.2.3: the second INIT ACK is late");
}

#[test]
fn nobody_there_is_found_out_after_about_a_minute_as_before() {
    let mut t = one_path().start();
    t.net.path(0).cut();
    t.run_until(secs(200));
    assert_eq!(t.a.closed(), Some(&AssocClosed::HandshakeTimedOut));
    let last = t.sent(INIT).times().last().copied().expect("sent");
    assert!((secs(60)..secs(66)).contains(&last), "with RTO.Max 10 s it was 55 s: {last:?}");
}

/// How long two messages in one packet take from the client or the server of a new association if
/// its path of 45 ms loses everything for this time.
fn first_words(client_speaks: bool, outage: Duration) -> Duration {
    let mut t = Pair::one_path("adaptive").profile("fast").start();
    t.run_until_true(secs(1), |t| t.a.is_established() && t.z.is_established());
    let link = t.net.path(0);
    let way = if client_speaks { link.forward() } else { link.reverse() };
    way.cut_for(outage);
    t.run_for(Duration::from_millis(1));
    let start = t.net.now();
    for _ in 0..2 {
        let speaker = if client_speaks { &mut t.a } else { &mut t.z };
        speaker.send(0, 200);
    }
    t.run_until_true(secs(5), |t| t.a.received_messages() + t.z.received_messages() == 2);
    t.net.now() - start
}

#[test]
fn lost_first_words_of_either_end_are_repeated_after_the_round_trip_of_the_handshake() {
    for client_speaks in [true, false] {
        let once = first_words(client_speaks, Duration::from_millis(5));
        // A tail-loss probe after two round trips of 90 ms and the delay of a SACK.
        assert!(once < Duration::from_millis(260), "client {client_speaks}: {once:?}");
    }
}

/// The longest time without a delivery in a transfer that begins with a hello, if the queue of one
/// path holds one packet. The file is offered so long after the handshake.
fn longest_gap(file_after: Duration, seed: u64) -> Duration {
    let path = |mbps, ms| PathSpec::default().rate_mbps(mbps).delay_ms(ms);
    let small = path(5.5, 2.0).queue(QueueLimit::Bytes(2750));
    let paths = vec![path(29.4, 3.0).queue(QueueLimit::Bytes(44_100)), small];
    let mut t = Pair::paths("adaptive", paths).profile("fast").seed(seed).lean().start();
    t.a.send(0, 20);
    assert!(t.run_until_true(secs(1), |t| t.a.is_established()));
    t.run_for(file_after);
    t.a.send_file(1 << 40);
    let (mut last, mut bytes, mut gap) = (t.net.now(), 0, Duration::ZERO);
    t.run_until_true(millis(1500), |t| {
        if t.z.received_bytes() > bytes {
            gap = gap.max(t.net.now() - last);
            (last, bytes) = (t.net.now(), t.z.received_bytes());
        }
        false
    });
    assert!(bytes > 1_000_000, "{bytes} bytes arrived");
    gap
}

#[test]
fn a_queue_that_overflows_at_once_holds_nothing_up() {
    let gap = |seed| longest_gap(Duration::from_micros(2000 + 80 * seed), seed);
    let longest = (0..100).map(gap).max().expect("a hundred");
    println!("the longest gap of a hundred starts is {longest:?}");
    assert!(longest < Duration::from_millis(100), "{longest:?}");
}
