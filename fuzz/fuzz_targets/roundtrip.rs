//! Decoded input can be encoded, and then decodes to the same.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use manypath_wire::{
    Abort, Causes, Checksum, Chunk, ErrorCause, ErrorChunk, Packet, PacketBuilder, Parameter,
    Params,
};

fuzz_target!(|bytes: &[u8]| {
    let length = bytes.len();
    let Ok(packet) = Packet::parse(Bytes::copy_from_slice(bytes), Checksum::Ignore) else {
        return;
    };
    let chunks: Vec<Chunk> = packet.chunks().map_while(Result::ok).collect();

    // A last chunk without its padding gets it.
    let mut encoded = Vec::new();
    let mut builder = PacketBuilder::new(&mut encoded, packet.header, length + 3);
    for chunk in &chunks {
        assert!(builder.push(chunk), "{chunk:?} fits where it came from");
    }
    assert_eq!(builder.finish(true), encoded.len());

    let again =
        Packet::parse(encoded.into(), Checksum::Verify).expect("an encoded packet is valid");
    assert_eq!(again.header, packet.header);
    assert_eq!(again.chunks().collect::<Result<Vec<_>, _>>().as_ref(), Ok(&chunks));
    chunks.iter().for_each(lists_survive);
});

/// Parameters and causes, decoded and collected again, decode to the same.
fn lists_survive(chunk: &Chunk) {
    match chunk {
        Chunk::Init(init) | Chunk::InitAck(init) => {
            let parameters: Vec<Parameter> = init.params.iter().map_while(Result::ok).collect();
            let collected: Params = parameters.iter().cloned().collect();
            assert_eq!(collected.iter().collect::<Result<Vec<_>, _>>(), Ok(parameters));
        }
        Chunk::Abort(Abort { causes, .. }) | Chunk::Error(ErrorChunk { causes }) => {
            let causes: Vec<ErrorCause> = causes.iter().map_while(Result::ok).collect();
            let collected: Causes = causes.iter().cloned().collect();
            assert_eq!(collected.iter().collect::<Result<Vec<_>, _>>(), Ok(causes));
        }
        _ => {}
    }
}
