//! The laboratory: runs the papers' experiments over the simulator, judges their claims, and writes the report.

pub mod report;
