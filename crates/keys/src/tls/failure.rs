//! Errors of TLS in words for the user.

use manypath_dtls::manage::KeyFailure;
use rustls::{AlertDescription, CertificateError, Error};

/// A failure that this end has found.
pub(super) fn ours(reason: impl Into<String>) -> KeyFailure {
    KeyFailure { reason: reason.into(), by_peer: false }
}

/// The failure that an error of rustls is.
pub(super) fn of_tls(error: &Error) -> KeyFailure {
    match error {
        Error::AlertReceived(alert) => {
            let reason = format!("the peer ended the TLS handshake: {}", of_alert(*alert));
            KeyFailure { reason, by_peer: true }
        }
        Error::InvalidCertificate(CertificateError::Other(other)) => ours(other.0.to_string()),
        Error::InvalidCertificate(CertificateError::BadSignature) => {
            ours("the peer did not prove that it has the private key of its identity")
        }
        Error::InvalidCertificate(error) => {
            ours(format!("the peer's certificate is not accepted: {error}"))
        }
        Error::NoCertificatesPresented => ours("the peer has no certificate"),
        error => ours(format!("the TLS handshake failed: {error}")),
    }
}

fn of_alert(alert: AlertDescription) -> String {
    let known = match alert {
        AlertDescription::CertificateRequired => "it requires a certificate",
        AlertDescription::UnknownCA => "it does not know the authority of our certificate",
        AlertDescription::CertificateExpired => "our certificate has expired",
        AlertDescription::CertificateRevoked => "our certificate was revoked",
        AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnsupportedCertificate => "it does not accept our key or certificate",
        AlertDescription::HandshakeFailure => "there are no settings that both ends accept",
        AlertDescription::ProtocolVersion => "it does not use TLS 1.3",
        AlertDescription::DecryptError | AlertDescription::BadRecordMac => {
            "a message was changed on its way, or a signature is wrong"
        }
        other => return format!("alert {other:?}"),
    };
    known.to_owned()
}
