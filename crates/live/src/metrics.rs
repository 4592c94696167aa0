//! The figures for Prometheus, in its text format 0.0.4.

use std::io;
use std::net::SocketAddr;

use hyper::{Method, StatusCode};
use prometheus::TextEncoder;
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};

use crate::figures::{AssociationFigures, PathFigures, Process};
use crate::http::{self, Server};
use crate::live::{Live, Stat, StatKind};

/// The media type of the format.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves `/metrics` on an address while the result exists.
///
/// # Errors
/// Those of binding the address.
pub async fn serve(address: SocketAddr, live: Live) -> io::Result<Server> {
    let answer = move |request: hyper::Request<_>| {
        let answer = match (request.method(), request.uri().path()) {
            (&Method::GET | &Method::HEAD, "/metrics") => {
                http::answer(StatusCode::OK, FORMAT, text(&live))
            }
            (&Method::GET | &Method::HEAD, _) => {
                http::line(StatusCode::NOT_FOUND, "the metrics are at /metrics")
            }
            _ => http::line(StatusCode::METHOD_NOT_ALLOWED, "only GET is possible here"),
        };
        async { answer }
    };
    Server::start(address, answer).await
}

/// The metrics now.
pub fn text(live: &Live) -> String {
    // Samples and events are of no use here: none is later than this.
    let process = live.process(Some(u64::MAX));
    let mut families = of_process(live, &process);
    families.extend(of_associations(&process.associations));
    families.extend(of_paths(&process.associations));
    families.retain(|family| !family.get_metric().is_empty());
    // The names and labels are constants of this file, so that there is no error.
    TextEncoder::new().encode_to_string(&families).unwrap_or_default()
}

type Labels = Vec<(&'static str, String)>;

fn family(
    name: &str,
    help: &str,
    kind: StatKind,
    values: impl IntoIterator<Item = (Labels, f64)>,
) -> MetricFamily {
    let metric = |(labels, value): (Labels, f64)| {
        let label = |(name, value): (&str, String)| {
            let mut pair = LabelPair::default();
            pair.set_name(name.to_owned());
            pair.set_value(value);
            pair
        };
        let mut metric = Metric::from_label(labels.into_iter().map(label).collect());
        match kind {
            StatKind::Counter => {
                let mut counter = Counter::default();
                counter.set_value(value);
                metric.set_counter(counter);
            }
            StatKind::Gauge => {
                let mut gauge = Gauge::default();
                gauge.set_value(value);
                metric.set_gauge(gauge);
            }
        }
        metric
    };
    let mut family = MetricFamily::default();
    family.set_name(format!("manypath_{name}"));
    family.set_help(help.to_owned());
    family.set_field_type(match kind {
        StatKind::Counter => MetricType::COUNTER,
        StatKind::Gauge => MetricType::GAUGE,
    });
    family.set_metric(values.into_iter().map(metric).collect());
    family
}

fn of_process(live: &Live, process: &Process) -> Vec<MetricFamily> {
    use StatKind::{Counter, Gauge};
    let sums = live.sums();
    let one = |value: f64| [(Labels::new(), value)];
    let info = vec![
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("command", process.command.clone()),
    ];
    let now = process.associations.len() as u64 + process.unlisted;
    let mut families = vec![
        family(
            "build_info",
            "The version and command of the process; always 1.",
            Gauge,
            [(info, 1.0)],
        ),
        family(
            "start_time_seconds",
            "When the process began, in seconds since 1970.",
            Gauge,
            one(live.began_s()),
        ),
        family("associations", "Associations in use now.", Gauge, one(now as f64)),
        family(
            "associations_unlisted",
            "Associations in use without series of their own, because there are too many.",
            Gauge,
            one(process.unlisted as f64),
        ),
        family(
            "associations_opened_total",
            "Associations so far.",
            Counter,
            one(sums.opened as f64),
        ),
        family(
            "acked_bytes_total",
            "User bytes that peers acknowledged, of all associations so far.",
            Counter,
            one(sums.acked_bytes as f64),
        ),
        family(
            "delivered_bytes_total",
            "User bytes received and delivered to the application, of all associations so far.",
            Counter,
            one(sums.received_bytes as f64),
        ),
    ];
    let more = live.stats();
    let labels = |s: &Stat| s.label.iter().map(|l| (l.name, l.value.clone())).collect::<Labels>();
    families.extend(more.chunk_by(|a, b| a.name == b.name).map(|some| {
        let Stat { name, help, kind, .. } = some[0];
        family(name, help, kind, some.iter().map(|s| (labels(s), s.value)))
    }));
    families
}

fn of_associations(all: &[AssociationFigures]) -> Vec<MetricFamily> {
    let each = |value: fn(&AssociationFigures) -> Option<u64>| {
        all.iter().filter_map(move |association| {
            let labels = vec![
                ("association", association.association.to_string()),
                ("peer", association.peer.clone()),
            ];
            Some((labels, value(association)? as f64))
        })
    };
    vec![
        family(
            "association_acked_bytes_total",
            "User bytes that the peer acknowledged.",
            StatKind::Counter,
            each(|a| Some(a.acked_bytes)),
        ),
        family(
            "association_delivered_bytes_total",
            "User bytes received and delivered to the application.",
            StatKind::Counter,
            each(|a| Some(a.received_bytes)),
        ),
        family(
            "association_content_bytes",
            "Bytes of content to be transferred in all, where that is known.",
            StatKind::Gauge,
            each(|a| a.total_bytes),
        ),
        family(
            "association_content_done_bytes",
            "Bytes of content transferred so far, where their total is known.",
            StatKind::Gauge,
            each(|a| a.total_bytes.map(|_| a.done_bytes)),
        ),
    ]
}

/// A metric that every path has: its name, its help, its kind, and its value if there is one.
type OfPath = (&'static str, &'static str, StatKind, fn(&PathFigures) -> Option<f64>);

const COUNTER: StatKind = StatKind::Counter;
const GAUGE: StatKind = StatKind::Gauge;

/// The metrics of a path. docs/metrics.md lists them.
const OF_PATH: &[OfPath] = &[
    (
        "path_sent_bytes_total",
        "Bytes of SCTP packets sent, without IP and UDP headers.",
        COUNTER,
        |p| Some(p.counters.bytes_sent as f64),
    ),
    ("path_received_bytes_total", "Bytes of SCTP packets received.", COUNTER, |p| {
        Some(p.counters.bytes_received as f64)
    }),
    (
        "path_acked_bytes_total",
        "User bytes last sent here that the peer acknowledged.",
        COUNTER,
        |p| Some(p.counters.bytes_acked as f64),
    ),
    ("path_sent_packets_total", "SCTP packets sent.", COUNTER, |p| {
        Some(p.counters.packets_sent as f64)
    }),
    ("path_received_packets_total", "SCTP packets received.", COUNTER, |p| {
        Some(p.counters.packets_received as f64)
    }),
    ("path_sent_chunks_total", "DATA chunks sent, retransmissions included.", COUNTER, |p| {
        Some(p.counters.data_chunks_sent as f64)
    }),
    ("path_retransmitted_chunks_total", "DATA chunks sent here again.", COUNTER, |p| {
        Some(p.counters.retransmissions as f64)
    }),
    ("path_lost_chunks_total", "DATA chunks last sent here that were found lost.", COUNTER, |p| {
        Some(p.counters.chunks_lost as f64)
    }),
    (
        "path_t3_expirations_total",
        "Expirations of the retransmission timer T3-rtx.",
        COUNTER,
        |p| Some(p.counters.t3_expirations as f64),
    ),
    ("path_sent_heartbeats_total", "Heartbeats sent.", COUNTER, |p| {
        Some(p.counters.heartbeats_sent as f64)
    }),
    ("path_rtt_seconds", "Smoothed round-trip time.", GAUGE, |p| p.srtt_s),
    ("path_rtt_min_seconds", "The shortest round-trip time so far.", GAUGE, |p| p.rtt_min_s),
    ("path_rto_seconds", "Retransmission timeout, with its back-off.", GAUGE, |p| Some(p.rto_s)),
    ("path_congestion_window_bytes", "Congestion window.", GAUGE, |p| Some(p.cwnd_bytes as f64)),
    ("path_flight_bytes", "Bytes of DATA chunks in flight.", GAUGE, |p| {
        Some(p.flight_bytes as f64)
    }),
    ("path_mtu_bytes", "The largest IP packet that is sent, headers included.", GAUGE, |p| {
        Some(p.mtu_bytes as f64)
    }),
    (
        "path_backup",
        "1 if the path is a backup, which carries data only if no other works.",
        GAUGE,
        |p| Some(f64::from(p.rank == "backup")),
    ),
    ("path_cost", "The cost of a path that is no backup; 0 is a normal path.", GAUGE, |p| match p
        .rank
        .strip_prefix("cost=")
    {
        Some(cost) => cost.parse().ok(),
        None => (p.rank == "normal").then_some(0.0),
    }),
    (
        "path_suppressed",
        "1 if the path works but carries no data: cheaper or better ones do.",
        GAUGE,
        |p| Some(f64::from(p.why.is_some())),
    ),
];

/// The states of a path.
const STATES: [&str; 4] = ["unconfirmed", "active", "potentially_failed", "inactive"];

fn of_paths(all: &[AssociationFigures]) -> Vec<MetricFamily> {
    let labels = |association: &AssociationFigures, path: &PathFigures| {
        vec![
            ("association", association.association.to_string()),
            ("path", path.path.to_string()),
            ("interface", path.interface.clone().unwrap_or_default()),
            ("local", path.local.clone()),
            ("remote", path.remote.clone()),
        ]
    };
    let each = || all.iter().flat_map(|a| a.paths.iter().map(move |path| (labels(a, path), path)));
    let of_one = |(name, help, kind, value): &OfPath| {
        let values = each().filter_map(|(labels, path)| Some((labels, value(path)?)));
        family(name, help, *kind, values)
    };
    let mut families: Vec<MetricFamily> = OF_PATH.iter().map(of_one).collect();
    let states = each().flat_map(|(labels, path)| {
        STATES.iter().map(move |&state| {
            let mut labels = labels.clone();
            labels.push(("state", state.to_owned()));
            (labels, f64::from(path.state == state))
        })
    });
    families.push(family(
        "path_state",
        "1 for the state that the path is in, 0 for the others.",
        StatKind::Gauge,
        states,
    ));
    families
}
