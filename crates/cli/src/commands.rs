//! The commands, each in a file of its name. Words of a command line are in `args`, which parses
//! them.

pub(crate) mod decrypt;
pub(crate) mod demo;
pub(crate) mod doctor;
#[cfg(target_os = "linux")]
pub(crate) mod emulate;
pub(crate) mod lab;
pub(crate) mod man;
pub(crate) mod names;
#[cfg(unix)]
pub(crate) mod path;
pub(crate) mod paths;
pub(crate) mod perf;
pub(crate) mod proxy;
pub(crate) mod recv;
pub(crate) mod relay;
pub(crate) mod replay;
pub(crate) mod send;
pub(crate) mod show;
pub(crate) mod sim;
#[cfg(unix)]
pub(crate) mod top;
