//! Which runs are the same without being made.

use xxhash_rust::xxh3::xxh3_128;

use super::model::{Cable, CompiledScenario};
use crate::host::knows_true_loss;
use crate::link::loss_range::LossRange;
use crate::spec::Loss;

/// Everything that a run depends on beside its seed. Two points with equal runs have equal
/// identities, whatever their names and wherever their values come from.
///
/// Points that differ only in losses may have runs in common, too: a link that few packets crossed
/// loses the same of them with 4 % and with 5 %. A run tells by its [`LossRange`]s.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    /// Of everything but the losses.
    rest: u128,
    /// Of each link, forward and back; none where the engine is told them, and they are part of the
    /// rest.
    losses: Vec<Loss>,
}

impl Identity {
    /// Runs can be the same only if this number is: a hash.
    pub fn group(&self) -> u128 {
        self.rest
    }

    /// True if the run of `self` that had these ranges, one for each link, is that of `other` with
    /// the same seed.
    pub fn has_run_in_common(&self, ranges: &[LossRange], other: &Identity) -> bool {
        let mut losses = self.losses.iter().zip(&other.losses).zip(ranges);
        self.rest == other.rest && losses.all(|((own, other), range)| range.allows(*own, *other))
    }
}

impl CompiledScenario {
    /// Everything that its runs depend on.
    pub fn identity(&self) -> Identity {
        let configs = self.flows.iter().flat_map(|flow| [&flow.config_a, &flow.config_z]);
        let losses_count = configs.into_iter().any(|config| knows_true_loss(config));
        let mut cables = self.cables.clone();
        let mut losses = Vec::new();
        for Cable { forward, reverse, .. } in cables.iter_mut().filter(|_| !losses_count) {
            let taken =
                [forward, reverse].map(|link| std::mem::replace(&mut link.loss, Loss::NONE));
            losses.extend(taken);
        }
        let CompiledScenario {
            name, time_limit, nodes, flows, changes, moves, cross, stripe, ..
        } = self;
        let rest = (name, time_limit, nodes, &cables, flows, changes, moves, cross, stripe);
        Identity { rest: xxh3_128(format!("{rest:?}").as_bytes()), losses }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Point, RunOptions, Scenario};

    fn points(transport: &str, sweep: &str) -> Vec<Point> {
        let text = format!(
            r#"
            description = "{}"
            transport = {{ preset = "cmt", {transport} }}
            transfer.size = "30 kB"
            [[path]]
            rate = "10 Mbit/s"
            delay = "20 ms"
            [[path]]
            rate = "10 Mbit/s"
            delay = "20 ms"
            [sweep]
            {sweep}
            "#,
            sweep.len()
        );
        Scenario::parse("test.toml", &text).and_then(|scenario| scenario.points()).unwrap()
    }

    #[test]
    fn runs_are_said_to_be_the_same_if_they_are() {
        let losses = "[\"0 %\", \"1 %\", \"2 %\", \"3 %\", \"5 %\", \"8 %\", \"30 %\"]";
        let points = points("", &format!("\"path.2.loss\" = {losses}"));
        let (mut same, mut others) = (0, 0);
        for seed in 1..=20 {
            let runs: Vec<_> = points
                .iter()
                .map(|point| {
                    let output = point.run.run(seed, &RunOptions::default()).unwrap();
                    (point.run.identity(), output)
                })
                .collect();
            for (own, output) in &runs[1..] {
                for (other, of_other) in &runs[1..] {
                    let is_same = own.has_run_in_common(&output.loss_ranges, other);
                    let (hash, other) = (&output.result.transfer, &of_other.result.transfer);
                    assert_eq!(is_same, hash == other, "seed {seed}");
                    *(if is_same { &mut same } else { &mut others }) += 1;
                }
            }
        }
        assert!(same > 20 * 6 && others > 20 * 6, "{same} and {others}");
    }

    #[test]
    fn where_the_engine_knows_the_losses_they_count() {
        let points = points(r#"rtx_policy = "lossrate""#, r#""path.2.loss" = ["0 %", "30 %"]"#);
        assert_ne!(points[0].run.identity().group(), points[1].run.identity().group());
    }

    #[test]
    fn only_what_runs_counts() {
        let of = |losses| points("", &format!("\"path.2.loss\" = {losses}")).remove(0).run;
        assert_eq!(of("[\"5 %\"]").identity(), of("[\"5 %\", \"7 %\"]").identity());
        assert_ne!(of("[\"5 %\"]").identity(), of("[\"6 %\"]").identity());
    }
}
