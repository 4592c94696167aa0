//! The hosts of a scenario as network namespaces, with exactly its links between them.
//!
//! Each host has an interface for each of its paths. IP packets that leave through it enter the
//! first link of the path, which is the simulator's, and appear at the other end at the time that
//! the links say, or not at all. Namespaces have no names: they go with the processes in them.
//!
//! Needs root, or a user namespace ([`become_root_of_own_namespace`]), and the commands `ip`
//! (iproute2), `mount`, `sh` and `cat`.

mod crossing;
mod ip;
mod mover;
mod namespace;
mod plan;
mod program;
mod report;
mod user;

use std::io;
use std::time::Duration;

use manypath_sim::scenario::CompiledScenario;
use tokio::process::{Child, Command};

pub use plan::{HostPlan, InterfacePlan, PlanError};
pub use program::{Place, stop};
pub use report::{Lateness, LinkReport, Report};
pub use user::become_root_of_own_namespace;

use crossing::Crossing;
use mover::Moving;
use namespace::Namespace;
use plan::Plan;

/// Why a network could not be made.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// The scenario has something that namespaces cannot have.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The system refused a step of making a host.
    #[error("host {host}: cannot {step}: {error}")]
    System {
        /// The host's name.
        host: String,
        /// The step.
        step: &'static str,
        /// The system's reason.
        error: io::Error,
    },
    /// `ip` refused its commands.
    #[error("host {host}: ip: {message}")]
    Ip {
        /// The host's name.
        host: String,
        /// The message of `ip`.
        message: String,
    },
    /// The links cannot run.
    #[error("cannot start the links: {0}")]
    Links(io::Error),
}

/// Options of a network.
#[derive(Copy, Clone, Debug, Default)]
pub struct Options {
    /// The seed of everything random on the links.
    pub seed: u64,
    /// Announces every address of every host to MPTCP peers, and accepts up to 8 subflows.
    pub mptcp: bool,
}

/// Hosts with links between them. Whatever runs in them is killed when this is dropped.
#[derive(Debug)]
pub struct Hosts {
    // First, because dropping the namespaces kills what still sends.
    namespaces: Vec<Namespace>,
    plans: Vec<HostPlan>,
    state: State,
}

#[derive(Debug)]
enum State {
    Ready(Box<Moving>),
    Running(mover::Running),
    Over,
}

impl Hosts {
    /// Makes the hosts of a scenario. Its links carry nothing before [`begin`](Self::begin).
    ///
    /// # Errors
    ///
    /// If the scenario has something that namespaces cannot have, or the system refuses.
    pub fn new(scenario: &CompiledScenario, options: Options) -> Result<Hosts, HostsError> {
        let Plan { bare, hosts: plans } = Plan::new(scenario, options.seed)?;
        let mut namespaces = Vec::new();
        let mut devices: Vec<_> = (0..2 * bare.paths.len()).map(|_| None).collect();
        for plan in &plans {
            let names = plan::hosts_file(plan, &plans);
            let (namespace, own) = Namespace::start(plan, &names, options.mptcp)?;
            for (interface, device) in plan.interfaces.iter().zip(own) {
                devices[interface.number] = Some(device);
            }
            namespaces.push(namespace);
        }
        // Each end of a path is an interface of one host.
        let devices = devices.into_iter().flatten().collect();
        let moving = Moving::new(Crossing::new(bare), devices);
        Ok(Hosts { namespaces, plans, state: State::Ready(Box::new(moving)) })
    }

    /// The hosts and their addresses.
    pub fn plans(&self) -> &[HostPlan] {
        &self.plans
    }

    /// The near end of the first path, by its number in [`plans`](Self::plans).
    pub fn first(&self) -> usize {
        let is_first = |plan: &HostPlan| plan.interfaces.iter().any(|own| own.number == 0);
        self.plans.iter().position(is_first).unwrap_or(0)
    }

    /// Starts a program at a host, by its number in [`plans`](Self::plans). Its environment has
    /// the addresses that it reaches.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    ///
    /// # Panics
    ///
    /// If there is no such host, or outside a tokio runtime.
    pub fn spawn(&self, host: usize, mut command: Command, place: Place) -> io::Result<Child> {
        let own = &self.plans[host];
        command.env("MANYPATH_HOST", &own.name);
        for plan in &self.plans {
            command.env(plan.variable(), plan.addresses_from(own).join(","));
        }
        program::spawn(&self.namespaces[host], command, place)
    }

    /// How many sockets at a host wait for packets or connections: bound UDP sockets and listening
    /// TCP sockets.
    ///
    /// # Panics
    ///
    /// If there is no such host.
    pub fn listening(&self, host: usize) -> usize {
        self.namespaces[host].listening()
    }

    /// Starts the links; their times count from now. Later calls do nothing.
    ///
    /// # Errors
    ///
    /// If there is no thread for them.
    pub fn begin(&mut self) -> Result<(), HostsError> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Ready(moving) => {
                self.state = State::Running(moving.start().map_err(HostsError::Links)?);
            }
            other => self.state = other,
        }
        Ok(())
    }

    /// Time since the links began.
    pub fn elapsed(&self) -> Duration {
        match &self.state {
            State::Running(running) => running.elapsed(),
            State::Ready(_) | State::Over => Duration::ZERO,
        }
    }

    /// Stops the links, kills what runs at the hosts, and reports what the links did. `None` if
    /// they never began.
    pub fn finish(mut self) -> Option<Report> {
        let dropped_before_links =
            self.namespaces.iter().map(Namespace::dropped_by_interfaces).sum();
        let State::Running(running) = std::mem::replace(&mut self.state, State::Over) else {
            return None;
        };
        let report = running.stop();
        report.map(|report| Report { dropped_before_links, ..report })
    }
}
