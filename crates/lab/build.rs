//! Builds the crate again when an experiment changes, since it carries a copy of them.

fn main() {
    println!("cargo::rerun-if-changed=../../experiments");
}
