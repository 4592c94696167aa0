//! The client of the README: one message, over every uplink of this host. It prints its paths.
//!
//! ```text
//! $ cargo run -q -p manypath --example hello -- FINGERPRINT 192.0.2.1:9899 198.51.100.1:9899
//! 192.168.1.7:41234 to 192.0.2.1:9899
//! 10.64.0.2:41234 to 198.51.100.1:9899
//! ```

use manypath::keys::{Identity, PeerKeys, TlsKeys};
use manypath::{ConnectTarget, Endpoint, EndpointOptions, SendOptions};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let server = args.next().ok_or("usage: FINGERPRINT ADDRESS:PORT...")?.parse()?;
    let addresses = args.map(|address| address.parse()).collect::<Result<Vec<_>, _>>()?;

    let keys = TlsKeys::raw_public_keys(&Identity::generate()?, PeerKeys::Pinned(vec![server]));
    let endpoint = Endpoint::bind(EndpointOptions::client(keys))?; // all uplinks of this host
    let association = endpoint.connect(ConnectTarget::new(addresses)).await?;
    association.send(SendOptions::default(), "hello".into()).await?;
    for path in association.paths() {
        println!("{} to {}", path.local, path.remote);
    }
    association.shutdown().await?; // returns when everything is delivered
    Ok(())
}
