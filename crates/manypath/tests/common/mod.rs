//! Helpers that the socket tests share.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "part of several test programs, each using some of it"
)]

#[cfg(target_os = "linux")]
pub mod namespace;
pub mod relay;
pub mod stranger;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use manypath::{
    Association, BindTo, Config, ConnectTarget, Endpoint, EndpointOptions, Security, SendOptions,
    StreamId,
};

/// Longer than anything here takes on a busy machine.
pub const LONG: Duration = Duration::from_secs(30);

/// The future's result, or a panic that says what did not happen.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, future).await.unwrap_or_else(|_| panic!("in time: {what}"))
}

/// The `fast` profile with `overrides`.
pub fn config(overrides: &[(&str, &str)]) -> Arc<Config> {
    let overrides: Vec<_> = overrides.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
    Arc::new(Config::build("fast", "cmt-pf", &overrides).unwrap())
}

/// Options for the loopback addresses `ips`, on a free port.
pub fn options(ips: &[&str], accept: bool) -> EndpointOptions {
    let bind = ips.iter().map(|ip| BindTo::Address(ip.parse().unwrap())).collect();
    EndpointOptions {
        bind,
        accept,
        config: config(&[]),
        ..EndpointOptions::client(Security::Plain)
    }
}

pub fn server(ips: &[&str]) -> Endpoint {
    Endpoint::bind(options(ips, true)).unwrap()
}

pub fn client(ips: &[&str]) -> Endpoint {
    Endpoint::bind(options(ips, false)).unwrap()
}

/// The two ends of a new association.
pub async fn connected(client: &Endpoint, server: &Endpoint) -> (Association, Association) {
    let target = ConnectTarget::new(server.local_addresses());
    connected_to(client, target, server).await
}

pub async fn connected_to(
    client: &Endpoint,
    target: ConnectTarget,
    server: &Endpoint,
) -> (Association, Association) {
    let (ours, theirs) =
        within("the handshake", async { tokio::join!(client.connect(target), server.accept()) })
            .await;
    (ours.expect("connected"), theirs.expect("accepted"))
}

pub fn on(stream: u16) -> SendOptions {
    SendOptions { stream: StreamId(stream), ..SendOptions::default() }
}

/// `length` bytes that tell their position.
pub fn pattern(length: usize) -> Vec<u8> {
    (0..length as u32).map(|i| (i ^ (i >> 8) ^ (i >> 16)) as u8).collect()
}

/// Where a server listens.
pub fn address(endpoint: &Endpoint) -> SocketAddr {
    endpoint.local_addresses()[0]
}
