//! Packets that the endpoint sent, in words that a test can write down.

use manypath_wire::{Chunk, Data, ErrorCause, GapAckBlock, IData, Packet, Tsn};

/// A packet's chunks, such as `SACK 3 gaps 5-6, DATA 1-4` or `FORWARD TSN 4 0:2` with stream and
/// number of a skipped message. The endpoint's own TSNs count from 1
/// above `base`; those of the peer are as they are.
pub(super) fn render(packet: &Packet, base: Tsn) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut run: Option<(&str, u32, u32)> = None;
    for chunk in packet.chunks() {
        let chunk = chunk.expect("the endpoint sends well-formed chunks");
        if let Chunk::Data(Data { tsn, .. }) | Chunk::IData(IData { tsn, .. }) = &chunk {
            let (name, tsn) = (chunk.name(), tsn.distance_from(base));
            run = match run {
                Some((kind, first, last)) if kind == name && tsn == last + 1 => {
                    Some((name, first, tsn))
                }
                _ => {
                    words.extend(run.map(data_run));
                    Some((name, tsn, tsn))
                }
            };
        } else {
            words.extend(run.take().map(data_run));
            words.push(describe(&chunk, base));
        }
    }
    words.extend(run.map(data_run));
    words.join(", ")
}

fn data_run((name, first, last): (&str, u32, u32)) -> String {
    if first == last { format!("{name} {first}") } else { format!("{name} {first}-{last}") }
}

fn describe(chunk: &Chunk, base: Tsn) -> String {
    match chunk {
        Chunk::Sack(sack) | Chunk::NrSack(sack) => {
            let cum = sack.cum_tsn_ack.0;
            let block = |b: GapAckBlock| {
                let (first, last) =
                    (cum.wrapping_add(b.start.into()), cum.wrapping_add(b.end.into()));
                if first == last { format!(" {first}") } else { format!(" {first}-{last}") }
            };
            let mut text = format!("{} {cum}", chunk.name());
            if sack.gap_ack_blocks().len() > 0 {
                text += " gaps";
                sack.gap_ack_blocks().for_each(|b| text += &block(b));
            }
            if sack.nr_gap_ack_blocks().len() > 0 {
                text += " kept";
                sack.nr_gap_ack_blocks().for_each(|b| text += &block(b));
            }
            if sack.duplicate_tsns().len() > 0 {
                text += " dups";
                sack.duplicate_tsns().for_each(|d| text += &format!(" {}", d.0));
            }
            if sack.flags != 0 {
                text += &format!(" flags {:02x}", sack.flags);
            }
            text
        }
        Chunk::Shutdown(s) => format!("SHUTDOWN {}", s.cum_tsn_ack.0),
        Chunk::Ecne(echo) => format!("ECNE {}", echo.lowest_tsn.0),
        Chunk::Cwr(answer) => format!("CWR {}", answer.lowest_tsn.distance_from(base)),
        Chunk::ShutdownComplete { tag_reflected: true } => "SHUTDOWN COMPLETE T".to_owned(),
        Chunk::Abort(abort) => {
            let t = if abort.tag_reflected { "ABORT T" } else { "ABORT" };
            t.to_owned() + &causes(abort.causes.iter())
        }
        Chunk::Error(error) => "ERROR".to_owned() + &causes(error.causes.iter()),
        Chunk::ForwardTsn(skip) => {
            let mut text = format!("{} {}", chunk.name(), skip.new_cum_tsn.distance_from(base));
            for message in skip.skipped() {
                let u = if message.unordered { "U" } else { "" };
                text += &format!(" {}:{u}{}", message.stream.0, message.mid.0);
            }
            text
        }
        other => other.name().to_owned(),
    }
}

/// The causes by their codes (RFC 9260 §3.3.10), such as ` 7` or ` 1 6`.
fn causes<E: std::fmt::Debug>(causes: impl Iterator<Item = Result<ErrorCause, E>>) -> String {
    causes.map(|c| format!(" {}", c.expect("a well-formed cause").code())).collect()
}
