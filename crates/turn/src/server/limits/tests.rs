use super::*;

const RATES: Rates = Rates { address: 10, network: 30, all: 1000 };

fn passed(crowd: &mut Crowd, seconds: u64, from: impl Fn(u64) -> Vec<String>) -> u64 {
    let mut passed = 0;
    for ms in 0..seconds * 1000 {
        let now = Instant::from_millis(ms);
        for from in from(ms) {
            let from = SocketAddr::new(from.parse().unwrap(), (ms % 60_000) as u16);
            if crowd.has(now, from) {
                crowd.take(now, from);
                passed += 1;
            }
        }
    }
    passed
}

#[test]
fn an_address_a_network_and_all_have_their_rates() {
    let crowd = || Crowd::new(Instant::ZERO, [3; 32], RATES);
    let one = passed(&mut crowd(), 10, |_| vec!["192.0.2.1".into(); 3]);
    assert!((110..=120).contains(&one), "10 a second and two seconds' worth: {one}");
    let mapped = |ms: u64| vec![["192.0.2.1", "::ffff:192.0.2.1"][(ms % 2) as usize].into()];
    assert!((110..=120).contains(&passed(&mut crowd(), 10, mapped)));
    let network = passed(&mut crowd(), 10, |ms| vec![format!("192.0.2.{}", ms % 200); 3]);
    assert!((330..=360).contains(&network), "{network}");
    let v6 = passed(&mut crowd(), 10, |ms| vec![format!("2001:db8::{ms:x}"); 3]);
    assert!((330..=360).contains(&v6), "{v6}");
    let all = passed(&mut crowd(), 10, |ms| {
        (0..10).map(|i| format!("{}.{}.{i}.1", 1 + ms % 200, ms / 200)).collect()
    });
    assert!((9_000..=10_250).contains(&all), "{all}");
}

#[test]
fn a_crowd_in_one_place_leaves_others_theirs() {
    let mut crowd = Crowd::new(Instant::ZERO, [3; 32], RATES);
    for ms in 0..10_000 {
        let now = Instant::from_millis(ms);
        for i in 0..10_u8 {
            let from = SocketAddr::new([192, 0, 2, i].into(), 1);
            if crowd.has(now, from) {
                crowd.take(now, from);
            }
        }
        if ms % 200 == 0 {
            let other = SocketAddr::new([198, 51, 100, 7].into(), 1);
            assert!(crowd.has(now, other), "at {ms} ms");
            crowd.take(now, other);
        }
    }
}

#[test]
fn events_do_not_come_in_bursts_of_thousands() {
    let mut bucket = Bucket::counting(Instant::ZERO, 1000);
    let mut passed = 0;
    while bucket.has(Instant::ZERO, 1) {
        bucket.take(1);
        passed += 1;
    }
    assert_eq!(passed, 250);
}

#[test]
fn a_bucket_passes_its_rate_and_no_more() {
    let rate = 1_000_000;
    let mut bucket = Bucket::new(Instant::ZERO, rate);
    let mut passed = 0;
    for ms in 0..4000 {
        for _ in 0..10 {
            if bucket.has(Instant::from_millis(ms), 1000) {
                bucket.take(1000);
                passed += 1000;
            }
        }
    }
    let most = 4 * rate + rate / 4;
    assert!((4 * rate..=most).contains(&passed), "{passed} of 40 MB offered in 4 s");
}

#[test]
fn no_limit_is_no_limit() {
    let mut bucket = Bucket::new(Instant::ZERO, 0);
    assert!(bucket.has(Instant::ZERO, u64::MAX));
}
