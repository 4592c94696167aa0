//! Code shared by commands that run many simulations.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::failure::{Failure, Result};

/// A line on a terminal that counts runs.
pub(crate) fn progress_bar(is_hidden: bool) -> ProgressBar {
    if is_hidden {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    // The template is a constant.
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} runs, {eta} left {msg}");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Becomes true at the first Ctrl-C, after which runs under way may end; the second ends the
/// program.
pub(crate) fn cancel_on_ctrl_c() -> Result<Arc<AtomicBool>> {
    let cancel = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&cancel);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::failed(format!("cannot start: {e}")))?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            if tokio::signal::ctrl_c().await.is_ok() {
                flag.store(true, Ordering::Relaxed);
                eprintln!("manypath: stopping after the current runs; Ctrl-C again stops at once");
                // Whether a second one comes or cannot be waited for: it ends here.
                let _ = tokio::signal::ctrl_c().await;
                std::process::exit(1);
            }
        });
    });
    Ok(cancel)
}
