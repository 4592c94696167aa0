//! pion/sctp, the SCTP of WebRTC in Go: messages in both directions, some that it gives up (RFC
//! 3758), and streams that are reset (RFC 6525). It takes what it returns from this end, so that
//! both verify every byte.

use std::net::SocketAddr;
use std::sync::Arc;

use manypath::{
    Association, BindTo, Config, ConnectTarget, Endpoint, EndpointOptions, Event, RequestOutcome,
    Security, StreamId,
};

use crate::harness::{Pattern, Pion, Relay, Verifier, free_udp_port, pion_interop, soon};

const SIZES: &[usize] = &[1, 100, 1188, 5000, 60_000];
const BYTES: u64 = 2_000_000;
const LOSSY: &str = "--drop 20 --duplicate 10 --reorder 20 --delay 3 --seed 7";

/// pion's SCTP port.
const SCTP_PORT: u16 = 5000;

/// The end that sends INIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opens {
    Manypath,
    Pion,
}

struct Running {
    association: Association,
    peer: Pion,
    _endpoint: Endpoint,
    _relay: Option<Relay>,
}

/// The set-up of a case.
struct Case {
    opens: Opens,
    parameters: &'static [(&'static str, &'static str)],
    /// Options of udp_lossy between the two.
    relay: Option<&'static str>,
    /// Options of pion_peer.
    options: &'static str,
}

impl Case {
    fn new(opens: Opens) -> Case {
        Case { opens, parameters: &[], relay: None, options: "" }
    }

    async fn start(self) -> Running {
        let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let parameters: Vec<_> = self.parameters.iter().map(text).collect();
        let config = Config::build("fast", "adaptive", &parameters).expect("a configuration");
        let options = EndpointOptions {
            config: Arc::new(config),
            bind: vec![BindTo::Address([127, 0, 0, 1].into())],
            accept: self.opens == Opens::Pion,
            sctp_port: SCTP_PORT,
            ..EndpointOptions::client(Security::Plain)
        };
        let endpoint = Endpoint::bind(options).expect("an endpoint");
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let (ours, theirs) = (at(endpoint.udp_port()), at(free_udp_port()));
        // Whoever is connected to is behind the relay.
        let asked = if self.opens == Opens::Manypath { theirs } else { ours };
        let (relay, to) = match self.relay {
            Some(options) => {
                let port = free_udp_port();
                let relay = Relay::start(asked.ip(), port, asked.port(), options).await;
                (Some(relay), at(port))
            }
            None => (None, asked),
        };
        let (peer, association) = match self.opens {
            Opens::Manypath => {
                // pion's socket is connected: it hears its relay only, whose port is not known.
                assert!(relay.is_none(), "pion opens where a relay is between");
                let peer = Pion::start("listen", theirs, ours, self.options).await;
                let target = ConnectTarget { sctp_port: SCTP_PORT, ..ConnectTarget::new([to]) };
                let association = soon("manypath connects", endpoint.connect(target)).await;
                (peer, association.expect("connected"))
            }
            Opens::Pion => {
                let peer = Pion::start("connect", theirs, to, self.options).await;
                let association = soon("pion connects", endpoint.accept()).await;
                (peer, association.expect("accepted"))
            }
        };
        Running { association, peer, _endpoint: endpoint, _relay: relay }
    }
}

/// Sends, takes back and verifies, and shuts down.
async fn echoes(case: Case) {
    let running = case.start().await;
    let total = Pattern::new(SIZES, 5).send_to_echo(&running.association, BYTES).await;
    running.association.shutdown().await.expect("everything is delivered");
    assert_eq!(running.peer.report().await.number("bytes"), total);
}

#[test]
fn messages_arrive_in_both_directions() {
    pion_interop(async {
        echoes(Case::new(Opens::Manypath)).await;
        echoes(Case::new(Opens::Pion)).await;
    });
}

#[test]
fn messages_arrive_through_losses() {
    pion_interop(async {
        echoes(Case { relay: Some(LOSSY), ..Case::new(Opens::Pion) }).await;
    });
}

/// Messages that pion gives up are skipped, and the others arrive.
#[test]
fn messages_that_pion_gives_up_are_skipped() {
    pion_interop(async {
        let case = Case::new(Opens::Pion);
        let running = Case { relay: Some(LOSSY), options: "--rexmit 0", ..case }.start().await;
        let association = &running.association;
        let mut verifier = Verifier::new(0);
        let pattern = Pattern::new(&[700], 3);
        let sent = pattern.send(association, 1_000_000).await.expect("queued");
        soon("all are acknowledged", association.acknowledged()).await.expect("open");
        association.shutdown().await.expect("everything is delivered");
        verifier.numbers_may_be_missing = true;
        verifier.receive_what_comes(association).await.expect("a shutdown");
        let stats = association.stats();
        assert!(stats.forward_tsns_received > 0, "{stats:?}");
        assert!(verifier.bytes > 0 && verifier.bytes < sent, "{} of {sent}", verifier.bytes);
    });
}

/// pion skips messages that this end gives up: it returns fewer, and the association ends well.
#[test]
fn messages_that_we_give_up_are_skipped_by_pion() {
    pion_interop(async {
        let case = Case { relay: Some(LOSSY), ..Case::new(Opens::Pion) };
        let Running { association, peer, _endpoint, _relay } = case.start().await;
        let pattern = Pattern::new(&[700, 4000], 3);
        for index in 0..600 {
            let (mut options, payload) = pattern.message(index);
            options.max_retransmissions = (index % 2 == 1).then_some(0);
            association.send(options, payload).await.expect("queued");
        }
        soon("all are acknowledged", association.acknowledged()).await.expect("open");
        let stats = association.stats();
        assert!(stats.messages_abandoned > 0 && stats.forward_tsns_sent > 0, "{stats:?}");
        association.shutdown().await.expect("everything is delivered");
        let came = peer.report().await.number("messages");
        assert!(came >= 300 && came + stats.messages_abandoned >= 600, "{came}: {stats:?}");
    });
}

/// pion resets its direction of a stream when ours is reset, and both begin again.
#[test]
fn streams_are_reset_in_both_directions() {
    pion_interop(async {
        let parameters = &[("stream_reconfiguration", "true")];
        for opens in [Opens::Manypath, Opens::Pion] {
            let Running { association, peer, _endpoint, _relay } =
                Case { parameters, ..Case::new(opens) }.start().await;
            let mut events = association.events();
            Pattern::new(&[2000], 1).send_to_echo(&association, 100_000).await;
            association.reset_streams(&[StreamId(0)]).expect("both can");
            let (mut ours, mut theirs) = (false, false);
            while !(ours && theirs) {
                let event = soon("both directions are reset", events.next()).await;
                match event.expect("it is open") {
                    Event::StreamsReconfigured { outcome, .. } => {
                        assert_eq!(outcome, RequestOutcome::Performed);
                        ours = true;
                    }
                    Event::IncomingStreamsReset { streams } => {
                        assert_eq!(streams, [StreamId(0)]);
                        theirs = true;
                    }
                    _ => {}
                }
            }
            let again = Pattern { seed: 3, ..Pattern::new(&[2000], 1) };
            again.send_to_echo(&association, 100_000).await;
            association.shutdown().await.expect("everything is delivered");
            assert!(peer.report().await.number("resets") >= 1);
        }
    });
}
