//! Holes through two NATs of every kind, punched by hand (RFC 5128 §3.3).
//!
//! Hosts a and b, each behind a NAT of its own, ask a server for their reflexive addresses and
//! learn each other's. Then both send to the other's again and again, and answer what arrives to
//! where it comes from. The tables say which pairs of NATs let that succeed. They follow from
//! RFC 4787 alone.
//!
//! Let R be an end's reflexive address, which its NAT mapped toward the server, and S the source
//! of what it sends to the other end's R. With endpoint-independent mapping S is R. With the others
//! S is another port than R, since the other end's NAT has another address than the server.
//!
//! *A packet from `from` to `to`'s R* arrives if the filter of `to` admits S of `from` at the
//! mapping R of `to`:
//! - endpoint-independent filtering admits all;
//! - address-dependent filtering asks that `to` sent to the address of `from`'s NAT by the mapping
//!   R. It sends there, to R of `from`, but by R only if its mapping is endpoint-independent;
//! - address-and-port-dependent filtering asks also that S is where `to` sent, R of `from`: that
//!   the mapping of `from` is endpoint-independent, too.
//!
//! *The answer* leaves for S of `from`. Its source is R of `to` with endpoint-independent mapping,
//! else another port of the same NAT. The mapping S of `from` was made for R of `to`. So filtering
//! that looks at the address at most admits the answer, and filtering that looks at the port does
//! if the mapping of `to` is endpoint-independent.
//!
//! A hole is open if a packet and its answer arrive, in one of the two directions.

use super::*;
use crate::nat::NatBehaviour;
use crate::nat::PortAssignment;

/// The kinds of NATs, in the order of rows and columns: mapping, then filtering.
pub(super) fn kinds() -> impl Iterator<Item = NatSpec> {
    let all = NatBehaviour::ALL;
    let each = all.into_iter().flat_map(move |mapping| all.map(|filtering| (mapping, filtering)));
    each.map(|(mapping, filtering)| {
        spec("0.0.0.0", |spec| {
            (spec.mapping, spec.filtering) = (mapping, filtering);
        })
    })
}

/// Rows and columns: mapping E, A, P for endpoint-independent, address-dependent, and
/// address-and-port-dependent; under each, filtering e, a, p for the same.
///
/// Row: the sender's NAT; column: the receiver's. Its filter decides alone where it admits all; the
/// sender's mapping counts only for `Ep`.
const ARRIVES: [&str; 9] = [
    // Ee  Ea  Ep  Ae  Aa  Ap  Pe  Pa  Pp
    "  x   x   x   x   -   -   x   -   -  ", // Ee
    "  x   x   x   x   -   -   x   -   -  ", // Ea
    "  x   x   x   x   -   -   x   -   -  ", // Ep
    "  x   x   -   x   -   -   x   -   -  ", // Ae
    "  x   x   -   x   -   -   x   -   -  ", // Aa
    "  x   x   -   x   -   -   x   -   -  ", // Ap
    "  x   x   -   x   -   -   x   -   -  ", // Pe
    "  x   x   -   x   -   -   x   -   -  ", // Pa
    "  x   x   -   x   -   -   x   -   -  ", // Pp
];

/// Row: one end's NAT; column: the other's. It is its own mirror image.
///
/// `Ee` and `Ea` reach all and are reached by all. `Ep` is reached by endpoint-independent mapping
/// only, and admits no answer from another port. Of two NATs whose mappings depend on peers, a
/// packet arrives at filtering `e` alone, and its answer unless the other end's filtering is `p`.
const OPENS: [&str; 9] = [
    // Ee  Ea  Ep  Ae  Aa  Ap  Pe  Pa  Pp
    "  x   x   x   x   x   x   x   x   x  ", // Ee
    "  x   x   x   x   x   x   x   x   x  ", // Ea
    "  x   x   x   -   -   -   -   -   -  ", // Ep
    "  x   x   -   x   x   -   x   x   -  ", // Ae
    "  x   x   -   x   -   -   x   -   -  ", // Aa
    "  x   x   -   -   -   -   -   -   -  ", // Ap
    "  x   x   -   x   x   -   x   x   -  ", // Pe
    "  x   x   -   x   -   -   x   -   -  ", // Pa
    "  x   x   -   -   -   -   -   -   -  ", // Pp
];

/// An end of an attempt.
struct Puncher {
    host: HostAddress,
    reflexive: SocketAddr,
}

/// Outcome of an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Outcome {
    /// Packets from a to b's reflexive address arrived.
    reaches_b: bool,
    /// Both ends know that the other receives what they send.
    opens: bool,
}

/// Both ends send to each other's reflexive address, five times; nobody answers unless `answers`.
fn punch(near: NatSpec, far: NatSpec, answers: bool) -> Outcome {
    let mut internet = Internet::new();
    let nats = [(near, "198.51.100.1"), (far, "203.0.113.1")]
        .map(|(kind, public)| internet.net.add_nat(NatSpec { public: ip(public), ..kind }));
    // Both have the same private address, as is common.
    let [a, b] = nats.map(|nat| internet.host("192.168.1.2:5000", Some(nat)));
    internet.join(a, b);
    let ends = [a, b].map(|host| {
        let reflexive = internet.net.reflexive(host.node, host.address);
        Puncher { host, reflexive: reflexive.expect("it has the address") }
    });
    let mut outcome = Outcome::default();
    for _ in 0..5 {
        internet.send(ends[0].host, ends[1].reflexive);
        internet.send(ends[1].host, ends[0].reflexive);
        for arrived in internet.run(DELAY) {
            outcome.reaches_b |= arrived.node == b.node;
            if answers {
                let host = if arrived.node == a.node { a } else { b };
                internet.send(host, arrived.remote);
                // An answer tells its receiver that what it sent arrived.
                let answered = internet.run(DELAY);
                outcome.opens |= answered.iter().any(|answer| answer.node != host.node);
            }
        }
    }
    outcome
}

fn table(is_set: impl Fn(NatSpec, NatSpec) -> bool) -> Vec<String> {
    let row = |near: NatSpec| {
        let signs = kinds().map(|far| if is_set(near.clone(), far) { "  x " } else { "  - " });
        signs.collect::<String>() + " "
    };
    kinds().map(row).collect()
}

#[test]
fn packets_to_reflexive_addresses_arrive_where_the_filter_knows_their_source() {
    let found = table(|near, far| punch(near, far, false).reaches_b);
    assert_eq!(found, ARRIVES, "{found:#?}");
}

#[test]
fn holes_open_where_theory_says() {
    let found = table(|near, far| punch(near, far, true).opens);
    assert_eq!(found, OPENS, "{found:#?}");
}

/// How ports are assigned does not matter to holes, only to those who guess ports.
#[test]
fn holes_open_with_random_ports_as_well() {
    let random = |kind| NatSpec { ports: PortAssignment::Random, ..kind };
    let found = table(|near, far| punch(random(near), random(far), true).opens);
    assert_eq!(found, OPENS, "{found:#?}");
}
