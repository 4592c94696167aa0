//! Routers that have two addresses, found by the identifications of their IPv4 packets.
//!
//! Many routers number all IPv4 packets that they send by one counter. Two addresses are asked in
//! turn by UDP packets to ports that nobody listens on. If the identifications of the answers rise
//! by little each time, the addresses are one router's: Ally (Spring, Mahajan, Wetherall, Measuring
//! ISP Topologies with Rocketfuel, SIGCOMM 2002). The kernel hands the identification
//! to raw sockets only, which need CAP_NET_RAW.

#[cfg(any(target_os = "linux", test))]
mod answer;
mod counter;
#[cfg(target_os = "linux")]
mod linux;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

#[cfg(target_os = "linux")]
use linux as platform;

pub(crate) use counter::Counter;
use counter::{ANSWERS_MIN, Side, compare};

/// Rounds in which each address is asked once: two more than answers are needed, as routers limit
/// how often they answer.
const ROUNDS_MAX: usize = 5;
/// Time between two rounds.
const PAUSE: Duration = Duration::from_millis(300);
/// Longest time for all rounds together.
const TIME_MAX: Duration = Duration::from_secs(5);
/// Addresses that are asked in one call, so that at most 120 packets of 8 bytes are sent.
pub(crate) const ADDRESSES_MAX: usize = 24;

/// Our address, and the router's address to ask.
pub(crate) type Question = (Ipv4Addr, Ipv4Addr);

/// Identifications of answers, with the address that was asked, in the order of the questions.
pub(crate) type Samples = Vec<(Ipv4Addr, u16)>;

/// Asks the first [`ADDRESSES_MAX`] of these addresses in turn, one packet at a time, for 5 s at
/// most. Nothing comes back where the process may not open a raw socket, or not on Linux.
pub(crate) async fn sample(questions: &[Question]) -> Samples {
    let mut samples = Samples::new();
    let Ok(asker) = platform::Asker::open() else { return samples };
    let questions = &questions[..questions.len().min(ADDRESSES_MAX)];
    let until = Instant::now() + TIME_MAX;
    // The samples of rounds that were complete are of use.
    let _ = timeout_at(until, ask_rounds(asker, questions, &mut samples)).await;
    samples
}

/// Asks until each address has answered often enough, or never in the first two rounds.
async fn ask_rounds(asker: platform::Asker, questions: &[Question], samples: &mut Samples) {
    let asker = Arc::new(asker);
    for round in 0..ROUNDS_MAX {
        for &(local, address) in wanted(questions, samples, round).iter() {
            let asker = Arc::clone(&asker);
            let asking = tokio::task::spawn_blocking(move || asker.ask(local, address));
            if let Ok(Ok(Some(id))) = asking.await {
                samples.push((address, id));
            }
        }
        if wanted(questions, samples, round + 1).is_empty() {
            return;
        }
        sleep(PAUSE).await;
    }
}

/// The questions of a round. All are asked again while any lacks answers, so that they alternate.
fn wanted(questions: &[Question], samples: &Samples, round: usize) -> Vec<Question> {
    let count = |address| samples.iter().filter(|(from, _)| *from == address).count();
    let is_silent = |address| round >= 2 && count(address) == 0;
    let open: Vec<Question> =
        questions.iter().copied().filter(|(_, address)| !is_silent(*address)).collect();
    if open.iter().any(|(_, address)| count(*address) < ANSWERS_MIN) { open } else { Vec::new() }
}

/// The verdict on two of the addresses that were asked.
pub(crate) fn judge(samples: &Samples, a: Ipv4Addr, b: Ipv4Addr) -> Counter {
    let of_pair = samples.iter().filter_map(|&(address, id)| match address {
        _ if address == a => Some((Side::A, id)),
        _ if address == b => Some((Side::B, id)),
        _ => None,
    });
    compare(&of_pair.collect::<Vec<_>>())
}

/// The addresses of these pairs, as long as [`ADDRESSES_MAX`] suffices for whole pairs.
pub(crate) fn within_bounds(
    pairs: impl IntoIterator<Item = (Ipv4Addr, Ipv4Addr)>,
    pairs_max: usize,
) -> (Vec<(Ipv4Addr, Ipv4Addr)>, BTreeSet<Ipv4Addr>) {
    let (mut chosen, mut addresses) = (Vec::new(), BTreeSet::new());
    for (a, b) in pairs {
        let new = [a, b].iter().filter(|ip| !addresses.contains(*ip)).count();
        if chosen.len() < pairs_max && addresses.len() + new <= ADDRESSES_MAX {
            addresses.extend([a, b]);
            chosen.push((a, b));
        }
    }
    (chosen, addresses)
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use std::io;
    use std::net::Ipv4Addr;

    #[derive(Debug)]
    pub(super) struct Asker;

    impl Asker {
        pub(super) fn open() -> io::Result<Asker> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(super) fn ask(&self, _: Ipv4Addr, _: Ipv4Addr) -> io::Result<Option<u16>> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }
}

#[cfg(test)]
mod tests;
