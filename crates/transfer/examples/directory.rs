//! Sends a directory to a receiver in the same program, over two paths of loopback. Breaks the
//! transfer off part-way, begins it again, and sees that it goes on from there.
//!
//! ```text
//! $ cargo run -q --release -p manypath-transfer --example directory
//! ticket: manypath2:...
//! broken off at 8.4 of 67.4 MB
//! photos/large.bin: 8.3 MB are there already
//! 67.4 of 67.4 MB
//! 5 entries stored, 8.3 MB not sent again, all content as it was
//! ```
//!
//! A program that sends needs `send_to` and the ticket only, one that receives `Inbox` only.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Duration;

use manypath_transfer::{
    Event, Inbox, InboxOptions, Options, Received, Route, SendError, Sent, Stop, Ticket, send_to,
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The files that are sent, and their lengths in bytes.
const FILES: [(&str, usize); 3] =
    [("large.bin", 64 << 20), ("notes.txt", 5_000), ("2026/november.jpeg", 250_000)];
/// The first attempt ends when this many bytes have arrived.
const ENOUGH: u64 = 8_000_000;

#[tokio::main]
async fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (photos, inbox) = (folder.path().join("photos"), folder.path().join("inbox"));
    make_files(&photos)?;

    let options = InboxOptions { route: loopback()?, ..InboxOptions::default() };
    let mut inbox_open = Inbox::open(&inbox, options).await?;
    let ticket = inbox_open.ticket().clone();
    println!("ticket: {ticket}");

    let first = Options { progress_every: Some(Duration::from_millis(5)), ..Options::default() };
    let receiving = Options::default();
    let (sent, received) =
        tokio::join!(break_off(&ticket, &photos, &first), inbox_open.receive(&receiving, |_| {}),);
    sent?;
    if received.is_ok() {
        return Err("the receiver does not know that the transfer was broken off".into());
    }

    let (sent, received) =
        tokio::join!(send(&ticket, &photos), inbox_open.receive(&receiving, |_| {}));
    check(&sent?, &received?)?;
    compare(&photos, &inbox.join("photos"))?;
    inbox_open.close().await;
    Ok(())
}

/// Two paths, for which addresses of loopback stand. Without `bind` there is one for each uplink.
fn loopback() -> Result<Route> {
    let bind = vec!["127.0.0.1".parse()?, "127.0.0.2".parse()?];
    Ok(Route { bind, ..Route::default() })
}

/// Sends until enough has arrived, then stops.
async fn break_off(ticket: &Ticket, photos: &Path, options: &Options) -> Result<()> {
    let stop: Stop = options.stop.clone();
    let stop_at = |event: Event<'_>| match event {
        Event::Progress { done, total: Some(total) } if done >= ENOUGH && !stop.is_stopped() => {
            println!("broken off at {} of {} MB", megabytes(done), megabytes(total));
            stop.stop();
        }
        _ => {}
    };
    match send_to(ticket, [photos], &loopback()?, options, stop_at).await {
        Err(SendError::Stopped) => Ok(()),
        Err(other) => Err(other.into()),
        Ok(_) => Err("everything was sent before it could be broken off".into()),
    }
}

/// Sends everything, and shows how it goes.
async fn send(ticket: &Ticket, photos: &Path) -> Result<Sent> {
    let show = |event: Event<'_>| match event {
        Event::Resumed { name, offset, .. } => {
            println!("{name}: {} MB are there already", megabytes(offset));
        }
        Event::Progress { done, total: Some(total) } => {
            println!("{} of {} MB", megabytes(done), megabytes(total));
        }
        _ => {}
    };
    Ok(send_to(ticket, [photos], &loopback()?, &Options::default(), show).await?)
}

/// Fails if nothing was resumed, or the two ends disagree.
fn check(sent: &Sent, received: &Received) -> Result<()> {
    if sent.resumed == 0 || sent.resumed != received.resumed {
        return Err(format!("resumed {} and {} bytes", sent.resumed, received.resumed).into());
    }
    let all: u64 = FILES.iter().map(|(_, length)| *length as u64).sum();
    if sent.summary.bytes + sent.resumed != all {
        return Err(format!("{} bytes arrived of {all}", sent.summary.bytes).into());
    }
    println!(
        "{} entries stored, {} MB not sent again, all content as it was",
        sent.summary.stored,
        megabytes(sent.resumed)
    );
    Ok(())
}

fn make_files(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory.join("2026"))?;
    let mut state = 20_261_128_u64;
    for (name, length) in FILES {
        let mut content = Vec::with_capacity(length + 8);
        while content.len() < length {
            // Xorshift (Marsaglia 2003): bytes without a pattern.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            content.extend(state.to_le_bytes());
        }
        content.truncate(length);
        fs::write(directory.join(name), content)?;
    }
    Ok(())
}

/// Fails if a file is missing, or different.
fn compare(sent: &Path, received: &Path) -> Result<()> {
    for (name, _) in FILES {
        if fs::read(sent.join(name))? != fs::read(received.join(name))? {
            return Err(format!("{name} is different").into());
        }
    }
    Ok(())
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}
