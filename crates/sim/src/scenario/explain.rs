//! A scenario in words: what `manypath sim check` prints.

use std::fmt::Write as _;
use std::time::Duration;

use manypath_proto::config::units::{print_duration, print_rate, print_ratio, print_size};
use manypath_proto::config::{Config, Origin};
use manypath_proto::sizes::ETHERNET_MTU;

use super::model::{
    After, CompiledScenario, CrossModel, Crossing, Flow, PathModel, PlannedChange, PlannedMove,
    PlannedRank, PlannedReboot, Transfer, Way,
};
use super::{Point, Scenario};
use crate::cross::Pattern;
use crate::ids::End;
use crate::link::pauses::Pauses;
use crate::spec::{LinkChange, LinkSpec, Loss, QueueLimit, Rate};
use crate::traffic::MessageKind;

impl Scenario {
    /// The scenario in words: what is swept, how many runs that makes, and of one of its points the
    /// topology with what follows from it, the changes, and every parameter that differs from its
    /// profile.
    pub fn explain(&self, point: &Point, points: usize) -> String {
        let mut text = format!("{}\n", point.run.name);
        for line in point.run.description.lines() {
            text += &format!("  {}\n", line.trim());
        }
        let seeds = self.seeds.len();
        let runs = points * seeds;
        let range = match self.seeds[..] {
            [only] => format!("seed {only}"),
            [first, .., last] => format!("{seeds} seeds, {first} to {last}"),
            [] => "no seed".to_owned(),
        };
        let _ = writeln!(text, "\n{} of {range}: {}", plural(points, "point"), plural(runs, "run"));
        for (name, values) in self.swept() {
            let _ = writeln!(text, "  {name}: {}", values.join(", "));
        }
        if !point.params.is_empty() {
            let params: Vec<_> = point.params.iter().map(|(k, v)| format!("{k} = {v}")).collect();
            let _ = writeln!(text, "\nThe point shown: {}", params.join(", "));
        }
        text += "\n";
        point.run.explain(&mut text);
        text
    }
}

fn plural(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

impl CompiledScenario {
    /// Writing to a String does not fail, here and below.
    fn explain(&self, text: &mut String) {
        for flow in &self.flows {
            self.explain_flow(flow, text);
        }
        self.nats.explain(text);
        if !self.cross.is_empty() {
            *text += "cross-traffic\n";
            self.cross.iter().for_each(|cross| self.explain_cross(cross, text));
            *text += "\n";
        }
        let has_moves = !self.moves.is_empty() || !self.reboots.is_empty();
        if !self.changes.is_empty() || !self.ranks.is_empty() || has_moves {
            *text += "changes\n";
            for change in &self.changes {
                let _ = writeln!(text, "  {}", self.explain_change(change));
            }
            for planned in &self.moves {
                let _ = writeln!(text, "  {}", self.explain_move(planned));
            }
            for planned in &self.ranks {
                let _ = writeln!(text, "  {}", self.explain_rank(planned));
            }
            for PlannedReboot { at, after, nat } in &self.reboots {
                let (at, after) = (print_duration(*at), explain_after(*after));
                let name = &self.nats.all[*nat].name;
                let _ = writeln!(text, "  {at}{after}: NAT {name} reboots");
            }
            *text += "\n";
        }
        let _ = writeln!(text, "A run ends at {} at the latest.", print_duration(self.time_limit));
        if self.is_protected {
            *text += "Packets are protected, with a key that both ends share.\n";
        }
        for (i, flow) in self.flows.iter().enumerate() {
            let same = |other: &Flow| {
                *other.config_a == *flow.config_a && *other.config_z == *flow.config_z
            };
            if !self.flows[..i].iter().any(same) {
                explain_config(flow, text);
            }
        }
    }

    fn explain_flow(&self, flow: &Flow, text: &mut String) {
        let (from, to) = (&self.nodes[flow.ends.0], &self.nodes[flow.ends.1]);
        let transfers = explain_transfers(&flow.transfers);
        let _ = match flow.copies {
            1 => writeln!(text, "{from} to {to}: {transfers}"),
            copies => writeln!(text, "{from} to {to}, {copies} flows, each: {transfers}"),
        };
        if !flow.spread.is_zero() {
            let within = print_duration(flow.spread);
            let _ = writeln!(text, "  each starts at a random time within {within} after that");
        }
        for (i, path) in flow.paths.iter().enumerate() {
            let primary = if i == 0 && flow.paths.len() > 1 { ", the primary" } else { "" };
            let relay = if path.is_relayed { ", a relay's" } else { "" };
            let _ = writeln!(text, "  path {}{primary}{relay}", path.name);
            let _ = writeln!(text, "    {}", self.draw(flow.ends.0, path));
            self.explain_path(path, text);
        }
        *text += "\n";
    }

    /// The nodes and links of a path in a row; unnamed nodes are left out.
    fn draw(&self, start: usize, path: &PathModel) -> String {
        let mut line = self.nodes[start].clone();
        // The short form has two nodes: those between hops have no names.
        let is_named = self.nodes.len() > 2;
        for (i, &crossing) in path.crossings.iter().enumerate() {
            let cable = &self.cables[crossing.cable];
            let (there, back, end) = if crossing.is_reversed {
                (&cable.reverse, &cable.forward, cable.ends.0)
            } else {
                (&cable.forward, &cable.reverse, cable.ends.1)
            };
            let _ = write!(line, " ──[{}]──", explain_link(there, back));
            if is_named || i + 1 == path.crossings.len() {
                let _ = write!(line, " {}", self.nodes[end]);
            }
        }
        line
    }

    fn explain_path(&self, path: &PathModel, text: &mut String) {
        let (rate, rtt) = (self.bottleneck(&path.crossings), self.base_rtt(&path.crossings));
        let queue = |crossing: &Crossing| {
            let cable = &self.cables[crossing.cable];
            let side = if crossing.is_reversed { &cable.reverse } else { &cable.forward };
            side.queue.map_or_else(|| "unlimited".to_owned(), print_queue)
        };
        let queues: Vec<String> = path.crossings.iter().map(queue).collect();
        let bdp = match rate.bits_per_second() {
            None => "no bdp".to_owned(),
            Some(bits) => {
                let bytes = bits as f64 * rtt.as_secs_f64() / 8.0;
                let packets = (bytes / ETHERNET_MTU as f64).ceil();
                format!("1 bdp = {} = {packets} packets", print_size(bytes.round() as u64))
            }
        };
        let _ = writeln!(
            text,
            "    lowest rate {}, base RTT {}, {bdp}; queues {}",
            rate_text(rate),
            print_duration(rtt),
            queues.join(", ")
        );
    }

    fn explain_cross(&self, cross: &CrossModel, text: &mut String) {
        let names: Vec<&str> =
            cross.crossings.iter().map(|c| self.cables[c.cable].name.as_str()).collect();
        let traffic = &cross.traffic;
        let pattern = match traffic.pattern {
            Pattern::Cbr => "constant rate".to_owned(),
            Pattern::ParetoOnOff { shape, mean_on, mean_off } => {
                let (on, off) = (print_duration(mean_on), print_duration(mean_off));
                format!("Pareto bursts of {on} and pauses of {off}, shape {shape}")
            }
        };
        let sizes: Vec<String> = traffic.packet_sizes.iter().map(u32::to_string).collect();
        let way = if cross.is_reverse { "back" } else { "forward" };
        let percent = traffic.load * 100.0;
        let nodes = plural(traffic.nodes, "node");
        let _ = writeln!(
            text,
            "  {way} over {}: {percent:.4} % from {nodes}, each with packets of {} bytes; {pattern}",
            names.join(", "),
            sizes.join(", ")
        );
    }

    fn explain_move(&self, planned: &PlannedMove) -> String {
        let PlannedMove { at, after, path: (flow, path), end, away } = planned;
        let (after, at) = (explain_after(*after), print_duration(*at));
        let end = if *end == End::Near { "near" } else { "far" };
        let flow = &self.flows[*flow];
        let path = &flow.paths[*path].name;
        let away = print_duration(*away);
        format!("{at}{after}: the {end} end of path {path} has no address, {away} later a new one")
    }

    fn explain_rank(&self, planned: &PlannedRank) -> String {
        let PlannedRank { at, after, path: (flow, path), rank } = planned;
        let (after, at) = (explain_after(*after), print_duration(*at));
        let path = &self.flows[*flow].paths[*path].name;
        format!("{at}{after}: path {path} has the rank {rank}")
    }

    fn explain_change(&self, planned: &PlannedChange) -> String {
        let PlannedChange { at, after, cable, way, change } = planned;
        let after = explain_after(*after);
        let way = match way {
            Way::Both => "",
            Way::Forward => " forward",
            Way::Reverse => " back",
        };
        let what = match change {
            LinkChange::Cut => "is cut".to_owned(),
            LinkChange::Restore => "is back".to_owned(),
            LinkChange::Rate(rate) => format!("has {}", rate_text(*rate)),
            LinkChange::Delay(delay) => format!("has a delay of {}", print_duration(*delay)),
            LinkChange::Loss(loss) => format!("has a loss of {}", print_loss(*loss)),
            LinkChange::Duplicate(share) => format!("duplicates {}", print_ratio(*share)),
            LinkChange::Reorder(share, by) => {
                format!("holds {} back by {}", print_ratio(*share), print_duration(*by))
            }
            LinkChange::Jitter(jitter) => format!("has a jitter of {}", print_duration(*jitter)),
            LinkChange::Corrupt(share) => format!("damages {}", print_ratio(*share)),
            LinkChange::Mtu(Some(mtu)) => format!("takes packets of at most {mtu} bytes"),
            LinkChange::Mtu(None) => "takes packets of any length".to_owned(),
        };
        let at = print_duration(*at);
        format!("{at}{after}: link {}{way} {what}", self.cables[*cable].name)
    }
}

fn explain_after(after: After) -> &'static str {
    match after {
        After::Start => "",
        After::FirstData => " after the first data",
    }
}

fn explain_transfers(transfers: &[Transfer]) -> String {
    let one = |transfer: &Transfer| {
        let mut text = match transfer.bytes {
            Some(bytes) => print_size(bytes),
            None => "data without end".to_owned(),
        };
        explain_messages(&mut text, transfer);
        if let Some(until) = transfer.until {
            let _ = write!(text, " until {}", print_duration(until));
        }
        if transfer.start > Duration::ZERO {
            let _ = write!(text, " from {}", print_duration(transfer.start));
        }
        if transfer.is_reverse { text + " back" } else { text }
    };
    transfers.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn explain_messages(text: &mut String, transfer: &Transfer) {
    let MessageKind { stream, unordered, length, limits } = transfer.kind;
    if length.is_some() || unordered {
        let _ = write!(text, " in {}messages", if unordered { "unordered " } else { "" });
    }
    if let Some(length) = length {
        let _ = write!(text, " of {length} bytes");
    }
    if let Some(every) = transfer.every {
        let _ = write!(text, " every {}", print_duration(every));
    }
    if stream != 0 {
        let _ = write!(text, " on stream {stream}");
    }
    if let Some(lifetime) = limits.lifetime {
        let _ = write!(text, ", given up after {}", print_duration(lifetime));
    }
    if let Some(times) = limits.max_retransmissions {
        let _ = write!(text, ", retransmitted at most {times} times");
    }
}

/// A link in words: first there, then back where that differs.
fn explain_link(there: &LinkSpec, back: &LinkSpec) -> String {
    let mut parts = Vec::new();
    let mut both = |name: &str, print: &dyn Fn(&LinkSpec) -> String, silent: &str| {
        let (forward, reverse) = (print(there), print(back));
        if forward == reverse && forward == silent {
            return;
        }
        let value =
            if forward == reverse { forward } else { format!("{forward} and {reverse} back") };
        parts.push(format!("{name}{value}"));
    };
    both("", &|link| rate_text(link.rate), "");
    both("", &|link| print_duration(link.delay), "");
    both("loss ", &|link| print_loss(link.loss), "0");
    both("duplicate ", &|link| print_ratio(link.duplicate), "0");
    both("reorder ", &|link| print_ratio(link.reorder), "0");
    both("jitter ", &|link| print_duration(link.jitter), "0 s");
    both("corrupt ", &|link| print_ratio(link.corrupt), "0");
    let mtu = |link: &LinkSpec| match link.mtu {
        Some(mtu) if link.icmp => format!("{mtu}"),
        Some(mtu) => format!("{mtu} without ICMP"),
        None => "unlimited".to_owned(),
    };
    both("MTU ", &mtu, "unlimited");
    both("lost packets ", &|link| link.lost.to_string(), "none");
    let red = |link: &LinkSpec| match link.red {
        Some(red) => format!("{} to {} packets", red.min, red.max),
        None => "off".to_owned(),
    };
    both("RED ", &red, "off");
    let policer = |link: &LinkSpec| match link.policer {
        Some(policer) => {
            format!("{} in bursts of {} bytes", rate_text(policer.rate), policer.burst)
        }
        None => "off".to_owned(),
    };
    both("policer ", &policer, "off");
    let pauses = |link: &LinkSpec| match link.pauses {
        Some(Pauses { first, length, every }) => {
            let [length, every, first] = [length, every, first].map(print_duration);
            format!("{length} every {every} from {first} on")
        }
        None => "none".to_owned(),
    };
    both("pauses ", &pauses, "none");
    parts.join(", ")
}

fn rate_text(rate: Rate) -> String {
    rate.bits_per_second().map_or_else(|| "infinitely fast".to_owned(), print_rate)
}

fn print_loss(loss: Loss) -> String {
    match loss {
        Loss::Bernoulli(loss) => print_ratio(loss),
        Loss::GilbertElliott(_) => format!("{:.4} in bursts", loss.mean()),
    }
}

fn print_queue(queue: QueueLimit) -> String {
    match queue {
        QueueLimit::Packets(packets) => format!("{packets} packets"),
        QueueLimit::Bytes(bytes) => print_size(bytes as u64),
        QueueLimit::Unlimited => "unlimited".to_owned(),
    }
}

fn explain_config(flow: &Flow, text: &mut String) {
    let profile = flow.config_a.profile.name();
    let name = &flow.name;
    let _ =
        writeln!(text, "\n{name}: preset {}, profile {profile}; these differ from it", flow.preset);
    let others = |config: &Config| {
        let rows = config.explain().into_iter();
        rows.filter(|row| row.origin != Origin::Profile && row.value != row.default)
            .collect::<Vec<_>>()
    };
    for row in others(&flow.config_a) {
        let _ = writeln!(
            text,
            "  {:28} {:12} not {} ({}; {})",
            row.name, row.value, row.default, row.unit, row.origin
        );
    }
    let (near, far) = (flow.config_a.explain(), flow.config_z.explain());
    for (a, z) in near.iter().zip(&far).filter(|(a, z)| a.value != z.value) {
        let _ = writeln!(text, "  {:28} {:12} at the receiver, not {}", z.name, z.value, a.value);
    }
}
