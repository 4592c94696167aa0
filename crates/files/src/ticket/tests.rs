use proptest::prelude::*;

use super::*;

const STRICT: Trust = Trust::Key(key_of(7));

const fn key_of(byte: u8) -> Fingerprint {
    Fingerprint::new([byte; 32])
}

fn ticket() -> Ticket {
    Ticket {
        addresses: vec!["192.0.2.7".parse().unwrap(), "2001:db8::9".parse().unwrap()],
        port: 9899,
        relayed: Vec::new(),
        token: (0..16).collect::<Vec<u8>>().into(),
        trust: STRICT,
    }
}

#[test]
fn a_ticket_is_one_word_and_reads_back() {
    for trust in [STRICT, Trust::Insecure] {
        let ticket = Ticket { trust, ..ticket() };
        let word = ticket.to_string();
        assert!(!word.contains(char::is_whitespace));
        assert_eq!(Ticket::parse(&word), Ok(ticket.clone()));
        assert_eq!(Ticket::parse(&format!(" {word}\n")), Ok(ticket.clone()));
        assert_eq!(Ticket::parse(&word.replace(PREFIX, "")), Err(TicketError::Damaged));
    }
    let word = ticket().to_string();
    let shouted = word.to_ascii_uppercase();
    assert!(Ticket::looks_like(&shouted));
    assert_eq!(Ticket::parse(&shouted), Ok(ticket()), "case does not matter");
    assert_eq!(Ticket::parse("MANYPATH1:AE"), Err(TicketError::OlderVersion));
}

#[test]
fn the_layout_is_the_documented_one() {
    let ticket = Ticket { addresses: vec!["192.0.2.7".parse().unwrap()], ..ticket() };
    let mut body = vec![1, 0x26, 0xab, 16];
    body.extend(0..16);
    body.extend([7; 32]);
    body.extend([1, 4, 192, 0, 2, 7]);
    assert_eq!(ticket.to_string(), word_of(&body));
    let insecure = Ticket { trust: Trust::Insecure, ..ticket };
    body[0] = 2;
    body.drain(20..52);
    assert_eq!(insecure.to_string(), word_of(&body));
    // Made by Python's hashlib and base64.
    assert_eq!(insecure.to_string(), "manypath2:aitkweaaaebagbafaydqqcikbmga2dqpaecmaaaca5qla3rj");
}

/// The ticket with addresses of two relays.
fn relayed() -> Ticket {
    let relayed = [("203.0.113.5:50001", 3478), ("[2001:db8::5]:50002", 3479)];
    let relayed = relayed
        .map(|(address, relay_port)| Relayed { address: address.parse().unwrap(), relay_port });
    Ticket { relayed: relayed.to_vec(), ..ticket() }
}

#[test]
fn relayed_addresses_follow_the_others() {
    let ticket = Ticket { addresses: vec!["192.0.2.7".parse().unwrap()], ..relayed() };
    let mut body = vec![3, 0x26, 0xab, 16];
    body.extend(0..16);
    body.extend([7; 32]);
    body.extend([1, 4, 192, 0, 2, 7]);
    body.extend([2, 4, 203, 0, 113, 5, 0xc3, 0x51, 0x0d, 0x96]);
    body.extend([
        6, 0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0xc3, 0x52, 0x0d, 0x97,
    ]);
    assert_eq!(ticket.to_string(), word_of(&body));
    assert_eq!(Ticket::parse(&ticket.to_string()), Ok(ticket.clone()));
    assert_eq!(ticket.relayed[1].relay(), "[2001:db8::5]:3479".parse().unwrap());
    let insecure = Ticket { trust: Trust::Insecure, ..ticket };
    body[0] = 4;
    body.drain(20..52);
    assert_eq!(insecure.to_string(), word_of(&body));
    assert_eq!(Ticket::parse(&insecure.to_string()), Ok(insecure));
}

#[test]
fn a_ticket_may_have_relayed_addresses_alone() {
    let ticket = Ticket { addresses: Vec::new(), ..relayed() };
    assert_eq!(Ticket::parse(&ticket.to_string()), Ok(ticket));
    let one = [1, 4, 5, 6, 7, 8, 0, 9, 0, 7];
    let read =
        |kind, tail: &[u8]| Ticket::parse(&word_of(&[&[kind, 0, 1, 1, 9, 0][..], tail].concat()));
    assert!(read(4, &one).unwrap().addresses.is_empty());
    assert_eq!(read(4, &[0]), Err(TicketError::Damaged), "neither");
    assert_eq!(read(2, &[]), Err(TicketError::Damaged), "neither, and none may be relayed");
}

#[test]
fn hostile_relayed_addresses_are_refused() {
    let head = [4, 0, 1, 1, 9, 1, 4, 1, 2, 3, 4];
    let one = [4, 5, 6, 7, 8, 0, 9, 0, 7];
    let list = |count: u8, times: usize| [&[count], &one.repeat(times)[..]].concat();
    for tail in [
        vec![],                             // none, and no number of them
        list(0, 0),                         // none
        list(2, 1),                         // more than there are
        list(1, 2),                         // fewer than there are
        list(17, 17),                       // too many
        list(255, 1),                       // far too many
        vec![1, 4, 5, 6, 7, 8, 0, 9, 0],    // cut
        vec![1, 4, 5, 6, 7, 8, 0, 0, 0, 7], // relayed port 0
        vec![1, 4, 5, 6, 7, 8, 0, 9, 0, 0], // port of the relay 0
        vec![1, 5, 5, 6, 7, 8, 0, 9, 0, 7], // unknown family
    ] {
        let word = word_of(&[&head[..], &tail].concat());
        assert_eq!(Ticket::parse(&word), Err(TicketError::Damaged), "{tail:?}");
    }
    for times in [1, 16] {
        let word = word_of(&[&head[..], &list(times as u8, times)].concat());
        assert_eq!(Ticket::parse(&word).unwrap().relayed.len(), times);
    }
}

#[test]
fn both_ends_must_mean_the_same_by_a_ticket() {
    let insecure = Ticket { trust: Trust::Insecure, ..ticket() };
    assert_eq!(ticket().key(false), Ok(Some(key_of(7))));
    assert_eq!(insecure.key(true), Ok(None));
    assert_eq!(insecure.key(false), Err(TrustMismatch::InsecureTicket));
    assert_eq!(ticket().key(true), Err(TrustMismatch::StrictTicket));
}

#[test]
fn tickets_of_other_versions_are_told_apart() {
    // As version 1 made it.
    let old = "manypath1:aeancnqqd2gmcqof3i2v25bwjmq2drtt54aqi7yaaaa2puqcgq";
    assert_eq!(Ticket::parse(old), Err(TicketError::OlderVersion));
    assert_eq!(Ticket::parse("manypath0:"), Err(TicketError::OlderVersion));
    for newer in ["manypath3:aaaa", "manypath3:%", "manypath10:"] {
        assert_eq!(Ticket::parse(newer), Err(TicketError::NewerVersion), "{newer}");
    }
    // A trust that this version does not know.
    assert_eq!(Ticket::parse(&word_of(&[5, 0, 1])), Err(TicketError::NewerVersion));
    for none in ["manypath02:aa", "manypath99999999999999999999999:", "manypath:", "", "manypath2"]
    {
        assert_eq!(Ticket::parse(none), Err(TicketError::Damaged), "{none}");
    }
    // The same body under another version's name.
    let renamed = old.replace("manypath1:", PREFIX);
    assert_eq!(Ticket::parse(&renamed), Err(TicketError::Damaged));
}

#[test]
fn every_truncation_and_every_changed_letter_is_noticed() {
    let word = relayed().to_string();
    for end in PREFIX.len()..word.len() {
        assert_eq!(Ticket::parse(&word[..end]), Err(TicketError::Damaged), "cut at {end}");
    }
    for at in PREFIX.len()..word.len() {
        for letter in b"abcdefghijklmnopqrstuvwxyz234567" {
            let mut other = word.clone().into_bytes();
            if other[at] == *letter {
                continue;
            }
            other[at] = *letter;
            let other = String::from_utf8(other).unwrap();
            assert_eq!(Ticket::parse(&other), Err(TicketError::Damaged), "changed at {at}");
        }
    }
    assert_eq!(Ticket::parse("manypath2:a1b"), Err(TicketError::BadCharacter));
}

#[test]
fn a_forged_layout_with_a_right_checksum_is_refused() {
    for body in [
        vec![],
        vec![2],
        vec![2, 0, 1, 0, 1, 4, 1, 2, 3, 4],       // empty token
        vec![2, 0, 1, 200, 1],                    // token longer than the ticket
        vec![2, 0, 1, 1, 9],                      // cut before the addresses
        vec![2, 0, 1, 1, 9, 0],                   // no address
        vec![2, 0, 1, 1, 9, 2, 4, 1, 2, 3, 4],    // more addresses than there are
        vec![2, 0, 1, 1, 9, 33],                  // more addresses than paths
        vec![2, 0, 1, 1, 9, 1, 5, 1, 2, 3, 4],    // unknown family
        vec![2, 0, 1, 1, 9, 1, 4, 1, 2, 3, 4, 0], // something behind
        vec![2, 0, 0, 1, 9, 1, 4, 1, 2, 3, 4],    // port 0
        vec![1, 0, 1, 1, 9, 1, 4, 1, 2, 3, 4],    // fingerprint missing
    ] {
        let word = word_of(&body);
        assert_eq!(Ticket::parse(&word), Err(TicketError::Damaged), "{body:?}");
    }
    assert!(Ticket::parse(&word_of(&[2, 0, 1, 1, 9, 1, 4, 1, 2, 3, 4])).is_ok());
}

#[test]
fn an_ipv4_address_in_an_ipv6_one_is_read_as_the_ipv4_address() {
    let addresses = ["::ffff:192.0.2.7", "2001:db8::7"].map(|ip| ip.parse().unwrap());
    let word = Ticket { addresses: addresses.to_vec(), ..ticket() }.to_string();
    let read = Ticket::parse(&word).unwrap();
    assert_eq!(
        read.addresses,
        ["192.0.2.7", "2001:db8::7"].map(|ip| ip.parse::<IpAddr>().unwrap())
    );
    assert_eq!(Ticket::parse(&read.to_string()), Ok(read));
}

#[test]
fn tickets_are_told_from_host_names() {
    assert!(Ticket::looks_like("manypath1:abc"));
    assert!(Ticket::looks_like("manypath12:"));
    for host in ["manypath:9899", "manypath.example:9899", "manypath1", "example.org", "[::1]:5"] {
        assert!(!Ticket::looks_like(host), "{host}");
    }
}

#[test]
fn a_ticket_shows_no_token_to_who_debugs() {
    let ticket = Ticket { token: b"hunter2!".to_vec().into(), ..ticket() };
    let shown = format!("{ticket:?}");
    assert!(shown.contains("9899") && !shown.contains("104") && !shown.contains("hunter"));
}

fn tickets() -> impl Strategy<Value = Ticket> {
    let trust = prop_oneof![
        any::<[u8; 32]>().prop_map(|key| Trust::Key(Fingerprint::new(key))),
        Just(Trust::Insecure)
    ];
    let token = prop::collection::vec(any::<u8>(), 1..=255);
    let ip = any::<IpAddr>().prop_map(|ip| ip.to_canonical());
    let relayed = (ip.clone(), 1u16.., 1u16..).prop_map(|(ip, port, relay_port)| Relayed {
        address: SocketAddr::new(ip, port),
        relay_port,
    });
    let several = |least: usize| prop::collection::vec(ip.clone(), least..=ADDRESSES_MAX);
    let some = prop::collection::vec(relayed, 1..=RELAYED_MAX);
    let places =
        prop_oneof![several(1).prop_map(|addresses| (addresses, Vec::new())), (several(0), some)];
    (places, 1u16.., token, trust).prop_map(|(places, port, token, trust)| {
        let (addresses, relayed) = places;
        Ticket { addresses, port, relayed, token: token.into(), trust }
    })
}

proptest! {
    #[test]
    fn every_ticket_reads_back(ticket in tickets()) {
        prop_assert_eq!(Ticket::parse(&ticket.to_string()), Ok(ticket));
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".*", digits in "[a-z2-7]{0,80}") {
        let _ = (Ticket::parse(&text), Ticket::looks_like(&text));
        // A checksum is right by chance once in 4 billion times.
        let word = format!("{PREFIX}{digits}");
        prop_assert!(Ticket::parse(&word).is_err());
    }

    #[test]
    fn any_body_is_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..120)) {
        crate::testing::fuzz_ticket(&body);
    }

    /// Lest a slip of the pen send a file to the same place with another key.
    #[test]
    fn a_changed_character_gives_no_other_ticket(
        ticket in tickets(),
        at in any::<prop::sample::Index>(),
        character in "[a-zA-Z0-9:]",
    ) {
        let mut word = ticket.to_string();
        let at = at.index(word.len());
        word.replace_range(at..=at, &character);
        if let Ok(read) = Ticket::parse(&word) {
            prop_assert_eq!(read, ticket, "only its case was changed");
        }
    }

    #[test]
    fn two_characters_that_changed_places_give_no_other_ticket(
        ticket in tickets(),
        at in any::<prop::sample::Index>(),
    ) {
        let word = ticket.to_string();
        let at = at.index(word.len() - 1);
        let mut swapped = word.clone().into_bytes();
        swapped.swap(at, at + 1);
        let swapped = String::from_utf8(swapped).unwrap();
        prop_assert_eq!(Ticket::parse(&swapped).is_ok(), swapped == word);
    }
}

#[test]
fn tickets_are_hidden_in_a_text() {
    let ticket = "manypath2:aetloegy4hyzneukdu2g6nvs";
    for (text, shown) in [
        (format!("cannot read {ticket}: no such file"), "cannot read manypath2:...: no such file"),
        (format!("'{}' and {ticket}", ticket.to_uppercase()), "'MANYPATH2:...' and manypath2:..."),
        (format!("x:y:{ticket}"), "x:y:manypath2:..."),
        ("from manypath2: to its end".to_owned(), "from manypath2: to its end"),
        ("manypath2:ae... 192.0.2.7:9899".to_owned(), "manypath2:ae... 192.0.2.7:9899"),
        ("ümanypath:abcdefghijk".to_owned(), "ümanypath:abcdefghijk"),
        ("9:abcdefghijk".to_owned(), "9:abcdefghijk"),
        (String::new(), ""),
    ] {
        assert_eq!(hidden(&text), shown);
    }
    let words = ["--bind", &format!("--bind={ticket}"), "192.0.2.7:9899"];
    let text = format!("{ticket}: \"aetloegy4hyzneukdu2\" is no rank");
    assert_eq!(hidden_of(&text, words.into_iter()), "manypath2:...: \"...\" is no rank");
}
