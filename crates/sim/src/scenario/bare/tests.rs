use std::net::Ipv4Addr;
use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::network::Happening;
use crate::scenario::Scenario;

fn bare(text: &str) -> Result<BareNetwork, String> {
    let address = |path: usize, end: End| {
        let last = if end == End::Near { 1 } else { 2 };
        SocketAddr::new(Ipv4Addr::new(10, 0, path as u8 + 1, last).into(), 0)
    };
    Scenario::parse("test.toml", text).unwrap().points().unwrap()[0].run.bare(1, address)
}

/// Sends a packet of 1000 bytes from an end of a path now; when it arrives and at which host.
fn send(bare: &mut BareNetwork, path: usize, from: usize) -> Option<(Duration, usize)> {
    let ends = bare.paths[path].ends;
    let (node, to) = (bare.hosts[ends[from].host].node, ends[1 - from].address);
    bare.net.send(node, ends[from].address, to, Bytes::from_static(&[0; 1000]));
    let begin = bare.net.now();
    while let Some(happening) = bare.net.poll(begin + Duration::from_secs(1)) {
        if let Happening::Packet(packet) = happening {
            let host = bare.hosts.iter().position(|host| host.node == packet.node).unwrap();
            return Some((bare.net.now() - begin, host));
        }
    }
    None
}

const SHORT: &str = r#"
    transfer.size = "1 MB"
    [[path]]
    rate = { forward = "8 Mbit/s", reverse = "4 Mbit/s" }
    delay = "5 ms"
    mtu = 9000
    [[path]]
    hops = [{ rate = "8 Mbit/s", delay = "1 ms" }, { rate = "8 Mbit/s", delay = "20 ms" }]
    down = [{ at = "2 s", for = "3 s", after = "first data" }]
"#;

#[test]
fn packets_cross_the_links_of_their_path_without_added_headers() {
    let mut bare = bare(SHORT).unwrap();
    let names: Vec<_> = bare.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, ["a", "z"]);
    assert_eq!(send(&mut bare, 0, 0), Some((Duration::from_millis(6), 1)));
    assert_eq!(send(&mut bare, 0, 1), Some((Duration::from_millis(7), 0)));
    assert_eq!(send(&mut bare, 1, 0), Some((Duration::from_millis(23), 1)));
    assert_eq!(bare.paths[0].ends.map(|end| end.mtu), [9000, 9000]);
    assert_eq!(bare.paths[1].ends.map(|end| end.mtu), [1500, 1500]);
    let links: Vec<_> = bare.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(links, ["1", "2.1", "2.2"]);
    assert_eq!(bare.net.link_stats(bare.links[0].forward).packets, 1);
}

#[test]
fn changes_after_the_first_data_wait_for_it() {
    let mut bare = bare(SHORT).unwrap();
    bare.net.poll(Instant::from_millis(3000));
    assert!(send(&mut bare, 1, 0).is_some(), "nothing was sent yet, so nothing is cut");
    let first = bare.net.now();
    bare.note_first_data();
    bare.net.poll(first + Duration::from_millis(2100));
    assert_eq!(send(&mut bare, 1, 0), None);
    assert!(send(&mut bare, 0, 0).is_some());
    bare.note_first_data();
    bare.net.poll(first + Duration::from_millis(5100));
    assert!(send(&mut bare, 1, 0).is_some(), "the second call plans nothing");
}

#[test]
fn flows_of_the_long_form_share_their_links() {
    let mut bare = bare(
        r#"
        node = [{ name = "b" }, { name = "r" }, { name = "a" }, { name = "z" }]
        [[link]]
        from = "a"
        to = "r"
        rate = "8 Mbit/s"
        delay = "1 ms"
        [[link]]
        from = "b"
        to = "r"
        rate = "8 Mbit/s"
        delay = "2 ms"
        [[link]]
        name = "core"
        from = "r"
        to = "z"
        rate = "8 Mbit/s"
        delay = "3 ms"
        [[flow]]
        from = "a"
        to = "z"
        size = "1 MB"
        [[flow]]
        from = "b"
        to = "z"
        size = "1 MB"
        "#,
    )
    .unwrap();
    let names: Vec<_> = bare.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, ["b", "a", "z"], "the router is no host");
    assert_eq!(send(&mut bare, 0, 0), Some((Duration::from_millis(6), 2)));
    assert_eq!(send(&mut bare, 1, 1), Some((Duration::from_millis(7), 0)));
    let core = &bare.links[2];
    let packets = [core.forward, core.reverse].map(|link| bare.net.link_stats(link).packets);
    assert_eq!((core.name.as_str(), packets), ("core", [1, 1]));
}

#[test]
fn changes_of_addresses_are_refused() {
    let text = format!("{SHORT}\n[[event]]\npath = 1\nat = \"1 s\"\nchange = \"renumber\"\n");
    assert_eq!(bare(&text).unwrap_err(), "it has changes of addresses");
}
