use super::*;
use manypath::{SharedEvidence, SharedSign};

fn name(id: PathId) -> PathName {
    PathName {
        path: u16::from(id.0) + 1,
        label: Some(["wlan0", "via relay.example:3478", "lte0"][usize::from(id.0)].to_owned()),
        interface: (id.0 == 0).then(|| "wlan0".to_owned()),
        local: Some(format!("192.0.2.{}:5000", id.0 + 1)),
        remote: Some("192.0.2.9:9899".to_owned()),
        relay: (id.0 == 1).then(|| "relay.example:3478".to_owned()),
    }
}

fn shared(suppressed: Option<PathId>) -> Event {
    let evidence = SharedEvidence {
        paths: (PathId(0), PathId(1)),
        sign: SharedSign::FastRetransmits,
        events: (7, 9),
        matched: 6,
        lag_s: 0.02,
        threshold: 0.5,
        needed: Some(5),
        chance: 0.0071,
        is_shared: true,
    };
    Event::SharedBottleneck { evidence, suppressed }
}

#[test]
fn a_path_with_short_packets_is_told_and_one_with_usual_ones_is_not() {
    let said = |mtu, reason| {
        let event = Event::PathMtu { path: PathId(0), mtu, reason };
        Notice::of(&event, name).expect("told").sentence(Detail::Full)
    };
    assert_eq!(
        said(1420, MtuReason::Confirmed).as_deref(),
        Some(
            "path 1 (wlan0 192.0.2.1:5000 - 192.0.2.9:9899) has packets of 1420 bytes from now on: \
             probes of this size arrive"
        )
    );
    assert!(said(1280, MtuReason::BlackHole).is_some_and(|text| text.ends_with("get lost")));
    assert_eq!((said(1500, MtuReason::Confirmed), said(9000, MtuReason::Confirmed)), (None, None));
}

#[test]
fn a_shared_bottleneck_is_told_with_both_paths_the_evidence_and_what_was_done() {
    let notice = Notice::of(&shared(Some(PathId(1))), name).expect("told");
    assert_eq!(
        notice.sentence(Detail::Full).expect("a sentence"),
        "path 1 (wlan0 192.0.2.1:5000 - 192.0.2.9:9899) and path 2 (192.0.2.2:5000 - 192.0.2.9:9899 via \
         relay.example:3478) share a bottleneck: 6 of 7 fast retransmits came on both together (86 %; more \
         than 50 % of 5 or more were needed; by chance with a probability below 0.8 %), on path 2 20 ms later; path 2, the slower one, carries no more data"
    );
    let brief = "path 1 (wlan0) and path 2 (via relay.example:3478) share a bottleneck; path 2, the \
                 slower one, carries no more data";
    assert_eq!(notice.sentence(Detail::Brief).as_deref(), Some(brief));
    let json = serde_json::to_value(&notice).expect("JSON");
    assert_eq!(json["event"], "shared_bottleneck");
    assert_eq!(
        (&json["paths"][0]["interface"], &json["paths"][1]["interface"]),
        (&"wlan0".into(), &().into())
    );
    assert!(json["paths"][0].get("label").is_none(), "{json}");
    assert_eq!(json["paths"][1]["relay"], "relay.example:3478");
    assert_eq!(json["sign"], "fast_retransmits");
    assert_eq!((&json["matched"], &json["needed"]), (&6.into(), &5.into()));
    assert_eq!((&json["suppressed"], &json["events"][1]), (&2.into(), &9.into()));
    assert!(json.get("grounds").is_none(), "{json}");
}

#[test]
fn a_suppression_that_a_verdict_announced_is_not_told_again() {
    let of = |event| Notice::of(&event, name).expect("a notice").sentence(Detail::Brief);
    let suppressed = |reason| Event::PathSuppressed { path: PathId(1), reason };
    assert_eq!(of(suppressed(SuppressReason::SharedBottleneck)), None);
    let slow = of(suppressed(SuppressReason::Slow)).expect("told");
    assert!(slow.contains("via relay.example:3478) carries no more data"), "{slow}");
    assert!(of(suppressed(SuppressReason::Spare)).is_some_and(|s| s.contains("paths_max")));
    let restored = |reason| of(Event::PathRestored { path: PathId(1), reason }).expect("told");
    assert!(restored(RestoreReason::Better).contains("better than the worst"));
    assert!(restored(RestoreReason::TooFew).contains("too few"));
    assert!(restored(RestoreReason::Disjoint).contains("no other path that works"));
    let kept = of(shared(None)).expect("told");
    assert!(kept.ends_with("both stay in use"), "{kept}");
}

#[test]
fn shared_hops_are_told_once_with_both_paths() {
    let event = Event::SharedHops { path: PathId(1), with: PathId(0), disjoint: 0.125 };
    let notice = Notice::of(&event, name).expect("told");
    let said = notice.sentence(Detail::Brief).expect("a sentence");
    let wanted = "path 2 (via relay.example:3478) shares too many hops with path 1 (wlan0); path 2 carries \
                  no more data";
    assert_eq!(said, wanted);
    let grounds = "(disjointness 0.12, not above 0.5)";
    assert!(notice.sentence(Detail::Full).is_some_and(|full| full.contains(grounds)));
    let json = serde_json::to_value(&notice).expect("JSON");
    assert_eq!((&json["event"], &json["suppressed"]), (&"shared_hops".into(), &2.into()));
    let follows = Event::PathSuppressed { path: PathId(1), reason: SuppressReason::SharesHops };
    assert_eq!(Notice::of(&follows, name).expect("a notice").sentence(Detail::Full), None);
}

#[test]
fn the_peers_sacks_leave_a_path_for_a_reason() {
    let told = |by_peer, reason| {
        let event = Event::PrimaryElected { path: PathId(0), by_peer, reason };
        let notice = Notice::of(&event, name).expect("told");
        let json = serde_json::to_value(&notice).expect("JSON");
        assert_eq!((&json["reason"], &json["path"]), (&reason.name().into(), &1.into()));
        assert_eq!(notice.sentence(Detail::Brief), None, "it is for those who want details");
        notice.sentence(Detail::Full).expect("a sentence")
    };
    let path = "path 1 (wlan0 192.0.2.1:5000 - 192.0.2.9:9899)";
    let wanted = format!("SACKs take {path} from now on:");
    let said = told(true, ElectReason::SetAside);
    assert_eq!(said, format!("the peer's {wanted} the path that had them carries no more data"));
    let said = told(true, ElectReason::Failed);
    assert_eq!(said, format!("the peer's {wanted} the path that had them has failed"));
    let said = told(false, ElectReason::Silent);
    assert_eq!(said, format!("our {wanted} no data comes any more on the path that had them"));
    assert_eq!(told(true, ElectReason::Better), format!("the peer's {wanted} this path is better"));
}

#[test]
fn addresses_and_paths_that_come_and_go_are_told() {
    let of = |event| Notice::of(&event, name).expect("told");
    let (local, remote) = ("192.0.2.7:5".parse().unwrap(), "192.0.2.9:9899".parse().unwrap());
    let gone = of(Event::AddressGone { path: PathId(0), local });
    let wanted = "path 1: 192.0.2.7:5 is no address of this host any more";
    assert_eq!(gone.sentence(Detail::Brief).as_deref(), Some(wanted));
    let added = of(Event::PathAdded { path: PathId(2), local, remote });
    assert_eq!(added.sentence(Detail::Brief).as_deref(), Some("path 3 (lte0) is new"));
    let said = "path 3 (192.0.2.7:5 - 192.0.2.9:9899) is new";
    assert_eq!(added.sentence(Detail::Full).as_deref(), Some(said));
    let json = serde_json::to_value(&added).expect("JSON");
    assert_eq!((&json["event"], &json["local"]), (&"path_added".into(), &"192.0.2.7:5".into()));
    let silent = of(Event::NoAnswer { path: PathId(2), local, remote });
    let wanted = "path 3 (lte0) has no answer from 192.0.2.9:9899 yet";
    assert_eq!(silent.sentence(Detail::Brief).as_deref(), Some(wanted));
    let json = serde_json::to_value(&silent).expect("JSON");
    assert_eq!((&json["event"], &json["local"]), (&"no_answer".into(), &"192.0.2.7:5".into()));
    let removed = of(Event::PathRemoved { path: PathId(2) });
    assert_eq!(removed.sentence(Detail::Brief).as_deref(), Some("path 3 is removed"));
}

#[test]
fn a_path_that_is_gone_has_its_number_only() {
    let (label, interface, relay) = (None, None, None);
    let gone = PathName { path: 3, label, interface, local: None, remote: None, relay };
    assert_eq!([Detail::Brief, Detail::Full].map(|detail| gone.text(detail)), ["path 3"; 2]);
    assert_eq!(Notice::of(&Event::SendBufferEmpty, name), None);
}
