//! The settings of quinn: those of quinn-perf, its own tool, and what makes it faster here.

use std::error::Error;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, EndpointConfig, ServerConfig, TransportConfig, VarInt};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::{self, cipher_suite};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use socket2::{Domain, Protocol, Socket, Type};

use crate::Result;

/// quinn-perf's cipher suites: AES-128-GCM first, as manypath has it.
const SUITES: [rustls::SupportedCipherSuite; 3] = [
    cipher_suite::TLS13_AES_128_GCM_SHA256,
    cipher_suite::TLS13_AES_256_GCM_SHA384,
    cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
];

/// Settings of both ends.
#[derive(Clone, Debug)]
pub struct Settings {
    /// IP packets of this many bytes from the first one on, and never smaller ones. `None`: quinn's
    /// MTU discovery, from 1200 to 1452 bytes of UDP payload.
    pub mtu: Option<u16>,
    /// Threads of the runtime; 1: everything in the main thread, as in quinn-perf.
    pub threads: usize,
    /// Bytes that may be unacknowledged, and unread, on the stream and the connection.
    pub window: u32,
    /// Bytes of the socket's send and receive buffers; quinn-perf has 2 MiB.
    pub socket_buffer: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { mtu: None, threads: 1, window: 10_000_000, socket_buffer: 2 << 20 }
    }
}

/// Bytes of the headers of IPv4 and UDP.
pub const IPV4_HEADERS: u16 = 28;

/// Bytes of the headers of IP and UDP.
pub fn headers(peer: SocketAddr) -> u16 {
    if peer.is_ipv4() { IPV4_HEADERS } else { 48 }
}

impl Settings {
    /// Refuses what quinn cannot do.
    pub fn check(&self) -> Result<()> {
        let refuse = |what: &str| Err(Box::<dyn Error + Send + Sync>::from(what));
        match self {
            Settings { mtu: Some(0..1248), .. } => refuse("--mtu: at least 1248"),
            Settings { threads: 0, .. } => refuse("--threads: at least 1"),
            Settings { window: 0, .. } => refuse("--window: at least 1"),
            _ => Ok(()),
        }
    }

    fn transport(&self) -> Arc<TransportConfig> {
        let mut transport = TransportConfig::default();
        if let Some(mtu) = self.mtu {
            // A path that loses much would else be taken for one of smaller packets.
            let payload = mtu - IPV4_HEADERS;
            transport.initial_mtu(payload).min_mtu(payload).mtu_discovery_config(None);
        }
        transport
            .stream_receive_window(VarInt::from_u32(self.window))
            .receive_window(VarInt::from_u32(self.window))
            .send_window(self.window.into())
            .enable_segmentation_offload(true)
            .max_idle_timeout(Some(Duration::from_secs(10).try_into().expect("it fits")));
        Arc::new(transport)
    }

    /// Takes packets of the size that is sent.
    pub fn endpoint(&self) -> Result<EndpointConfig> {
        let mut config = EndpointConfig::default();
        if let Some(mtu) = self.mtu {
            config.max_udp_payload_size(mtu - IPV4_HEADERS)?;
        }
        Ok(config)
    }

    /// A server with a certificate of its own making, as quinn-perf's.
    pub fn server(&self) -> Result<ServerConfig> {
        let own = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
        let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()).into();
        let mut crypto = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![own.cert.into()], key)?;
        crypto.alpn_protocols = vec![b"bulk".to_vec()];
        let crypto = QuicServerConfig::try_from(crypto)?;
        let mut config = ServerConfig::with_crypto(Arc::new(crypto));
        config.transport_config(self.transport());
        Ok(config)
    }

    /// A client that takes any certificate, as quinn-perf's.
    pub fn client(&self) -> Result<ClientConfig> {
        let provider = provider();
        let mut crypto = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
            .with_no_client_auth();
        crypto.alpn_protocols = vec![b"bulk".to_vec()];
        let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(crypto)?));
        config.transport_config(self.transport());
        Ok(config)
    }

    /// A socket with buffers of the size that is asked for, as far as the system allows.
    pub fn socket(&self, address: SocketAddr) -> Result<UdpSocket> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_send_buffer_size(self.socket_buffer)?;
        socket.set_recv_buffer_size(self.socket_buffer)?;
        socket.bind(&address.into())?;
        Ok(socket.into())
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider { cipher_suites: SUITES.into(), ..aws_lc_rs::default_provider() })
}

/// Encryption without authentication: it is the data that is measured.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
