//! How fast associations open and close: a server, and a client that opens them for some seconds,
//! several at a time, and ends each at once.
//!
//! ```text
//! $ cargo run -q --release -p manypath --example handshakes -- server &
//! $ cargo run -q --release -p manypath --example handshakes -- client 127.0.0.1:9899 5 16
//! ```
//!
//! Both ends have raw public keys and check each other's signature, as `manypath send` to a ticket
//! does. The last argument is the number of attempts at a time. With `plain` behind it, and behind
//! `server`, associations are not protected. The client prints handshakes per second and its CPU
//! time per handshake; the server prints its own each second that had any.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use manypath::keys::{Identity, PeerKeys, TlsKeys};
use manypath::{BindTo, ConnectTarget, Endpoint, EndpointOptions, Security};
use tokio::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["server", ref plain @ ..] => {
            let options = EndpointOptions { max_associations: 4096, ..options_of(plain)? };
            server(Endpoint::bind(options)?).await
        }
        ["client", server, seconds, at_a_time, ref plain @ ..] => {
            let options = EndpointOptions { accept: false, udp_port: 0, ..options_of(plain)? };
            // Two endpoints have one association with each other at a time.
            let endpoints: std::result::Result<Vec<_>, _> =
                (0..at_a_time.parse()?).map(|_| Endpoint::bind(options.clone())).collect();
            let time = Duration::try_from_secs_f64(seconds.parse()?)?;
            client(endpoints?, server, time).await
        }
        _ => Err("usage: handshakes server [plain] | \
                  handshakes client ADDRESS:PORT SECONDS AT-A-TIME [plain]"
            .into()),
    }
}

fn options_of(plain: &[&str]) -> Result<EndpointOptions> {
    let security = match plain {
        [] => TlsKeys::raw_public_keys(&Identity::generate()?, PeerKeys::Any).into(),
        ["plain"] => Security::Plain,
        _ => return Err("the last argument is \"plain\" or none".into()),
    };
    Ok(EndpointOptions {
        bind: vec![BindTo::Address([127, 0, 0, 1].into())],
        ..EndpointOptions::server(security)
    })
}

async fn server(endpoint: Endpoint) -> Result<()> {
    let accepted = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&accepted);
    tokio::spawn(async move {
        let (mut before, mut cpu_before) = (0, cpu_seconds());
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let (now, cpu) = (counted.load(Ordering::Relaxed), cpu_seconds());
            if now > before {
                let each = (cpu - cpu_before) / (now - before) as f64 * 1e6;
                println!("server: {} handshakes, {each:.0} us of CPU each", now - before);
            }
            (before, cpu_before) = (now, cpu);
        }
    });
    while let Some(association) = endpoint.accept().await {
        accepted.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move { association.closed().await });
    }
    Ok(())
}

async fn client(endpoints: Vec<Endpoint>, server: &str, time: Duration) -> Result<()> {
    let target = ConnectTarget::new([server.parse()?]);
    let (begin, cpu_begin) = (Instant::now(), cpu_seconds());
    let work = endpoints.into_iter().map(|endpoint| {
        let target = target.clone();
        tokio::spawn(async move {
            let mut done = 0u64;
            while begin.elapsed() < time {
                let association = endpoint.connect(target.clone()).await?;
                association.shutdown().await?;
                done += 1;
            }
            Ok::<u64, Box<dyn Error + Send + Sync>>(done)
        })
    });
    let mut done = 0;
    for each in work.collect::<Vec<_>>() {
        done += each.await??;
    }
    let (seconds, cpu) = (begin.elapsed().as_secs_f64(), cpu_seconds() - cpu_begin);
    let (rate, each) = (done as f64 / seconds, cpu / done as f64 * 1e6);
    println!("client: {done} handshakes, {rate:.0} a second, {each:.0} us of CPU each");
    Ok(())
}

/// CPU time of this thread, which is the only one, in seconds; NaN where the system does not tell.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().next().and_then(|text| text.parse::<f64>().ok());
    nanos.map_or(f64::NAN, |nanos| nanos / 1e9)
}
