//! A small HTTP server: one request a connection, bounded in number, size and time.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Connections at a time; more wait.
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

    /// Listens, and answers requests with what `answer` says; it is told the address of ours that
    /// a request came to.
    ///
    /// # Errors
    /// Those of binding the address.
    pub(crate) async fn start<F, A>(address: SocketAddr, answer: F) -> io::Result<Server>
    where
        F: Fn(Request<Incoming>, IpAddr) -> A + Clone + Send + Sync + 'static,
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
    F: Fn(Request<Incoming>, IpAddr) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let answer = answer.clone();
                tokio::spawn(async move {
                    // A client that breaks off or breaks the rules is its own problem.
                    let _ = timeout(PATIENCE, talk(stream, answer)).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn talk<F, A>(stream: TcpStream, answer: F) -> Result<(), hyper::Error>
where
    F: Fn(Request<Incoming>, IpAddr) -> A + Sync,
    A: Future<Output = Answer>,
{
    let Ok(here) = stream.local_addr() else { return Ok(()) };
    let service = service_fn(|request| {
        let answered = answer(request, here.ip().to_canonical());
        async { Ok::<_, Infallible>(answered.await) }
    });
    let mut http = http1::Builder::new();
    http.keep_alive(false).max_buf_size(HEAD_MAX);
    http.serve_connection(TokioIo::new(stream), service).await
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
