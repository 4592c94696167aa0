//! A disk that fails as a seed says, and transfers onto it.

mod disk;
mod faults;
mod fuzz;
mod image;
mod run;

pub use disk::SimDisk;
pub use faults::{Crash, Faults};
pub use fuzz::{fuzz_frame, fuzz_ticket};
pub use run::{Outcomes, run};
