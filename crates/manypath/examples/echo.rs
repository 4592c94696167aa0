//! A server that sends every message back, and a client with two paths to it, which knows the
//! server's public key.
//!
//! ```text
//! $ cargo run -q -p manypath --example echo
//! server: listening on 127.0.0.1:9899 and 127.0.0.2:9899
//! client: 127.0.0.3:41234 to 127.0.0.1:9899
//! client: 127.0.0.4:41234 to 127.0.0.2:9899
//! client: "one" came back on stream 0
//! client: "two" came back on stream 1
//! client: "three" came back on stream 2
//! client: done, everything was delivered
//! server: the association was shut down; everything was delivered
//! ```
//!
//! The client's port varies, and so may the order of messages of different streams.

use std::error::Error;

use manypath::keys::{Identity, PeerKeys, TlsKeys};
use manypath::{BindTo, ConnectTarget, Endpoint, EndpointOptions, SendOptions, StreamId};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let key = Identity::generate()?;
    let server = Endpoint::bind(EndpointOptions {
        bind: addresses(["127.0.0.1", "127.0.0.2"])?,
        ..EndpointOptions::server(TlsKeys::raw_public_keys(&key, PeerKeys::Any))
    })?;
    let listening: Vec<_> = server.local_addresses().iter().map(ToString::to_string).collect();
    println!("server: listening on {}", listening.join(" and "));

    let target = ConnectTarget::new(server.local_addresses());
    let echo = tokio::spawn(echo(server));
    // Between two machines the fingerprint is what a user copies from one to the other.
    client(target, PeerKeys::Pinned(vec![key.fingerprint()])).await?;
    println!("server: {}", echo.await?);
    Ok(())
}

fn addresses(list: [&str; 2]) -> Result<Vec<BindTo>, Box<dyn Error>> {
    list.iter().map(|ip| Ok(BindTo::Address(ip.parse()?))).collect()
}

/// Sends back what the first client sends, and says how it ended.
async fn echo(server: Endpoint) -> String {
    let Some(client) = server.accept().await else { return "closed".to_owned() };
    while let Ok(Some(message)) = client.recv().await {
        let options = SendOptions { stream: message.stream, ..SendOptions::default() };
        if let Err(error) = client.send(options, message.payload.into_bytes()).await {
            return error.to_string();
        }
    }
    client.closed().await.to_string()
}

async fn client(target: ConnectTarget, server: PeerKeys) -> Result<(), Box<dyn Error>> {
    let own = Identity::generate()?;
    let endpoint = Endpoint::bind(EndpointOptions {
        bind: addresses(["127.0.0.3", "127.0.0.4"])?,
        ..EndpointOptions::client(TlsKeys::raw_public_keys(&own, server))
    })?;
    let server = endpoint.connect(target).await?;
    for path in server.paths() {
        println!("client: {} to {}", path.local, path.remote);
    }
    for (stream, text) in ["one", "two", "three"].into_iter().enumerate() {
        let options = SendOptions { stream: StreamId(stream as u16), ..SendOptions::default() };
        server.send(options, text.into()).await?;
    }
    for _ in 0..3 {
        let Some(message) = server.recv().await? else { break };
        let text = message.payload.to_vec();
        let text = String::from_utf8_lossy(&text);
        println!("client: {text:?} came back on stream {}", message.stream.0);
    }
    server.shutdown().await?;
    println!("client: done, everything was delivered");
    Ok(())
}
