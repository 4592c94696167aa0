//! The live views of a command: metrics, a page, the terminal.

use std::io::IsTerminal;
use std::net::SocketAddr;

use manypath_live::tui::{Board, Ended, Own};
use manypath_live::web::Page;
use manypath_live::{Live, Server, metrics, tui, web};
use tokio::task::JoinHandle;

use crate::args::{LiveArgs, MetricsArgs};
use crate::failure::{Failure, Result};
use crate::screen::Screen;

/// The live views of this process. What the user did not ask for costs nothing but the sampling.
#[derive(Debug)]
pub(crate) struct Views {
    /// The command.
    pub(crate) command: &'static str,
    /// The figures.
    pub(crate) live: Live,
    screen: Screen,
    wants_terminal: bool,
    terminal: Option<JoinHandle<()>>,
    _metrics: Option<Server>,
    _page: Option<Page>,
}

impl Views {
    /// Starts the views that were asked for, except the one in the terminal, and gives them the
    /// lines of `screen` as events.
    pub(crate) async fn start(
        args: &LiveArgs,
        command: &'static str,
        screen: &Screen,
    ) -> Result<Views> {
        if args.tui {
            check_terminal("--tui")?;
        }
        let live = Live::start(command);
        screen.note_in(&live);
        let metrics = serve_metrics(&args.metrics, &live).await?;
        let page = match args.web {
            None => None,
            Some(address) => {
                let page = web::serve(address, live.clone()).await;
                let page = page.map_err(|e| cannot_serve("--web", address, &e))?;
                // With --quiet too, since it is of no use without. It is no event: the page, and
                // other commands, must not show it.
                eprintln!("Live page: {}", page.url());
                if !address.ip().is_loopback() {
                    eprintln!(
                        "warning: the page is not encrypted; whoever sees its address may change ranks"
                    );
                }
                Some(page)
            }
        };
        Ok(Views {
            command,
            live,
            screen: screen.clone(),
            wants_terminal: args.tui,
            terminal: None,
            _metrics: metrics,
            _page: page,
        })
    }

    /// Begins with the view in the terminal, if it was asked for. It says `waiting` while there is
    /// no association. What goes to standard output must wait until [`Views::close`].
    pub(crate) fn open(&mut self, waiting: String) {
        if !self.wants_terminal {
            return;
        }
        let (live, screen) = (self.live.clone(), self.screen.clone());
        screen.leave();
        self.terminal = Some(tokio::spawn(async move {
            let ended = tui::run(Board::own(waiting), Own(live)).await;
            screen.come_back();
            match ended {
                Ok(Ended::Closed) => {}
                Ok(Ended::Interrupted) => interrupt(),
                Err(e) => screen.line(&format!("the view in the terminal ended: {e}")),
            }
        }));
    }

    /// Gives the terminal back.
    pub(crate) async fn close(&mut self) {
        if let Some(task) = self.terminal.take() {
            task.abort();
            // Until it is gone it could still draw.
            let _ = task.await;
            self.screen.come_back();
        }
    }
}

impl Drop for Views {
    fn drop(&mut self) {
        if let Some(task) = &self.terminal {
            task.abort();
        }
    }
}

/// Serves metrics if they were asked for.
pub(crate) async fn serve_metrics(args: &MetricsArgs, live: &Live) -> Result<Option<Server>> {
    let Some(address) = args.metrics else { return Ok(None) };
    let server = metrics::serve(address, live.clone()).await;
    let server = server.map_err(|e| cannot_serve("--metrics", address, &e))?;
    if address.port() == 0 {
        eprintln!("Metrics: http://{}/metrics", server.address());
    }
    Ok(Some(server))
}

fn cannot_serve(option: &str, address: SocketAddr, error: &std::io::Error) -> Failure {
    Failure::failed(format!("{option} {address}: {error}"))
        .hint("another port, or 0 for a free one; is another manypath there already?")
}

/// An error unless there is a terminal to draw on and to take keys from.
pub(crate) fn check_terminal(what: &str) -> Result<()> {
    if std::io::stderr().is_terminal() && std::io::stdin().is_terminal() {
        Ok(())
    } else {
        let message = format!("{what} needs a terminal for standard input and standard error");
        Err(Failure::usage(message).hint("--web shows the same in a browser"))
    }
}

/// Raises SIGINT: the view has read Ctrl-C as a key, and the command waits for the signal.
fn interrupt() {
    #[cfg(unix)]
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT);
}
