//! The terminal as a view needs it, and as it was before.

use std::io::{self, Stderr, Write, stderr};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::cursor::Show;
use ratatui_crossterm::crossterm::execute;
use ratatui_crossterm::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// A view has the terminal.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal, while a view has it; then it is as before.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) terminal: Terminal<CrosstermBackend<Stderr>>,
}

impl Taken {
    /// Takes the terminal of standard error, whose other screen shows the view. A panic gives it
    /// back before its message.
    pub(super) fn take() -> io::Result<Taken> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                before(panic);
            }));
        });
        enable_raw_mode()?;
        IS_TAKEN.store(true, Ordering::SeqCst);
        let opened = execute!(stderr(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(stderr())));
        match opened {
            Ok(terminal) => Ok(Taken { terminal }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back();
    }
}

fn give_back() {
    if IS_TAKEN.swap(false, Ordering::SeqCst) {
        // A terminal that is gone cannot be given back.
        let _ = execute!(stderr(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
        let _ = stderr().flush();
    }
}
