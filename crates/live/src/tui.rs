//! The figures in a terminal: a row and a sparkline for each path, events, keys to change ranks.

mod board;
mod draw;
mod run;
mod terminal;

pub use board::{Board, Deed, Key};
pub use draw::{Colours, draw};
pub use run::{Ended, Own, Source, run};
