//! Arguments of `manypath doctor`.

use clap::Args;

use super::{BindArgs, ReportArgs};

/// `manypath doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// A ticket, or HOST[:PORT][,HOST[:PORT]...] [default: looks at this host only]
    #[arg(value_name = "DEST")]
    pub dest: Option<String>,
    /// Runs only these checks: see --list
    #[arg(long, value_name = "CHECK,..", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Lists the checks and what each may find
    #[arg(long, conflicts_with_all = ["dest", "only"])]
    pub list: bool,
    /// Asks these STUN servers, or relays, for the address and kind of NAT of each uplink
    ///
    /// A relay of ours tells which peers the NAT lets have direct paths with this host; a second
    /// one with another address tells more. Where there is a NAT, the router is asked for a
    /// mapping (PCP, NAT-PMP, UPnP), which is deleted at once. An argument for --via will do. A
    /// relay that is DEST is asked in any case. The default port is 3478.
    #[arg(long, value_name = "HOST[:PORT],..", value_delimiter = ',')]
    pub stun: Vec<String>,
    /// Finds out how long the NAT of each uplink remembers a silent path, up to this time
    ///
    /// Takes that time. Needs --stun with a relay of ours, or a server that knows RESPONSE-PORT
    /// (RFC 5780). Without a value: 30 s.
    #[arg(
        long,
        value_name = "TIME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "30 s"
    )]
    pub long: Option<String>,
    /// Compares the clock with these time servers [default: those that this host is set up with]
    #[arg(long, value_name = "HOST[:PORT],..", value_delimiter = ',')]
    pub time_server: Vec<String>,
    /// Local addresses.
    #[command(flatten)]
    pub bind: BindArgs,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}
