//! A disk that fails as a seed says, and transfers onto it.

mod disk;
mod fuzz;
mod image;
mod run;

pub use disk::{Crash, Faults, SimDisk};
pub use fuzz::{fuzz_frame, fuzz_ticket};
pub use run::{Outcomes, run};
