//! Who gets the page, and who does not.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

async fn page_of(live: &Live) -> (Page, SocketAddr) {
    let page = serve("127.0.0.1:0".parse().unwrap(), live.clone()).await.unwrap();
    let address = page.server.address();
    (page, address)
}

/// The status and the text of an answer.
async fn ask(address: SocketAddr, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // It may have hung up already.
    let _ = stream.write_all(request.as_bytes()).await;
    let mut heard = Vec::new();
    let _ = stream.read_to_end(&mut heard).await;
    let text = String::from_utf8(heard).unwrap();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or(0), text)
}

#[tokio::test]
async fn the_page_needs_its_token_and_its_address() {
    let live = Live::start("test");
    let (page, address) = page_of(&live).await;
    let token = &page.token;
    let get = async |path: &str, headers: &str| {
        ask(address, &format!("GET {path} HTTP/1.1\r\n{headers}\r\n")).await.0
    };
    let (whole, port) = (format!("/{token}/"), address.port());
    let host = format!("Host: {address}\r\n");
    for (path, headers, status) in [
        (&*whole, host.clone(), 200),
        (&whole, format!("Host: localhost:{port}\r\n"), 200),
        // Through a tunnel.
        (&whole, "Host: localhost:9000\r\n".to_owned(), 200),
        (&whole, format!("{host}Origin: http://{address}\r\n"), 200),
        (&whole, format!("{host}Sec-Fetch-Site: none\r\n"), 200),
        (&format!("{whole}figures?since=5"), host.clone(), 200),
        (&format!("{whole}other"), host.clone(), 404),
        ("/", host.clone(), 403),
        ("/figures", host.clone(), 403),
        (&whole[..whole.len() - 2], host.clone(), 403),
        (&format!("/{}/", "a".repeat(token.len())), host.clone(), 403),
        // A name that somebody made mean this host.
        (&whole, format!("Host: rebound.example:{port}\r\n"), 403),
        (&whole, format!("Host: 127.0.0.1.example:{port}\r\n"), 403),
        (&whole, format!("Host: 127.0.0.2:{port}\r\n"), 403),
        (&whole, format!("Host: [::1]:{port}\r\n"), 403),
        (&whole, "Host: localhost:x\r\n".to_owned(), 403),
        (&whole, String::new(), 403),
        // Another site.
        (&whole, format!("{host}Origin: http://other.example\r\n"), 403),
        (&whole, format!("{host}Origin: null\r\n"), 403),
        (&whole, format!("{host}Origin: https://{address}\r\n"), 403),
        (&whole, format!("{host}Sec-Fetch-Site: cross-site\r\n"), 403),
        (&whole, format!("{host}Sec-Fetch-Site: same-site\r\n"), 403),
        // More than 16 KiB before the answer.
        (&whole, format!("{host}X: {}\r\n", "x".repeat(20_000)), 431),
    ] {
        assert_eq!(get(path, &headers).await, status, "{path} {headers:?}");
    }
}

#[tokio::test]
async fn on_every_address_the_printed_one_works_here() {
    let live = Live::start("test");
    let page = serve("0.0.0.0:0".parse().unwrap(), live).await.unwrap();
    let url = page.url();
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    assert_eq!(ask(host.parse().unwrap(), &request).await.0, 200, "{url}");
}

#[tokio::test]
async fn a_wish_is_json_short_and_meant() {
    let live = Live::start("test");
    let (page, address) = page_of(&live).await;
    let say = async |method: &str, content_type: &str, body: &str| {
        let head = format!(
            "{method} /{}/rank HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\n\
             Content-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
            page.token,
            body.len()
        );
        ask(address, &(head + body)).await.0
    };
    let post = async |content_type: &str, body: &str| say("POST", content_type, body).await;
    let wish = r#"{"association":1,"path":2,"rank":"backup"}"#;
    let json = "application/json";
    assert_eq!(post(json, wish).await, 404, "there is no such path");
    assert_eq!(say("PUT", json, &wish.replace("backup", "first")).await, 404, "POST is needed");
    assert_eq!(post("text/plain", wish).await, 415);
    assert_eq!(post(json, "{}").await, 400);
    assert_eq!(post(json, &wish.replace("backup", "first")).await, 400);
    assert_eq!(post(json, &" ".repeat(BODY_MAX + 1)).await, 413);
}

#[tokio::test]
async fn nonsense_is_refused_and_harms_nobody() {
    let live = Live::start("test");
    let (page, address) = page_of(&live).await;
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000));
    for nonsense in ["", "\r\n\r\n", "GET\r\n\r\n", "\u{0}\u{1}\r\n\r\n", &long] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let _ = stream.write_all(nonsense.as_bytes()).await;
        let _ = stream.shutdown().await;
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard).await;
        assert!(!heard.starts_with(b"HTTP/1.1 200"), "{nonsense:.20}");
    }
    let fine = format!("GET /{}/ HTTP/1.1\r\nHost: {address}\r\n\r\n", page.token);
    let (status, text) = ask(address, &fine).await;
    assert_eq!(status, 200);
    assert!(text.contains("content-security-policy: default-src 'none'"), "{text:.600}");
    let markers = ["@NONCE@", "@STYLE@", "@SCRIPT@"];
    assert!(markers.iter().all(|marker| !text.contains(marker)), "something was not filled in");
}

/// Whoever guesses the address may change ranks.
#[tokio::test]
async fn each_page_has_a_token_of_128_random_bits() {
    let mut tokens = Vec::new();
    for _ in 0..20 {
        let (page, _) = page_of(&Live::start("test")).await;
        assert_eq!(page.token.len(), 26, "5 bits a letter");
        assert!(!format!("{page:?}").contains(&page.token), "it is not printed");
        assert!(!tokens.contains(&page.token));
        tokens.push(page.token);
    }
    for place in 0..25 {
        let letter = |token: &String| token.as_bytes()[place];
        assert!(tokens.iter().any(|t| letter(t) != letter(&tokens[0])), "letter {place}");
    }
}

/// The address has the token: no other site may learn it, show the page inside its own, or run
/// something in it.
#[tokio::test]
async fn a_browser_is_told_to_keep_the_page_to_itself() {
    let live = Live::start("test");
    let (page, address) = page_of(&live).await;
    let request = format!("GET /{}/ HTTP/1.1\r\nHost: {address}\r\n\r\n", page.token);
    let mut policies = Vec::new();
    for _ in 0..2 {
        let (_, text) = ask(address, &request).await;
        let head = text.split("\r\n\r\n").next().unwrap();
        for line in [
            "referrer-policy: no-referrer",
            "cache-control: no-store",
            "x-content-type-options: nosniff",
        ] {
            assert!(head.lines().any(|l| l == line), "{line}: {head}");
        }
        let policy = head.lines().find_map(|l| l.strip_prefix("content-security-policy: "));
        policies.push(policy.unwrap().to_owned());
    }
    assert_ne!(policies[0], policies[1], "scripts have a number that nobody knows before");
    for part in [
        "default-src 'none'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ] {
        assert!(policies[0].split("; ").any(|p| p == part), "{part}: {}", policies[0]);
    }
}
