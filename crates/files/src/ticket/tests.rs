use super::*;

fn ticket() -> Ticket {
    Ticket {
        addresses: vec!["192.0.2.7".parse().unwrap(), "2001:db8::9".parse().unwrap()],
        port: 9899,
        token: (0..16).collect(),
        fingerprint: None,
    }
}

#[test]
fn a_ticket_is_one_word_and_reads_back() {
    for fingerprint in [None, Some([7; 32])] {
        let ticket = Ticket { fingerprint, ..ticket() };
        let word = ticket.to_string();
        assert!(!word.contains(char::is_whitespace));
        assert_eq!(Ticket::parse(&word), Ok(ticket.clone()));
        assert_eq!(Ticket::parse(&format!(" {word}\n")), Ok(ticket.clone()));
        assert_eq!(Ticket::parse(&word.replace(PREFIX, "")), Err(TicketError::OtherVersion));
    }
    let word = ticket().to_string();
    let shouted = format!("{PREFIX}{}", word[PREFIX.len()..].to_ascii_uppercase());
    assert_eq!(Ticket::parse(&shouted), Ok(ticket()), "case does not matter");
}

#[test]
fn every_truncation_and_every_changed_letter_is_noticed() {
    let word = ticket().to_string();
    for end in PREFIX.len()..word.len() {
        assert_eq!(Ticket::parse(&word[..end]), Err(TicketError::Damaged), "cut at {end}");
    }
    for at in PREFIX.len()..word.len() {
        let mut other = word.clone().into_bytes();
        other[at] = if other[at] == b'a' { b'b' } else { b'a' };
        let other = String::from_utf8(other).unwrap();
        assert_eq!(Ticket::parse(&other), Err(TicketError::Damaged), "changed at {at}");
    }
    assert_eq!(Ticket::parse("manypath1:a1b"), Err(TicketError::BadCharacter));
    assert_eq!(Ticket::parse("manypath2:aaaa"), Err(TicketError::OtherVersion));
}

#[test]
fn a_forged_layout_with_a_right_checksum_is_refused() {
    for body in [
        vec![],
        vec![1, 0, 0, 1, 0, 1, 4, 1, 2, 3, 4], // empty token
        vec![1, 0, 0, 1, 200, 1],              // token longer than the ticket
        vec![1, 0, 0, 1, 1, 9, 0],             // no address
        vec![1, 0, 0, 1, 1, 9, 255, 4, 1, 2, 3, 4], // more addresses than there are
        vec![1, 0, 0, 1, 1, 9, 1, 5, 1, 2, 3, 4], // unknown family
        vec![1, 0, 0, 1, 1, 9, 1, 4, 1, 2, 3, 4, 0], // something behind
        vec![1, 1, 0, 1, 1, 9, 1, 4, 1, 2, 3, 4], // fingerprint missing
        vec![2, 0, 0, 1, 1, 9, 1, 4, 1, 2, 3, 4], // layout 2
    ] {
        let word = word_of(&body);
        assert_eq!(Ticket::parse(&word), Err(TicketError::Damaged), "{body:?}");
    }
}

#[test]
fn tickets_are_told_from_host_names() {
    assert!(Ticket::looks_like("manypath1:abc"));
    assert!(Ticket::looks_like("manypath12:"));
    for host in ["manypath:9899", "manypath.example:9899", "manypath1", "example.org", "[::1]:5"] {
        assert!(!Ticket::looks_like(host), "{host}");
    }
}
