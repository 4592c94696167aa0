//! A chapter of the report.

use super::figure::Figure;
use super::results::Results;

/// One experiment of the report.
pub(super) struct Chapter {
    pub(super) id: String,
    pub(super) paper: String,
    pub(super) title: String,
    pub(super) figure: String,
    pub(super) says: String,
    pub(super) command: String,
    /// The experiment's README, Markdown.
    pub(super) notes: String,
    pub(super) results: Option<Results>,
    pub(super) figures: Vec<Figure>,
}
