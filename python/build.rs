//! Lets macOS leave Python's symbols undefined, as Linux does by itself.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
