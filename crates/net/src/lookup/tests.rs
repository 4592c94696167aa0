use super::*;

const PATIENCE: Duration = Duration::from_secs(10);
const COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];

fn ips(text: &[&str]) -> Vec<IpAddr> {
    text.iter().map(|ip| ip.parse().unwrap()).collect()
}

/// A socket in place of a relay.
async fn socket(ip: &str) -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind((ip, 0)).await.unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// The next question, and where it comes from.
async fn question(relay: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut bytes = [0; 200];
    let (len, from) = relay.recv_from(&mut bytes).await.unwrap();
    (bytes[..len].to_vec(), from)
}

/// An answer with one attribute.
fn answer(question: &[u8], class: [u8; 2], attribute: &[u8]) -> Vec<u8> {
    [&class[..], &[0, attribute.len() as u8], &COOKIE, &question[8..20], attribute].concat()
}

/// A success that names this address.
fn success(question: &[u8], address: &str) -> Vec<u8> {
    let address: std::net::SocketAddrV4 = address.parse().unwrap();
    let port = (address.port() ^ 0x2112).to_be_bytes();
    let mut attribute = vec![0, 0x16, 0, 8, 0, 1, port[0], port[1]];
    let ip = address.ip().octets();
    attribute.extend(ip.iter().zip(COOKIE).map(|(byte, cookie)| byte ^ cookie));
    answer(question, [0x03, 0xe3], &attribute)
}

/// An error with this code.
fn error(question: &[u8], code: u16) -> Vec<u8> {
    let attribute = [0, 9, 0, 4, 0, 0, (code / 100) as u8, (code % 100) as u8];
    answer(question, [0x03, 0xf3], &attribute)
}

/// The outcome where a relay answers the first question so.
async fn told(to: impl Fn(&[u8]) -> Vec<u8>) -> Result<SocketAddr, LookupError> {
    let (relay, address) = socket("127.0.0.50").await;
    let answers = async {
        let (question, from) = question(&relay).await;
        assert_eq!(question[20..], [0xd1, 0xa4, 0, 4, 0, 0, 0, 7]);
        relay.send_to(&to(&question), from).await.unwrap();
    };
    let (told, ()) = tokio::join!(look_up_number(address, 7, &[]), answers);
    told
}

#[tokio::test]
async fn a_relay_tells_the_address_or_why_it_does_not() {
    let found = told(|asked| success(asked, "127.0.0.9:50000")).await;
    assert_eq!(found.unwrap(), "127.0.0.9:50000".parse().unwrap());
    let unknown = told(|asked| error(asked, 404)).await;
    assert!(matches!(unknown, Err(LookupError::NoSuchNumber)), "{unknown:?}");
    for code in [400, 401, 420] {
        let other = told(|asked| error(asked, code)).await;
        assert!(matches!(other, Err(LookupError::Unsupported)), "{code}: {other:?}");
    }
}

#[tokio::test]
async fn a_relay_that_leads_astray_is_not_followed() {
    for address in ["224.0.0.1:50000", "127.0.0.9:0", "0.0.0.0:50000", "169.254.169.254:80"] {
        let astray = told(|asked| success(asked, address)).await;
        assert!(matches!(astray, Err(LookupError::Astray(_))), "{address}: {astray:?}");
    }
}

#[tokio::test]
async fn every_uplink_is_asked_from_and_a_dead_one_holds_nothing_up() {
    let (relay, address) = socket("127.0.0.51").await;
    // The list has one of another host, one of another family, and one twice.
    let from = ips(&["192.0.2.1", "::1", "127.0.0.52", "127.0.0.53", "::ffff:127.0.0.52"]);
    let answers = async {
        let mut asked = Vec::new();
        for _ in 0..2 {
            let (question, from) = question(&relay).await;
            // Answers are lost on the way to the first of them.
            if from.ip() == ips(&["127.0.0.53"])[0] {
                let bytes = success(&question, "127.0.0.9:50000");
                relay.send_to(&bytes, from).await.unwrap();
            }
            asked.push(from.ip());
        }
        asked
    };
    let asking = async { tokio::join!(look_up_number(address, 7, &from), answers) };
    let (found, asked) = tokio::time::timeout(Duration::from_millis(400), asking).await.unwrap();
    assert_eq!(asked, ips(&["127.0.0.52", "127.0.0.53"]));
    assert_eq!(found.unwrap(), "127.0.0.9:50000".parse().unwrap());
}

#[tokio::test]
async fn a_question_that_is_lost_is_repeated() {
    let (relay, address) = socket("127.0.0.54").await;
    let answers = async {
        let (first, _) = question(&relay).await;
        let (second, from) = question(&relay).await;
        assert_eq!(first, second, "the first answer will do, however late");
        relay.send_to(b"garbage", from).await.unwrap();
        relay.send_to(&success(&second, "127.0.0.9:50000"), from).await.unwrap();
    };
    let (found, ()) = tokio::join!(look_up_number(address, 7, &[]), answers);
    assert_eq!(found.unwrap(), "127.0.0.9:50000".parse().unwrap());
}

#[tokio::test]
async fn only_the_relay_is_heard() {
    let (relay, address) = socket("127.0.0.55").await;
    let (other, _) = socket("127.0.0.56").await;
    let answers = async {
        let (question, from) = question(&relay).await;
        // Somebody who saw the question and answers in place of the relay.
        other.send_to(&success(&question, "127.0.0.66:1"), from).await.unwrap();
        let mut of_another = success(&question, "127.0.0.67:1");
        of_another[19] ^= 1;
        relay.send_to(&of_another, from).await.unwrap();
        relay.send_to(&success(&question, "127.0.0.9:50000"), from).await.unwrap();
    };
    let (found, ()) = tokio::join!(look_up_number(address, 7, &[]), answers);
    assert_eq!(found.unwrap(), "127.0.0.9:50000".parse().unwrap());
}

#[tokio::test]
async fn a_silent_relay_is_asked_four_times_and_given_up_after_four_seconds() {
    let (relay, address) = socket("127.0.0.57").await;
    let begun = Instant::now();
    let asked = std::cell::RefCell::new(Vec::new());
    let counting = async {
        loop {
            question(&relay).await;
            asked.borrow_mut().push(begun.elapsed().as_millis() / 100);
        }
    };
    let outcome = tokio::select! {
        outcome = look_up_number(address, 7, &[]) => outcome,
        () = counting => panic!("it never ends"),
    };
    let error = outcome.unwrap_err();
    assert_eq!(asked.into_inner(), [0, 5, 10, 20], "in tenths of a second");
    assert!(matches!(error, LookupError::NoAnswer), "{error:?}");
    assert!(error.to_string().contains("did not answer for 4 s"), "{error}");
    let seconds = begun.elapsed().as_secs_f64();
    assert!((4.0..5.0).contains(&seconds), "{seconds}");
}

#[tokio::test]
async fn a_relay_that_is_not_there_does_not_answer() {
    let (relay, address) = socket("127.0.0.58").await;
    drop(relay);
    let asked = look_up_number(address, 7, &[]);
    let outcome = tokio::time::timeout(PATIENCE, asked).await.expect("it ends");
    assert!(matches!(outcome, Err(LookupError::NoAnswer)), "{outcome:?}");
}

#[tokio::test]
async fn without_a_usable_local_address_nothing_is_waited_for() {
    let relay = "127.0.0.59:3478".parse().unwrap();
    let from = ips(&["192.0.2.1"]);
    let asked = look_up_number(relay, 7, &from);
    let outcome = tokio::time::timeout(Duration::from_millis(400), asked).await.expect("at once");
    assert!(matches!(outcome, Err(LookupError::Io(_))), "{outcome:?}");
}
