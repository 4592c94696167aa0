//! How fast bytes move over loopback: a server that discards, and a client that sends for some
//! seconds.
//!
//! ```text
//! $ cargo run -q --release -p manypath --example bulk -- server &
//! $ cargo run -q --release -p manypath --example bulk -- client 127.0.0.1:9899 5
//! client: sent 2134.6 MB in 5.00 s, 3415 Mbit/s
//! server: received 2134.6 MB
//! ```
//!
//! The numbers depend on the machine. A third argument of the client is the message size in bytes.
//! Packets are encrypted; nobody checks who the other end is.

use std::error::Error;
use std::time::Duration;

use manypath::keys::{Identity, PeerKeys, TlsKeys};
use manypath::{BindTo, Bytes, ConnectTarget, Endpoint, EndpointOptions, SendOptions};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let bind = vec![BindTo::Address([127, 0, 0, 1].into())];
    match arguments[..] {
        ["server"] => server(EndpointOptions { bind, ..EndpointOptions::server(anyone()?) }).await,
        ["client", server, seconds, ref size @ ..] => {
            let options = EndpointOptions { bind, ..EndpointOptions::client(anyone()?) };
            let size = size.first().map_or(Ok(65_536), |s| s.parse())?;
            client(options, server, Duration::from_secs(seconds.parse()?), size).await
        }
        _ => Err("usage: bulk server | bulk client ADDRESS:PORT SECONDS [MESSAGE SIZE]".into()),
    }
}

/// A new key, and any key of the other end.
fn anyone() -> Result<TlsKeys> {
    Ok(TlsKeys::raw_public_keys(&Identity::generate()?, PeerKeys::Any))
}

async fn server(options: EndpointOptions) -> Result<()> {
    let endpoint = Endpoint::bind(options)?;
    let association = endpoint.accept().await.ok_or("closed")?;
    let mut bytes = 0;
    while let Some(message) = association.recv().await? {
        bytes += message.payload.len();
    }
    println!("server: received {:.1} MB", bytes as f64 / 1e6);
    association.closed().await;
    Ok(())
}

async fn client(options: EndpointOptions, server: &str, time: Duration, size: usize) -> Result<()> {
    let endpoint = Endpoint::bind(options)?;
    let association = endpoint.connect(ConnectTarget::new([server.parse()?])).await?;
    let message = Bytes::from(vec![0; size]);
    let start = tokio::time::Instant::now();
    let mut bytes = 0;
    while start.elapsed() < time {
        association.send(SendOptions::default(), message.clone()).await?;
        bytes += size;
    }
    association.shutdown().await?;
    let taken = start.elapsed().as_secs_f64();
    let (megabytes, megabits) = (bytes as f64 / 1e6, bytes as f64 * 8e-6);
    println!("client: sent {megabytes:.1} MB in {taken:.2} s, {:.0} Mbit/s", megabits / taken);
    Ok(())
}
