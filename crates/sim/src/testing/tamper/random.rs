//! Everything that the man in the middle can do, at random.

use std::time::Duration;

use bytes::Bytes;
use manypath_proto::Instant;

use super::{ATTACKER, Forgery, Middle, Passing, Side, Verdict, index, other};

/// How packets of a path are disturbed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Disturbance {
    /// Of that many in 100 packets something is made: each may be dropped, held back, sent twice,
    /// changed, or followed by old and forged ones.
    pub percent: u32,
    /// Packets are also dropped and held back.
    pub drops: bool,
}

impl Disturbance {
    /// That many in 100 packets.
    pub fn of(percent: u32) -> Disturbance {
        Disturbance { percent, drops: true }
    }
}

impl Middle {
    /// Does something to a packet, or with it.
    pub(super) fn disturb_one(
        &mut self,
        now: Instant,
        passing: &mut Passing,
        how: Disturbance,
    ) -> Verdict {
        if self.rng.below(100) >= u64::from(how.percent) {
            return Verdict::Pass;
        }
        let delay = Duration::from_millis(1 << self.rng.below(12));
        let later = now + delay;
        match self.rng.below(10) {
            0 if how.drops => return Verdict::Drop,
            1 if how.drops => return Verdict::Hold(delay),
            2 => self.put(later, passing.clone(), true),
            // It arrives from elsewhere, before the packet itself or in its place.
            3 => {
                let mut moved = passing.clone();
                moved.remote = if self.rng.chance(0.5) {
                    ATTACKER
                } else {
                    (passing.remote.ip(), 1024 + self.rng.below(8) as u16).into()
                };
                self.put(now, moved, true);
                let hold = Duration::from_millis(1);
                return if how.drops { Verdict::Hold(hold) } else { Verdict::Pass };
            }
            4 => {
                let copy = damaged(passing, &mut self.rng);
                self.put(now, copy, true);
            }
            5 if how.drops => *passing = damaged(passing, &mut self.rng),
            6 => self.repeat_old(later, passing.to),
            _ => {
                let to = if self.rng.chance(0.5) { passing.to } else { other(passing.to) };
                let forgery = Forgery::ALL[self.rng.below(Forgery::ALL.len() as u64) as usize];
                self.forge_somewhere(now, to, forgery);
            }
        }
        Verdict::Pass
    }

    /// Sends old packets again, some from another address.
    fn repeat_old(&mut self, at: Instant, to: Side) {
        for _ in 0..=self.rng.below(8) {
            let kept = self.seen[index(to)].kept();
            if kept.is_empty() {
                return;
            }
            let choice = self.rng.below(kept.len() as u64) as usize;
            let mut old = kept[choice].clone();
            if self.rng.chance(0.2) {
                old.remote = ATTACKER;
            }
            self.put(at, old, true);
        }
    }

    /// On one path of those on which packets were seen, or from his own address.
    fn forge_somewhere(&mut self, now: Instant, to: Side, forgery: Forgery) {
        let packets = self.forgery(to, forgery);
        let last = &self.seen[index(to)].last;
        if last.is_empty() {
            return;
        }
        let choice = self.rng.below(last.len() as u64) as usize;
        let mut model = last[choice].clone();
        // The answer to a forged INIT must come where he can see it.
        if forgery != Forgery::Restart && self.rng.chance(0.1) {
            model.remote = ATTACKER;
        }
        for payload in packets {
            self.put(now, Passing { payload, ..model.clone() }, true);
        }
    }
}

/// The packet with one to eight bits changed, behind its ports.
fn damaged(passing: &Passing, rng: &mut manypath_proto::Rng) -> Passing {
    let mut bytes = passing.payload.to_vec();
    let most = bytes.len().saturating_sub(4) as u64 * 8;
    for _ in 0..=rng.below(8) {
        let bit = 32 + rng.below(most.max(1)) as usize;
        if let Some(byte) = bytes.get_mut(bit / 8) {
            *byte ^= 1 << (bit % 8);
        }
    }
    Passing { payload: Bytes::from(bytes), ..passing.clone() }
}
