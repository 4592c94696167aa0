//! A small HTTP server: one request a connection, bounded in number, size and time.
//!
//! A page of another site gets no answer, even if it knows the whole address: requests name this
//! host as manypath printed it or as the system calls it (no DNS name that somebody else points
//! here), and come from no other site.

mod guests;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use guests::{Guest, Guests};

/// Connections at a time that have not asked for anything, and as many that have.
const CONNECTIONS_MAX: usize = 32;
/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The pause after a connection could not be accepted, for want of descriptors for instance.
const PAUSE: Duration = Duration::from_secs(1);
/// Bytes of the lines and headers of a request.
const HEAD_MAX: usize = 16 << 10;

/// An answer.
pub(crate) type Answer = Response<Full<Bytes>>;

/// Serves HTTP while it exists.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Listens, and answers requests with what `answer` says. It sees only requests that name this
    /// host and come from no other site.
    ///
    /// # Errors
    /// Those of binding the address.
    pub(crate) async fn start<F, A>(address: SocketAddr, answer: F) -> io::Result<Server>
    where
        F: Fn(Request<Incoming>) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Answer> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(serve(listener, answer));
        Ok(Server { address, task })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve<F, A>(listener: TcpListener, answer: F)
where
    F: Fn(Request<Incoming>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    let guests = Guests::new(CONNECTIONS_MAX);
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                let guest = guests.enter(from.ip());
                let answer = answer.clone();
                tokio::spawn(async move {
                    tokio::select! {
                        // A client that breaks off or breaks the rules is its own problem.
                        _ = timeout(PATIENCE, talk(stream, &guest, answer)) => {}
                        () = guest.until_dismissed() => {}
                    }
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn talk<F, A>(stream: TcpStream, guest: &Guest, answer: F) -> Result<(), hyper::Error>
where
    F: Fn(Request<Incoming>) -> A + Sync,
    A: Future<Output = Answer>,
{
    let Ok(here) = stream.local_addr() else { return Ok(()) };
    let service = service_fn(|request| {
        guest.asked();
        let allowed = is_ours(request.headers(), here.ip().to_canonical());
        let answered = allowed.map(|()| answer(request));
        async {
            Ok::<_, Infallible>(match answered {
                Ok(answered) => answered.await,
                Err(why) => line(StatusCode::FORBIDDEN, why),
            })
        }
    });
    let mut http = http1::Builder::new();
    http.keep_alive(false).max_buf_size(HEAD_MAX);
    http.serve_connection(TokioIo::new(stream), service).await
}

/// An error unless the client knows this host by its address or name, and no other site asks.
fn is_ours(headers: &HeaderMap, here: IpAddr) -> Result<(), &'static str> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(HOST.as_str()).ok_or("no host is named")?;
    if !names(host, here, own_name().as_deref()) {
        return Err("this host is not known by that name; use the address that manypath printed");
    }
    let foreign = "another site may not ask";
    if headers.contains_key(ORIGIN) && text("origin") != Some(&format!("http://{host}")) {
        return Err(foreign);
    }
    match text("sec-fetch-site") {
        None | Some("same-origin" | "none") => Ok(()),
        Some(_) => Err(foreign),
    }
}

/// True if a `Host` means this address, or a host of this name; the port may be that of a tunnel.
fn names(host: &str, here: IpAddr, own: Option<&str>) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port),
        _ => (host, "80"),
    };
    let ip = name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).unwrap_or(name);
    let is_own = own.is_some_and(|own| !own.is_empty() && own.eq_ignore_ascii_case(name));
    let is_here = ip.parse() == Ok(here) || (here.is_loopback() && name == "localhost");
    (is_here || is_own) && port.parse::<u16>().is_ok()
}

/// The name that the system gives this host.
#[cfg(unix)]
fn own_name() -> Option<String> {
    rustix::system::uname().nodename().to_str().ok().map(str::to_owned)
}

#[cfg(not(unix))]
fn own_name() -> Option<String> {
    None
}

/// An answer with a body, which nobody may keep or take for something else.
pub(crate) fn answer(status: StatusCode, content_type: &'static str, body: String) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    answer
}

/// An answer in a line of text.
pub(crate) fn line(status: StatusCode, text: &str) -> Answer {
    answer(status, "text/plain; charset=utf-8", format!("{text}\n"))
}

#[cfg(test)]
mod tests;
