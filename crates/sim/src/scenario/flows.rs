//! Flows and their transfers.

use std::time::Duration;

use manypath_proto::config::units::print_duration;

use super::error::ScenarioError;
use super::keys::TRANSFER;
use super::model::{CompiledScenario, Flow, PathModel, Transfer};
use super::read::{Named, Reader};
use super::transport::Transport;
use crate::traffic::{LONGEST_MESSAGE, Limits, MessageKind};

type Result<T> = std::result::Result<T, ScenarioError>;

pub(super) fn flow(
    name: &str,
    transport: &Transport,
    paths: Vec<PathModel>,
    transfers: Vec<Transfer>,
    ends: (usize, usize),
) -> Flow {
    Flow {
        name: name.to_owned(),
        ends,
        config_a: transport.a.clone(),
        config_z: transport.z.clone(),
        preset: transport.preset.clone(),
        paths,
        transfers,
        copies: 1,
        spread: Duration::ZERO,
        is_traffic: false,
    }
}

/// AppStripe: one association per path, each with the whole file.
pub(super) fn striped(
    top: &Reader<'_>,
    transport: &Transport,
    paths: Vec<PathModel>,
    transfers: &[Transfer],
    ends: (usize, usize),
    out: &mut CompiledScenario,
) -> Result<()> {
    let [Transfer { bytes: Some(bytes), is_reverse: false, .. }] = transfers else {
        let remedy = "give it one [transfer] of a size, forward";
        return Err(top.place.error("the preset appstripe splits one file", remedy));
    };
    out.stripe = Some(*bytes);
    for path in paths {
        let name = format!("stripe {}", path.name);
        out.flows.push(flow(&name, transport, vec![path], transfers.to_vec(), ends));
    }
    Ok(())
}

/// Reads transfers, in the order in which they start.
pub(super) fn transfers(elements: &[Named<'_>], limit: Duration) -> Result<Vec<Transfer>> {
    let mut transfers = Vec::new();
    for element in elements {
        let table = element.table(&TRANSFER)?;
        transfers.push(transfer(&table, limit)?);
    }
    transfers.sort_by_key(|transfer: &Transfer| transfer.start);
    Ok(transfers)
}

/// The longest file: what a run could count without overflow, by far.
const LARGEST: u64 = 1 << 60;

const SWITCH: [(&str, bool); 2] = [("true", true), ("false", false)];

/// Reads a transfer of a run that ends at `limit`.
pub(super) fn transfer(table: &Reader<'_>, limit: Duration) -> Result<Transfer> {
    let size = table.need("size", "\"8 MB\"")?;
    let count = table.get("count").map_or(Ok(1), |named| named.whole(1..=1_000_000))?;
    let bytes = match size.text()?.as_str() {
        "endless" => None,
        _ => match size.size()?.checked_mul(count).filter(|total| *total <= LARGEST) {
            Some(0) => return Err(size.error("nothing to send", "write a size above zero")),
            Some(total) => Some(total),
            None => return Err(size.error("too much to send", "write a smaller size or count")),
        },
    };
    let start = table.get("start").map_or(Ok(Duration::ZERO), |named| named.duration())?;
    if let Some(named) = table.get("start")
        && start >= limit
    {
        let what = format!("the run has ended by then, at {}", print_duration(limit));
        return Err(named.error(what, "write an earlier time, or a longer time_limit"));
    }
    let until = table.get("until").map(|named| named.duration()).transpose()?;
    if let (Some(named), Some(until)) = (table.get("until"), until) {
        if bytes.is_some() {
            return Err(
                named.error("a transfer of a size ends by itself", "write size = \"endless\"")
            );
        }
        if until <= start {
            return Err(named.error("it ends before it starts", "write a later time"));
        }
    }
    let directions = [("forward", false), ("reverse", true)];
    Ok(Transfer {
        bytes,
        start,
        until,
        is_reverse: table.get("direction").map_or(Ok(false), |named| named.word(&directions))?,
        kind: kind(table)?,
        every: every(table, bytes)?,
        latency: table.get("latency").map_or(Ok(false), |named| named.word(&SWITCH))?,
    })
}

/// Bytes of a message that an application hands over at a pace.
const PACED_MESSAGE: usize = 1000;

/// Streams that a transfer may name: each has a state of its own at both ends.
const STREAMS: u64 = 1000;

/// Reads what messages are like.
fn kind(table: &Reader<'_>) -> Result<MessageKind> {
    let whole =
        |key: &'static str, allowed| table.get(key).map(|named| named.whole(allowed)).transpose();
    let length = message_length(table)?;
    Ok(MessageKind {
        stream: whole("stream", 0..=STREAMS - 1)?.unwrap_or(0) as u16,
        unordered: table.get("unordered").map_or(Ok(false), |named| named.word(&SWITCH))?,
        length: length.or(table.get("rate").map(|_| PACED_MESSAGE)),
        limits: Limits {
            lifetime: table.get("lifetime").map(|named| named.duration()).transpose()?,
            max_retransmissions: whole("max_retransmissions", 0..=65_535)?.map(|n| n as u16),
        },
    })
}

/// Checks that the associations take the messages of the transfers.
pub(super) fn check_messages(top: &Reader<'_>, flows: &[Flow]) -> Result<()> {
    for flow in flows {
        for transfer in &flow.transfers {
            let MessageKind { stream, length, .. } = transfer.kind;
            let (mut from, mut to) = (&flow.config_a, &flow.config_z);
            if transfer.is_reverse {
                std::mem::swap(&mut from, &mut to);
            }
            let streams = from.outbound_streams.min(to.inbound_streams);
            if stream >= streams {
                let what = format!("stream {stream} of {streams} that the association has");
                let remedy = "write a lower number, or set outbound_streams and inbound_streams";
                return Err(top.place.error(what, remedy));
            }
            if length.is_some_and(|length| length > from.send_buffer) {
                let what = "a message longer than the send buffer";
                let remedy = "write a shorter message, or a larger transport.send_buffer";
                return Err(top.place.error(what, remedy));
            }
        }
    }
    Ok(())
}

fn message_length(table: &Reader<'_>) -> Result<Option<usize>> {
    let Some(named) = table.get("message") else { return Ok(None) };
    match named.size()? {
        bytes @ 1.. if bytes <= LONGEST_MESSAGE as u64 => Ok(Some(bytes as usize)),
        _ => Err(named.error("no such message can be sent", "write 1 byte to 1 MiB")),
    }
}

/// Reads the pace of the application that sends `bytes`, if it has one: the time from one message
/// to the next.
fn every(table: &Reader<'_>, bytes: Option<u64>) -> Result<Option<Duration>> {
    let Some(named) = table.get("rate") else { return Ok(None) };
    if bytes.is_none() {
        return Err(named.error("a transfer without end has no pace", "write a size"));
    }
    let bits = named.rate()?.bits_per_second().filter(|bits| *bits <= 1_000_000_000_000);
    let remedy = "write up to 1 Tbit/s, or leave it out to send everything at once";
    let bits = bits.ok_or_else(|| named.error("too fast for an application", remedy))?;
    let length = message_length(table)?.unwrap_or(PACED_MESSAGE) as u64;
    match length * 8 * 1_000_000_000 / bits {
        0 => Err(named.error("more than a message each nanosecond", "write a longer message")),
        nanos => Ok(Some(Duration::from_nanos(nanos))),
    }
}
