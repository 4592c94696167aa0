//! Arguments about encryption and keys.

use std::path::PathBuf;

use clap::Args;

/// Certificates of this end and of authorities.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CertificateArgs {
    /// Certificate of this end and intermediate ones, PEM; needs --key
    #[arg(long, value_name = "FILE", requires = "key", conflicts_with_all = ["insecure", "identity"])]
    pub cert: Option<PathBuf>,
    /// Private key of --cert, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Certificates of the authorities that the other end's certificate must come from, PEM
    /// [default: those of the system; recv and perf server need the option]
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub ca: Option<PathBuf>,
}

/// Protection by an end that connects.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Security")]
pub(crate) struct ClientSecurityArgs {
    /// Neither encrypts nor authenticates, as the other end must do too
    #[arg(long)]
    pub insecure: bool,
    /// File with the private key by which the other end knows this one; made if missing
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub identity: Option<PathBuf>,
    /// Refuses any other end than the owner of this key: sha256: and 64 hexadecimal digits
    #[arg(long, value_name = "KEY", conflicts_with_all = ["insecure", "cert"])]
    pub peer: Option<String>,
    /// Certificates.
    #[command(flatten)]
    pub certificates: CertificateArgs,
}

/// Protection by an end that accepts.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Security")]
pub(crate) struct ServerSecurityArgs {
    /// Neither encrypts nor authenticates, as the other end must do too
    #[arg(long)]
    pub insecure: bool,
    /// File with the private key of this end; made if missing. Without it each start has a new key
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub identity: Option<PathBuf>,
    /// Accepts only owners of this key, or of a key in this file, one a line; repeatable
    #[arg(long, value_name = "KEY", conflicts_with_all = ["insecure", "cert"])]
    pub allow: Vec<String>,
    /// Certificates.
    #[command(flatten)]
    pub certificates: CertificateArgs,
}
