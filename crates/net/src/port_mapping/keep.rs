//! The task that keeps a mapping: asks, renews, asks again, deletes.

use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::epoch::Epoch;
use super::igd::Igd;
use super::place::Place;
use super::udp::{self, Age, Granted, Server};
use super::{MappedBy, MappedPort, MappingState, NotMapped, pcp};
use crate::clock::Clock;

/// Bytes of an announcement at most; longer ones are none.
const ANNOUNCEMENT_MAX: usize = pcp::MESSAGE_MAX + 1;

/// The times of the task.
#[derive(Copy, Clone, Debug)]
pub(super) struct Pace {
    /// The lifetime to ask for: a mapping outlives a program that is killed no longer than that.
    lifetime: Duration,
    /// The shortest time between two requests (RFC 6887 §11.2.1).
    renew_min: Duration,
    /// The longest time until a renewal, whatever the router grants.
    renew_max: Duration,
    /// How often the router is asked for its age.
    look: Duration,
    /// How often a router of UPnP, which has no age, is asked for the mapping.
    look_igd: Duration,
    /// How long a router that made no mapping is left alone: first, and at most.
    retry: Duration,
    retry_max: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            lifetime: Duration::from_secs(1800),
            renew_min: Duration::from_secs(4),
            renew_max: Duration::from_secs(3600),
            look: Duration::from_secs(10),
            look_igd: Duration::from_secs(30),
            retry: Duration::from_secs(30),
            retry_max: Duration::from_secs(900),
        }
    }
}

#[cfg(test)]
impl Pace {
    /// A pace with which tests take no minutes.
    pub(super) fn fast() -> Pace {
        Pace {
            lifetime: Duration::from_secs(4),
            renew_min: Duration::from_millis(300),
            renew_max: Duration::from_secs(3600),
            look: Duration::from_millis(400),
            look_igd: Duration::from_millis(400),
            retry: Duration::from_millis(200),
            retry_max: Duration::from_millis(800),
        }
    }
}

/// A way to the router that works.
#[derive(Debug)]
enum Way {
    Udp(Server),
    Igd(Igd),
}

/// A mapping and the times that follow from it.
struct Held {
    way: Way,
    granted: Granted,
    epoch: Option<Epoch>,
    asked: Instant,
    renew: Instant,
    ends: Option<Instant>,
    /// The router has lost it.
    is_gone: bool,
}

/// Keeps a mapping until nobody listens any more.
pub(super) async fn keep(place: Place, pace: Pace, tell: watch::Sender<MappingState>) {
    if !place.is_usable() {
        tell.send_replace(MappingState::NotMapped(NotMapped::BadAddress));
        tell.closed().await;
        return;
    }
    let clock = Clock::start();
    let mut pause = pace.retry;
    loop {
        // Not cancelled when nobody listens any more: a mapping may have been made.
        let why = match ask(&place, pace).await {
            Ok((way, granted)) => {
                pause = pace.retry;
                let mut held = Held::new(way, granted, pace, &clock);
                tell_of(&tell, &held);
                let why = held.hold(&place, pace, &clock, &tell).await;
                if tell.is_closed() {
                    held.way.delete(&held.granted).await;
                }
                why
            }
            Err(why) => why,
        };
        tell_if_new(&tell, MappingState::NotMapped(why));
        tokio::select! {
            () = tell.closed() => return,
            () = sleep(pause) => {}
        }
        pause = (pause * 2).min(pace.retry_max);
    }
}

/// Asks by all protocols. UPnP is searched for meanwhile, but makes a mapping only when there is
/// none by the others.
async fn ask(place: &Place, pace: Pace) -> Result<(Way, Granted), NotMapped> {
    let lifetime = seconds(pace.lifetime);
    let mut by_udp = pin!(Server::first(place, lifetime));
    let mut finding = pin!(Igd::find(place));
    let mut found = None;
    let why = loop {
        tokio::select! {
            asked = &mut by_udp => match asked {
                Ok((server, granted)) => return Ok((Way::Udp(server), granted)),
                Err(why) => break why,
            },
            igd = &mut finding, if found.is_none() => found = Some(igd),
        }
    };
    let found = match found {
        Some(found) => found,
        None => finding.await,
    };
    match found {
        Ok(igd) => {
            let granted = igd.map(lifetime, None).await?;
            Ok((Way::Igd(igd), granted))
        }
        // The other protocols' answer counts if there was one.
        Err(NotMapped::Silent) => Err(why),
        Err(of_igd) => Err(if why == NotMapped::Silent { of_igd } else { why }),
    }
}

impl Way {
    fn by(&self) -> MappedBy {
        match self {
            Way::Udp(server) => server.by,
            Way::Igd(_) => MappedBy::UpnpIgd,
        }
    }

    async fn again(&mut self, lifetime: u32, had: SocketAddr) -> Result<Granted, NotMapped> {
        match self {
            Way::Udp(server) => server.again(lifetime, Some(had)).await,
            Way::Igd(igd) => igd.map_again(lifetime, Some(had)).await,
        }
    }

    async fn delete(&self, granted: &Granted) {
        match self {
            Way::Udp(server) => server.delete().await,
            Way::Igd(igd) => igd.delete(granted).await,
        }
    }
}

impl Held {
    fn new(way: Way, granted: Granted, pace: Pace, clock: &Clock) -> Held {
        let now = Instant::now();
        let mut held =
            Held { way, granted, epoch: None, asked: now, renew: now, ends: None, is_gone: false };
        held.take(granted, pace, clock);
        held
    }

    /// Takes note of a grant.
    fn take(&mut self, granted: Granted, pace: Pace, clock: &Clock) {
        let now = Instant::now();
        let lifetime = granted.lifetime.map(|s| Duration::from_secs(s.into()));
        let half = lifetime.map_or(pace.renew_max, |lifetime| lifetime / 2);
        self.renew = now + half.clamp(pace.renew_min, pace.renew_max);
        // A router says what it likes: a lifetime beyond what the clock can hold is none.
        self.ends = lifetime.and_then(|lifetime| now.checked_add(lifetime));
        self.asked = now;
        self.epoch = granted.epoch.map(|seconds| Epoch::new(clock.now(), seconds));
        self.granted = granted;
        self.is_gone = false;
    }

    /// Renews the mapping until nobody listens any more, or the mapping is lost: then the reason.
    async fn hold(
        &mut self,
        place: &Place,
        pace: Pace,
        clock: &Clock,
        tell: &watch::Sender<MappingState>,
    ) -> NotMapped {
        let announcements = match self.way {
            Way::Udp(_) => place.announcements().ok(),
            Way::Igd(_) => None,
        };
        let look_every = match self.way {
            Way::Udp(_) => pace.look,
            Way::Igd(_) => pace.look_igd,
        };
        let mut look = Instant::now() + look_every;
        loop {
            let (renew, soonest) = (self.renew, self.asked + pace.renew_min);
            let is_due = tokio::select! {
                () = tell.closed() => return NotMapped::Silent,
                () = sleep_until(renew) => true,
                () = sleep_until(look) => {
                    self.is_gone |= self.is_lost(clock).await;
                    look = Instant::now() + look_every;
                    self.is_gone
                }
                age = heard(announcements.as_ref(), place) => {
                    let may_ask = Instant::now() >= soonest;
                    self.is_gone |= may_ask && self.is_other(clock, age);
                    may_ask && self.is_gone
                }
            };
            if is_due && let Err(why) = self.renew(pace, clock, tell).await {
                return why;
            }
        }
    }

    /// Asks for the mapping again. An error says that it is lost; silence before its end does not.
    async fn renew(
        &mut self,
        pace: Pace,
        clock: &Clock,
        tell: &watch::Sender<MappingState>,
    ) -> Result<(), NotMapped> {
        let lifetime = seconds(pace.lifetime);
        match self.way.again(lifetime, self.granted.external).await {
            Ok(granted) => {
                self.take(granted, pace, clock);
                tell_of(tell, self);
                Ok(())
            }
            Err(why @ (NotMapped::Silent | NotMapped::System(_))) => {
                let now = Instant::now();
                self.asked = now;
                match self.ends {
                    Some(ends) if ends <= now => Err(why),
                    _ if self.is_gone => {
                        self.renew = now + pace.renew_min;
                        Ok(())
                    }
                    // RFC 6887 §11.2.1: each time at half of what is left.
                    Some(ends) => {
                        let half = (ends - now) / 2;
                        self.renew = now + half.clamp(pace.renew_min, pace.renew_max);
                        Ok(())
                    }
                    None => {
                        self.renew = now + pace.look_igd;
                        Ok(())
                    }
                }
            }
            Err(why) => Err(why),
        }
    }

    /// Asks if the mapping is still there. True if not: the router has restarted, or has another
    /// external address.
    async fn is_lost(&mut self, clock: &Clock) -> bool {
        match &self.way {
            Way::Udp(server) => match server.age().await {
                Some(age) => self.is_other(clock, age),
                None => false,
            },
            Way::Igd(igd) => !igd.still_has(&self.granted).await,
        }
    }

    /// True if the age is that of a router that has restarted, or its address is another one.
    fn is_other(&mut self, clock: &Clock, age: Age) -> bool {
        let now = clock.now();
        let is_lost = self.epoch.is_some_and(|epoch| epoch.is_lost(now, age.epoch));
        self.epoch = Some(Epoch::new(now, age.epoch));
        is_lost || age.external.is_some_and(|ip| ip != self.granted.external.ip())
    }
}

/// The age that the router announces next.
async fn heard(socket: Option<&UdpSocket>, place: &Place) -> Age {
    let Some(socket) = socket else { return std::future::pending().await };
    let mut buffer = [0; ANNOUNCEMENT_MAX];
    loop {
        let Ok((len, from)) = socket.recv_from(&mut buffer).await else {
            // It would fail at once again.
            return std::future::pending().await;
        };
        let bytes = &buffer[..len];
        let by_pcp = || pcp::read_announce(bytes).map(|epoch| Age { epoch, external: None });
        let age = by_pcp().or_else(|| udp::age_of(bytes, place.local.port()));
        if let Some(age) = age
            && from.ip() == place.gateway
        {
            return age;
        }
    }
}

fn tell_of(tell: &watch::Sender<MappingState>, held: &Held) {
    let Granted { external, lifetime, .. } = held.granted;
    let lifetime = lifetime.map(|seconds| Duration::from_secs(seconds.into()));
    tell_if_new(tell, MappingState::Mapped(MappedPort { external, by: held.way.by(), lifetime }));
}

/// Tells only changes.
fn tell_if_new(tell: &watch::Sender<MappingState>, state: MappingState) {
    tell.send_if_modified(|now| {
        let is_new = *now != state;
        if is_new {
            *now = state;
        }
        is_new
    });
}

fn seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}
