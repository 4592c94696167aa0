//! A network as a scenario of the simulator.

use std::time::Duration;

use manypath_proto::config::units::{print_duration, print_rate};
use manypath_sim::LostPackets;

use crate::loss::LossPiece;
use crate::network::{Network, PathEstimate, Queue};
use crate::outage::Outage;
use crate::rate::Rates;
use crate::record::Record;

/// Before the content, the sender talks for these round-trip times of the slowest path and these
/// seconds, until all paths are verified: a message of 1000 bytes after each of the last time, in
/// seconds, since an idle window would shrink.
const ROUND_TRIPS: f64 = 2.0;
const GREETING_S: f64 = 0.1;
const GREETING_EVERY_S: f64 = 0.1;
/// Interfaces have this MTU unless a link has a larger one.
const ETHERNET: u64 = 1500;

/// When content begins in the scenario, in seconds after its start: the association is open by
/// then, and its paths are verified, as they are when a record begins.
pub fn begin_s(network: &Network) -> f64 {
    let slowest = network.paths.iter().map(|path| path.one_way_delay_s).fold(0.0, f64::max);
    (ROUND_TRIPS * 2.0 * slowest * 100.0).ceil() / 100.0 + GREETING_S
}

/// The words before the content.
fn greeting(begin: f64) -> String {
    let messages = (begin / GREETING_EVERY_S).floor().max(1.0);
    let rate = print_rate((1000.0 * 8.0 / GREETING_EVERY_S) as u64);
    format!("size = \"{} B\"\nrate = \"{rate}\"", messages * 1000.0)
}

/// The text of the scenario: the recorded transfer over the network.
pub fn text(record: &Record, network: &Network) -> String {
    let begin = begin_s(network);
    let recording = &record.recording;
    let mut out = String::new();
    let mut line = |text: String| out.extend([text.as_str(), "\n"]);
    line("# The network of a recorded transfer, as `manypath replay` estimates it.".to_owned());
    line(format!("# Content begins {begin:.2} s after the start, when all paths are verified."));
    line("name = \"replay\"".to_owned());
    let limit = 60.0 + 20.0 * record.time_s();
    line(format!("time_limit = \"{}\"", seconds(limit.ceil())));
    if recording.is_protected {
        line("protected = true".to_owned());
    }
    line("\n[transport]".to_owned());
    line(format!("profile = {}", quoted(&recording.profile)));
    line(format!("preset = {}", quoted(&recording.preset)));
    for (name, value) in &recording.parameters {
        line(format!("{} = {}", name_of(name), quoted(value)));
    }
    let mut content = format!("size = \"{} B\", start = \"{}\"", record.bytes(), seconds(begin));
    if let Some(rate) = recording.rate_bps {
        content += &format!(", rate = \"{}\"", print_rate(rate));
    }
    if network.shared.is_empty() {
        line(format!("\n[[transfer]]\n{}\n\n[[transfer]]", greeting(begin)));
        line(content.replace(", ", "\n"));
        for path in &network.paths {
            line(format!("\n[[path]]           # {}", ends(path)));
            line(format!("delay = \"{}\"", seconds(path.one_way_delay_s)));
            line(bottleneck(&path.rates, path.queue, begin));
            line(faults(path, begin));
        }
    } else {
        line(long_form(network, &content, begin))
    }
    out
}

/// Nodes and links, for paths of which some share one.
fn long_form(network: &Network, content: &str, begin: f64) -> String {
    let mut out = String::new();
    let mut line = |text: String| out.extend([text.as_str(), "\n"]);
    line("\n[[node]]\nname = \"a\"\n\n[[node]]\nname = \"z\"".to_owned());
    let mut routes = vec![String::new(); network.paths.len()];
    for (number, shared) in network.shared.iter().enumerate() {
        let number = number + 1;
        line(format!("\n[[node]]\nname = \"r{number}\""));
        line(format!("\n[[link]]\nname = \"shared{number}\"\nfrom = \"r{number}\"\nto = \"z\""));
        line("delay = \"0 s\"".to_owned());
        line(bottleneck(&shared.rates, shared.queue, begin));
        for member in &shared.paths {
            let name = format!("access{}", member + 1);
            routes[*member] = format!("\"{name}\", \"shared{number}\"");
            let path = &network.paths[*member];
            line(format!("\n[[link]]           # {}", ends(path)));
            line(format!("name = \"{name}\"\nfrom = \"a\"\nto = \"r{number}\""));
            line(format!("delay = \"{}\"", seconds(path.one_way_delay_s)));
            line("rate = \"infinite\"".to_owned());
            line(faults(path, begin));
        }
    }
    for (number, path) in network.paths.iter().enumerate() {
        if !routes[number].is_empty() {
            continue;
        }
        routes[number] = format!("\"path{}\"", number + 1);
        line(format!("\n[[link]]           # {}", ends(path)));
        line(format!("name = \"path{}\"\nfrom = \"a\"\nto = \"z\"", number + 1));
        line(format!("delay = \"{}\"", seconds(path.one_way_delay_s)));
        line(bottleneck(&path.rates, path.queue, begin));
        line(faults(path, begin));
    }
    line("\n[[flow]]\nfrom = \"a\"\nto = \"z\"".to_owned());
    line(format!("{}\ntransfer = [{{ {content} }}]\npath = [", greeting(begin)));
    for route in routes {
        line(format!("    {{ via = [{route}] }},"));
    }
    line("]".to_owned());
    out
}

/// The addresses of a path, for a comment: one line, whatever the record says.
fn ends(path: &PathEstimate) -> String {
    let text = format!("{} - {}", path.local, path.remote);
    text.chars().filter(|c| !c.is_control()).collect()
}

/// Rate and queue.
fn bottleneck(rates: &Rates, queue: Queue, begin: f64) -> String {
    let rate = |bps: f64| print_rate((bps / 1e3).round().max(1.0) as u64 * 1000);
    let first = rates.pieces.first().map_or(1e3, |piece| piece.bps);
    let mut text = format!("rate = \"{}\"\nqueue = \"{} B\"", rate(first), queue.bytes.max(1500));
    let later = rates.pieces.iter().skip(1);
    let changes: Vec<String> = later
        .map(|piece| change(begin + piece.from_s, &format!("to = \"{}\"", rate(piece.bps))))
        .collect();
    if !changes.is_empty() {
        text += &format!("\nrate_changes = {}", list(&changes));
    }
    text
}

/// Losses, outages and the longest packet.
fn faults(path: &PathEstimate, begin: f64) -> String {
    let mut lines = Vec::new();
    let ratio = |piece: &LossPiece| format!("{:.4} %", piece.ratio * 100.0);
    if let Some((numbers, of)) = &path.lost_packets {
        let lost = LostPackets::new(numbers.clone(), *of);
        lines.push(format!("lost = {{ forward = \"{lost}\", reverse = \"none\" }}"));
    } else if path.losses.iter().any(|piece| piece.ratio > 0.0)
        && let Some((first, later)) = path.losses.split_first()
    {
        lines.push(format!("loss = {{ forward = \"{}\", reverse = \"0 %\" }}", ratio(first)));
        let to = |piece: &LossPiece| {
            let to = format!("to = \"{}\", direction = \"forward\"", ratio(piece));
            change(begin + piece.from_s, &to)
        };
        let changes: Vec<String> = later.iter().map(to).collect();
        if !changes.is_empty() {
            lines.push(format!("loss_changes = {}", list(&changes)));
        }
    }
    if !path.outages.is_empty() {
        let down = |outage: &Outage| {
            let length = outage.to_s.map(|to| format!("for = \"{}\"", seconds(to - outage.from_s)));
            change(begin + outage.from_s, &length.unwrap_or_default())
        };
        let down: Vec<String> = path.outages.iter().map(down).collect();
        lines.push(format!("down = {}", list(&down)));
    }
    if path.mtu_bytes != ETHERNET {
        lines.push(format!("mtu = {}", path.mtu_bytes));
    }
    lines.join("\n")
}

fn change(at: f64, more: &str) -> String {
    let comma = if more.is_empty() { "" } else { ", " };
    format!("{{ at = \"{}\"{comma}{more} }}", seconds(at))
}

fn list(items: &[String]) -> String {
    format!("[{}]", items.join(", "))
}

/// A time of the record, to the microsecond.
fn seconds(seconds: f64) -> String {
    let micros = (seconds.clamp(0.0, 1e9) * 1e6).round() as u64;
    print_duration(Duration::from_micros(micros))
}

/// A name as a key of TOML: those of parameters need no quotation marks.
fn name_of(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(is_bare) { name.to_owned() } else { quoted(name) }
}

/// A text in TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", c as u32)),
            c => out.push(c),
        }
    }
    out + "\""
}
