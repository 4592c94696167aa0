//! Reads everything there is to read in arbitrary bytes. Nothing may panic.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use manypath_wire::{
    Abort, AsconfRequest, AsconfResponse, Checksum, Chunk, DTLS_RECORD_HEADER_LEN, DTLS_RECORD_MIN_LEN, DecodeError, ErrorChunk,
    GapAckBlock, Packet, Parameter, ReConfigParameter, UnknownAction, chunks_of,
};

fuzz_target!(|bytes: &[u8]| {
    let length = bytes.len();
    let bytes = Bytes::copy_from_slice(bytes);
    let verified = Packet::parse(bytes.clone(), Checksum::Verify);
    let Ok(packet) = Packet::parse(bytes, Checksum::Ignore) else {
        assert!(verified.is_err(), "a checksum does not make a packet better");
        return;
    };
    for chunk in packet.chunks() {
        match chunk {
            Ok(chunk) => read(&chunk, length),
            Err(error) => check(&error, length),
        }
    }
});

fn read(chunk: &Chunk, length: usize) {
    match chunk {
        Chunk::Init(init) | Chunk::InitAck(init) => {
            for parameter in &init.params {
                match parameter {
                    Ok(Parameter::DtlsKeyManagement(offer)) => {
                        assert!((1..=255).contains(&offer.methods().len()));
                        assert!(offer.raw().len() >= 9 + offer.methods().len());
                        _ = (offer.tie_breaker(), offer.flags());
                    }
                    Ok(parameter) => _ = parameter.ty(),
                    Err(error) => check(&error, length),
                }
            }
        }
        Chunk::Abort(Abort { causes, .. }) | Chunk::Error(ErrorChunk { causes }) => {
            for cause in causes {
                match cause {
                    Ok(cause) => assert!(!cause.to_string().is_empty()),
                    Err(error) => check(&error, length),
                }
            }
        }
        Chunk::IData(data) => {
            assert_eq!(data.ppid().is_some(), data.flags.begin());
            assert!(!data.flags.begin() || data.fsn() == 0);
        }
        Chunk::Sack(sack) | Chunk::NrSack(sack) => {
            assert_eq!(sack.nr_gap_ack_blocks().len(), sack.nr_gap_ack_blocks().count());
            let blocks: Vec<GapAckBlock> = sack.gap_ack_blocks().collect();
            let ascend = blocks.iter().all(|block| block.start <= block.end)
                && blocks.windows(2).all(|pair| pair[0].end < pair[1].start)
                && blocks.first().is_none_or(|block| block.start > 0);
            assert_eq!(ascend, sack.gap_ack_blocks_ascend());
            assert_eq!(sack.duplicate_tsns().len(), sack.duplicate_tsns().count());
        }
        Chunk::Dtls(dtls) => {
            // As if it were decrypted. One within another is not opened.
            assert!(dtls.record.len() >= DTLS_RECORD_MIN_LEN);
            let content = dtls.record.slice(DTLS_RECORD_HEADER_LEN..);
            for chunk in chunks_of(&content) {
                match chunk {
                    Ok(Chunk::Dtls(_)) => {}
                    Ok(chunk) => read(&chunk, content.len()),
                    Err(error) => check(&error, content.len()),
                }
            }
        }
        Chunk::ReConfig(chunk) => {
            let streams = |parameter: &ReConfigParameter| match parameter {
                ReConfigParameter::OutgoingReset(reset) => reset.streams.len(),
                ReConfigParameter::IncomingReset { streams, .. } => streams.len(),
                _ => 0,
            };
            let listed: usize = chunk.parameters.iter().map(streams).sum();
            assert!(8 * chunk.parameters.len() + 2 * listed <= length);
        }
        Chunk::Asconf(chunk) => {
            assert!(16 + 4 * chunk.requests.len() <= length);
            _ = chunk.requests.iter().map(AsconfRequest::request).max();
        }
        Chunk::AsconfAck(chunk) => {
            assert!(8 + 4 * chunk.responses.len() <= length);
            for response in &chunk.responses {
                let AsconfResponse::Error { causes, .. } = response else { continue };
                for cause in causes {
                    match cause {
                        Ok(cause) => assert!(!cause.to_string().is_empty()),
                        Err(error) => check(&error, length),
                    }
                }
            }
        }
        Chunk::Unknown(unknown) => {
            assert_eq!(unknown.action(), UnknownAction::of_chunk(chunk.ty()));
            assert_eq!(unknown.raw().len(), 4 + unknown.value().len());
        }
        _ => assert_ne!(chunk.name(), "unknown"),
    }
}

fn check(error: &DecodeError, length: usize) {
    assert!(error.offset <= length && !error.to_string().is_empty());
}
