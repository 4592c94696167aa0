//! What runs a scenario elsewhere than in the simulator: two hosts, and independent paths between them.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use manypath_proto::config::Config;

use super::model::{After, CompiledScenario, Flow, Way, direction};
use crate::spec::{LinkChange, LinkSpec, Loss, QueueLimit};

/// One transfer over paths of one link each.
#[derive(Clone, Debug)]
pub struct PlainTransfer {
    /// What results call the preset.
    pub preset: String,
    /// The configuration of the host that associates and sends.
    pub sender: Arc<Config>,
    /// The configuration of the host that waits and receives.
    pub receiver: Arc<Config>,
    /// Bytes to send.
    pub bytes: u64,
    /// The paths.
    pub paths: Vec<PlainPath>,
}

/// The two directions of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct PlainPath {
    /// From the sender.
    pub forward: PlainLink,
    /// To the sender.
    pub reverse: PlainLink,
}

/// One direction of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct PlainLink {
    /// Bits per second.
    pub rate_bps: u64,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// What the queue holds, in bytes; `None` if everything is kept.
    pub queue_bytes: Option<usize>,
    /// Probability that a packet is lost, 0 to 1.
    pub loss: f64,
    /// When it is down, from the start of the run; until [`Duration::MAX`] if for good.
    pub down: Vec<Range<Duration>>,
}

impl CompiledScenario {
    /// The scenario as one transfer over plain paths.
    ///
    /// # Errors
    ///
    /// What it has beside that, in words.
    pub fn plain(&self) -> Result<PlainTransfer, String> {
        let [flow] = self.flows.as_slice() else {
            return Err("it has more than one association".to_owned());
        };
        if !self.cross.is_empty() {
            return Err("it has cross-traffic".to_owned());
        }
        if !self.moves.is_empty() {
            return Err("it has changes of addresses".to_owned());
        }
        let bytes = match flow.transfers.as_slice() {
            [only] if only.start.is_zero() && !only.is_reverse && only.pace.is_none() => only.bytes,
            _ => None,
        };
        let bytes = bytes.ok_or("its transfer is not one file, sent forward from the start")?;
        let mut paths = Vec::new();
        for number in 0..flow.paths.len() {
            paths.push(self.plain_path(flow, number)?);
        }
        Ok(PlainTransfer {
            preset: flow.preset.clone(),
            sender: Arc::clone(&flow.config_a),
            receiver: Arc::clone(&flow.config_z),
            bytes,
            paths,
        })
    }

    fn plain_path(&self, flow: &Flow, number: usize) -> Result<PlainPath, String> {
        let name = &flow.paths[number].name;
        let shared = |cable| {
            flow.paths.iter().flat_map(|path| &path.crossings).filter(|c| c.cable == cable).count()
                > 1
        };
        let crossing = match flow.paths[number].crossings.as_slice() {
            [only] if !only.is_reversed && !shared(only.cable) => *only,
            _ => return Err(format!("path {name} is more than one link of its own")),
        };
        let cable = crossing.cable;
        let in_path = |what: String| format!("path {name} has {what}");
        let link = |spec, way| -> Result<PlainLink, String> {
            let mut link = plain_link(spec).map_err(in_path)?;
            link.down = self.outages(cable, way).map_err(in_path)?;
            Ok(link)
        };
        let forward = link(direction(&self.cables, crossing), Way::Forward)?;
        let reverse = link(&self.cables[cable].reverse, Way::Reverse)?;
        Ok(PlainPath { forward, reverse })
    }

    /// When one direction of a cable is down.
    fn outages(&self, cable: usize, way: Way) -> Result<Vec<Range<Duration>>, String> {
        let mut outages: Vec<Range<Duration>> = Vec::new();
        let own = |change: &&super::model::PlannedChange| {
            change.cable == cable && (change.way == Way::Both || change.way == way)
        };
        for planned in self.changes.iter().filter(own) {
            if planned.after != After::Start {
                return Err("a change whose time counts from the first DATA chunk".to_owned());
            }
            let open = outages.last_mut().filter(|outage| outage.end == Duration::MAX);
            match (&planned.change, open) {
                (LinkChange::Cut, None) => outages.push(planned.at..Duration::MAX),
                (LinkChange::Restore, Some(outage)) => outage.end = planned.at,
                (LinkChange::Cut, Some(_)) | (LinkChange::Restore, None) => {}
                _ => return Err("changes other than outages".to_owned()),
            }
        }
        Ok(outages)
    }
}

fn plain_link(spec: &LinkSpec) -> Result<PlainLink, String> {
    let rate_bps = spec.rate.bits_per_second().ok_or("a link of infinite rate")?;
    let queue_bytes = match spec.queue {
        Some(QueueLimit::Bytes(bytes)) => Some(bytes),
        Some(QueueLimit::Unlimited) | None => None,
        Some(QueueLimit::Packets(_)) => {
            return Err("a queue that counts packets; write a size, such as \"64 KiB\"".to_owned());
        }
    };
    let Loss::Bernoulli(loss) = spec.loss else {
        return Err("loss in bursts".to_owned());
    };
    if spec.red.is_some() {
        return Err("random early detection".to_owned());
    }
    if spec.mtu.is_some() {
        return Err("a link's mtu".to_owned());
    }
    if spec.duplicate > 0.0 || spec.reorder > 0.0 || !spec.jitter.is_zero() {
        return Err("duplication, reordering or jitter".to_owned());
    }
    if spec.corrupt > 0.0 {
        return Err("damaged packets".to_owned());
    }
    Ok(PlainLink { rate_bps, delay: spec.delay, queue_bytes, loss, down: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    const TEXT: &str = r#"
        transfer.size = "1 MB"
        [[path]]
        rate = "10 Mbit/s"
        delay = "45 ms"
        queue = "64 KiB"
        loss = { forward = "3 %", reverse = "1 %" }
        down = [{ at = "5 s", for = "2 s" }, { at = "9 s" }]
    "#;

    fn plain(text: &str) -> Result<PlainTransfer, String> {
        Scenario::parse("test.toml", text).unwrap().points().unwrap()[0].run.plain()
    }

    #[test]
    fn a_path_has_its_two_directions_and_outages() {
        let transfer = plain(TEXT).unwrap();
        let down = vec![
            Duration::from_secs(5)..Duration::from_secs(7),
            Duration::from_secs(9)..Duration::MAX,
        ];
        let forward = PlainLink {
            rate_bps: 10_000_000,
            delay: Duration::from_millis(45),
            queue_bytes: Some(65_536),
            loss: 0.03,
            down,
        };
        let reverse = PlainLink { loss: 0.01, ..forward.clone() };
        assert_eq!(transfer.paths, [PlainPath { forward, reverse }]);
        assert_eq!((transfer.bytes, transfer.preset.as_str()), (1_000_000, "cmt-pf"));
    }

    #[test]
    fn what_is_not_plain_is_named() {
        for (from, to, error) in [
            (
                "queue = \"64 KiB\"",
                "queue = \"50 packets\"",
                "path 1 has a queue that counts packets",
            ),
            (
                "queue = \"64 KiB\"",
                "queue = \"64 KiB\"\njitter = \"1 ms\"",
                "path 1 has duplication, reordering",
            ),
            ("size = \"1 MB\"", "size = \"endless\"", "not one file"),
            (
                "delay = \"45 ms\"",
                "delay = \"45 ms\"\ncross = { load = \"40 %\" }",
                "cross-traffic",
            ),
        ] {
            let text = TEXT.replace(from, to);
            let found = plain(&text).unwrap_err();
            assert!(found.contains(error), "{text}: {found}");
        }
    }
}
