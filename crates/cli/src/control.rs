//! Control of running processes: a Unix socket per process, which the same user's commands use.
//!
//! A process that has an endpoint listens on `DIRECTORY/PID.sock` ([`directory`] says where) and
//! answers requests, a line of JSON each ([`protocol`]). Only processes of the same user can
//! connect: the directory is private, and both ends ask the system who the other one is.

#[cfg(unix)]
pub(crate) mod client;
#[cfg(unix)]
mod directory;
#[cfg(unix)]
mod line;
#[cfg(unix)]
pub(crate) mod protocol;
#[cfg(unix)]
mod server;

#[cfg(unix)]
pub(crate) use server::Control;

#[cfg(not(unix))]
pub(crate) use elsewhere::Control;

#[cfg(not(unix))]
mod elsewhere {
    use manypath::Endpoint;

    use crate::args::ReportArgs;
    use crate::live::Views;
    use crate::screen::Screen;

    /// Nothing: there are no such sockets on this system.
    pub(crate) struct Control;

    impl Control {
        /// Does nothing.
        pub(crate) fn start(_: &Endpoint, _: &Views, _: &Screen, _: &ReportArgs) -> Control {
            Control
        }
    }
}
