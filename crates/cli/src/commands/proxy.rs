//! `manypath proxy`: TCP connections and datagrams over one association.

pub(crate) mod connect;
mod far_side;
pub(crate) mod forward;
mod hello;
pub(crate) mod listen;
mod local;
mod watch;

use manypath::config::Config;
use manypath_proxy::Counters;
use serde_json::{Value, json};

use crate::connect::transport;
use crate::failure::Result;
use crate::settings;

/// DATA chunks that a message of a connection fills. Few, as a small request waits for one message
/// of each busy connection.
const CHUNKS_PER_MESSAGE: usize = 8;
/// Connections of each direction that an association has streams for.
const CONNECTIONS_MAX: u16 = 10_000;

/// Parameters in place of those of the default preset. The load of a proxy comes and goes on all
/// paths at once, so their delays change together: that looks like a shared bottleneck, and two
/// equal paths were taken for one.
const DEFAULTS: &[(&str, &str)] = &[("shared_congestion", "off")];

/// Asks for, and grants, a stream to each connection.
fn with_streams(mut config: Config, connections: u16) -> Config {
    let streams = connections.saturating_mul(2).saturating_add(2);
    config.outbound_streams = config.outbound_streams.max(streams);
    config.inbound_streams = config.inbound_streams.max(streams);
    config
}

/// Bytes of a message that fills its packets.
fn message_size(config: &Config, is_protected: bool) -> usize {
    let bulk = transport::bulk_message_size(config, &[], false, is_protected);
    bulk / transport::CHUNKS_PER_MESSAGE * CHUNKS_PER_MESSAGE
}

/// The value of `--memory`.
fn memory(text: &str) -> Result<u64> {
    settings::size("--memory", text)
}

/// Counters as part of a record.
fn counters(counters: &Counters) -> Value {
    json!({
        "open": counters.open,
        "opened": counters.opened,
        "refused": counters.refused,
        "bytes_sent": counters.bytes_sent,
        "bytes_received": counters.bytes_received,
    })
}

/// Raises the limit on open files as far as the system allows: each connection is one.
fn raise_file_limit() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        // Without it there is room for fewer connections, each of which says so.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}
