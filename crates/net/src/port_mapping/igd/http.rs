//! Requests to a router over HTTP/1.1, bounded in time and size. Redirects are not followed.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::super::place::Place;
use super::url::Url;

/// Time for a whole answer.
const TIME_MAX: Duration = Duration::from_secs(2);
/// Bytes of a page at most; descriptions have 2 to 20 KB.
const PAGE_MAX: usize = 128 << 10;
/// Bytes of all headers at most, and their number.
const HEADERS_BYTES_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 64;

/// The page of an answer, with its status.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) status: StatusCode,
    pub(super) text: String,
}

/// No whole answer came in time, or it is too long, or no text.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct NoAnswer;

/// Reads a page.
///
/// # Errors
/// There is no such page, or it is elsewhere.
pub(super) async fn get(place: &Place, url: &Url) -> Result<String, NoAnswer> {
    let request = Request::get(&url.path).header(HOST, url.authority());
    let request = request.header(CONNECTION, "close").body(Full::default());
    let page = send(place, url, request.map_err(|_| NoAnswer)?).await?;
    if page.status == StatusCode::OK { Ok(page.text) } else { Err(NoAnswer) }
}

/// Posts a message of SOAP.
///
/// # Errors
/// No whole answer came.
pub(super) async fn post(
    place: &Place,
    url: &Url,
    action: &str,
    message: String,
) -> Result<Page, NoAnswer> {
    let request = Request::post(&url.path)
        .header(HOST, url.authority())
        .header(CONNECTION, "close")
        .header(CONTENT_TYPE, "text/xml; charset=\"utf-8\"")
        .header("SOAPAction", action)
        .body(Full::from(message));
    send(place, url, request.map_err(|_| NoAnswer)?).await
}

async fn send(place: &Place, url: &Url, request: Request<Full<Bytes>>) -> Result<Page, NoAnswer> {
    timeout(TIME_MAX, exchange(place, url, request)).await.unwrap_or(Err(NoAnswer))
}

async fn exchange(
    place: &Place,
    url: &Url,
    request: Request<Full<Bytes>>,
) -> Result<Page, NoAnswer> {
    let stream = place.tcp_to_gateway(url.port).await.map_err(|_| NoAnswer)?;
    let mut client = http1::Builder::new();
    client.max_buf_size(HEADERS_BYTES_MAX).max_headers(HEADERS_MAX);
    // Names of headers have no case, but not every router knows that.
    client.title_case_headers(true);
    let open = client.handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = open.map_err(|_| NoAnswer)?;
    // Ends when this is dropped.
    let mut driving = JoinSet::new();
    driving.spawn(connection);
    let answer = sender.send_request(request).await.map_err(|_| NoAnswer)?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), PAGE_MAX).collect().await;
    let bytes = body.map_err(|_| NoAnswer)?.to_bytes();
    let text = String::from_utf8(bytes.to_vec()).map_err(|_| NoAnswer)?;
    Ok(Page { status, text })
}
