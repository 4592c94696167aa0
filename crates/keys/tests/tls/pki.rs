//! Authorities and certificates for tests.

use manypath_keys::tls::{Certificates, ClientAuth, Roots, TlsKeys};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd,
};

pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM.
#[derive(Clone)]
pub(crate) struct Issued {
    pub(crate) chain: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new([] as [String; 0]).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("a certificate");
        Authority { issuer }
    }

    pub(crate) fn root(&self) -> String {
        self.issuer.pem()
    }

    pub(crate) fn issue_with(
        &self,
        name: &str,
        usage: ExtendedKeyUsagePurpose,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Issued {
        let mut params = params(name, usage);
        change(&mut params);
        self.sign(&params, &KeyPair::generate().expect("a key"))
    }

    pub(crate) fn issue_for(
        &self,
        name: &str,
        usage: ExtendedKeyUsagePurpose,
        key: &KeyPair,
    ) -> Issued {
        self.sign(&params(name, usage), key)
    }

    fn sign(&self, params: &CertificateParams, key: &KeyPair) -> Issued {
        let certificate = params.signed_by(key, &self.issuer).expect("a certificate");
        Issued { chain: certificate.pem(), key: key.serialize_pem() }
    }

    pub(crate) fn server(&self, name: &str) -> Issued {
        self.issue_with(name, ExtendedKeyUsagePurpose::ServerAuth, |_| {})
    }

    pub(crate) fn client(&self, name: &str) -> Issued {
        self.issue_with(name, ExtendedKeyUsagePurpose::ClientAuth, |_| {})
    }

    pub(crate) fn expired_server(&self, name: &str) -> Issued {
        self.issue_with(name, ExtendedKeyUsagePurpose::ServerAuth, |params| {
            params.not_before = date_time_ymd(2019, 1, 1);
            params.not_after = date_time_ymd(2020, 1, 1);
        })
    }

    /// The keys of a client that wants a server of this name, and whose peers come from this
    /// authority.
    pub(crate) fn client_keys(&self, issued: &Issued, server_name: &str) -> TlsKeys {
        keys(issued, &self.root(), Some(server_name), ClientAuth::Required)
    }

    pub(crate) fn server_keys(&self, issued: &Issued, client_auth: ClientAuth) -> TlsKeys {
        keys(issued, &self.root(), None, client_auth)
    }
}

fn params(name: &str, usage: ExtendedKeyUsagePurpose) -> CertificateParams {
    let mut params = CertificateParams::new([name.to_owned()]).expect("parameters");
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.extended_key_usages = vec![usage];
    params
}

fn keys(
    issued: &Issued,
    roots: &str,
    server_name: Option<&str>,
    client_auth: ClientAuth,
) -> TlsKeys {
    let files = Certificates {
        chain: issued.chain.as_bytes(),
        key: issued.key.as_bytes(),
        roots: Roots::Pem(roots.as_bytes()),
        server_name,
        client_auth,
    };
    TlsKeys::certificates(&files).expect("certificates that fit")
}
