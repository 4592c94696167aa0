//! A router answers, refuses, is silent, talks nonsense, restarts, and lies.

mod router;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::keep::Pace;
use super::*;
use router::{Heard, Pages, Router, Talk, description, igd, local, page};

const PATIENCE: Duration = Duration::from_secs(10);

fn start(router: &Router) -> PortMapping {
    PortMapping::start_at(local(), router.ip.into(), Pace::fast())
}

async fn next(mapping: &mut PortMapping) -> MappingState {
    timeout(PATIENCE, mapping.changed()).await.expect("news in time")
}

/// The mapping that the router makes.
async fn mapped(mapping: &mut PortMapping) -> MappedPort {
    match next(mapping).await {
        MappingState::Mapped(mapped) => mapped,
        other => panic!("{other:?}"),
    }
}

/// The reason why the router makes none.
async fn not_mapped(router: &Router) -> NotMapped {
    let mut mapping = start(router);
    let why = match next(&mut mapping).await {
        MappingState::NotMapped(why) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!((mapping.external(), mapping.how()), (None, None));
    why
}

fn external(port: u16) -> SocketAddr {
    SocketAddr::from(([203, 0, 113, 5], port))
}

fn is_pcp(heard: &Heard) -> bool {
    matches!(heard, Heard::Pcp { .. })
}

#[tokio::test]
async fn a_mapping_by_pcp_is_renewed_at_half_its_lifetime_and_deleted_at_the_end() {
    let router = Router::of_pcp().await;
    router.ways().port = Some(40000);
    let mut mapping = start(&router);
    assert_eq!(mapping.state(), MappingState::Asking);
    let lifetime = Some(Duration::from_secs(4));
    let expected = MappedPort { external: external(40000), by: MappedBy::Pcp, lifetime };
    assert_eq!(mapped(&mut mapping).await, expected);
    assert_eq!((mapping.external(), mapping.how()), (Some(external(40000)), Some(MappedBy::Pcp)));
    let began = Instant::now();
    router.ways().heard.clear();
    router.hears(is_pcp).await;
    let after = began.elapsed();
    assert!((1500..3000).contains(&after.as_millis()), "renewed after {after:?}");
    let [Heard::Pcp { nonce, suggested: 40000, lifetime: 4 }] = router.heard()[..] else {
        panic!("{:?}", router.heard());
    };
    router.ways().heard.clear();
    mapping.close().await;
    let deleted = Heard::Pcp { nonce, lifetime: 0, suggested: 0 };
    assert_eq!(router.heard(), [deleted], "by who made it");
}

#[tokio::test]
async fn a_mapping_that_is_dropped_is_deleted_too() {
    let router = Router::of_pcp().await;
    let mut mapping = start(&router);
    mapped(&mut mapping).await;
    drop(mapping);
    router.hears(|heard| matches!(heard, Heard::Pcp { lifetime: 0, .. })).await;
}

#[tokio::test]
async fn a_mapping_that_is_dropped_before_the_answer_is_deleted_too() {
    let router = Router::of_pcp().await;
    drop(start(&router));
    router.hears(|heard| matches!(heard, Heard::Pcp { lifetime: 0, .. })).await;
}

#[tokio::test]
async fn a_router_that_knows_nat_pmp_only_maps_by_that() {
    // Such a router says that it does not know the version, or says nothing.
    for pcp in [Talk::OtherVersion, Talk::Silent, Talk::Garbage] {
        let router = Router::new().await;
        router.ways().pcp = pcp;
        router.ways().nat_pmp = Talk::Maps;
        let began = Instant::now();
        let mut mapping = start(&router);
        let MappedPort { external: at, by, .. } = mapped(&mut mapping).await;
        assert_eq!((at, by), (external(9899), MappedBy::NatPmp), "{pcp:?}");
        assert!(began.elapsed() < Duration::from_secs(1), "{pcp:?}: {:?}", began.elapsed());
        mapping.close().await;
        let last = router.heard().pop();
        assert_eq!(last, Some(Heard::NatPmp { lifetime: 0, suggested: 0 }), "{pcp:?}");
    }
}

#[tokio::test]
async fn a_silent_router_is_known_as_such_after_two_seconds() {
    let router = Router::new().await;
    let began = Instant::now();
    assert_eq!(not_mapped(&router).await, NotMapped::Silent);
    let after = began.elapsed();
    assert!((1900..2900).contains(&after.as_millis()), "{after:?}");
}

#[tokio::test]
async fn a_host_that_is_no_router_is_known_as_such_after_two_seconds() {
    let began = Instant::now();
    let mut mapping = PortMapping::start(local(), Ipv4Addr::new(127, 93, 77, 201).into());
    assert_eq!(next(&mut mapping).await, MappingState::NotMapped(NotMapped::Silent));
    assert!(began.elapsed() < Duration::from_millis(2900), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_refusal_is_told_with_its_reason() {
    for (pcp, nat_pmp, by, code) in [
        (Talk::Refuses(2), Talk::Silent, MappedBy::Pcp, 2),
        (Talk::Refuses(8), Talk::Refuses(2), MappedBy::Pcp, 8),
        (Talk::OtherVersion, Talk::Refuses(3), MappedBy::NatPmp, 3),
        (Talk::Silent, Talk::Refuses(2), MappedBy::NatPmp, 2),
    ] {
        let router = Router::new().await;
        router.ways().pcp = pcp;
        router.ways().nat_pmp = nat_pmp;
        let why = not_mapped(&router).await;
        let NotMapped::Refused { by: told_by, code: told, .. } = why else { panic!("{why:?}") };
        assert_eq!((told_by, told), (by, code), "{pcp:?} {nat_pmp:?}");
    }
}

#[tokio::test]
async fn a_grant_of_no_use_is_no_mapping() {
    let router = Router::of_pcp().await;
    router.ways().external = Ipv4Addr::UNSPECIFIED;
    assert_eq!(not_mapped(&router).await, NotMapped::NoExternalAddress(MappedBy::Pcp));
    let router = Router::of_pcp().await;
    router.ways().port = Some(0);
    assert_eq!(not_mapped(&router).await, NotMapped::Nonsense(MappedBy::Pcp));
    let router = Router::of_pcp().await;
    router.ways().lifetime = 0;
    assert_eq!(not_mapped(&router).await, NotMapped::Nonsense(MappedBy::Pcp));
}

#[tokio::test]
async fn nonsense_is_no_answer() {
    let router = Router::new().await;
    router.ways().pcp = Talk::Garbage;
    router.ways().nat_pmp = Talk::Garbage;
    assert_eq!(not_mapped(&router).await, NotMapped::Silent);
}

#[tokio::test]
async fn a_mapping_behind_a_carriers_nat_is_told_and_no_address_for_peers() {
    for ip in [[100, 64, 3, 4], [192, 168, 0, 2], [10, 0, 0, 2]] {
        let router = Router::of_pcp().await;
        router.ways().external = ip.into();
        let mut mapping = start(&router);
        let told = mapped(&mut mapping).await;
        assert!(told.is_behind_another_nat(), "{told:?}");
        assert_eq!(told.external.ip(), IpAddr::from(ip));
        assert_eq!((mapping.external(), mapping.how()), (None, Some(MappedBy::Pcp)));
    }
}

#[tokio::test]
async fn a_router_that_restarts_is_asked_again() {
    for (pcp, nat_pmp) in [(Talk::Maps, Talk::Silent), (Talk::OtherVersion, Talk::Maps)] {
        let router = Router::new().await;
        router.ways().pcp = pcp;
        router.ways().nat_pmp = nat_pmp;
        // The times of renewal are not what is tested.
        router.ways().lifetime = 3600;
        let mut mapping = start(&router);
        mapped(&mut mapping).await;
        router.restart();
        router.ways().port = Some(40001);
        let began = Instant::now();
        assert_eq!(mapped(&mut mapping).await.external, external(40001), "{pcp:?}");
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    }
}

#[tokio::test]
async fn a_router_that_announces_its_restart_is_asked_at_once() {
    let router = Router::of_pcp().await;
    router.ways().lifetime = 3600;
    let mut mapping = PortMapping::start(local(), router.ip.into());
    mapped(&mut mapping).await;
    // Asking is at most every 4 s, looking every 10 s.
    tokio::time::sleep(Duration::from_millis(4200)).await;
    router.restart();
    router.ways().port = Some(40002);
    let began = Instant::now();
    router.announce().await;
    assert_eq!(mapped(&mut mapping).await.external, external(40002));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test]
async fn another_external_address_is_told() {
    let router = Router::new().await;
    router.ways().nat_pmp = Talk::Maps;
    router.ways().lifetime = 3600;
    let mut mapping = start(&router);
    mapped(&mut mapping).await;
    router.ways().external = [203, 0, 113, 77].into();
    let told = mapped(&mut mapping).await.external;
    assert_eq!(told.ip(), IpAddr::from([203, 0, 113, 77]));
}

#[tokio::test]
async fn a_router_that_falls_silent_loses_the_mapping_at_its_end_and_is_asked_until_it_is_back() {
    let router = Router::of_pcp().await;
    router.ways().lifetime = 2;
    let mut mapping = start(&router);
    mapped(&mut mapping).await;
    router.ways().pcp = Talk::Silent;
    let began = Instant::now();
    assert_eq!(next(&mut mapping).await, MappingState::NotMapped(NotMapped::Silent));
    assert!(began.elapsed() > Duration::from_millis(1900), "{:?}", began.elapsed());
    router.ways().pcp = Talk::Maps;
    assert_eq!(mapped(&mut mapping).await.external, external(9899));
}

#[tokio::test]
async fn a_mapping_by_upnp_is_renewed_restored_and_deleted() {
    let router = Router::of_igd().await;
    let began = Instant::now();
    let mut mapping = start(&router);
    let lifetime = Some(Duration::from_secs(4));
    let expected = MappedPort { external: external(9899), by: MappedBy::UpnpIgd, lifetime };
    assert_eq!(mapped(&mut mapping).await, expected);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    // It is gone, as after a restart: the router is asked for it again.
    router.restart();
    router
        .hears(|heard| matches!(heard, Heard::Igd { action, .. } if action == "AddPortMapping"))
        .await;
    assert_eq!(router.ways().mapped, [9899]);
    router.ways().heard.clear();
    // It is renewed.
    router
        .hears(|heard| matches!(heard, Heard::Igd { action, .. } if action == "AddPortMapping"))
        .await;
    mapping.close().await;
    assert!(router.ways().mapped.is_empty(), "{:?}", router.heard());
}

#[tokio::test]
async fn where_another_host_has_the_port_another_one_is_mapped() {
    let router = Router::of_igd().await;
    router.ways().act = |ways, heard| match heard {
        Heard::Igd { action, port: 9899, .. } if action == "AddPortMapping" => Err(718),
        heard => igd(ways, heard),
    };
    let mut mapping = start(&router);
    let told = mapped(&mut mapping).await.external;
    assert!(told.port() >= 49152, "{told}");
    assert_eq!(router.ways().mapped, [told.port()]);
}

#[tokio::test]
async fn a_router_without_lifetimes_keeps_the_mapping_until_it_is_deleted() {
    let router = Router::of_igd().await;
    router.ways().act = |ways, heard| match heard {
        Heard::Igd { action, lease: 1.., .. } if action == "AddPortMapping" => Err(725),
        heard => igd(ways, heard),
    };
    let mut mapping = start(&router);
    assert_eq!(mapped(&mut mapping).await.lifetime, None);
    mapping.close().await;
    assert!(router.ways().mapped.is_empty());
}

#[tokio::test]
async fn a_router_of_upnp_that_refuses_is_told_with_its_reason() {
    let router = Router::of_igd().await;
    router.ways().act = |ways, heard| match heard {
        Heard::Igd { action, .. } if action == "AddPortMapping" => Err(606),
        heard => igd(ways, heard),
    };
    let refused = NotMapped::Refused { by: MappedBy::UpnpIgd, why: "not authorized", code: 606 };
    assert_eq!(not_mapped(&router).await, refused);
    let router = Router::of_igd().await;
    router.ways().external = Ipv4Addr::UNSPECIFIED;
    assert_eq!(not_mapped(&router).await, NotMapped::NoExternalAddress(MappedBy::UpnpIgd));
}

#[tokio::test]
async fn no_router_leads_to_another_host() {
    // A second router has everything that the first one's answers point to.
    let other = Router::of_igd().await;
    let control = format!("http://{}:5000/ctl", other.ip);
    // A page is a function without surroundings: it finds the address in the path.
    let pages: [(String, Pages); 3] = [
        (format!("http://{}:5000/root.xml", other.ip), |_| page("200 OK", &description("/ctl"))),
        (format!("http://GATEWAY/{control}"), |path| page("200 OK", &description(&path[1..]))),
        (format!("http://GATEWAY/{control}"), |path| {
            let location = &path[1..];
            format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n")
                .into()
        }),
    ];
    for (location, page) in pages {
        let router = Router::new().await;
        router.ways().location = Some(location.clone());
        router.ways().page = page;
        assert_eq!(not_mapped(&router).await, NotMapped::Nonsense(MappedBy::UpnpIgd), "{location}");
        assert_eq!(other.heard(), [], "{location}");
    }
}

#[tokio::test]
async fn pages_without_end_sense_or_depth_are_given_up() {
    let pages: [Pages; 6] = [
        |_| [&b"HTTP/1.1 200 OK\r\n\r\n"[..], &vec![b'a'; 1 << 20]].concat(),
        |_| b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n".to_vec(),
        |_| [&b"HTTP/1.1 200 OK\r\nX: "[..], &vec![b'x'; 1 << 20]].concat(),
        |_| page("200 OK", &"<a>".repeat(40_000)),
        |_| page("200 OK", &description("")),
        |_| page("404 Not Found", &description("/ctl")),
    ];
    for (number, page) in pages.into_iter().enumerate() {
        let router = Router::of_igd().await;
        router.ways().page = page;
        let began = Instant::now();
        let why = not_mapped(&router).await;
        assert_eq!(why, NotMapped::Nonsense(MappedBy::UpnpIgd), "{number}");
        assert!(began.elapsed() < Duration::from_secs(5), "{number}: {:?}", began.elapsed());
    }
}

#[tokio::test]
async fn an_address_without_a_port_is_not_mapped() {
    let router = Router::of_pcp().await;
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut mapping = PortMapping::start(anywhere, router.ip.into());
    assert_eq!(next(&mut mapping).await, MappingState::NotMapped(NotMapped::BadAddress));
    mapping.close().await;
    assert_eq!(router.heard(), []);
}
