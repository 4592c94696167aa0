//! Parameters of INIT and INIT ACK (RFC 9260 §3.2.1, §3.2.2, §3.3.2, §3.3.3, §5.1.1, §5.1.2).

use std::net::IpAddr;

use bytes::Bytes;
use manypath_proto::testing::*;
use manypath_proto::{AssocClosed, Event, PathState, SendError};
use manypath_wire::{CommonHeader, Init, Parameter, UnknownParameter};

use super::common::last_init;

fn unknown_parameter(ty: u16) -> Parameter {
    Parameter::Unknown(UnknownParameter::new(ty, b"what"))
}

fn reported(init: &Init) -> Vec<Parameter> {
    let params = init.params.iter().map(|p| p.expect("well-formed"));
    params.filter(|p| matches!(p, Parameter::UnrecognizedParameter(_))).collect()
}

#[test]
fn an_init_with_initiate_tag_zero_is_dropped_silently() {
    let mut t = Setup::server().start();
    t.peer(init().tag(0));
    t.expect_nothing();
    let header = CommonHeader { source_port: 5, destination_port: 6, verification_tag: 0 };
    let bytes = t.packet(header, init().tag(0));
    t.peer_bytes(t.pairs[0], bytes);
    t.expect_nothing();
}

#[test]
fn an_init_with_bad_values_is_aborted_with_its_own_tag() {
    for bad in [init().streams(0, 1), init().streams(1, 0), init().rwnd(1499)] {
        let mut t = Setup::server().start();
        t.peer(bad.clone());
        t.expect("ABORT 7");
        assert_eq!(t.last().packet.header.verification_tag, PEER_TAG, "§3.3.2: {bad:?}");
        t.expect_nothing();
    }
    let mut t = Setup::server().start();
    t.peer(init().rwnd(1500));
    t.expect_init_ack();
}

#[test]
fn an_init_in_company_is_dropped_silently() {
    let mut t = Setup::server().start();
    t.peer_with_tag(t.pairs[0], 0, [init(), data(1)]);
    t.peer_with_tag(t.pairs[0], 0, [data(1)]);
    t.peer_with_tag(t.pairs[0], 0, [cookie_ack(), init()]);
    t.expect_nothing();
}

#[test]
fn an_init_with_a_host_name_is_aborted() {
    let mut t = Setup::server().start();
    t.peer(init().param(Parameter::HostNameAddress(Bytes::from_static(b"example.org\0"))));
    t.expect("ABORT 5");
    t.expect_nothing();
}

#[test]
fn unknown_parameters_of_an_init_are_handled_by_their_upper_bits() {
    // §3.2.1: type, whether it is reported, whether what follows is processed.
    let cases = [(0x3fff, 0, false), (0x4001, 1, false), (0x8001, 0, true), (0xc001, 1, true)];
    for (ty, reports, goes_on) in cases {
        let mut t = Setup::server().start();
        t.peer(
            init()
                .param(unknown_parameter(ty))
                .param(Parameter::HostNameAddress(Bytes::from_static(b"a\0"))),
        );
        if goes_on {
            t.expect("ABORT 5");
            continue;
        }
        t.expect_init_ack();
        assert_eq!(reported(&last_init(&t)).len(), reports, "{ty:#x}");
    }
    let mut t = Setup::server().start();
    t.peer(init().param(unknown_parameter(0xc001)).param(unknown_parameter(0x8001)));
    t.expect_init_ack();
    let mut raw = Vec::new();
    unknown_parameter(0xc001).encode(&mut raw);
    let expected = Parameter::UnrecognizedParameter(Bytes::from(raw));
    assert_eq!(reported(&last_init(&t)), [expected], "§3.2.2: the parameter whole");
}

#[test]
fn a_dtls_key_management_parameter_is_skipped_silently() {
    // With a method, without one, and too short for anything.
    for value in [&[1, 2, 3, 4, 3, 0][..], &[1, 2, 3, 4, 3], b""] {
        let offer = || Parameter::Unknown(UnknownParameter::new(0x8006, value));
        let mut t = Setup::server().start();
        t.peer(init().param(offer()).param(unknown_parameter(0xc001)));
        t.expect_init_ack();
        assert_eq!(reported(&last_init(&t)).len(), 1, "the parameter behind it, {value:?}");
        let mut t = Setup::client().start();
        t.connect();
        t.expect_init();
        t.peer(init_ack().param(offer()));
        t.expect("COOKIE ECHO");
        t.expect_nothing();
    }
}

#[test]
fn unknown_parameters_of_an_init_ack_are_reported_with_the_cookie_echo() {
    let mut t = Setup::client().start();
    t.connect();
    t.expect_init();
    t.peer(init_ack().param(unknown_parameter(0xc001)));
    // §5.1: until COOKIE ACK nothing but this packet may be sent.
    t.expect("COOKIE ECHO, ERROR 8");
    t.expect_nothing();
}

#[test]
fn an_unknown_parameter_that_stops_an_init_ack_before_its_cookie_leaves_it_without() {
    let mut t = Setup::client().start();
    t.connect();
    t.expect_init();
    t.peer(
        init_ack()
            .no_params()
            .param(unknown_parameter(0x3fff))
            .param(Parameter::StateCookie(Bytes::from_static(b"behind"))),
    );
    t.expect("ABORT 2");
    let closed = t.events().pop();
    assert!(matches!(closed, Some(Event::Closed(AssocClosed::ProtocolViolation(_)))), "{closed:?}");
}

#[test]
fn an_init_ack_with_bad_values_ends_the_attempt() {
    for bad in [init_ack().streams(0, 1), init_ack().streams(1, 0)] {
        let mut t = Setup::client().start();
        t.connect();
        t.expect_init();
        t.peer(bad);
        t.expect("ABORT 7");
        assert_eq!(t.last().packet.header.verification_tag, PEER_TAG);
        assert!(t.assoc().closed().is_some(), "§3.3.3: the TCB is destroyed");
    }
    let mut t = Setup::client().start();
    t.connect();
    t.expect_init();
    t.peer(init_ack().tag(0));
    t.expect("ABORT T 7");
    assert_eq!(t.last().packet.header.verification_tag, t.tag(), "§3.3.3: reflected");
    assert!(t.assoc().closed().is_some());
}

#[test]
fn the_number_of_streams_is_the_lesser_of_what_one_wants_and_the_other_allows() {
    let mut t = Setup::client().set("outbound_streams", "16").start();
    t.connect_to(init_ack().streams(10, 4));
    assert_eq!(t.assoc().outbound_streams(), 4, "§5.1.1");
    t.try_send(3, 1).expect("the last stream");
    assert_eq!(t.try_send(4, 1), Err(SendError::NoSuchStream { stream: 4, streams: 4 }));

    let mut t = Setup::server().set("outbound_streams", "16").start();
    t.peer(init().streams(10, 4));
    t.expect_init_ack();
    assert_eq!(last_init(&t).outbound_streams, 4, "§3.3.3: not above the MIS of INIT");
}

#[test]
fn messages_queued_for_streams_that_the_peer_then_refuses_end_the_attempt() {
    let mut t = Setup::client().set("outbound_streams", "16").start();
    t.connect();
    t.try_send(9, 1).expect("not known to be invalid yet");
    t.expect_init();
    t.peer(init_ack().streams(10, 4));
    t.expect("ABORT"); // §5.1.1: valid streams only
    let closed = AssocClosed::TooFewStreams { allowed: 4 };
    assert_eq!(t.events().pop(), Some(Event::Closed(closed)));
}

#[test]
fn the_init_ack_is_at_most_three_times_as_long_as_the_init() {
    let many: Vec<_> = (0..8).map(|i| ([10, 0, i, 1], [10, 0, i, 2])).collect();
    let pairs: Vec<_> = many.iter().map(|&(l, r)| ((l, PORT).into(), (r, PORT).into())).collect();
    let mut t = Setup::server().pairs(&pairs).start();
    t.peer(init());
    t.expect_init_ack();
    let (asked, answered) = (12 + 20 + 28, t.last().packet.bytes().len() + 28);
    assert!(answered <= 3 * asked, "{answered} bytes for {asked}");
    let padding = Parameter::SupportedExtensions(Bytes::from_static(&[0; 100]));
    t.peer(init().param(padding));
    t.expect_init_ack();
    let addresses =
        |init: &Init| init.params.iter().filter(|p| matches!(p, Ok(Parameter::Ipv4(_)))).count();
    assert_eq!(addresses(&last_init(&t)), 8, "a longer INIT gets the whole answer");
}

#[test]
fn an_init_full_of_unknown_parameters_is_still_answered() {
    let mut t = Setup::server().start();
    let big = || Parameter::Unknown(UnknownParameter::new(0xc001, &[0; 120]));
    let long = (0..11).fold(init(), |init, _| init.param(big()));
    t.peer(long);
    t.expect_init_ack();
    assert!(t.last().packet.bytes().len() <= 1472, "within the MTU");
    assert!(reported(&last_init(&t)).len() > 8);
}

#[test]
fn the_peers_addresses_become_paths_to_be_verified() {
    let mut t = Setup::server().paths(2).start();
    let listed = [[10, 0, 0, 2], [10, 0, 1, 2]].map(|ip| Parameter::from(IpAddr::from(ip)));
    let [first, second] = listed;
    t.peer(init().param(first).param(second));
    let cookie = t.expect_init_ack();
    t.peer(cookie_echo(&cookie));
    assert_eq!(t.all_sent(), ["P1 COOKIE ACK", "P2 HEARTBEAT"], "§5.1.2, §5.4");
    assert_eq!(t.path(2).remote, t.pairs[1].1);
    assert_eq!(t.path_state(2), PathState::Unconfirmed);
}

#[test]
fn addresses_of_the_other_family_are_ignored() {
    let mut t = Setup::server().start();
    let v6: IpAddr = "2001:db8::5".parse().expect("an address");
    t.accept(init().param(v6.into()));
    assert_eq!(t.assoc().paths().count(), 1, "§5.1.2");
    // The same peer restarts: an address that was listed before is not new.
    t.peer(init().tag(77).param(v6.into()));
    t.expect_init_ack();
}

#[test]
fn a_client_lists_its_addresses_if_it_has_several() {
    let listed = |setup: Setup| {
        let mut t = setup.start();
        t.connect();
        let init = t.expect_init();
        init.params.iter().filter(|p| matches!(p, Ok(Parameter::Ipv4(_)))).count()
    };
    assert_eq!(listed(Setup::client()), 0, "§3.3.2.1: the source address is known anyway");
    assert_eq!(listed(Setup::client().paths(3)), 3);
    assert_eq!(listed(Setup::client().paths(3).set("advertise_addresses", "false")), 0);
}
