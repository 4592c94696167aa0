//! Arguments of live views and metrics.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::Args;
#[cfg(unix)]
use clap::builder::ArgAction;
use manypath::unmapped;

/// Metrics.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Live")]
pub(crate) struct MetricsArgs {
    /// Serves metrics for Prometheus at http://[IP:]PORT/metrics; without IP on 127.0.0.1
    #[arg(long, value_name = "[IP:]PORT", value_parser = address)]
    pub metrics: Option<SocketAddr>,
}

/// Live views.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Live")]
pub(crate) struct LiveArgs {
    /// Metrics.
    #[command(flatten)]
    pub metrics: MetricsArgs,
    /// Serves a page with the rates of the paths over time; prints its address, which has a token
    ///
    /// Whoever has the address may also change the ranks of paths. The page is not encrypted: from
    /// another machine reach it with `ssh -L 8080:127.0.0.1:8080 HOST`. Without IP it is served on
    /// 127.0.0.1.
    #[arg(long, value_name = "[IP:]PORT", value_parser = address)]
    pub web: Option<SocketAddr>,
    /// Shows the paths in the whole terminal, with keys to set them to backup; q closes the view,
    /// the work goes on
    #[arg(long, conflicts_with_all = ["json", "quiet"])]
    pub tui: bool,
}

/// `manypath top`.
#[cfg(unix)]
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// The process [default: all of this user]
    pub pid: Option<u32>,
    /// Prints the figures once, as JSON
    #[arg(long, action = ArgAction::SetTrue)]
    pub json: bool,
}

/// An address to serve on.
fn address(text: &str) -> Result<SocketAddr, String> {
    let port = || text.parse().ok().map(|port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
    let named = || {
        let rest = text.strip_prefix("localhost:")?;
        Some(SocketAddr::new(IpAddr::from(Ipv4Addr::LOCALHOST), rest.parse().ok()?))
    };
    let wrong = || "write PORT, IP:PORT or [IPV6]:PORT, such as 127.0.0.1:9464".to_owned();
    text.parse().ok().map(unmapped).or_else(port).or_else(named).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_this_host_unless_it_says_otherwise() {
        let read = |text| address(text).map(|address| address.to_string());
        assert_eq!(read("9464").unwrap(), "127.0.0.1:9464");
        assert_eq!(read("localhost:0").unwrap(), "127.0.0.1:0");
        assert_eq!(read("[::1]:80").unwrap(), "[::1]:80");
        assert_eq!(read("[::ffff:127.0.0.1]:80").unwrap(), "127.0.0.1:80");
        for wrong in ["", ":80", "host:80", "127.0.0.1", "65536", "::1:80x"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
