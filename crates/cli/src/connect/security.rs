//! How commands protect their associations: keys, and whom they trust.

use std::path::Path;
use std::sync::Arc;

use manypath::keys::{
    Certificates, ClientAuth, ConfigError, Identity, KeyLog, KeyLogFile, PeerKeys, Roots, TlsKeys,
};
use manypath::{Association, PeerIdentity, Security};
use manypath_files::ticket::Trust;
use manypath_trust::{AllowList, Fingerprint, IdentityError, IdentityKey};
use zeroize::Zeroizing;

use crate::args::{CertificateArgs, ClientSecurityArgs, ServerSecurityArgs};
use crate::connect::exposed::{Secret, pasted};
use crate::failure::{Failure, Result};
use crate::screen::Screen;

/// The warning of commands whose associations are not protected.
pub(crate) const NOT_ENCRYPTED: &str =
    "Note: NOT encrypted (--insecure); anyone who can capture the traffic can read and change it.";

/// The note of commands whose peer may be anybody.
pub(crate) const UNKNOWN_PEER: &str =
    "Note: encrypted, but nobody checks who the other end is; --peer does.";

/// The protection of an end that accepts, and what its peers must know of it.
pub(crate) struct Serving {
    pub(crate) security: Security,
    /// For tickets; none with certificates, which a ticket does not name.
    pub(crate) trust: Option<Trust>,
}

impl Serving {
    /// From the arguments.
    pub(crate) fn new(args: &ServerSecurityArgs, screen: &Screen) -> Result<Serving> {
        if args.insecure {
            return Ok(Serving { security: Security::Plain, trust: Some(Trust::Insecure) });
        }
        if let Some(files) = Files::read(&args.certificates, screen)? {
            let keys = files.keys(None)?;
            let security = logged(keys, key_log(screen)?.as_ref()).into();
            return Ok(Serving { security, trust: None });
        }
        let identity = identity(args.identity.as_deref(), screen)?;
        let peers = if args.allow.is_empty() {
            PeerKeys::Any
        } else {
            PeerKeys::Pinned(allowed(&args.allow)?)
        };
        let keys = TlsKeys::raw_public_keys(&identity, peers);
        let security = logged(keys, key_log(screen)?.as_ref()).into();
        Ok(Serving { security, trust: Some(Trust::Key(identity.fingerprint())) })
    }
}

impl Serving {
    /// Associations are protected.
    pub(crate) fn is_protected(&self) -> bool {
        self.trust != Some(Trust::Insecure)
    }

    /// The key that peers see, if it is one.
    pub(crate) fn key(&self) -> Option<Fingerprint> {
        match self.trust {
            Some(Trust::Key(key)) => Some(key),
            _ => None,
        }
    }
}

/// The protection of an end that connects.
pub(crate) struct Calling {
    pub(crate) security: Security,
    /// The other end proves by its key or certificate who it is: secrets may be shown to it.
    pub(crate) knows_peer: bool,
    /// The means to accept only one key from now on, if any is accepted yet.
    pub(crate) pinning: Option<Pinning>,
}

/// This end's key, for associations with the owner of a key that was not known before.
pub(crate) struct Pinning {
    identity: Identity,
    log: Option<Arc<dyn KeyLog>>,
}

impl Pinning {
    /// The protection of associations with the owner of this key only.
    pub(crate) fn to(&self, key: Fingerprint) -> Security {
        let keys = TlsKeys::raw_public_keys(&self.identity, PeerKeys::Pinned(vec![key]));
        logged(keys, self.log.as_ref()).into()
    }
}

impl Calling {
    /// Associations are protected.
    pub(crate) fn is_protected(&self) -> bool {
        !matches!(self.security, Security::Plain)
    }

    /// From the arguments: to `host`, if it has a name, and to the owner of `key`, if that is
    /// known.
    pub(crate) fn new(
        args: &ClientSecurityArgs,
        host: Option<&str>,
        key: Option<Fingerprint>,
        screen: &Screen,
    ) -> Result<Calling> {
        if args.insecure {
            return Ok(Calling { security: Security::Plain, knows_peer: false, pinning: None });
        }
        if let Some(files) = Files::read(&args.certificates, screen)? {
            let host = host.ok_or_else(|| {
                Failure::usage("--cert is for a HOST; a ticket names the key of its receiver")
            })?;
            let security = logged(files.keys(Some(host))?, key_log(screen)?.as_ref()).into();
            return Ok(Calling { security, knows_peer: true, pinning: None });
        }
        let pinned = match &args.peer {
            Some(text) if key.is_none() => Some(parse_peer(text)?),
            Some(_) => {
                return Err(Failure::usage("--peer is for a HOST; a ticket contains the key"));
            }
            None => key,
        };
        let peers = match pinned {
            Some(key) => PeerKeys::Pinned(vec![key]),
            None => PeerKeys::Any,
        };
        let identity = identity(args.identity.as_deref(), screen)?;
        let log = key_log(screen)?;
        let security = logged(TlsKeys::raw_public_keys(&identity, peers), log.as_ref()).into();
        let pinning = pinned.is_none().then_some(Pinning { identity, log });
        Ok(Calling { security, knows_peer: pinned.is_some(), pinning })
    }
}

/// The peer's public key, if it has one without a certificate.
pub(crate) fn public_key(association: &Association) -> Option<Fingerprint> {
    match association.identity()? {
        PeerIdentity::PublicKey(key) => Some(Fingerprint::of(&key)),
        _ => None,
    }
}

/// The peer as users know it: the fingerprint of its key, or of its certificate.
pub(crate) fn peer_key(association: &Association) -> Option<String> {
    match association.identity()? {
        PeerIdentity::PublicKey(key) => Some(Fingerprint::of(&key).to_string()),
        PeerIdentity::Certificate(chain) => {
            Some(format!("certificate {}", Fingerprint::of(chain.first()?)))
        }
        _ => None,
    }
}

/// Reads the value of `--peer`.
pub(crate) fn parse_peer(text: &str) -> Result<Fingerprint> {
    text.parse().map_err(|e: manypath_trust::FingerprintError| {
        Failure::usage(format!("--peer: {e}"))
            .hint("write it as the other end prints it: sha256: and 64 hexadecimal digits")
    })
}

fn allowed(words: &[String]) -> Result<Vec<Fingerprint>> {
    let list = AllowList::read(words).map_err(|e| Failure::usage(format!("--allow: {e}")))?;
    Ok(list.keys().copied().collect())
}

/// The key in a file, or a new one.
fn identity(file: Option<&Path>, screen: &Screen) -> Result<Identity> {
    let Some(file) = file else {
        return Identity::generate().map_err(|e| Failure::failed(e.to_string()));
    };
    let found = manypath_trust::Identity::<Pem>::load_or_create(file).map_err(|e| {
        let failure = Failure::usage(format!("--identity: {e}"));
        match e {
            IdentityError::Exposed { path, .. } => {
                failure.hint(format!("chmod 600 {}, or name another file", pasted(&path)))
            }
            _ => failure,
        }
    })?;
    if found.created {
        let key = found.key.0.fingerprint();
        screen.line(&format!("made a key in {}: {key}", file.display()));
    }
    Ok(found.key.0)
}

/// A key in an identity file.
#[derive(Debug)]
struct Pem(Identity);

impl IdentityKey for Pem {
    fn generate() -> std::result::Result<Pem, String> {
        Identity::generate().map(Pem).map_err(|e| e.to_string())
    }

    fn from_pem(pem: &str) -> std::result::Result<Pem, String> {
        Identity::from_pem(pem.as_bytes()).map(Pem).map_err(|e| e.to_string())
    }

    fn to_pem(&self) -> Zeroizing<String> {
        self.0.to_pem()
    }
}

/// The log in the file that `SSLKEYLOGFILE` names, if it is set.
fn key_log(screen: &Screen) -> Result<Option<Arc<dyn KeyLog>>> {
    let log = KeyLogFile::from_env()
        .map_err(|e| Failure::usage(format!("SSLKEYLOGFILE: cannot write to the file: {e}")))?;
    Ok(log.map(|log| {
        screen.line("Note: SSLKEYLOGFILE is set; whoever reads that file can decrypt this.");
        let file = std::env::var_os("SSLKEYLOGFILE").unwrap_or_default();
        if let Some(warning) = Secret::KeyLog.warning(Path::new(&file)) {
            screen.line(&warning);
        }
        Arc::new(log) as Arc<dyn KeyLog>
    }))
}

/// Has the keys written to a log, if there is one.
fn logged(keys: TlsKeys, log: Option<&Arc<dyn KeyLog>>) -> TlsKeys {
    match log {
        Some(log) => keys.log_keys(Arc::clone(log)),
        None => keys,
    }
}

/// The files of `--cert`, `--key` and `--ca`.
struct Files {
    chain: Vec<u8>,
    key: Zeroizing<Vec<u8>>,
    /// Without it the system's authorities count.
    roots: Option<Vec<u8>>,
}

impl Files {
    fn read(args: &CertificateArgs, screen: &Screen) -> Result<Option<Files>> {
        let (Some(cert), Some(key)) = (&args.cert, &args.key) else { return Ok(None) };
        let read = |option: &str, file: &Path| {
            std::fs::read(file).map_err(|e| {
                Failure::usage(format!("{option}: cannot read {}: {e}", file.display()))
            })
        };
        if let Some(warning) = Secret::PrivateKey.warning(key) {
            screen.line(&warning);
        }
        let key = Zeroizing::new(read("--key", key)?);
        let roots = args.ca.as_deref().map(|ca| read("--ca", ca)).transpose()?;
        Ok(Some(Files { chain: read("--cert", cert)?, key, roots }))
    }

    fn keys(&self, server_name: Option<&str>) -> Result<TlsKeys> {
        TlsKeys::certificates(&Certificates {
            chain: &self.chain,
            key: &self.key,
            roots: self.roots.as_deref().map_or(Roots::System, Roots::Pem),
            server_name,
            client_auth: ClientAuth::Required,
        })
        .map_err(|e| match e {
            ConfigError::NoSystemRoots(_) => Failure::usage(e.to_string())
                .hint("name those that you trust with --ca FILE, or install ca-certificates"),
            ConfigError::SystemRootsForClients => {
                Failure::usage("--cert needs --ca here: the authorities whose clients may connect")
                    .hint("--ca FILE; the system's authorities would let everybody in")
            }
            _ => Failure::usage(e.to_string()),
        })
    }
}
