use super::*;

#[test]
fn relays_are_read_with_and_without_port_and_password() {
    for (text, user, password, host, port) in [
        ("turn:ann:secret@relay.example", "ann", Some("secret"), "relay.example", 3478),
        ("turn:ann:s:e@c@192.0.2.1:80", "ann", Some("s:e@c"), "192.0.2.1", 80),
        ("turn:a%3Ab:c%2Cd%40%25@h:1", "a:b", Some("c,d@%"), "h", 1),
        ("turn:ann@[2001:db8::1]:5", "ann", None, "[2001:db8::1]", 5),
        ("turn:ann@[2001:db8::1]", "ann", None, "[2001:db8::1]", 3478),
    ] {
        let named = parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        let got = (
            named.user.as_str(),
            named.password.as_deref().map(String::as_str),
            &named.host[..],
            named.port,
        );
        assert_eq!(got, (user, password, host, port), "{text}");
    }
}

#[test]
fn hops_are_looked_for_if_paths_are_chosen_or_the_user_says_so() {
    let relay = || {
        let address = "192.0.2.1:3478".parse().expect("an address");
        Relay { name: "r".into(), address, user: "ann".into(), password: "secret".into() }
    };
    let interval = |preset: &str, said: Option<&str>, relays: &[Relay]| {
        let config = Config::build("fast", preset, &[]).expect("valid");
        let args = TraceArgs { trace_interval: said.map(str::to_owned) };
        trace_interval(&args, &config, relays)
    };
    let seconds = |s| Some(Duration::from_secs(s));
    let relays = [relay()];
    assert_eq!(interval("mtcp", None, &relays).unwrap(), seconds(60));
    assert_eq!(interval("mtcp", Some("off"), &relays).unwrap(), None);
    assert_eq!(interval("mtcp", None, &[]).unwrap(), None);
    assert_eq!(interval("adaptive", None, &relays).unwrap(), seconds(60));
    assert_eq!(interval("cmt-pf", None, &relays).unwrap(), None);
    assert_eq!(interval("cmt-pf", Some("5 s"), &relays).unwrap(), seconds(5));
    assert!(interval("mtcp", Some("0 s"), &relays).is_err());
}

#[test]
fn what_is_no_relay_is_said_without_its_password() {
    for text in [
        "relay.example",
        "stun:a:topsecret@h",
        "turn:a:topsecret",
        "turn::topsecret@h",
        "turn:a:@h",
        "turn:a:topsecret@",
        "turn:a:topsecret@h:0",
        "turn:a:topsecret%4@h",
        "turn:a:topsecret%zz@h",
        "turn:a:topsecret@h:x",
    ] {
        let failure = parse(text).err().unwrap_or_else(|| panic!("{text} was read"));
        assert!(!format!("{failure}").contains("topsecret"), "{failure}");
    }
}

#[test]
fn what_is_escaped_is_read_again() {
    for text in ["plain", "a b,c:d@e%f/ü"] {
        assert_eq!(unescape(&escape(text)).as_deref(), Some(text));
    }
}

#[test]
fn a_file_has_a_relay_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("relays");
    std::fs::write(&file, "# mine\nturn:a:b@c\n\n  turn:d:e@f  \n").unwrap();
    let via = ["turn:x:y@z".into(), format!("@{}", file.display()).into()];
    let expected = ["turn:x:y@z", "turn:a:b@c", "turn:d:e@f"].map(Erased::from);
    assert_eq!(words(&via).unwrap(), expected);
    assert!(words(&["@/no/such/file".into()]).is_err());
}

#[test]
fn link_local_relays_are_refused_with_the_remedy() {
    for host in ["[fe80::7%eth0]", "fe80::7%2", "[fe80::7]:5", "fe80::7"] {
        let Err(failure) = parse(&format!("turn:ann:secret@{host}")) else { panic!("{host}") };
        assert!(failure.message.contains("link-local"), "{failure}");
        assert!(!failure.to_string().contains("secret"), "{failure}");
        assert!(failure.hint.unwrap().contains("global or unique local"), "{host}");
    }
}

#[tokio::test]
async fn a_relay_at_an_ipv4_address_in_an_ipv6_one_is_at_the_ipv4_address() {
    for host in ["[::ffff:192.0.2.1]:7", "192.0.2.1:7"] {
        let via = [format!("turn:ann:secret@{host}").into()];
        let found = relays(&via).await.unwrap().all;
        assert_eq!(found[0].address, "192.0.2.1:7".parse().unwrap(), "{host}");
    }
}

#[test]
fn the_environment_names_relays_unless_the_command_line_does() {
    let of = |via: &[&str], variable: &str| -> Vec<String> {
        let via: Vec<Erased<String>> = via.iter().map(|word| Erased::from(*word)).collect();
        let words = Words::first(&via, || Erased::from(variable), || None);
        words.words.iter().map(|word| (**word).clone()).collect()
    };
    assert_eq!(of(&[], "turn:a:b@c, @file,"), ["turn:a:b@c", "@file"]);
    assert_eq!(of(&["turn:d:e@f"], "turn:a:b@c"), ["turn:d:e@f"]);
    for none in [of(&["none"], "turn:a:b@c"), of(&[], "none"), of(&[], " ")] {
        assert!(none.is_empty(), "{none:?}");
    }
}

#[tokio::test]
async fn the_users_file_names_relays_where_nothing_else_does() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("relays");
    let of = |via: &[&str], variable: &str| {
        let via: Vec<Erased<String>> = via.iter().map(|word| Erased::from(*word)).collect();
        Words::first(&via, || Erased::from(variable), || Some(file.clone()))
    };
    assert!(of(&[], "").words.is_empty(), "there is no file");
    std::fs::write(&file, "turn:ann:secret@127.0.0.1\n").unwrap();
    let relays = look_up_all(&of(&[], "").words).await.unwrap().all;
    assert_eq!(relays[0].address, "127.0.0.1:3478".parse().unwrap());
    assert_eq!(of(&[], "").place, file.display().to_string());
    for (via, variable) in [(&["none"][..], ""), (&[], "none")] {
        assert!(of(via, variable).words.is_empty());
    }
    assert_eq!(of(&["turn:d:e@f"], "").place, "--via");
    assert_eq!(of(&[], "turn:d:e@f").place, "MANYPATH_RELAY");
}

#[test]
fn an_address_is_said_once_and_routes_are_not() {
    let mut relay = RelayStatus::new("r:3478".into(), "192.0.2.1:3478".parse().unwrap());
    let unknown = [relay.clone()];
    assert!(news(&[], &unknown).is_empty());
    relay.relayed = Some("192.0.2.1:50001".parse().unwrap());
    let given = [relay.clone()];
    assert_eq!(news(&unknown, &given), ["relay r:3478: allocated 192.0.2.1:50001"]);
    relay.routes.insert([192, 0, 2, 9].into(), None);
    let traced = [relay.clone()];
    assert!(news(&given, &traced).is_empty());
    relay.error = Some("no answer".to_owned());
    assert_eq!(news(&traced, &[relay]), ["relay r:3478: no answer"]);
    assert_eq!(news(&traced, &[]), ["relay r:3478: left; it does not answer"]);
}
