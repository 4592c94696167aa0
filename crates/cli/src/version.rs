//! The text of `--version`.

use std::sync::LazyLock;

use manypath_files::frame;
use manypath_proxy::frame as proxy_frame;

static TEXT: LazyLock<String> = LazyLock::new(text);

/// The version, the commit and what is in this build. `-V` prints the version only.
pub(crate) fn long() -> &'static str {
    &TEXT
}

fn text() -> String {
    format!(
        "{}\ncommit: {}\nbuilt for: {}\nfeatures: {}\nprotocols: transfer {}, proxy {}",
        env!("CARGO_PKG_VERSION"),
        env!("MANYPATH_COMMIT"),
        env!("MANYPATH_TARGET"),
        features().join(" "),
        frame::VERSION,
        proxy_frame::VERSION,
    )
}

/// The features that not every build has.
fn features() -> Vec<&'static str> {
    let all = [
        // `manypath path` and `manypath top`.
        ("control", cfg!(unix)),
        ("emulate", cfg!(target_os = "linux")),
        // The routers in `manypath paths`.
        ("routes", cfg!(target_os = "linux")),
        // It needs no library of the system.
        ("static", cfg!(target_feature = "crt-static")),
        // Checks of the programmer's, which make it slow.
        ("debug-assertions", cfg!(debug_assertions)),
    ];
    all.into_iter().filter_map(|(name, is_there)| is_there.then_some(name)).collect()
}
