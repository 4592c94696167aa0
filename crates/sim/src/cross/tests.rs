use super::*;
use crate::network::Network;
use crate::pair::{millis, secs};
use crate::spec::{LinkSpec, QueueLimit};

/// A pattern whose distributions have a variance, so that the law of large numbers shows in a test.
fn tame(mean_on: u64, mean_off: u64) -> Pattern {
    let ms = Duration::from_millis;
    Pattern::ParetoOnOff { shape: 3.0, mean_on: ms(mean_on), mean_off: ms(mean_off) }
}

fn generator(pattern: Pattern) -> GeneratorSpec {
    GeneratorSpec { rate: Rate::bps(800_000), packet_bytes: 100, pattern, start: Instant::ZERO }
}

fn net_with_link(megabits: f64, queue: QueueLimit) -> (Network, LinkId) {
    let mut net = Network::new(Rng::from_number(11), 20);
    let link = net.add_link(LinkSpec::mbps_ms(megabits, 1.0), queue);
    (net, link)
}

/// The times of the packets of one generator, in nanoseconds.
fn times(spec: &GeneratorSpec, count: usize) -> Vec<u64> {
    let mut generator = Generator::new(spec, Rng::from_number(5), Instant::ZERO);
    let packets = (0..count).map(|_| {
        let at = generator.next;
        generator.plan();
        at
    });
    packets.collect()
}

#[test]
fn cbr_makes_packets_at_equal_distances() {
    let start = millis(20);
    let seen = times(&GeneratorSpec { start, ..generator(Pattern::Cbr) }, 4);
    assert_eq!(seen, [21_000_000, 22_000_000, 23_000_000, 24_000_000], "100 bytes at 0.8 Mbit/s");
}

#[test]
fn bursts_and_pauses_have_the_means_and_the_least_lengths_of_their_distributions() {
    let seen = times(&generator(tame(30, 50)), 300_000);
    let distances: Vec<u64> = seen.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let pauses: Vec<f64> =
        distances.iter().filter(|&&d| d > 1_000_000).map(|&d| d as f64).collect();
    let bursts = pauses.len() as f64;
    let mean_burst = seen.len() as f64 / bursts;
    // Shape 3 gives a standard deviation of the mean over sqrt(3): four of the mean's are 4 % and
    // less.
    assert!((mean_burst - 30.0).abs() < 0.8, "{mean_burst} packets of 1 ms");
    let mean_pause = pauses.iter().sum::<f64>() / bursts - 1e6;
    assert!((mean_pause - 50e6).abs() < 1.3e6, "{mean_pause} ns beside a packet's distance");
    let least = pauses.iter().copied().fold(f64::INFINITY, f64::min) - 1e6;
    assert!((least - 50e6 * 2.0 / 3.0).abs() < 0.1e6, "{least}");
    let longest = pauses.iter().copied().fold(0.0, f64::max);
    assert!(longest > 400e6, "a heavy tail: P(pause > 8 means) = (1/12)^3, of 10000");
}

#[test]
fn the_pareto_tail_is_that_of_its_shape() {
    let mut rng = Rng::from_number(2);
    let samples: Vec<f64> = (0..200_000).map(|_| pareto(&mut rng, 1.0 / 1.5)).collect();
    assert!(samples.iter().all(|&x| x >= 1.0));
    for x in [2.0_f64, 10.0, 50.0] {
        let wanted = x.powf(-1.5);
        let share = samples.iter().filter(|&&s| s > x).count() as f64 / 200_000.0;
        let deviation = (wanted * (1.0 - wanted) / 200_000.0).sqrt();
        assert!((share - wanted).abs() < 4.0 * deviation, "P(X > {x}): {share} for {wanted}");
    }
}

#[test]
fn a_source_sends_its_generators_packets_in_turn_over_its_own_link() {
    let two = vec![generator(Pattern::Cbr); 2];
    let access = Some((Rate::bps(8_000_000), Duration::from_millis(5)));
    let spec = SourceSpec { access, links: Vec::new(), generators: two };
    let mut source = Source::new(spec, &Rng::from_number(1), Instant::ZERO);
    let seen: Vec<u64> =
        (0..4).map(|_| source.next_arrival().expect("endless").as_nanos() / 1000).collect();
    assert_eq!(seen, [6100, 6200, 7100, 7200], "made at 1 and 2 ms, 0.1 ms each, 5 ms away");
}

#[test]
fn a_load_is_the_share_of_the_links_rate_and_takes_one_event_a_packet() {
    let (mut net, link) = net_with_link(10.0, QueueLimit::Unlimited);
    let traffic = CrossTraffic { pattern: tame(500, 500), ..CrossTraffic::papers(0.7) };
    let sources = net.add_cross_traffic(&[link], &traffic);
    net.poll(secs(10));
    let before = net.link_stats(link).bytes;
    net.poll(secs(510));
    let stats = net.link_stats(link);
    let load = (stats.bytes - before) as f64 * 8.0 / 500.0 / 10e6;
    assert!((0.68..0.72).contains(&load), "{load}");
    let sent: u64 = sources.iter().map(|&s| net.source_stats(s).packets).sum();
    assert_eq!((sent, net.events()), (stats.packets, stats.packets));
    let mean_size = stats.bytes as f64 / stats.packets as f64;
    assert!((mean_size - 541.0).abs() < 10.0, "equal numbers of all sizes: {mean_size}");
}

#[test]
fn cross_traffic_fills_queues_and_is_dropped_by_them() {
    let (mut net, link) = net_with_link(10.0, QueueLimit::Packets(42));
    let sources = net.add_cross_traffic(&[link], &CrossTraffic::papers(1.2));
    net.poll(secs(100));
    let stats = net.link_stats(link);
    let sent: u64 = sources.iter().map(|&s| net.source_stats(s).packets).sum();
    assert_eq!(stats.packets + stats.overflowed, sent);
    assert!(stats.overflowed > sent / 20, "{stats:?}");
    assert_eq!(stats.longest_queue, 42);
}

#[test]
fn over_several_links_a_packet_is_on_each_in_turn() {
    let (mut net, first) = net_with_link(8.0, QueueLimit::Unlimited);
    let second = net.add_link(LinkSpec::mbps_ms(0.4, 1.0), QueueLimit::Packets(1));
    let third = net.add_link(LinkSpec::mbps_ms(8.0, 1.0), QueueLimit::Unlimited);
    let links = vec![first, second, third];
    net.add_source(SourceSpec { access: None, links, generators: vec![generator(Pattern::Cbr)] });
    net.poll(secs(1));
    let packets = [first, second, third].map(|link| net.link_stats(link).packets);
    // The second takes 2 ms a packet that comes each millisecond, and has room for none to wait.
    assert_eq!(packets, [1000, 499, 498]);
    assert_eq!(net.packets_sent(), 0, "these are nobody's packets");
}

#[test]
fn the_same_seed_repeats_and_sources_are_independent_of_each_other() {
    let run = |seed, others: usize| {
        let mut net = Network::new(Rng::from_number(seed), 20);
        let link = net.add_link(LinkSpec::mbps_ms(10.0, 1.0), QueueLimit::Unlimited);
        let apart = net.add_link(LinkSpec::mbps_ms(10.0, 1.0), QueueLimit::Unlimited);
        net.add_cross_traffic(&[link], &CrossTraffic::papers(0.5));
        for _ in 0..others {
            net.add_cross_traffic(&[apart], &CrossTraffic::papers(0.5));
        }
        net.poll(secs(20));
        net.link_stats(link)
    };
    assert_eq!(run(1, 0), run(1, 2));
    assert_ne!(run(1, 0), run(2, 0));
}
