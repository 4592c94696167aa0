use super::*;

fn start() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "where virtual time begins")]
    Instant::now()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Somebody tries one wrong password after the other, each as soon as the last was answered; the
/// seconds that each answer took.
fn waits(attempts: &mut Attempts, from: IpAddr, mut now: Instant, count: usize) -> Vec<u64> {
    let mut waits = Vec::new();
    for _ in 0..count {
        let attempt = attempts.begin(from, now).unwrap();
        waits.push(attempt.answer_at.duration_since(now).as_secs());
        now = attempt.answer_at;
    }
    waits
}

#[test]
fn the_sixth_wrong_attempt_is_delayed_and_each_after_it_twice_as_long() {
    let (mut attempts, start) = (Attempts::default(), start());
    let waits = waits(&mut attempts, ip("192.0.2.1"), start, 14);
    assert_eq!(waits, [0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
}

#[test]
fn neighbours_count_as_one_and_others_do_not_wait_for_them() {
    for (guesser, neighbour, other) in [
        ("192.0.2.1", "192.0.2.77", "192.0.3.1"),
        ("2001:db8::1", "2001:db8::2:0:0:1", "2001:db8:0:1::1"),
        ("::ffff:192.0.2.1", "192.0.2.2", "2001:db8::1"),
    ] {
        let (mut attempts, start) = (Attempts::default(), start());
        waits(&mut attempts, ip(guesser), start, 5);
        assert_eq!(waits(&mut attempts, ip(neighbour), start, 1), [1], "{neighbour}");
        assert_eq!(waits(&mut attempts, ip(other), start, 1), [0], "{other}");
    }
}

#[test]
fn attempts_at_the_same_time_wait_for_one_another_or_are_refused() {
    let (mut attempts, start) = (Attempts::default(), start());
    let mut answers = Vec::new();
    let mut refused = 0;
    for _ in 0..1000 {
        match attempts.begin(ip("192.0.2.1"), start) {
            Ok(attempt) => answers.push(attempt.answer_at.duration_since(start).as_secs()),
            Err(again) => {
                assert!(again > Duration::ZERO && again <= DELAY_MAX);
                refused += 1;
            }
        }
    }
    assert_eq!(answers, [0, 0, 0, 0, 0, 1, 3, 7, 15, 31, 63]);
    assert_eq!(refused, 1000 - 11);
    // Who comes again when told to is admitted.
    let again = attempts.begin(ip("192.0.2.1"), start).unwrap_err();
    assert!(attempts.begin(ip("192.0.2.1"), start + again).is_ok());
}

#[test]
fn right_passwords_do_not_count() {
    let (mut attempts, start) = (Attempts::default(), start());
    for _ in 0..1000 {
        let attempt = attempts.begin(ip("192.0.2.1"), start).unwrap();
        assert_eq!(attempt.answer_at, start);
        attempts.right(attempt);
    }
    // Nor do they undo wrong ones.
    waits(&mut attempts, ip("192.0.2.1"), start, 5);
    let sixth = attempts.begin(ip("192.0.2.1"), start).unwrap();
    attempts.right(sixth);
    let sixth = attempts.begin(ip("192.0.2.1"), start + Duration::from_secs(10)).unwrap();
    assert_eq!(sixth.answer_at, start + Duration::from_secs(11));
}

#[test]
fn many_networks_together_are_slow_too() {
    let (mut attempts, start) = (Attempts::default(), start());
    let mut admitted = 0;
    // A new network each second, for ten hours.
    for second in 0..36_000_u32 {
        let from = IpAddr::from((second << 8).to_be_bytes());
        let now = start + Duration::from_secs(second.into());
        admitted += u32::from(attempts.begin(from, now).is_ok());
        assert!(attempts.networks.len() <= 4096);
    }
    assert!((600..=50 + 6 + 602).contains(&admitted), "{admitted}");
}

#[test]
fn who_waits_until_all_is_forgotten_tries_fewer_than_who_goes_on() {
    let hours = |step: &dyn Fn(&mut Attempts, IpAddr, Instant) -> (u32, Instant)| {
        let (mut attempts, start, mut tried) = (Attempts::default(), start(), 0);
        let mut now = start;
        while now.duration_since(start) < Duration::from_secs(10 * 3600) {
            let (more, next) = step(&mut attempts, ip("192.0.2.1"), now);
            (tried, now) = (tried + more, next);
        }
        tried
    };
    let goes_on = hours(&|attempts, from, now| {
        (1, attempts.begin(from, now).unwrap().answer_at + Duration::from_millis(1))
    });
    let waits_long = hours(&|attempts, from, now| {
        let answered = waits(attempts, from, now, 5);
        assert_eq!(answered, [0; 5], "all is forgotten");
        (5, now + FORGOTTEN_AFTER)
    });
    assert!((600..=612).contains(&goes_on), "{goes_on}");
    assert_eq!(waits_long, 50);
}

#[test]
fn a_network_is_forgotten_though_others_go_on() {
    let (mut attempts, start) = (Attempts::default(), start());
    waits(&mut attempts, ip("192.0.2.1"), start, 6);
    for minute in 0..62 {
        let now = start + Duration::from_secs(60 * minute);
        let _ = attempts.begin(ip("198.51.100.1"), now).unwrap();
    }
    let _ = attempts.begin(ip("192.0.2.1"), start + Duration::from_secs(62 * 60)).unwrap();
    assert_eq!(attempts.networks[&network(ip("192.0.2.1"))].wrong, 1);
}

#[test]
fn the_table_is_bounded_and_the_worst_stay_in_it() {
    let (mut attempts, start) = (Attempts::default(), start());
    waits(&mut attempts, ip("192.0.2.1"), start, 10);
    for block in 0..20_000_u128 {
        let from = Ipv6Addr::from_bits((0x2001_0db8_u128 << 96) | (block << 64));
        // Right ones fill the table as well: they are in it while they are under way.
        match attempts.begin(from.into(), start + Duration::from_secs(31)) {
            Ok(attempt) => attempts.right(attempt),
            Err(_) => panic!("right ones do not count"),
        }
        assert!(attempts.networks.len() <= 4096);
    }
    assert_eq!(attempts.networks[&network(ip("192.0.2.1"))].wrong, 10);
}

#[test]
fn networks_that_are_quiet_for_an_hour_leave_a_full_table_first() {
    let (mut attempts, start) = (Attempts::default(), start());
    let of = |block: u32| IpAddr::from((block << 8).to_be_bytes());
    waits(&mut attempts, of(1), start, 4);
    // For three days there is a guesser from elsewhere each minute.
    for minute in 2..4400 {
        let now = start + Duration::from_secs(62 * u64::from(minute));
        let _ = attempts.begin(of(minute), now).unwrap();
    }
    assert!(!attempts.networks.contains_key(&network(of(1))));
    assert!(attempts.networks.contains_key(&network(of(4399))));
}
