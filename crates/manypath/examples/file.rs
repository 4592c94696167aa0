//! Sends a file as a byte stream, between two processes.
//!
//! ```text
//! $ cargo run -q -p manypath --example file -- recv copy.bin 127.0.0.1,127.0.0.2
//! listening on 127.0.0.1:9899,127.0.0.2:9899
//! key sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
//! received 10485760 bytes
//! ```
//!
//! and in another terminal:
//!
//! ```text
//! $ head -c 10485760 /dev/urandom > file.bin
//! $ cargo run -q -p manypath --example file -- send file.bin \
//!       sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 \
//!       127.0.0.1:9899,127.0.0.2:9899 127.0.0.3,127.0.0.4
//! sent 10485760 bytes
//! path 1: 127.0.0.3:50917 to 127.0.0.1:9899, active
//! path 2: 127.0.0.4:50917 to 127.0.0.2:9899, active
//! ```
//!
//! The sender sends to the owner of that key only. The last argument of both, the addresses or
//! interfaces to bind to, may be left out.

use std::error::Error;

use manypath::keys::{Fingerprint, Identity, PeerKeys, TlsKeys};
use manypath::{BindTo, ConnectTarget, Endpoint, EndpointOptions, StreamId};
use tokio::fs::File;
use tokio::io::{AsyncWriteExt, copy};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["send", file, key, to, ref bind @ ..] => send(file, key.parse()?, to, &binds(bind)?).await,
        ["recv", file, ref bind @ ..] => receive(file, &binds(bind)?).await,
        _ => {
            Err("usage: file send FILE KEY ADDRESS:PORT,... [BIND,...] | file recv FILE [BIND,...]"
                .into())
        }
    }
}

fn binds(argument: &[&str]) -> Result<Vec<BindTo>> {
    match argument {
        [] => Ok(Vec::new()),
        [list] => Ok(list.split(',').map(str::parse).collect::<std::result::Result<_, _>>()?),
        _ => Err("too many arguments".into()),
    }
}

async fn send(file: &str, key: Fingerprint, to: &str, bind: &[BindTo]) -> Result<()> {
    let mut file = File::open(file).await?;
    let remotes: Vec<_> = to.split(',').map(str::parse).collect::<std::result::Result<_, _>>()?;
    let endpoint = Endpoint::bind(EndpointOptions {
        bind: bind.to_vec(),
        ..EndpointOptions::client(TlsKeys::raw_public_keys(
            &Identity::generate()?,
            PeerKeys::Pinned(vec![key]),
        ))
    })?;
    let association = endpoint.connect(ConnectTarget::new(remotes)).await?;
    let (mut out, _) = association.stream(StreamId(0))?;
    let bytes = copy(&mut file, &mut out).await?;
    out.flush().await?;
    let paths = association.paths();
    // The receiver sees the end of the stream only now, and we know that it has everything.
    association.shutdown().await?;
    println!("sent {bytes} bytes");
    for path in paths {
        println!("{}: {} to {}, {}", path.id, path.local, path.remote, path.state.name());
    }
    Ok(())
}

async fn receive(file: &str, bind: &[BindTo]) -> Result<()> {
    let mut file = File::create(file).await?;
    let key = Identity::generate()?;
    let endpoint = Endpoint::bind(EndpointOptions {
        bind: bind.to_vec(),
        ..EndpointOptions::server(TlsKeys::raw_public_keys(&key, PeerKeys::Any))
    })?;
    let addresses: Vec<_> = endpoint.local_addresses().iter().map(ToString::to_string).collect();
    println!("listening on {}", addresses.join(","));
    println!("key {}", key.fingerprint());
    let association = endpoint.accept().await.ok_or("closed")?;
    let (_, mut input) = association.stream(StreamId(0))?;
    let bytes = copy(&mut input, &mut file).await?;
    file.flush().await?;
    println!("received {bytes} bytes");
    association.closed().await;
    Ok(())
}
