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
