use std::thread;

use super::*;

/// Answers INITs of up to `longest` bytes like a host that takes associations, `times` times.
fn responder(longest: usize, times: usize) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    thread::spawn(move || {
        let mut buffer = vec![0; 70_000];
        for _ in 0..times {
            let Ok((len, from)) = socket.recv_from(&mut buffer) else { return };
            // The tag is behind the headers of the packet and of the chunk.
            if len <= longest && buffer[12] == 1 {
                let tag = u32::from_be_bytes(buffer[16..20].try_into().unwrap());
                let _ = socket.send_to(&abort(tag), from);
            }
        }
    });
    address
}

fn abort(tag: u32) -> Vec<u8> {
    use manypath_wire::{CommonHeader, PacketBuilder};
    let header = CommonHeader { source_port: 9899, destination_port: 9899, verification_tag: tag };
    let mut bytes = Vec::new();
    let mut packet = PacketBuilder::new(&mut bytes, header, 1200);
    packet.push_abort(false, &[]);
    packet.finish(true);
    bytes
}

fn loopback() -> IpAddr {
    IpAddr::from([127, 0, 0, 1])
}

#[test]
fn an_answer_is_told_from_silence_and_from_refusal() {
    let heard = reach(loopback(), None, responder(2000, 1)).unwrap();
    assert!(heard.is_answered(), "{heard:?}");
    let deaf = UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent = reach(loopback(), None, deaf.local_addr().unwrap()).unwrap();
    assert_eq!((silent.is_answered(), silent.sent, silent.error), (false, 4, None));
    let closed = deaf.local_addr().unwrap();
    drop(deaf);
    let refused = reach(loopback(), None, closed).unwrap();
    assert_eq!(refused.error, Some(SendError::Refused));
}

#[test]
fn probes_are_as_long_as_asked_for() {
    for len in [0, 100, 1000, 1372, 1472, 8972] {
        let bytes = packet::init(7, len);
        assert_eq!(bytes.len(), len.max(32), "{len}");
        assert_eq!(packet::answered(&bytes), None, "a question is no answer");
    }
    assert_eq!(packet::answered(&abort(9)), Some(9));
    assert_eq!(packet::answered(b""), None);
    assert_eq!(packet::answered(&[0; 40]), None);
}

#[test]
#[cfg(target_os = "linux")]
fn the_largest_packet_that_arrives_is_found() {
    let rtt = Duration::from_millis(1);
    let all = responder(70_000, 100);
    let found = search(loopback(), None, all, 1500, rtt).unwrap();
    assert_eq!((found.path, found.was_told), (1500, false));
    // 1400 bytes of IP are 1372 of UDP.
    let some = responder(1372, 1000);
    let found = search(loopback(), None, some, 1500, rtt).unwrap();
    assert_eq!((found.path, found.was_told), (1400, false));
}

#[test]
fn a_stun_server_says_how_it_sees_us() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    thread::spawn(move || {
        use turn_types::stun::attribute::XorMappedAddress;
        use turn_types::stun::message::{Message, MessageWriteVec};
        use turn_types::stun::prelude::*;
        let mut buffer = [0; 200];
        let (len, from) = server.recv_from(&mut buffer).unwrap();
        let request = Message::from_bytes(&buffer[..len]).unwrap();
        let mut answer = Message::builder_success(&request, MessageWriteVec::new());
        let seen = XorMappedAddress::new("192.0.2.7:77".parse().unwrap(), request.transaction_id());
        answer.add_attribute(&seen).unwrap();
        server.send_to(&answer.finish(), from).unwrap();
    });
    let found = mapped(loopback(), None, &[address]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].server, found[0].seen), (address, "192.0.2.7:77".parse().unwrap()));
}
