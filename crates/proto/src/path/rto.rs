//! Round-trip time and retransmission timeout of a path (RFC 9260 §6.3.1, RFC 6298).

use std::time::Duration;

use crate::config::Config;
use crate::view::PathId;

/// Smoothed round-trip time and the timeout derived from it.
#[derive(Clone, Debug)]
pub(crate) struct Rto {
    srtt: Option<Duration>,
    rtt_min: Option<Duration>,
    samples: u64,
    /// See [`PathStats::rtt_latest`](super::PathStats::rtt_latest).
    pub(crate) latest: Option<(Duration, Option<PathId>)>,
    /// See [`PathStats::rtt_heartbeat`](super::PathStats::rtt_heartbeat).
    pub(crate) of_heartbeat: Option<Duration>,
    rttvar: Duration,
    rto: Duration,
    initial: Duration,
    min: Duration,
    max: Duration,
    alpha: f64,
    beta: f64,
    min_variation: Duration,
}

/// RTO.Min of RFC 9260 §16, which exceeds any SACK delay.
const STANDARD_RTO_MIN: Duration = Duration::from_secs(1);

/// Clock granularity G of RFC 6298, the lower bound of RTTVAR.
const GRANULARITY: Duration = Duration::from_millis(1);

/// The least variation that the timeout allows for. The SACK for a lone packet is delayed.
/// Heartbeats are answered at once, so they do not teach the estimator that delay. We assume that
/// the peer's delay equals ours, with a margin.
fn min_variation(config: &Config) -> Duration {
    if config.rto_min < STANDARD_RTO_MIN {
        (2 * config.sack_delay).max(GRANULARITY)
    } else {
        GRANULARITY
    }
}

impl Rto {
    /// An estimator without a measurement: the timeout is `rto_initial`.
    pub(crate) fn new(config: &Config) -> Rto {
        Rto {
            srtt: None,
            rtt_min: None,
            samples: 0,
            latest: None,
            of_heartbeat: None,
            rttvar: Duration::ZERO,
            rto: config.rto_initial,
            initial: config.rto_initial,
            min: config.rto_min,
            max: config.rto_max,
            alpha: config.rto_alpha,
            beta: config.rto_beta,
            min_variation: min_variation(config),
        }
    }

    /// Takes over other bounds, and applies them at once. A back-off goes on, within them.
    pub(crate) fn set_bounds(&mut self, config: &Config) {
        let is_backed_off = self.rto > self.without_back_off();
        self.initial = config.rto_initial;
        self.min = config.rto_min;
        self.max = config.rto_max;
        self.min_variation = min_variation(config);
        self.rto = if is_backed_off {
            self.rto.clamp(self.without_back_off(), self.max)
        } else {
            self.without_back_off()
        };
    }

    /// The bounds: RTO.Initial, RTO.Min and RTO.Max.
    pub(crate) fn bounds(&self) -> [Duration; 3] {
        [self.initial, self.min, self.max]
    }

    /// Ends the back-off of the timeout, because its cause may be over.
    pub(crate) fn end_back_off(&mut self) {
        self.rto = self.without_back_off();
    }

    /// The timeout without back-off.
    pub(crate) fn without_back_off(&self) -> Duration {
        let Some(srtt) = self.srtt else { return self.initial };
        (srtt + self.variation()).clamp(self.min, self.max)
    }

    /// How much an RTT may exceed the smoothed one: four times RTTVAR, but at least the SACK delay
    /// if `rto_min` does not cover that.
    pub(crate) fn variation(&self) -> Duration {
        (4 * self.rttvar).max(self.min_variation)
    }

    /// Takes one measurement (RFC 9260 §6.3.1, C2 and C3). It also ends any back-off.
    pub(crate) fn sample(&mut self, rtt: Duration) {
        self.samples += 1;
        self.rtt_min = Some(self.rtt_min.map_or(rtt, |min| min.min(rtt)));
        match self.srtt {
            None => {
                self.srtt = Some(rtt);
                self.rttvar = rtt / 2;
            }
            Some(srtt) => {
                let error = srtt.abs_diff(rtt);
                self.rttvar = self.rttvar.mul_f64(1.0 - self.beta) + error.mul_f64(self.beta);
                self.srtt = Some(srtt.mul_f64(1.0 - self.alpha) + rtt.mul_f64(self.alpha));
            }
        }
        self.end_back_off();
    }

    /// Takes a measurement of a path that carried nothing since the previous one. Such measurements
    /// are rare, and the smoothed value would need many of them. So if it is more than twice as
    /// long, it is replaced.
    pub(crate) fn sample_when_idle(&mut self, rtt: Duration) {
        if self.srtt.is_some_and(|srtt| 2 * rtt < srtt) {
            self.srtt = None;
        }
        self.sample(rtt);
    }

    /// Doubles the timeout after it expired, up to `rto_max` (RFC 9260 §6.3.3, E2).
    pub(crate) fn back_off(&mut self) {
        self.rto = (self.rto * 2).min(self.max);
    }

    /// The current timeout.
    pub(crate) fn rto(&self) -> Duration {
        self.rto
    }

    /// Smoothed round-trip time, once measured.
    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.srtt
    }

    /// The shortest RTT so far.
    pub(crate) fn rtt_min(&self) -> Option<Duration> {
        self.rtt_min
    }

    /// Number of measurements so far.
    pub(crate) fn samples(&self) -> u64 {
        self.samples
    }

    /// RTT variation; zero before the first measurement.
    pub(crate) fn rttvar(&self) -> Duration {
        self.rttvar
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn rto(initial: u64, min: u64, max: u64) -> Rto {
        Rto {
            srtt: None,
            rtt_min: None,
            samples: 0,
            latest: None,
            of_heartbeat: None,
            rttvar: Duration::ZERO,
            rto: ms(initial),
            initial: ms(initial),
            min: ms(min),
            max: ms(max),
            alpha: 0.125,
            beta: 0.25,
            min_variation: GRANULARITY,
        }
    }

    #[test]
    fn a_low_rto_min_leaves_room_for_a_delayed_sack() {
        let timeout = |profile| {
            let config = Config::build(profile, "cmt-pf", &[]).expect("valid");
            let mut r = Rto::new(&config);
            (0..100).for_each(|_| r.sample(ms(1200)));
            r.rto()
        };
        assert_eq!(timeout("fast"), ms(1250), "two SACK delays above a steady RTT");
        assert_eq!(timeout("rfc9260"), ms(1201), "RFC 9260 §6.3.1");
    }

    #[test]
    fn the_first_measurement_sets_srtt_and_half_of_it_as_variation() {
        let mut r = rto(3000, 100, 60_000);
        r.sample(ms(200));
        assert_eq!((r.srtt(), r.rttvar(), r.rto()), (Some(ms(200)), ms(100), ms(600)), "C2");
    }

    #[test]
    fn later_measurements_move_by_alpha_and_beta() {
        let mut r = rto(3000, 100, 60_000);
        r.sample(ms(200));
        r.sample(ms(280));
        assert_eq!(r.srtt(), Some(ms(210)));
        assert_eq!(r.samples(), 2);
        assert_eq!(r.rttvar(), ms(95), "0.75 * 100 + 0.25 * |200 - 280|");
        assert_eq!(r.rto(), ms(590));
    }

    #[test]
    fn a_much_shorter_measurement_of_an_idle_path_begins_again() {
        let mut r = rto(3000, 100, 60_000);
        r.sample_when_idle(ms(1000));
        r.sample_when_idle(ms(500));
        assert_eq!(r.srtt(), Some(ms(937) + Duration::from_micros(500)), "as of any path");
        r.sample_when_idle(ms(20));
        assert_eq!((r.srtt(), r.rttvar(), r.rto()), (Some(ms(20)), ms(10), ms(100)));
        r.sample_when_idle(ms(1000));
        assert_eq!(r.srtt(), Some(ms(142) + Duration::from_micros(500)), "not a longer one");
    }

    #[test]
    fn the_timeout_stays_between_its_bounds_and_backs_off_by_doubling() {
        let mut r = rto(1000, 1000, 5000);
        r.sample(ms(10));
        assert_eq!(r.rto(), ms(1000), "RTO.Min");
        r.back_off();
        r.back_off();
        assert_eq!(r.rto(), ms(4000));
        r.back_off();
        assert_eq!(r.rto(), ms(5000), "RTO.Max");
        r.sample(ms(10));
        assert_eq!(r.rto(), ms(1000), "a measurement ends the back-off");
    }
}
