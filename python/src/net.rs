//! Endpoints and associations over real sockets, for asyncio: see `manypath/net.py`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use manypath::keys::{Fingerprint, Identity, PeerKeys, SharedKey, TlsKeys};
use manypath::{
    BindTo, Bytes, Config, ConnectTarget, EndpointOptions, EventStream, PathId, PathStats,
    PeerIdentity, SendOptions, StreamId, interface_names,
};
use manypath_trace::{Event, JsonLines};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tokio::sync::Mutex;

use crate::runtime::{future_into_py, get_runtime, settle_at_exit};

/// How associations are protected.
#[pyclass(frozen, module = "manypath._manypath")]
pub(crate) struct Security {
    security: manypath::Security,
    identity: Option<Identity>,
}

pub(crate) fn bad(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// `AssociationError`: something that happened on the network.
fn failed(error: impl std::fmt::Display) -> PyErr {
    crate::error::of_class("AssociationError", error.to_string())
}

#[pymethods]
impl Security {
    /// Keys of TLS 1.3: an identity of PEM, or a new one; and the fingerprints of peers' keys, if
    /// not every peer will do.
    #[staticmethod]
    #[pyo3(signature = (identity = None, peers = None))]
    fn keys(identity: Option<&str>, peers: Option<Vec<String>>) -> PyResult<Security> {
        let identity = match identity {
            Some(pem) => Identity::from_pem(pem.as_bytes()).map_err(bad)?,
            None => Identity::generate().map_err(bad)?,
        };
        let peers = match peers {
            Some(peers) => {
                let pin = |text: &String| {
                    text.parse::<Fingerprint>().map_err(|e| bad(format!("peers: `{text}`: {e}")))
                };
                let pins = peers.iter().map(pin);
                PeerKeys::Pinned(pins.collect::<PyResult<_>>()?)
            }
            None => PeerKeys::Any,
        };
        let security = TlsKeys::raw_public_keys(&identity, peers).into();
        Ok(Security { security, identity: Some(identity) })
    }

    /// A secret that both ends have.
    #[staticmethod]
    fn shared(secret: &[u8]) -> PyResult<Security> {
        let security = SharedKey::new(secret).map_err(bad)?.into();
        Ok(Security { security, identity: None })
    }

    /// None.
    #[staticmethod]
    fn plain() -> Security {
        Security { security: manypath::Security::Plain, identity: None }
    }

    #[getter]
    fn fingerprint(&self) -> Option<String> {
        self.identity.as_ref().map(|identity| identity.fingerprint().to_string())
    }

    #[getter]
    fn pem(&self) -> Option<String> {
        self.identity.as_ref().map(|identity| identity.to_pem().to_string())
    }
}

/// The default configuration with a profile, a preset and further settings.
pub(crate) fn config(
    profile: Option<String>,
    preset: Option<String>,
    settings: Vec<(String, String)>,
) -> PyResult<Config> {
    let named = [("profile", profile), ("preset", preset)].into_iter();
    let named = named.filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let overrides: Vec<_> = named.chain(settings).collect();
    Config::default_with(&overrides).map_err(bad)
}

/// Sockets, and all associations that go through them.
#[pyclass(frozen, module = "manypath._manypath")]
pub(crate) struct Endpoint(manypath::Endpoint);

#[pymethods]
impl Endpoint {
    #[new]
    #[pyo3(signature = (security, bind, port, accept, profile, preset, settings))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn new(
        py: Python<'_>,
        security: &Security,
        bind: Vec<String>,
        port: u16,
        accept: bool,
        profile: Option<String>,
        preset: Option<String>,
        settings: Vec<(String, String)>,
    ) -> PyResult<Endpoint> {
        let config = config(profile, preset, settings)?;
        let place = |text: &String| match text.parse::<BindTo>() {
            Ok(place) => place,
            Err(never) => match never {},
        };
        let options = EndpointOptions {
            config: Arc::new(config),
            bind: bind.iter().map(place).collect(),
            udp_port: port,
            accept,
            ..EndpointOptions::client(security.security.clone())
        };
        settle_at_exit(py)?;
        let _runtime = get_runtime().enter();
        manypath::Endpoint::bind(options).map(Endpoint).map_err(failed)
    }

    #[getter]
    fn addresses(&self) -> Vec<(String, u16)> {
        let all = self.0.local_addresses().into_iter();
        all.map(|address| (address.ip().to_string(), address.port())).collect()
    }

    #[getter]
    fn port(&self) -> u16 {
        self.0.udp_port()
    }

    fn connect<'py>(&self, py: Python<'py>, remotes: Vec<String>) -> PyResult<Bound<'py, PyAny>> {
        let remotes = remotes.iter().map(|text| text.parse::<SocketAddr>().map_err(bad));
        let target = ConnectTarget::new(remotes.collect::<PyResult<Vec<_>>>()?);
        let endpoint = self.0.clone();
        future_into_py(py, async move {
            endpoint.connect(target).await.map(Association::new).map_err(failed)
        })
    }

    fn accept<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let endpoint = self.0.clone();
        future_into_py(py, async move { Ok(endpoint.accept().await.map(Association::new)) })
    }

    fn close<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let endpoint = self.0.clone();
        future_into_py(py, async move {
            endpoint.close().await;
            Ok(())
        })
    }

    fn abort(&self, reason: &str) {
        self.0.abort(reason);
    }
}

/// An association.
#[pyclass(frozen, module = "manypath._manypath")]
pub(crate) struct Association(Arc<manypath::Association>);

impl Association {
    fn new(association: manypath::Association) -> Association {
        Association(Arc::new(association))
    }
}

/// A message: payload, stream, payload protocol identifier, unordered, the message ends with it,
/// its sender gave it up.
type Received = (Py<PyBytes>, u16, u32, bool, bool, bool);

/// When a message is given up: lifetime in seconds, retransmissions, priority.
type Limits = (Option<f64>, Option<u16>, Option<u32>);

#[pymethods]
impl Association {
    fn send<'py>(
        &self,
        py: Python<'py>,
        data: &[u8],
        stream: u16,
        ppid: u32,
        unordered: bool,
        limits: Limits,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (lifetime, max_retransmissions, priority) = limits;
        let lifetime = lifetime.map(Duration::try_from_secs_f64).transpose().map_err(bad)?;
        let options = SendOptions {
            stream: StreamId(stream),
            ppid,
            unordered,
            lifetime,
            max_retransmissions,
            priority,
            ..SendOptions::default()
        };
        let (association, data) = (Arc::clone(&self.0), Bytes::copy_from_slice(data));
        future_into_py(py, async move { association.send(options, data).await.map_err(failed) })
    }

    fn recv<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let association = Arc::clone(&self.0);
        future_into_py(py, async move {
            let Some(message) = association.recv().await.map_err(failed)? else { return Ok(None) };
            Python::attach(|py| {
                let data = PyBytes::new(py, &message.payload.to_vec()).unbind();
                let (stream, ppid) = (message.stream.0, message.ppid);
                let (is_end, is_cut_off) = (message.end_of_message, message.is_cut_off);
                let received: Received =
                    (data, stream, ppid, message.unordered, is_end, is_cut_off);
                Ok(Some(received))
            })
        })
    }

    fn acknowledged<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let association = Arc::clone(&self.0);
        future_into_py(py, async move { association.acknowledged().await.map_err(failed) })
    }

    fn shutdown<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let association = Arc::clone(&self.0);
        future_into_py(py, async move { association.shutdown().await.map_err(failed) })
    }

    fn closed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let association = Arc::clone(&self.0);
        future_into_py(py, async move { Ok(association.closed().await.to_string()) })
    }

    fn abort(&self, reason: &str) {
        self.0.abort(reason);
    }

    #[expect(clippy::disallowed_methods, reason = "what happens on a network has clock times")]
    fn events(&self) -> Events {
        Events { stream: Arc::new(Mutex::new(self.0.events())), begin: std::time::Instant::now() }
    }

    /// Each path: its number from 1, and its interface, counters and variables as JSON.
    fn paths(&self) -> PyResult<Vec<(u16, String)>> {
        let interfaces = interface_names();
        let with_interface = |path: &PathStats| -> serde_json::Result<_> {
            let mut all = serde_json::to_value(path)?;
            all["interface"] = interfaces.get(&path.local.ip()).cloned().into();
            Ok((number(path.id), all.to_string()))
        };
        let paths = self.0.paths();
        paths.iter().map(with_interface).collect::<serde_json::Result<_>>().map_err(bad)
    }

    /// Counters of the association: messages and bytes sent and received, bytes acknowledged.
    fn counters(&self) -> [u64; 5] {
        let stats = self.0.stats();
        [
            stats.messages_sent,
            stats.bytes_queued,
            stats.bytes_acked,
            stats.messages_received,
            stats.bytes_received,
        ]
    }

    #[getter]
    fn peer(&self) -> Option<(String, u16)> {
        self.0.peer().map(|peer| (peer.ip().to_string(), peer.port()))
    }

    #[getter]
    fn is_protected(&self) -> bool {
        self.0.is_protected()
    }

    #[getter]
    fn peer_key(&self) -> Option<String> {
        match self.0.identity()? {
            PeerIdentity::PublicKey(key) => Some(Fingerprint::of(&key).to_string()),
            _ => None,
        }
    }
}

fn number(path: PathId) -> u16 {
    u16::from(path.0) + 1
}

/// The events of an association from when this was made.
#[pyclass(frozen, module = "manypath._manypath")]
pub(crate) struct Events {
    stream: Arc<Mutex<EventStream>>,
    begin: std::time::Instant,
}

#[pymethods]
impl Events {
    /// The next event that traces have, as their JSON; None after the last.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (stream, begin) = (Arc::clone(&self.stream), self.begin);
        future_into_py(py, async move {
            let mut stream = stream.lock().await;
            while let Some(event) = stream.next().await {
                let Some(event) = Event::of(&event) else { continue };
                let time = manypath_proto::Instant::ZERO + begin.elapsed();
                let mut line = JsonLines::new(Vec::new());
                line.write(time, "here", &event).map_err(bad)?;
                return String::from_utf8(line.into_inner()).map(Some).map_err(bad);
            }
            Ok(None)
        })
    }
}
