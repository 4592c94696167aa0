//! The report: one page, and one picture a figure, made from the files that a run of the laboratory wrote.
