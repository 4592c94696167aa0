//! A recorded association cannot be played to its server again, however much its attacker makes the
//! server forget first: a second association from the same cookie would have the same keys, and
//! seal other packets with nonces that were used.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use manypath_keys::psk::SharedKey;
use manypath_proto::config::Config;
use manypath_proto::{
    ConnectTo, Datagram, Endpoint, EndpointConfig, Event, Instant, Rng, SendOptions,
};
use manypath_wire::{
    Checksum, Chunk, CommonHeader, DtlsKeyManagement, DtlsKeyManagementFlags, Init, Packet,
    PacketBuilder, Parameter, StreamId, Tsn, chunk_type,
};

const PORT: u16 = 9899;

fn address(last: u8) -> SocketAddr {
    ([10, 0, 0, last], PORT).into()
}

fn endpoint(at: SocketAddr, accept: bool) -> Endpoint {
    let config = Config::build("rfc9260", "sctp", &[]).expect("valid");
    let config = EndpointConfig {
        config: Arc::new(config),
        sctp_port: PORT,
        accept,
        max_associations: 10_000,
        local_addresses: vec![at],
    };
    let mut endpoint = Endpoint::new(config, Rng::from_number(u64::from(accept)));
    let key = SharedKey::new(&[7; 32]).expect("long enough");
    endpoint.set_key_management(Some(Arc::new(key)));
    endpoint
}

/// The packets that an endpoint sends now.
fn sent(endpoint: &mut Endpoint, now: Instant) -> Vec<Bytes> {
    let (mut all, mut buf) = (Vec::new(), Vec::new());
    while endpoint.poll_transmit(now, 1, &mut buf).is_some() {
        all.push(Bytes::copy_from_slice(&buf));
    }
    all
}

fn events(endpoint: &mut Endpoint) -> Vec<Event> {
    std::iter::from_fn(|| endpoint.poll_event()).map(|(_, event)| event).collect()
}

fn packet(tag: u32, write: impl FnOnce(&mut PacketBuilder<'_>) -> bool) -> Bytes {
    let header = CommonHeader { source_port: PORT, destination_port: PORT, verification_tag: tag };
    let mut bytes = Vec::new();
    let mut builder = PacketBuilder::new(&mut bytes, header, 1472);
    assert!(write(&mut builder));
    builder.finish(true);
    bytes.into()
}

/// Opens an association with `z` and ends it, without any key.
fn open_and_abort(z: &mut Endpoint, now: Instant, number: u32) {
    let from = SocketAddr::from(([10, 1, (number >> 8) as u8, number as u8], PORT));
    let flags = DtlsKeyManagementFlags::CLIENT | DtlsKeyManagementFlags::SERVER;
    let offer = DtlsKeyManagement::new(number, flags, &[0]).expect("a method");
    let init = Init {
        initiate_tag: number + 1,
        a_rwnd: 1 << 20,
        outbound_streams: 1,
        inbound_streams: 1,
        initial_tsn: Tsn(1),
        params: [Parameter::DtlsKeyManagement(offer)].into_iter().collect(),
    };
    let say = |z: &mut Endpoint, payload| {
        z.handle_datagram(now, Datagram::new(address(2), from, payload));
        sent(z, now)
    };
    let answer = say(z, packet(0, |p| p.push_init(&init))).pop().expect("INIT ACK");
    let answer = Packet::parse(answer, Checksum::Verify).expect("a packet");
    let Some(Ok(Chunk::InitAck(answer))) = answer.chunks().next() else { panic!("{answer:?}") };
    let cookie = answer.params.iter().find_map(|parameter| match parameter {
        Ok(Parameter::StateCookie(cookie)) => Some(cookie),
        _ => None,
    });
    let cookie = cookie.expect("a cookie");
    say(z, packet(answer.initiate_tag, |p| p.push_cookie_echo(&cookie)));
    say(z, packet(answer.initiate_tag, |p| p.push_abort(false, &[])));
}

/// The chunk of a protected packet.
fn record(packet: &Bytes) -> Option<Vec<u8>> {
    (packet.get(12) == Some(&chunk_type::DTLS)).then(|| packet[12..].to_vec())
}

#[test]
fn a_recorded_association_begins_no_other_after_a_flood_of_associations() {
    let (near, far) = (address(1), address(2));
    let (mut a, mut z) = (endpoint(near, false), endpoint(far, true));
    let mut now = Instant::ZERO;
    let to = ConnectTo::new(vec![(near, far)], PORT);
    let id = a.connect(now, to).expect("a free port");
    let (mut recorded, mut sealed, mut seen) = (Vec::new(), BTreeSet::new(), Vec::new());
    for round in 0..40 {
        if round == 5 {
            let assoc = a.assoc_mut(id).expect("open");
            let options = SendOptions {
                stream: StreamId(0),
                ppid: 1,
                unordered: false,
                ..SendOptions::default()
            };
            assoc.send(now, options, Bytes::from_static(b"pay 100 to Eve")).expect("room");
        }
        if round == 20 {
            a.assoc_mut(id).expect("open").shutdown(now);
        }
        for payload in sent(&mut a, now) {
            recorded.push(payload.clone());
            z.handle_datagram(now, Datagram::new(far, near, payload));
        }
        for payload in sent(&mut z, now) {
            sealed.extend(record(&payload));
            a.handle_datagram(now, Datagram::new(near, far, payload));
        }
        seen.extend(events(&mut z));
        now += Duration::from_millis(100);
        a.handle_timeout(now);
        z.handle_timeout(now);
    }
    assert!(seen.iter().any(|event| matches!(event, Event::Readable)), "{seen:?}");
    assert!(seen.iter().any(|event| matches!(event, Event::Closed(_))), "{seen:?}");
    assert!(sealed.len() > 2);

    (0..1200).for_each(|number| open_and_abort(&mut z, now, number));
    events(&mut z);
    for payload in recorded {
        z.handle_datagram(now, Datagram::new(far, near, payload));
        for answer in sent(&mut z, now) {
            // It may repeat the last packet of the association.
            assert!(record(&answer).is_none_or(|answer| sealed.contains(&answer)), "a new record");
        }
    }
    assert_eq!(events(&mut z), [], "nobody has opened an association");
}
