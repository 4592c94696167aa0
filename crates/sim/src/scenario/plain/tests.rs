use std::time::Duration;

use super::*;
use crate::scenario::Scenario;
use crate::spec::{Loss, QueueLimit, Rate};

const TEXT: &str = r#"
    transfer.size = "1 MB"
    [[path]]
    rate = "10 Mbit/s"
    delay = "45 ms"
    queue = "64 KiB"
    loss = { forward = "3 %", reverse = "1 %" }
    down = [{ at = "9 s" }, { at = "5 s", for = "2 s" }]
"#;

fn plain(text: &str) -> Result<PlainTransfer, String> {
    Scenario::parse("test.toml", text).unwrap().points().unwrap()[0].run.plain()
}

fn seconds(count: u64) -> Instant {
    Instant::from_millis(1000 * count)
}

#[test]
fn a_path_has_its_two_directions_and_outages() {
    let transfer = plain(TEXT).unwrap();
    let forward = LinkSpec::mbps_ms(10.0, 45.0)
        .queue(QueueLimit::Bytes(65_536))
        .loss(0.03)
        .down(seconds(5), Some(Duration::from_secs(2)))
        .down(seconds(9), None);
    assert_eq!(forward.first_outage(), Some((seconds(5), Some(seconds(7)))));
    let reverse = LinkSpec { loss: Loss::Bernoulli(0.01), ..forward.clone() };
    assert_eq!(transfer.paths, [PathSpec { hops: vec![HopSpec { forward, reverse }] }]);
    assert_eq!((transfer.bytes, transfer.preset.as_str()), (1_000_000, "adaptive"));
}

#[test]
fn a_path_keeps_its_hops_and_the_changes_of_each_direction() {
    let text = r#"
        transfer.size = "1 MB"
        [[path]]
        rate_changes = [{ at = "1 s", to = "1 Mbit/s", hop = 2, direction = "reverse" }]
        hops = [{ rate = "10 Mbit/s", delay = "1 ms" }, { rate = "5 Mbit/s", delay = "2 ms" }]
    "#;
    let path = plain(text).unwrap().paths.remove(0);
    assert_eq!((path.hops.len(), path.one_way_delay()), (2, Duration::from_millis(3)));
    let slower = (seconds(1), LinkChange::Rate(Rate::mbps(1.0)));
    let changes: Vec<_> =
        path.hops.iter().map(|hop| (&hop.forward.changes, &hop.reverse.changes)).collect();
    let none = Vec::new();
    assert_eq!(changes, [(&none, &none), (&none, &vec![slower])]);
    assert_eq!(path.hops[1].forward.first_outage(), None);
}

#[test]
fn what_is_not_plain_is_named() {
    for (from, to, error) in [
        ("queue = \"64 KiB\"", "queue = \"64 KiB\"\nmtu = \"1400\"", "path 1 has a link's mtu"),
        (
            "at = \"9 s\"",
            "at = \"9 s\", after = \"first data\"",
            "path 1 has a change whose time counts from the first DATA chunk",
        ),
        ("size = \"1 MB\"", "size = \"endless\"", "not one file"),
        ("delay = \"45 ms\"", "delay = \"45 ms\"\ncross = { load = \"40 %\" }", "cross-traffic"),
    ] {
        let text = TEXT.replace(from, to);
        let found = plain(&text).unwrap_err();
        assert!(found.contains(error), "{text}: {found}");
    }
}
