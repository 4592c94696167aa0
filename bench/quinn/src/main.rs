//! The quinn side of the encrypted benchmark: bulk data on one QUIC stream, from the client to the
//! server.
//!
//! ```text
//! quinn-bulk server [--listen 127.0.0.1:4433] [SETTINGS]
//! quinn-bulk client ADDRESS:PORT SECONDS [SETTINGS]
//! ```
//!
//! The server announces its address, serves one connection, and prints its result as a line of
//! JSON, as does the client. The settings, and why they are as they are: `settings.rs`.

mod settings;

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quinn::{Connection, Endpoint, TokioRuntime, VarInt};
use serde_json::json;
use tokio::time::Instant;

use settings::Settings;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const USAGE: &str = "usage: quinn-bulk server [--listen ADDRESS:PORT] | client ADDRESS:PORT SECONDS
    [--mtu BYTES] [--threads N] [--window BYTES] [--socket-buffer BYTES]";

/// Bytes of one write, as quinn-perf writes.
static DATA: [u8; 1024 * 1024] = [42; 1024 * 1024];

/// The end of the transfer that the program plays.
enum Role {
    Server { listen: SocketAddr },
    Client { server: SocketAddr, time: Duration },
}

fn main() -> Result<()> {
    let (role, settings) = arguments()?;
    let runtime = match settings.threads {
        1 => tokio::runtime::Builder::new_current_thread().enable_all().build()?,
        threads => tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_all()
            .build()?,
    };
    // The main thread of a runtime with several is none of its workers: the work goes to them.
    let work = async move {
        let work = async move {
            match role {
                Role::Server { listen } => server(listen, &settings).await,
                Role::Client { server, time } => client(server, time, &settings).await,
            }
        };
        tokio::spawn(work).await
    };
    runtime.block_on(work)?
}

fn arguments() -> Result<(Role, Settings)> {
    let mut settings = Settings::default();
    let mut listen = SocketAddr::from(([127, 0, 0, 1], 4433));
    let mut words = Vec::new();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value\n{USAGE}"));
        match arg.as_str() {
            "--listen" => listen = value()?.parse()?,
            "--mtu" => settings.mtu = Some(value()?.parse()?),
            "--threads" => settings.threads = value()?.parse()?,
            "--window" => settings.window = value()?.parse()?,
            "--socket-buffer" => settings.socket_buffer = value()?.parse()?,
            _ if arg.starts_with('-') => return Err(format!("{arg}: unknown\n{USAGE}").into()),
            _ => words.push(arg),
        }
    }
    settings.check()?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let role = match words[..] {
        ["server"] => Role::Server { listen },
        ["client", server, seconds] => {
            let time = Duration::try_from_secs_f64(seconds.parse()?)?;
            Role::Client { server: server.parse()?, time }
        }
        _ => return Err(USAGE.into()),
    };
    Ok((role, settings))
}

async fn server(listen: SocketAddr, settings: &Settings) -> Result<()> {
    let endpoint = Endpoint::new(
        settings.endpoint()?,
        Some(settings.server()?),
        settings.socket(listen)?,
        Arc::new(TokioRuntime),
    )?;
    println!("listening on {}", endpoint.local_addr()?);
    let connection = endpoint.accept().await.ok_or("closed")?.await?;
    let mut stream = connection.accept_uni().await?;
    let mut begin = None;
    let mut bytes = 0u64;
    // quinn-perf takes up to 32 pieces at a time, without copying.
    let mut pieces: [Bytes; 32] = std::array::from_fn(|_| Bytes::new());
    while let Some(count) = stream.read_chunks(&mut pieces).await? {
        begin.get_or_insert_with(Instant::now);
        bytes += pieces[..count].iter().map(|piece| piece.len() as u64).sum::<u64>();
    }
    let seconds = begin.map_or(0.0, |begin| begin.elapsed().as_secs_f64());
    report("server", bytes, seconds, &connection);
    // The client, which has seen that everything arrived, closes.
    connection.closed().await;
    endpoint.wait_idle().await;
    Ok(())
}

async fn client(server: SocketAddr, time: Duration, settings: &Settings) -> Result<()> {
    let any = SocketAddr::new(server.ip(), 0);
    let local = match server.ip().is_loopback() {
        true => any,
        false if server.is_ipv4() => SocketAddr::from(([0, 0, 0, 0], 0)),
        false => SocketAddr::from(([0u16; 8], 0)),
    };
    let endpoint =
        Endpoint::new(settings.endpoint()?, None, settings.socket(local)?, Arc::new(TokioRuntime))?;
    let connection = endpoint.connect_with(settings.client()?, server, "localhost")?.await?;
    let mut stream = connection.open_uni().await?;
    let begin = Instant::now();
    let mut bytes = 0;
    while begin.elapsed() < time {
        stream.write_chunk(Bytes::from_static(&DATA)).await?;
        bytes += DATA.len() as u64;
    }
    stream.finish()?;
    // Ends when everything is acknowledged.
    stream.stopped().await?;
    report("client", bytes, begin.elapsed().as_secs_f64(), &connection);
    connection.close(VarInt::from_u32(0), b"");
    endpoint.wait_idle().await;
    Ok(())
}

fn report(role: &str, bytes: u64, seconds: f64, connection: &Connection) {
    let stats = connection.stats();
    let rate = if seconds > 0.0 { bytes as f64 * 8e-6 / seconds } else { 0.0 };
    let result = json!({
        "role": role,
        "bytes": bytes,
        "seconds": seconds,
        "mbit_per_s": rate,
        // The IP packets of the path: QUIC's MTU is that of the UDP payload.
        "packet_bytes": stats.path.current_mtu + settings::headers(connection.remote_address()),
        "packets_sent": stats.udp_tx.datagrams,
        "sends": stats.udp_tx.ios,
        "packets_received": stats.udp_rx.datagrams,
        "lost_packets": stats.path.lost_packets,
    });
    println!("{result}");
}
