use super::*;

/// A path of this real size, and the search on it: what was asked, in order.
struct Walk {
    pmtu: Pmtu,
    config: Config,
    real: usize,
    nonce: u64,
    asked: Vec<usize>,
}

impl Walk {
    fn new(link: Option<usize>, real: usize) -> Walk {
        let config = Config::build("fast", "sctp", &[]).expect("valid");
        let mut pmtu = Pmtu::new(&config, link);
        pmtu.start();
        Walk { pmtu, config, real, nonce: 0, asked: Vec::new() }
    }

    /// Sends what is due; what fits is answered, in order. True if something was answered.
    fn round(&mut self) -> bool {
        let mut arrived = Vec::new();
        while self.pmtu.is_due() {
            self.nonce += 1;
            let size = self.pmtu.take_due(self.nonce).expect("due");
            self.asked.push(size);
            if size <= self.real {
                arrived.push(self.nonce);
            }
            self.pmtu.check_invariants();
        }
        arrived.iter().for_each(|nonce| assert_eq!(self.pmtu.on_answer(*nonce), Some(())));
        !arrived.is_empty()
    }

    /// Until nothing is left to try; returns the size found and the rounds without an answer.
    fn run(&mut self) -> (usize, usize) {
        let mut lost = 0;
        for _ in 0..500 {
            if self.pmtu.wait() != Wait::ForAnswer {
                break;
            }
            if !self.round() {
                lost += 1;
                self.pmtu.on_timer();
            }
            self.pmtu.check_invariants();
        }
        assert_ne!(self.pmtu.wait(), Wait::ForAnswer, "the search ends; asked {:?}", self.asked);
        (self.pmtu.size(), lost)
    }
}

#[test]
fn a_clean_path_is_known_after_one_answer() {
    let mut w = Walk::new(Some(1500), 1500);
    assert_eq!(w.pmtu.size(), 1280, "what a path begins with");
    assert_eq!((w.run(), w.asked), ((1500, 0), vec![1500]));
}

#[test]
fn jumbo_frames_are_found_where_the_interface_takes_them() {
    let mut w = Walk::new(Some(9000), 9000);
    assert_eq!((w.run(), w.asked), ((9000, 0), vec![1500, 9000]));
    let mut w = Walk::new(Some(65_536), 65_536);
    assert_eq!(w.run().0, 9000, "pmtu_max");
    let mut w = Walk::new(None, 9000);
    assert_eq!(w.run().0, 1500, "nothing is known of the interface");
}

#[test]
fn the_search_ends_near_the_truth_whatever_that_is() {
    for real in (576..=9100).step_by(4).chain([1422, 1498]) {
        let mut w = Walk::new(Some(9000), real);
        let (size, lost) = w.run();
        let possible = real.min(9000) & !3;
        assert!(size <= possible, "{size} does not pass a path of {real}");
        assert!(possible - size <= STEP, "{size} of {real} found; asked {:?}", w.asked);
        assert!(lost <= 3 * 16, "{real}: {lost} rounds without an answer");
    }
}

#[test]
fn the_sizes_of_real_links_are_found_soon() {
    let lost = |real| Walk::new(Some(1500), real).run().1;
    let rounds = [1492, 1420, 1400, 1280].map(lost);
    assert_eq!(rounds, [6, 15, 18, 21], "1500 costs three, and each step of the search that fails");
}

#[test]
fn an_interface_of_any_size_is_an_upper_bound() {
    for link in [0, 68, 576, 1000, 1420, 1500, 70_000] {
        let mut w = Walk::new(Some(link), link.max(576));
        let expected = link.clamp(576, 9000) & !3;
        let (size, _) = w.run();
        assert_eq!(size, expected, "interface of {link}");
        assert!(w.asked.iter().all(|size| *size <= expected), "{:?}", w.asked);
    }
}

#[test]
fn a_doubt_settles_a_black_hole_in_one_round() {
    for (real, expected) in [(1500, 1500), (1400, 1280), (1280, 1280), (576, 576)] {
        let mut w = Walk::new(Some(1500), 1500);
        w.run();
        w.real = real;
        assert!(w.pmtu.doubt());
        assert!(w.round(), "asked for {:?}", w.asked);
        assert_eq!(w.pmtu.size(), expected, "{real}");
        assert!(w.run().0 <= real);
    }
}

#[test]
fn a_probe_that_only_came_late_makes_good() {
    let mut w = Walk::new(Some(1500), 1500);
    w.run();
    assert!(w.pmtu.doubt());
    let sizes: Vec<_> = (100..103).map(|nonce| w.pmtu.take_due(nonce)).collect();
    assert_eq!(sizes, [Some(1500), Some(1280), Some(576)]);
    w.pmtu.on_answer(101);
    assert_eq!(w.pmtu.size(), 1280);
    w.pmtu.on_answer(100);
    assert_eq!(w.pmtu.size(), 1500);
    assert_eq!(w.pmtu.on_answer(100), None, "an answer counts once");
}

#[test]
fn a_path_that_is_down_keeps_its_size() {
    let mut w = Walk::new(Some(1500), 1500);
    w.run();
    w.real = 0;
    assert!(w.pmtu.doubt());
    for _ in 0..20 {
        w.round();
        if w.pmtu.is_in_doubt() {
            w.pmtu.on_timer();
        }
    }
    assert_eq!(w.pmtu.size(), 1500);
    assert!(w.asked.len() <= 12, "and is not probed for ever: {:?}", w.asked);
}

#[test]
fn losses_of_long_packets_in_a_row_are_a_sign_and_others_are_none() {
    let mut w = Walk::new(Some(1500), 1500);
    w.run();
    for _ in 0..10 {
        assert!(!w.pmtu.note_sack(1500, 1500), "long ones arrive, too");
        assert!(!w.pmtu.note_sack(0, 576), "short ones get lost");
        assert!(!w.pmtu.note_sack(0, 1400));
        assert!(!w.pmtu.note_sack(1400, 0), "one as long arrives");
    }
    assert!(!w.pmtu.note_sack(100, 1500));
    assert!(!w.pmtu.note_sack(100, 1500));
    assert!(w.pmtu.note_sack(100, 1500), "the third in a row");
    assert!(w.pmtu.is_due());
}

#[test]
fn a_router_names_the_size_and_it_is_checked_before_it_is_used() {
    let mut w = Walk::new(Some(1500), 1420);
    w.pmtu.take_due(1000);
    w.pmtu.on_packet_too_big(1420); // the probe of 1500
    assert_eq!((w.pmtu.size(), w.run().0), (1280, 1420));
    assert_eq!(w.asked, [1420]);

    w.real = 1400;
    w.pmtu.on_packet_too_big(1400); // data of 1420
    assert_eq!((w.pmtu.size(), w.run().0), (1280, 1400));

    w.real = 600;
    w.pmtu.on_packet_too_big(600);
    assert_eq!(w.pmtu.size(), 1280, "less than the base only by an answer");
    assert_eq!(w.run().0, 600);
}

#[test]
fn lies_of_routers_change_nothing_or_no_more_than_the_base() {
    let mut w = Walk::new(Some(1500), 1500);
    w.run();
    for lie in (0..68).chain([68, 296, 575, 1500, 1501, 9000, 65_535, usize::MAX]) {
        w.pmtu.on_packet_too_big(lie);
        assert_eq!((w.pmtu.size(), w.pmtu.is_due()), (1500, false), "a message of {lie}");
    }
    for lie in [576, 577, 1279, 1280, 1281, 1499] {
        let mut w = Walk::new(Some(1500), 1500);
        w.run();
        w.pmtu.on_packet_too_big(lie);
        assert_eq!(w.pmtu.size(), 1280, "a message of {lie}");
        w.run();
        assert!(w.pmtu.size() >= 1280, "nothing was lost: {}", w.pmtu.size());
        w.pmtu.on_timer(); // the raise timer
        assert_eq!(w.run().0, 1500, "in the end the truth comes out");
    }
}

#[test]
fn what_the_system_refuses_is_not_tried_again() {
    let mut w = Walk::new(None, 1500);
    w.pmtu.on_refused(1500);
    w.pmtu.set_link(&w.config, 1420);
    assert_eq!(w.run().0, 1420);
    w.pmtu.on_refused(1420);
    assert_eq!(w.pmtu.size(), 1280);
    w.pmtu.set_link(&w.config, 1000);
    assert_eq!(w.pmtu.size(), 1000, "an interface is believed");
    w.pmtu.set_link(&w.config, 9000);
    assert_eq!(w.run().0, 1500);
}

#[test]
fn without_discovery_nothing_is_asked() {
    let config = Config::build("rfc9260", "sctp", &[]).expect("valid");
    let mut pmtu = Pmtu::new(&config, Some(9000));
    pmtu.start();
    pmtu.on_packet_too_big(1280);
    pmtu.on_refused(1500);
    pmtu.set_link(&config, 1280);
    pmtu.on_timer();
    let is_doubted = pmtu.doubt() || pmtu.note_sack(0, 1500);
    assert_eq!((pmtu.size(), pmtu.is_due(), is_doubted), (1500, false, false));
    assert_eq!(pmtu.wait(), Wait::Never);
}
