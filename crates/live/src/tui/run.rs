//! The loop of a view: keys, figures, drawing.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui_crossterm::crossterm::event::{
    Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read,
};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::board::{Board, Deed, Key};
use super::draw::{Colours, draw};
use super::terminal::Taken;
use crate::figures::Process;
use crate::live::Live;

/// How often the figures are read and drawn.
const REDRAW: Duration = Duration::from_millis(200);
/// How long the thread that reads keys waits before it looks whether it is still needed.
const KEY_WAIT: Duration = Duration::from_millis(50);

/// Where a view has its figures from.
pub trait Source {
    /// The processes now, each with its past since [`Board::since`].
    fn look(&mut self, board: &Board) -> impl Future<Output = Vec<Process>> + Send;

    /// Gives a path a rank; the error is for the user.
    fn set_rank(
        &mut self,
        pid: u32,
        association: u64,
        path: u16,
        rank: &'static str,
    ) -> impl Future<Output = Result<(), String>> + Send;
}

/// The figures of this process.
#[derive(Clone, Debug)]
pub struct Own(pub Live);

impl Source for Own {
    async fn look(&mut self, board: &Board) -> Vec<Process> {
        vec![self.0.process(board.since(std::process::id()))]
    }

    async fn set_rank(
        &mut self,
        _: u32,
        association: u64,
        path: u16,
        rank: &'static str,
    ) -> Result<(), String> {
        if self.0.set_rank(association, path, rank)? {
            Ok(())
        } else {
            Err("there is no such path any more".to_owned())
        }
    }
}

/// How a view ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The user closed it.
    Closed,
    /// The user wants the program to stop.
    Interrupted,
}

/// Shows a board until the user leaves it. The terminal is as before when this is over, also if it
/// is dropped in between.
///
/// # Errors
/// Those of the terminal.
pub async fn run(mut board: Board, mut source: impl Source) -> io::Result<Ended> {
    let mut taken = Taken::take()?;
    let colours = Colours::of_environment();
    let mut keys = Keys::read();
    let mut ticks = interval(REDRAW);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            pressed = keys.pressed.recv() => match pressed {
                Some(Pressed::Key(key)) => match board.press(key) {
                    Some(Deed::Quit) => return Ok(Ended::Closed),
                    Some(Deed::Interrupt) => return Ok(Ended::Interrupted),
                    Some(Deed::SetRank { pid, association, path, rank }) => {
                        let done = source.set_rank(pid, association, path, rank).await;
                        board.tell(match done {
                            Ok(()) => format!("path {path} is {rank} from now on"),
                            Err(why) => format!("path {path}: {why}"),
                        });
                        let processes = source.look(&board).await;
                        board.update(processes);
                    }
                    None => {}
                },
                Some(Pressed::Resized) => {}
                // The terminal is gone.
                None => return Ok(Ended::Closed),
            },
            _ = ticks.tick() => {
                let processes = source.look(&board).await;
                board.update(processes);
            }
        }
        taken.terminal.draw(|frame| draw(&board, colours, frame))?;
    }
}

enum Pressed {
    Key(Key),
    Resized,
}

/// A thread that reads keys.
struct Keys {
    pressed: mpsc::Receiver<Pressed>,
    is_over: Arc<AtomicBool>,
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl Keys {
    fn read() -> Keys {
        let is_over = Arc::new(AtomicBool::new(false));
        let (to, pressed) = mpsc::channel(16);
        let over = Arc::clone(&is_over);
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let event = match poll(KEY_WAIT) {
                    Ok(false) => continue,
                    Ok(true) => read(),
                    Err(_) => return,
                };
                let pressed = match event {
                    Ok(Event::Key(event)) => key(event).map(Pressed::Key),
                    Ok(Event::Resize(..)) => Some(Pressed::Resized),
                    Ok(_) => None,
                    Err(_) => return,
                };
                if pressed.is_some_and(|pressed| to.blocking_send(pressed).is_err()) {
                    return;
                }
            }
        });
        Keys { pressed, is_over }
    }
}

fn key(event: KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let is_ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
    Some(match event.code {
        KeyCode::Char('c') if is_ctrl => Key::Interrupt,
        _ if is_ctrl => return None,
        KeyCode::Char('q') => Key::Quit,
        KeyCode::Char('b') => Key::Backup,
        KeyCode::Char('n') => Key::Normal,
        KeyCode::Char('t') => Key::Span,
        KeyCode::Up | KeyCode::Char('k') => Key::Up,
        KeyCode::Down | KeyCode::Char('j') => Key::Down,
        KeyCode::Enter | KeyCode::Right => Key::Enter,
        KeyCode::Esc | KeyCode::Left | KeyCode::Backspace => Key::Back,
        _ => return None,
    })
}
