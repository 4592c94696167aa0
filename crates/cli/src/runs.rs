//! Code shared by commands that run many simulations.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::Instant;

use crate::failure::{Failure, Result};
use crate::screen::figures::time;

/// Runs from which on a command says how many there are before it starts.
pub(crate) const MANY_RUNS: usize = 300;

/// Time between two lines where there is no terminal.
const PLAIN: Duration = Duration::from_secs(10);

/// Shows how many runs are done: a bar on a terminal, else of many runs a line from time to time.
#[derive(Debug)]
pub(crate) struct RunsBar {
    bar: ProgressBar,
    /// Where lines are printed: when the next one is due.
    next_line: Option<Instant>,
    begin: Instant,
}

impl RunsBar {
    /// Shows nothing if `is_hidden`.
    pub(crate) fn new(is_hidden: bool) -> RunsBar {
        let begin = Instant::now();
        if is_hidden {
            return RunsBar { bar: ProgressBar::hidden(), next_line: None, begin };
        }
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        // The template is a constant. The message is cut where the line ends.
        let style =
            ProgressStyle::with_template("{bar:20} {pos}/{len} runs, {eta} left {wide_msg}");
        let bar = bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let next_line = (!std::io::stderr().is_terminal()).then(|| begin + PLAIN);
        RunsBar { bar, next_line, begin }
    }

    /// Notes that `done` of `planned` runs are done; the message is about the last one.
    pub(crate) fn set(&mut self, done: usize, planned: usize, message: String) {
        self.bar.set_length(planned as u64);
        self.bar.set_position(done as u64);
        let now = Instant::now();
        let is_long = planned >= MANY_RUNS && done < planned;
        if is_long && self.next_line.is_some_and(|due| now >= due) {
            self.next_line = Some(now + PLAIN);
            let each = (now - self.begin).as_secs_f64() / done.max(1) as f64;
            let left = time(each * (planned - done) as f64);
            eprintln!("{}", format!("{done} of {planned} runs, {left} left {message}").trim_end());
        }
        self.bar.set_message(message);
    }

    /// Takes the bar off the terminal.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
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
