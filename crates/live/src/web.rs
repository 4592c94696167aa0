//! The figures as a page in a browser.
//!
//! Readers need the token of its address. `http` refuses requests of other sites.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, StatusCode};
use serde::Deserialize;
use subtle::ConstantTimeEq;

use crate::http::{self, Answer, Server};
use crate::live::Live;

/// Bytes of the token.
const TOKEN_LEN: usize = 16;
/// Bytes of the body of a request.
const BODY_MAX: usize = 1024;
/// The page; `@NONCE@` stands for a number that only its own styles and scripts have.
const PAGE: &str = include_str!("web/page.html");
const STYLE: &str = include_str!("web/page.css");
const SCRIPT: &str = include_str!("web/page.js");

/// A page that is served while this exists.
pub struct Page {
    server: Server,
    token: String,
}

/// Without the token.
impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Page {
    /// Its address, with the token that it asks for. If it is served on every address, that for
    /// this host.
    pub fn url(&self) -> String {
        let mut address = self.server.address();
        match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        format!("http://{address}/{}/", self.token)
    }
}

/// Serves the page on an address.
///
/// # Errors
/// Those of binding the address, and want of random numbers.
pub async fn serve(address: SocketAddr, live: Live) -> io::Result<Page> {
    let token = BASE32_NOPAD.encode(&random::<TOKEN_LEN>()?).to_lowercase();
    let expected: Arc<str> = Arc::from(token.as_str());
    let answer = move |request: Request<Incoming>| {
        let (live, token) = (live.clone(), Arc::clone(&expected));
        async move { answer(request, &token, &live).await }
    };
    Ok(Page { server: Server::start(address, answer).await?, token })
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

/// A wish for another rank of a path.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wish {
    association: u64,
    path: u16,
    rank: String,
}

async fn answer(request: Request<Incoming>, token: &str, live: &Live) -> Answer {
    let path = request.uri().path().trim_start_matches('/');
    let (shown, what) = path.split_once('/').unwrap_or((path, "-"));
    if !bool::from(shown.as_bytes().ct_eq(token.as_bytes())) {
        let why =
            "this address lacks the right token; take the whole address that manypath printed";
        return http::line(StatusCode::FORBIDDEN, why);
    }
    match (request.method(), what) {
        (&Method::GET, "") => page(),
        (&Method::GET, "figures") => {
            let since = request.uri().query().and_then(|q| q.strip_prefix("since=")?.parse().ok());
            let figures = serde_json::to_string(&live.process(since)).unwrap_or_default();
            http::answer(StatusCode::OK, "application/json", figures)
        }
        (&Method::POST, "rank") => set_rank(request, live).await,
        _ => http::line(StatusCode::NOT_FOUND, "there is nothing here"),
    }
}

fn page() -> Answer {
    let Ok(nonce) = random::<16>() else {
        return http::line(StatusCode::INTERNAL_SERVER_ERROR, "there are no random numbers");
    };
    let nonce = HEXLOWER.encode(&nonce);
    let body =
        PAGE.replace("@NONCE@", &nonce).replace("@STYLE@", STYLE).replace("@SCRIPT@", SCRIPT);
    let mut answer = http::answer(StatusCode::OK, "text/html; charset=utf-8", body);
    let policy = format!(
        "default-src 'none'; connect-src 'self'; img-src data:; script-src 'nonce-{nonce}'; \
         style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let headers = answer.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert("content-security-policy", policy);
    }
    headers.insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    answer
}

async fn set_rank(request: Request<Incoming>, live: &Live) -> Answer {
    // A form of another site cannot send this type.
    if request.headers().get(CONTENT_TYPE).is_none_or(|t| t != "application/json") {
        return http::line(StatusCode::UNSUPPORTED_MEDIA_TYPE, "JSON is needed");
    }
    let Ok(body) = Limited::new(request.into_body(), BODY_MAX).collect().await else {
        return http::line(StatusCode::PAYLOAD_TOO_LARGE, "the request is too long");
    };
    let wish: Wish = match serde_json::from_slice(&body.to_bytes()) {
        Ok(wish) => wish,
        Err(e) => return http::line(StatusCode::BAD_REQUEST, &format!("not understood: {e}")),
    };
    match live.set_rank(wish.association, wish.path, &wish.rank) {
        Ok(true) => http::line(StatusCode::OK, "done"),
        Ok(false) => http::line(StatusCode::NOT_FOUND, "there is no such path any more"),
        Err(why) => http::line(StatusCode::BAD_REQUEST, &why),
    }
}

#[cfg(test)]
mod tests;
