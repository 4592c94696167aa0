//! From a seed to a plan.

use std::time::Duration;

use manypath_proto::config::Config;
use manypath_proto::policy::Factory;
use manypath_proto::policy::rtx::RtxPolicy;
use manypath_proto::{PathRank, Rng};

use super::{Ending, Family, Op, PathSetting, Plan, Setting, Side};
use crate::traffic::Limits;

const PROFILES: &[&str] = &["rfc9260", "fast", "2006"];
const PRESETS: &[&str] =
    &["sctp", "sctp-pf", "all-rtx-alt", "all-rtx-same", "fr-same-rto-alt", "cmt", "cmt-pf", "mtcp"];

/// Parameters and the values they are tried with.
const PARAMETERS: &[(&str, &[&str])] = &[
    ("receive_buffer", &["8 KiB", "32 KiB", "64 KiB", "256 KiB", "1 MiB"]),
    ("send_buffer", &["128 KiB", "1 MiB"]),
    ("rtx_policy", Factory::<dyn RtxPolicy>::NAMES),
    ("cuc", &["off", "v1", "v2"]),
    ("dac", &["false"]),
    ("rtx_age_heuristic", &["true", "false"]),
    ("tail_loss_probe", &["true", "false"]),
    ("pacing", &["true", "false"]),
    ("path_max_retrans", &["0", "1", "5"]),
    ("sack_every", &["1", "2"]),
    ("max_burst", &["0", "1", "4"]),
    ("mtu", &["576", "1280", "9000"]),
    ("verify_all_paths_first", &["false"]),
    ("har", &["true"]),
    ("timestamp", &["true"]),
    ("mfr", &["true", "false"]),
    ("pipe_accounting", &["true", "false"]),
    ("combined_window", &["true"]),
    ("ack_path", &["primary", "last_received"]),
    ("failure", &["mtcp"]),
    ("path_review_interval", &["500 ms"]),
    ("suppress_below", &["2"]),
];

/// The extensions of SCTP that are on together.
const EXTENSIONS: &[(&str, &str)] = &[
    ("stream_reconfiguration", "true"),
    ("partial_reliability", "true"),
    ("nr_sack", "true"),
    ("immediate_sacks", "true"),
    ("address_reconfiguration", "true"),
];

/// Authentication of what is sent most (RFC 4895). Some lists leave room in every packet, others in
/// those of their chunks.
const AUTHENTICATED: &[&str] = &[
    "data, i_data, sack, nr_sack",
    "data, i_data, sack, nr_sack, re_config, forward_tsn, i_forward_tsn, cookie_echo",
    "data, i_data, heartbeat, heartbeat_ack, shutdown, shutdown_ack, error, cookie_ack",
    "re_config, asconf, cookie_echo",
];

/// The presets and switches of several paths, in all combinations by the seed.
const COMBINED_PRESETS: &[&str] = &["cmt", "cmt-pf", "mtcp", "msacmt-rt", "msacmt-rtv2"];
/// Presets for paths that become slow.
const SLOW_PRESETS: &[&str] = &["adaptive", "cmt-pf", "sctp", "mtcp"];
const COMBINED: &[(&str, [&str; 2])] = &[
    ("pipe_accounting", ["false", "true"]),
    ("failure", ["pf", "mtcp"]),
    ("shared_congestion", ["trial", "mtcp"]),
    ("nr_sack", ["false", "true"]),
    ("ack_path", ["last_received", "primary"]),
    ("ack_path_as_asked", ["false", "true"]),
    ("message_interleaving", ["false", "true"]),
    ("stream_scheduler", ["fcfs", "wfq"]),
];

impl Plan {
    /// The plan of a seed in a family.
    pub fn of_family(family: Family, seed: u64) -> Plan {
        let plan = Plan::from_seed(seed);
        let mut rest = seed as usize;
        let mut next = |count: usize| {
            let drawn = rest % count;
            rest /= count;
            drawn
        };
        match family {
            Family::Plain => plan,
            Family::NrSack => {
                let receive_buffer = ["8 KiB", "64 KiB"][next(2)];
                let names = ["nr_sack", "receive_buffer", "send_buffer"];
                let values = ["true", receive_buffer, "128 KiB"];
                let overrides: Vec<_> = names.into_iter().zip(values).collect();
                let preset = plan.setting.preset;
                plan.under(preset, &overrides)
            }
            Family::Redundant => {
                let preset = ["msacmt-rt", "msacmt-rtv2"][next(2)];
                let review = ("redundancy_review", ["1", "10"][next(2)]);
                let cycle = ("redundancy_cycle", ["restart", "keep", "dynamic"][next(3)]);
                let order = ("redundancy_order", ["rtt", "cwnd", "ssthresh", "loss"][next(4)]);
                let mut overrides = vec![review, cycle, order];
                if preset == "msacmt-rt" && next(2) == 0 {
                    overrides.push(("redundancy", "msacmt_rt_once"));
                }
                plan.under(preset, &overrides)
            }
            Family::Combined => {
                let preset = COMBINED_PRESETS[next(COMBINED_PRESETS.len())];
                let mut overrides: Vec<_> =
                    COMBINED.iter().map(|&(name, values)| (name, values[next(2)])).collect();
                // Bottlenecks are found soon.
                overrides.extend([("shared_zeta", "0.9"), ("shared_interval", "50 ms")]);
                plan.under(preset, &overrides)
            }
            Family::Adaptive => {
                let preset = COMBINED_PRESETS[next(COMBINED_PRESETS.len())];
                let mut overrides = vec![
                    ("congestion_control", ["bbr", "rfc9260", "bbr-draft"][next(3)]),
                    ("recovery", ["rack", "standard"][next(2)]),
                ];
                if next(2) == 0 {
                    overrides.extend([("scheduler", "soonest"), ("redundancy", "late")]);
                }
                plan.under(preset, &overrides)
            }
            Family::Ranked => {
                let preset = COMBINED_PRESETS[next(COMBINED_PRESETS.len())];
                let policy = ("rank_policy", ["overflow", "overflow", "failover"][next(3)]);
                let after = ("overflow_after", ["10 ms", "500 ms"][next(2)]);
                plan.under(preset, &[policy, after]).with_ranks()
            }
            Family::Candidates => {
                let preset = COMBINED_PRESETS[next(COMBINED_PRESETS.len())];
                let mut plan = plan.under(preset, &[]);
                plan.setting.dead_addresses = 1 + next(3);
                plan
            }
            Family::Slow => {
                let preset = SLOW_PRESETS[next(SLOW_PRESETS.len())];
                let timeout = ("association_timeout", ["2 s", "5 s", "20 s"][next(3)]);
                let mut plan = plan;
                plan.setting.profile = "fast";
                plan.under(preset, &[timeout]).with_slow_paths()
            }
            Family::Protected => {
                let rekey = ("rekey_packets", ["10", "30", "100", "300", "1000"][next(5)]);
                let kept = ("old_keys_kept", ["100 ms", "1 s", "120 s"][next(3)]);
                let preset = plan.setting.preset;
                let mut plan = plan.under(preset, &[rekey, kept]);
                plan.setting.is_protected = true;
                plan.with_middle(next(4) == 0)
            }
            Family::Limited | Family::Reconfigured | Family::Extended => {
                plan.with_extensions(family, next)
            }
        }
    }

    /// Uses extensions of SCTP.
    fn with_extensions(self, family: Family, mut next: impl FnMut(usize) -> usize) -> Plan {
        let plan = self;
        match family {
            Family::Limited => {
                let preset = [COMBINED_PRESETS, &["adaptive"]].concat()[next(6)];
                let drawn = COMBINED.iter().map(|&(name, values)| (name, values[next(2)]));
                let extension = [("partial_reliability", "true")];
                plan.under(preset, &drawn.chain(extension).collect::<Vec<_>>()).with_limits()
            }
            Family::Extended => {
                let preset = ["cmt", "cmt-pf", "mtcp", "adaptive"][next(4)];
                let interleaving = ["false", "true"][next(2)];
                let scheduler = ["fcfs", "rr", "wfq"][next(3)];
                let is_protected = next(4) == 0;
                let plan = plan.with_resets(interleaving, scheduler, is_protected);
                let mut extensions = EXTENSIONS.to_vec();
                let mut chunks = AUTHENTICATED[next(AUTHENTICATED.len())];
                if plan.has_restarts() {
                    // A peer that has lost its keys cannot begin again where they must open the
                    // association (RFC 4895 §6.3).
                    chunks = chunks.trim_end_matches(", cookie_echo");
                }
                if !is_protected && next(3) > 0 {
                    extensions.push(("authentication", "true"));
                    extensions.push(("authenticated_chunks", chunks));
                }
                plan.under(preset, &extensions).with_limits()
            }
            Family::Reconfigured => {
                let interleaving = ["false", "true"][next(2)];
                let scheduler = ["fcfs", "rr", "wfq"][next(3)];
                plan.with_resets(interleaving, scheduler, next(4) == 0)
            }
            _ => plan,
        }
    }

    /// True if an end may lose an association that its peer still has.
    fn has_restarts(&self) -> bool {
        self.steps.iter().any(|(op, _)| op.may_end_association())
    }

    /// Gives half of the messages limits.
    fn with_limits(mut self) -> Plan {
        let mut rng = Rng::from_number(self.seed).fork("limits");
        for (op, _) in &mut self.steps {
            let Op::Send { side, stream, unordered, length, count } = *op else { continue };
            let (lives, is_repeated) = (rng.chance(0.7), rng.chance(0.5));
            let limits = Limits {
                lifetime: lives.then(|| Duration::from_millis(spread(&mut rng, 5000))),
                max_retransmissions: is_repeated.then(|| rng.below(4) as u16),
            };
            if rng.chance(0.6) && limits != Limits::default() {
                *op = Op::SendLimited { side, stream, unordered, length, count, limits };
            }
        }
        self
    }

    /// Puts changes of ranks between the operations.
    fn with_ranks(mut self) -> Plan {
        let mut rng = Rng::from_number(self.seed).fork("ranks");
        let ranks = [PathRank::NORMAL, PathRank::Cost(1), PathRank::Cost(9), PathRank::Backup];
        for _ in 0..2 + rng.below(8) {
            let at = rng.below(1 + self.steps.len() as u64) as usize;
            let op = Op::Rank(side(&mut rng), rng.below(3) as usize, pick(&mut rng, &ranks));
            self.steps.insert(at, (op, pause(&mut rng)));
        }
        self
    }

    /// Adds times in which paths become slow, and stay so for a while.
    fn with_slow_paths(mut self) -> Plan {
        let mut rng = Rng::from_number(self.seed).fork("slow paths");
        for _ in 0..1 + rng.below(5) {
            let at = rng.below(1 + self.steps.len() as u64) as usize;
            let path = rng.below(3) as usize;
            let op = match rng.below(2) {
                0 => Op::Rate(path, pick(&mut rng, &[10, 64, 256])),
                _ => Op::Delay(path, pick(&mut rng, &[400, 1200])),
            };
            let lasts = Duration::from_millis(spread(&mut rng, 30_000));
            self.steps.insert(at, (op, lasts));
        }
        self
    }

    /// Puts requests to reset and add streams between the operations.
    fn with_resets(
        self,
        interleaving: &'static str,
        scheduler: &'static str,
        is_protected: bool,
    ) -> Plan {
        let preset = self.setting.preset;
        let overrides = [
            ("stream_reconfiguration", "true"),
            ("message_interleaving", interleaving),
            ("stream_scheduler", scheduler),
            ("rekey_packets", "30"),
        ];
        let mut plan = self.under(preset, &overrides);
        plan.setting.is_protected = is_protected;
        plan.with_requests()
    }

    fn with_requests(mut self) -> Plan {
        let mut rng = Rng::from_number(self.seed).fork("resets");
        for _ in 0..2 + rng.below(20) {
            let at = rng.below(1 + self.steps.len() as u64) as usize;
            let stream = pick(&mut rng, &[None, Some(0), Some(1), Some(2), Some(3)]);
            let op = match rng.below(5) {
                0..=2 => Op::ResetStreams(side(&mut rng), stream),
                3 => Op::RequestReset(side(&mut rng), stream),
                _ => Op::AddStreams(side(&mut rng), rng.below(4) as u16, rng.below(4) as u16),
            };
            self.steps.insert(at, (op, pause(&mut rng)));
        }
        self
    }

    /// Adds a man in the middle. If `stays`, drops the operations that can end the association.
    fn with_middle(mut self, stays: bool) -> Plan {
        let mut rng = Rng::from_number(self.seed).fork("tampering");
        if stays {
            self.steps.retain(|(op, _)| !op.may_end_association());
            self.setting.overrides.retain(|(name, _)| *name != "path_max_retrans");
            self.setting.paths.iter_mut().for_each(|path| path.loss_percent = 0);
        }
        let most = if stays { 20 } else { 50 };
        let count = rng.below(5);
        for path in 0..count {
            let at = rng.below(1 + self.steps.len() as u64 / 2) as usize;
            let op = Op::Tamper(path as usize, spread(&mut rng, most) as u32);
            self.steps.insert(at, (op, pause(&mut rng)));
        }
        self
    }

    /// Replaces the preset, and adds these overrides. The plan's own overrides stay where they are
    /// valid with them.
    fn under(mut self, preset: &'static str, overrides: &[(&'static str, &'static str)]) -> Plan {
        let setting = &mut self.setting;
        let is_own = |one: &&(&str, &str)| overrides.iter().all(|(name, _)| *name != one.0);
        let own = setting.overrides.iter().filter(is_own);
        let all = overrides.iter().chain(own).copied().collect();
        (setting.preset, setting.overrides) = (preset, valid(setting.profile, preset, all));
        self
    }

    /// The plan of a seed.
    pub fn from_seed(seed: u64) -> Plan {
        let mut rng = Rng::from_number(seed).fork("operations");
        let setting = setting(&mut rng);
        let count = 3 + rng.below(30);
        let steps = (0..count).map(|_| (op(&mut rng), pause(&mut rng))).collect();
        let ending = pick(&mut rng, &[Ending::ByA, Ending::ByZ, Ending::ByBoth]);
        Plan { seed, setting, steps, ending }
    }
}

fn pick<T: Copy>(rng: &mut Rng, values: &[T]) -> T {
    values[rng.below(values.len() as u64) as usize]
}

/// Between 0 and `most`, small values as likely as large ones.
fn spread(rng: &mut Rng, most: u64) -> u64 {
    let bits = u64::from(64 - most.leading_zeros());
    let limit = 1_u64 << rng.below(bits + 1);
    rng.below(limit.min(most) + 1)
}

fn setting(rng: &mut Rng) -> Setting {
    let paths = (0..1 + rng.below(3)).map(|_| PathSetting {
        rate_mbps: pick(rng, &[1, 2, 10, 100]),
        delay_ms: pick(rng, &[0, 1, 10, 45, 150]),
        loss_percent: pick(rng, &[0, 0, 0, 1, 5]),
        queue: pick(rng, &[5, 20, 100, 1000]),
    });
    let paths = paths.collect();
    let overrides = PARAMETERS.iter().filter_map(|&(name, values)| {
        // Two draws each, so that a parameter more does not change the others.
        let (is_set, value) = (rng.chance(0.2), pick(rng, values));
        is_set.then_some((name, value))
    });
    let overrides = overrides.collect();
    let (profile, preset) = (pick(rng, PROFILES), pick(rng, PRESETS));
    Setting {
        profile,
        preset,
        overrides: valid(profile, preset, overrides),
        paths,
        has_one_far_address: rng.chance(0.25),
        dead_addresses: 0,
        max_segments: pick(rng, &[1, 1, 10]),
        is_protected: false,
    }
}

/// The overrides, less those that do not go with the ones before.
fn valid(
    profile: &str,
    preset: &str,
    overrides: Vec<(&'static str, &'static str)>,
) -> Vec<(&'static str, &'static str)> {
    let mut kept = Vec::new();
    for one in overrides {
        kept.push(one);
        let text: Vec<_> = kept.iter().map(|&(k, v): &(&str, &str)| (k.into(), v.into())).collect();
        if Config::build(profile, preset, &text).is_err() {
            kept.pop();
        }
    }
    kept
}

fn side(rng: &mut Rng) -> Side {
    if rng.chance(0.7) { Side::A } else { Side::Z }
}

/// From nothing to some seconds, mostly short.
fn pause(rng: &mut Rng) -> Duration {
    Duration::from_micros(spread(rng, 8_000_000))
}

fn op(rng: &mut Rng) -> Op {
    let path = rng.below(3) as usize;
    let percent = |rng: &mut Rng| pick(rng, &[0, 1, 5, 20, 50]);
    match rng.below(37) {
        0..=11 => send(rng),
        12 => Op::PauseReading(side(rng)),
        13 | 14 => Op::ResumeReading(side(rng)),
        15 => Op::Cut(path),
        16 => pick(rng, &[Op::CutForward(path), Op::CutReverse(path)]),
        17 => Op::CutAll,
        18 => Op::Restore(path),
        19 | 20 => Op::RestoreAll,
        21 => Op::Loss(path, percent(rng)),
        22 => Op::Duplicate(path, percent(rng)),
        23 => Op::Reorder(path, percent(rng), spread(rng, 200) as u32),
        24 => Op::Jitter(path, spread(rng, 100) as u32),
        25 => Op::Rate(path, pick(rng, &[50, 500, 5000, 50_000])),
        26 => Op::Delay(path, spread(rng, 400) as u32),
        27 => Op::Rebind(path, 20_000 + rng.below(40_000) as u16),
        28 => Op::SetPrimary(side(rng), path),
        29 | 30 if rng.chance(0.5) => Op::Restart(side(rng)),
        31 if rng.chance(0.5) => Op::Shutdown(side(rng)),
        32 | 33 => Op::RemovePath(path),
        34 => Op::AddPath(path),
        35 if rng.chance(0.3) => Op::Abort(side(rng)),
        36 => Op::Renumber(path, spread(rng, 3000) as u32),
        _ => send(rng),
    }
}

fn send(rng: &mut Rng) -> Op {
    let length = 1 + spread(rng, 99_999) as usize;
    let most = (400_000 / length).clamp(1, 200) as u64;
    Op::Send {
        side: side(rng),
        stream: rng.below(4) as u16,
        unordered: rng.chance(0.3),
        length,
        count: 1 + rng.below(most) as usize,
    }
}
