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
    #[arg(long, value_name = "NAME", conflicts_with_all = ["insecure", "relay_only"])]
    pub name: Option<Name>,
}

/// A ticket as a QR code.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct QrArgs {
    /// Also shows the ticket as a QR code, on standard error
    #[arg(long, conflicts_with_all = ["quiet", "tui", "cert"])]
    pub qr: bool,
}

/// A code for senders everywhere.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ShowCodeArgs {
    /// Prints a short code that stands for the ticket, such as 7-cabana-anvil; needs a relay
    ///
    /// The number says where the receiver is: the relay knows it. The words are the secret, which
    /// the relay does not learn. The sender types `manypath send FILE... CODE@RELAY`, or CODE alone
    /// where MANYPATH_RELAY names the relay. docs/relays.md has more.
    #[arg(long, conflicts_with_all = ["insecure", "cert", "token", "token_file"])]
    pub code: bool,
}

/// The code of a receiver.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CodeArgs {
    /// The code that the receiver DEST shows. Other users of this host can see it here
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
