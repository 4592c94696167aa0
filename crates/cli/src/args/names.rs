//! Arguments of names in the local network, and of QR codes.

use clap::Args;
use manypath_names::Name;
use manypath_trust::Erased;

use super::ReportArgs;

/// A name in the local network.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct NameArgs {
    /// Announces this name in the local network: `send FILE NAME` then needs no ticket
    ///
    /// Prints a code, which senders need; if you chose a token, they need that instead. Everybody
    /// in the network sees the name, the addresses and the key of this receiver. docs/names.md has
    /// more.
    #[arg(long, value_name = "NAME", conflicts_with = "insecure")]
    pub name: Option<Name>,
}

/// A ticket as a QR code.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct QrArgs {
    /// Also shows the ticket as a QR code, on standard error
    #[arg(long, conflicts_with_all = ["quiet", "tui", "cert"])]
    pub qr: bool,
}

/// The code of a receiver.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CodeArgs {
    /// The code that `recv --name` shows. Other users of this host can see it here
    ///
    /// Without --code it is taken from the environment variable MANYPATH_CODE, or asked for at the
    /// terminal.
    #[arg(long, value_name = "CODE", conflicts_with_all = ["token", "token_file", "insecure", "cert"])]
    pub code: Option<Erased<String>>,
}

/// `manypath names`.
#[derive(Debug, Args)]
pub(crate) struct NamesArgs {
    /// How long to look for them
    #[arg(long, value_name = "TIME", default_value = "2 s")]
    pub wait: String,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}
