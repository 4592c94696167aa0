//! The experiments that a command is about.

use manypath_lab::error::LabError;
use manypath_lab::experiment::Experiments;

use crate::args::lab::ExperimentsArgs;
use crate::failure::{Failure, Result};

pub(super) fn wrong(error: LabError) -> Failure {
    Failure::usage(format!("{}: {}", error.place, error.what)).hint(error.remedy)
}

pub(super) fn find(args: &ExperimentsArgs) -> Result<Experiments> {
    Experiments::find(args.experiments.as_deref()).map_err(wrong)
}
