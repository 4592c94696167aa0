//! INIT and INIT ACK (RFC 9260 §3.3.2, §3.3.3): reads and checks the peer's, and makes ours.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use manypath_wire::{DtlsKeyManagement, EDMID_DTLS, ErrorCause, Init, Parameter, Tsn};

use super::agreed::Extensions;
use super::cookie::{Cookie, MAX_ADDRESSES};
use crate::assoc::receive::sack_path::answers_sack_path;
use crate::auth::{AuthOffer, AuthParameters};
use crate::config::Config;

/// The smallest a_rwnd an INIT may carry (RFC 9260 §3.3.2).
const MIN_A_RWND: u32 = 1500;

/// Contents of an INIT or INIT ACK, checked.
#[derive(Clone, Debug)]
pub(crate) struct PeerInit {
    pub(crate) tag: u32,
    pub(crate) a_rwnd: u32,
    pub(crate) streams_out: u16,
    pub(crate) streams_in: u16,
    pub(crate) initial_tsn: Tsn,
    pub(crate) addresses: Vec<IpAddr>,
    /// The extensions that the peer announced.
    pub(crate) extensions: Extensions,
    pub(crate) cookie: Option<Bytes>,
    /// The peer's offer of key management.
    pub(crate) key_management: Option<DtlsKeyManagement>,
    /// The peer's parameters of authentication.
    pub(crate) authentication: AuthOffer,
    /// Unrecognized parameters to report, whole.
    pub(crate) unrecognized: Vec<Bytes>,
}

impl PeerInit {
    /// Checks an INIT or INIT ACK (RFC 9260 §3.3.2, §3.3.3); the error goes into an ABORT.
    pub(crate) fn read(init: &Init) -> Result<PeerInit, ErrorCause> {
        let bad = init.initiate_tag == 0
            || init.outbound_streams == 0
            || init.inbound_streams == 0
            || init.a_rwnd < MIN_A_RWND;
        if bad {
            return Err(ErrorCause::InvalidMandatoryParameter);
        }
        let mut peer = PeerInit {
            tag: init.initiate_tag,
            a_rwnd: init.a_rwnd,
            streams_out: init.outbound_streams,
            streams_in: init.inbound_streams,
            initial_tsn: init.initial_tsn,
            addresses: Vec::new(),
            extensions: Extensions::default(),
            cookie: None,
            key_management: None,
            authentication: AuthOffer::default(),
            unrecognized: Vec::new(),
        };
        let mut skips_tsns = false;
        for parameter in &init.params {
            let Ok(parameter) = parameter else {
                return Err(ErrorCause::ProtocolViolation(Bytes::from_static(
                    b"malformed parameter",
                )));
            };
            match parameter {
                Parameter::Ipv4(ip) => peer.add_address(ip.into()),
                Parameter::Ipv6(ip) => peer.add_address(ip.into()),
                Parameter::StateCookie(cookie) => peer.cookie = Some(cookie),
                Parameter::SupportedExtensions(types) => {
                    let Extensions { zero_checksum, ecn, .. } = peer.extensions;
                    let listed = Extensions::of_types(&types);
                    peer.extensions = Extensions { zero_checksum, ecn, ..listed };
                }
                Parameter::ZeroChecksumAcceptable(method) => {
                    peer.extensions.zero_checksum = method == EDMID_DTLS;
                }
                Parameter::EcnCapable => peer.extensions.ecn = true,
                Parameter::ForwardTsnSupported => skips_tsns = true,
                Parameter::DtlsKeyManagement(offer) => peer.key_management = Some(offer),
                Parameter::Random(_)
                | Parameter::AuthenticatedChunks(_)
                | Parameter::HmacAlgorithms(_) => peer.authentication.note(parameter),
                Parameter::HostNameAddress(_) => {
                    // RFC 9260 §3.3.2.1.4: deprecated, and answered with ABORT.
                    let mut raw = Vec::new();
                    parameter.encode(&mut raw);
                    return Err(ErrorCause::UnresolvableAddress(raw.into()));
                }
                Parameter::Unknown(unknown) => {
                    let action = unknown.action();
                    if action.report && peer.unrecognized.len() < 16 {
                        peer.unrecognized.push(unknown.raw().clone());
                    }
                    if action.stop {
                        break;
                    }
                }
                _ => {}
            }
        }
        peer.extensions.partial_reliability |= skips_tsns;
        Ok(peer)
    }

    /// Drops listed addresses that would mean another host here: loopback addresses unless the list
    /// comes from this host, and link-local ones unless it comes from such an address. Otherwise
    /// anyone could make us send to our own services and neighbours.
    pub(crate) fn keep_addresses_in_scope_of(&mut self, source: IpAddr) {
        self.addresses.retain(|&ip| is_in_scope_of(ip, source));
    }

    /// Keeps an address that a packet can be sent to. An IPv4-mapped IPv6 address becomes the IPv4
    /// address.
    fn add_address(&mut self, ip: IpAddr) {
        let ip = ip.to_canonical();
        if can_mean_a_host(ip)
            && self.addresses.len() < MAX_ADDRESSES
            && !self.addresses.contains(&ip)
        {
            self.addresses.push(ip);
        }
    }
}

/// True if a host somewhere can have this address.
pub(crate) fn can_mean_a_host(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => !(v4.is_unspecified() || v4.is_broadcast() || v4.is_multicast()),
        IpAddr::V6(v6) => !(v6.is_unspecified() || v6.is_multicast() || v6.is_unicast_link_local()),
    }
}

/// True for an address that means the same host to us and to the host at `source`.
pub(crate) fn is_in_scope_of(ip: IpAddr, source: IpAddr) -> bool {
    let (here, near) = (source.is_loopback(), is_link_local(source));
    (here || !ip.is_loopback()) && (here || near || !is_link_local(ip))
}

pub(crate) fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

/// The extensions that an end announces, beside those that its configuration names.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Announced {
    /// SACK PATH chunks.
    pub(crate) sack_path: bool,
    /// CANDIDATES chunks.
    pub(crate) candidates: bool,
}

/// The parameters of our INIT, or of our INIT ACK if there is a cookie. Parameters that would say
/// nothing are left out, because some stacks refuse them: an empty list of extensions, and
/// Supported Address Types, without which all types are supported (RFC 9260 §3.3.2.1.5).
pub(crate) fn parameters(
    config: &Config,
    local: &[SocketAddr],
    cookie: Option<Bytes>,
    key_management: Option<DtlsKeyManagement>,
    authentication: Option<&AuthParameters>,
    more: Announced,
) -> Vec<Parameter> {
    let mut params = Vec::new();
    params.extend(cookie.map(Parameter::StateCookie));
    params.extend(key_management.map(Parameter::DtlsKeyManagement));
    params.extend(authentication.into_iter().flat_map(AuthParameters::parameters));
    if config.zero_checksum {
        params.push(Parameter::ZeroChecksumAcceptable(EDMID_DTLS));
    }
    if config.ecn {
        params.push(Parameter::EcnCapable);
    }
    if config.advertise_addresses {
        let ips = distinct_ips(local);
        if ips.len() > 1 {
            params.extend(ips.into_iter().map(Parameter::from));
        }
    }
    let announced = Extensions {
        timestamp: config.timestamp,
        sack_path: more.sack_path,
        nr_sack: config.nr_sack,
        interleaving: config.message_interleaving,
        rare_sacks: sends_rare_sacks(config),
        candidates: more.candidates,
        partial_reliability: config.partial_reliability,
        zero_checksum: config.zero_checksum,
        reconfiguration: config.stream_reconfiguration,
        ecn: config.ecn,
        authentication: authentication.is_some(),
        address_reconfiguration: config.address_reconfiguration,
    };
    let types: Bytes = announced.types().collect();
    if !types.is_empty() {
        params.push(Parameter::SupportedExtensions(types));
    }
    if config.partial_reliability {
        params.push(Parameter::ForwardTsnSupported);
    }
    params
}

/// The IP addresses of a list in which one may stand twice: over UDP and over IP itself.
fn distinct_ips(list: &[SocketAddr]) -> Vec<IpAddr> {
    let mut ips = Vec::with_capacity(list.len());
    for ip in list.iter().map(SocketAddr::ip) {
        if !ips.contains(&ip) {
            ips.push(ip);
        }
    }
    ips
}

/// True if an association may send fewer SACKs than RFC 9260 §6.2 demands, to a peer that accepts
/// that. Such an end also accepts fewer SACKs.
pub(crate) fn sends_rare_sacks(config: &Config) -> bool {
    config.sack_every_max > config.sack_every
}

/// The INIT ACK for an INIT. Keeps no state (RFC 9260 §5.1.3).
///
/// `budget` is the largest chunk that may go to an unverified address without amplifying. The list
/// of addresses is left out if it does not fit.
pub(crate) fn init_ack(
    config: &Config,
    local: &[SocketAddr],
    cookie: &Cookie,
    sealed: Bytes,
    unrecognized: &[Bytes],
    receive_buffer: usize,
    budget: usize,
) -> Init {
    let announced = Announced {
        sack_path: answers_sack_path(config, cookie.extensions.sack_path),
        candidates: cookie.extensions.candidates,
    };
    let offer = cookie.key_management.as_ref().map(|both| both.own.clone());
    let authentication = cookie
        .authentication
        .as_ref()
        .map(|both| AuthParameters::own(both.own, config.required_authentication()));
    let auth = authentication.as_ref();
    let switches = [offer.is_some(), config.zero_checksum, config.ecn];
    let kept = 1
        + switches.into_iter().map(usize::from).sum::<usize>()
        + auth.map_or(0, |auth| auth.parameters().count());
    let mut params = parameters(config, local, Some(sealed), offer, auth, announced);
    params.extend(unrecognized.iter().cloned().map(Parameter::UnrecognizedParameter));
    loop {
        let init = Init {
            initiate_tag: cookie.local_tag,
            a_rwnd: a_rwnd(receive_buffer),
            outbound_streams: cookie.streams_out,
            inbound_streams: config.inbound_streams,
            initial_tsn: cookie.local_tsn,
            params: params.iter().cloned().collect(),
        };
        // The cookie comes first and always stays, and so do the parameters of protection, of
        // authentication and of the checksum, by which packets are read, and of ECN, so that both
        // ends agree on it.
        if init.params.as_bytes().len() <= budget || params.len() == kept {
            return init;
        }
        params.pop();
    }
}

pub(crate) fn a_rwnd(receive_buffer: usize) -> u32 {
    u32::try_from(receive_buffer).unwrap_or(u32::MAX)
}
